#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# File systems in files and on devices as volumes of a VM: formats, who can have one, what outlives a VM that is killed.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require mkfs.ext4 e2fsck qemu-img mksquashfs
image=$(busybox_image)
disk=$work/disk
volume() { # OPTIONS...: of the volume, which is at /d
	local IFS=,
	words=(--net=none "--volume=d,kind=block,source=$disk${*:+,$*}" '--mount=volume=d,target=/d')
}
run_with() { # OPTION -- COMMAND...
	volume ${1:+"$1"}
	husk run "${words[@]}" "$image" -- "${@:3}"
}
make_disk() {
	rm -f "$disk"
	truncate -s 64M "$disk"
	mkfs.ext4 -q "$disk"
}

say "what one pod has written the next one finds, and the file system is clean in between"
make_disk
expect 0 run_with "" -- sh -c 'mkdir /d/dir; echo data >/d/dir/file; chown 5:6 /d/dir/file; dd if=/dev/zero of=/d/big bs=1M count=8 2>/dev/null'
e2fsck -fn "$disk" >/dev/null 2>&1 || die "not clean: $(e2fsck -fn "$disk" 2>&1)"
expect 0 run_with "" -- sh -c 'cat /d/dir/file; stat -c "%u %g %s" /d/big; rm /d/big; grep " /d " /proc/self/mounts | cut -d" " -f3'
equal "$out" "data
0 0 8388608
ext4" "the next pod"

say "several apps of a pod share it, one of them cannot write"
volume
expect 0 husk run "${words[@]}" "$image" --name=a -- sh -c 'echo shared >/d/shared' --- \
	"$image" --name=b --mount=volume=d,target=/d,readOnly=true -- sh -c 'until test -s /d/shared; do sleep 0.1; done; cat /d/shared; ! touch /d/x 2>/dev/null'
equal "$out" shared "the other app"

say "read-only: the host's file does not change, and its file system can be one that is made so"
sum=$(sha256sum <"$disk")
expect 0 run_with readOnly=true -- sh -c 'cat /d/shared; ! touch /d/x 2>/dev/null; ! mount -o remount,rw /d 2>/dev/null'
equal "$out" shared "read-only"
expect 0 husk run --net=none --volume="d,kind=block,source=$disk" --mount=volume=d,target=/d,readOnly=true "$image" -- sh -c '! touch /d/x 2>/dev/null'
equal "$(sha256sum <"$disk")" "$sum" "the file"
mkdir "$work/tree"
echo packed >"$work/tree/file"
mksquashfs "$work/tree" "$work/packed" -quiet -no-progress
disk=$work/packed expect 0 run_with readOnly=true -- cat /d/file
equal "$out" packed "squashfs"

say "read-only, also for a root who owns the guest's kernel: neither the file nor the image changes, whatever the disk is sent"
image_sum() { sha256sum "$data"/pods/*/*/apps/*/rootfs | cut -d" " -f1 | sort -u; }
attack() { # OPTIONS OF THE VOLUME, LUNS: which of the disks is sda, is another thing at each boot
	volume ${1:+"$1"}
	expect 0 husk run "${words[@]}" --insecure-options=all --volume="t,kind=host,source=$build/tests" --mount=volume=t,target=/t "$image" \
		--name=attacker -- sh -c 'mkdir /n && mount -t tmpfs n /n && cd /sys/class/scsi_disk && for i in $0; do
			mknod /n/$i b $(cat 0:0:0:$i/device/block/*/dev | tr : " ") && /t/writes-disk /n/$i || exit; done' "$2"
}
before=$(image_sum)
attack readOnly=true "0 64" # the image, the volume
equal "$(grep -v "FORMAT UNIT" <<<"$out")" "" "commands that were accepted (but FORMAT UNIT, which does nothing)"
equal "$(sha256sum <"$disk")" "$sum" "the file"
equal "$(image_sum)" "$before" "the image"
cp "$disk" "$work/victim"
disk=$work/victim attack "" 64
[ "$(grep -c -x -e 'WRITE(10)' -e UNMAP -e 'WRITE SAME(16)' <<<"$out")" -eq 3 ] || die "it writes nothing anywhere: $out"

say "who writes is alone, readers are not; a pod that has ended has let go"
run_in_background --net=none --volume="d,kind=block,source=$disk" --mount=volume=d,target=/d "$image" -- sh -c 'echo up; read -r x </d/pipe || sleep 1000'
wait_for_line "$work/pod.out" up $pod
! is_vm || equal "$(find "/proc/$pod/fd" -lname "$disk")" "" "descriptors that the supervisor has kept" # the VM has them
for options in "" readOnly=true; do
	expect 254 run_with "$options" -- true
	one_line_error 'volume "d": ".*/disk" is in use'
