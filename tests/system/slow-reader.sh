#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A reader that stands still holds up who writes to it, and nobody else: the other apps, and those who ask the
# supervisor for something, make progress.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
busybox=$(busybox_image)
mkfifo "$work/pipe"
exec 8<>"$work/pipe" # nobody reads, and nobody waits for a reader
pod=
# A supervisor that the pipe blocks after all takes no other signal.
finish_slow() {
	local code=$?
	set +e
	[ $code -eq 0 ] || kill -KILL "$pod"
	(exit $code)
	finish
}
trap finish_slow EXIT

"$husk_bin" "--dir=$data" app sandbox "${run_options[@]}" "--uuid-file-save=$work/uuid" >&8 2>"$work/pod.err" </dev/null 8>&- &
pod=$!
wait_for_uuid "$work/uuid"
expect 0 husk status --wait-ready "$uuid"

ticks() {
	grep -c '^tick' "$work/pod.err" || :
}

# The clock goes on so many times from here.
wait_ticks() { # N
	local want=$(($(ticks) + $1)) deadline=$((SECONDS + vm_limit))
	while [ "$(ticks)" -lt $want ]; do
		kill -0 $pod 2>/dev/null || die "the pod ended: $(cat "$work/pod.err")"
		[ $SECONDS -lt $deadline ] || die "the clock stands still at $(ticks): the supervisor waits for the reader"
		read -rt 0.05 <> <(:) || :
	done
}

# How much of what the app writes has come to the host: all of it is logged.
came_of() { # APP
	find "$data/pods/run/$uuid/logs" \( -name "$1" -o -name "$1.old" \) -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'
}

expect 0 husk app add "$uuid" "$busybox" --name=clock -- sh -c 'while :; do echo tick >&2; sleep 0.1; done'
expect 0 husk app start --app=clock "$uuid"
expect 0 husk app add "$uuid" "$busybox" --name=flood -- sh -c 'cat /dev/zero | tr "\0" x | fold -w 1000'
expect 0 husk app start --app=flood "$uuid"

say "the one who writes to the reader stands still"
before=-1
until [ "$(came_of flood)" -gt 0 ] && [ "$(came_of flood)" -eq "$before" ]; do
	before=$(came_of flood)
	wait_ticks 10
done

say "the others go on, and who asks is answered"
wait_ticks 20
expect 0 husk app status --app=clock "$uuid"
match "$out" "state=running" "status of the clock"
expect 0 husk app exec --app=flood "$uuid" echo there
equal "$out" there "a command in the app that stands still"
expect 0 husk app stats --app=flood "$uuid"
expect 0 husk app add "$uuid" "$busybox" --name=third -- sh -c 'echo third >&2; exec sleep 1000'
expect 0 husk app start --app=third "$uuid"
wait_for_line "$work/pod.err" '^third$' $pod
expect 0 husk app stop --app=third "$uuid"
expect 0 husk app rm --app=third "$uuid"
wait_ticks 20
equal "$(came_of flood)" "$before" "what came of the app that stands still, meanwhile"

say "a slow reader of a pipe that another process fills as well"
yes >&8 2>/dev/null &
filler=$!
while :; do
	head -c 4096 >/dev/null
	read -rt 0.01 <> <(:) || :
done <&8 &
reader=$!
wait_ticks 40
kill $filler
wait $filler 2>/dev/null || :
deadline=$((SECONDS + vm_limit))
until [ "$(came_of flood)" -gt "$before" ]; do
	[ $SECONDS -lt $deadline ] || die "the app that stood still does not go on"
	read -rt 0.1 <> <(:) || :
done
kill $reader
wait $reader 2>/dev/null || :

say "the app that stands still can be stopped and removed, and the pod with it"
expect 0 husk app stop --app=flood --grace=1 "$uuid"
expect 0 husk app status --app=flood "$uuid"
match "$out" "state=exited" "status after the stop"
wait_ticks 5
expect 0 husk app rm --app=flood "$uuid"
expect 0 husk app add "$uuid" "$busybox" --name=flood -- cat /dev/zero
expect 0 husk app start --app=flood "$uuid"
wait_ticks 5
expect 0 husk stop "$uuid"
wait $pod || die "the pod failed: $(grep -v ^tick "$work/pod.err")"
exec 8>&-
