#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Directories and files of the host in pods: what both see of each other, what read-only means, what a pod cannot leave on the
# host, who serves it and what that one sees; other users; failures.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require setpriv unshare
[ "$(id -u)" -eq 0 ] || skip "needs root"
# In namespaces of its own, where it can mount below volumes, and sees no pods of other tests.
own_namespaces --mount --propagation private --pid --fork --kill-child --mount-proc
image=$(busybox_image)
shared=$work/shared
mkdir -p "$shared"/{dir,below,ro}
chmod 755 "$work"
volume=(--net=none "--volume=v,kind=host,source=$shared" '--mount=volume=v,target=/v')

# The processes that serve volumes.
servers() { pgrep -x virtiofsd || :; }
# Those of a pod end with it, but are not its children.
no_servers() {
	local deadline=$((SECONDS + gone_limit))
	while [ -n "$(servers)" ]; do
		[ $SECONDS -lt $deadline ] || die "servers are left: $(servers)"
		read -rt 0.05 <> <(:) || :
	done
}

# in_pod SCRIPT: in a shell of a pod that has the directory at /v.
in_pod() { husk run "${volume[@]}" "$image" -- sh -c "$1"; }

say "what the one writes the other sees: content, owner, mode, links, time"
echo from the host >"$shared/host"
ln -s /etc/hostname "$shared/link"
expect 0 in_pod 'cat /v/host; readlink /v/link; cat /v/link >/dev/null; cd /v/dir; echo from the pod >file; chown 12:34 file; chmod 640 file
	ln file hard; ln -s ../../../../host soft; mkdir sub; mkfifo fifo; touch -d "2001-02-03 04:05:06" old; cat soft 2>&1 || echo not outside'
equal "$out" "from the host
/etc/hostname
cat: can't open 'soft': No such file or directory
not outside" "in the pod"
equal "$(cat "$shared/dir/file")" "from the pod" "on the host"
equal "$(stat -c '%u %g %a %h' "$shared/dir/hard")" "12 34 640 2" "the file"
equal "$(stat -c %F "$shared/dir/fifo")" fifo "the FIFO"
equal "$(date -u -r "$shared/dir/old" +%F)" 2001-02-03 "the time"

say "what happens on the host while the pod runs: at once, or after a second"
run_in_background "${volume[@]/%"source=$shared"/"source=$shared,cache=never"}" "$image" -- sh -c '
	until grep -q second /v/dir/file; do sleep 0.1; done; cat /v/dir/file; until test -e /v/made/x; do sleep 0.1; done; ls /v/made'
echo second >"$shared/dir/new"
mv "$shared/dir/new" "$shared/dir/file"
mkdir "$shared/made.new" && touch "$shared/made.new/x" && mv "$shared/made.new" "$shared/made"
wait $pod
equal "$(cat "$work/pod.out")" "second
x" "what the pod saw"

say "read-only: for one mount, for the volume, and for what is mounted below"
mount -t tmpfs none "$shared/below"
echo below >"$shared/below/file"
sum=$(find "$shared" -type f -exec sha256sum {} + | sort | sha256sum)
expect 0 husk run --net=none --volume="r,kind=host,source=$shared,readOnly=true" --volume="w,kind=host,source=$shared" \
	--mount=volume=r,target=/r --mount=volume=w,target=/w,readOnly=true "$image" -- sh -c '
	[ "$(stat -c %d /r)" != "$(stat -c %d /r/below/file)" ] || echo one file system
	for v in /r /w; do cat $v/below/file; for f in x host dir/x below/x below/file; do echo x 2>/dev/null >$v/$f && echo "$v/$f written"; done
	rm -f $v/host 2>/dev/null; mount -o remount,rw $v 2>/dev/null && echo remounted; done; true'
equal "$out" "below
below" "what could be done"
equal "$(find "$shared" -type f -exec sha256sum {} + | sort | sha256sum)" "$sum" "the host's files"
expect 0 husk run --net=none --volume="v,kind=host,source=$shared,recursive=false" --mount=volume=v,target=/v "$image" -- ls -A /v/below
equal "$out" "" "below, without what is mounted there"
umount "$shared/below"

