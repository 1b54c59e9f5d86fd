#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which ends of apps end a pod, and with what status.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
busybox=$(busybox_image)

# Two apps: one fails when it sees the other, which has something to say when it is let go, and fails otherwise.
two_apps=("$busybox" --name=fails -- sh -c 'until [ -e /dev/shm/up ]; do sleep 0.01; done; exit 5' ---
	"$busybox" --name=lasts -- sh -c "touch /dev/shm/up; $wait_go; echo lasted; exit 6")

say "any-failure, the default"
expect 5 husk run "--uuid-file-save=$work/failed" "${two_apps[@]}"
equal "$out" "" "output of an app that the failure of another ended"
expect 0 husk status "--uuid-file=$work/failed"
match "$out" app-fails=5 "the status of the app that failed"
match "$out" app-lasts=0 "the status of the app that was ended"
expect 5 husk run --exit-policy=any-failure "${two_apps[@]}"
equal "$out" "" "the same, said"

say "one that fails while others are being added: they are given up, and its status is the pod's"
rounds=20
! is_vm || rounds=2
others=()
for i in {1..7}; do others+=(--- "$busybox" --name="late$i" -- sleep 1000); done
for ((i = 0; i < rounds; i++)); do
	expect 5 husk run "$busybox" --name=fails -- sh -c 'exit 5' "${others[@]}"
	equal "$err" "" "what is said about it"
done

say "all-exited"
run_in_background --exit-policy=all-exited "${two_apps[@]}"
wait_app_end "$uuid" fails
let_go "$uuid" lasts
status=0
wait $pod || status=$?
equal "$status" 5 "status of the pod: that of the first app that failed"
equal "$(cat "$work/pod.out")" lasted "output of an app that went on"

say "never"
run_in_background --exit-policy=never "$busybox" -- sh -c 'exit 5'
wait_app_end "$uuid" busybox
expect 0 husk list --full --no-legend
match "$out" "$uuid.*running" "a pod whose app has failed"
expect 0 husk stop "$uuid"
wait $pod || die "a pod that never fails ended with status $?"

say "a status that cannot be recorded is told"
run_in_background "$busybox" -- sh -c 'echo ready; until [ -e /go ]; do sleep 0.1; done; exit 7'
wait_for_line "$work/pod.out" ready $pod
expect 0 husk status --wait-ready "$uuid"
mv "$data/pods/run/$uuid/status" "$work/status"
let_go "$uuid" busybox
status=0
wait $pod || status=$?
equal "$status" 7 "status of the pod ($(cat "$work/pod.err"))"
equal "$(cat "$work/pod.err")" \
	'stage1: pod directory: cannot record all of the end of app "busybox", whose status is 7: No such file or directory' "what is told"
mv "$work/status" "$data/pods/run/$uuid/status"

say "a mutable pod may end with its apps, too"
expect 0 husk app sandbox --detach --exit-policy=any-failure "${run_options[@]}"
uuid=$out
expect 0 husk app add "$uuid" "$busybox" --name=stopped -- sleep 1000
expect 0 husk app start --app=stopped "$uuid"
expect 0 husk app add "$uuid" "$busybox" --name=fails -- sh -c 'exit 6'
expect 0 husk app stop --app=stopped "$uuid" # is not a failure, and not the last: one was never started
expect 0 husk status "$uuid"
match "$out" "state=running" "after a stop on request"
expect 0 husk app start --app=fails "$uuid"
expect 0 husk status --wait "$uuid"
match "$out" "app-fails=6" "after a failure"

say "a word that is none"
expect 254 husk run --exit-policy=sometimes "$busybox"
match "$err" "--exit-policy: \"sometimes\" is not any-failure, all-exited or never" "a bad policy"
