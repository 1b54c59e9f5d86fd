#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What goes wrong while the VM runs: kernel panic, QEMU killed, an agent that never answers. One line,
# exit code 254, the pod is exited, no process is left.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require gdb
image=$(busybox_image)

start_pod() {
	: >"$work/out"
	"$husk_bin" "--dir=$data" run "${run_options[@]}" "--uuid-file-save=$work/uuid" "$image" -- sh -c 'echo ready; while :; do sleep 1; done' \
		>"$work/out" 2>"$work/err" </dev/null &
	pod=$!
	wait_for_line "$work/out" ready
	uuid=$(cat "$work/uuid")
}

check_end() { # REGEX
	local status=0
	wait $pod || status=$?
	equal $status 254 "exit code ($(cat "$work/err"))"
	err=$(cat "$work/err")
	one_line_error "$1"
	wait_no_processes || die "processes are left: $(pod_processes)"
	equal "$(husk list --no-legend | awk -F'\t+' 'NF {print $4}' | sort -u)" exited "state of all pods"
}

say "QEMU killed"
start_pod
kill -9 "$(vmm_process "$uuid")"
check_end "QEMU"

say "QEMU's filter of system calls ends the whole process, not the thread that made the call"
start_pod
qemu=$(vmm_process "$uuid")
# The second oldest thread lives as long as QEMU; younger ones may end while gdb, which is slow in an emulated machine,
# looks for them. It may also hang at one that is in the kernel's KVM.
thread=$(printf '%s\n' "/proc/$qemu"/task/* | sed 's,.*/,,' | sort -n | sed -n 2p)
timeout -k 5 300 gdb -batch -p "$thread" -ex 'call (long)syscall(59, 0, 0, 0)' >"$work/gdb" 2>&1 </dev/null || : # execve
grep -q SIGSYS "$work/gdb" || die "gdb did not make the call: $(tail -n 3 "$work/gdb")"
check_end "QEMU(: killed by signal 31| has crashed or was killed)"

say "supervisor killed: the VM goes with it"
start_pod
kill -9 $pod
wait $pod 2>/dev/null || :
wait_no_processes || die "processes are left: $(pod_processes)"
equal "$(husk list --no-legend | awk -F'\t+' 'NF {print $4}' | sort -u)" exited "state of all pods"

# A directory for --kernel with a guest kernel and a PID 1 made from the C program $2.
make_kernel() { # NAME PROGRAM
	local flavour
	mkdir "$work/$1"
	for flavour in small packaged; do
		[ ! -e "$build/lib/husk/kernel/$flavour/vmlinux" ] ||
			{ cp "$build/lib/husk/kernel/$flavour/vmlinux" "$work/$1/" && break; }
	done
	echo "$2" >"$work/$1.c"
	cc -static -o "$work/$1.init" "$work/$1.c"
	"$top/tools/mkinitramfs" --agent "$work/$1.init" --output "$work/$1/initramfs" >&2
}

say "guest kernel panic"
make_kernel panics 'int main(void) { return 1; }'
"$husk_bin" "--dir=$data" run "${run_options[@]}" --kernel="$work/panics" "$image" -- true \
	>"$work/out" 2>"$work/err" </dev/null &
pod=$!
check_end "Kernel panic"

say "agent that never answers"
make_kernel deaf '#include <unistd.h>
int main(void) { for (;;) pause(); }'
"$husk_bin" "--dir=$data" run "${run_options[@]}" --boot-timeout=8 --kernel="$work/deaf" "$image" -- true \
	>"$work/out" 2>"$work/err" </dev/null &
pod=$!
check_end "did not answer within 8 s"
