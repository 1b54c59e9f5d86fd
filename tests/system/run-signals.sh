#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SIGTERM and SIGINT stop a pod in good order; the app sees SIGTERM and may clean up.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
image=$(busybox_image)

# Starts a pod in the background, its process ID in $pid, and waits until its app has said "ready".
start_app() { # SCRIPT
	: >"$work/out"
	"$husk_bin" "--dir=$data" run "${run_options[@]}" "$image" -- sh -c "$1" >"$work/out" 2>"$work/err" </dev/null &
	pid=$!
	wait_for_line "$work/out" ready
}

for signal in TERM INT; do
	say "SIG$signal"
	start_app 'trap "echo cleaned up; exit 0" TERM; echo ready; while :; do sleep 1; done'
	kill -$signal $pid
	status=0
	wait $pid || status=$?
	equal $status 0 "exit code after SIG$signal ($(cat "$work/err"))"
	equal "$(tail -n 1 "$work/out")" "cleaned up" "last words of the app"
done

say "an app that ignores SIGTERM is killed after the grace period"
start_app 'trap "" TERM; echo ready; while :; do sleep 1; done'
kill -TERM $pid
status=0
wait $pid || status=$?
equal $status 0 "exit code ($(cat "$work/err"))"

say "however often SIGTERM comes, the pod ends in good order"
start_app 'trap "sleep 1; echo cleaned up; exit 0" TERM; echo ready; while :; do sleep 1; done'
kill -TERM $pid
kill -TERM $pid
status=0
wait $pid || status=$?
equal $status 0 "exit code after two SIGTERM ($(cat "$work/err"))"
equal "$(tail -n 1 "$work/out")" "cleaned up" "last words of the app"

say "a second SIGINT kills the pod at once"
start_app 'trap "echo closing" TERM; echo ready; while :; do sleep 1; done'
kill -INT $pid
wait_for_line "$work/out" closing $pid
kill -INT $pid
status=0
wait $pid || status=$?
equal $status 254 "exit code after two SIGINT"
match "$(cat "$work/err")" "pod killed on request" "what was said"

say "told to end at any moment of its start, a pod says so in one line, or has run its app"
for delay in 0.02 0.04 0.08 0.15 0.3 0.5 0.6 0.7 0.8 0.9; do
	status=0
	timeout --preserve-status --signal=TERM $delay "$husk_bin" "--dir=$data" run "${run_options[@]}" --net=none "$image" -- sleep 1000 \
		>"$work/out" 2>"$work/err" </dev/null || status=$?
	case $status/$(cat "$work/err") in
	"254/stage1: pod killed on request" | "254/stage1: pod ended on request before its apps ran" | 0/) ;;
	143/) ;; # it had not begun
	*) die "after $delay s: exit code $status: $(cat "$work/err")" ;;
	esac
done
