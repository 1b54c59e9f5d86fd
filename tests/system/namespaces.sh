#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pods of namespaces: what an app inside tries against the host and its own pod, each of which fails; the rows of the table
# in docs/namespaces.md; users without privileges; what is left when something of the pod is killed.
# shellcheck source=tests/system/lib.sh
export HUSK_TEST_STAGE1=ns
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" -eq 0 ] || skip "needs root"
require jq unshare losetup squashfuse_ll newuidmap
image=$(busybox_image)

# As root of the pod, with the default capabilities, in both kinds of pods.
inside() { # SCRIPT: its output in $out
	expect 0 husk run --userns="$userns" --insecure-options=image "$image" --exec=/bin/sh -- -c "$1"
}

# in_vain WHAT SCRIPT: prints nothing that begins with "broke".
in_vain() {
	inside "$2"
	! grep -q '^broke' <<<"$out" || die "$userns: $1: $out"
}

host_secret=$work/host-secret
echo of-the-host >"$host_secret"
modprobe -q loop || :

for userns in host private; do
	say "--userns=$userns: nothing of the host is to be seen"
	inside 'cat /proc/self/mountinfo /proc/self/mounts /proc/self/cgroup; readlink /proc/*/exe /proc/*/root /proc/*/cwd; cat /proc/*/cmdline /proc/*/maps /proc/*/environ; ls -R /sys/fs 2>/dev/null'
	for word in "$data" "$work" "$build" "$(basename "$data")" /var/lib /home; do
		! grep -aqF "$word" <<<"$out" || die "$userns: \"$word\" can be read: $(grep -aF "$word" <<<"$out" | head -n 3)"
	done
	inside 'ls -A /; hostname; cat /proc/net/dev; ls /sys/class/net; ipcs 2>/dev/null | wc -l'
	! grep -q 'eth0\|ens' <<<"$out" || die "$userns: the host's network: $out"
	grep -qx 'husk-[0-9a-f-]*' <<<"$out" || die "$userns: the pod's host name: $out"

	say "--userns=$userns: mounts"
	in_vain "mount" '
		for fs in proc sysfs tmpfs devpts cgroup cgroup2 overlay devtmpfs bpf debugfs; do mount -t $fs none /tmp 2>/dev/null && echo broke $fs; done
		mount -o bind / /tmp 2>/dev/null && echo broke bind
		mount -o remount,rw /sys 2>/dev/null && echo broke remount; mount -o remount,rw /proc/sys 2>/dev/null && echo broke remount
		umount /proc/sys 2>/dev/null && echo broke umount; umount /sys/fs 2>/dev/null && echo broke umount
		pivot_root / /tmp 2>/dev/null && echo broke pivot; unshare -m true 2>/dev/null && echo broke unshare
		unshare -U true 2>/dev/null && echo broke user namespace; :'

	say "--userns=$userns: /proc and /sys"
	in_vain "kernel settings" '
		for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/overcommit_memory /proc/sysrq-trigger \
			/proc/sys/kernel/modprobe /sys/kernel/uevent_helper /sys/kernel/mm/ksm/run /proc/sys/fs/suid_dumpable; do
			[ ! -e $f ] || { echo x >$f; } 2>/dev/null && [ -e $f ] && echo broke $f; done
		for f in /proc/kcore /proc/kallsyms /proc/keys /proc/timer_list /proc/config.gz; do
			[ ! -e $f ] || [ "$(head -c 1 $f 2>/dev/null | wc -c)" -eq 0 ] || echo broke $f; done
		dmesg >/dev/null 2>&1 && echo broke dmesg; :'

	say "--userns=$userns: devices"
	in_vain "devices" '
		for d in "b 7 0" "b 254 0" "b 8 0" "c 1 1" "c 1 11" "c 10 237" "c 10 232" "c 10 229" "c 5 1"; do
			rm -f /tmp/node; mknod /tmp/node $d 2>/dev/null || continue
			head -c 1 /tmp/node >/dev/null 2>&1 && echo broke read $d
			{ echo >/tmp/node; } 2>/dev/null && echo broke write $d; done
		rm -f /dev/shm/node; mknod /dev/shm/node c 1 11 2>/dev/null && cat /dev/shm/node >/dev/null 2>&1 && echo broke shm; :'

	nodes=$(stat -c '%n %a %u' /dev/null /dev/full /dev/tty /dev/urandom)
	in_vain "modes and owners of devices" '
		for d in /dev/null /dev/full /dev/tty /dev/urandom /proc/kallsyms; do
			chmod 600 $d 2>/dev/null && echo broke chmod $d; chown 77 $d 2>/dev/null && echo broke chown $d
			touch -d 1999-01-01 $d 2>/dev/null && echo broke touch $d; done; echo x >/dev/null || echo broke null; :'
	equal "$(stat -c '%n %a %u' /dev/null /dev/full /dev/tty /dev/urandom)" "$nodes" "devices of the host"

	say "--userns=$userns: processes: the agent, its first process, those of the host"
	in_vain "processes" '
		kill -0 1 2>/dev/null && kill -9 1 2>/dev/null; sleep 0.2; [ -d /proc/1 ] || echo broke killed
		for f in /proc/1/mem /proc/1/environ /proc/1/root/ /proc/1/cwd/ /proc/1/fd/ /proc/1/map_files/ /proc/1/exe; do
			ls $f >/dev/null 2>&1 && case $f in /proc/1/exe | *mem | *environ) head -c 1 $f >/dev/null 2>&1 && echo broke $f ;; *)
				[ -z "$(ls -A $f 2>/dev/null)" ] || echo broke $f ;; esac; done
		for p in /proc/[0-9]*/comm; do case $(cat $p) in husk-init | sh | busybox | cat) ;; *) echo broke sees $p ;; esac; done
		kill -9 -1 2>/dev/null; echo alive'

	say "--userns=$userns: descriptors"
	inside 'for fd in /proc/self/fd/*; do n=${fd##*/}; case $n in 0 | 1 | 2 | 3) ;; *) echo broke $n $(readlink $fd) ;; esac; done; :'
	! grep -q '^broke' <<<"$out" || die "$userns: descriptors: $out"
