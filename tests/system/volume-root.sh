#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A directory of the host as the root directory of apps: what both see of it, what it is protected from, and what it protects.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" -eq 0 ] || skip "needs root"
image=$(busybox_image)
chmod 755 "$work"
tree=$work/tree
volume="--volume=root,kind=host,source=$tree"
root=(--net=none "$volume" '--mount=volume=root,target=/')

expect 0 husk run --net=none "$image" -- true
expect 0 husk image extract --rootfs-only busybox "$tree"
echo 'own:x:7:8::/home/own:/bin/sh' >>"$tree/etc/passwd"
rmdir "$tree/proc" "$tree/sys" "$tree/dev" 2>/dev/null || :

say "two apps at once, which both make what is missing"
for _ in 1 2 3; do
	expect 0 husk run "${root[@]}" "$image" --name=a -- sh -c 'echo a >/a; until [ -e /b ]; do sleep 0.1; done; echo b-is-there' \
		--- "$image" --name=b -- sh -c 'until [ -e /a ]; do sleep 0.1; done; echo b >/b; echo a-is-there'
	equal "$(sort <<<"$out" | paste -sd' ')" "a-is-there b-is-there" "what they see of each other"
	rm "$tree/a" "$tree/b"
	rmdir "$tree/proc" "$tree/sys" "$tree/dev"
done

say "users, files and directories are those of the host; what is mounted in there is not on the host"
echo old >"$tree/old"
expect 0 husk run "${root[@]}" --volume=data,kind=empty --mount=volume=data,target=/srv/data "$image" --user=own -- sh -c '
	id -u; id -g; cat /old; [ -c /dev/null ] && [ -d /proc/1 ] && [ -d /sys/kernel ] && ls /srv'
equal "$(paste -sd' ' <<<"$out")" "7 8 old data" "in the pod"
expect 0 husk run "--uuid-file-save=$work/uuid" "${root[@]}" "$image" -- sh -c 'echo new >/new; rm /old; : >/srv/data/x; hostname'
equal "$out" "husk-$(cat "$work/uuid")" "the name of the pod"
equal "$(cat "$tree/new") $(stat -c %u "$tree/new" "$tree/srv/data/x" | paste -sd' ')" "new 0 0" "what the pod has written"
[ ! -e "$tree/old" ] || die "what the pod has removed is there"
equal "$(find "$tree/proc" "$tree/sys" "$tree/dev" -mindepth 1)" "" "what is in the places of the pod's mounts"

say "no part of an image, so not exported; the tree outlives the pod"
expect 254 husk export "$(cat "$work/uuid")" "$work/root.aci"
one_line_error 'app "busybox": its root directory is volume "root", and what it has written is there$'
expect 0 husk rm "$(cat "$work/uuid")"
equal "$(cat "$tree/new")" new "what the pod has left"

say "read-only, by the volume or the app, with what is mounted below: whatever of it has been looked at"
mkdir -p "$tree/mnt" "$tree/srv/data" "$tree/home"
with_mounts='for d in mnt etc; do cp -r "$1/$d" "$1/home" && mount -t tmpfs none "$1/$d" && cp -r "$1/home/$d" "$1"; done && mkdir "$1/mnt/vol" && shift && exec "$@"'
in_namespace() { unshare --mount --propagation private sh -c "$with_mounts" - "$tree" "$husk_bin" "--dir=$data" run "${run_options[@]}" "$@"; }
own=('--volume=data,kind=empty' '--mount=volume=data,target=/srv/data' '--volume=below,kind=empty' '--mount=volume=below,target=/mnt/vol')
tries='touch /x x /mnt/x /etc/x /etc/passwd 2>/dev/null; ls /x /mnt/x /etc/x 2>/dev/null
	touch /srv/data/y /mnt/vol/y && : >/dev/shm/x && ! (: >/proc/sys/kernel/msgmax) 2>/dev/null && grep -c " / [^ ]* ro" /proc/mounts'
expect 0 in_namespace "${root[@]}" "${own[@]}" "$image" --readonly-rootfs --user=own --group=8 --working-dir=/mnt -- sh -c 'touch x 2>/dev/null || echo read-only'
equal "$out" "read-only" "one with another user and directory"
for how in "$volume --readonly-rootfs" "$volume,readOnly=true --user=0"; do
	expect 0 in_namespace --net=none "${how% *}" "${root[2]}" "${own[@]}" "$image" "${how#* }" -- sh -c "$tries"
	equal "$out" 1 "$how"
done
rm -r "${tree:?}/srv" "${tree:?}/home"
expect 254 husk run "${root[@]}" "${own[@]:0:2}" "$image" --readonly-rootfs -- true
one_line_error 'volume "data": cannot mount it at /srv/data: Read-only file system'
rmdir "$tree/proc"
expect 203 husk run "${root[@]}" "$image" --readonly-rootfs -- true
one_line_error 'cannot mount /proc: the root directory has nothing there .make it a directory.'
mkdir "$tree/proc"
[ ! -e "$tree/x" ] || die "it was written to"

