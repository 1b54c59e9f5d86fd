#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Directories and files of the host that apps bring into a pod that runs, and take with them: what they see, what is left
# behind, what keeps a file system of the host in use; other users; failures.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq setpriv unshare
[ "$(id -u)" -eq 0 ] || skip "needs root"
[ -x /usr/bin/python3 ] || skip "needs Debian's python3"
[ -L /bin ] || skip "programs of this host are not all in /usr"
# In namespaces of its own, where it can mount, and sees no pods of other tests.
own_namespaces --mount --propagation private --pid --fork --kill-child --mount-proc
image=$(busybox_image)
chmod 755 "$work"
mkdir "$work/a" "$work/b" "$work/disk"
echo of a >"$work/a/file"
echo of b >"$work/b/file"
echo a file >"$work/conf"
hot=()
! is_vm || hot=(--hot-volumes=always)

sandbox() { # WORDS...
	expect 0 husk app sandbox --net=none "${run_options[@]}" --detach "${hot[@]}" "$@"
	pod=$out
	expect 0 husk status --wait-ready "$pod"
}

# bring NAME TARGET SOURCE[,KEY=VALUE...]: the words for it.
bring() { echo "--mnt-volume=name=$1,kind=host,target=$2,source=$3"; }

# add NAME WORDS...: an app that runs.
add() {
	expect 0 husk app add "$pod" "$image" --name="$1" "${@:2}" -- sleep 1000
	expect 0 husk app start --app="$1" "$pod"
}

remove() { expect 0 husk app rm --grace=0 --app="$1" "$pod"; }

in_app() { # NAME SCRIPT
	husk app exec --app="$1" "$pod" sh -c "$2"
}

# What the supervisor has started, and who serves volumes.
processes() {
	sed -n 's/^Pid:\t//p' "/proc/$(cat "$data/pods/run/$pod/pid")"/fdinfo/*
	pgrep -x virtiofsd || :
}

mounts() {
	local process
	processes | while read -r process; do cat "/proc/$process/mountinfo" 2>/dev/null || :; done
}

# The guest's kernel forgets its files a moment after they are unmounted.
wait_not_open() { # DEVICE
	local deadline=$((SECONDS + vm_limit)) process
	while processes | while read -r process; do stat -Lc %d "/proc/$process"/fd/* 2>/dev/null || :; done | grep -qx "$1"; do
		[ $SECONDS -lt $deadline ] || die "something of the file system is still open"
		read -rt 0.05 <> <(:) || :
	done
}

# Neither links of the app, nor what no app has.
nothing_left() { # APP
	local process dir key seen=none
	for process in $(processes); do
		for dir in "/proc/$process/root"{,/host}/apps; do
			[ ! -e "$dir" ] || seen=some
			[ ! -e "$dir/$1" ] || die "something of $1 is still there"
			for key in "$dir/+shared"/*; do
				[ ! -e "$key" ] || [ -n "$(find "$dir" -lname "../+shared/${key##*/}")" ] ||
					die "something that nobody has is still mounted"
			done
		done
	done
	equal "$seen" some "directories that were looked at"
}

say "a directory and a file, one of them read-only, in a pod that had none"
sandbox
add first "$(bring d /d "$work/a")" "$(bring c /etc/conf "$work/conf,readOnly=true")"
expect 0 in_app first 'cat /d/file /etc/conf; echo x >/d/new; echo y 2>/dev/null >/etc/conf || echo no; mount -o remount,rw /etc/conf 2>/dev/null; ls /d'
equal "$out" "of a
a file
no
file
new" "in the app"
equal "$(cat "$work/a/new" "$work/conf")" "x
a file" "on the host"
equal "$(stat -c '%u %g' "$work/a/new")" "0 0" "owner on the host"
expect 0 husk app status --app=first --format=json "$pod"
equal "$(jq -c '[.mounts[] | [.name, .container_path, .read_only]]' <<<"$out")" '[["d","/d",false],["c","/etc/conf",true]]' "JSON"

