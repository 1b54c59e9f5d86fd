#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The plugins of Debian make the networks of pods, unchanged, and plugins that fail in each way they can leave one clear line
# and nothing else.
# shellcheck source=tests/system/network_lib.sh
. "$(dirname "$0")/network_lib.sh"
require dnsmasq
image=$(busybox_image)

# A web server of the host, on all its addresses, and what it has.
mkdir "$work/www"
echo "from the host" >"$work/www/hello"
busybox httpd -f -p 8000 -h "$work/www" &

# in_pod NET|OPTION... -- SCRIPT: a pod on networks that runs it; its output in $out. Nothing is left of it.
in_pod() {
	local nets=()
	while [ "$1" != -- ]; do
		case $1 in
		--*) nets+=("$1") ;;
		*) nets+=("--net=$1") ;;
		esac
		shift
	done
	expect 0 net_husk run "${nets[@]}" "$image" -- sh -c "$2"
	equal "$err" "" "messages of a pod on ${nets[*]}"
	nothing_left "pod on ${nets[*]}"
}

addresses='ip -o -4 addr | awk "{ print \$2, \$4 }"'

# get ADDRESS PORT: the page of a pod into $out, as soon as its server answers.
get() {
	local deadline=$((SECONDS + 30))
	# shellcheck disable=SC2016 # for the inner shell
	until out=$(timeout 5 bash -c 'exec 3<>"/dev/tcp/$1/$2" && printf "GET /hello HTTP/1.0\r\n\r\n" >&3 && sed "1,/^\r$/d" <&3' \
		get "$1" "$2" 2>"$work/get.err") && [ -n "$out" ]; do
		[ $SECONDS -lt $deadline ] || die "no page from $1:$2: $(cat "$work/get.err")"
		read -rt 0.2 <> <(:) || :
	done
}

server='mkdir /www && echo "from the pod" >/www/hello && exec httpd -f -p 80 -h /www'

