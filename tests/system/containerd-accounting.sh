#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pods of Kubernetes in the control groups that a kubelet makes for them: what is counted there, whose limits hold, how large
# the machine is, by limits and by what annotations ask for, what is left.
# shellcheck source=tests/system/cri_lib.sh
. "$(dirname "$0")/cri_lib.sh"
require skopeo
# shellcheck source=tests/system/cgroup_lib.sh
. "$top/tests/system/cgroup_lib.sh"
tenant=husktest$$
trees=(/sys/fs/cgroup)
! is_v1 memory || trees=(/sys/fs/cgroup/{memory,cpu,pids})
remove_groups() {
	local tree
	for tree in "${trees[@]}" /sys/fs/cgroup/{unified,blkio,cpuacct,devices}; do
		find "$tree" -depth -path "$tree/$tenant*" -type d -exec rmdir {} +
	done 2>/dev/null || :
}
trap 'status=$?; set +e; remove_groups; (exit $status); end_all' EXIT
for tree in "${trees[@]}"; do
	mkdir -p "$tree/$tenant/pod1"
	is_v1 memory || echo "+memory +pids +cpu" | tee "$tree/cgroup.subtree_control" "$tree/$tenant/cgroup.subtree_control" >/dev/null
done
# The least that machines have.
! is_vm || { jq '.options.memory = "384Mi"' "$config/stage1.d/stage1.json" >stage1.json && mv stage1.json "$config/stage1.d"; }
start_cri

descendants() { # PID
	local child
	echo "$1"
	for child in $(pgrep -P "$1"); do descendants "$child"; done
}
in_group() { # PID: its group, of version 1 that which counts memory
	if is_v1 memory; then sed -n 's/^[0-9]*:memory:\(.*\)/\1/p' "/proc/$1/cgroup"; else sed -n 's/^0::\(.*\)/\1/p' "/proc/$1/cgroup"; fi
}
# Whether the processes of the pod are all in its group below PATH, of which there are some.
accounted() { # PATH
	local pid n=0 in
	for pid in $(descendants "$(husk status "$uuid" | sed -n 's/^pid=//p')"); do
		in=$(in_group "$pid" 2>/dev/null) || continue # it has ended
		match "$in" "^$1/husk/$uuid(-supervisor)?(/.*)?\$" "the group of $(cat "/proc/$pid/comm")"
		n=$((n + 1))
	done
	[ $n -gt 1 ] || die "the pod has $n processes"
}
find_pod() { uuid=$(husk list --format=json | jq -r '.[] | select(.state == "running").name'); }
groups_left() { find /sys/fs/cgroup -path "*/$tenant*" -name husk -o -name "*$sandbox*" -o -name "*$uuid*"; }
count() { # FILE-OF-VERSION-1 FILE-OF-VERSION-2 of memory, in the group of the pod as a kubelet sees it
	cat "${trees[0]}/$tenant/pod1/$(if is_v1 memory; then echo "$1"; else echo "$2"; fi)"
}

say "in the group of the pod: each process, and what it uses"
start_sandbox one ".linux = {cgroup_parent: \"/$tenant/pod1\", resources:
	{memory_limit_in_bytes: 536870912, cpu_quota: 150000, cpu_period: 100000}}"
find_pod
accounted "/$tenant/pod1/$sandbox"
start_container web '.linux.resources.memory_limit_in_bytes = 209715200' sh -c 'head -c 20000000 /dev/zero >/dev/shm/x; echo ready; exec sleep 100000'
wait_for_words ready
exec_sync "$container" true
accounted "/$tenant/pod1/$sandbox"
[ "$(count memory.usage_in_bytes memory.current)" -gt 20000000 ] || die "what the container uses is not counted"
[ "$(cat "${trees[-1]}/$tenant/pod1/pids.current")" -gt 1 ] || die "its processes are not counted"

