#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where the streams of apps go: log, null, and whoever attaches.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq script python3
typist=$top/tests/support/typist.py
export TYPIST_LIMIT=$vm_limit
busybox=$(busybox_image)

expect 0 husk app sandbox --detach "${run_options[@]}"
uuid=$out

say "streams"
expect 0 husk app add "$uuid" "$busybox" --name=echo --stdin=stream --stdout=stream -- \
	sh -c 'while read -r line; do echo "got $line"; echo "log $line" >&2; [ "$line" != quit ] || exit 5; done; echo eof'
expect 0 husk app start --app=echo "$uuid"
expect 0 husk attach --mode=list "$uuid"
equal "$out" "$(printf 'stdin\nstdout')" "endpoints"
# One session after the other: what the app writes to nobody waits for the next.
echo one | husk attach --mode=stdin --keep-stdin "$uuid"
timeout "$vm_limit" "$husk_bin" "--dir=$data" attach --mode=stdout "$uuid" >"$work/first" 2>"$work/err" </dev/null &
reader=$!
wait_for_line "$work/first" "got one"
expect 254 husk attach --mode=stdout "$uuid"
one_line_error "attach: app \"echo\": stdout is attached by somebody else"
kill -TERM $reader
wait $reader || die "attach ended with $?: $(cat "$work/err")"
echo lost | husk attach --mode=stdin --keep-stdin "$uuid"
timeout "$vm_limit" "$husk_bin" "--dir=$data" attach --mode=stdout "$uuid" >/dev/full 2>"$work/err" </dev/null &
reader=$!
wait_for_line "$work/err" 'stage1: stdout of app "echo" cannot be written, and is lost: No space left on device' $reader
kill -TERM $reader
code=0
wait $reader || code=$?
equal "$code $(wc -l <"$work/err")" "254 1" "into a file that takes no more"
printf 'two\nquit\n' | husk attach --mode=stdin "$uuid"
expect 0 husk attach --mode=stdout "$uuid"
equal "$out" "$(printf 'got two\ngot quit')" "what waited"
expect 254 husk attach "$uuid"
match "$err" "attach: app \"echo\": std(in|out) has ended" "an app that has ended"
wait_app_end "$uuid" echo
expect 0 husk app status --app=echo "$uuid"
match "$out" "exit_code=5" "the app was not ended by those who left"
expect 0 husk logs --app=echo "$uuid"
equal "$err" "$(printf 'log one\nlog lost\nlog two\nlog quit')" "its standard error is in the log"
expect 254 husk attach --mode=stderr --app=echo "$uuid"
one_line_error "attach: app \"echo\" has no stderr to attach to"
expect 254 husk attach --mode=tty,stdin "$uuid"
one_line_error "attach: --mode: a terminal and streams exclude each other"
expect 254 husk attach --mode=stdnone "$uuid"
one_line_error "attach: unknown endpoint \"stdnone\""
expect 0 husk app rm --app=echo "$uuid"

say "the end of standard input is the app's"
expect 0 husk app add "$uuid" "$busybox" --name=sum --stdin=stream --stdout=stream -- sh -c 'cat; echo end'
expect 0 husk app start --app=sum "$uuid"
echo kept | husk attach --mode=stdin --keep-stdin "$uuid" || die "attach ended with $?"
# One that is killed has left, whatever its input was.
mkfifo "$work/typed"
"$husk_bin" "--dir=$data" attach "$uuid" >"$work/first" 2>"$work/err" <"$work/typed" &
reader=$!
exec 6>"$work/typed"
wait_for_line "$work/first" kept
echo killed >&6
wait_for_line "$work/first" killed
kill -KILL $reader
wait $reader || :
exec 6>&-
deadline=$((SECONDS + gone_limit))
until out=$(echo last | husk attach "$uuid" 2>"$work/err"); do # the guest has to notice
	grep -q "is attached by somebody else" "$work/err" || die "attach: $(cat "$work/err")"
	[ $SECONDS -lt $deadline ] || die "the streams of one that was killed are not free"
done
equal "$out" "$(printf 'last\nend')" "output of one who feeds a program that reads to the end"
expect 254 husk attach --mode=stdin "$uuid"
one_line_error "attach: app \"sum\": stdin has ended"
expect 0 husk app rm --app=sum "$uuid"