done
if is_vm; then
	flags=$(cat /proc/"$(vmm_process "$uuid")"/fdinfo/* 2>/dev/null | grep -c 'flags:.*2$' || :)
	[ "$flags" -gt 0 ] || die "QEMU has no descriptor to write"
fi
expect 0 husk stop --force "$uuid"
wait $pod || :
expect 0 run_with "" -- true
run_in_background --net=none --volume="d,kind=block,source=$disk,readOnly=true" --mount=volume=d,target=/d "$image" -- sh -c 'echo up; sleep 1000'
wait_for_line "$work/pod.out" up $pod
expect 0 run_with readOnly=true -- true
expect 254 run_with "" -- true
one_line_error 'is in use \(only who has it with readOnly=true can share it\)'
expect 0 husk run --net=none --volume="d,kind=block,source=$disk" --mount=volume=d,target=/d,readOnly=true "$image" -- true # nobody writes
expect 0 husk stop --force "$uuid"
wait $pod || :

say "qcow2 if it is said, and then only a whole one; what is in a raw disk does not matter"
qemu-img convert -O qcow2 "$disk" "$work/qcow2"
disk=$work/qcow2 expect 0 run_with format=qcow2 -- sh -c 'cat /d/shared; dd if=/dev/urandom of=/d/big bs=1M count=40 2>/dev/null; sync'
equal "$out" shared "in the qcow2"
qemu-img check -q "$work/qcow2" || die "the qcow2 is damaged"
[ "$(stat -c %s "$work/qcow2")" -gt 41943040 ] || die "the qcow2 did not grow"
disk=$work/qcow2 expect 254 run_with "" -- true
one_line_error 'volume "d": no file system is in there \(make one with mkfs.ext4\)'
expect 254 run_with format=qcow2 -- true
one_line_error 'is not in the format qcow2'
qemu-img create -q -f qcow2 -b "$work/qcow2" -F qcow2 "$work/overlay"
disk=$work/overlay expect 254 run_with format=qcow2 -- true
one_line_error 'is only a part: it names another file'
qemu-img create -q -f qcow2 -o data_file="$work/external.data" "$work/external" 64M
disk=$work/external expect 254 run_with format=qcow2 -- true
one_line_error 'is only a part: it names another file'

say "a device, unless the host has mounted it"
loop=$(losetup --show --find "$disk" 2>/dev/null) || loop=
if [ -n "$loop" ]; then
	trap 'status=$?; set +e; losetup -d $loop; (exit $status); finish' EXIT
	disk=$loop expect 0 run_with "" -- sh -c 'cat /d/shared; echo on the device >/d/device'
	mkdir "$work/mnt"
	unshare --mount sh -c "mount $loop $work/mnt && cat $work/mnt/device && echo ready >$work/mounted && sleep 1000" >"$work/mount.out" 2>/dev/null &
	holder=$!
	wait_for_line "$work/mounted" ready $holder
	equal "$(cat "$work/mount.out")" "on the device" "what the host reads"
	disk=$loop expect 254 run_with "" -- true
	one_line_error 'is in use'
	pkill -P $holder || :
	kill $holder || :
	wait $holder || :
	losetup -d "$loop"
	trap finish EXIT
fi

say "a VM that is killed: what was synced is there"
make_disk
run_in_background --net=none --volume="d,kind=block,source=$disk" --mount=volume=d,target=/d "$image" -- sh -c '
	i=0; while :; do i=$((i + 1)); echo $i >/d/new; sync /d/new; mv /d/new /d/last; sync; echo $i; done'
wait_for_line "$work/pod.out" '^5$' $pod
kill -9 "$(vmm_process "$uuid")"
wait $pod || :
last=$(tail -n 1 "$work/pod.out")
expect 254 run_with readOnly=true -- true
one_line_error 'volume "d": who had it last has not let go of it in order, .*without readOnly'
expect 0 run_with "" -- cat /d/last
[ "$out" -ge "$last" ] || die "it says $out, and $last had been synced"

say "refused before anything is made"
mkfifo "$work/fifo"
: >"$work/empty"
for case in "source=$work/none|No such file or directory" "source=$work/fifo|neither a regular file nor a block device" \
	"source=$work|neither a regular file nor a block device" "source=$work/empty|is empty .make a file system with mkfs.ext4" \
	"source=$disk,format=vmdk|format=vmdk is none" "source=disk|is not an absolute path"; do
	expect 254 husk run --net=none --volume="d,kind=block,${case%%|*}" --mount=volume=d,target=/d docker://registry.invalid/none
	match "$err" "${case#*|}" "${case%%|*}"
done
expect 254 husk --stage1=ns run --net=none --volume="d,kind=block,source=$disk" --mount=volume=d,target=/d docker://registry.invalid/none
one_line_error 'volumes of kind=block need a VM'
