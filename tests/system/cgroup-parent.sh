#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A pod in a control group that the host has made for it: where the pod's is, whose limits hold, what is left of it.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq
# shellcheck source=tests/system/cgroup_lib.sh
. "$(dirname "$0")/cgroup_lib.sh"
image=$(busybox_image)
tenant=husktest$$

trees=(/sys/fs/cgroup)
! is_v1 memory || trees=(/sys/fs/cgroup/{memory,cpu,pids})
remove_parents() {
	local tree
	husk stop --force "${uuid-}" >/dev/null 2>&1 || :
	husk gc --grace-period=0s >/dev/null 2>&1 || :
	for tree in "${trees[@]}"; do
		rmdir "$tree/$tenant.slice/$tenant-a.slice" "$tree/$tenant.slice" "$tree/$tenant" || :
	done 2>/dev/null
}
trap 'status=$?; set +e; remove_parents; (exit $status); finish' EXIT
for tree in "${trees[@]}"; do
	mkdir -p "$tree/$tenant" "$tree/$tenant.slice/$tenant-a.slice"
	is_v1 memory || echo "+memory +pids +cpu" >"$tree/cgroup.subtree_control"
	is_v1 memory || echo "+memory +pids +cpu" >"$tree/$tenant.slice/cgroup.subtree_control"
done
groups_left() { find /sys/fs/cgroup -path "*/husk/$uuid" -o -path "*/$tenant*/husk"; }
await_none_left() {
	local deadline=$((SECONDS + vm_limit))
	while [ -n "$(groups_left)" ]; do
		[ $SECONDS -lt $deadline ] || die "left: $(groups_left)"
		read -rt 0.05 <> <(:) || :
	done
}
start() { # PARENT
	expect 0 husk run --detach "${run_options[@]}" --net=none --cgroup-parent="$1" "$image" --name=one -- sleep 100000
	uuid=$out
}

say "a path: the pod is counted there, and can be limited"
parent=$tenant
start "/$tenant/"
for controller in memory cpu pids; do
	[ -d "$(group $controller)" ] || die "no group for $controller: $(groups_left)"
done
equal "$(find /sys/fs/cgroup -path "*/husk/$uuid" -path "*/memory/*" | wc -l)" "$(is_v1 memory && echo 1 || echo 0)" "groups for memory"
[ "$(husk stats --format=json "$uuid" | jq .total.memory_bytes)" -gt 0 ] || die "husk stats: no memory"
expect 0 husk update --cpu=700m "$uuid"
match "$(value cpu cpu.cfs_quota_us cpu.max)" '^70000( 100000)?$' "quota of processors"
expect 0 husk app exec --app=one "$uuid" true
expect 0 husk stop "$uuid"
await_none_left

say "a slice, which stays when the pod goes, with limits of its own"
parent=$tenant.slice/$tenant-a.slice
start "$tenant-a.slice"
limits=$(dirname "$(dirname "$(group pids)")")
equal "$limits" "${trees[-1]}/$parent" "where the group is"
[ "$(cat "$limits/pids.current")" -gt 0 ] || die "no process is counted in the slice"
if ! is_vm; then
	echo $(($(cat "$limits/pids.current") + 10)) >"$limits/pids.max" # what the command itself needs, and some more
	expect 0 husk app exec --app=one "$uuid" sh -c 'for i in $(seq 20); do sleep 1 & done 2>&1 | grep -c "fork"; wait; :'
	match "$out" '^[1-9]' "forks that the slice refused"
	echo max >"$limits/pids.max"
fi

say "a supervisor that is killed leaves the groups to gc, which finds them"
kill -9 "$(husk status "$uuid" | sed -n 's/^pid=//p')"
expect 0 husk gc --grace-period=0s
await_none_left
[ -d "$limits" ] || die "the slice is gone"

say "one of the pod's own: it is made, with what is missing above, has the supervisor in it, and goes with the pod"
parent=$tenant/a/b
start "+/$tenant/a/b"
[ -d "$(group pids)" ] || die "no group: $(groups_left)"
match "$(cat "/proc/$(husk status "$uuid" | sed -n 's/^pid=//p')/cgroup")" "[:,]pids[^:]*:/$tenant/a/b/husk/$uuid-supervisor|0::/$tenant/a/b/husk/$uuid-supervisor" \
	"the group of the supervisor"
expect 0 husk app exec --app=one "$uuid" true
expect 0 husk stop "$uuid"
expect 0 husk rm "$uuid"
equal "$(find /sys/fs/cgroup -type d -path "*/$tenant/a/*")" "" "what is left in there"
find /sys/fs/cgroup -path "*/$tenant/a" -exec rmdir {} +
for tree in /sys/fs/cgroup/*/"$tenant"; do # trees that had none
	case " ${trees[*]} " in *" ${tree%/*} "*) ;; *) [ ! -d "$tree" ] || rmdir "$tree" ;; esac
done

say "a prepared pod, and one that is made without an app"
expect 0 husk prepare "$image" -- sh -c true
uuid=$out
expect 0 husk run-prepared "${run_options[@]}" --net=none --cgroup-parent="/$tenant" "$uuid"
[ -f "$(find "$data/pods" -path "*/$uuid/cgroup-parent")" ] || die "the pod does not know its group"
expect 0 husk app sandbox --detach "${run_options[@]}" --net=none --cgroup-parent="/$tenant"
uuid=$out parent=$tenant
[ -d "$(group memory)" ] || die "no group: $(groups_left)"
expect 0 husk stop --force "$uuid"
expect 0 husk gc --grace-period=0s
await_none_left

say "what is not there, and what is no group"
for bad in "/$tenant/none" "$tenant-b.slice" "/sys/fs/cgroup/$tenant"; do
	expect 254 husk run "${run_options[@]}" --net=none --cgroup-parent="$bad" "$image" -- true
	one_line_error "^stage1: there is no control group \"/.*\" that this pod's could be in \(make it first; paths begin at the top of a tree\)$"
done
for bad in "" "$tenant" /a/../b + +/; do
	expect 254 husk run --cgroup-parent="$bad" docker://registry.invalid/none
	one_line_error "--cgroup-parent=${bad/+/\\+} is neither a path of a control group \(/a/b\), of up to 511 bytes, nor a slice \(a-b.slice\), nor one for this pod \(\+/a/b\)$"
done

if is_vm; then
	say "libvirt has its own groups"
	expect 254 husk run --vmm=libvirt --libvirt-uri=qemu:///embed --net=none --cgroup-parent="/$tenant" "$image" -- true
	one_line_error '^stage1: --cgroup-parent: where a domain of libvirt is counted is libvirt.s to say \(leave it out, give / or --vmm=qemu\)$'
fi