say "a file as a volume, where the image has one and where it has none; what is on both sides must fit"
echo one >"$shared/conf"
file=(--net=none --volume="f,kind=host,source=$shared/conf")
expect 0 husk run "${file[@]}" --mount=volume=f,target=/etc/new/name --mount=volume=f,target=/etc/passwd "$image" -- sh -c \
	'cat /etc/passwd; echo two >>/etc/new/name; cat /etc/passwd'
equal "$out" "one
one
two" "the file"
equal "$(cat "$shared/conf")" "one
two" "the host's"
expect 254 husk run "${file[@]}" --mount=volume=f,target=/bin "$image" -- true
one_line_error 'volume "f" is a file, and /bin is a directory'
expect 254 husk run "${volume[@]}" --mount=volume=v,target=/etc/passwd "$image" -- true
one_line_error 'volume "v": /etc/passwd is no directory'

say "what would make somebody on the host more than he is cannot be made"
cp "$(command -v busybox)" "$shared/setuid"
chmod 4755 "$shared/setuid"
cannot='cd /v/dir; for mode in 4755 2755 6711; do cp /bin/busybox bits && chmod $mode bits 2>/dev/null; mkdir -m $mode bitsdir 2>/dev/null; done
	mknod disk b 8 0 2>/dev/null && echo a disk; mknod char c 10 232 2>/dev/null && echo a device; cp -a /v/setuid copy 2>/dev/null; echo x >>/v/setuid'
expect 0 in_pod "$cannot"
equal "$out" "" "devices"
equal "$(find "$shared" '(' -type b -o -type c ')' )" "" "devices on the host"
! is_vm || equal "$(find "$shared/dir" -type f -perm /6000)" "" "files with set-ID bits"
! is_vm || equal "$(find "$shared/setuid" -perm /6000)" "" "one that the pod has written to"

if is_vm; then
	say "who serves sees the volumes and nothing else, has no privileges, and is gone with the pod"
	run_in_background "${volume[@]}" "$image" -- sh -c 'echo up; sleep 1000'
	wait_for_line "$work/pod.out" up $pod
	server=$(servers | tail -n 1)
	for namespace in user mnt net ipc uts pid; do
		[ "$(readlink "/proc/$server/ns/$namespace")" != "$(readlink "/proc/self/ns/$namespace")" ] || die "namespace $namespace is the host's"
	done
	equal "$(nsenter -t "$server" -m -U -- "$(command -v busybox)" true 2>&1 | grep -c 'No such file')" 1 "a program of the host in there"
	equal "$(find "/proc/$server/root/" -mindepth 1 -maxdepth 2 ! -path '*/root/0/*' -printf '%P\n' | sort)" "0
