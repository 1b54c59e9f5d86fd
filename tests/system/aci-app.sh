#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What an appc image wants for its app: isolators, supplementary groups, event handlers; and what the command line says instead.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/aci_lib.sh
. "$top/tests/system/aci_lib.sh"
require jq busybox
cd "$work"

mkdir -p app.aci.d/rootfs/bin
cp "$(command -v busybox)" app.aci.d/rootfs/bin/busybox
for applet in awk cat echo false grep id sh test; do ln -s busybox "app.aci.d/rootfs/bin/$applet"; done
# image FILTER...: app.aci, whose app section the filters complete.
image() {
	aci app.aci example.com/app '.app = {exec: ["/bin/sh", "-c", "exit 99"], user: "0", group: "0"}'" $1" none
}
trusting() { husk --insecure-options=image "$@"; }

say "the image's wishes"
image '| .app += {supplementaryGIDs: [400, 500], isolators: [
	{name: "os/linux/capabilities-remove-set", value: {set: ["CAP_MKNOD"]}},
	{name: "os/linux/no-new-privileges", value: true},
	{name: "os/linux/seccomp-remove-set", value: {set: ["mkdir", "mkdirat"], errno: "EACCES"}},
	{name: "os/linux/oom-score-adj", value: 77},
	{name: "resource/cpu", value: {limit: "500m"}},
	{name: "resource/memory", value: {limit: "48Mi"}}]}'
# shellcheck disable=SC2016
show='awk "/^(CapBnd|NoNewPrivs):/ { print \$2 }" /proc/self/status; id -G; cat /proc/self/oom_score_adj
	! test -e /sys/fs/cgroup || cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max; busybox mkdir /x 2>&1 || :'
# limits BYTES: what an app that sees its control group reads there.
limits() { ! has_cgroup2 || printf '\n%s\n50000 100000' "$1"; }
expect 0 trusting run "$work/app.aci" --exec=/bin/sh -- -c "$show"
equal "$out" "00000000a00425fb
1
0 400 500
77$(limits 50331648)
mkdir: can't create directory '/x': Permission denied" "what the app has"

say "the command line wins"
expect 0 trusting run "$work/app.aci" --caps-retain=CAP_KILL --seccomp=mode=remove,errno=EPERM,chmod --supplementary-gids=7 \
	--memory=32Mi --oom-score-adj=5 --exec=/bin/sh -- -c "$show"
equal "$out" "0000000000000020
1
0 7
5$(limits 33554432)" "what the app has, then"

say "what is not supported is refused by its name"
image '| .app += {isolators: [{name: "resource/block-iops", value: {limit: "10"}}]}'
expect 254 trusting run "$work/app.aci"
one_line_error '^run: image ".*app\.aci": isolator "resource/block-iops" is not supported in this version$'
image '| .app += {eventHandlers: [{name: "post-start", exec: ["/bin/true"]}]}'
expect 254 trusting run "$work/app.aci"
one_line_error '^run: image ".*app\.aci": event handler "post-start" is not supported'

say "event handlers: as root, before and after"
image '| .app += {user: "12", group: "34", exec: ["/bin/sh", "-c", "echo app $(id -u) $(id -g) $(cat /made); exit 5"],
	eventHandlers: [{name: "post-stop", exec: ["/bin/sh", "-c", "echo after $(id -u) $(id -g) $(cat /made)"]},
		{name: "pre-start", exec: ["/bin/sh", "-c", "echo before $(id -u) $(id -g); echo made >/made"]}]}'
expect 5 trusting run "$work/app.aci"
equal "$out" "before 0 0
app 12 34 made
after 0 0 made" "output of the app and its handlers"
# shellcheck disable=SC2016
image '| .app += {eventHandlers: [{name: "pre-start", exec: ["/bin/false"]}]}'
expect 203 trusting run "$work/app.aci"
one_line_error '^stage1: app "app": Error: event handler "pre-start" ended with exit code 1$'