say "another app has its own of the same name, and sees nothing of the first's"
add second "$(bring d /d "$work/b")"
expect 0 in_app second 'cat /d/file; test ! -e /etc/conf && echo none'
equal "$out" "of b
none" "in the second"
expect 0 in_app first 'cat /d/file'
equal "$out" "of a" "in the first"

say "they are there again after another start, and gone with the app; the name is free for others, at once"
expect 0 husk app stop --grace=0 --app=first "$pod"
expect 0 husk app start --app=first "$pod"
expect 0 in_app first 'cat /d/file /etc/conf'
equal "$out" "of a
a file" "after another start"
for source in b a b; do
	remove first
	nothing_left first
	add first "$(bring d /d "$work/$source")"
	expect 0 in_app first 'cat /d/file; test ! -e /d/new -o -e /etc/conf || echo new'
	match "$out" "^of $source" "of another app of that name"
done
expect 0 in_app second 'cat /d/file'
equal "$out" "of b" "in the second, meanwhile"

say "what is mounted on the host after the pod was started, with and without what is below; it is free when the app is gone"
mount -t tmpfs none "$work/disk"
mkdir "$work/disk/below"
mount -t tmpfs none "$work/disk/below"
echo deep >"$work/disk/below/file"
add third "$(bring all /all "$work/disk")" "$(bring one /one "$work/disk,recursive=false")"
expect 0 in_app third 'cat /all/below/file; ls /one/below; echo x >/all/below/written'
equal "$out" deep "in the app"
equal "$(cat "$work/disk/below/written")" x "on the host"
device=$(stat -c %d "$work/disk")
umount "$work/disk/below" || die "the directory below is in use by the host itself"
umount "$work/disk"
remove third
nothing_left third
! mounts | grep " $((device >> 8)):$((device & 255)) " || die "the file system of the host is still mounted in the pod"
wait_not_open "$device"

if is_vm; then
	say "who serves can change nothing about it, and who stands for that has no file system of the host"
	server=$(pgrep -x virtiofsd | tail -n 1)
	add third "$(bring c /c "$work/conf,readOnly=true")"
	cannot='import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for name in "user", "mnt":
    fd = os.open(f"/proc/{sys.argv[1]}/ns/{name}", os.O_RDONLY)
    assert libc.setns(fd, 0) == 0, os.strerror(ctypes.get_errno())
os.setgroups([]); os.setresgid(0, 0, 0); os.setresuid(0, 0, 0)
path = b"/apps/third/0"
print(open(path).read(), end="")
for flags in 0x1020, 0x20:  # MS_BIND | MS_REMOUNT: read and write, or the file system itself
    print(libc.mount(None, path, None, flags, None), os.strerror(ctypes.get_errno()))
print(libc.umount2(path, 2), len(open(path).read()))  # for itself; behind it is nothing
try: os.mkdir("/apps/x")
except OSError as e: print(e.strerror)'
	expect 0 python3 -c "$cannot" "$server"
	equal "$out" "a file
-1 Operation not permitted
-1 Operation not permitted
0 0
Read-only file system" "with all that it has"
	remove third
	keeper=$(pgrep -x husk-virtiofs)
	equal "$(awk '{print $5}' "/proc/$keeper/mountinfo" | grep -v /apps/ | tr '\n' ' ')" "/ /apps " "what is mounted there"
	equal "$(awk '/^CapEff|^CapPrm/ { print $2 }' "/proc/$keeper/status" | uniq)" 0000000000000020 "its capabilities"
fi

say "what would make somebody on the host more than he is cannot be made"
mkdir "$work/bits"
add third "$(bring d /d "$work/bits")"
expect 0 in_app third 'cp /bin/busybox /d/bits; chmod 6755 /d/bits 2>/dev/null; mknod /d/disk b 8 0 2>/dev/null; chown 12:34 /d/bits; ls /d'
equal "$out" bits "what could be made"
equal "$(stat -c '%u %g' "$work/bits/bits")" "12 34" "owner on the host"
! is_vm || equal "$(find "$work/bits" -perm /6000)" "" "files with set-ID bits"
remove third

