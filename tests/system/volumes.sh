#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Volumes: what apps of a pod share, what one has to itself, what an image asks for; paths that try to lead elsewhere; what is
# refused, and in which words.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq skopeo umoci
image=$(busybox_image)

say "two apps share a directory and memory, one of them may not write"
expect 0 husk run --volume=data,kind=empty,mode=01770,uid=5,gid=6 --volume=mem,kind=empty,medium=memory,size=64Ki \
	--mount=volume=data,target=/srv/x/../data \
	"$image" --name=a --mount=volume=mem,target=/srv/data/mem --readonly-rootfs -- sh -c '
		stat -c "%a %u %g" /srv/data; echo hello >/srv/data/new; head -c 100000 /dev/zero >/srv/data/mem/full
		stat -c %s /srv/data/mem/full; ! touch /x; mv /srv/data/new /srv/data/file' --- \
	"$image" --name=b --mount=volume=data,target=/other,readOnly=true -- sh -c '
		until test -e /other/file; do sleep 0.1; done; cat /other/file; ! touch /other/x; ls /srv/data'
equal "$(sort <<<"$out" | tr '\n' ' ')" "1770 5 6 65536 file hello mem " "what the apps see"
match "$err" "/x: Read-only file system" "the root"
match "$err" "/other/x: Read-only file system" "the volume"

say "devices of a volume are none"
expect 0 husk run --volume=data,kind=empty --mount=volume=data,target=/data "$image" -- sh -c '
	mknod /data/null c 1 3 && echo x >/data/null; grep -o " /data .*nodev" /proc/self/mounts | wc -l'
match "$out" '^1$' "the mount"
match "$err$out" 'Permission denied|Operation not permitted' "an opened node"

say "where a link leads: in the app's root, whatever it says; not to a file, nor to the root itself"
mkdir -p "$work/tree/bin" "$work/tree/real"
cp "$(command -v busybox)" "$work/tree/bin/sh"
ln -s /real "$work/tree/absolute"
ln -s ../../../../real "$work/tree/relative"
ln -s . "$work/tree/root"
mkdir "$work/outside"
ln -s "../../../../../../$work/outside" "$work/tree/outside"
ln -s /proc/1/root "$work/tree/magic"
ln -s /proc "$work/tree/proclink"
echo text >"$work/tree/file"
tree="rootfs:$work/tree"
for link in absolute relative; do
	expect 0 husk run --volume=v,kind=empty --mount=volume=v,target=/$link/below "$tree" --exec=/bin/sh -- \
		-c "echo x >/real/below/y; while read -r _ path _; do [ \$path != /real/below ] || echo \$path; done </proc/self/mounts"
	equal "$out" /real/below "through $link"
done
expect 0 husk run --volume=v,kind=empty --mount=volume=v,target=/outside/x "$tree" --exec=/bin/sh -- -c "echo $work/outside/*"
equal "$out" "$work/outside/x" "what is made where it is missing"
equal "$(ls "$work/outside")" "" "outside"
expect 254 husk run --volume=v,kind=empty --mount=volume=v,target=/file "$tree" --exec=/bin/sh
one_line_error 'volume "v": /file is no directory'
expect 254 husk run --volume=v,kind=empty --mount=volume=v,target=/root "$tree" --exec=/bin/sh
one_line_error 'volume "v": cannot mount it at /root'
# Below what the pod mounts itself, so that nobody sees it.
expect 0 husk run --volume=v,kind=empty --mount=volume=v,target=/magic/x "$tree" --exec=/bin/sh -- -c :
[ ! -e /x ] || die "something was made behind /proc/1/root"
expect 0 husk run --volume=v,kind=empty --mount=volume=v,target=/proclink "$tree" --exec=/bin/sh -- \
	-c 'read -r name _ </proc/self/stat; test -n "$name" && echo it is proc'
equal "$out" "it is proc" "/proc"