done

say "what is the host's: kernel, processors, memory, time since its start"
inside 'uname -sr; nproc; sed -n "s/^MemTotal: *//p" /proc/meminfo; cut -d. -f1 /proc/uptime'
equal "$(head -n 3 <<<"$out")" "$(uname -sr; nproc; sed -n 's/^MemTotal: *//p' /proc/meminfo)" "what an app reads of its machine"
[ "$(cut -d. -f1 /proc/uptime)" -ge "$(tail -n 1 <<<"$out")" ] || die "its uptime: $out"

say "capabilities that reach beyond namespaces are not given, whatever options say"
for userns in host private; do
	# CAP_SYS_MODULE, SYS_RAWIO, SYS_TIME, SYS_BOOT: 16, 17, 25, 22. A user namespace has them, for itself: for nothing.
	expect 0 husk --insecure-options=image,capabilities,seccomp run --userns=$userns "$image" -- \
		sh -c 'sed -n "s/^CapEff:.//p" /proc/self/status; date -s 2030-01-01 2>&1 >/dev/null || :'
	if [ $userns = host ]; then
		equal "$((0x$(head -n 1 <<<"$out") & (1 << 16 | 1 << 17 | 1 << 22 | 1 << 25)))" 0 "capabilities in the host's user namespace"
	fi
	match "$out" 'not permitted' "--userns=$userns: setting the clock"
done
userns=private

say "what a pod has written is there when it was killed, synced or not"
run_in_background "$image" --name=writer -- sh -c 'echo kept >/file; echo ready; exec sleep 1000'
wait_for_line "$work/pod.out" ready $pod
kill -9 "$(pgrep -P "$(cat "$data/pods/run/$uuid/pid")" husk-ns)"
wait $pod || :
expect 0 husk export "$uuid" "$work/killed.aci"
equal "$(tar -xzOf "$work/killed.aci" rootfs/file)" kept "what it had written"