say "null"
expect 0 husk app add "$uuid" "$busybox" --name=quiet --stdout=null -- sh -c 'echo unseen; x=$(readlink /proc/$$/fd/1); echo "$x" >&2; sleep 1000'
expect 0 husk app start --app=quiet "$uuid"
tries=0
until husk logs --app=quiet "$uuid" 2>&1 </dev/null | grep -q /dev/null; do
	[ $((++tries)) -lt 500 ] || die "standard output is not /dev/null"
	read -rt 0.05 <> <(:) || :
done
expect 0 husk logs --app=quiet "$uuid"
equal "$out" "" "standard output of an app that has none"
expect 254 husk attach "$uuid"
match "$err" "has nothing to attach to" "an app with nothing to attach to"
expect 0 husk app rm --grace=0 --app=quiet "$uuid"

say "terminal"
expect 0 husk app add "$uuid" "$busybox" --name=shell --stdin=tty -- sh
expect 0 husk app start --app=shell "$uuid"
expect 0 husk attach --mode=list "$uuid"
equal "$out" "$(printf 'tty-in\ntty-out')" "endpoints"
# A session with a terminal of 33 rows: types INPUT, waits for TEXT and ends husk, not the app.
attached() { # INPUT TEXT
	local line seen='' pid process
	coproc session { script -qefc "stty rows 33 cols 44; exec $husk_bin --dir=$data attach $uuid" /dev/null; }
	# shellcheck disable=SC2154 # by coproc
	pid=$session_PID # the variable goes with the process
	echo "$1" >&"${session[1]}"
	while [ -z "$seen" ] && read -rt "$vm_limit" line <&"${session[0]}"; do
		[ "$(tr -d '\r' <<<"$line")" != "$2" ] || seen=1
	done
	for process in $(pod_processes); do
		[ "$(cat "/proc/$process/comm" 2>/dev/null)" != attach ] || kill -TERM "$process" || :
	done
	wait "$pid" 2>/dev/null || :
	[ -n "$seen" ] || die "the terminal did not say \"$2\""
}
# shellcheck disable=SC2016 # for the shell in there
attached 'x=kept; until stty size | grep -q "33 44"; do sleep 0.1; done; echo $((40 + 2))' 42
# shellcheck disable=SC2016
attached 'echo "<$x>"' '<kept>' # the same shell goes on
expect 0 husk app exec --app=shell "$uuid" true

say "one half of a terminal: what is typed where only the output is wanted goes nowhere, and the other way round"
# The exit code tells whether what it read first is what was meant for it.
expect 0 husk app add "$uuid" "$busybox" --name=half --stdin=tty -- \
	sh -c 'until [ -e /tmp/go ]; do sleep 0.05; done; echo ready; read -r line; echo "$line"; [ "$line" = wanted ]'
expect 0 husk app start --app=half "$uuid"
timeout "$vm_limit" "$husk_bin" "--dir=$data" attach --mode=tty-out --app=half "$uuid" >"$work/half" 2>"$work/err" <<<unwanted &
reader=$!
expect 0 husk app exec --app=half "$uuid" touch /tmp/go
wait_for_line "$work/half" ready $reader
kill -TERM $reader || : # it has ended if the app has
wait $reader || die "attach ended with $?: $(cat "$work/err")"
equal "$(tr -d '\r' <"$work/half")" ready "what appeared"
out=$(timeout "$vm_limit" "$husk_bin" "--dir=$data" attach --mode=tty-in --app=half "$uuid" 2>"$work/err" <<<wanted) ||
	die "attach ended with $?: $(cat "$work/err")"
equal "$out" "" "output where only the input is wanted"
wait_app_end "$uuid" half
expect 0 husk app status --app=half "$uuid"
match "$out" "exit_code=0" "an app that has read its line"
expect 0 husk app rm --app=half "$uuid"

