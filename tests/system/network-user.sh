#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pods of users who are not root are on a network by passt: the world, the host's resolver and ports of the host, and not what
# listens for the host alone. The host is a network namespace with one link to a "world", a second one.
needs_image=services_image
# shellcheck source=tests/system/network_lib.sh
. "$(dirname "$0")/network_lib.sh"
require curl python3 passt pasta setpriv
image=$work/image home=$work/home
chmod 755 "$work"
cp -r "$(services_image)" "$image"
chmod -R a+rX "$image"
mkdir "$home"
chown 65534:65534 "$home"

# What pods of namespaces need of the host: subordinate ids and two devices that everybody may open.
printf 'nobody:300000:65536\n' >"$work/subids"
touch /etc/subuid /etc/subgid
mount --bind "$work/subids" /etc/subuid
mount --bind "$work/subids" /etc/subgid
mknod -m 666 "$work/fuse" c 10 229
mount --bind "$work/fuse" /dev/fuse
mknod -m 666 "$work/tun" c 10 200
[ ! -e /dev/net/tun ] || mount --bind "$work/tun" /dev/net/tun

as_user() { # COMMAND...
	HOME=$home setpriv --reuid=65534 --regid=65534 --clear-groups --pdeathsig=keep "$@"
}
user_husk() { # COMMAND WORDS...; without network options of this host
	local command=$1 stage1_options=()
	shift
	is_vm || stage1_options=("--stage1=$stage1")
	[ "$command" != run ] || set -- --insecure-options=image "${run_options[@]}" "$@"
	as_user timeout --kill-after=10 "$vm_limit" "$build/bin/husk" "--dir=$home/data" --system-config= "--local-config=$etc" \
		"${stage1_options[@]}" "$command" "$@"
}
net_husk() { user_husk "$@"; } # what start_pod and its like call
husk() { user_husk "$@"; }
data=$home/data

# The world serves the web and names; the host has servers for itself, too.
ip netns add world
ip link add uplink type veth peer name world netns world
world() { ip netns exec world "$@"; }
ip address add 192.0.2.10/24 dev uplink
ip -6 address add 2001:db8::10/64 dev uplink nodad
ip link set uplink up
world ip address add 192.0.2.1/24 dev world
world ip -6 address add 2001:db8::1/64 dev world nodad
world ip link set world up
world ip link set lo up
mkdir "$work/www"
echo "for the world" >"$work/www/index"
serve() { # ADDRESS: its log is $work/http.ADDRESS
	python3 -u -m http.server --bind "$1" --directory "$work/www" 8000 >"$work/http.$1" 2>&1 &
	wait_for_line "$work/http.$1" 'port 8000'
}
echo "nameserver 127.0.0.1" >"$work/resolv.conf" # as with a resolver on each host, which pods must reach all the same
mount --bind "$work/resolv.conf" "$(readlink -f /etc/resolv.conf)"
dnsmasq --keep-in-foreground --conf-file=/dev/null --user=root --no-resolv --no-hosts --bind-interfaces \
	--listen-address=127.0.0.1 --address=/www.example/192.0.2.1 --pid-file="$work/dnsmasq.pid" >"$work/dnsmasq" 2>&1 &
until_true grep -q . "$work/dnsmasq.pid"
keep

no_passt() { # nothing of it is there
	! pgrep -U 65534 -l 'pas|husk-net' >"$work/left" || die "$1: left: $(cat "$work/left")"
	nothing_left "$1"
}

say "a host that is not online: no network, and no word of it; asked for, it is an error"
expect 0 user_husk run "$image" -- sh -c 'ls /sys/class/net'
equal "$out $err" "lo " "interfaces"
expect 254 user_husk run --net=default "$image" -- true
one_line_error 'stage1: failed to setup network: this host has no default route'
ip route add default via 192.0.2.1
ip -6 route add default via 2001:db8::1
keep

say "the world by name, IPv4 and IPv6; not the host's own"
ip netns exec world python3 -u -m http.server --bind :: --directory "$work/www" 8000 >"$work/world" 2>&1 &
wait_for_line "$work/world" 'port 8000'
serve 127.0.0.1
expect 0 user_husk run "$image" -- sh -c '
	ip -o addr 2>/dev/null; cat /etc/resolv.conf
	for host in www.example 192.0.2.1 "[2001:db8::1]"; do
		curl --silent --show-error --fail --max-time 20 "http://$host:8000/index" || echo "$host: $?"
	done
	for host in 10.0.2.2 10.0.2.3 10.0.2.15 127.0.0.1 "[fd68:7573:6b::3]" "[fe80::2%25eth0]"; do
		! curl --silent --fail --max-time 2 "http://$host:8000/index" || echo "reached $host"
	done'
equal "$(grep -c '^for the world' "$work/out")" 3 "pages that came: $out $err"
! grep -q reached "$work/out" || die "the host's own: $out"
no_passt "pods that have ended"