say "what an image declares, with its content, also in a root that is read-only; by name and by path it is another one"
mkdir -p "$work/tree/var/lib/data"
echo shipped >"$work/tree/var/lib/data/file"
chown -R 7:8 "$work/tree/var/lib/data"
expect 0 husk fetch --full "$tree"
expect 0 husk image export --format=oci "$out" "$work/declares.oci"
skopeo --insecure-policy copy --quiet "oci-archive:$work/declares.oci" "oci:$work/declares:latest"
umoci config --image "$work/declares:latest" --config.volume=/var/lib/data --config.volume=/proc/x
declares=oci:$work/declares:latest
write='! test -e /var/lib/data/file || { read -r line </var/lib/data/file; echo "$line"; }; echo more >/var/lib/data/more && echo written; : >/x'
expect 1 husk run "$declares" --exec=/bin/sh --readonly-rootfs -- -c "$write"
equal "$out" "shipped
written" "the image's own"
for way in --volume=volume-var-lib-data,kind=empty "--volume=v,kind=empty --mount=volume=v,target=/var/lib/data"; do
	read -ra words <<<"$way"
	expect 1 husk run "${words[@]}" "$declares" --exec=/bin/sh --readonly-rootfs -- -c "$write"
	equal "$out" "written" "$way"
done

say "apps that come and go: one uses the pod's, one has its own, which goes with it"
expect 0 husk app sandbox "${run_options[@]}" --detach --volume=shared,kind=empty
pod=$out
add() { # NAME WORDS...
	expect 0 husk app add "$pod" "$image" --name="$1" "${@:2}" -- sleep 1000
	expect 0 husk app start --app="$1" "$pod"
}
add first --mount=volume=shared,target=/s --mnt-volume=name=mine,kind=empty,target=/m --mnt-volume=name=memory,kind=empty,medium=memory,target=/t
add second --mount=volume=shared,target=/s,readOnly=true --mnt-volume=name=mine,kind=empty,target=/m
expect 0 husk app exec --app=first "$pod" sh -c 'echo 1 >/s/file; echo 2 >/m/file; echo 3 >/t/file'
expect 0 husk app exec --app=second "$pod" sh -c 'cat /s/file; ls /m'
equal "$out" 1 "the second's"
expect 0 husk app status --app=second --format=json "$pod"
equal "$(jq -c .mounts <<<"$out")" \
	'[{"name":"shared","container_path":"/s","read_only":true},{"name":"mine","container_path":"/m","read_only":false}]' "JSON"
expect 0 husk app status --app=second "$pod"
match "$out" 'mounts=
shared:/s:\(read_only:true\),mine:/m:\(read_only:false\)' "lines"
expect 0 husk app stop --app=first --grace=0 "$pod"
expect 0 husk app start --app=first "$pod"
expect 0 husk app exec --app=first "$pod" cat /s/file /m/file /t/file
equal "$out" "1
2
3" "after another start"
expect 0 husk app rm --app=first --grace=0 "$pod"
add first --mount=volume=shared,target=/s --mnt-volume=name=mine,kind=empty,target=/m --mnt-volume=name=memory,kind=empty,medium=memory,target=/t
expect 0 husk app exec --app=first "$pod" sh -c 'cat /s/file; ls /m /t'
equal "$out" "1
/m:

/t:" "of another app with the same name"
expect 254 husk app add "$pod" "$image" --name=third --mount=volume=shared,target=/bin/sh
one_line_error '/bin/sh is no directory'
expect 254 husk app add "$pod" "$image" --name=third --mount=volume=none,target=/x
one_line_error 'dangling mount point "/x": volume "none" not found'
add third --mount=volume=shared,target=/x
expect 0 husk app exec --app=third "$pod" cat /x/file
equal "$out" 1 "the name is free after a failure"
expect 0 husk stop "$pod"

say "as many mounts as an app can have"
mounts=()
for ((i = 0; i < 64; i++)); do
	mounts+=(--mount="volume=v,target=/m$i")
done
expect 0 husk run --net=none --volume=v,kind=empty "${mounts[@]}" "$image" -- sh -c 'echo x >/m0/file && cat /m63/file'
equal "$out" x "in the last"

say "refused before anything is made"
expect 254 husk run --net=none --volume=v,kind=empty "${mounts[@]}" --mount=volume=v,target=/m64 "$image" -- true
one_line_error 'at most 64 mounts'
expect 254 husk run --mount=volume=y,target=/z docker://registry.invalid/none
equal "$err" 'run: dangling mount point "/z": volume "y" not found' "no such volume"
expect 254 husk run --volume=x,kind=empty --volume=x,kind=empty "$image"
one_line_error 'duplicate volume name "x"'