say "keys that leave a terminal"
# type_to STATUS STEP... -- OPTIONS of attach: what appeared is in $out; the terminal is as it was.
type_to() {
	local want=$1 got=0 steps=()
	shift
	while [ "$1" != -- ]; do
		steps+=("$1")
		shift
	done
	shift
	# shellcheck disable=SC2016 # for the shell on the terminal
	"$typist" "${steps[@]}" -- sh -c 'before=$(stty -g); "$@"; status=$?
		[ "$before" = "$(stty -g)" ] || echo "the terminal is not as it was"; exit $status' sh \
		"$husk_bin" "--dir=$data" attach "$@" "$uuid" >"$work/out" 2>&1 </dev/null || got=$?
	out=$(tr -d '\0\r' <"$work/out")
	[ "$got" -eq "$want" ] || die "exit code $got instead of $want: $out"
	[[ $out != *"the terminal is not as it was"* ]] || die "the terminal is not as it was: $out"
}
# shellcheck disable=SC2016
type_to 0 --type 'echo "<$x>"\r' --await '<kept>' --type '\x10\x11' --await detached -- --app=shell
match "$out" 'stage1: detached from app "shell", which goes on' "what is said"
# The shell's line editor takes Ctrl-P for the line before: the key that could have begun the keys goes on to it.
# shellcheck disable=SC2016
type_to 0 --type 'y=$x$x\r' --type 'echo "[$y]"\r' --await '[keptkept]' --type '\x10' --type '\r' --await '[keptkept]' \
	--type '\x18d' --await detached -- --detach-keys=ctrl-x,d
# Without keys Ctrl-P Ctrl-Q go to the shell, and husk ends with it.
# shellcheck disable=SC2016
type_to 0 --type 'echo "{$y}"\r' --await '{keptkept}' --type '\x10\x11\x03' --type 'echo "<$y>"; exit\r' --await '<keptkept>' -- \
	--detach-keys=
[[ $out != *detached* ]] || die "detached without keys: $out"
expect 254 husk attach --detach-keys=ctrl-p,nothing "$uuid"
match "$err" '--detach-keys: "ctrl-p,nothing" is not a list of keys' "what are not keys"
expect 254 husk attach --detach-keys=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q "$uuid"
match "$err" '--detach-keys: more than 16 keys' "too many keys"

say "what does not go together"
expect 254 husk app add "$uuid" "$busybox" --name=bad --stdin=tty --stdout=log
match "$err" "a terminal is all of stdin, stdout and stderr" "a terminal and a log"
expect 254 husk app add "$uuid" "$busybox" --name=bad --stdin=log
match "$err" "--stdin: \"log\" is not one of null.stream.tty" "a log for input"
expect 254 husk run --interactive "$busybox" --stdout=null
one_line_error "run: --interactive excludes --stdin, --stdout and --stderr"
expect 0 husk stop "$uuid"

say "a log of a pod in the foreground"
expect 0 husk run "--uuid-file-save=$work/uuid" "$busybox" --stdout=log -- sh -c 'echo logged; echo seen >&2'
equal "$out$err" seen "output that is not in the log"
expect 0 husk logs "$(cat "$work/uuid")"
equal "$out" logged "the log"
expect 0 husk run "--uuid-file-save=$work/uuid" "$busybox" -- sh -c 'echo seen; echo too >&2; printf half'
equal "$out/$err" $'seen\nhalf/too' "output that is in the log, too"
expect 0 husk logs "$(cat "$work/uuid")"
equal "$out/$err" $'seen\nhalf/too' "the log of what was seen"
"$typist" -- "$husk_bin" "--dir=$data" run "${run_options[@]}" "--uuid-file-save=$work/uuid" --interactive "$busybox" -- \
	echo shown >"$work/out" 2>&1 </dev/null || die "a pod with a terminal: $(cat "$work/out")"
expect 254 husk logs "$(cat "$work/uuid")"
one_line_error 'has no log \(it was not run, has a terminal'

say "a log of a pod in the foreground, while it runs, as it is shown, and without room for it"
mkfifo "$work/go"
"$husk_bin" "--dir=$data" run "${run_options[@]}" "--uuid-file-save=$work/uuid2" "$busybox" -- \
	sh -c 'echo first; read -r line; echo "$line"' <"$work/go" >"$work/pod.out" 2>"$work/pod.err" &
pod=$!
exec 7>"$work/go"
wait_for_line "$work/pod.out" first $pod
uuid=$(cat "$work/uuid2")
expect 0 husk logs "$uuid"
equal "$out" first "the log of a pod that runs"
"$husk_bin" "--dir=$data" logs --follow "$uuid" >"$work/followed" 2>"$work/followed.err" &
follower=$!
wait_for_line "$work/followed" first $follower
echo second >&7
exec 7>&-
wait $pod || die "the pod failed: $(cat "$work/pod.err")"
wait $follower || die "logs --follow: $(cat "$work/followed.err")"
cmp "$work/followed" "$work/pod.out" || die "the log differs from what was shown"

