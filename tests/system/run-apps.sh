#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Several apps in one pod: they share the network, the first failure ends the pod.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
image=$(busybox_image)

say "two apps talk over the loopback interface they share"
expect 0 husk run "$image" --name=server -- sh -c 'echo hello | nc -l -p 4000' --- \
	"$image" --name=client -- sh -c 'while ! nc 127.0.0.1 4000; do :; done'
equal "$out" hello "what the client got"

say "and /dev/shm, which any user may write to, and where nothing can be executed"
expect 0 husk run "$image" --name=writer -- sh -c 'echo shared >/dev/shm/.new && mv /dev/shm/.new /dev/shm/x; stat -c "%a %u" /dev/shm' --- \
	"$image" --name=reader --user=nobody -- sh -c 'while ! cat /dev/shm/x 2>/dev/null; do :; done; echo mine >/dev/shm/y || exit 1
		rm -f /dev/shm/x 2>/dev/null && exit 2; grep " /dev/shm " /proc/mounts | grep -o "nosuid,nodev,noexec"'
equal "$(sort <<<"$out")" "$(printf '%s\n' '1777 0' nosuid,nodev,noexec shared)" "what is shared"

say "each app has a directory of its name on the scratch disk"
require debugfs
require e2fsck
expect 0 husk run "$image" --name=one -- sh -c 'echo 1 >/file; mv /etc /moved; rm -r /root' --- \
	"$image" --name=two -- sh -c 'echo 2 >/file; mv /etc /moved; rm -r /root'
for pod in "$data"/pods/run/*; do
	if [ -e "$pod/status/two" ]; then scratch=$pod/scratch; fi
done
if is_vm; then
	e2fsck -fn "$scratch" >"$work/fsck" 2>&1 || die "the scratch disk: $(cat "$work/fsck")"
	equal "$(scratch_names "$scratch")" ". .. lost+found one two " "what is on the scratch disk"
	equal "$(debugfs -R 'cat one/upper/file' "$scratch" 2>/dev/null)" 1 "what the first wrote"
	equal "$(debugfs -R 'cat two/upper/file' "$scratch" 2>/dev/null)" 2 "what the second wrote"
	match "$(dumpe2fs -h "$scratch" 2>/dev/null)" 'Filesystem state: *clean' "the disk after the end"
else
	equal "$(cd "$scratch/apps" && grep . one/upper/file two/upper/file | tr '\n' ' ')" "one/upper/file:1 two/upper/file:2 " "what both wrote"
fi
uuid=$(basename "${scratch%/*}")
for app in one two; do
	expect 0 husk export --app=$app "$uuid" "$work/$app.aci"
done
equal "$(tar -xzOf "$work/one.aci" rootfs/file)" 1 "what is exported of the first"
equal "$(tar -xzOf "$work/two.aci" rootfs/file)" 2 "what is exported of the second"

say "a pod that writes nothing looks as the image"
expect 0 husk run "$image" --name=idle -- stat -c %Y /
seen=$out
for pod in "$data"/pods/run/*; do
	if [ -e "$pod/status/idle" ]; then idle=$pod; fi
done
! is_vm || match "$(dumpe2fs -h "$idle/scratch" 2>/dev/null)" 'Filesystem state: *clean' "the disk of an idle pod"
expect 0 husk export "$(basename "$idle")" "$work/idle.aci"
equal "$(tar -tvzf "$work/idle.aci" --full-time --utc rootfs/ | head -n 1 | awk '{print $4, $5}')" \
	"$(date -u -d "@$seen" '+%Y-%m-%d %H:%M:%S')" "time of the root directory"

say "three apps, codes 0, 5, 0: the pod ends with 5"
run_in_background "$image" --name=a -- true --- "$image" --name=b -- sh -c "$wait_go; exit 5" --- \
	"$image" --name=c -- sleep 1000
wait_app_end "$uuid" a
let_go "$uuid" b
status=0
wait $pod || status=$?
equal "$status" 5 "status of the pod ($(cat "$work/pod.err"))"
equal "$(cat "$data/pods/run/$uuid"/status/{a,b} | tr '\n' ' ')" "0 5 " "status of a and b"
[ -e "$data/pods/run/$uuid/status/c" ] || die "no status of c, which the pod's end stopped"
