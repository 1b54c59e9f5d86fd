#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What confines an app, seen from inside, of the app itself and of a process that husk enter starts in it; limits that
# really limit.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq
busybox=$(busybox_image)
debian=$(debian_image)

expect 0 husk app sandbox --detach "${run_options[@]}"
uuid=$out

# add NAME IMAGE WORDS...: an app that runs.
add() {
	local name=$1 image=$2
	shift 2
	expect 0 husk app add "$uuid" "$image" "--name=$name" "$@"
	expect 0 husk app start "--app=$name" "$uuid"
}

# wait_exit NAME: until the app has ended; its status in $out.
wait_exit() {
	local tries=0
	until expect 0 husk app status "--app=$1" --format=json "$uuid" && [ "$(jq -r .state <<<"$out")" = exited ]; do
		[ $((++tries)) -lt 600 ] || die "app $1 does not end: $out"
		read -rt 0.05 <> <(:) || :
	done
}

# both APP COMMAND TEXT WHAT: the same of the app, whose log has what COMMAND printed, and of a further process.
both() {
	expect 0 husk app exec "--app=$1" "$uuid" sh -c "$2"
	equal "$out" "$3" "$4, of a further process"
	add "$1-self" "$busybox" "${app_flags[@]}" -- sh -c "$2"
	wait_exit "$1-self"
	expect 0 husk logs "--app=$1-self" "$uuid"
	equal "$out" "$3" "$4, of the app"
	expect 0 husk app rm "--app=$1-self" "$uuid"
}

# shellcheck disable=SC2016 # for awk
status='awk "/^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp|Groups):/ { print \$1, \$2, \$3 }" /proc/self/status'

say "the defaults"
app_flags=()
add plain "$busybox" -- sleep 100000
both plain "$status" "Groups:  
CapInh: 0000000000000000 
CapPrm: 00000000a80425fb 
CapEff: 00000000a80425fb 
CapBnd: 00000000a80425fb 
CapAmb: 0000000000000000 
NoNewPrivs: 0 
Seccomp: 2 " "status"
ids=$(is_vm && echo "0 4294967295" || echo "$((0x70000000 + 0x${uuid:0:4} % 0xf00 * 65536)) 65536")
both plain 'cat /proc/self/uid_map | tr -s " "' " 0 $ids" "user namespace"
both plain 'ls -A /sys/firmware /sys/fs 2>/dev/null | grep -v "^/sys\|^$"; head -c 1 /proc/kcore /proc/kallsyms /proc/vmallocinfo /proc/slabinfo /proc/iomem /sys/kernel/notes /sys/kernel/vmcoreinfo 2>/dev/null | grep -v "^==\|^$"; echo hidden' \
	"$(! has_cgroup2 || echo cgroup; echo hidden)" "hidden paths"
# Each is of the kernel, or of the pod, and so of every app. The last is none: it may be written, and it says so.
# shellcheck disable=SC2016
both plain 'for f in fs/file-max fs/suid_dumpable kernel/core_pattern kernel/shmmax kernel/pid_max kernel/panic vm/panic_on_oom vm/drop_caches net/ipv4/ip_forward; do (echo 1 >/proc/sys/$f) 2>/dev/null && echo $f; done; (echo f >/proc/irq/default_smp_affinity) 2>/dev/null && echo irq; for f in kernel/mm/transparent_hugepage/enabled devices/system/cpu/cpu0/power/control kernel/rcu_expedited; do (echo 1 >/sys/$f) 2>/dev/null && echo $f; done; (echo 0 >/proc/self/oom_score_adj) && echo done' \
	"done" "paths that may only be read"
if has_cgroup2; then
	both plain 'cat /proc/self/cgroup; cd /sys/fs/cgroup && test -e cgroup.procs && grep -c . memory.max; (echo 1 >memory.max) 2>/dev/null || echo read-only; mkdir x 2>/dev/null || echo read-only' \
		"$(printf '0::/\n1\nread-only\nread-only')" "the control group"
else
	both plain "test -e /sys/fs/cgroup || echo none; grep -c 'husk\|$uuid' /proc/self/cgroup || :" $'none\n0' "control groups of version 1"
fi
expect 0 husk app exec --app=plain "$uuid" readlink /proc/self/ns/ipc
match "$out" '^ipc:\[[0-9]+\]$' "the IPC namespace"
[ "$out" != "ipc:[4026531839]" ] || die "the pod's IPC namespace is the first one of its kernel"
# Root of a user namespace makes none, of whatever device.
refused_node() { if is_vm; then echo "cat: can't open '/$1/d': Permission denied"; else echo "mknod: /$1/d: Operation not permitted"; fi; }
# shellcheck disable=SC2016
both plain 'for d in "b 8 0" "c 1 1" "c 10 232" "c 5 2"; do mknod /tmp/d $d; mknod /dev/d $d; done 2>&1; mknod /tmp/d c 1 3 2>&1 && { cat /tmp/d 2>&1; rm /tmp/d; }; ls /dev | sort | tr "\n" " "' \
	"$(for _ in 1 2 3 4; do printf 'mknod: /%s/d: Operation not permitted\n' tmp dev; done)