say "of output that comes too fast for its log the end is there, and all of it was shown"
husk run "--uuid-file-save=$work/uuid" "$busybox" -- sh -c 'dd if=/dev/zero bs=64k count=400 2>/dev/null; echo; echo the end' \
	>"$work/shown" 2>"$work/err" </dev/null || die "the pod failed: $(cat "$work/err")"
equal "$(stat -c %s "$work/shown")" $((400 * 65536 + 9)) "bytes that were shown"
expect 0 husk logs --tail=1 "$(cat "$work/uuid")"
equal "$out" "the end" "end of the log"

say "a log that cannot be kept changes nothing else"
uuid=$(husk prepare "$busybox" -- sh -c 'echo seen; exit 3')
echo "no directory" >"$data/pods/prepared/$uuid/logs"
expect 3 husk run-prepared "${run_options[@]}" "$uuid"
equal "$out" seen "output of a pod without a log"
match "$err" 'stage1: pod directory: cannot open the log of app "busybox": Not a directory' "what is said of it"

say "a mutable pod in the foreground shows what its apps write, and has it in the log"
"$husk_bin" "--dir=$data" app sandbox "${run_options[@]}" "--uuid-file-save=$work/uuid3" >"$work/pod.out" 2>"$work/pod.err" </dev/null &
pod=$!
wait_for_uuid "$work/uuid3"
expect 0 husk status --wait-ready "$uuid"
for name in one two; do
	expect 0 husk app add "$uuid" "$busybox" --name=$name -- sh -c "echo $name; echo $name-err >&2; exec sleep 1000"
	expect 0 husk app start --app=$name "$uuid"
	wait_for_line "$work/pod.out" "^$name\$" $pod
	wait_for_line "$work/pod.err" "^$name-err\$" $pod
	expect 0 husk logs --app=$name "$uuid"
	equal "$out/$err" "$name/$name-err" "log of app $name"
done
expect 0 husk app rm --grace=0 --app=one "$uuid"
expect 0 husk stop "$uuid"
wait $pod || die "the pod failed: $(cat "$work/pod.err")"
equal "$(sort "$work/pod.out" | tr '\n' ' ')" "one two " "all that was shown"

say "the last of a stream comes, though the pod ends with its app"
# More than the pipe in the guest holds: the app waits for the reader, and what it leaves in the pipe outlives it.
expect 0 husk run "${run_options[@]}" --detach "$busybox" --stdout=stream -- dd if=/dev/zero bs=1k count=600
uuid=$out
timeout "$vm_limit" "$husk_bin" "--dir=$data" attach "$uuid" >"$work/last" 2>"$work/err" </dev/null ||
	die "attach ended with $?: $(cat "$work/err")"
equal "$(stat -c %s "$work/last")" 614400 "bytes of the stream"
expect 0 husk status --wait "$uuid"

say "also to a reader that pauses, so that they wait in the buffers of a pod whose app has ended"
expect 0 husk run "${run_options[@]}" --detach "$busybox" --stdout=stream -- dd if=/dev/zero bs=1k count=600
uuid=$out
timeout "$vm_limit" "$husk_bin" "--dir=$data" attach "$uuid" 2>"$work/err" </dev/null | (sleep 2 && wc -c) >"$work/last"
equal "$(cat "$work/last")" 614400 "bytes of the stream"
expect 0 husk status --wait "$uuid"

say "but a reader that does not read at all does not keep the pod"
expect 0 husk run "${run_options[@]}" --detach "$busybox" --stdout=stream -- sh -c 'yes & exec sleep 1000'
uuid=$out
mkfifo "$work/unread"
exec 5<>"$work/unread"
timeout "$vm_limit" "$husk_bin" "--dir=$data" attach "$uuid" >"$work/unread" 2>"$work/err" </dev/null 5<&- &
attach=$!
head -c 65536 <&5 >/dev/null
expect 0 husk stop "$uuid"
expect 0 husk status --wait "$uuid"
exec 5<&- # what waits in the pipe has no reader any more
wait $attach || die "attach ended with $?: $(cat "$work/err")"
