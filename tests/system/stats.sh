#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What apps use, counted in the guest, and what their pod costs on the host; and that asking for it is in nobody's way.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq
busybox=$(busybox_image)
MiB=1048576

# start_app NAME COMMAND: in the pod, with /bin/sh.
start_app() {
	expect 0 husk app add "$uuid" "$busybox" --name="$1" ${3:+"$3"} -- sh -c "$2"
	expect 0 husk app start --app="$1" "$uuid"
}

# number FILTER: what jq finds in the JSON of all apps, which must be a number.
number() {
	local n
	n=$(jq "$1" "$work/stats.json")
	match "$n" '^[0-9]+$' "$1"
	echo "$n"
}

at_least() { # NUMBER MINIMUM WHAT
	[ "$1" -ge "$2" ] || die "$3: $1 is less than $2"
}

get_stats() {
	expect 0 husk stats --format=json "$uuid"
	cp "$work/out" "$work/stats.json"
}

expect 0 husk app sandbox --detach "${run_options[@]}"
uuid=$out
expect 0 husk stats --format=json "$uuid"
equal "$(jq -c '.pod, .apps' <<<"$out" | tr '\n' ' ')" "\"$uuid\" [] " "an empty pod"

start_app burn 'echo burning; while :; do :; done'
# What it holds is in its /dev/shm, which counts as its memory; what it writes goes to the pod's disk.
start_app hold 'dd if=/dev/zero of=/dev/shm/x bs=1M count=32 && dd if=/dev/zero of=/x bs=1M count=8 conv=fsync
	echo held; exec sleep 1000' --memory=64Mi
expect 0 husk app add "$uuid" "$busybox" --name=idle -- true
wait_log burn burning
wait_log hold held

# ---- plausible numbers ----
get_stats
at_least "$(number '.apps[] | select(.name == "burn").cpu_usec')" 1 "time of the app that burns it"
at_least "$(number '.apps[] | select(.name == "burn").pids')" 1 "its processes"
hold='.apps[] | select(.name == "hold")'
at_least "$(number "$hold.memory_bytes")" $((32 * MiB)) "memory of the app that holds it"
at_least "$(number "$hold.memory_peak_bytes")" "$(number "$hold.memory_bytes")" "its peak"
equal "$(number "$hold.memory_limit")" $((64 * MiB)) "its limit"
if has_cgroup2; then
	at_least "$(number "$hold.io_write_bytes")" $((8 * MiB)) "what it has written"
	! is_vm || at_least "$(number "$hold.io_read_bytes")" 1 "what it has read, its image at least"
fi
equal "$(number "$hold.oom_kills")" 0 "processes killed"
equal "$(jq -c '.apps[] | select(.name == "idle")' "$work/stats.json")" \
	'{"name":"idle","error":"app \"idle\" is not running"}' "an app that does not run"
equal "$err" 'stats: app "idle" is not running' "the same for people"
at_least "$(number .supervisor.rss_bytes)" 1 "memory of the supervisor"
equal "$(number .supervisor.pid)" "$(cat "$data/pods/run/$uuid/pid")" "the supervisor"
if is_vm; then
	at_least "$(number .vmm.cpu_usec)" 1 "time of the VM"
	at_least "$(number .vmm.rss_bytes)" $((40 * MiB)) "memory of the VM, the app's included"
	at_least "$(number .vmm.pss_bytes)" $((40 * MiB)) "its share"
	at_least "$(number .scratch_bytes)" $((8 * MiB)) "what the scratch disk takes"
	if [ "$(pod_choice vsock)" = user ]; then
		at_least "$(number .vsock.rss_bytes)" 1 "memory of husk-vsock"
	fi
else
	for helper in keeper agent; do
		at_least "$(number .$helper.rss_bytes)" 1 "memory of the $helper"
	done
	equal "$(jq -c '[.vmm, .scratch_bytes]' "$work/stats.json")" '[null,null]' "what there is not"
fi

if is_vm; then
	total=$(number .guest.memory_total_bytes) available=$(number .guest.memory_available_bytes)
	at_least $((total - available)) $((32 * MiB)) "memory in use in the guest, the app's included"
	at_least "$(number .vmm.rss_bytes)" $((total - available)) "what it has touched"
	equal "$(number .guest.cpus)" "$(husk enter --app=burn "$uuid" nproc)" "its processors"
