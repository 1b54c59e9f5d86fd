# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Pods on networks; sourced instead of lib.sh, which it sources; with the name of a function of lib.sh in $needs_image if it
# takes such an image. Such a test begins again in a network namespace and a mount
# namespace of its own, where namespaces have their names and the plugins their files: nobody else changes what it compares.
if [ -z "${HUSK_TEST_OWN_NET:-}" ]; then
	[ "$(id -u)" -eq 0 ] || { echo "SKIPPED: needs root" >&2 && exit 77; }
	# What is made of packages needs the host's network, so it is made before.
	# shellcheck source=tests/system/lib.sh
	[ -z "${needs_image:-}" ] || (. "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && $needs_image >/dev/null)
	HUSK_TEST_OWN_NET=1 exec unshare --net --mount --propagation private -- "$0" "$@"
fi
# shellcheck source=tests/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
require jq ip nft iptables-save busybox
plugins=/usr/lib/cni
for program in bandwidth bridge dhcp firewall host-device host-local ipvlan macvlan portmap ptp static tuning; do
	[ -x $plugins/$program ] || skip "the plugin $program of containernetworking-plugins is not in $plugins"
done
for dir in /run/netns /run/cni /var/lib/cni; do
	mkdir -p $dir
	mount -t tmpfs -o mode=0755 none $dir
done
ip link set lo up

etc=$work/etc # where networks are configured
mkdir -p "$etc/net.d"

# As husk of lib.sh, but with the networks of $etc.
net_husk() { # COMMAND WORDS...
	local command=$1
	shift
	[ "$command" != run ] || set -- "${run_options[@]}" "$@"
	timeout --kill-after=10 "$vm_limit" "$husk_bin" "--dir=$data" --system-config= "--local-config=$etc" "$command" "$@"
}

# network NAME: standard input is the configuration of that network, without "name" and "cniVersion", which are added.
network() {
	jq --arg name "$1" '{name: $name, cniVersion: "1.0.0"} + .' >"$etc/net.d/$1.conflist"
}

# by_hand NAME: the plugins of a network without husk, ADD and DEL. They may leave chains, a bridge and empty directories, which
# are there for good, so this comes ahead of snapshot. Status 1, and the reason in $why, if one does not work on this kernel.
by_hand() {
	local file=$etc/net.d/$1.conflist result=null status=0 links n i
	links=$(veths)
	n=$(jq '.plugins | length' "$file")
	ip netns add by-hand
	for ((i = 0; i < n; i++)); do
		result=$(plugin_by_hand ADD $i) || { why=$(jq -r .msg <<<"$result") && status=1 && break; }
	done
	for ((i = n; i-- > 0; )); do
		plugin_by_hand DEL $i >/dev/null || :
	done
	ip netns del by-hand
	# The kernel removes what is in a namespace some time later, and the other ends with it.
	until_true veths_are "$links"
	return $status
}

veths() { ip -o link show type veth | cut -d: -f1; }
veths_are() { [ "$(veths)" = "$1" ]; }

plugin_by_hand() { # COMMAND INDEX; $file and $result are those of by_hand
	local type
	type=$(jq -r ".plugins[$2].type" "$file")
	jq --argjson i "$2" --argjson result "$result" '{name, cniVersion} + .plugins[$i] +
		if $result then {prevResult: $result} else {} end +
		if .plugins[$i].capabilities.portMappings
		then {runtimeConfig: {portMappings: [{hostPort: 9, containerPort: 9, protocol: "tcp"}]}} else {} end' "$file" |
		CNI_COMMAND=$1 CNI_CONTAINERID=by-hand CNI_NETNS=/run/netns/by-hand CNI_IFNAME=eth0 CNI_PATH=$plugins "$plugins/$type"
}

# What a host has of networks, and pods must not leave anything of. Not compared: what depends on whether a bridge has
# ports, and how many packets there were.
snapshot() {
	echo "links" && ip -o link | awk '{ sub(/[@:].*/, "", $2); print $2 }' | sort
	echo "addresses" && ip -o addr show scope global | awk '{ print $2, $4 }' | sort
	echo "routes" && { ip route show table all type unicast && ip -6 route show table all type unicast; } | sed 's/ linkdown//' |
		grep -v 'fe80::\|ff00::' | sort
	echo "rules" && ip rule && ip -6 rule
	echo "nftables" && nft list ruleset 2>/dev/null | sed 's/counter packets [0-9]* bytes [0-9]*//'
	echo "iptables" && { iptables-save && ip6tables-save; } 2>/dev/null | sed '/^#/d; s/\[[0-9:]*\]//'
	echo "namespaces" && ip netns && ls /run/netns
	echo "files" && find /var/lib/cni /run/cni -type f | sort
	echo "mounts" && awk -v work="$work/" 'index($5, work) == 1 { print $5 }' /proc/self/mountinfo
}

# keep: what nothing_left compares with from now on.
keep() {
	snapshot >"$work/before"
}

nothing_left() { # WHAT
	snapshot >"$work/after"
	diff "$work/before" "$work/after" >"$work/difference" || die "left behind, $1: $(cat "$work/difference")"
}

# start_pod NAME WORDS of run...: a pod in the background; its UUID in $uuid, its first IPv4 address in $ip.
start_pod() {
	local name=$1
	shift
	expect 0 net_husk run --detach "--name=$name" "$@"
	uuid=$out
	ip=$(pod_address "$name" 4)
}

# pod_address POD 4|6 [INTERFACE]
pod_address() {
	husk status --format=json "$1" | jq -r --arg name "${3:-eth0}" --argjson v6 "$([ "$2" = 6 ] && echo true || echo false)" '
		first(.networks[] | select(.ifName == $name) | .ips[] | split("/")[0] | select(contains(":") == $v6))'
}

# stop_pods NAME...
stop_pods() {
	local name
	for name; do
		expect 0 husk stop "$name"
		husk status --wait "$name" >/dev/null
	done
}

