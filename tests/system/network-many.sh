#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Many pods on one network at a time, a network that is full, and processes of a pod that are killed at each moment: whatever
# happens, husk gc leaves a host as it was.
# shellcheck source=tests/system/network_lib.sh
. "$(dirname "$0")/network_lib.sh"
image=$(busybox_image)

network tmany <<'END'
{"plugins": [{"type": "bridge", "bridge": "tmany", "isGateway": true, "ipMasq": true, "ipam": {"type": "host-local",
  "subnet": "10.82.0.0/24"}}, {"type": "portmap", "capabilities": {"portMappings": true}}, {"type": "firewall"}]}
END
by_hand tmany || die "the network does not work here: $why"
keep

collect() {
	wait_no_processes || die "processes are left: $(pod_processes)"
	expect 0 net_husk gc --grace-period=0s --expire-prepared=0s
	equal "$(sed '/^gc: moving pod ".*" to garbage$/d' <<<"$err")" "" "other messages of gc"
	equal "$(find "$data/pods" -mindepth 2)" "" "what is left of pods"
}

say "many at once"
many=50
[ -z "${HUSK_TEST_OWN_MACHINE:-}" ] || many=4 # whose memory is that of one of the host's
for ((i = 0; i < many; i++)); do
	net_husk run --detach --net=tmany "$image" -- sleep 100000 >"$work/many.$i" 2>&1 </dev/null &
	starting[i]=$!
done
for ((i = 0; i < many; i++)); do
	wait "${starting[i]}" || die "pod $i: $(cat "$work/many.$i")"
done
expect 0 net_husk list --format=json
jq -r '.[] | select(.state == "running") | .networks[].ip' <<<"$out" | sort >"$work/addresses"
equal "$(wc -l <"$work/addresses") $(uniq "$work/addresses" | wc -l)" "$many $many" "addresses, and different ones"
while read -r address; do
	busybox ping -c 1 -W 5 "$address" >/dev/null || die "$address cannot be reached"
done <"$work/addresses"
cat "$work"/many.* >"$work/uuids"
expect 0 net_husk enter "$(head -n 1 "$work/uuids")" ping -c 1 -W 5 "$(tail -n 1 "$work/addresses")"
xargs -n 10 "$husk_bin" "--dir=$data" stop --force <"$work/uuids" >"$work/out" 2>&1 || die "stop: $(cat "$work/out")"
collect
nothing_left "$many pods"

say "a network that is full"
network tfew <<'END'
{"plugins": [{"type": "bridge", "bridge": "tfew", "isGateway": true, "ipam": {"type": "host-local", "ranges": [[{
  "subnet": "10.82.1.0/24", "rangeStart": "10.82.1.10", "rangeEnd": "10.82.1.11"}]]}}]}
END
by_hand tfew || die "$why"
keep
few=()
for i in 0 1; do
	expect 0 net_husk run --detach --net=tfew "$image" -- sleep 100000
	few+=("$out")
done
expect 254 net_husk run --net=tfew "$image" -- echo ran
one_line_error 'failed to setup network: network "tfew": plugin "bridge": .*no IP addresses available in range set: 10\.82\.1\.10-10\.82\.1\.11$'
equal "$out" "" "output of the third"
for i in 0 1; do
	expect 0 net_husk enter "${few[i]}" ping -c 1 -W 5 10.82.1.1
	busybox ping -c 1 -W 5 10.82.1.1$i >/dev/null || die "pod $i cannot be reached"
done
expect 0 net_husk stop --force "${few[0]}"
expect 0 net_husk run --net=tfew "$image" -- echo ran
equal "$out" ran "a pod in the place of one that ended"
expect 0 net_husk stop --force "${few[1]}"
collect
nothing_left "network that was full"

# ---- killed ----

# process NAME: of the pod $uuid; "run" is the supervisor.
process() {
	local pid
	for pid in $(pod_processes); do
		case $1:$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) in
		run:*/bin/run\ *"$uuid"* | husk-net:husk-net\ *"$uuid"*) echo "$pid" && return ;;
		esac
	done
	return 1
}

# up: a pod of all that a network can have, in the background.
up() {
	run_in_background --system-config= "--local-config=$etc" --net=tmany --port=80/tcp:8083 "$image" -- sleep 100000
	expect 0 net_husk status --wait-ready="${vm_limit}s" "$uuid"
}

# gone: it has ended, and what it left is collected.
gone() {
	wait "$pod" 2>/dev/null || :
	collect
	nothing_left "$1"
}

# None of them sees that another has ended.
kill_at_once() { # PROCESS...
	kill -STOP "$@"
	kill -KILL "$@"
}

kill_pod() {
	local all
	mapfile -t all < <(pod_processes)
	kill_at_once "${all[@]}"
}

