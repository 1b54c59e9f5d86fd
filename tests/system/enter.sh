#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# husk enter: a further process in a running app, with its streams, its terminal, its end and its limits.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

require python3 script
image=$(busybox_image)

stop_pod() {
	expect 0 husk stop "$uuid"
	wait $pod || :
}

say "right behind the start: output, exit code, standard streams, a big one"
run_in_background "$image" --user=1000 --group=1001 --set-env=COLOR=blue -- sh -c 'echo $$ >/tmp/pid; exec sleep 1000'
expect 0 husk enter "$uuid" sh -c 'echo out; echo err >&2'
equal "$out/$err" out/err "output"
expect_forms 7 enter "${uuid:0:8}" sh -c 'echo out; echo err >&2; exit 7'
expect 137 husk enter "$uuid" sh -c 'kill -9 $$'
equal "$(echo through | husk enter "$uuid" cat)" through "standard input"
expect 0 husk enter "$uuid" sh -c 'cat /tmp/pid; echo $COLOR; id -u; pwd'
match "$out" $'^[0-9]+\nblue\n1000\n/root$' "file, environment, user and directory of the app"
expect 0 husk enter "$uuid" -- echo -- --app=x
equal "$out" "-- --app=x" "arguments that look like flags"
sum=$(head -c 8388608 /dev/urandom | tee "$work/random" | sha256sum)
equal "$(husk enter "$uuid" cat <"$work/random" | sha256sum)" "$sum" "8 MiB there and back"

say "as confined as the app"
for what in CapEff CapBnd NoNewPrivs Seccomp Groups; do
	app=$(husk enter "$uuid" sh -c "grep ^$what: /proc/\$(cat /tmp/pid)/status")
	equal "$(husk enter "$uuid" grep "^$what:" /proc/self/status)" "$app" "$what of the new process and the app's"
done
expect 0 husk enter "$uuid" sh -c 'ls /proc/self/fd | wc -l; for p in self $(cat /tmp/pid); do readlink /proc/$p/ns/mnt; done | uniq | wc -l'
equal "$out" $'4\n1' "descriptors (ls has one of its own) and mount namespaces"

say "another user, directory, environment; a terminal where there is none, none where there is one; an end"
expect 0 husk enter --user=0 "$uuid" sh -c 'id -u; id -g; pwd; echo $COLOR'
equal "$out" $'0\n0\n/root\nblue' "as root with its group, the rest as the app"
expect_forms 0 app exec --user=7:8 --workdir=/etc --env=COLOR=red --env=MORE= "$uuid" sh -c 'id -u; id -g; pwd; echo $COLOR; echo "${MORE-unset}"'
equal "$out" $'7\n8\n/etc\nred' "everything else than the app"
expect 0 husk enter "$uuid" sh -c 'id -u; pwd; echo $COLOR'
equal "$out" $'1000\n/root\nblue' "the app is as before"
expect 0 husk enter --tty "$uuid" tty
match "$out" '^/dev/pts/[0-9]+' "a terminal where husk has none"
script -qec "'$husk_bin' --dir='$data' enter --no-tty $uuid tty" /dev/null >"$work/tty" </dev/null && status=0 || status=$?
equal "$status" 1 "tty without a terminal"
match "$(cat "$work/tty")" 'not a tty' "no terminal where husk has one"
expect 124 husk enter --timeout=1s "$uuid" sh -c 'echo $$; exec sleep 555'
one_line_error '^stage1: app "busybox": the command was ended after 1000 ms$'
until expect 0 husk enter "$uuid" ps && [[ $out != *"sleep 555"* ]]; do :; done
expect 5 husk enter --timeout=1h "$uuid" sh -c 'exit 5'
expect 203 husk enter --workdir=/ect/x "$uuid" true
one_line_error 'cannot change to directory "/ect/x": No such file or directory$'
expect 1 husk enter "$uuid" test -e /ect
expect 0 husk enter --user=nobody "$uuid" sh -c 'echo $HOME $USER'
match "$out" '^/[a-z]* nobody$' "home and name of another user"
expect 254 husk enter --workdir=etc "$uuid" true
one_line_error '^Error: --workdir: "etc" is not an absolute path'
expect 254 husk enter --timeout=0 "$uuid" true
one_line_error '^Error: --timeout: "0" is not a duration'
expect 254 husk enter --tty --no-tty "$uuid" true
one_line_error '^Error: --tty and --no-tty exclude each other; see husk help enter$'
expect 203 husk enter --user=nobody-here "$uuid" true
match "$err" 'nobody-here' "unknown user"

say "what cannot be executed; what has ended; what is not there"
expect 203 husk enter "$uuid" /no/such/program
one_line_error '^stage1: app "busybox": Unable to open "/no/such/program": No such file or directory$'
expect 203 husk enter "$uuid"
match "$err" '^enter: no command specified, assuming "/bin/bash"' "the default command"
expect 254 husk enter --app=nothing "$uuid" true
one_line_error 'error: nonexistent app "nothing"'
expect 254 husk enter
expect 254 husk enter --nothing "$uuid" true
expect 254 husk enter ffffffff-ffff true
one_line_error 'no matches found for "ffffffff-ffff"'

say "a command of many words, and of a long one"
long=$(head -c 131071 /dev/zero | tr '\0' x)
# shellcheck disable=SC2016,SC2046 # expanded in the pod; numbers
expect 0 husk enter "$uuid" sh -c 'echo $# ${#1}' sh "$long" $(seq 20000)
equal "$out" "20001 131071" "arguments, and bytes of the longest"
# Linux takes what is too long as JSON.
control=$(head -c 125000 /dev/zero | tr '\0' '\1')
expect 254 husk enter "$uuid" true "$control" "$control" "$control" "$control" "$control" "$control"
one_line_error '^stage1: enter: arguments and environment have 45[0-9]+ bytes together as JSON, .* 4194304 fit into a message'