$(refused_node tmp)
fd full mqueue net null ptmx pts random shm stderr stdin stdout tty urandom zero " "device nodes"
app_flags=('--seccomp=@appc.io/all')
add unfiltered "$busybox" "${app_flags[@]}" -- sleep 100000
both unfiltered 'for d in /tmp/d /dev/d; do mknod $d b 8 0 2>&1 && { cat $d 2>&1; rm $d; }; done; :' \
	"$(refused_node tmp; refused_node dev)" "device nodes without a filter"
expect 0 husk app rm --grace=0 --app=unfiltered "$uuid"
app_flags=()
add other "$busybox" -- sleep 4711
both plain 'cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -c "[s]leep 4711" || :' 0 "processes of another app"
expect 0 husk app rm --grace=0 --app=other "$uuid"
both plain 'mount -t tmpfs x /mnt 2>/dev/null || echo no mount; unshare -m true 2>/dev/null || echo no namespace; hostname x 2>/dev/null || echo no name' \
	"$(printf 'no mount\nno namespace\nno name')" "system calls of the administrator"

say "AF_VSOCK, whatever the filter"
vsock='import socket
try:
    socket.socket(40, socket.SOCK_STREAM)
    print("vsock")
except OSError as e:
    print(e.errno)'
add python "$debian" -- sleep 100000
expect 0 husk app exec --app=python "$uuid" python3 -c "$vsock"
equal "$out" 97 "a vsock socket, of a further process"
expect 0 husk app rm --grace=0 --app=python "$uuid"
add python "$debian" --seccomp=mode=retain,@appc.io/all -- python3 -c "$vsock"
wait_exit python
expect 0 husk logs --app=python "$uuid"
equal "$out" 97 "a vsock socket without a filter"
expect 0 husk app rm --app=python "$uuid"

say "what flags say"
app_flags=('--caps-retain=CAP_CHOWN,CAP_SETUID' --no-new-privileges '--supplementary-gids=7,4711' --rlimit=nofile=100:200
	--oom-score-adj=500 --readonly-rootfs)
add strict "$busybox" "${app_flags[@]}" -- sleep 100000
if has_cgroup2; then
	add limited "$busybox" --memory=32Mi --cpu=500m -- cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max
	wait_exit limited
	expect 0 husk logs --app=limited "$uuid"
	equal "$out" "$(printf '33554432\n50000 100000')" "limits that an app can look up"
	expect 0 husk app rm --app=limited "$uuid"
fi
both strict "$status; ulimit -n; ulimit -Hn; cat /proc/self/oom_score_adj; touch /x 2>/dev/null || echo read-only; touch /dev/shm/x && echo writable" \
	"Groups: 7 4711
CapInh: 0000000000000000 
CapPrm: 0000000000000081 
CapEff: 0000000000000081 
CapBnd: 0000000000000081 
CapAmb: 0000000000000000 
NoNewPrivs: 1 
Seccomp: 2 
100
200
500
read-only
writable" "a strict app"
app_flags=('--seccomp=mode=remove,errno=EPERM,mkdir,mkdirat')
add filtered "$busybox" "${app_flags[@]}" -- sleep 100000
both filtered 'mkdir /tmp/x 2>&1; echo $?' "$(printf "mkdir: can't create directory '/tmp/x': Operation not permitted\n1")" "a system call that was removed"

say "memory: the hog is killed alone, and said to have been"
hog='tail /dev/zero; echo survived'
has_cgroup2 || hog='exec tail /dev/zero' # the kernel kills one process, which is to be the app itself
add hog "$busybox" --memory=16Mi -- sh -c "echo begin; $hog"
wait_exit hog
equal "$(jq -r '.exit_code, .oom_killed' <<<"$out" | tr '\n' ' ')" "9 true " "the hog's end"
expect 0 husk logs --app=hog "$uuid"
equal "$out" begin "what it wrote"
expect 0 husk app exec --app=plain "$uuid" true
grep -q 'app "hog": killed: out of memory' "$data/pods/run/$uuid/supervisor.log" || die "the supervisor does not say so"
# A further process counts, and what it does the app pays for.
add small "$busybox" --memory=16Mi -- sleep 100000
expect 137 husk app exec --app=small "$uuid" sh -c 'tail /dev/zero'
if has_cgroup2; then
	wait_exit small
	equal "$(jq -r .oom_killed <<<"$out")" true "memory that a further process used up"
