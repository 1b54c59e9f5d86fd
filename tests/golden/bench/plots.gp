set style fill solid 1
unset key
set yrange [0:*]
set errorbars lw 1.5 lc rgb '#333333'
set grid ytics lc rgb '#dddddd'
set border 3
set tics nomirror
$d << EOD
"kvm (TCG)" 1000 900 1400
"runc" 50.25 40 60
EOD
set terminal svg size 400,260 dynamic noenhanced font 'sans-serif,12' name 'p0' background rgb 'white'
set output ARG1.'/plot-0.svg'
set title "Warm: to the end of the command, ms"
set format y '%g'
set xrange [-0.6:1.6]
plot $d using 0:2:3:4:(0.6):xtic(1) with boxerrorbars lc rgb '#6699cc'
unset output
$d << EOD
"kvm (TCG)" 2 1.5 2.5
"runc" 1.23457e+06 1.23457e+06 1.23457e+06
EOD
set terminal svg size 400,260 dynamic noenhanced font 'sans-serif,12' name 'p2' background rgb 'white'
set output ARG1.'/plot-2.svg'
set title "Pods per second, 1/s"
set format y '%.1s %c'
set xrange [-0.6:1.6]
plot $d using 0:2:3:4:(0.6):xtic(1) with boxerrorbars lc rgb '#6699cc'
unset output