apps" "its root directory, with a place for what apps bring"
	match "$(awk '$5 == "/" { print $6 }' "/proc/$server/mountinfo" | tail -n 1)" '^ro,nosuid,nodev,noexec' "how that is mounted"
	stands_for=$(pgrep -x husk-virtiofs)
	equal "$(awk '/^CapEff|^CapPrm/ { print $2 }' "/proc/$stands_for/status" | uniq)" 0000000000000020 "capabilities of who stands for it"
	equal "$(awk '/^CapEff/ {print $2}' "/proc/$server/status")" 00000000880000db "its capabilities, in its user namespace"
	equal "$(awk '/^Seccomp:|^NoNewPrivs/ {print $2}' "/proc/$server/status" | tr '\n' ' ')" "1 2 " "no_new_privs, a filter"
	equal "$(cut -d' ' -f2 "/proc/$server/environ" 2>/dev/null | tr -d '\0')" "" "its environment"
	[ "$(awk '/^Uid/ {print $2}' "/proc/$server/status")" -ge $((0x70000000)) ] || die "it has the ids of somebody on the host"
	[ "$(awk '/^Max open files/ {print $4}' "/proc/$server/limits")" -le 1000000 ] || die "no limit of open files"

	say "when it is killed, the pod ends and says so"
	kill -9 "$server"
	expect 254 wait $pod
	match "$(tail -n 1 "$work/pod.err")" '^stage1: what serves volumes ended unexpectedly: virtiofsd: ' "what husk says"
	no_servers

	say "who has stopped serving ends with the pod, too"
	run_in_background "${volume[@]}" "$image" -- sh -c 'echo up; sleep 1000'
	wait_for_line "$work/pod.out" up $pod
	kill -STOP "$(servers | tail -n 1)"
	expect 0 husk stop --force "$uuid"
	wait $pod || :
	no_servers

	say "a file system that cannot map ids, and what is said to have it all the same"
	mount -t ramfs none "$shared/ro"
	expect 254 in_pod true
	one_line_error 'what serves volumes ended unexpectedly: virtiofsd: exit code 1: volume of ".*/shared": its file system, or one that is mounted below, cannot map ids, .*--volume-ids=host\)$'
	run_in_background --volume-ids=host "${volume[@]}" "$image" -- sh -c 'echo x >/v/ro/file; chown 5:6 /v/ro/file; echo up; sleep 1000'
	wait_for_line "$work/pod.out" up $pod
	equal "$(stat -c '%u %g' "$shared/ro/file")" "5 6" "owner on the host"
	equal "$(awk '/^Uid/ {print $2}' "/proc/$(servers | tail -n 1)/status")" 0 "who serves"
	expect 0 husk stop "$uuid"
	wait $pod || :
	umount "$shared/ro"

	say "without one, or with another VMM: said before anything is made"
	expect 254 husk run --virtiofsd=/nonexistent/virtiofsd "${volume[@]}" docker://registry.invalid/none
	one_line_error '--virtiofsd=/nonexistent/virtiofsd: No such file or directory'
	expect 254 husk run --vmm=libvirt --machine=q35 "${volume[@]}" docker://registry.invalid/none
	one_line_error 'volumes of kind=host are not there with --vmm=libvirt'
else
	say "a file system that cannot map ids, and what is said to have it all the same"
	mount -t ramfs none "$shared/ro"
	expect 254 in_pod true
	one_line_error '^stage1: volume of ".*/shared": its file system, or one that is mounted below, cannot map ids, as this pod needs it \(use another one, or start the pod with --userns=host\)$'
	expect 0 husk run --userns=host "${volume[@]}" "$image" -- sh -c 'echo x >/v/ro/file; chown 5:6 /v/ro/file'
	equal "$(stat -c '%u %g' "$shared/ro/file")" "5 6" "owner on the host"
	umount "$shared/ro"

	say "ids that a user namespace does not have: read as nobody's, and not to be had"
	echo secret >"$shared/high"
	chown 70000:70000 "$shared/high"
	chmod 600 "$shared/high"
	expect 0 in_pod 'stat -c "%u %g" /v/high; cat /v/high 2>/dev/null; chown 0 /v/high 2>/dev/null; chown 70000 /v/dir 2>/dev/null; :'
	equal "$out" "65534 65534" "in the pod"
	equal "$(stat -c '%u %a' "$shared/high" "$shared/dir")" $'70000 600\n0 755' "on the host"
fi

say "a directory of a group, for somebody who is in that group, too"
mkdir -m 2770 "$shared/team"
chgrp 77 "$shared/team"
chmod 2770 "$shared/team"
as_member='cd /v/team && echo x >file && mkdir dir && mv file dir/file && ln dir/file hard && ln -s hard soft && mkfifo fifo && rm soft && stat -c "%u %g %a" . dir hard'
expect 0 husk run "${volume[@]}" "$image" --user=1000 --group=1000 --supplementary-gids=77 -- sh -c "$as_member"
equal "$out" "0 77 2770
1000 77 2755
1000 77 644" "in the pod"
equal "$(stat -c '%u %g %a' "$shared/team" "$shared/team/dir" "$shared/team/hard")" "$out" "on the host"
expect 2 husk run "${volume[@]}" "$image" --user=1000 --group=1000 -- sh -c "cd /v/team"