say "paths that are hidden or only read, whatever is written in front of them"
echo secret >"$tree/etc/secret"
jq -n --arg source "$tree" '{acVersion: "0.8.11", acKind: "PodManifest", volumes: [{name: "root", kind: "host", $source}], apps: [{name: "busybox",
	image: {id: $ARGS.positional[0]}, mounts: [{volume: "root", path: "/"}], app: {exec: ["/bin/sh", "-c", $ARGS.positional[1]], user: "0", group: "0",
		mountPoints: [{name: "of-image", path: "/of-image"}],
		isolators: [{name: "husk/masked-paths", value: {set: ["/proc/../etc/secret", "/proc/uptime", "//proc/version"]}},
			{name: "husk/read-only-paths", value: {set: ["/dev/../etc/passwd"]}}]}}]}' --args "$(husk image list --fields=id --no-legend --full | head -n 1)" \
	'cat /etc/secret /proc/uptime /proc/version; (: >/etc/passwd) 2>/dev/null || echo kept; [ ! -e /of-image ] && echo none' >"$work/manifest.json"
expect 0 husk run --net=none "--pod-manifest=$work/manifest.json"
equal "$(paste -sd' ' <<<"$out")" "kept none" "what it finds"

say "what cannot be one"
expect 254 husk run --net=none --volume=data,kind=empty --mount=volume=data,target=/ "$image" -- true
one_line_error 'app "busybox": volume "data" cannot be its root directory: only one of kind=host can$'
expect 254 husk run --net=none "--volume=root,kind=host,source=$tree/new" "${root[@]:2}" "$image" -- true
one_line_error 'volume "root" is a file, and / is a directory'
mv "$tree/proc" "$tree/place"
for link in place ../../../../../../proc /; do
	ln -s $link "$tree/proc"
	expect 203 husk run "${root[@]}" "$image" -- cat /proc/self/status
	one_line_error 'app "busybox": Error: cannot mount /proc: the root directory has a file or a symbolic link there .make it a directory.'
	rm "$tree/proc"
done
mv "$tree/place" "$tree/proc"
mkdir "$work/nothing"
expect 203 husk run --net=none "--volume=root,kind=host,source=$work/nothing" "${root[@]:2}" "$image" -- sh
match "$err" 'Unable to open "/bin/sh": No such file' "without a program"
equal "$(find "$work/nothing" -mindepth 1 -printf '%f\n' | sort | paste -sd' ')" "dev proc root sys" "what is made: the directory that it would start in, too"

say "in a pod that runs: several apps, one after the other, and anew"
hot=()
is_vm && hot=(--hot-volumes=always)
expect 0 husk app sandbox --net=none --detach "${run_options[@]}" "${hot[@]}"
sandbox=$out
hot_root="--mnt-volume=name=root,kind=host,source=$tree,target=/"
has_exited() { husk app status "--app=$1" "$sandbox" | grep '^exit_code=0$' >/dev/null; }
is_logged() { [ "$(paste -sd' ' "$tree/log")" = "$1" ]; }
expect 0 husk app add "$sandbox" "$image" --name=first "$hot_root" -- sh -c 'echo first >>/log; ls /bin/sh'
expect 0 husk app start --app=first "$sandbox"
until_true has_exited first
expect 0 husk app add "$sandbox" "$image" --name=second "$hot_root" -- sh -c 'cat /log; sleep 1000'
expect 0 husk app start --app=second "$sandbox"
expect 0 husk enter --app=second "$sandbox" cat /log
equal "$out" first "what a further process sees"
expect 0 husk app start --app=first "$sandbox"
until_true is_logged "first first"
expect 254 husk app add "$sandbox" "$image" --name=third "$hot_root" "--mnt-volume=name=file,kind=host,source=$tree/new,target=/etc" -- true
one_line_error 'volume "file" is a file, and /etc is a directory'
expect 0 husk app rm --app=first "$sandbox"
expect 0 husk app rm --app=second "$sandbox"
expect 0 husk app add "$sandbox" "$image" --name=third -- sh -c '[ ! -e /log ]'
expect 0 husk app start --app=third "$sandbox"
until_true has_exited third
equal "$(paste -sd' ' "$tree/log") $(cat "$tree/new")" "first first new" "what the pod has left"
expect 0 husk stop "$sandbox"

say "in a tree whose /proc is a link half of the time the kernel's parameters are never open"
ln -s place "$tree/link"
mkdir "$tree/place"
/usr/bin/python3 - "$tree" <<'END' &
import ctypes, os, sys
os.chdir(sys.argv[1])
libc = ctypes.CDLL(None)
while True:
    libc.renameat2(-100, b"proc", -100, b"link", 2)
END
changing=$!
deadline=$((SECONDS + vm_limit)) started=0
while [ $started -lt 2 ]; do
	code=0
	husk run "${root[@]}" "$image" -- sh -c 'for i in 1 2 3 4 5 6 7 8 9; do for d in /proc /link /place; do
		(: <>$d/sys/kernel/msgmax) 2>/dev/null && exit 99
	done; done; exit 0' >"$work/out" 2>&1 || code=$?
	case $code in
	0) started=$((started + 1)) ;;
	203) match "$(cat "$work/out")" 'cannot mount /proc: the root directory has a file or a symbolic link there' "why not" ;;
	99) die "they are open" ;;
	*) die "exit code $code: $(cat "$work/out")" ;;
	esac
	[ $SECONDS -lt $deadline ] || die "no two pods have started"
done
kill $changing
