#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every guest kernel boots on every machine type.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
image=$(busybox_image)

for kernel in small packaged; do
	[ -e "$build/lib/husk/kernel/$kernel/vmlinux" ] ||
		skip "guest kernel $kernel is not built (cmake --build build --target guest-kernel guest-kernel-packaged)"
	for machine in microvm q35; do
		say "$kernel on $machine"
		expect 0 husk run --kernel=$kernel --machine=$machine "$image" -- uname -r
		match "$out" '^6\.' "kernel release"
	done
done

say "the guest's clock runs at the speed of ours"
for kernel in small packaged; do
	start=$(date +%s%N)
	times=$(husk run --kernel=$kernel "$image" -- sh -c 'cat /proc/uptime; sleep 4; cat /proc/uptime')
	host_ms=$((($(date +%s%N) - start) / 1000000))
	guest_ms=$(echo "$times" | awk '{t[NR] = $1} END {print int((t[2] - t[1]) * 1000)}')
	say "$kernel: sleep 4 took $guest_ms ms of the guest's time; the whole pod $host_ms ms of ours"
	[ "$guest_ms" -ge 3950 ] || die "the guest's clock is slow"
	[ "$host_ms" -ge 4000 ] || die "4 s in the guest passed in less than 4 s: its clock is fast"
done

say "two processors"
expect 0 husk run --cpus=2 "$image" -- grep -c ^processor /proc/cpuinfo
equal "$out" 2 "processors in the guest"
