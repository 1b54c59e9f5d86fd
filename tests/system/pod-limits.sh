#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a pod as a whole may use of the host: from its start where it is namespaces, and changed while it runs.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq unshare setpriv
# shellcheck source=tests/system/cgroup_lib.sh
. "$(dirname "$0")/cgroup_lib.sh"
image=$(busybox_image)
MiB=1048576

# has MEMORY QUOTA SHARES PIDS: in the kernel's words; QUOTA in thousandths of a processor, max where there is none.
has() {
	local quota memory shares
	memory=$(value memory memory.limit_in_bytes memory.max)
	[ "${#memory}" -lt 19 ] || memory=max
	quota=$(value cpu cpu.cfs_quota_us cpu.max)
	quota=${quota%% *}
	case $quota in -1 | max) quota=max ;; *) quota=$((quota / 100)) ;; esac
	if is_v1 cpu; then shares=$(value cpu cpu.shares -); else shares=$(($(value cpu - cpu.weight) * 1024 / 100)); fi
	equal "$memory $quota $shares $(value pids pids.max pids.max)" "$*" "limits of the pod"
}
refused() { # MESSAGE WORDS...
	local message=$1
	shift
	expect 254 husk update "$@" "$uuid"
	one_line_error "$message"
}
logged() { cat "$data"/pods/*/"$uuid"/supervisor.log; }

if is_vm; then
	say "a VM: its processor time can be changed, its size cannot"
	expect 0 husk run --detach "${run_options[@]}" --net=none "$image" --name=one -- sleep 100000
	uuid=$out
	expect 0 husk status "$uuid"
	memory=$(value memory memory.limit_in_bytes memory.max) pids=$(value pids pids.max pids.max)
	has "$memory" max 1024 "$pids"
	expect 0 husk update --cpu=300m --cpu-shares=2048 "$uuid"
	equal "$out$err" "" "an update"
	has "$memory" 300 2048 "$pids"
	expect 0 husk update --cpu=none "$uuid"
	has "$memory" max 2048 "$pids"
	refused '^update: error updating pod: --memory: a VM keeps the size that it was started with \(start a pod with --memory=SIZE, or limit an app with --app\)$' \
		--memory=1Gi --cpu=1
	refused '^update: error updating pod: --pids-limit: processes of a VM are no processes of this host \(limit an app with --app\)$' --pids-limit=99
	has "$memory" max 2048 "$pids"
	expect 0 husk stop "$uuid"
	exit 0
fi

say "a pod of namespaces has them from its start"
expect 0 husk run --detach "${run_options[@]}" --memory=48Mi --cpus=1.5 --pids-limit=60 \
	"$image" --name=one --cpu=400m -- sh -c 'dd if=/dev/zero of=/dev/shm/kept bs=1M count=24 2>/dev/null; echo filled; sleep 100000' \
	--- "$image" --name=two -- sleep 100000
uuid=$out
wait_log one filled
has $((48 * MiB)) 1500 1536 60

say "they can be changed, also while the supervisor does nothing"
supervisor=$(husk status "$uuid" | sed -n 's/^pid=//p')
kill -STOP "$supervisor"
expect 0 husk update --memory=64Mi --cpu=500m --cpu-shares=2048 "$uuid"
kill -CONT "$supervisor"
equal "$out$err" "" "an update"
has $((64 * MiB)) 500 2048 60
expect 0 husk update --pids-limit=70 "$uuid"
has $((64 * MiB)) 500 2048 70

say "less than it uses is refused, with all that was to come with it"
refused '^update: error updating pod: cannot limit its memory to 8388608 bytes: it uses [0-9]* that the kernel cannot take back \(let it free some, or stop it first\)$' \
	--memory=8Mi --pids-limit=50 --cpu=600m
has $((64 * MiB)) 500 2048 70
if is_v1 cpu; then
	refused '^update: error updating pod: cannot limit its processors so: with control groups of version 1 an app'\''s limit must not be beyond its pod'\''s' \
		--cpu=200m --pids-limit=50
	has $((64 * MiB)) 500 2048 70
fi

say "several at once: the kernel has what one of them said, whole"
for n in 61 62 63 64 65 66; do
	"$husk_bin" "--dir=$data" update --memory=${n}Mi --pids-limit=$n "$uuid" 2>"$work/err.$n" &
done
wait
equal "$(cat "$work"/err.*)" "" "what they say"
n=$(value pids pids.max pids.max)
has $((n * MiB)) 500 2048 "$n"

say "none: as if nobody had said anything"
expect 0 husk update --memory=none --cpu=none --cpu-shares=none --pids-limit=none "$uuid"
has max max 1024 4096

say "out of memory: the largest process dies for it, and the others live"
expect 0 husk update --memory=40Mi "$uuid"
expect 137 husk app exec --app=two "$uuid" dd if=/dev/zero of=/dev/null bs=60M count=1
expect 0 husk app exec --app=two "$uuid" true
expect 0 husk status "$uuid"
match "$out" 'state=running' "the pod"

say "refused as well"
refused '^Error: must provide a limit to change; see husk help update$'
refused '^Error: --memory: "5" is less than 4096 bytes' --memory=5
refused '^Error: --cpu: given twice; see husk help update$' --cpu=1 --cpu=none
expect 0 husk stop "$uuid"
refused "^update: error updating pod: pod \"$uuid\" isn't currently running$" --cpu=1
for bad in --memory=15Mi --memory=x --cpus=0 --cpus=9m; do
	expect 254 husk run "$bad" docker://registry.invalid/none
	one_line_error "$bad: not a (size from 16Mi to 1Ti|number of processors from 10m to 1024)"
done

say "the agent is killed for it: that is said"
expect 0 husk run --detach "${run_options[@]}" --memory=24Mi "$image" --name=one -- \
	sh -c 'until [ -e /go ]; do usleep 20000; done; while :; do dd if=/dev/zero of=/dev/null bs=60M count=1; done'
uuid=$out
agent=$(husk stats --format=json "$uuid" | jq .agent.pid)
echo 1000 >"/proc/$agent/oom_score_adj"
let_go "$uuid" one
deadline=$((SECONDS + vm_limit))
until expect 0 husk status "$uuid" && grep -q '^state=exited' "$work/out"; do
	[ $SECONDS -lt $deadline ] || die "it lives: $out"
	read -rt 0.05 <> <(:) || :
done
match "$(logged)" 'the pod ended unexpectedly: husk-agent: killed by signal 9, and the memory of the pod was short \(give it more with --memory\)' \
	"why it ended"

say "the least memory is enough for a small app"
expect 0 husk run "${run_options[@]}" --memory=16Mi "$image" -- echo ran
equal "$out" ran "output"

say "the time of half a processor, for two that want all they can get"
run_in_background --cpus=500m "$image" -- sh -c 'echo up; while :; do :; done & while :; do :; done'
wait_for_line "$work/pod.out" up $pod
uses_at_most 55 4
expect 0 husk stop --force "$uuid"
wait $pod || :

say "no control groups: what was asked for is refused, and so is a change"
without_groups() {
	unshare --mount sh -c 'umount -lR /sys/fs/cgroup && exec "$@"' sh "$husk_bin" "--dir=$data" "$@"
}
expect 254 without_groups run "${run_options[@]}" --net=none --memory=64Mi "$image" -- echo ran
one_line_error '^stage1: limits of the pod: pod [-0-9a-f]*: no control groups are mounted that could be used'
expect 0 without_groups run --detach "${run_options[@]}" --net=none "$image" -- sleep 1000
uuid=$out
refused '^update: error updating pod: it has no control group on this host \(' --cpu=1
expect 0 husk stop "$uuid"
