#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a VM may use of the host: its processes are in a control group with limits, wherever the host has those; who is
# killed for them is named; nothing is left.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq setpriv unshare
# shellcheck source=tests/system/cgroup_lib.sh
. "$(dirname "$0")/cgroup_lib.sh"
image=$(busybox_image)
shared=$work/shared
mkdir "$shared"
chmod 755 "$work"
volume=("--volume=v,kind=host,source=$shared" "--mount=volume=v,target=/v")

groups_left() { find /sys/fs/cgroup -mindepth 1 -maxdepth 3 -path "*/husk/$uuid"; }
# The limit for a VM of so many MiB, with what running it takes (docs/decisions/0014).
limit() {
	local mib=$1
	[ "$(pod_choice acceleration)" != tcg ] || mib=$((mib + 1280))
	echo $(((mib + 128) * 1024 * 1024 + $1 * 1024 * 1024 / 128))
}

say "who serves a VM is in the group of its pod, in each hierarchy, with the limits"
run_in_background --net=none --memory=512Mi --cpus=2 "${volume[@]}" "$image" -- sh -c 'echo up; sleep 1000'
wait_for_line "$work/pod.out" up $pod
who="qemu-system virtiofsd "
[ "$(pod_choice vsock)" = kernel ] || who="husk-vsock $who"
names_in() { # GROUP
	local process
	while read -r process; do
		cut -c1-11 "/proc/$process/comm"
	done <"$1/cgroup.procs" | sort -u | tr '\n' ' '
}
for controller in memory pids cpu; do
	equal "$(names_in "$(group $controller)")" "husk-virtio $who" "processes in the group for $controller"
done
equal "$(value memory memory.limit_in_bytes memory.max)" $(($(limit 512) + 512 * 1024 * 2048)) "limit of memory, with files"
equal "$(value pids pids.max pids.max)" 514 "limit of threads"
match "$(value cpu cpu.shares cpu.weight)" '^(2048|200)$' "share of processors"
match "$(value cpu cpu.cfs_quota_us cpu.max)" '^200000( 100000)?$' "quota of processors"
[ -z "$(comm -12 <(sort "$(group memory)/cgroup.procs") <(pgrep -f "^[^ ]*stage1-kvm/bin/run" | sort))" ] ||
	die "the supervisor is in there"
expect 0 husk stop "$uuid"
wait $pod || :
equal "$(groups_left)" "" "groups after the end"

say "without --cpus a share, and no quota"
run_in_background --net=none --memory=256Mi "$image" -- sh -c 'echo up; sleep 1000'
wait_for_line "$work/pod.out" up $pod
equal "$(value memory memory.limit_in_bytes memory.max)" "$(limit 256)" "limit of memory"
match "$(value cpu cpu.cfs_quota_us cpu.max)" '^(-1|max 100000)$' "quota of processors"

say "what the guest has free is the host's again"
pss() { awk '/^Pss:/ {print $2}' "/proc/$vmm/smaps_rollup"; }
vmm=$(vmm_process "$uuid")
idle=$(pss)
expect 0 husk app exec --app=busybox "$uuid" dd if=/dev/zero of=/dev/shm/x bs=1M count=100
used=$(pss)
# Some of what was free before it had not given back yet.
[ $((used - idle)) -gt $((50 * 1024)) ] || die "it uses $used KiB, and before $idle"
expect 0 husk app exec --app=busybox "$uuid" rm /dev/shm/x
deadline=$((SECONDS + vm_limit))
until [ $((used - $(pss))) -gt $((80 * 1024)) ]; do
	[ $SECONDS -lt $deadline ] || die "it still uses $(pss) KiB, of $used"
	read -rt 0.2 <> <(:) || :
done

say "out of it: the kernel kills the VM, and husk says why"
used=$(value memory memory.usage_in_bytes memory.current)
echo $((used + 24 * 1024 * 1024)) >"$(group memory)/$([ -e /sys/fs/cgroup/memory ] && echo memory.limit_in_bytes || echo memory.max)"
expect 254 husk app exec --app=busybox "$uuid" dd if=/dev/zero of=/dev/shm/x bs=1M count=110 || :
code=0
wait $pod || code=$?
equal $code 254 "exit code of husk run"
match "$(cat "$work/pod.err")" "^stage1: the kernel killed the VM, which took more than $(($(limit 256) / 1024 / 1024)) MiB of the host's memory: its own 256 MiB, and what is" \
	"what husk says"
equal "$(groups_left)" "" "groups after that"

say "a supervisor that is killed leaves them to gc"
run_in_background --net=none "$image" -- sh -c 'echo up; sleep 1000'
wait_for_line "$work/pod.out" up $pod
kill -9 "$(pgrep -f "^[^ ]*stage1-kvm/bin/run .*$uuid")"
wait $pod 2>/dev/null || :
[ -n "$(groups_left)" ] || die "no groups are left, which gc could remove"
expect 0 husk gc --grace-period=0s
equal "$(groups_left)" "" "groups after gc"

say "two processors' work on one that was asked for"
run_in_background --net=none --cpus=1 "$image" -- sh -c 'while :; do :; done & dd if=/dev/zero of=/x bs=1M count=64 2>/dev/null; echo up; while :; do :; done'
wait_for_line "$work/pod.out" up $pod
uses_at_most 110 5
expect 0 husk stop --force "$uuid"
wait $pod || :

say "no groups, no limits: root is told, and the pod runs"
expect 0 unshare --mount sh -c 'umount -lR /sys/fs/cgroup && exec "$@"' sh "$husk_bin" "--dir=$data" run "${run_options[@]}" --net=none \
	"$image" -- echo ran
equal "$out" ran "output"
one_line_error '^stage1: warning: pod [-0-9a-f]*: no control groups are mounted that could be used'

say "somebody else is told with --debug only"
mkdir "$work/his"
chown 65534:65534 "$work/his"
cp -r "$image" "$work/image"
chmod -R a+rX "$work/image"
groups=$(stat -c %g /dev/kvm 2>/dev/null) || groups=65534
as_user() {
	HOME=$work/his setpriv --reuid=65534 --regid=65534 "--groups=$groups" --pdeathsig=keep timeout "$vm_limit" "$husk_bin" \
		"--dir=$work/his/data" --system-config= --local-config= run --insecure-options=image "${run_options[@]}" --net=none "$@"
}
expect 0 as_user "$work/image" -- echo ran
equal "$err" "" "messages"
expect 0 as_user --debug "$work/image" -- echo ran
match "$err" 'stage1: warning: pod [-0-9a-f]*: (this user may make no control group|no control groups are mounted that this user)' "with --debug"

say "more memory than the machine has: said before anything is made"
expect 254 husk run --memory=1Ti docker://registry.invalid/none
one_line_error 'a VM of 1048576 MiB: this machine has [0-9]+ MiB of memory and [0-9]+ MiB of swap space \(give a smaller --memory\)'
expect 254 husk run "$image" --memory=1000Gi -- true
one_line_error 'a VM of 1024128 MiB, for the memory limits of the apps: this machine has [0-9]+ MiB of memory and [0-9]+ MiB of swap'
