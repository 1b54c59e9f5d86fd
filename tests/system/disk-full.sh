#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The host's disk fills up while pods write: the app that writes gets an error, the others go on, everybody can see
# why, and all goes on when there is room.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq
unshare --mount true 2>/dev/null || skip "nobody may mount here"
own_namespaces --mount
image=$(busybox_image)
mkdir "$data"
mount -t tmpfs -o size=256M,mode=0700 tmpfs "$data"

fill() { # leaves 8 MiB
	local free
	free=$(df --output=avail -B1M "$data" | tail -n 1)
	head -c $(((free - 8) << 20)) /dev/zero >"$data/filler"
}

expect 0 husk fetch "$image"
"$husk_bin" "--dir=$data" events >"$work/events" 2>/dev/null &
events=$!
run_in_background "$image" --name=writer -- sh -c '
	echo ready; until [ -e /go ]; do sleep 0.2; done
	dd if=/dev/zero of=/big bs=1M count=64 conv=fsync 2>/dev/null; echo "first dd: $?"
	until dd if=/dev/zero of=/again bs=1M count=16 conv=fsync,notrunc 2>/dev/null; do sleep 1; done
	echo "room again"' \
	--- "$image" --name=clock -- sh -c 'while sleep 1; do echo tick; done'
wait_for_line "$work/pod.out" ready $pod
fill
expect 0 husk enter --app=writer "$uuid" touch /go

say "the app that writes gets an error, and nothing stands still"
wait_for_line "$work/pod.out" "first dd: 1" $pod
ticks=$(grep -c tick "$work/pod.out") || :
while [ "$(grep -c tick "$work/pod.out")" -lt $((ticks + 3)) ]; do
	kill -0 $pod || die "the pod ended: $(cat "$work/pod.err")"
	read -rt 0.2 <> <(:) || :
done

if is_vm; then
	say "status and events tell"
	expect 0 husk status "$uuid"
	match "$out" "disk=full" "status"
	expect 0 husk status --format=json "$uuid"
	equal "$(jq .disk_full <<<"$out")" true "disk_full in JSON"
	match "$(cat "$work/pod.err")" "stage1: the file system of the pod's directory is full" "what the supervisor says"
fi

say "with room all goes on"
rm "$data/filler"
wait_for_line "$work/pod.out" "room again" $pod
deadline=$((SECONDS + 30))
while "$husk_bin" "--dir=$data" status "$uuid" | grep -q disk=full; do
	[ $SECONDS -lt $deadline ] || die "it is called full for ever"
	read -rt 0.2 <> <(:) || :
done
kill -TERM $pod
wait $pod || die "the pod failed: $(cat "$work/pod.err")"
kill $events
wait $events || :
want="disk-full disk-room "
is_vm || want=
equal "$(jq -r 'select(.event | startswith("disk")) | .event' "$work/events" | tr '\n' ' ')" "$want" "events"

if ! is_vm; then # whose disk would be such a file
	say "so it is with a limit on files that the caller has: what cannot be logged is lost, and nothing else"
	expect 0 husk run "$image" -- true
	got=0
	(ulimit -f 64 && husk run "$image" --name=much -- sh -c 'yes | head -c 200000; echo end >&2; exit 7') >/dev/null 2>"$work/err" || got=$?
	equal "$got" 7 "exit status ($(cat "$work/err"))"
	grep -qx end "$work/err" || die "the app was not heard any more: $(cat "$work/err")"
	match "$(cat "$work/err")" 'app "much": [0-9]+ pieces of its output could not be logged' "what the supervisor says"
fi