else
	expect 0 husk app exec --app=small "$uuid" true # it alone was killed
	expect 0 husk app rm --grace=0 --app=small "$uuid"
fi

say "processes: a fork bomb stops at its limit"
# shellcheck disable=SC2016
add bomb "$busybox" --pids-limit=20 -- sh -c 'n=0; while sleep 1000 & do n=$((n + 1)); done 2>/dev/null; echo unreachable'
tries=0
until expect 0 husk app exec --app=plain "$uuid" true && ! husk app exec --app=bomb "$uuid" true </dev/null >/dev/null 2>"$work/err"; do
	[ $((++tries)) -lt 200 ] || die "the bomb does not reach its limit"
done
expect 0 husk app rm --grace=0 --app=bomb "$uuid"

say "processor time: a hog keeps to its share"
add busy "$busybox" --cpu=200m -- sh -c 'while :; do :; done'
# Seen by one process beside the hog, which has to share with it: the time of day and the hog's, in hundredths of a second.
expect 0 husk app exec --app=busy "$uuid" sh -c 'ticks() { read -r up rest </proc/uptime; set -- $(cat /proc/1/stat); echo ${up%.*}${up#*.} $((${14} + ${15})); }
	ticks; sleep 10; ticks; cat /sys/fs/cgroup/cpu.stat 2>/dev/null || :'
{ read -r up0 used0 && read -r up1 used1; } <<<"$out"
share=$((100 * (used1 - used0) / (up1 - up0)))
say "share of a processor: $share %"
! has_cgroup2 || match "$out" 'nr_throttled [1-9]' "how often the hog had to wait"
if [ $share -lt 5 ] || [ $share -gt 60 ]; then die "a share of 20 % came out as $share %"; fi
expect 0 husk app rm --grace=0 --app=busy "$uuid"

say "app stop keeps its time while others make noise"
add flood "$busybox" -- sh -c 'cat /dev/zero'
add quiet "$busybox" -- sh -c 'trap "" TERM; echo ready; while :; do sleep 1; done'
tries=0
until husk logs --app=quiet "$uuid" </dev/null | grep -q ready; do
	[ $((++tries)) -lt 500 ] || die "the app does not begin"
done
husk app exec --app=plain "$uuid" dd if=/dev/zero bs=64k count=16384 </dev/null 2>/dev/null | wc -c >"$work/bytes" &
noise=$!
start=${EPOCHREALTIME/./}
expect 0 husk app stop --grace=2 --app=quiet "$uuid"
took=$(((${EPOCHREALTIME/./} - start) / 1000))
say "stopped after $took ms of a grace period of 2000"
[ $took -ge 2000 ] || die "it was not given its time"
expect 0 husk app status --app=quiet --format=json "$uuid"
equal "$(jq -r .exit_code <<<"$out")" 9 "the exit code of an app that ignores SIGTERM"
wait $noise || :
equal "$(cat "$work/bytes")" 1073741824 "bytes that a further process wrote meanwhile"
expect 0 husk app rm --grace=0 --app=flood "$uuid"
expect 0 husk stop "$uuid"

say "what --insecure-options gives up, each alone"
# what IMAGE_OPTIONS...: which of the three protections an app does not have.
# Where they are open, root of the VM may write them; root of a user namespace sees what it may not write.
if is_vm; then
	open='(echo "$(cat /proc/sys/fs/file-max)" >/proc/sys/fs/file-max) 2>/dev/null && (echo 0 >/sys/kernel/rcu_expedited) 2>/dev/null &&
		head -c 1 /proc/vmallocinfo | grep -q .'
else
	open='! grep -q " /proc/sys " /proc/mounts && ! grep -q " /sys sysfs ro" /proc/mounts'
fi
cat >"$work/protections" <<EOF
case \$(grep CapBnd /proc/self/status) in *00000000a80425fb) ;; *) echo capabilities ;; esac
chroot / sh -c 'hostname x' 2>/dev/null && echo name
$open && [ -n "\$(ls /sys/module)" ] && echo paths
# keyctl(2) is in no kernel that is small, and in no filter: EPERM or ENOSYS tell which.
unshare -U true 2>/dev/null && echo seccomp
echo end
EOF
for given in none capabilities paths seccomp all-run; do
	case $given in
	none) want=end ;;
	capabilities) want='capabilities name seccomp end' ;;
	all-run) want='capabilities name paths seccomp end' ;;
	*) want="$given end" ;;
	esac
	expect 0 husk --insecure-options="$given" run "$busybox" -- sh -c "$(cat "$work/protections")"
	equal "$(tr '\n' ' ' <"$work/out")" "$want " "--insecure-options=$given"
done
