#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a container of Kubernetes may: the settings of a security context, each as a kubelet writes it.
# shellcheck source=tests/system/cri_lib.sh
. "$(dirname "$0")/cri_lib.sh"
require skopeo
start_cri
profiles=$work/profiles
mkdir "$profiles"
profile() { # NAME CALL...: all calls but these
	jq -n '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: $ARGS.positional, action: "SCMP_ACT_ERRNO"}]}' --args -- "${@:2}" >"$profiles/$1.json"
}
profile no-chmod chmod fchmodat fchmodat2
profile no-hostname sethostname
localhost() { echo "{profile_type: 2, localhost_ref: \"$profiles/$1.json\"}"; }

# try CONTEXT SCRIPT: a container with that security context, and what it and a further process with the same words say, which
# has to be the same: $out, sorted.
n=0
try() {
	n=$((n + 1))
	start_container "c$n" ".linux.security_context = $1" sh -c "$2; echo END; exec sleep 1000"
	wait_for_words END
	out=$(logged "$log" | sed '/^END$/d' | sort)
	cri ExecSync "{\"id\": \"$container\", \"cmd\": $(jq -cn '$ARGS.positional' --args -- sh -c "$2")}" >again
	equal "$(jq -r '(.stdout, .stderr) | @base64d' again | sed '/^$/d' | sort)" "$out" "a further process: $2"
	cri RemoveContainer "{\"id\": \"$container\"}" >/dev/null
}
status() { echo "sed -n 's/^$1:[[:space:]]*//p' /proc/self/status"; } # FIELD

say "users and groups"
start_sandbox pod
try '{run_as_user: {value: 1001}, run_as_group: {value: 1002}, supplemental_groups: [1234, 5678]}' 'id -u; id -g; id -G'
equal "$(paste -sd, <<<"$out")" "1001,1002,1002 1234 5678" "who it is"
try '{run_as_user: {value: 1001}, supplemental_groups: [range(2000; 3000)]}' 'id -G | wc -w'
equal "$out" 1001 "with many groups"
try '{run_as_username: "nobody"}' 'id -nu'
equal "$out" nobody "who it is by name"

say "the root directory, capabilities, new privileges"
try '{readonly_rootfs: true}' 'touch /x'
match "$out" 'touch: /x: Read-only file system' "what it says"
try '{readonly_rootfs: false}' 'touch /x'
equal "$out" "" "what it says"
try '{capabilities: {drop: ["ALL"]}}' "$(status CapBnd); $(status CapEff)"
equal "$(paste -sd, <<<"$out")" "0000000000000000,0000000000000000" "without capabilities"
try '{capabilities: {drop: ["NET_RAW"], add: ["NET_ADMIN"]}}' "$(status CapEff)"
equal $((0x$out >> 12 & 3)) 1 "NET_ADMIN and not NET_RAW"
if is_vm; then
	try '{capabilities: {add: ["NET_ADMIN"]}}' 'ip link set lo mtu 65000; brctl addbr b0 && ls -d /sys/class/net/b0/bridge && brctl delbr b0'
	equal "$out" /sys/class/net/b0/bridge "what a NET_ADMIN may"
fi
try '{}' 'ip link set lo mtu 65000; brctl addbr b1'
match "$out" 'Operation not permitted.*Operation not permitted' "what others are"
try '{no_new_privs: true}' "$(status NoNewPrivs)"
equal "$out" 1 "no new privileges"
try '{no_new_privs: false}' "$(status NoNewPrivs)"
equal "$out" 0 "new privileges"

say "system calls: the runtime's profile, one of a file, none"
# The vsock of such a machine leads nowhere, so it needs no filter to keep an app from that.
none=$(is_vm && echo 0 || echo 2)
try '{seccomp: {profile_type: 0}}' "$(status Seccomp)"
equal "$out" 2 "the mode of a filter"
try '{seccomp: {profile_type: 1}}' "$(status Seccomp)"
equal "$out" "$none" "the mode of none"
try '{}' "$(status Seccomp)"
equal "$out" "$none" "the mode where nothing is said"
try "{seccomp: $(localhost no-chmod)}" 'chmod 400 /; mkdir -p /x && echo made'
equal "$(paste -sd, <<<"$out")" "chmod: /: Operation not permitted,made" "what a profile refuses"
admin='capabilities: {add: ["SYS_ADMIN"]}'
for seccomp in '{profile_type: 0}' '{profile_type: 1}'; do
	try "{$admin, seccomp: $seccomp}" 'hostname pod && echo named' # as it is
	equal "$out" named "an administrator with $seccomp"
done
try "{$admin, seccomp: $(localhost no-hostname)}" 'hostname other'
match "$out" 'Operation not permitted' "an administrator without that call"
try '{seccomp: {profile_type: 1}}' 'hostname other'
match "$out" 'Operation not permitted' "no administrator"

say "paths"
try '{masked_paths: ["/etc/passwd", "/proc/meminfo", "/tmp", "/nothing"], readonly_paths: ["/root", "/nothing"]}' \
	'cat /etc/passwd /proc/meminfo; touch /root/x /tmp/x; touch /x && echo ok'
equal "$(paste -sd, <<<"$out")" "ok,touch: /root/x: Read-only file system,touch: /tmp/x: Read-only file system" "what it finds"
try '{masked_paths: ["/proc/keys"], readonly_paths: ["/proc/sys"]}' 'cat /proc/keys /proc/kallsyms 2>/dev/null | head -c 1 | wc -c
	echo 1 >/proc/sys/kernel/msgmax'
