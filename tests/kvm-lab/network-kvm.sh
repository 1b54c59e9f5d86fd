#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A pod on a network as a host with KVM carries its packets: the host's kernel (vhost-net), and QEMU where there is none; and
# networks of plugins whose drivers not every kernel has. Runs in the KVM lab.
# shellcheck source=tests/system/network_lib.sh
. "$(dirname "$0")/../system/network_lib.sh"
require curl
image=$(busybox_image)
readonly QUEUES=3 # one for each processor
server='mkdir /www && head -c 4194304 /dev/zero | tr "\0" x >/www/index.html && exec httpd -f -p 80 -h /www'

network lab <<'END'
{"plugins": [{"type": "bridge", "bridge": "lab", "isGateway": true, "ipMasq": true, "ipam": {"type": "host-local",
  "ranges": [[{"subnet": "10.88.9.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}, {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
by_hand lab || die "$why"
keep

carriers() { # UUID: how often QEMU has vhost-net open
	readlink "/proc/$(vmm_process "$1")/fd/"* | grep -cx /dev/vhost-net || :
}

# serve EXPECTED: a web server in a pod, by its address and by a port of the host.
serve() {
	local url rate
	start_pod web --net=lab --port=80/tcp:8080 --cpus=$QUEUES "$image" -- sh -c "$server"
	equal "$(carriers "$uuid")" "$1" "descriptors of vhost-net"
	for url in "http://$ip" http://127.0.0.1:8080; do
		until_true curl --fail --silent --show-error --max-time "$vm_limit" --output "$work/page" "$url"
		equal "$(tr -d x <"$work/page" | wc -c), $(wc -c <"$work/page")" "0, 4194304" "$url"
	done
	rate=$(curl --silent --output /dev/null --write-out '%{speed_download}' "http://$ip")
	say "4 MiB out of the pod: $((${rate%.*} / 1000)) kB/s"
	stop_pods web
	expect 0 husk gc --grace-period=0
	nothing_left "$1 descriptors"
}

say "the host's kernel carries"
modprobe vhost_net
serve $QUEUES
say "QEMU carries"
rmmod vhost_net # not modprobe: tun would go with it
[ ! -e /dev/vhost-net ] || die "there still is /dev/vhost-net"
serve 0

ip link add parent type dummy
ip link set parent up
for type in macvlan ipvlan; do
	say "$type: two pods"
	network $type <<END
{"plugins": [{"type": "$type", "master": "parent", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.10.0/24"}]]}}]}
END
	by_hand $type || die "$why"
	keep
	start_pod web --net=$type "$image" -- sh -c "$server"
	until_true husk enter web wget -q -O /dev/null http://127.0.0.1
	expect 0 net_husk run --net=$type "$image" -- sh -c "wget -q -O- http://$ip | wc -c"
	equal "$out" 4194304 "what the other pod gets"
	stop_pods web
	expect 0 husk gc --grace-period=0
	nothing_left $type
done
