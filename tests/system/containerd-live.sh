#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Containers whose root directories are those that containerd has, for a host that is to see what they write: by themselves and
# in pods, what is packed all the same, and what cannot be.
# shellcheck source=tests/system/cri_lib.sh
. "$(dirname "$0")/cri_lib.sh"

configure() { # OPTIONS: of jq, a filter of the configuration of stage1
	jq "$1" "$config/stage1.d/stage1.json" >"$work/stage1.json"
	mv "$work/stage1.json" "$config/stage1.d/stage1.json"
}
# overlayfs has no mapped ids.
unmapped=$(is_vm && echo '"volume-ids": "host"' || echo '"userns": "host"')
configure '. + {"container-roots": "live"}'
start_cri
# Where the host sees what container ID writes.
written() { # ID
	local mounts dir
	mounts=$(c snapshots mounts /mnt "$1")
	dir=$(sed -n 's/.*upperdir=\([^, ]*\).*/\1/p' <<<"$mounts")
	[ -n "$dir" ] || dir=$(sed -n 's/^mount -t bind \([^ ]*\) .*/\1/p' <<<"$mounts")
	[ -d "$dir" ] || die "where are the files of $1? $mounts"
	echo "$dir"
}

if has_overlayfs; then
	say "a file system that cannot map ids, and what is said to have it all the same"
	! run --rm "$i" refused true </dev/null >out 2>&1 || die "it was started"
	match "$(cat out)" "its file system.* cannot map ids, .*--$(is_vm && echo volume-ids || echo userns)=host\\)" "the error"
	configure ".options += {$unmapped}"
fi

say "what it writes is there, and stays; what it reads is what is there"
run -d "$i" live sh -c 'echo mine >/file; rm -f /etc/passwd; until cat /made 2>/dev/null; do sleep 0.1; done; exit 3' </dev/null
dir=$(written live)
until_true [ -s "$dir/file" ]
equal "$(cat "$dir/file") $(stat -c %u "$dir/file")" "mine 0" "the file"
equal "$(c task exec --exec-id more live sh -c 'cat /file; id -u; ls /dev/null /proc/1/cmdline' </dev/null | paste -sd' ')" "mine 0 /dev/null /proc/1/cmdline" \
	"what a further process sees"
c task exec --exec-id last live sh -c 'echo made >/made' </dev/null
wait_state live STOPPED
match "$(c task rm live 2>&1)" 'exit code 3' "how it ended"
equal "$(cat "$dir/file" "$dir/made" | paste -sd' ')" "mine made" "what is left"
equal "$(c task start live </dev/null)" made "what is there when it is started anew"
c snapshots commit kept live
c container rm live
mkdir mnt
c snapshots prepare later kept >/dev/null
mounting=$(c snapshots mounts "$work/mnt" later)
equal "$(unshare --mount sh -c "$mounting"' && cat mnt/file && ls mnt/etc' | paste -sd' ')" "mine group" "what is committed"
c snapshots rm later
equal "$(packed)" 0 "roots that were packed"
equal "$("$husk_bin" "--dir=$data" image list --no-legend | wc -l)" 1 "images, of which all are empty"

say "what is only read is packed"
equal "$(run --rm --read-only "$i" reads sh -c 'touch /x 2>/dev/null || echo read-only' </dev/null)" read-only "what it says"
equal "$(packed)" 1 "roots that were packed"

say "mounts beside it, as many as there can be"
c container create --runtime io.containerd.husk.v2 "$i" model
c container info model --spec >model.json
c container rm model
of_many() { # COUNT
	jq --argjson n "$1" --arg root "$work/tree" '.root.path = $root | .process.args = ["sh", "-c", "ls /m | wc -l"] |
		.mounts += [range($n) | {destination: "/m/\(.)", type: "tmpfs", source: "tmpfs"}]' model.json >config.json
	run --rm --config config.json many </dev/null
}
"$husk_bin" "--dir=$data" --insecure-options=image fetch "$(busybox_image)" >/dev/null
"$husk_bin" "--dir=$data" image extract --rootfs-only busybox tree
equal "$(of_many 61)" 61 "mounts" # and /dev/shm, and /run
! of_many 62 >out 2>&1 || die "65 volumes are taken"
match "$(cat out)" 'at most 63 mounts of the host and tmpfs are possible beside a root directory that is live' "the error"

say "a root directory that cannot be one"
rm -rf tree/proc
ln -s /sys tree/proc
! of_many 1 >out 2>&1 || die "it has started"
match "$(cat out)" 'cannot mount /proc: the root directory has a file or a symbolic link there .make it a directory.' "the error"
equal "$(c task ls -q)$(c container ls -q)" "" "containers that are left"

say "two containers of a pod: each has its own, and files of the kubelet"
start_sandbox pod
mkdir hosts.d
echo 192.0.2.1 of-kubelet >hosts.d/hosts
settings=".mounts = [{container_path: \"/etc/hosts\", host_path: \"$work/hosts.d/hosts\"}] |
	.linux.security_context = {readonly_paths: [\"/proc/sys\"], masked_paths: [\"/proc/interrupts\"]}" # without which who shares ids is refused
start_container one "$settings | .linux.security_context += {run_as_user: {value: 7}, supplemental_groups: [8]}" sh -c 'id -u; id -G; cat /etc/hosts; cat /file 2>/dev/null || sleep 1000'
one=$container one_log=$log
start_container two "$settings | .linux.security_context.masked_paths += [\"/etc/passwd\"]" sh -c '
	echo two >/file; cat /proc/interrupts /etc/passwd; (: >/proc/sys/kernel/msgmax) 2>/dev/null || echo kept; cat /file'
equal "$(exit_code "$container") $(logged "$log" | paste -sd' ')" "0 kept two" "the second one"
log=$one_log
until_true grep -q of-kubelet "$log"
match "$(logged "$log" | paste -sd' ')" '^7 0 8 192.0.2.1 of-kubelet' "the first one"
equal "$(cat "$(written "$container")/file")" two "what the second one has written"
[ ! -e "$(written "$one")/file" ] || die "the first one has it, too"
cri StopContainer "{\"id\": \"$one\", \"timeout\": 0}" >/dev/null
cri RemoveContainer "{\"id\": \"$one\"}" >/dev/null
start_container one "$settings" sh -c 'echo anew >/file'
equal "$(exit_code "$container") $(cat "$(written "$container")/file")" "0 anew" "one after it"
start_container view "$settings | .linux.security_context.readonly_rootfs = true" sh -c 'touch /x'
equal "$(exit_code "$container") $(logged "$log")" "1 touch: /x: Read-only file system" "one that only reads"
remove_sandbox

say "nothing is left"
rm -f tree/proc
c snapshots rm kept
pods_gone
equal "$(c snapshots ls | awk '$3 == "Active"')" "" "snapshots that are left"
end_containerd
