#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kernel parameters of a pod: what it has for itself can be set, what it shares with the host cannot.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
image=$(busybox_image)
show='cd /proc/sys && cat net/core/somaxconn kernel/sem kernel/msgmax fs/mqueue/msg_max net/ipv4/ip_local_port_range net/ipv4/ip_unprivileged_port_start'
set_them=(--sysctl=net.core.somaxconn=7 --sysctl="kernel.sem=250 32000 100 128" --sysctl=kernel/msgmax=9000
	--sysctl=fs.mqueue.msg_max=21 --sysctl="net/ipv4/ip_local_port_range=20000 30000" --sysctl=net.core.somaxconn=1234
	--sysctl=net.ipv4.ip_unprivileged_port_start=700)
expected=$(printf '%s\n' 1234 '250 32000 100 128' 9000 21 '20000 30000' 700)
host=$(cat /proc/sys/kernel/core_pattern /proc/sys/kernel/msgmax /proc/sys/net/core/somaxconn)

say "those of the network and of IPC; the last of a name counts, and no app changes them"
expect 0 husk run "${set_them[@]}" "$image" -- sh -c "$show; echo 8 2>/dev/null >net/core/somaxconn && echo changed; true"
equal "$(tr '\t' ' ' <<<"$out")" "$expected" "what the app sees"

say "a prepared pod keeps them, and its manifest, handed in, makes another one"
expect 0 husk prepare "${set_them[@]}" "$image" -- sh -c "$show"
uuid=$out
husk cat-manifest "$uuid" >"$work/manifest"
tr -d ' \n' <"$work/manifest" | grep -qF '"isolators":[{"name":"os/unix/sysctl","value":{"net.core.somaxconn":"1234",' ||
	die "the manifest: $(cat "$work/manifest")"
expect 0 husk run-prepared "$uuid"
equal "$(tr '\t' ' ' <<<"$out")" "$expected" "what the app of the prepared pod sees"
expect 0 husk run --pod-manifest="$work/manifest"
equal "$(tr '\t' ' ' <<<"$out")" "$expected" "what the app of the other pod sees"
expect 254 husk run --sysctl=net.core.somaxconn=7 --pod-manifest="$work/manifest"
equal "$err" 'run: conflicting flags set with --pod-manifest (see --help)' "a flag beside the manifest"

say "what there is not, what the kernel does not take, what is no name: one line, no pod"
refused() { # MESSAGE PARAMETER...
	local message=$1
	shift
	expect 254 husk run "${@/#/--sysctl=}" "$image" -- true
	equal "$err" "$message" "$*"
}
refused 'stage1: agent: pod.setup: sysctl "net.core.nothing": the pod has none of that name' net.core.nothing=1
refused 'stage1: agent: pod.setup: sysctl "net.core.somaxconn": its value "many": Invalid argument' net.core.somaxconn=many
refused 'stage1: agent: pod.setup: sysctl "net.core" cannot be changed in this pod' net.core=1
refused 'Error: sysctl "net.core.somaxconn" is not NAME=VALUE, as sysctl(8) has it; see husk help run' net.core.somaxconn
refused 'Error: sysctl "net/../../../etc/passwd=x" is not NAME=VALUE, as sysctl(8) has it; see husk help run' net/../../../etc/passwd=x

if is_vm; then
	say "a VM has a kernel of its own, of which everything can be set"
	expect 0 husk run --sysctl=vm.max_map_count=262144 --sysctl=kernel.core_pattern=/core.of.a.pod "$image" -- \
		cat /proc/sys/vm/max_map_count /proc/sys/kernel/core_pattern
	equal "$out" "$(printf '%s\n' 262144 /core.of.a.pod)" "what the app of a VM sees"
else
	say "what is the host's stays as it is, whoever asks"
	for name in vm.max_map_count kernel.core_pattern kernel.hostname fs.file-max; do
		refused "stage1: sysctl \"$name\" is of the whole host's kernel, which such a pod shares (a pod with a VM can have it)" $name=1
	done
	expect 254 husk run --net=host --sysctl=net.core.somaxconn=7 "$image" -- true
	equal "$err" 'stage1: sysctl "net.core.somaxconn" is of the network, which is the host'"'s (leave --net=host away)" "the host's network"
	expect 0 husk run --net=host --sysctl=kernel.msgmax=9000 "$image" -- cat /proc/sys/kernel/msgmax
	equal "$out" 9000 "IPC of a pod in the host's network"
fi
equal "$(cat /proc/sys/kernel/core_pattern /proc/sys/kernel/msgmax /proc/sys/net/core/somaxconn)" "$host" "what the host has"
