#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pods by their names: everything that takes a UUID takes the name, events and listings tell it, and of
# two who want it at the same time one gets it.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq
image=$(busybox_image)

say "a pod that runs"
expect 0 husk run --detach --name=web --user-label=tier=front "$image" --name=app -- sh -c 'echo hello; exec sleep 1000'
uuid=$out
expect 0 husk list -q --running --name=web
equal "$out" "$uuid" "list by name"
expect 0 husk list -q --label=tier=front
equal "$out" "$uuid" "list by label"
expect 254 husk run --name=web "$image" -- true
one_line_error "^run: name \"web\" is that of pod \"$uuid\" \\("
for words in "run --name=web docker://127.0.0.1:1/none" "prepare --name=web docker://127.0.0.1:1/none" \
	"app sandbox --name=web"; do
	# shellcheck disable=SC2086 # a list of words
	expect 254 husk $words # heard of before an image is looked for that is not there
	match "$err" "name \"web\" is that of pod" "$words"
done
equal "$(find "$data/pods" -mindepth 2 -maxdepth 2 | wc -l)" 1 "pods after a name that was taken"
expect 0 husk enter web echo entered
match "$out" entered "enter by name"
expect 254 husk app add web "$image" --name=other
one_line_error "^add: error adding app to pod: immutable pod .make one with husk app sandbox."
expect 254 husk app stop --app=app web
one_line_error "^stop: error stopping app: immutable pod .make one with husk app sandbox."
until husk logs web </dev/null | grep -q hello; do :; done
expect 0 husk status web --format=json
equal "$(jq -r .pod_name "$work/out")" web "name in the JSON status"

say "its end"
expect 0 husk stop web
expect 0 husk status --wait web
match "$out" $'^state=exited\nname=web\n' "status by name"
expect 0 husk events --replay web
equal "$(jq -r 'select(.type == "pod") | .pod_name' "$work/out" | sort -u)" web "name in events"
expect 0 husk gc --mark-only
expect 0 husk status web
match "$out" $'^state=exited garbage\nname=web\n' "status of garbage by name"

say "others may have its name now, one of them"
for i in 1 2 3 4; do
	husk prepare --name=web "$image" -- true >"$work/won.$i" 2>"$work/lost.$i" </dev/null &
done
wait
equal "$(cat "$work"/won.* | wc -l)" 1 "pods that got the name"
equal "$(cat "$work"/lost.* | grep -c 'name "web" is that of pod')" 3 "pods that did not"
expect 0 husk list -q --name=web
equal "$(wc -l <"$work/out")" 2 "pods of the name"
expect 0 husk status web
match "$out" '^state=prepared' "who is not garbage has the name"