say "an app that comes later has it, too"
expect 0 husk app sandbox --net=none "${run_options[@]}" --detach --volume="v,kind=host,source=$shared"
sandbox=$out
expect 0 husk app add "$sandbox" "$image" --name=late --mount=volume=v,target=/late -- sh -c 'cat /late/conf'
expect 0 husk app start --app=late "$sandbox"
until husk app status --app=late "$sandbox" | grep -q '^exit_code=0'; do read -rt 0.2 <> <(:) || :; done
expect 0 husk stop "$sandbox"

say "refused before anything is made"
for case in 'kind=host|source= is not an absolute path' "kind=host,source=shared|source=shared is not an absolute path" \
	"kind=host,source=$work/none|volume \"v\": \"$work/none\": No such file or directory" \
	'kind=host,source=/dev/null|neither a directory nor a regular file' "kind=host,source=$shared,size=1Mi|kind=host is as its source is"; do
	expect 254 husk run --net=none --volume="v,${case%%|*}" --mount=volume=v,target=/v docker://registry.invalid/none
	match "$err" "${case#*|}" "${case%%|*}"
done

say "of another user: what belongs to him, and nobody else can own"
mkdir "$work/his"
chown 65534:65534 "$work/his"
groups=100,$(stat -c %g /dev/kvm 2>/dev/null) || groups=100 # as people have
as_user() { HOME=$work/his setpriv --reuid=65534 --regid=65534 "--groups=$groups" --pdeathsig=keep "$@"; }
if is_vm; then
	cp -r "$image" "$work/image"
	chmod -R a+rX "$work/image"
	expect 0 as_user timeout "$vm_limit" "$build/bin/husk" "--dir=$work/his/data" --system-config= --local-config= run \
		--insecure-options=image "${run_options[@]}" --net=none --volume="v,kind=host,source=$work/his" --mount=volume=v,target=/v "$work/image" -- sh -c '
		stat -c %u /v; echo x >/v/file; stat -c %u /v/file; chown 5 /v/file 2>/dev/null || echo not his to give; mknod /v/disk b 8 0 2>/dev/null || echo no'
	equal "$out" "0
0
not his to give
no" "in the pod"
	equal "$(stat -c '%u %g' "$work/his/file")" "65534 65534" "on the host"
fi

# What the guest has forgotten virtiofsd closes when it gets to that, so there is room for as many again.
say "a tree of 2000 files: copied, listed and removed in the pod as on the host, by who can have 1000 open"
mkdir -p "$work/tree"
for ((i = 0; i < 10; i++)); do
	mkdir "$work/tree/$i"
	for ((k = 0; k < 200; k++)); do echo $((i * k)) >"$work/tree/$i/$k"; done
done
cp -a "$work/tree" "$shared/tree"
{
	echo "#!/bin/sh"
	echo "ulimit -n 1000 && exec setpriv --bounding-set=-sys_resource '$husk_bin' \"\$@\""
} >"$work/husk-1000"
chmod 755 "$work/husk-1000"
husk_bin=$work/husk-1000 expect 0 in_pod 'cp -a /v/tree /v/copy && rm -r /v/tree && find /v/copy -type f >/list && wc -l </list'
equal "$out" 2000 "files in the pod"
diff -r "$work/tree" "$shared/copy" || die "the copy differs"
[ ! -e "$shared/tree" ] || die "the tree is still there"
expect 0 in_pod 'rm -rf /v/copy'
[ ! -e "$shared/copy" ] || die "the copy is still there"

say "nothing is left: no process, and the directory is nobody's"
no_servers
mount -t tmpfs none "$shared/below"
mount --bind "$shared/below" "$shared/ro"
expect 0 husk run --net=none --volume="v,kind=host,source=$shared/ro" --mount=volume=v,target=/v "$image" -- touch /v/x
umount "$shared/ro" || die "the directory is busy after the pod's end"
umount "$shared/below" || die "the directory is busy after the pod's end"