say "the agent's program cannot be written, by whomever it is executed"
agent=$build/lib/husk/guest/husk-agent
before=$(sha256sum <"$agent")
inside 'printf "#!/proc/self/exe\n" >/evil; chmod 755 /evil
	(while :; do for p in /proc/[0-9]*; do { echo broken >$p/exe; } 2>/dev/null && echo broke $p; done; done) & w=$!
	i=0; while [ $i -lt 100 ]; do /evil >/dev/null 2>&1; i=$((i + 1)); done; kill $w; :'
! grep -q '^broke' <<<"$out" || die "the agent's program was opened: $out"
run_in_background "$image" -- sh -c 'printf "#!/proc/self/exe\n" >/evil; chmod 755 /evil; echo ready
	while :; do for p in /proc/[0-9]*; do { echo broken >$p/exe; } 2>/dev/null && echo broke $p; done; done'
wait_for_line "$work/pod.out" ready $pod
for _ in $(seq 10); do husk enter "$uuid" /evil >/dev/null 2>&1 || :; done
kill -TERM $pod
wait $pod || :
! grep -q '^broke' "$work/pod.out" || die "the agent's program was opened: $(cat "$work/pod.out")"
equal "$(sha256sum <"$agent")" "$before" "the agent's program"

# ---- what ends when something is killed ----

mounts_left() { # mounts, loop devices and processes of ours
	grep -F "$data" /proc/self/mountinfo || :
	losetup --list --noheadings --output BACK-FILE | grep -F "$data" || :
	pgrep -af "husk-ns --uuid=$uuid" || :
	pod_processes
}

wait_nothing_left() {
	local deadline=$((SECONDS + gone_limit))
	while [ -n "$(mounts_left)" ]; do
		[ $SECONDS -lt $deadline ] || die "$1: left: $(mounts_left)"
		read -rt 0.05 <> <(:) || :
	done
}

# Also before gc does something about it.
wait_app_gone() {
	local deadline=$((SECONDS + gone_limit))
	while pgrep -f "sleep $nap" >/dev/null; do
		[ $SECONDS -lt $deadline ] || die "the app lives on"
		read -rt 0.05 <> <(:) || :
	done
}

nap=$((1000000 + $$)) # nobody else sleeps as long
for userns in host private; do
	for victim in supervisor husk-ns husk-agent husk-init; do
		say "--userns=$userns: SIGKILL of $victim"
		run_in_background --userns=$userns "$image" -- sh -c "echo ready; exec sleep $nap"
		wait_for_line "$work/pod.out" ready $pod
		supervisor=$(cat "$data/pods/run/$uuid/pid")
		keeper=$(pgrep -P "$supervisor" husk-ns)
		case $victim in
		supervisor) kill -9 "$supervisor" ;;
		husk-ns) kill -9 "$keeper" ;;
		husk-agent) kill -9 "$(pgrep -P "$keeper" husk-agent)" ;;
		husk-init) kill -9 "$(pgrep -P "$(pgrep -P "$keeper" husk-agent)" husk-init)" ;;
		esac
		status=0
		wait $pod || status=$?
		case $victim in
		supervisor) equal $status 137 "exit status" ;;
		husk-init) equal $status 9 "exit status: the app goes with it" ;;
		*) equal "$status $(wc -l <"$work/pod.err")" "254 1" "exit status and lines: $(cat "$work/pod.err")" ;;
		esac
		[ $victim != husk-ns ] || wait_app_gone
		expect 0 husk gc --grace-period=0s
		wait_nothing_left "$victim"
		[ ! -e "$data/pods/run/$uuid" ] || die "the pod is still there"
		! pgrep -f "sleep $nap" >/dev/null || die "$victim: the app lives on"
	done
done

# ---- another user, with and without subordinate ids; everything on files of a mount namespace of its own ----