else
	equal "$(jq -c .guest "$work/stats.json")" null "a guest without a machine"
fi
if [ -d "/sys/fs/cgroup/husk/$uuid" ] || [ -d "/sys/fs/cgroup/memory/husk/$uuid" ]; then
	at_least "$(number .total.cpu_usec)" "$(number "[.vmm.cpu_usec // 0, (.apps[] | .cpu_usec // 0)] | max")" "time of all of the pod"
	at_least "$(number .total.memory_bytes)" $((32 * MiB)) "its memory, the app's included"
	at_least "$(number .total.pids)" 3 "its processes"
	! is_vm || at_least "$(number .total.memory_limit)" "$(number .guest.memory_total_bytes)" "its limit, the guest's included"
else
	equal "$(jq -c .total "$work/stats.json")" null "a group that is not there"
fi

# Time of the app, and of the VM if there is one.
times() { number "[(.apps[] | select(.name == \"burn\").cpu_usec), .vmm.cpu_usec // 0][$1]"; }
before=$(times 0) vmm_before=$(times 1)
tries=0
until [ "$(times 0)" -gt "$before" ] && { ! is_vm || [ "$(times 1)" -gt "$vmm_before" ]; }; do
	[ $((++tries)) -lt 500 ] || die "processor time does not grow"
	get_stats
done

# ---- for people, and of one app ----
expect 0 husk stats "$uuid"
match "$out" "^NAME[[:space:]]+CPU[[:space:]]+CPUS[[:space:]]+MEMORY[[:space:]]+LIMIT[[:space:]]+PIDS[[:space:]]+READ[[:space:]]+WRITE
burn[[:space:]]+[0-9]+\.[0-9]{2}s[[:space:]]" "the table"
match "$out" "hold[[:space:]]+[0-9.]+s[[:space:]]+-[[:space:]]+[34][0-9]MiB[[:space:]]+64MiB[[:space:]]+1[[:space:]]" "an app in the table"
! is_vm || match "$out" "\[vmm\][[:space:]]+[0-9.]+s[[:space:]]+-[[:space:]]+[0-9]+MiB" "the VM in the table"
! is_vm || match "$out" "\[guest\][[:space:]]+-[[:space:]]+[0-9]+[[:space:]]+[0-9.]+[KM]iB[[:space:]]+[0-9]+MiB" "the guest in the table"
expect 0 husk app stats --app=hold "$uuid"
equal "$(cut -f1 "$work/out" | tr '\n' ' ')" "NAME hold " "one app"
expect 0 husk app stats --app=hold --format=json-pretty "$uuid"
equal "$(jq -r '.apps[].name' <<<"$out")" hold "one app in JSON"
expect 254 husk app stats --app=idle "$uuid"
one_line_error 'stats: app "idle" is not running'
expect 254 husk stats --app=nobody "$uuid"
one_line_error 'stats: the pod has no app "nobody"'
expect 254 husk app stats "$uuid"
match "$err" "^Error: must provide the app; see husk help app stats$" "no app"

# ---- an app is stopped while others burn, flood and are asked about ----
start_app flood 'echo flooding; while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done'
start_app stubborn 'trap "" TERM; echo trapped; while :; do sleep 1000; done'
wait_log stubborn trapped
: >"$work/asking"
while [ -e "$work/asking" ]; do
	"$husk_bin" "--dir=$data" stats --format=json "$uuid" 2>/dev/null || :
done >"$work/loop.out" &
asker=$!
wait_for_line "$work/loop.out" '"flood"'
start=${EPOCHREALTIME/./}
expect 0 husk app stop --app=stubborn --grace=2 "$uuid"
say "stopped after $(((${EPOCHREALTIME/./} - start) / 1000)) ms, grace 2000 ms"
expect 0 husk app status --app=stubborn "$uuid"
match "$out" "state=exited" "after its grace"
rm "$work/asking"
wait $asker
at_least "$(grep -c '"cpu_usec"' "$work/loop.out")" 1 "answers meanwhile"

expect 0 husk stop "$uuid"
expect 254 husk stats "$uuid"
one_line_error "stats: pod \"$uuid\" isn't currently running"