match "$out" '^0
sh: .*/proc/sys/kernel/msgmax: Read-only file system$' "what it is told"
mkdir below
echo below >below/file
start_container below ".linux.security_context = {readonly_paths: [\"/root\"], masked_paths: [\"/root/b/file\"]} |
	.mounts = [{container_path: \"/root/b\", host_path: \"$work/below\"}]" sh -c 'touch /root/x; touch /root/b/y && cat /root/b/file && echo done'
equal "$(exit_code "$container") $(logged "$log" | sort | paste -sd,)" "0 done,touch: /root/x: Read-only file system" "a volume below a read-only path"

say "privileged"
old=$sandbox old_settings=$sandbox_settings
start_sandbox privileged '.linux.security_context.privileged = true'
try '{privileged: true}' "echo filter \$($(status Seccomp)); mkdir -p /m; mount -t tmpfs tmpfs /m && echo mounted
	: <>/proc/sys/kernel/msgmax && echo opened; hostname privileged && echo named; echo \$(ls /dev)"
devices='fd full mqueue net null ptmx pts random shm stderr stdin stdout tty urandom zero'
equal "$(paste -sd, <<<"$out")" "$devices,filter $none,mounted,named,opened" "what it may"
remove_sandbox
sandbox=$old sandbox_settings=$old_settings

say "kernel parameters of the pod; limits, and others"
start_sandbox sysctls '.linux.sysctls = {"kernel.msgmax": "12345", "net.core.somaxconn": "77"}'
start_container reader . sh -c 'cat /proc/sys/kernel/msgmax /proc/sys/net/core/somaxconn; httpd -p 80 && echo a low port'
equal "$(exit_code "$container") $(logged "$log" | paste -sd' ')" "0 12345 77 a low port" "what is set, of the network, too"
start_container limited '.linux.resources = {memory_limit_in_bytes: 67108864}' sleep 1000
if is_vm; then
	equal "$(exec_sync "$container" cat /sys/fs/cgroup/memory.max)" 67108864 "its limit"
	cri UpdateContainerResources "{\"id\": \"$container\", \"linux\": {\"memory_limit_in_bytes\": 50331648}}" >/dev/null
	equal "$(exec_sync "$container" cat /sys/fs/cgroup/memory.max)" 50331648 "another one"
fi
remove_sandbox
sandbox=$old sandbox_settings=$old_settings

say "processes of its own, and those of the pod"
own='.linux.security_context.namespace_options = {pid: 1}'
start_container own "$own" sh -c 'exec sleep 4321'
equal "$(exec_sync "$container" sh -c 'tr "\0" " " </proc/1/cmdline; ps -o args | grep -c "^sleep"')" "sleep 4321 1" "one with its own"
start_container first . sh -c 'sleep 1234 & exec sleep 2345'
first=$container
start_container second . sleep 3456
second=$container
if is_vm; then
	equal "$(exec_sync "$second" ps -o args | grep '^sleep' | sort | paste -sd,)" "sleep 1234,sleep 2345,sleep 3456" "those that share"
	! exec_sync "$second" cat /proc/1/cmdline | grep sleep || die "process 1 is one of theirs"
	exec_sync "$second" sh -c 'kill $(ps -o pid,args | sed -n "s/^ *\([0-9]*\) sleep 2345$/\1/p")'
	equal "$(exit_code "$first")" 143 "one that another has ended"
	equal "$(exec_sync "$second" ps -o args | grep '^sleep' | sort | paste -sd,)" "sleep 3456" "what it has left"
	cri StopContainer "{\"id\": \"$second\", \"timeout\": 60}" >/dev/null # without a handler it ends at once
	equal "$(exit_code "$second")" 143 "the other"
fi

say "what cannot be, and why"
refuse() { # PATTERN COMMAND...
	local pattern=$1
	shift
	! "$@" >"$work/out" 2>"$work/err" || die "not refused: $*"
	match "$(cat "$work/err")" "$pattern" "what is said"
}
refuse_sandbox() { # PATTERN NAMESPACE
	refuse "$1" cri RunPodSandbox "{\"config\": $(sandbox_config refused |
		jq -c ".linux.security_context.namespace_options = {network: 0, $2: 2}")}"
}
refuse_sandbox "the host's processes are not to be had in a pod" pid
refuse_sandbox "the host's shared memory is not to be had in a pod" ipc
refuse_sandbox "the host's network is not to be had in a pod" network
create_container device '.devices = [{container_path: "/dev/zero", host_path: "/dev/zero", permissions: "rw"}]' true
cri StartContainer "{\"id\": \"$container\"}" >/dev/null
equal "$(exit_code "$container")" 0 "with a device that every app has"
if [ -e /dev/fuse ]; then
	create_container device2 '.devices = [{container_path: "/dev/fuse", host_path: "/dev/fuse", permissions: "rw"}]' true
	refuse '"/dev/fuse" of the host is not to be had in a pod' cri StartContainer "{\"id\": \"$container\"}"
fi
echo '{"defaultAction": "SCMP_ACT_NOTIFY"}' >"$profiles/ask.json"
create_container ask ".linux.security_context.seccomp = $(localhost ask)" true
refuse 'profile: "SCMP_ACT_NOTIFY": nobody can be asked' cri StartContainer "{\"id\": \"$container\"}"
remove_sandbox
pods_gone
