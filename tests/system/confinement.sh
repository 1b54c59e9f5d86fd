#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the processes of a running pod may still do: read from /proc while it runs.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
image=$(busybox_image)

field() { awk -v key="$2:" '$1 == key {print $2}' "/proc/$1/status"; }

# limit PID NAME: the hard one.
limit() { sed -n "s/^$2  *[^ ][^ ]*  *\([^ ][^ ]*\).*/\1/p" "/proc/$1/limits"; }

# descendants PID: its children, theirs, and so on.
descendants() {
	local child
	for child in $(pgrep -P "$1"); do echo "$child" && descendants "$child"; done
}

# shows_secret PID: on its command line or in its environment.
shows_secret() { tr '\0' '\n' <"/proc/$1/cmdline" | cat - "/proc/$1/environ" | grep -aqF "$(cat "$dir/secret")"; }

echo nobody else knows >"$work/stray"
# start_pod COMMAND...: husk run, in the background; its process in $pod, its directory in $dir.
start_pod() {
	rm -f "$work/out" # of the pod before
	"$@" >"$work/out" 2>"$work/err" </dev/null 9<"$work/stray" &
	pod=$!
	wait_for_line "$work/out" ready
	dir=$(echo "$data"/pods/run/*)
	check_supervisor
}
end_pod() {
	kill $pod
	wait $pod || die "the pod did not stop in good order: $(cat "$work/err")"
}
app=(sh -c 'echo ready; while :; do sleep 1; done')

# In a mount namespace of its own whose mounts are all shared, as they are on hosts with systemd.
in_shared() { exec unshare --mount --propagation private sh -c "mount --make-rshared / && cat /proc/self/mountinfo >'$work/mounts' && exec \"\$@\"" - "$@"; }

# hex CAPABILITIES: those of them that we have ourselves; a container's root has fewer.
hex() { printf %016x $(($1 & 0x$(field self CapBnd))); }

# CHOWN to SETUID but DAC_READ_SEARCH (2), SETPCAP, NET_BIND_SERVICE, NET_ADMIN, NET_RAW, IPC_LOCK, IPC_OWNER, SYS_CHROOT,
# SYS_PTRACE, SYS_ADMIN, SYS_NICE, SYS_RESOURCE, MKNOD, LEASE, AUDIT_WRITE, SETFCAP.
of_root=0xb9acf5fb

check_supervisor() {
	local set pid kill_only
	if [ "$(id -u)" -eq 0 ]; then
		say "the supervisor has given up all that root may but to kill its helpers, if it could do that"
		kill_only=$(printf %016x $((0x$(field self CapEff) & 1 << 5)))
		for set in CapPrm CapEff CapBnd; do equal "$(field $pod $set)" "$kill_only" "supervisor: $set"; done
		for set in CapInh CapAmb; do equal "$(field $pod $set)" 0000000000000000 "supervisor: $set"; done
		equal "$(field $pod NoNewPrivs)" 1 "supervisor: no_new_privs"
	fi

	say "what the caller had open is open nowhere"
	for pid in $pod $(descendants $pod); do
		equal "$(find "/proc/$pid/fd" -lname "$work/stray" 2>/dev/null)" "" "descriptors of process $pid"
	done
}

check_pod_of_namespaces() { # USERNS
	local keeper agent namespace pid set device at flags flag
	keeper=$(pgrep -P $pod)
	equal "$(cat "/proc/$keeper/comm")" husk-ns "processes beside the supervisor"
	agent=$(pgrep -P "$keeper" husk-agent)
	equal "$(cat "/proc/$agent/comm")" husk-agent "the first process of the pod"

	say "--userns=$1: husk-agent: of the host it has what it was given"
	for namespace in cgroup ipc mnt net pid user uts; do
		[ "$namespace $1" != "user host" ] || continue
		[ "$(readlink "/proc/$agent/ns/$namespace")" != "$(readlink /proc/self/ns/$namespace)" ] || die "it is in the host's namespace: $namespace"
	done
	[ "$1" = private ] || equal "$(readlink "/proc/$agent/ns/user")" "$(readlink /proc/self/ns/user)" "its user namespace"
	equal "$(find "/proc/$agent/fd" -lname '/*' ! -lname '/dev/null' -printf '%l\n')" "$dir/pod.alive" "its files of the host"
	equal "$(wc -c <"/proc/$agent/environ")" 0 "its environment"
	for pid in "$keeper" "$agent" $(pgrep -P "$agent"); do
		! shows_secret "$pid" || die "process $(cat "/proc/$pid/comm") shows the secret"
	done

	say "--userns=$1: capabilities that it can ever have"
	if [ "$1" = host ]; then
		for set in CapBnd CapPrm CapEff; do equal "$(field "$agent" $set)" "$(hex $of_root)" "$set of the host's user namespace"; done
	else
		equal "$(field "$agent" CapBnd)" "$(unshare --user sed -n 's/^CapBnd:.//p' /proc/self/status)" "those of a user namespace"
	fi

	say "--userns=$1: it has the devices of apps, whose modes and owners nobody changes, and no programs that give privileges"
	for device in null zero full random urandom tty net/tun ptmx; do [ ! -e "/dev/$device" ] || echo "/dev/$device ro"; done | sort >"$work/devices"
	awk '$5 ~ "^/dev/" {split($6, flags, ","); print $5, flags[1]}' "/proc/$agent/mountinfo" | sort | diff "$work/devices" - || die "its devices"
	for pid in $(pgrep -P "$agent"); do
		awk '$5 ~ "^/dev/(null|zero|full|random|urandom|tty|net/tun)$" {split($6, flags, ","); print $5, flags[1]}' "/proc/$pid/mountinfo" |
			sort | diff <(grep -v ptmx "$work/devices") - || die "devices of an app"
	done
	for at in "/ nosuid" "/disks/0 ro nodev" "/proc nosuid nodev noexec" "/sys nosuid nodev noexec"; do
		flags=$(awk -v at="${at%% *}" '$5 == at {flags = $6} END {print flags}' "/proc/$agent/mountinfo")
		for flag in ${at#* }; do match ",$flags," ",$flag," "how ${at%% *} is mounted"; done
	done

	say "--userns=$1: no mount goes from the host to the pod, or from there to the host, once it runs"
	for pid in "$agent" $(pgrep -P "$agent"); do
		grep -q ' / / ' "/proc/$pid/mountinfo" || die "no root directory"
		! grep -E ' (shared|master|propagate_from):' "/proc/$pid/mountinfo" || die "these mounts of $(cat "/proc/$pid/comm") are tied to others"
	done
	# Pods of others than root are not in a namespace that is shared. Mounts may go: the kernel takes those away whose mount
	# point is deleted, in whatever namespace.
	[ ! -e "$work/mounts" ] || equal "$(comm -13 <(cut -d' ' -f1,5 "$work/mounts" | sort) <(cut -d' ' -f1,5 "/proc/$pod/mountinfo" | sort))" "" \
		"further mounts around the supervisor"

	say "--userns=$1: the lock on the pod is the supervisor's alone"
	find "/proc/$keeper/fd" "/proc/$agent/fd" -lname "$data/pods/*/*-*" -printf '%l\n' | grep -Ev '/(rootfs|scratch|scratch/apps|pod.alive)$' >"$work/fds" || :
	[ ! -s "$work/fds" ] || die "held: $(cat "$work/fds")"

	say "--userns=$1: permissions in the pod directory"
	equal "$(cd "$dir" && stat -c %a secret agent.sock scratch pod.alive | tr '\n' ' ')" "600 600 700 600 " "modes"
}

if ! is_vm; then
	if [ "$(id -u)" -ne 0 ]; then
		start_pod "$husk_bin" "--dir=$data" run "${run_options[@]}" "$image" -- "${app[@]}"
		check_pod_of_namespaces private
		end_pod
		exit
	fi
	for userns in host private; do
		start_pod in_shared "$husk_bin" "--dir=$data" run "${run_options[@]}" --userns=$userns "$image" -- "${app[@]}"
		check_pod_of_namespaces $userns
		end_pod
		expect 0 husk gc --grace-period=0s
	done
	exit
fi

start_pod "$husk_bin" "--dir=$data" run "${run_options[@]}" "$image" -- "${app[@]}"
checked=0
# The kernel needs no process for a pod's vsock.
[ "$(pod_choice vsock)" = kernel ] && want=1 || want=2
for pid in $(pgrep -P $pod); do
	name=$(cat "/proc/$pid/comm")
	case $name in
	husk-vsock | qemu*) checked=$((checked + 1)) ;;
	*) die "unexpected process $name" ;;
	esac
	say "$name"
	equal "$(field "$pid" NoNewPrivs)" 1 "$name: no_new_privs"
	equal "$(field "$pid" Seccomp)" 2 "$name: system call filter"
	equal "$(field "$pid" CapEff)" 0000000000000000 "$name: effective capabilities"
	equal "$(field "$pid" CapPrm)" 0000000000000000 "$name: permitted capabilities"
	if [ "$(id -u)" -eq 0 ]; then
		id=$(field "$pid" Uid)
		((id >= 0x7f000000 && id < 0x7ffe0000)) || die "$name runs as user $id"
	fi
	equal "$(limit "$pid" 'Max core file size')" 0 "$name: bytes of a core file"
	case $name in
	husk-vsock)
		[ "$(limit "$pid" 'Max open files')" -le 2048 ] || die "$name may open any number of files"
		equal "$(limit "$pid" 'Max file size')" 0 "$name: bytes that it may write to a file"
		;;
	qemu*)
		[ "$(limit "$pid" 'Max open files')" -le 1024 ] || die "$name may open any number of files"
		[ "$(limit "$pid" 'Max file size')" -le "$(stat -c %s "$dir/scratch")" ] || die "$name may write more than a disk has"
		# Who is not root may be refused a namespace.
		[ "$(id -u)" -ne 0 ] || [ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/self/ns/net)" ] || die "$name has the host's network"
		;;
	esac
	# The lock on the pod is the supervisor's alone.
	find "/proc/$pid/fd" -lname "$data/pods/*/*-*" -printf '%l\n' | grep -Ev '/(rootfs|scratch)$' >"$work/fds" || :
	[ ! -s "$work/fds" ] || die "$name holds $(cat "$work/fds")"
	! shows_secret "$pid" || die "$name shows the secret"
done
equal $checked "$want" "processes beside the supervisor"

say "the read-only disk is a read-only descriptor"
qemu=$(pgrep -P $pod qemu)
for fd in /proc/"$qemu"/fd/*; do
	case $(readlink "$fd") in
	*/rootfs | */trees/*) match "$(grep ^flags: "/proc/$qemu/fdinfo/$(basename "$fd")")" "0[0-7]*0\$" "flags of $(readlink "$fd")" ;;
	esac
done

say "permissions in the pod directory"
equal "$(stat -c %a "$dir/secret")" 600 "mode of the secret"
[ "$want" -eq 1 ] || equal "$(stat -c %a "$dir/vsock.sock")" 600 "mode of the socket"
equal "$(stat -c %a "$dir/scratch")" 600 "mode of the scratch disk"

end_pod
