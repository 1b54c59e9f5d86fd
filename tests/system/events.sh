#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# husk events: what pods do, in order, as it happens and afterwards.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq unshare

image=$(busybox_image)

# Events in the background, of all pods; its process in $watcher.
watch_events() {
	: >"$work/events"
	"$husk_bin" "--dir=$data" events >"$work/events" 2>"$work/events.err" &
	watcher=$!
	wait_for_line "$work/events" '"live"'
}

end_watcher() {
	local status=0
	kill -TERM $watcher
	wait $watcher || status=$?
	equal "$status" 0 "exit status after SIGTERM ($(cat "$work/events.err"))"
	equal "$(cat "$work/events.err")" "" "messages"
}

# Waits for a line about a pod that the watcher prints.
wait_for_event() { # UUID EVENT
	local deadline=$((SECONDS + vm_limit))
	until grep "\"$1\"" "$work/events" | grep -q "\"type\":\"pod\",\"event\":\"$2\""; do
		if [ $SECONDS -ge $deadline ] || ! kill -0 $watcher; then
			die "no event $2 of $1: $(cat "$work/events" "$work/events.err")"
		fi
		read -rt 0.05 <> <(:) || :
	done
}

# Lines of events on stdin as words: "started" of a pod, "web:started" of an app, "web:exited=7".
words() { # UUID
	jq -r --arg pod "$1" 'select(.pod == $pod) | (if .app then .app + ":" else "" end) + .event +
		(if has("exit_code") then "=\(.exit_code)" else "" end) + (if .oom_killed then "!" else "" end)' | tr '\n' ' '
}

say "a pod with two apps, one of which fails"
[ ! -e "$data" ] || die "there is a data directory"
watch_events
expect 0 husk run "${run_options[@]}" --detach "$image" --name=web -- sh -c "$wait_go; exit 7" --- \
	"$image" --name=db -- sleep 1000
uuid=$out
wait_for_event "$uuid" ready
let_go "$uuid" web
expect 0 husk events --replay "$uuid"
equal "$(words "$uuid" <<<"$out" | sed 's/\(web\|db\):started //g')" "created started ready web:exited=7 db:exited=0 exited " \
	"events of the one pod"
equal "$(jq -r 'select(.app == "web" and .event == "exited").reason' <<<"$out")" failed "why web ended"
wait_for_event "$uuid" exited
life=$(words "$uuid" <"$work/events")
without=${life//web:started /}
equal "${without//db:started /}" "created started ready web:exited=7 db:exited=0 exited " "events"
match "$life" '^created started (web:started db:started|db:started web:started) ready web:' "order of events"
equal "$(jq -r .time "$work/events" | sort -c 2>&1)" "" "order of times"
match "$(jq -r .time "$work/events" | tail -n 1)" '^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{9}Z$' "a time"

say "told again, it is the same"
"$husk_bin" "--dir=$data" events --replay "$uuid" >"$work/again"
equal "$(grep -v '"event":"exited","pod":"[^"]*"}' "$work/again")" \
	"$(grep -v -e live -e '"event":"exited","pod":"[^"]*"}' "$work/events")" "replay"
equal "$(words "$uuid" <"$work/again")" "$life" "replay"
expect 0 husk events "$uuid"
equal "$out" "" "news of a pod that has ended"
expect 0 husk rm "$uuid"
wait_for_event "$uuid" removed
equal "$(words "$uuid" <"$work/events")" "${life}marked removed " "events after rm"
expect 254 husk events "$uuid"
one_line_error '^events: problem retrieving pod: no matches found for '

say "a pod that is prepared, run, and killed; another that never runs"
uuid=$(husk prepare "$image" -- sleep 1000)
never=$(husk prepare "$image" -- true)
wait_for_event "$never" prepared
expect 0 husk rm "$never"
wait_for_event "$never" removed
equal "$(words "$never" <"$work/events")" "created prepared removed " "events of the pod that never ran"
expect 0 husk run-prepared "${run_options[@]}" --detach "$uuid"
"$husk_bin" "--dir=$data" events --replay "--uuid-file=$(printf %s "$uuid" >"$work/uuid"; echo "$work/uuid")" >"$work/one" &
one=$!
wait_for_line "$work/one" '"live"'
expect 0 husk stop --force "$uuid"
wait $one || die "events of one pod: exit status $?"
equal "$(words "$uuid" <"$work/one")" "created started busybox:started ready busybox:exited exited " "events of the killed pod"
wait_for_event "$uuid" exited
equal "$(words "$uuid" <"$work/events")" "created prepared started busybox:started ready busybox:exited exited " \
	"all events of the killed pod"
expect 0 husk gc --mark-only
wait_for_event "$uuid" marked
end_watcher

say "a reader that goes ends it; a reader that does not read does not keep it"
timeout --kill-after=10 "$vm_limit" "$husk_bin" "--dir=$data" events | head -n 1 >"$work/out" || die "exit status ${PIPESTATUS[*]}"
mkfifo "$work/fifo"
exec {fifo}<>"$work/fifo"
head -c 65536 /dev/zero >&"$fifo"
"$husk_bin" "--dir=$data" events --replay >"$work/fifo" 2>"$work/events.err" &
watcher=$!
until grep -qx husk "/proc/$watcher/comm" && grep -q '^SigBlk:.*[4-7]...$' "/proc/$watcher/status"; do # SIGTERM is waited for
	kill -0 $watcher || die "events ended: $(cat "$work/events.err")"
done
end_watcher
exec {fifo}>&-

say "errors"
expect 254 husk events a b
match "$err" '^Error: exactly one of UUID and --uuid-file is needed' "too many UUIDs"
expect 1 husk events "--uuid-file=$work/none"
one_line_error '^events: unable to resolve UUID from file'
if unshare --user --map-root-user true 2>/dev/null; then
	# shellcheck disable=SC2016 # for the inner shell
	expect 254 unshare --user --map-root-user sh -c 'echo 2 >/proc/sys/user/max_inotify_watches && exec "$@"' sh \
		"$husk_bin" "--dir=$data" events
	one_line_error 'cannot watch the data directory: .* are used up \(raise the sysctl fs.inotify.max_user_watches\)$'
else
	say "not tried: running out of watches (no user namespaces)"
fi
watch_events
rm -r "$data/pods"
status=0
wait $watcher || status=$?
equal "$status" 254 "exit status when the data directory goes"
match "$(cat "$work/events.err")" '^events: the directory pods/[a-z-]* of the data directory is gone$' "error"
