#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where the streams of apps go: log, null, and whoever attaches.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq script
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
echo one | husk attach --mode=stdin "$uuid"
timeout "$vm_limit" "$husk_bin" "--dir=$data" attach --mode=stdout "$uuid" >"$work/first" 2>"$work/err" </dev/null &
reader=$!
wait_for_line "$work/first" "got one"
expect 254 husk attach --mode=stdout "$uuid"
one_line_error "attach: app \"echo\": stdout is attached by somebody else"
kill -TERM $reader
wait $reader || die "attach ended with $?: $(cat "$work/err")"
printf 'two\nquit\n' | husk attach --mode=stdin "$uuid"
expect 0 husk attach --mode=stdout "$uuid"
equal "$out" "$(printf 'got two\ngot quit')" "what waited"
expect 254 husk attach "$uuid"
match "$err" "attach: app \"echo\": std(in|out) has ended" "an app that has ended"
expect 0 husk app status --app=echo "$uuid"
match "$out" "exit_code=5" "the app was not ended by those who left"
expect 0 husk logs --app=echo "$uuid"
equal "$err" "$(printf 'log one\nlog two\nlog quit')" "its standard error is in the log"
expect 254 husk attach --mode=stderr --app=echo "$uuid"
one_line_error "attach: app \"echo\" has no stderr to attach to"
expect 254 husk attach --mode=tty,stdin "$uuid"
one_line_error "attach: --mode: a terminal and streams exclude each other"
expect 254 husk attach --mode=stdnone "$uuid"
one_line_error "attach: unknown endpoint \"stdnone\""
expect 0 husk app rm --app=echo "$uuid"

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
	local line seen='' pid
	coproc session { script -qefc "stty rows 33 cols 44; exec $husk_bin --dir=$data attach $uuid" /dev/null; }
	# shellcheck disable=SC2154 # by coproc
	pid=$session_PID # the variable goes with the process
	echo "$1" >&"${session[1]}"
	while [ -z "$seen" ] && read -rt 30 line <&"${session[0]}"; do
		[ "$(tr -d '\r' <<<"$line")" != "$2" ] || seen=1
	done
	pkill -TERM -f "attach.*--app=shell" || :
	wait "$pid" 2>/dev/null || :
	[ -n "$seen" ] || die "the terminal did not say \"$2\""
}
# shellcheck disable=SC2016 # for the shell in there
attached 'x=kept; until stty size | grep -q "33 44"; do sleep 0.1; done; echo $((40 + 2))' 42
# shellcheck disable=SC2016
attached 'echo "<$x>"' '<kept>' # the same shell goes on
expect 0 husk app exec --app=shell "$uuid" true

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

say "the last of a stream comes, though the pod ends with its app"
# More than the pipe in the guest holds: the app waits for the reader, and what it leaves in the pipe outlives it.
expect 0 husk run "${run_options[@]}" --detach "$busybox" --stdout=stream -- dd if=/dev/zero bs=1k count=600
uuid=$out
timeout "$vm_limit" "$husk_bin" "--dir=$data" attach "$uuid" >"$work/last" 2>"$work/err" </dev/null ||
	die "attach ended with $?: $(cat "$work/err")"
equal "$(stat -c %s "$work/last")" 614400 "bytes of the stream"
expect 0 husk status --wait "$uuid"