say "a terminal: its name, its size, its end"
# shellcheck disable=SC2016 # expanded in the pod
script -qec "stty rows 33 cols 77; '$husk_bin' --dir='$data' enter $uuid sh -c 'tty; stty size; echo \$TERM; exit 5'" /dev/null \
	>"$work/tty" </dev/null && status=0 || status=$?
equal "$status" 5 "exit code through a terminal"
match "$(cat "$work/tty")" '/dev/pts/[0-9]+' "name of the terminal"
match "$(cat "$work/tty")" '33 77' "size of the terminal"

say "signals, and the end of husk, reach the process"
"$husk_bin" "--dir=$data" enter "$uuid" sh -c 'trap "echo caught; exit 3" TERM; echo ready; while :; do sleep 0.1; done' \
	>"$work/out" 2>"$work/err" </dev/null &
entered=$!
wait_for_line "$work/out" ready
kill -TERM $entered
wait $entered && status=0 || status=$?
equal "$status $(tail -n 1 "$work/out")" "3 caught" "exit code and last word after SIGTERM"
"$husk_bin" "--dir=$data" enter "$uuid" sh -c 'echo $$ >/tmp/orphan; echo alone; while :; do sleep 0.3; done' \
	>"$work/out" 2>&1 </dev/null &
entered=$!
wait_for_line "$work/out" alone
kill -KILL $entered
# shellcheck disable=SC2016 # expanded in the pod
expect 0 husk enter "$uuid" sh -c 'while [ -d /proc/$(cat /tmp/orphan) ]; do sleep 0.05; done'

say "a reader that does not read keeps the command's output waiting, and a signal ends that"
mkfifo "$work/pipe"
"$husk_bin" "--dir=$data" enter "$uuid" head -c 3000000 /dev/zero >"$work/pipe" 2>"$work/err" </dev/null &
entered=$!
exec 7<"$work/pipe"
expect 0 husk enter "$uuid" sh -c 'until pidof head; do sleep 0.05; done
	n=0; while pidof head && [ $n -lt 20 ]; do sleep 0.1; n=$((n + 1)); done'
kill -0 $entered || die "it did not wait for its reader: $(cat "$work/err")"
# The first goes to the process; when that has ended, the next ends husk.
kill -TERM $entered
expect 0 husk enter "$uuid" sh -c 'while pidof head; do sleep 0.1; done'
kill -TERM $entered
wait $entered && status=0 || status=$?
exec 7<&-
equal "$status" 254 "exit code after SIGTERM"
match "$(cat "$work/err")" 'not all output was delivered: Interrupted system call' "what was said"

say "a process that takes no notice of a signal: the second one ends it"
"$husk_bin" "--dir=$data" enter "$uuid" sh -c 'trap "echo caught" TERM; echo ready; while :; do sleep 0.1; done' \
	>"$work/out" 2>"$work/err" </dev/null &
entered=$!
wait_for_line "$work/out" ready
kill -TERM $entered
wait_for_line "$work/out" caught $entered
kill -TERM $entered
wait $entered && status=0 || status=$?
equal "$status" 254 "exit code after two signals"
match "$(cat "$work/err")" 'the process did not end after a signal, and is killed' "what was said"

say "64 at once, while a process that takes no notice of one signal runs out of patience"
"$husk_bin" "--dir=$data" enter "$uuid" sh -c 'trap "" TERM; echo ready; while :; do sleep 0.1; done' \
	>"$work/deaf" 2>"$work/deaf.err" </dev/null &
entered=$!
wait_for_line "$work/deaf" ready
kill -TERM $entered
seq 64 | xargs -P 64 -I{} "$husk_bin" "--dir=$data" enter "$uuid" echo {} >"$work/out" 2>"$work/err" || :
equal "$(sort -n "$work/out" | tr '\n' ' ')" "$(seq 64 | tr '\n' ' ')" "outputs of 64 commands ($(cat "$work/err"))"

wait $entered && status=0 || status=$?
equal "$status" 254 "exit code some seconds after one signal ($(cat "$work/deaf.err"))"

say "the pod ends: so does what was entered"
"$husk_bin" "--dir=$data" enter "$uuid" sh -c 'echo ready; exec sleep 1000' >"$work/out" 2>"$work/err" </dev/null &
entered=$!
wait_for_line "$work/out" ready
stop_pod
wait $entered && status=0 || status=$?
case $status in
137 | 143 | 254) ;; # killed with its app, or the pod was gone before the news of that
*) die "exit code $status ($(cat "$work/err"))" ;;
esac
expect 254 husk enter "$uuid" true
one_line_error "^enter: pod \"$uuid\" isn't currently running$"

say "one of several apps"
run_in_background "$image" --name=one -- sleep 1000 --- "$image" --name=two -- sleep 1000
expect 254 husk enter "$uuid" true
match "$err" 'one' "the list of apps"
match "$err" 'specify app using "husk enter --app= ..."' "the remedy"
expect 0 husk enter --app=two "$uuid" sh -c 'echo $AC_APP_NAME >/mine; cat /mine'
equal "$out" two "the app"
expect 1 husk enter --app=one "$uuid" test -e /mine
stop_pod
uuid=$(husk prepare "$image" -- true)
expect 254 husk enter "$uuid" true
one_line_error "isn't currently running"
