#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A debugging session in a mutable pod, again and again: nothing in it may grow.
#
#   HUSK_TEST_ROUNDS   how often (default 5)
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq
busybox=$(busybox_image)
debian=$(debian_image)
rounds=${HUSK_TEST_ROUNDS:-5}

expect 0 husk app sandbox --detach "${run_options[@]}"
uuid=$out
dir=$data/pods/run/$uuid
expect 0 husk app add "$uuid" "$busybox" --name=watch -- sleep 100000
expect 0 husk app start --app=watch "$uuid"
supervisor=$(cat "$dir/pid")
if is_vm; then
	helper=$(vmm_process "$uuid")
else
	helper=$(pgrep -P "$supervisor" husk-ns)
fi
vsock=$(pgrep -P "$supervisor" husk-vsock || :)

descriptors() { # PID, or "" for what there is not
	if [ -n "$1" ]; then find "/proc/$1/fd" -mindepth 1 | wc -l; else echo 0; fi
}

# Two numbers: disks and available memory (KiB) in the guest; or mounts in the pod, and nothing.
inside() {
	if is_vm; then
		expect 0 husk app exec --app=watch "$uuid" sh -c \
			'sync; echo 3 >/proc/sys/vm/drop_caches 2>/dev/null; grep -c " sd" /proc/partitions; awk "/MemAvailable/ { print \$2 }" /proc/meminfo'
		echo "$out"
	else
		wc -l <"/proc/$(pgrep -P "$helper" husk-agent)/mountinfo"
		echo 0
	fi
}

# app rm does not wait until QEMU has let go of an image, of which it sees the file alone in a mount namespace of libvirt's.
has_let_go() {
	[ -z "$(find "/proc/$helper/fd" -mindepth 1 -lname '*/apps/redis/*' -o -lname '*/apps/debug/*' -o -lname '/ (deleted)')" ]
}

# A line of numbers that must not grow: those, descriptors of the processes, blocks of the scratch disk.
measure() {
	until_true has_let_go
	echo "$(inside)" "$(descriptors "$supervisor")" "$(descriptors "$helper")" "$(descriptors "$vsock")" \
		"$(du -sB 512 "$dir/scratch" | cut -f 1)" | tr '\n' ' '
}

session() {
	expect 0 husk app add "$uuid" "$debian" --name=redis -- redis-server --save '' --daemonize no --dir /var
	expect 0 husk app start --app=redis "$uuid"
	until husk app exec --app=redis "$uuid" redis-cli ping >"$work/ping" 2>&1 </dev/null; do
		read -rt 0.1 <> <(:) || :
	done
	equal "$(cat "$work/ping")" PONG "redis-cli ping"
	expect 0 husk app exec --app=redis "$uuid" dd if=/dev/urandom of=/var/written bs=1M count=8
	expect 0 husk app add "$uuid" "$busybox" --name=debug -- sleep 1000
	expect 0 husk app start --app=debug "$uuid"
	expect 0 husk app exec --app=debug "$uuid" sh -c 'netstat -ltn; echo PING | nc 127.0.0.1 6379'
	match "$out" ":6379 .*LISTEN" "the port of redis, seen from another app"
	match "$out" "\+PONG" "redis answers another app"
	expect 0 husk app stop --app=redis "$uuid"
	expect 0 husk app status --app=redis --format=json "$uuid"
	equal "$(jq -r '.state, .exit_code, .started_at < .finished_at' <<<"$out" | tr '\n' ' ')" "exited 0 true " "after stop"
	expect 0 husk app rm --app=redis "$uuid"
	expect 0 husk app rm --app=debug "$uuid"
}

# The first session loads what stays loaded. By the second the guest's kernel is out of the memory for each processor that it
# set aside at boot, and takes a chunk for it, with 8 bytes beside each 4 of it: 4 MiB, once.
session
session
read -ra before <<<"$(measure)"
for ((i = 2; i < rounds; i++)); do
	session
done
read -ra after <<<"$(measure)"
say "disks or mounts, available KiB, descriptors of supervisor, helper, husk-vsock, scratch blocks; after 2 and $rounds sessions:"
say "${before[*]}"
say "${after[*]}"
equal "${after[0]}" "${before[0]}" "disks in the guest, or mounts"
equal "${after[*]:2:3}" "${before[*]:2:3}" "descriptors"
# Pages and inodes that the guest's kernel keeps for a while, or the blocks of a directory that was once larger.
[ "${after[1]}" -gt $((before[1] - 4096)) ] || die "the guest has lost memory"
[ "${after[5]}" -lt $((before[5] + 2048)) ] || die "the scratch disk has grown"
expect 0 husk stop "$uuid"