# Datagrams from the host's loopback address are answered to the gateway, which --no-map-gw does not let back in.
say "ports of the host, IPv4, IPv6, TCP and UDP; the addresses in the list"
start_pod web --port=80-tcp:8080 --port=81/tcp:192.0.2.10:8081 --port=7/udp:7007 "$image" -- sh -c '
	sed s/80/81/g /etc/nginx/sites-enabled/default >/etc/nginx/sites-enabled/second
	sed -i s/default_server// /etc/nginx/sites-enabled/second
	nginx; python3 -c "
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind((\"::\", 7))
while True:
	s.sendto(*s.recvfrom(2048))"'
if is_vm; then
	qemu=$(vmm_process web)
	equal "$(nsenter -t "$qemu" -n ip -o link | cut -d: -f2)" " lo" "interfaces that QEMU can see"
fi
equal "$ip $(pod_address web 6)" "10.0.2.15 fd68:7573:6b::15" "addresses"
match "$(user_husk list --no-legend)" "default:ip4=$ip" "the address in the list"
for url in http://127.0.0.1:8080 http://192.0.2.10:8080 'http://[2001:db8::10]:8080' 'http://[::1]:8080' http://192.0.2.10:8081; do
	until_true curl --fail --silent --show-error --max-time 5 "$url"
	match "$(cat "$work/until")" 'Welcome to nginx' "$url"
	[[ $url = *::1* || $url = *127.0.0.1* ]] || until_true world curl --fail --silent --show-error --max-time 5 "$url"
done
! curl --silent --max-time 5 http://127.0.0.1:8081 >/dev/null || die "a port of one address is another's, too"
echo='
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
s.connect((sys.argv[1], 7007))
s.send(b"echo")
assert s.recv(100) == b"echo"'
until_true world python3 -c "$echo" 192.0.2.10

say "a port that is taken, one that a user may not have, a protocol that passt does not have"
expect 254 user_husk run --port=80/tcp:8080 "$image" -- true
one_line_error 'stage1: failed to setup network: port 8080 of the host is in use'
expect 254 user_husk run --port=80/tcp:81 "$image" -- true
one_line_error 'stage1: failed to setup network: port 81 of the host: Permission denied'
expect 254 user_husk run --port=80/sctp:8082 "$image" -- true
one_line_error 'stage1: failed to setup network: port 8082: passt forwards no SCTP'

say "50 MB to the pod and back"
head -c 50000000 /dev/urandom >"$work/www/big"
expect 0 user_husk run "$image" -- sh -c 'curl --silent --fail http://192.0.2.1:8000/big | sha256sum'
equal "${out%% *}" "$(sha256sum <"$work/www/big" | cut -d' ' -f1)" "what came"

say "Ctrl-C on a terminal"
words=(run --insecure-options=image "${run_options[@]}" --port=80/tcp:8083 "$image")
is_vm || words=("--stage1=$stage1" "${words[@]}")
as_user env "TYPIST_LIMIT=$vm_limit" "$top/tests/support/typist.py" --await 'nameserver 10.0.2.3' --type '\x03' -- \
	"$build/bin/husk" "--dir=$data" --system-config= "--local-config=$etc" "${words[@]}" -- \
	sh -c 'cat /etc/resolv.conf; exec sleep 1000' >"$work/terminal" 2>&1 || die "exit code $? ($(cat "$work/terminal"))"
expect 0 user_husk run --port=80/tcp:8083 "$image" -- true # the port is free

say "networks that only root has"
for option in --net=other --net=all --netns=/proc/self/ns/net; do
	expect 254 user_husk run "$option" "$image" -- true
	one_line_error "^stage1: ${option%=*}: only root may connect pods \(use --net=none"
done
expect 254 as_user env PATH=/nowhere "$build/bin/husk" "--dir=$home/data" --system-config= --local-config= run \
	--insecure-options=image --net=default "$image"
one_line_error '^stage1: --net: only root may connect pods \(use --net=none, or install passt\)'

stop_pods web
for signal in KILL TERM; do
	how="killed by signal 9"
	[ $signal = KILL ] || how="exit code 0"
	say "passt is ended by SIG$signal: so is the pod, which says why"
	rm -f "$work/pod.out" # of the round before
	user_husk run --port=80/tcp:8083 "$image" -- sh -c 'echo up; sleep 1000' >"$work/pod.out" 2>"$work/pod.err" &
	pod=$!
	wait_for_line "$work/pod.out" up $pod
	pkill "-$signal" -U 65534 'pas'
	expect 254 wait $pod
	equal "$(cat "$work/pod.err")" "stage1: what connects the pod ended unexpectedly: passt: $how" "what husk says"
	no_passt "a pod whose passt has ended"
done

say "husk is killed: nothing is left"
start_pod again "$image" -- sleep 1000
kill -9 "$(cat "$data/pods/run/$uuid/pid")"
expect 0 husk status --wait "$uuid"
expect 0 husk gc --grace-period=0s
until_true eval '! pgrep -U 65534 "pas|husk-net"'
no_passt "a pod whose supervisor was killed"