say "killed while it runs: supervisor, husk-net, both, everything"
up
kill -KILL "$(process run)"
gone "supervisor killed"
up
helper=$(process husk-net)
equal "$(sed -n 's/^Max core file size *[^ ]* *\([^ ]*\).*/\1/p' "/proc/$helper/limits")" 0 "bytes of a core file of husk-net"
equal "$(wc -c <"/proc/$helper/environ")" 0 "bytes of its environment"
# HUP, INT, QUIT, TERM: what service managers and terminals send to everybody.
equal "$((0x$(awk '/^SigBlk/ { print $2 }' "/proc/$helper/status") & 0x4007))" $((0x4007)) "signals that it never gets"
kill -KILL "$helper"
expect 254 wait "$pod"
match "$(head -n 1 "$work/pod.err")" '^stage1: what connects the pod ended unexpectedly: husk-net: killed by signal 9$' "error text"
gone "husk-net killed"
up
kill_at_once "$(process husk-net)" "$(process run)"
gone "husk-net and supervisor killed"
up
kill_pod
gone "all processes killed"

# reboot: of what the pod $uuid has, only files outlive one: its directory and leases, which it must have. One plain gc frees
# them, and keeps the pod for the rest of its grace period.
reboot() { # WHAT
	local lease
	kill_pod
	wait "$pod" 2>/dev/null || :
	wait_no_processes || die "processes are left"
	umount "/run/netns/husk-$uuid"
	rm "/run/netns/husk-$uuid"
	for link in $(ip -j link show type veth | jq -r '.[].ifname'); do
		ip link del "$link" 2>/dev/null || : # the kernel itself takes them away with the namespace
	done
	iptables-restore <"$work/rules"
	ip6tables-restore <"$work/rules6"
	lease=$(grep -rl "$uuid" /var/lib/cni/networks/tmany) || die "the lease went by itself"
	keep # restored rules are in another order
	sed -i "\\,^$lease\$,d" "$work/before"
	expect 0 net_husk gc
	match "$err" "^gc: moving pod \"$uuid\" to garbage
gc: pod \"$uuid\" not removed: still within grace period \(30m0s\)$" "what gc says"
	nothing_left "$1, after a plain gc"
	[ -d "$data/pods/exited-garbage/$uuid" ] || die "gc has not kept the pod"
	gone "$1"
}
iptables-save >"$work/rules"
ip6tables-save >"$work/rules6"

say "as after a reboot: neither namespace nor interfaces nor rules, but leases"
up
reboot "pod of before a reboot"

# Plugins that take their time.
etc=$work/slow
mkdir -p "$etc/net.d" "$etc/paths.d" "$work/plugins"
jq -n --arg dir "$work/plugins" '{rktVersion: "v1", rktKind: "paths", "cni-plugins": [$dir, "/usr/lib/cni"]}' >"$etc/paths.d/cni.json"
cp "$work"/etc/net.d/tmany.conflist "$etc/net.d"

# slow PLUGIN COMMAND WHEN: a plugin that waits for plugin_goes_on with that command, before or after the real one does it; not for ever.
slow() {
	rm -f "$work"/plugins/*
	cat >"$work/plugins/$1" <<END
#!/bin/bash
[ "\$CNI_COMMAND" = $2 ] || exec $plugins/$1
[ $3 = before ] || $plugins/$1
echo \$\$ >"$work/begun"
n=0
until [ -e "$work/go" ] || [ \$((n += 1)) -gt 1000 ]; do read -rt 0.1 <> <(:) || :; done
[ $3 = after ] || exec $plugins/$1
END
	chmod 755 "$work/plugins/$1"
}

plugin_goes_on() { : >"$work/go"; }

# starting: a pod whose slow plugin has begun.
starting() {
	rm -f "$work/begun" "$work/go"
	run_in_background --system-config= "--local-config=$etc" --net=tmany --port=80/tcp:8083 "$image" -- sleep 100000
	wait_for_line "$work/begun" . "$pod"
}

say "as after a reboot while it is set up"
for plugin in bridge portmap; do
	slow $plugin ADD after
	starting
	reboot "pod of before a reboot, in whose setup $plugin was"
done

say "killed while a slow plugin runs, which goes to its end in its own time"
for plugin in bridge portmap; do
	for when in before after; do
		slow $plugin ADD $when
		starting
		kill -KILL "$(process run)"
		plugin_goes_on
		gone "supervisor killed while $plugin is slow $when its work"
		starting
		kill -KILL "$(process husk-net)"
		plugin_goes_on
		wait "$pod" && die "a pod without husk-net"
		match "$(head -n 1 "$work/pod.err")" 'failed to setup network: husk-net: killed by signal 9$' "error text"
		gone "husk-net killed while $plugin is slow $when its work"
		starting
		kill_at_once "$(process husk-net)" "$(process run)"
		plugin_goes_on
		gone "both killed while $plugin is slow $when its work"
		starting
		kill_pod
		gone "all killed while $plugin is slow $when its work"
	done
done

say "husk itself, which waits for a pod in the background, is killed meanwhile"
slow bridge ADD after
rm -f "$work/begun" "$work/go"
run_in_background --system-config= "--local-config=$etc" --detach --net=tmany "$image" -- sleep 100000
wait_for_line "$work/begun" . "$pod"
kill -KILL "$pod"
plugin_goes_on
gone "husk killed"

say "killed while plugins undo what they did"
for victim in husk-net run; do
	slow portmap DEL before
	rm -f "$work/begun" "$work/go"
	run_in_background --system-config= "--local-config=$etc" --net=tmany --port=80/tcp:8083 "$image" -- true
	wait_for_line "$work/begun" . "$pod"
	kill -KILL "$(process $victim)"
	plugin_goes_on
	gone "$victim killed at the end"
done
