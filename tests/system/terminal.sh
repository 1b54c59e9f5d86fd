#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What people do to a pod in a terminal: Ctrl-C, Ctrl-\, closing the window, a signal to every process, pipes.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require python3
image=$(busybox_image)
typist=$top/tests/support/typist.py
export TYPIST_LIMIT=$vm_limit
# Says "ready", and when it was asked to end; the file is there when nobody reads the terminal any more.
patient='trap "echo cleaned up; exit 0" TERM; echo ready; while :; do sleep 1; done'

# type_to STATUS STEP... -- WORDS of run: what appeared is in $out.
type_to() {
	local want=$1 got=0 steps=()
	shift
	while [ "$1" != -- ]; do
		steps+=("$1")
		shift
	done
	shift
	"$typist" "${steps[@]}" -- "$husk_bin" "--dir=$data" run "${run_options[@]}" "$@" >"$work/out" 2>&1 </dev/null || got=$?
	out=$(tr -d '\0\r' <"$work/out")
	[ "$got" -eq "$want" ] || die "exit code $got instead of $want: $out"
}

say "Ctrl-C ends a pod in good order: the app's trap runs"
type_to 0 --await ready --type '\x03' -- "$image" -- sh -c "$patient"
match "$out" "cleaned up" "last words after Ctrl-C"

say "a second Ctrl-C, and Ctrl-\\ at once, kill it"
type_to 254 --await ready --type '\x03' --await closing --type '\x03' -- "$image" -- \
	sh -c 'trap "echo closing" TERM; echo ready; while :; do sleep 1; done'
match "$out" "pod killed on request" "what a second Ctrl-C says"
type_to 254 --await ready --type '\x1c' -- "$image" -- sh -c "$patient"
match "$out" "pod killed on request" "what Ctrl-\\ says"

say "a signal to every process of the session, as a service manager's"
for signal in TERM HUP INT; do
	type_to 0 --await ready --group $signal -- "$image" -- sh -c "$patient"
	match "$out" "cleaned up" "last words after SIG$signal"
done

say "SIGTERM to every process of the pod, helpers included: systemd's KillMode=control-group"
run_in_background "$image" -- sh -c "$patient"
wait_for_line "$work/pod.out" ready $pod
# shellcheck disable=SC2046 # a list of numbers
kill -TERM $(pod_processes) $pod
status=0
wait $pod || status=$?
equal "$status $(tail -n 1 "$work/pod.out")" "0 cleaned up" "status and last words ($(cat "$work/pod.err"))"

say "in the app's terminal keys end a program without a handler, though it is process 1; not one that takes the key itself"
# What is typed before the pod has the terminal, that repeats as well: hence a word of the app first.
cat=(sh -c 'echo ready; exec cat') # which runs when it says again what its terminal has said
type_to 2 --await ready --type 'abc\r' --await abc --await abc --type '\x03' -- --interactive "$image" -- "${cat[@]}"
type_to 3 --await ready --type 'abc\r' --await abc --await abc --type '\x1c' -- --interactive "$image" -- "${cat[@]}"
type_to 2 --await ready --type 'abc\r' --await abc --await abc --type 'x\x03y' -- --interactive "$image" --init -- "${cat[@]}"
type_to 5 --await ready --type '\x03' -- --interactive "$image" -- sh -c 'trap "echo taken; exit 5" INT; echo ready; while :; do sleep 0.1; done'
match "$out" taken "a handler"
type_to 0 --await ready --type '\x03' -- --interactive "$image" -- sh -c 'stty -isig -icanon; echo ready; head -c 1 | od -An -tx1'
match "$out" ' 03' "a key that is no signal"

say "a program without a handler ends as well when it is asked to, or told"
run_in_background "$image" --name=app -- sleep 1000
expect 0 husk status --wait-ready=120s "$uuid"
expect 0 husk stop "$uuid"
wait $pod || :
match "$(husk status "$uuid")" app-app=15 "its status"