if is_vm; then
	say "a machine as large as what its containers are to have, not the 384 MiB that are configured"
	kib=$(exec_sync "$container" sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
	if [ "$kib" -le $((600 << 10)) ] || [ "$kib" -gt $((640 << 10)) ]; then die "the machine has $kib KiB"; fi
	equal "$(exec_sync "$container" grep -c ^processor /proc/cpuinfo)" 2 "its processors"
	create_container large '.linux.resources.memory_limit_in_bytes = 734003200' true
	! cri StartContainer "{\"id\": \"$container\"}" 2>"$work/err" || die "a container larger than the machine runs"
	match "$(cat "$work/err")" 'its memory limit, 700 MiB, is beyond the VM, which has 640 MiB' "what is said of it"

	say "a group that has less than the machine takes"
	start_container greedy . sh -c 'echo ready; read x; head -c 150000000 /dev/zero >/dev/shm/y'
	wait_for_words ready
	used=$(count memory.usage_in_bytes memory.current)
	echo $((used + (40 << 20))) >"${trees[0]}/$tenant/pod1/$(if is_v1 memory; then echo memory.limit_in_bytes; else echo memory.max; fi)"
	cri ExecSync "{\"id\": \"$container\", \"cmd\": [\"sh\", \"-c\", \"head -c 150000000 /dev/zero >/dev/shm/y\"]}" >/dev/null 2>&1 || :
	until_true sandbox_is "$sandbox" 1
	until_true grep -q "husk: pod $uuid: .*the kernel killed the VM, which took more than .*; or than there was in control group /$tenant/pod1/$sandbox" \
		"$work/containerd.log"
fi
remove_sandbox
pods_gone
equal "$(groups_left)" "" "groups that are left"
for tree in "${trees[@]}"; do [ -d "$tree/$tenant/pod1" ] || die "$tree/$tenant/pod1 is gone, which is not the pod's"; done

say "a slice of systemd, where the group is called as that of a container of runc"
start_sandbox two ".linux = {cgroup_parent: \"/$tenant-a.slice\"}"
find_pod
accounted "/$tenant.slice/$tenant-a.slice/cri-containerd-$sandbox.scope"
remove_sandbox
equal "$(groups_left)" "" "groups that are left"

say "nobody has named one; and an administrator who has"
start_sandbox three
find_pod
accounted "/k8s.io/$sandbox"
remove_sandbox
jq '.options["cgroup-parent"] = "/"' "$config/stage1.d/stage1.json" >stage1.json && mv stage1.json "$config/stage1.d"
start_sandbox four ".linux = {cgroup_parent: \"/$tenant/pod1\"}"
find_pod
equal "$(find "${trees[@]}" -path "*/$tenant/*" -name "*$uuid*")" "" "groups where the kubelet says"
[ -d "${trees[0]}/husk/$uuid" ] || die "the group is not where the administrator says"
remove_sandbox
pods_gone

say "annotations: what no administrator has allowed, what this stage1 has not, what there is none of"
allow() { jq --argjson names "$1" '.annotations = $names' "$config/stage1.d/stage1.json" >stage1.json && mv stage1.json "$config/stage1.d"; }
refused_pod() { # ANNOTATION VALUE PATTERN
	local pods
	pods=$(husk list --format=json | jq length)
	! start_sandbox refused ".annotations = {\"$1\": \"$2\"}" 2>"$work/err" || die "a pod with annotation $1: $2"
	match "$(cat "$work/err")" "annotation \"$1\": $3" "what is said of annotation $1: $2"
	equal "$(husk list --format=json | jq length)" "$pods" "pods that are left"
}
refused_pod husk/memory 600Mi 'not allowed on this node \(its administrator can, with "annotations": \["memory"\] in a file of stage1.d\)'
allow '["kernel", "memory"]'
refused_pod husk/cpus 2 'not allowed on this node'
refused_pod husk/pids-limit 2 'there is none of that name'
if is_vm; then
	refused_pod husk/kernel /boot 'not a kernel, which are auto, small and packaged'
else
	refused_pod husk/kernel small "pods of this node's stage1 have no \"kernel\""
fi
! start_sandbox refused '.annotations = {"husk/memory": "much"}' 2>"$work/err" || die "a pod with much memory"
match "$(cat "$work/err")" 'annotation "husk/memory": not a size' "what is said of a size that is none"

say "what they ask for"
allow '["cpus", "memory"]'
start_sandbox five ".annotations = {\"husk/memory\": \"600Mi\", \"husk/cpus\": \"2\"}"
find_pod
start_container web . sleep 100000
if is_vm; then
	kib=$(exec_sync "$container" sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
	if [ "$kib" -le $((560 << 10)) ] || [ "$kib" -gt $((600 << 10)) ]; then die "the machine has $kib KiB"; fi
	equal "$(exec_sync "$container" grep -c ^processor /proc/cpuinfo)" 2 "its processors"
else
	limit=$(if is_v1 memory; then echo memory.limit_in_bytes; else echo memory.max; fi)
	equal "$(cat "${trees[0]}/husk/$uuid/$limit")" $((600 << 20)) "the limit of the pod"
fi
remove_sandbox
pods_gone
