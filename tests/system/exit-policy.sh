#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which ends of apps end a pod, and with what status.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
busybox=$(busybox_image)

# Two apps: one fails at once, the other has something to say later, when the first has ended for certain.
two_apps() { # POLICY...
	husk run "$@" "$busybox" --name=fails -- sh -c 'exit 5' --- "$busybox" --name=lasts -- \
		sh -c 'for i in 1 2 3 4 5; do sleep 0.3; done; echo lasted'
}

say "any-failure, the default"
expect 5 two_apps "--uuid-file-save=$work/failed"
equal "$out" "" "output of an app that the failure of another ended"
expect 0 husk status "--uuid-file=$work/failed"
match "$out" app-fails=5 "the status of the app that failed"
match "$out" app-lasts=0 "the status of the app that was ended"
expect 5 two_apps --exit-policy=any-failure
equal "$out" "" "the same, said"

say "all-exited"
expect 5 two_apps --exit-policy=all-exited
equal "$out" lasted "output of an app that went on"

say "never"
run_in_background --exit-policy=never "$busybox" -- sh -c 'exit 5'
tries=0
until husk list --full --no-legend </dev/null | grep -q "$uuid.*running" && [ -s "$data/pods/run/$uuid/status/busybox" ]; do
	[ $((++tries)) -lt 500 ] || die "the app does not end"
	read -rt 0.02 <> <(:) || :
done
expect 0 husk stop "$uuid"
wait $pod || die "a pod that never fails ended with status $?"

say "a status that cannot be recorded is told"
run_in_background "$busybox" -- sh -c 'echo ready; until [ -e /go ]; do sleep 0.1; done; exit 7'
wait_for_line "$work/pod.out" ready $pod
expect 0 husk status --wait-ready "$uuid"
mv "$data/pods/run/$uuid/status" "$work/status"
expect 0 husk enter "$uuid" touch /go
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
