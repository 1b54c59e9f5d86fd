#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pods on networks, with programs that people use: a web server, a database and a resolver of Debian, by addresses, names and
# ports, a gigabyte, a hundred thousand datagrams; a namespace that somebody else has made; what is refused, and in which
# words. Nothing is left on the host.
needs_image=services_image
# shellcheck source=tests/system/network_lib.sh
. "$(dirname "$0")/network_lib.sh"
require curl python3 openssl
image=$(services_image) busybox=$(busybox_image)

network six <<'END'
{"plugins": [{"type": "bridge", "bridge": "six", "isGateway": true, "ipMasq": true, "ipam": {"type": "host-local",
  "ranges": [[{"subnet": "10.88.1.0/24"}], [{"subnet": "fd00:88:1::/64"}]],
  "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}}, {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
by_hand six || die "$why"
expect 0 net_husk run --net=default,default-restricted,six --port=80/tcp:8080 "$busybox" -- true # leaves chains, which stay
keep

say "a web server, by the pod's address and by a port of the host, IPv4 and IPv6"
port=8080
start_pod web --net=six --port="80-tcp:$port" "$image" -- nginx -g 'daemon off;'
ip6=$(pod_address web 6)
match "$(husk list --no-legend)" "ip4=$ip" "the address in the list"
"$husk_bin" "--dir=$data" events --replay "$uuid" >"$work/events" & # until the pod ends
wait_for_line "$work/events" '"ready"'
equal "$(jq -c 'select(.event == "ready").ips' "$work/events")" "[\"$ip\",\"$ip6\"]" "the addresses in the event"
# "localhost" of IPv6 cannot be forwarded: the kernel lets nothing from ::1 out. Any other address of the host can.
for url in "http://$ip" "http://[$ip6]" "http://127.0.0.1:$port" "http://10.88.1.1:$port" "http://[fd00:88:1::1]:$port"; do
	until_true curl --fail --silent --show-error --globoff --max-time 5 "$url"
	match "$(cat "$work/until")" 'Welcome to nginx' "$url"
done

say "a port that is taken: by a pod, by a program of the host"
expect 254 net_husk run --net=six --port="80/tcp:$port" "$busybox" -- true
in_use='of the host is in use, or was within the last minute \(choose another with --port\)$'
one_line_error "^stage1: failed to setup network: port $port $in_use"
python3 -m http.server --bind 127.0.0.1 0 >"$work/http.out" 2>&1 &
wait_for_line "$work/http.out" 'port [0-9]'
taken=$(grep -o 'port [0-9]*' "$work/http.out" | cut -d' ' -f2)
expect 254 net_husk run --net=six --port="80/tcp:127.0.0.1:$taken" "$busybox" -- true
one_line_error "^stage1: failed to setup network: port $taken $in_use"
kill %?http.server

say "a database in one pod, its benchmark in another, by name"
start_pod db --net=six "$image" -- redis-server --protected-mode no --save ''
db=$ip
expect 0 net_husk run --net=six --hosts-entry="$db=db,$db=db.test" "$image" -- sh -c '
	until redis-cli -h db ping; do sleep 0.2; done
	redis-benchmark -h db.test -n 2000 -c 10 -t get,set --csv'
match "$out" '"SET","[1-9].*"GET","[1-9]' "redis-benchmark"

say "a resolver in a third, asked by the other two"
start_pod names --net=six "$image" -- dnsmasq --keep-in-foreground --no-resolv --no-hosts --user=root \
	--address="/db.example/$db" --address=/www.example/192.0.2.1
resolver=$ip
expect 0 net_husk run --net=six --dns="$resolver" --dns-search=example --dns-opt=ndots:2 "$image" -- sh -c '
	cat /etc/resolv.conf; getent hosts www.example; redis-cli -h db ping'
match "$out" "search example.*nameserver $resolver.*options ndots:2|nameserver $resolver.*search example.*options ndots:2" "resolv.conf"
match "$out" '192.0.2.1 .*PONG' "what the resolver says"

say "users without privileges ping"
expect 0 net_husk run --net=six "$image" --user=65534 --group=65534 --caps-remove=CAP_NET_RAW -- \
	sh -c 'cp /bin/ping /tmp && /tmp/ping -c 1 -W 5 10.88.1.1 && /tmp/ping -6 -c 1 -W 5 fd00:88:1::1' # without the file's own

say "a gigabyte to the pod, and back"
start_pod disk --net=six "$image" -- sh -c '
	rm -f /var/www/html/*; nginx; until test -e /go; do sleep 0.2; done
	curl --silent --fail http://10.88.1.1:8000/big >/var/www/html/new && mv /var/www/html/new /var/www/html/big; sleep 1000'
mkdir "$work/www"
head -c 1073741824 /dev/zero | openssl enc -aes-128-ctr -nosalt -pass pass:husk -pbkdf2 >"$work/www/big"
python3 -m http.server --bind 10.88.1.1 --directory "$work/www" 8000 >"$work/http.out" 2>&1 &
wait_for_line "$work/http.out" 'port 8000'
expect 0 husk enter disk touch /go
until_true curl --fail --silent --output "$work/back" "http://$ip/big"
kill %?http.server
cmp "$work/www/big" "$work/back" || die "what came back is something else"
rm -r "$work/www" "$work/back"
stop_pods disk names db web

# A machine next to this one, which knows nothing of the networks of pods.
ip netns add outside
ip link add outveth type veth peer name eth0 netns outside
ip address add 10.88.9.1/24 dev outveth
ip -6 address add fd00:88:9::1/64 dev outveth nodad
ip link set outveth up
ip -n outside address add 10.88.9.2/24 dev eth0
ip -n outside -6 address add fd00:88:9::2/64 dev eth0 nodad
ip -n outside link set eth0 up
outside() { ip netns exec outside timeout 5 "$@"; }
say "ports for others: of all addresses, of one, of one of IPv6"
start_pod ports --net=six --port=80-tcp:8080 --port=80-tcp:10.88.9.1:8081 "--port=80/tcp:[fd00:88:9::1]:8082" "$image" -- \
	nginx -g 'daemon off;'
page() { [[ $("$@") == *"Welcome to nginx"* ]]; }
until_true page outside curl --silent http://10.88.9.1:8080
for url in 10.88.9.1:8081 "[fd00:88:9::1]:8080" "[fd00:88:9::1]:8082"; do
	page outside curl --silent --show-error --globoff "http://$url" || die "no page at $url"
done
for url in 10.88.9.1:8082 "[fd00:88:9::1]:8081"; do
	! outside curl --silent --globoff --max-time 2 "http://$url" || die "a page at $url"
done
! curl --silent --max-time 2 http://127.0.0.1:8081 || die "a page at another address of the host"
stop_pods ports

say "100,000 datagrams"
start_pod echo --net=six --port=7/udp:7007 "--port=7/udp:[fd00:88:9::1]:7008" "$image" -- python3 -c '
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::", 7))
while True:
	s.sendto(*s.recvfrom(2048))'
cat >"$work/datagrams.py" <<'P'
"""datagrams.py ADDRESS PORT N: sends N datagrams, 32 under way at a time, and expects each back once. A window is sent again if
nothing has come for a second; more than one of a thousand lost is a failure."""
import socket
import sys

address, port, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
s.connect((address, port))
s.settimeout(1)
wanted, following, lost = set(), 0, 0
while wanted or following < n:
    while len(wanted) < 32 and following < n:
        wanted.add(following)
        s.send(b"%d " % following + b"x" * (following % 1200))
        following += 1
    try:
        got = s.recv(2048)
        number, text = got.split(b" ")
        assert text == b"x" * (int(number) % 1200), got
        wanted.discard(int(number))
    except (TimeoutError, ConnectionRefusedError):
        lost += len(wanted)
        assert lost <= n / 1000, f"{lost} lost"
        for again in wanted:
            s.send(b"%d " % again + b"x" * (again % 1200))
P
until_true python3 "$work/datagrams.py" "$ip" 7 1
expect 0 python3 "$work/datagrams.py" "$ip" 7 100000
say "datagrams to ports of the host, from elsewhere and from itself"
for where in 10.88.9.1:7007 fd00:88:9::1:7007 fd00:88:9::1:7008; do
	expect 0 outside python3 "$work/datagrams.py" "${where%:*}" "${where##*:}" 100
done
expect 0 python3 "$work/datagrams.py" 127.0.0.1 7007 100
stop_pods echo
ip netns delete outside

# Its filters know the pod's addresses from the start: one more would be a black hole. Who answers the ping has had the
# advertisements before it.
say "a router of the network advertises itself and addresses, of which the pod takes none"
ip netns add witness
ip link add witness type veth peer name eth0 netns witness
ip link set witness master six up
ip -n witness link set eth0 up
start_pod lan --net=six "$image" -- sleep 1000
seen_by_witness() {
	"$top/tests/support/forge.py" advertise six
	ip -n witness -6 address show dev eth0 | grep 2001:db8: && ip -n witness -6 route show default | grep 'via fe80'
}
until_true seen_by_witness
until_true busybox ping -c 1 -W 1 "$ip"
expect 0 husk enter lan sh -c 'ip -6 address show dev eth0; ip -6 route'
match "$out" 'default via fd00:88:1::1' "the pod's own default route"
! grep -E '2001:db8:|default via fe80|proto ra' "$work/out" || die "taken from the router"
stop_pods lan
ip netns delete witness

say "a namespace that somebody else has made is read, and not changed"
ip netns add lan
ip link add lanveth type veth peer name lan netns lan
if is_vm; then
	say "a pod there is refused when its second interface is another's, and its first one is as before"
	ip -n lan link add late type veth peer name peer
	ip -n lan link set late up
	start_pod first --netns=/run/netns/lan "$busybox" -- sleep 1000
	ip -n lan link set lan up
	ip netns exec lan tc qdisc >"$work/tc-before"
	expect 254 net_husk run --netns=/run/netns/lan "$busybox" -- true
	one_line_error 'failed to setup network: interface "late": another pod has it'
	ip netns exec lan tc qdisc >"$work/tc-after"
	diff "$work/tc-before" "$work/tc-after" || die "left at an interface"
	stop_pods first
	ip -n lan link delete late
fi
ip address add 10.88.2.1/24 dev lanveth
ip link set lanveth up
ip -n lan link set lo up
ip -n lan address add 10.88.2.7/24 dev lan
ip -n lan -6 address add fd00:88:2::7/64 dev lan nodad
ip -n lan link set lan mtu 1400 up
ip -n lan route add default via 10.88.2.1
ip netns exec lan sysctl -qw net.ipv4.ip_unprivileged_port_start=0 # as of CNI runtimes: root of a pod does not own it
of_netns() {
	ip -n lan -o link
	ip -n lan -o address | sed 's/valid_lft.*//'
	ip -n lan route
	ip netns exec lan tc qdisc
	ip netns exec lan cat /proc/sys/net/ipv6/conf/{default,lan}/{accept_ra,autoconf}
}
of_netns | sed 's/ state [A-Z]*//; s/qdisc [a-z]*//; s/ tentative//' >"$work/netns-before"
start_pod cri --netns="/run/netns/lan" "$image" -- sh -c 'cat /sys/class/net/lan/mtu; exec nginx -g "daemon off;"'
equal "$(pod_address cri 4 lan) $(pod_address cri 6 lan)" "10.88.2.7 fd00:88:2::7" "its addresses"
until_true curl --fail --silent --max-time 5 http://10.88.2.7
grep -q 'F 1400$' "$data/pods/run/$uuid/logs/"* || die "not its MTU"
say "its loopback leads into the pod: on each port somebody listens, or the connection ends; a long answer is whole"
lan_curl() {
	ip netns exec lan curl --fail --silent --show-error --max-time 60 "$@"
}
expect 0 lan_curl http://127.0.0.1
match "$out" "Welcome to nginx" "a page"
! lan_curl http://127.0.0.1:81 2>"$work/refused" || die "somebody listens on port 81"
grep -qE 'Connection (refused|reset by peer)|Could not connect|Failed to connect' "$work/refused" || die "$(cat "$work/refused")"
expect 0 husk enter cri sh -c 'head -c 8000000 /dev/urandom >/var/www/html/long && sha256sum </var/www/html/long'
equal "$(lan_curl http://localhost/long | sha256sum)" "$out" "a long answer"
forty_pages() {
	for _ in $(seq 40); do
		lan_curl http://127.0.0.1 >/dev/null &
	done
	wait
}
(forty_pages) 2>"$work/many"
[ ! -s "$work/many" ] || die "40 at once: $(head -3 "$work/many")"
stop_pods cri
! lan_curl http://127.0.0.1 2>/dev/null || die "something of the pod listens still"
of_netns | sed 's/ state [A-Z]*//; s/qdisc [a-z]*//; s/ tentative//' >"$work/netns-after"
diff "$work/netns-before" "$work/netns-after" || die "the namespace was changed"
expect 254 net_husk run --netns=/proc/self/ns/net "$busybox" -- true
one_line_error 'husk itself is in that namespace'
expect 254 net_husk run --netns=/proc/self/ns/mnt "$busybox" -- true
one_line_error 'something else'
expect 254 net_husk run --netns="/run/netns/nolan" "$busybox" -- true
one_line_error "nolan.*No such file"
two="--netns=/run/netns/lan"
ip -n lan link add lan2 type veth peer name lan3
ip -n lan link set lan2 address "$(ip -n lan -j link show lan | jq -r '.[].address')" up
if is_vm; then
	say "what a VM cannot have of it is refused: interfaces of one address, and without ARP"
	expect 254 net_husk run $two "$busybox" -- true
	one_line_error 'network: interface "lan" and interface "lan2" have the same MAC address, by which a VM tells them apart \(give --stage1=ns'
	ip -n lan link set lan2 address 02:00:5e:00:53:07 arp off
	expect 254 net_husk run $two "$busybox" -- true
	one_line_error 'network: interface "lan2" has no ARP, as of ipvlan in mode l3 or l3s, .*\(give --stage1=ns'
else
	say "interfaces of one address"
	expect 0 net_husk run $two "$busybox" -- ls /sys/class/net
	match "$out" 'lan.*lan2' "interfaces"
fi
ip netns delete lan

say "the host's network: of namespaces alone"
if is_vm; then
	expect 254 net_husk run --net=host "$busybox" -- true
	one_line_error 'requires private network'
else
	expect 0 net_husk run --net=host "$busybox" -- ip link
	match "$out" "six" "the host's interfaces"
fi

say "what QEMU has: descriptors of taps in a namespace with nothing else, and no network of its own"
if is_vm; then
	start_pod argv --net=six "$busybox" -- sleep 1000
	qemu=$(vmm_process argv)
	networks=$(tr '\0' '\n' <"/proc/$qemu/cmdline" | grep -A1 -xE -- '-(netdev|nic|net)' | grep -vE '^-' || :)
	# libvirt adds it while the VM waits, and the command line says nothing.
	[ -z "$networks" ] || match "$networks" '^tap,[^ ]*fds?=[^ ]*$' "QEMU's networks"
	equal "$(nsenter -t "$qemu" -n ip -o link | cut -d: -f2)" " lo" "interfaces that QEMU can see"
	equal "$(awk 'FNR > 1' "/proc/$qemu/net/tcp" "/proc/$qemu/net/udp" "/proc/$qemu/net/raw" | wc -l)" 0 "sockets of QEMU"
	stop_pods argv
fi

say "a network that leads to the host and no further"
start_pod restricted --net=default-restricted "$busybox" -- sleep 1000
match "$ip" '^172\.31\.' "its address"
expect 0 husk enter restricted sh -c 'ip route | grep -c default; ping -c 1 -W 5 172.31.0.1 >/dev/null && echo reached'
equal "$out" $'0\nreached' "its routes, and the host"
stop_pods restricted

say "names of the host, of the image, and beside those that the user says"
printf '127.0.0.1 localhost\n192.0.2.9 of-the-host\n' >"$work/hosts"
printf 'nameserver 192.0.2.53\nsearch host.example\n' >"$work/resolv.conf"
mount --bind "$work/hosts" /etc/hosts
mount --bind "$work/resolv.conf" /etc/resolv.conf
names='cat /etc/resolv.conf 2>/dev/null; cat /etc/hosts'
expect 0 net_husk run --net=none --hostname=own --dns=host --hosts-entry=host "$busybox" -- sh -c "$names"
equal "$out" "$(cat "$work/resolv.conf" "$work/hosts" && printf '%s own\n' 127.0.0.1 ::1)" "names of the host"
expect 0 net_husk run --net=six --hostname=own --dns=none "$busybox" -- sh -c "$names"
[[ $out != *nameserver* && $out != *of-the-host* ]] || die "names of the image: $out"
match "$out" '127.0.0.1 .*own' "its own name"
expect 0 net_husk run --net=six --dns-domain=own.example --dns=192.0.2.54 --hosts-entry=192.0.2.10=one,192.0.2.10=two "$busybox" -- sh -c "$names"
match "$out" 'domain own.example' "the domain of the user"
match "$out" $'192.0.2.10 one\n192.0.2.10 two' "lines of hosts"
umount /etc/hosts /etc/resolv.conf

say "errors, in rkt's words"
refused() { # REGEX WORDS of run...
	local want=$1
	shift
	expect 254 net_husk run "$@" "$busybox" -- true
	one_line_error "$want"
}
refused 'networks not found: notavalidnetwork' --net=notavalidnetwork
start_pod static --net=six:IP=10.88.1.77 "$busybox" -- sleep 1000
equal "$ip" 10.88.1.77 "the address that was asked for"
refused 'failed to setup network: network "six": .*requested IP address 10.88.1.77 is not available' --net=six:IP=10.88.1.77
stop_pods static
refused 'network "six": .*10.99.0.1' --net=six:IP=10.99.0.1
refused 'excludes other networks' --net=none,six
refused 'duplicate' --net=six,six
refused 'invalid arguments' --net=six:a:b
refused '^run: port name "web" could not be found in any apps \(give PORT/PROTOCOL:HOSTPORT\)$' --net=six --port=web:8080
for port in 80/icmp:8080 80/tcp:99999; do
	refused "--port: \"$port\" is not of the form NAME:\[HOSTIP:\]HOSTPORT or PORT/PROTOCOL:\[HOSTIP:\]HOSTPORT; " --net=six "--port=$port"
done
refused "^run: --port flag does not work with 'none' networking$" --net=none --port=80/tcp:8080

say "without plugins: none, after a warning; an error if it was asked for"
mkdir -p "$work/etc/paths.d" "$work/empty"
echo '{"rktVersion":"v1","rktKind":"paths","cni-plugins":["'"$work/empty"'"]}' >"$work/etc/paths.d/p.json"
expect 0 net_husk run "$busybox" -- ip -o link
equal "$(grep -c . <<<"$out")" 1 "interfaces ($out)"
one_line_error 'warning: the pod has no network'
refused 'network "default": plugin "ptp": not found in .*containernetworking-plugins' --net=default
rm "$work/etc/paths.d/p.json"

say "with them: the default network"
expect 0 net_husk run "$busybox" -- ip -o -4 address
match "$out" '172.16.28.' "address of the default network"
equal "$err" "" "stderr"
nothing_left "all pods"