say "bridge, host-local"
network tbridge <<'END'
{"plugins": [{"type": "bridge", "bridge": "tbridge", "isGateway": true, "ipMasq": true, "ipam": {"type": "host-local",
  "subnet": "10.81.1.0/24", "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
by_hand tbridge || die "bridge does not work here: $why"
keep
in_pod tbridge -- "$addresses; ip route | head -n 1; ping -c 1 -W 5 10.81.1.1 >/dev/null && wget -q -O- http://10.81.1.1:8000/hello"
match "$out" $'^lo 127.0.0.1/8\neth0 10\\.81\\.1\\.[0-9]+/24\ndefault via 10.81.1.1 dev eth0.*\nfrom the host$' "bridge"

say "one configuration alone, of 0.3.1, and what its plugin says of names"
cat >"$etc/net.d/told.conf" <<'END'
{"cniVersion": "0.3.1", "name": "told", "type": "bridge", "bridge": "tbridge", "ipam": {"type": "host-local",
  "subnet": "10.81.7.0/24", "routes": [{"dst": "0.0.0.0/0"}]}, "dns": {"nameservers": ["10.81.7.53", "fd00::53"],
  "domain": "own.example", "search": ["plug.example"], "options": ["ndots:3"]}}
END
expect 0 net_husk run --net=told "$image" -- true # the address of the bridge stays
keep
in_pod told -- "$addresses | sed 's/[0-9]*.24$//'; grep -v '^#' /etc/resolv.conf | grep ."
equal "$out" "$(printf '%s\n' 'lo 127.0.0.1/8' 'eth0 10.81.7.' 'domain own.example' 'search plug.example' \
	'nameserver 10.81.7.53' 'nameserver fd00::53' 'options ndots:3')" "names of the plugin"
in_pod told --dns=10.81.7.54 --dns-opt=ndots:1 -- "grep -v '^#' /etc/resolv.conf | grep ."
equal "$out" "$(printf '%s\n' 'domain own.example' 'search plug.example' 'nameserver 10.81.7.54' 'options ndots:1')" \
	"names of the user, and what he does not say"

say "an address and a hardware address, by the capabilities of plugins"
network tgiven <<'END'
{"plugins": [{"type": "bridge", "bridge": "tbridge", "capabilities": {"mac": true, "ips": true}, "ipam": {"type": "static"}}]}
END
in_pod "tgiven:IP=10.81.1.99/24;MAC=02:00:5e:00:53:99" -- "$addresses; cat /sys/class/net/eth0/address"
equal "$out" $'lo 127.0.0.1/8\neth0 10.81.1.99/24\n02:00:5e:00:53:99' "what was given"
expect 254 net_husk run "--net=tgiven:MAC=02:00:5e:00:53" "$image" -- true
one_line_error 'network "tgiven": .*MAC'

say "ptp"
network tptp <<'END'
{"plugins": [{"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.81.2.0/24", "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
by_hand tptp || die "ptp does not work here: $why"
keep
in_pod tptp -- "$addresses; wget -q -O- http://10.81.2.1:8000/hello"
match "$out" $'^lo 127.0.0.1/8\neth0 10\\.81\\.2\\.[0-9]+/24\nfrom the host$' "ptp"

say "the host reaches a pod"
expect 0 net_husk run --detach --net=tptp "$image" -- sh -c "$server"
uuid=$out
address=$(net_husk status --format=json "$uuid" | jq -r '.networks[].ip')
get "$address" 80
equal "$out" "from the pod" "page"
expect 0 net_husk stop "$uuid"
nothing_left "pod that was stopped"

# A veth pair of the test, one end of which is in another namespace that has an address.
ip netns add peer
ip link add tparent type veth peer name tpeer netns peer
ip -n peer addr add 10.81.3.1/24 dev tpeer
ip -n peer link set tpeer up
ip link set tparent up

say "macvlan, ipvlan, with static addresses"
for type in macvlan ipvlan; do
	if ! ip link add thave link tparent type $type 2>/dev/null; then
		say "this kernel has no $type"
		continue
	fi
	ip link del thave
	network t$type <<END
{"plugins": [{"type": "$type", "master": "tparent",
  "ipam": {"type": "static", "addresses": [{"address": "10.81.3.2/24", "gateway": "10.81.3.1"}]}}]}
END
	by_hand t$type || die "$type does not work here: $why"
	keep
	in_pod t$type -- "$addresses; ping -c 1 -W 5 10.81.3.1 >/dev/null && echo reached"
	equal "$out" $'lo 127.0.0.1/8\neth0 10.81.3.2/24\nreached' $type
done

say "host-device: the interface comes back"
network tdevice <<'END'
{"plugins": [{"type": "host-device", "device": "tparent",
  "ipam": {"type": "static", "addresses": [{"address": "10.81.3.3/24", "gateway": "10.81.3.1"}]}}]}
END
by_hand tdevice || die "host-device does not work here: $why"
keep
mac=$(cat /sys/class/net/tparent/address 2>/dev/null || ip -j link show tparent | jq -r '.[].address')
in_pod tdevice -- "$addresses; cat /sys/class/net/eth0/address; ping -c 1 -W 5 10.81.3.1 >/dev/null && echo reached"
equal "$out" $'lo 127.0.0.1/8\neth0 10.81.3.3/24\n'"$mac"$'\nreached' "host-device"

say "a list: bridge, portmap, bandwidth, firewall, tuning"
chain=('{"type": "bridge", "bridge": "tchain", "isGateway": true, "ipMasq": true, "ipam": {"type": "host-local",
	"subnet": "10.81.4.0/24", "routes": [{"dst": "0.0.0.0/0"}]}}')
for plugin in '{"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}' \
	'{"type": "bandwidth", "ingressRate": 8000000, "ingressBurst": 8000000, "egressRate": 8000000, "egressBurst": 8000000}' \
	'{"type": "firewall"}' '{"type": "tuning", "sysctl": {"net.ipv4.conf.eth0.arp_filter": "1"}, "mtu": 1400}'; do
	printf '%s\n' "${chain[@]}" "$plugin" | jq -s '{plugins: .}' | network tchain
	if by_hand tchain; then
		chain+=("$plugin")
	else
		say "$(jq -r .type <<<"$plugin") does not work here: $why"
	fi
done
printf '%s\n' "${chain[@]}" | jq -s '{plugins: .}' | network tchain
by_hand tchain || die "$why"
printf '%s\n' "${chain[0]}" '{"type": "bandwidth", "capabilities": {"bandwidth": true}}' | jq -s '{plugins: .}' | network trate
by_hand trate || die "$why"
keep
case ${chain[*]} in
*portmap*) ports=(--port=80/tcp:8081) ;;
*) ports=() ;;
esac
expect 0 net_husk run --detach --net=tchain "${ports[@]}" "$image" -- sh -c "$server"
uuid=$out
address=$(net_husk status --format=json "$uuid" | jq -r '.networks[].ip')
match "$address" '^10\.81\.4\.' "address"
get "$address" 80
equal "$out" "from the pod" "page of the pod's address"
if [ ${#ports[@]} -gt 0 ]; then
	get 127.0.0.1 8081
	equal "$out" "from the pod" "page of the host's port"
	expect 254 net_husk run --net=tchain "${ports[@]}" "$image" -- true
	one_line_error '8081'
fi
case ${chain[*]} in
*bandwidth*)
	match "$(tc qdisc show)" 'tbf.*rate 8Mbit' "shaping"
	expect 0 net_husk run --detach --name=rate "--net=trate:INGRESS_RATE=9M" "$image" -- sleep 1000
	match "$(tc qdisc show)" 'tbf.*rate 9Mbit burst 128Kb' "shaping by an argument"
	stop_pods rate
	expect 254 net_husk run "--net=trate:EGRESS_RATE=9Mbit" "$image" -- true
	one_line_error 'network "trate": EGRESS_RATE=9Mbit: bits per second are 1k to 1T'
	;;
esac
case ${chain[*]} in
*firewall*) match "$(iptables-save)" "CNI-FORWARD -s $address" "firewall" ;;
esac
case ${chain[*]} in
*tuning*)
	expect 0 net_husk enter "$uuid" cat /sys/class/net/eth0/mtu
	equal "$out" 1400 "mtu in the pod"
	equal "$(ip netns exec "husk-$uuid" cat /proc/sys/net/ipv4/conf/eth0/arp_filter)" 1 "setting of the interface"
	;;
esac
expect 0 net_husk stop "$uuid"
nothing_left "list"

say "husk doctor has plugins check a network"
start_pod checked --net=tbridge "$image" -- sleep 1000
expect 0 husk doctor checked
match "$out" 'ok +network +1 of 1 networks checked.*The pod is as it was made' "a network"
ip -n "husk-$uuid" route save table main >"$work/routes"
ip -n "husk-$uuid" route flush table main
expect 1 husk doctor checked
match "$out" 'MISS +network +not as it was made +network "tbridge": plugin "bridge": .*The pod is not as it was made' "a changed one"
ip -n "husk-$uuid" route restore <"$work/routes"
expect 0 husk doctor checked
stop_pods checked
expect 254 husk doctor checked
one_line_error "isn't currently running"

say "dhcp"
network tdhcp <<'END'
{"plugins": [{"type": "bridge", "bridge": "tdhcp", "ipam": {"type": "dhcp"}}]}
END
ip link add tdhcp type bridge
ip addr add 10.81.5.1/24 dev tdhcp
ip link set tdhcp up
dnsmasq --keep-in-foreground --conf-file=/dev/null --user=root --port=0 --bind-interfaces --interface=tdhcp \
	--dhcp-range=10.81.5.100,10.81.5.200,255.255.255.0,1h --dhcp-leasefile="$work/leases" --pid-file= \
	--log-facility="$work/dnsmasq.log" &
$plugins/dhcp daemon >"$work/dhcp.log" 2>&1 &
daemon=$! # which the <(:) below changes
until [ -S /run/cni/dhcp.sock ]; do
	kill -0 $daemon || die "the dhcp daemon ended: $(cat "$work/dhcp.log")"
	read -rt 0.05 <> <(:) || :
done
by_hand tdhcp || die "dhcp does not work here: $why"
keep
in_pod tdhcp -- "$addresses; ping -c 1 -W 5 10.81.5.1 >/dev/null && echo reached"
match "$out" $'^lo 127.0.0.1/8\neth0 10\\.81\\.5\\.[0-9]+/24\nreached$' "dhcp"

say "two networks at once"
for net in tbridge tptp; do
	by_hand $net || die "$why"
done
keep
in_pod tptp tbridge -- "$addresses"'; for gateway in 10.81.1.1 10.81.2.1; do
	wget -q -O- http://$gateway:8000/hello; done'
match "$(sort "$work/out" | tr '\n' ' ')" \
	'^eth0 10\.81\.[12]\.[0-9]+/24 eth1 10\.81\.[12]\.[0-9]+/24 from the host from the host lo 127\.0\.0\.1/8 $' "two networks"
match "$out" '10\.81\.1\.' "first network"
match "$out" '10\.81\.2\.' "second network"

say "routes by source (sbr): the rules are the pod's, too"
network tsbr <<'END'
{"plugins": [{"type": "bridge", "bridge": "tsbr", "isGateway": true, "ipam": {"type": "host-local",
  "ranges": [[{"subnet": "10.81.7.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}, {"type": "sbr"}]}
END
by_hand tsbr || die "$why"
keep
# Its main table is empty then, so who names no source reaches nothing.
in_pod tsbr -- 'rule=$(ip rule | grep "lookup 100"); echo $rule; ip route show table 100; set -- $rule
	ping -c 1 -W 5 -I "$3" 10.81.7.1 >/dev/null && echo reached'
match "$out" $'^[0-9]+: from 10\\.81\\.7\\.[0-9]+ lookup 100\n.*default via 10\\.81\\.7\\.1 dev eth0.*\nreached$' "sbr"
rm "$etc/net.d/tsbr.conflist"

say "arguments"
in_pod tbridge:IP=10.81.1.77 -- "$addresses"
match "$out" 'eth0 10\.81\.1\.77/24' "an address that was asked for"
expect 0 net_husk run --detach --net=tbridge:IP=10.81.1.77 "$image" -- sleep 1000
uuid=$out
snapshot >"$work/before"
expect 254 net_husk run --net=tbridge:IP=10.81.1.77 "$image" -- true
one_line_error 'failed to setup network: network "tbridge": plugin "bridge": .*requested IP address'
nothing_left "address that is taken"
expect 254 net_husk run --net=tbridge:IP=192.0.2.1 "$image" -- true
one_line_error 'failed to setup network: network "tbridge": plugin "bridge": .*192\.0\.2\.1'
nothing_left "address of elsewhere"
expect 0 net_husk enter "$uuid" sh -c "$addresses"
match "$out" 'eth0 10\.81\.1\.77/24' "address of the first"
expect 0 net_husk stop "$uuid"

say "names"
for net in notavalidnetwork tptp,notavalidnetwork; do
	expect 254 net_husk run --net=$net "$image" -- true
	one_line_error 'networks not found: notavalidnetwork$'
	equal "$out" "" "output"
done

say "all of them, of which default is built in; its first pod leaves chains and empty files"
rm -f "$etc"/net.d/t{macvlan,ipvlan,device,chain,rate,dhcp,given}.conflist "$etc/net.d/told.conf"
expect 0 net_husk run --net=default "$image" -- true
keep
in_pod all -- "$addresses | sed 's/[0-9]*.24$//' | sort"
match "$(tr '\n' ' ' <"$work/out")" '^(eth[012] (10\.81\.1|10\.81\.2|172\.16\.28)\. ){3}lo 127\.0\.0\.1/8 $' "networks of all"
for net in 10.81.1 10.81.2 172.16.28; do
	match "$out" "$net" "one of them"
done

# ---- plugins that fail ----

etc=$work/bad
mkdir -p "$etc/net.d" "$etc/paths.d" "$work/plugins"
jq -n --arg dir "$work/plugins" '{rktVersion: "v1", rktKind: "paths", "cni-plugins": [$dir, "/usr/lib/cni"]}' >"$etc/paths.d/cni.json"
cat >"$etc/net.d/tbad.conflist" <<'END'
{"name": "tbad", "cniVersion": "1.0.0", "plugins": [{"type": "bridge", "bridge": "tbad", "ipam": {"type": "host-local",
  "subnet": "10.81.6.0/24"}}, {"type": "bad"}]}
END

# bad SCRIPT: makes the plugin, whose ADD does this. What the plugin ahead of it has made is to be undone.
bad() {
	printf '#!/bin/sh\ncat >/dev/null\n[ "$CNI_COMMAND" = ADD ] || exit 0\n%s\n' "$1" >"$work/plugins/bad"
	chmod 755 "$work/plugins/bad"
}

# fails MESSAGE: a pod is refused for that reason, and leaves nothing.
fails() {
	expect 254 net_husk run --net=tbad "$image" -- echo ran
	one_line_error "failed to setup network: network \"tbad\": plugin \"bad\": $1\$"
	equal "$out" "" "output of a pod without its network"
	nothing_left "plugin: $1"
}

by_hand tbad 2>/dev/null || : # the second is not where it looks
[ -e /sys/class/net/tbad ] || ip link show tbad >/dev/null || die "no bridge"
keep

say "a plugin that fails, with an error, with text, with nothing, by a signal"
bad 'echo "{\"cniVersion\": \"1.0.0\", \"code\": 7, \"msg\": \"no more\", \"details\": \"of it\"}"; exit 1'
fails '.*no more.*of it.*'
bad 'echo first >&2; echo "the reason" >&2; exit 3'
fails 'the reason'
bad 'exit 9'
fails 'exit code 9, and it does not say why'
bad 'kill -9 $$'
fails 'killed by signal 9 \(Killed\)'
bad 'echo "panic: no memory" >&2; kill -9 $$'
fails 'killed by signal 9 \(Killed\): panic: no memory'

say "a plugin that prints nothing, too much, something else"
bad :
fails 'prints no result'
bad 'head -c 10485760 /dev/zero | tr "\0" " "'
fails 'prints more than 256 KiB'
bad 'echo "{\"cniVersion\": \"1.0.0\", "'
fails 'its result: .*'
bad 'echo "[1, 2]"'
fails 'its result: .*'
bad 'echo "{\"cniVersion\": \"1.0.0\", \"ips\": [{\"address\": \"nowhere\"}]}"'
fails 'its result: .*'
bad 'yes >&2 & head -c 1000000 /dev/zero >&2; echo "the end" >&2; exit 1'
fails '.+'

say "a plugin that is not executable, is others' as well, is not there"
bad :
chmod 644 "$work/plugins/bad"
fails '".*/plugins/bad" is not an executable file'
chmod 777 "$work/plugins/bad"
fails '.*plugins/bad.*'
rm "$work/plugins/bad"
fails 'not found in .*'
mkdir "$work/plugins/bad"
fails '".*/plugins/bad" is not an executable file'
rmdir "$work/plugins/bad"

say "a plugin that hangs, and what is done meanwhile"
# hang_begins: a pod in the background whose plugin hangs.
hang_begins() {
	rm -f "$work/begun"
	bad "echo waits for a lock >&2; echo \$\$ >'$work/begun'; exec sleep 1000"
	run_in_background --system-config= "--local-config=$etc" --net=tbad "$image" -- true
	wait_for_line "$work/begun" . "$pod"
}

# hang_ends: it has ended as it should, within that time.
hang_ends() { # SECONDS
	local status=0
	wait "$pod" || status=$?
	[ "$status" -ne 0 ] || die "a pod without its network"
	wait_no_processes || die "processes are left"
	[ $((SECONDS - start)) -le "$1" ] || die "it took $((SECONDS - start)) s"
	[ ! -e "/proc/$(cat "$work/begun")" ] || die "the plugin lives on"
	nothing_left "plugin that hangs"
}

hang_begins
start=$SECONDS
kill -TERM "$pod"
hang_ends 10
hang_begins
start=$SECONDS
expect 0 net_husk stop "$uuid"
hang_ends 10
hang_begins
start=$SECONDS
expect 0 net_husk stop --force "$uuid"
hang_ends 10
if ! is_vm; then # a minute of waiting; what waits is the same program
	hang_begins
	start=$SECONDS
	hang_ends 90
	match "$(cat "$work/pod.err")" 'failed to setup network: network "tbad": plugin "bad": does not end within 60 s: waits for a lock$' "error text"
	equal "$(wc -l <"$work/pod.err")" 1 "lines on stderr"
fi

say "a plugin that cannot undo what it did: the others do, and husk gc keeps the pod until it can"
expect 0 net_husk gc --grace-period=0s
printf '#!/bin/sh\necho $CNI_COMMAND >>%s\ncat >/dev/null\necho "cannot $CNI_COMMAND" >&2\nexit 1\n' "$work/calls" >"$work/plugins/bad"
expect 254 net_husk run --net=tbad "$image" -- echo ran
match "$(head -n 1 "$work/err")" 'failed to setup network: network "tbad": plugin "bad": cannot ADD$' "error text, which comes first"
equal "$(tr '\n' ' ' <"$work/calls")" "ADD DEL " "calls of the plugin"
match "$err" 'failed to remove network: network "tbad": plugin "bad": cannot DEL' "what is left"
uuid=$(basename "$data"/pods/run/*-*)
kept="pod \"$uuid\": \"[^\"]*/gc\" failed: the pod is kept until that works"
for words in gc "gc --grace-period=0s" "gc --grace-period=0s"; do
	# shellcheck disable=SC2086 # words
	expect 0 net_husk $words
	match "$err" "gc: network: failed to remove network: network \"tbad\": plugin \"bad\": cannot DEL" "what $words says"
	match "$err" "\(to give up what is left, remove \"$data/pods/exited-garbage/$uuid/cni.json\"\)" "what $words says"
	match "$err" "$kept" "what $words says"
	[ -e "$data/pods/exited-garbage/$uuid/cni.json" ] || die "the pod is lost"
	[ -e "/run/netns/husk-$uuid" ] || die "the namespace has lost its name"
done
expect 254 net_husk rm "$uuid"
match "$err" "$kept" "what rm says"
bad :
expect 0 net_husk rm "$uuid"
equal "$(find "$data/pods" -mindepth 2)" "" "what is left of pods"
nothing_left "plugin whose DEL failed for a time"

if ! is_vm; then # half a minute of waiting; what waits is the same program
	say "a plugin that hangs in undoing: why there is no pod is said at once, and the others undo theirs"
	printf '#!/bin/sh\n[ $CNI_COMMAND = DEL ] || exit 1\nexec sleep 1000\n' >"$work/plugins/bad"
	run_in_background --system-config= "--local-config=$etc" --net=tbad "$image" -- true
	wait_for_line "$work/pod.err" 'failed to setup network: network "tbad": plugin "bad": exit code 1' $pod
	start=$SECONDS
	grep -qr "$uuid" /var/lib/cni || die "an address that is free already"
	expect 254 wait $pod
	[ $((SECONDS - start)) -le 60 ] || die "it took $((SECONDS - start)) s"
	match "$(cat "$work/pod.err")" 'failed to remove network: network "tbad": plugin "bad": does not end within 30 s' "what is left"
	! grep -r "$uuid" /var/lib/cni || die "its address is not free"
	bad :
	expect 0 net_husk rm "$uuid"
	nothing_left "plugin that hung in undoing"
fi

say "what it can never undo is given up by a person"
printf '#!/bin/sh\ncat >/dev/null\necho "cannot $CNI_COMMAND" >&2\nexit 1\n' >"$work/plugins/bad"
expect 254 net_husk run --net=tbad "$image" -- echo ran
uuid=$(basename "$data"/pods/run/*-*)
expect 254 net_husk rm "$uuid"
rm "$(grep -o '[^"]*/cni.json' <<<"$err")"
expect 0 net_husk rm "$uuid"
equal "$err" "" "what rm says"
equal "$(find "$data/pods" -mindepth 2)" "" "what is left of pods"
nothing_left "plugin whose DEL fails for ever"