say "refused before anything is made"
for case in "kind=host,source=$work/none|volume \"v\": \"$work/none\": No such file or directory" "kind=host|source= is not an absolute path" \
	"kind=host,source=$work/a,cache=never|cache= is of a whole pod" "kind=host,source=$work/a,mode=0700|kind=host is as its source is" \
	"kind=block,source=$work/conf|kind=block is of a whole pod" 'kind=host,source=/dev/null|neither a directory nor a regular file'; do
	expect 254 husk app add "$pod" docker://registry.invalid/none "--mnt-volume=name=v,target=/v,${case%%|*}"
	match "$err" "${case#*|}" "${case%%|*}"
done
nothing_left none

say "a failure in the pod takes back what was there of it"
expect 254 husk app add "$pod" "$image" --name=third "$(bring d /d "$work/a")" "$(bring f /bin "$work/conf")"
one_line_error 'volume "f" is a file, and /bin is a directory'
nothing_left third
mount -t ramfs none "$work/disk"
expect 254 husk app add "$pod" "$image" --name=third "$(bring d /d "$work/a")" "$(bring r /r "$work/disk")"
one_line_error "volume of \"$work/disk\": its file system, or one that is mounted below, cannot map ids"
umount "$work/disk"
nothing_left third
add third "$(bring d /d "$work/a")"
remove third

say "as many as an app can have; the pod ends, and nothing of the host is in use"
mount -t tmpfs none "$work/disk"
words=()
for ((i = 0; i < 64; i++)); do
	mkdir "$work/disk/$i"
	words+=("$(bring "v$i" "/v$i" "$work/disk/$i")")
done
expect 254 husk app add "$pod" "$image" --name=third "${words[@]}" "$(bring w /w "$work/a")"
one_line_error 'at most 64 volumes'
add third "${words[@]}"
expect 0 in_app third 'for i in $(seq 0 63); do echo $i >/v$i/x; done'
equal "$(cat "$work/disk/"*/x | sort -n | tail -n 1)" 63 "on the host"
expect 0 husk stop --force "$pod"
umount "$work/disk" || die "the file system of the host is in use after the pod's end"

say "apps that bring the same directory have one file system: what they do to its files meets"
mkdir -p "$work/programs"/{etc,tmp,usr,d}
for dir in bin sbin lib lib64; do ln -s "usr/$dir" "$work/programs/$dir"; done
mount -t tmpfs none "$work/disk"
cp "$top/tests/support/meet.py" "$work/disk"
device=$(stat -c %d "$work/disk")

# join NAME: an app with programs of this host, and the directory.
join() {
	expect 0 husk app add --insecure-options=image "$pod" "rootfs:$work/programs" --name="$1" \
		"$(bring u /usr /usr,readOnly=true,recursive=false)" "$(bring d /d "$work/disk")" -- sleep 1000
	expect 0 husk app start --app="$1" "$pod"
}

# meet ONE OTHER: by a FIFO, a socket, locks, memory and inotify.
meet() {
	in_app "$1" 'mkfifo /d/fifo; echo through >/d/fifo' &
	until_true test -p "$work/disk/fifo"
	expect 0 in_app "$2" "timeout $vm_limit cat /d/fifo"
	equal "$out" through "through a FIFO"
	in_app "$1" "timeout $vm_limit python3 /d/meet.py serve /d" &
	expect 0 in_app "$2" "timeout $vm_limit python3 /d/meet.py ask /d"
	equal "$out" "socket: connected
flock: taken
lock: taken
inotify: told
memory: b" "between $1 and $2"
	wait
	rm "$work/disk/fifo" "$work/disk/made"
}

sandbox
join one
join two
add reads "$(bring d /d "$work/disk,readOnly=true")"
meet one two
meet two one
expect 0 in_app reads 'echo x 2>/dev/null >/d/new || echo no; ls /d/meet.py'
equal "$out" "no
/d/meet.py" "in the app that may not write"

