#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What programs read: why an app ended, when, where its log is; and that all of it is in husk-json(7).
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq
image=$(busybox_image)
time_regex='^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{9}Z$'

# documented HEADING FILTER: the members that FILTER of the last output has are in the list below HEADING.
documented() {
	local member
	for member in $(jq -r "$2 | keys[]" "$work/out" | sort -u); do
		awk -v heading="# ${1^^}" '/^# / { inside = ($0 == heading) } inside' "$top/docs/man/husk-json.7.scd" |
			grep -q "^- [^(]*\*$member\*[^(]* (" || die "husk-json(7) does not have \"$member\" of ${1,,}"
	done
}

say "apps that end in several ways"
run_in_background --exit-policy=all-exited "$image" --name=good --user-label=a=b -- true --- \
	"$image" --name=bad -- sh -c 'exit 3' --- "$image" --name=killed --init -- sh -c "$wait_go; kill -9 \$\$" --- \
	"$image" --name=oom --memory=24Mi -- sh -c "$wait_go; exec dd if=/dev/zero of=/dev/null bs=64M"
wait_app_end "$uuid" bad
let_go "$uuid" killed oom
status=0
wait $pod || status=$?
equal "$status" 3 "status of the pod ($(cat "$work/pod.err"))"
expect 0 husk status --uuid-file="$work/uuid" --format=json
equal "$(jq -r '.apps[] | "\(.name) \(.exit_code) \(.signal) \(.reason)"' "$work/out")" \
	"good 0 null completed
bad 3 null failed
killed 9 9 signaled
oom 9 9 oom-killed" "how they ended"
husk events --replay "$(cat "$work/uuid")" >"$work/events"
equal "$(jq -r 'select(.event == "exited" and .type == "app") | "\(.app) \(.exit_code) \(.signal) \(.reason)"' "$work/events" |
	sort)" "$(jq -r '.apps[] | "\(.name) \(.exit_code) \(.signal) \(.reason)"' "$work/out" | sort)" "what events say of it"
equal "$(jq -r '.pid' "$work/out")" null "pid of a pod that has ended"
for member in .created_at .started_at '.apps[0].started_at' '.apps[0].finished_at'; do
	match "$(jq -r "$member" "$work/out")" "$time_regex" "$member"
done
documented "A pod" .
documented "An app" '.apps[]'
expect 0 husk status --uuid-file="$work/uuid"
match "$out" $'\nreason-killed=signaled \\(9\\)\nreason-oom=oom-killed' "reasons for people"

say "a program that is not there"
expect 203 husk run --uuid-file-save="$work/uuid" "$image" --exec=/no/program
expect 0 husk status --uuid-file="$work/uuid" --format=json
equal "$(jq -r '.apps[0].reason' "$work/out")" not-executed "reason"
match "$(jq -r '.apps[0].message' "$work/out")" '/no/program.*No such file' "message"
expect 0 husk status --uuid-file="$work/uuid"
match "$out" $'\nreason-busybox=not-executed: .*/no/program' "reason for people"
expect 0 husk logs "$(cat "$work/uuid")"
match "$err" '^logs: app "busybox": .*/no/program' "reason in the log"
expect 1 husk app status --app=none "$(cat "$work/uuid")"
expect 0 husk app status --app=busybox "$(cat "$work/uuid")"
match "$out" $'\nexit_code=203\nreason=not-executed: ' "status of the app"

say "a pod in the background"
expect 0 husk run --detach "$image" -- sh -c 'echo logged; exec sleep 1000'
uuid=$out
expect 0 husk status "$uuid" --format=json
documented "A pod" .
documented "An app" '.apps[]'
log=$(jq -r '.apps[0].log_path' "$work/out")
equal "$(readlink "/proc/$(jq .pid "$work/out")/cwd")" "$data/pods/run/$uuid" "the process of .pid"
until grep -q logged "$log"; do :; done
[ -e "$(jq -r .supervisor_log_path "$work/out")" ] || die "no log of the supervisor"
[ -e "$(jq -r .console_path "$work/out")" ] || die "no console"
expect 0 husk stop "$uuid"
expect 0 husk status --wait "$uuid"
expect 0 husk gc --mark-only
expect 0 husk list --format=json
log=$(jq -r ".[] | select(.name == \"$uuid\") | .apps[0].log_path" "$work/out")
match "$log" /exited-garbage/ "path after gc"
grep -q logged "$log" || die "the log is not where it is said to be"

say "versions"
expect 0 husk version --format=json
equal "$(jq -r '.version' "$work/out")" "$(husk version | sed -n 's/^husk Version: //p')" "version"
equal "$(jq -r '[.stage1_interface, .agent_protocol_min, .agent_protocol_max, .store_version | type] | unique[]' "$work/out")" number "numbers"
