#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A pod on a network as a host with KVM carries its packets: the host's kernel (vhost-net), and QEMU where there is none. Runs
# in the KVM lab.
# shellcheck source=tests/system/network_lib.sh
. "$(dirname "$0")/../system/network_lib.sh"
require curl
image=$(busybox_image)
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
	local url
	start_pod web --net=lab --port=80/tcp:8080 "$image" -- sh -c '
		mkdir /www && head -c 4194304 /dev/zero | tr "\0" x >/www/index.html && exec httpd -f -p 80 -h /www'
	equal "$(carriers "$uuid")" "$1" "descriptors of vhost-net"
	for url in "http://$ip" http://127.0.0.1:8080; do
		until_true curl --fail --silent --show-error --max-time "$vm_limit" --output "$work/page" "$url"
		equal "$(tr -d x <"$work/page" | wc -c), $(wc -c <"$work/page")" "0, 4194304" "$url"
	done
	stop_pods web
	expect 0 husk gc --grace-period=0
	nothing_left "$1 descriptors"
}

say "the host's kernel carries"
modprobe vhost_net
serve 1
say "QEMU carries"
rmmod vhost_net # not modprobe: tun would go with it
[ ! -e /dev/vhost-net ] || die "there still is /dev/vhost-net"
serve 0
