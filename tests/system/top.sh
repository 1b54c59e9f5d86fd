#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# husk top: what it says of pods that are busy or not, in which order, on a terminal and elsewhere; and that no pod can hold it up.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/cgroup_lib.sh
. "$(dirname "$0")/cgroup_lib.sh"
require python3
image=$(busybox_image)
typist=$top/tests/support/typist.py

# column NUMBER POD: of the last table in $work/out.
column() { tr -s '\t' <"$work/out" | awk -F'\t' -v id="${2:0:8}" -v n="$1" '$1 == id { last = $n } END { print last }'; }
order() { tr -s '\t' <"$work/out" | awk -F'\t' '$1 == "UUID" { list = "" } $1 != "UUID" { list = list $7 " " } END { print list }'; }

say "nothing runs"
expect 0 husk top --count=1 --delay=100ms
match "$out" $'^UUID\t' "the header"
equal "$(wc -l <"$work/out")" 1 "lines"

expect 0 husk run --detach "${run_options[@]}" --name=busy "$image" --name=one -- sh -c 'while :; do :; done' --- \
	"$image" --name=two -- sleep 1000
busy=$out
expect 0 husk run --detach "${run_options[@]}" --name=idle "$image" -- \
	sh -c 'dd if=/dev/zero of=/dev/shm/x bs=1M count=40 2>/dev/null; echo held; exec sleep 1000'
idle=$out uuid=$out
wait_log busybox held

say "the busiest first, with its limits"
expect 0 husk top --count=2 --delay=1s
equal "$(grep -c ^UUID "$work/out")" 2 "tables"
equal "$(order)" "busy idle " "the order"
share=$(column 2 "$busy")
[ "${share%.*}" -ge 10 ] || die "a pod that spins uses $share % of a processor"
share=$(column 2 "$idle")
[ "${share%.*}" -lt 50 ] || die "a pod that sleeps uses $share % of a processor"
match "$(column 4 "$idle")" '^[0-9]+MiB$' "memory of the one that holds some"
match "$(column 8 "$busy")" '^one,two$' "apps"
expect 0 husk update --cpu=250m "$busy"
expect 0 husk top --count=1 --delay=100ms "$busy"
equal "$(column 3 "$busy") $(column 3 "$idle")" "0.25 " "limit of processors, of the pod that was named"

say "other orders"
expect 0 husk top --count=1 --delay=100ms --sort=memory
is_vm || equal "$(order)" "idle busy " "by memory"
expect 0 husk top --count=1 --delay=100ms --sort=name
equal "$(order)" "busy idle " "by name"
expect 0 husk top --count=1 --delay=100ms --sort=uuid
equal "$(tail -n +2 "$work/out" | cut -c1-8)" "$(printf '%s\n' "$busy" "$idle" | cut -c1-8 | sort)" "by UUID"

say "who does not read any more ends it; so does Ctrl-C"
husk top --delay=100ms 2>"$work/err" | head -n 1 >"$work/out" || die "exit code with a reader that has gone"
equal "$(wc -l <"$work/out") $(cat "$work/err")" "1 " "lines that were read, and what is said"
status=0
"$typist" --size 3x100 --await busy --await UUID --await busy --type '\x03' -- \
	"$husk_bin" "--dir=$data" top --delay=100ms --sort=name >"$work/out" 2>&1 </dev/null || status=$?
equal "$status" 130 "exit code of a program that Ctrl-C ends"
match "$(tr '\033' '^' <"$work/out")" '^\^\[HUUID ' "what a terminal gets first"
! grep -q idle "$work/out" || die "more lines than the terminal has"

say "a supervisor, and a guest, that stand still are counted all the same, at once"
# shellcheck disable=SC2046 # a list of numbers
kill -STOP $(cat "$data/pods/run/$idle/pid") $(pgrep -P "$(cat "$data/pods/run/$idle/pid")")
expect 0 husk top --count=1 --delay=100ms
match "$(column 4 "$idle")" '^[0-9]+MiB$' "memory of a pod that stands still"
# shellcheck disable=SC2046
kill -CONT $(cat "$data/pods/run/$idle/pid") $(pgrep -P "$(cat "$data/pods/run/$idle/pid")")

say "a pod that ends goes, one that comes is there, in tables that are being printed"
"$husk_bin" "--dir=$data" top --delay=100ms --sort=name >"$work/tables" 2>"$work/err" &
watcher=$!
wait_for_line "$work/tables" idle
expect 0 husk stop --force "$idle"
lines=$(wc -l <"$work/tables")
wait_for_line <(tail -n "+$((lines + 1))" -f "$work/tables") '^UUID'
expect 0 husk run --detach "${run_options[@]}" --name=late "$image" -- sleep 1000
late=$out
wait_for_line "$work/tables" late
kill -0 $watcher || die "it has ended: $(cat "$work/err")"
kill $watcher
wait $watcher || :
equal "$(cat "$work/err")" "" "what it has to say on standard error"

say "errors"
expect 254 husk top nobody
one_line_error '^top: problem retrieving pod: no matches found for "nobody"$'
expect 254 husk top "$idle"
one_line_error "pod \"$idle\" isn't currently running"
for words in --count=0 --count=x --delay=99ms --delay=2h --delay=1 --sort=size; do
	expect 254 husk top "$words"
	one_line_error "^Error: ${words%=*}: \"${words#*=}\" is"
done
expect 0 husk stop --force "$busy" "$late"