say "the first goes, and the second and a third go on; one that comes back sees what is there"
remove one
nothing_left one
join three
meet two three
remove three
echo again >"$work/disk/again"
join three
expect 0 in_app three 'cat /d/again'
equal "$out" again "in an app that came back"
meet three two
for new in first second; do # nobody else has this one
	add alone "$(bring b /b "$work/b")"
	expect 0 in_app alone 'ls /b'
	equal "$out" "$(ls "$work/b")" "in an app whose directory nobody has"
	remove alone
	touch "$work/b/$new"
done
rm "$work/b/first" "$work/b/second"

say "when all are gone, the file system of the host is free"
umount "$work/disk"
for app in two three reads; do remove "$app"; done
! mounts | grep -F "/apps/+shared/" || die "something is still mounted"
wait_not_open "$device"
expect 0 husk stop --force "$pod"

say "beside a volume of the pod; its name is not another's"
sandbox "--volume=p,kind=host,source=$work/a"
add 0 --mount=volume=p,target=/p "$(bring p2 /p2 "$work/b")"
expect 0 in_app 0 'cat /p/file /p2/file'
equal "$out" "of a
of b" "in the app"
add apps "$(bring p /p "$work/b")"
expect 0 in_app apps 'cat /p/file'
equal "$out" "of b" "its own comes first"
expect 0 husk stop --force "$pod"

say "what a whole pod says of its apps has none of their own"
cat >"$work/manifest" <<END
{"acVersion":"0.8.11","acKind":"PodManifest","apps":[{"name":"x","image":{"id":"$(husk image list --full --no-legend --fields=id | head -n 1)"},
"mounts":[{"path":"/d","volume":"d","appVolume":{"name":"d","kind":"host","source":"$work/a"}}]}]}
END
expect 254 husk run --net=none --pod-manifest="$work/manifest"
one_line_error 'volume "d" has a source, and so is of a whole pod'

if is_vm; then
	say "a VM that nobody serves volumes to"
	hot=()
	sandbox
	expect 254 husk app add "$pod" "$image" --name=first "$(bring d /d "$work/a")"
	one_line_error 'this pod has nobody who serves volumes of the host \(start one with --hot-volumes=always\)$'
	add first
	expect 0 husk stop "$pod"
	expect 254 husk app sandbox --net=none --hot-volumes=sometimes
	one_line_error '--hot-volumes=sometimes: no such choice'
	expect 254 husk app sandbox --net=none --hot-volumes=always --virtiofsd=/nonexistent/virtiofsd
	one_line_error '--virtiofsd=/nonexistent/virtiofsd: No such file or directory'

	say "of another user"
	mkdir "$work/his"
	cp -r "$image" "$work/image"
	chmod -R a+rX "$work/image"
	chown 65534:65534 "$work/his"
	groups=100,$(stat -c %g /dev/kvm 2>/dev/null) || groups=100 # as people have
	as_user() {
		HOME=$work/his setpriv --reuid=65534 --regid=65534 "--groups=$groups" --pdeathsig=keep timeout "$vm_limit" \
			"$build/bin/husk" "--dir=$work/his/data" --system-config= --local-config= --insecure-options=image "$@"
	}
	expect 0 as_user app sandbox --net=none "${run_options[@]}" --detach --hot-volumes=always
	pod=$out
	expect 0 as_user app add "$pod" "$work/image" --name=app "$(bring d /d "$work/his")" "$(bring a /a "$work/a")" -- sleep 1000
	expect 0 as_user app start --app=app "$pod"
	expect 0 as_user app exec --app=app "$pod" sh -c 'stat -c %u /d; echo x >/d/file; cat /a/file; echo x 2>/dev/null >/a/file || echo not his'
	equal "$out" "0
of a
not his" "in the pod"
	equal "$(stat -c '%u %g' "$work/his/file")" "65534 65534" "on the host"
	expect 0 as_user app rm --grace=0 --app=app "$pod"
	keeper=$(pgrep -x husk-virtiofs)
	equal "$(awk '{print $5}' "/proc/$keeper/mountinfo" | tr '\n' ' ')" "/ /apps " "what is mounted after that"
	expect 0 as_user stop "$pod"
fi