cat >"$work/as-user" <<'SCRIPT'
set -e
mount --make-rprivate /
printf '%s' "$SUBIDS" >"$WORK/subids"
touch /etc/subuid /etc/subgid
mount --bind "$WORK/subids" /etc/subuid
mount --bind "$WORK/subids" /etc/subgid
mknod -m 666 "$WORK/fuse" c 10 229
mount --bind "$WORK/fuse" /dev/fuse
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
SCRIPT
chmod 755 "$work"
cp -r "$image" "$work/image"
chmod -R a+rX "$work/image"
home=$work/home
mkdir "$home"
chown 65534:65534 "$home"
as_user() { # COMMAND...: as a user with the subordinate ids $subids
	rm -f "$work/fuse"
	HOME=$home WORK=$work SUBIDS=$subids unshare --mount -- bash "$work/as-user" "$@"
}
user_husk() { as_user "$husk_bin" "--dir=$home/data" "$@"; }

say "in a chroot, which pods would be in, too"
expect 254 unshare --mount bash -c 'mount --make-rprivate / && mkdir "$1" && mount --rbind / "$1" && exec chroot "$@"' sh \
	"$work/chroot" "$husk_bin" "--dir=$data" run --insecure-options=image "$image" --exec=/bin/true
match "$err" 'stage1: namespaces: husk is in a chroot\(2\)' "the refusal"

say "root of a container without loop devices"
expect 0 unshare --mount bash -c 'mount --make-rprivate / && mkdir "$1/nodev" && mount -t tmpfs -o nodev none "$1/nodev" &&
	mknod "$1/nodev/loop" c 10 237 && mount --bind "$1/nodev/loop" /dev/loop-control && shift && exec "$@"' sh "$work" \
	"$husk_bin" "--dir=$data" run --insecure-options=image "$image" --exec=/bin/sh -- -c 'cat /proc/self/mountinfo; echo works'
match "$out" works "its app"

say "rootless: root of the pod is the user, all others are subordinate ids"
subids=$'nobody:300000:65536\n'
expect 0 user_husk run --insecure-options=image "$work/image" --exec=/bin/sh -- -c \
	'id -u; cat /proc/self/uid_map; echo x >/x; chown 1000:1000 /x; stat -c "%u %g" /x; mkdir -m 700 /p; chown 5 /p; cat /etc/passwd | wc -l'
equal "$(tr -s ' \n' '  ' <<<"$out")" "0 0 65534 1 1 300000 65535 1000 1000 2 " "what root there sees"
equal "$(stat -c '%u %g' "$home"/data/pods/run/*/scratch/*/upper/x)" "300999 300999" "what the host sees"
expect 0 user_husk export "$(basename "$home"/data/pods/run/*)" "$home/x.aci"
equal "$(tar -tvzf "$home/x.aci" --numeric-owner rootfs/x | awk '{print $2}')" 1000/1000 "the owner in an archive"
expect 0 user_husk gc # what the app wrote stays
expect 0 user_husk export "$(basename "$home"/data/pods/exited-garbage/*)" "$home/again.aci"
cmp <(tar -xzOf "$home/x.aci" rootfs/x) <(tar -xzOf "$home/again.aci" rootfs/x) || die "what is exported after gc"
expect 7 user_husk run --insecure-options=image "$work/image" --exec=/bin/sh -- -c 'exit 7'
expect 254 user_husk run --insecure-options=image --userns=host "$work/image"
match "$err" '^run: --userns=host: only root may start such pods' "what a user may not do"
expect 0 user_husk gc --grace-period=0s
equal "$(find "$home/data/pods" -mindepth 2 | wc -l)" 0 "what gc leaves"

say "rootless, without subordinate ids: what is missing, before anything is made"
subids=
rm -r "$home/data"
expect 254 user_husk run --insecure-options=image "$work/image" --exec=/bin/true
match "$err" 'has no 65535 subordinate ids for user "nobody" \(as root: usermod' "what is missing"
wait_nothing_left rootless
