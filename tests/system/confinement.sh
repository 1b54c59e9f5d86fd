#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the processes of a running pod may still do: read from /proc while it runs.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
image=$(busybox_image)

"$husk_bin" "--dir=$data" run "${run_options[@]}" "$image" -- sh -c 'echo ready; while :; do sleep 1; done' \
	>"$work/out" 2>"$work/err" </dev/null &
pod=$!
wait_for_line "$work/out" ready

field() { awk -v key="$2:" '$1 == key {print $2}' "/proc/$1/status"; }

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
		[ "$(field "$pid" Uid)" -ge $((0x68000000)) ] || die "$name runs as user $(field "$pid" Uid)"
	fi
	# The lock on the pod is the supervisor's alone.
	find "/proc/$pid/fd" -lname "$data/pods/*/*-*" -printf '%l\n' | grep -Ev '/(rootfs|scratch)$' >"$work/fds" || :
	[ ! -s "$work/fds" ] || die "$name holds $(cat "$work/fds")"
	tr '\0' '\n' <"/proc/$pid/cmdline" >"$work/cmdline"
	! grep -qF "$(cat "$data"/pods/run/*/secret)" "$work/cmdline" || die "$name shows the secret"
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
dir=$(echo "$data"/pods/run/*)
equal "$(stat -c %a "$dir/secret")" 600 "mode of the secret"
[ "$want" -eq 1 ] || equal "$(stat -c %a "$dir/vsock.sock")" 600 "mode of the socket"
equal "$(stat -c %a "$dir/scratch")" 600 "mode of the scratch disk"

kill $pod
wait $pod || die "the pod did not stop in good order: $(cat "$work/err")"