say "the window is closed: the pod ends, in good order"
status=0
type_to 0 --await ready --hang-up -- "$image" -- sh -c "$patient"
expect 0 husk list --no-legend
[ "$(grep -c running "$work/out")" -eq 0 ] || die "a pod runs: $out"

say "helpers have no terminal, no environment but a mark, no core files; the supervisor one capability"
SECRET=of-the-caller run_in_background "$image" -- sh -c "$patient"
wait_for_line "$work/pod.out" ready $pod
helpers=0
for process in $(pod_processes); do
	case $(cat "/proc/$process/comm") in qemu-* | husk-vsock | husk-ns) ;; *) continue ;; esac
	helpers=$((helpers + 1))
	equal "$(tr '\0' ' ' <"/proc/$process/environ")" "HUSK_HELPER=1 " "environment of $(cat "/proc/$process/comm")"
	read -r _ _ _ _ _ session terminal _ <"/proc/$process/stat"
	equal "$session $terminal" "$process 0" "session and terminal of $(cat "/proc/$process/comm")"
	equal "$(awk '/^Max core/ {print $5, $6}' "/proc/$process/limits")" "0 0" "core limit"
	! is_vm || awk '/^Max (open files|file size)/ && /unlimited/ { exit 1 }' "/proc/$process/limits" || die "a limit is missing"
done
[ $helpers -ge 1 ] || die "no helper was looked at"
if [ "$(id -u)" -eq 0 ]; then # CAP_KILL is number 5
	equal "$(awk '/^Cap(Prm|Eff|Bnd)/ {printf "%s ", $2}' "/proc/$(cat "$data"/pods/run/"$uuid"/pid)/status")" \
		"0000000000000020 0000000000000020 0000000000000020 " "capabilities of the supervisor"
fi
kill -TERM $pod
wait $pod || die "the pod failed: $(cat "$work/pod.err")"

say "two apps with one terminal, one pipe, one file"
two=("$image" --name=one -- echo first --- "$image" --name=two -- echo second)
expect_forms 0 run "${two[@]}"
equal "$(sort "$work/out" | tr '\n' ' ')" "first second " "what both say"

say "--interactive without a terminal: a pipe that ends"
status=0
printf 'echo from the pipe; exit 5\n' | husk run --interactive "$image" -- sh >"$work/out" 2>"$work/err" || status=$?
equal "$status $(cat "$work/out")" "5 from the pipe" "a script through a pipe ($(cat "$work/err"))"
printf 'abc' | husk run --interactive "$image" -- cat >"$work/out" 2>"$work/err" || die "cat failed: $(cat "$work/err")"
equal "$(cat "$work/out")" abc "what cat read"

if is_vm; then
	say "a limit of the file size is an error with a cause, not a silent death"
	(
		ulimit -f 100
		expect 254 husk run "$image" -- true
		one_line_error "File too large"
	)
else
	say "limits of the caller are those of the apps, unless options say others"
	(
		ulimit -f 100 -n 300
		expect 0 husk run "$image" --rlimit=nofile=200:200 -- sh -c 'ulimit -f; ulimit -n'
		equal "$out" $'200\n200' "limits, the first in blocks of 512 bytes"
	)
fi

say "one SIGTERM with a reader that does not read ends the pod"
mkfifo "$work/fifo"
exec 8<>"$work/fifo"
"$husk_bin" "--dir=$data" run "${run_options[@]}" "--uuid-file-save=$work/stalled" "$image" -- \
	sh -c 'cat /dev/zero | head -c 3000000; echo done >&2; sleep 1000' >&8 2>"$work/err" </dev/null &
pod=$!
while [ "$(dd if=/proc/self/fd/8 bs=1 count=1 status=none <&8 | wc -c)" -eq 0 ]; do :; done
kill -TERM $pod
wait $pod || die "the pod failed: $(cat "$work/err")"
exec 8>&-
