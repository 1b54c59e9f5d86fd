#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A pod that attacks its network: frames with addresses of others, routers and redirections that are none, and as much
# garbage as it can send. Its neighbours keep their addresses, and half of their throughput at least; the host its memory.
needs_image=services_image
# shellcheck source=tests/system/network_lib.sh
. "$(dirname "$0")/network_lib.sh"
require curl python3
image=$(services_image)
forge=$top/tests/support/forge.py

network lan <<'END'
{"plugins": [{"type": "bridge", "bridge": "lan", "isGateway": true, "ipam": {"type": "host-local",
  "ranges": [[{"subnet": "10.88.3.0/24"}], [{"subnet": "fd00:88:3::/64"}]],
  "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}}]}
END

# One processor: QEMU 7.2 as an emulator does not survive a kernel that patches itself while another one runs, as it does for
# the first packet socket.
start_pod victim --net=lan --cpus=1 "$image" -- sh -c '
	head -c 64M /dev/zero >/var/www/html/data; exec nginx -g "daemon off;"'
victim=$ip
start_pod attacker --net=lan --cpus=1 "$image" -- sleep 100000
attacker=$ip attacker6=$(pod_address attacker 6)
start_pod bystander --net=lan --cpus=1 "$image" -- sleep 100000
until_true curl --fail --silent --output /dev/null "http://$victim/data"
attack() { husk enter attacker python3 -c "$(cat "$forge")" "$@"; }

say "no frame leaves the pod that is not its own, whichever way it is sent"
addresses() {
	husk enter victim sh -c 'cut -c1-32 /proc/net/if_inet6; cut -d" " -f1-5 /proc/net/ipv6_route; cat /proc/net/route' |
		grep -v ^fe80 | sort -u
	ip neighbour get "$victim" dev lan | cut -d' ' -f1-5
}
addresses >"$work/addresses"
"$forge" watch lan 1000 >"$work/seen" 2>&1 &
watcher=$!
wait_for_line "$work/seen" watching
expect 0 attack send eth0 "$attacker" "$attacker6" "$victim" 10.88.3.1 fd00:88:3::1
for kind in ipv4 ipv6 arp; do
	wait_for_line "$work/seen" "honest-$kind"
done
read -rt 1 <> <(:) || : # what else was to come has come
kill "$watcher"
! grep forged "$work/seen" || die "the frames above left the pod"
addresses >"$work/addresses-now"
diff "$work/addresses" "$work/addresses-now" || die "the victim has other addresses than before"

# The best of ten times, while the attacker is at it. It takes the time of a processor in any case, so what is compared is
# what the network does.
seconds_for_data() { # COMMAND...
	local i pid
	husk enter attacker "$@" <"$work/frames" >"$work/sent" &
	pid=$!
	read -rt 2 <> <(:) || :
	for i in {1..10}; do
		curl --fail --silent --output /dev/null --write-out '%{time_total}\n' "http://$victim/data"
	done | sort -n | head -n 1
	wait $pid
}
memory() { # KiB that the kernel has for itself, and that is QEMU's
	local helpers=()
	! is_vm || helpers=("/proc/$(vmm_process victim)/smaps_rollup" "/proc/$(vmm_process attacker)/smaps_rollup")
	awk '/^(Slab|KernelStack|PageTables|Percpu|VmallocUsed|Pss):/ { n += $2 } END { print n }' /proc/meminfo "${helpers[@]}"
}
readonly SECONDS_OF_FLOOD=8
# flooded KIND ARGUMENT...: by frames that forge.py makes; three times, as others work on this machine, too.
flooded() {
	local try quiet loud
	attack "$1" eth0 "${@:2}" >"$work/frames"
	for try in 1 2 3; do
		quiet=$(seconds_for_data timeout --preserve-status $SECONDS_OF_FLOOD sh -c 'trap exit TERM; while :; do :; done')
		loud=$(seconds_for_data /tmp/floods-network eth0 $SECONDS_OF_FLOOD)
		say "64 MiB to the host beside a busy pod: $quiet s; beside $* ($(($(<"$work/sent") / SECONDS_OF_FLOOD)) frames/s): $loud s"
		! awk -v a="$quiet" -v b="$loud" 'BEGIN { exit !(b <= 2 * a) }' || return 0
	done
	die "more than twice as long"
}

say "garbage: neighbours are not slowed down, beyond what a busy processor does"
husk enter attacker sh -c 'cat >/tmp/floods-network && chmod +x /tmp/floods-network' <"$build/tests/floods-network"
before=$(memory)
nobody=02:00:00:00:00:01 all=ff:ff:ff:ff:ff:ff
flooded garbage $nobody
flooded garbage $all
flooded garbage "$(ip -j link show lan | jq -r ".[].address")"

# received MAX COMMAND...: nobody else gets so many frames in a second as long as the command takes.
received() {
	local start=$EPOCHREALTIME before n
	before=$(husk enter bystander cat /sys/class/net/eth0/statistics/rx_packets)
	"${@:2}"
	n=$(($(husk enter bystander cat /sys/class/net/eth0/statistics/rx_packets) - before))
	say "$n frames reached a pod that has no part in it"
	awk -v n=$n -v max="$1" -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { exit !(n <= max * (b - a)) }' || die "too many"
}

say "questions, which are honest: the few that pass hurt nobody"
received 7500 flooded question $all "$attacker" "$victim"
# A bridge shows to all what is for it does not know whom. In namespaces it is the kernel that drops it, and counts it before.
is_vm && limit=(received 100) || limit=()
"${limit[@]}" flooded question $nobody "$attacker" "$victim"
# A queue without an end would have kept gigabytes.
grown=$(($(memory) - before))
[ $grown -lt 262144 ] || die "the host has $grown KiB less than before"
stop_pods victim attacker bystander
