#!/usr/bin/env bash
# SIGTERM and SIGINT stop a pod in good order; the app sees SIGTERM and may clean up.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
image=$(busybox_image)

wait_for_line() { # FILE TEXT
	local deadline=$((SECONDS + vm_limit))
	until grep -q "$2" "$1" 2>/dev/null; do
		[ $SECONDS -lt $deadline ] || die "\"$2\" did not appear"
		read -rt 0.05 <> <(:) || :
	done
}

for signal in TERM INT; do
	say "SIG$signal"
	"$husk_bin" "--dir=$data" run "$image" -- sh -c \
		'trap "echo cleaned up; exit 0" TERM; echo ready; while :; do sleep 1; done' \
		>"$work/out" 2>"$work/err" </dev/null &
	pid=$!
	wait_for_line "$work/out" ready
	kill -$signal $pid
	status=0
	wait $pid || status=$?
	equal $status 0 "exit code after SIG$signal ($(cat "$work/err"))"
	equal "$(tail -n 1 "$work/out")" "cleaned up" "last words of the app"
done

say "an app that ignores SIGTERM is killed after the grace period"
"$husk_bin" "--dir=$data" run "$image" -- sh -c 'trap "" TERM; echo ready; while :; do sleep 1; done' \
	>"$work/out" 2>"$work/err" </dev/null &
pid=$!
wait_for_line "$work/out" ready
kill -TERM $pid
status=0
wait $pid || status=$?
equal $status 0 "exit code ($(cat "$work/err"))"

say "a second signal kills the pod at once"
"$husk_bin" "--dir=$data" run "$image" -- sh -c 'trap "" TERM; echo ready; while :; do sleep 1; done' \
	>"$work/out" 2>"$work/err" </dev/null &
pid=$!
wait_for_line "$work/out" ready
kill -TERM $pid
kill -TERM $pid
status=0
wait $pid || status=$?
[ $status -eq 254 ] || [ $status -eq 0 ] || die "exit code $status"
