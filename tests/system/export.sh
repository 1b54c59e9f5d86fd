#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# husk export: what an app sees as its root is what the archive has, in both formats; husk runs the result
# again; disks of killed machines and damaged disks end in an archive or in one line, never otherwise.
# Needs root: archives are unpacked with owners and device files.
#
#   HUSK_TEST_VARIANT=short   without what takes a minute, a whole Debian
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
export LC_ALL=C

[ "$(id -u)" -eq 0 ] || skip "needs root"
require python3 umoci skopeo jq
is_vm || run_options+=(--userns=host) # a user namespace has no device nodes, and no ids beyond 65535
busybox=$(busybox_image)
out_dir=$work/out-dir
mkdir "$out_dir"

# The app: changes of every kind, then a listing of what it sees, by the program below.
changes='
set -e
exec 3>&1 >/dev/null
echo new >/new
rm -r /usr/share/doc/base-files /etc/issue
rm -r /opt && mkdir /opt && echo opaque >/opt/x
rm -r /usr/share/perl5 && mkdir -m 750 /usr/share/perl5
rm -r /srv && echo file >/srv
rm /etc/issue.net && mkdir /etc/issue.net && echo dir >/etc/issue.net/x
rm /etc/debian_version && ln -s /new /etc/debian_version
echo changed >>/etc/passwd
chmod 4711 /usr/bin/env && chown 12:34 /usr/bin/tail
touch -d 2001-02-03 /etc/shadow
mkdir -p /d/deep/er && chmod 3777 /d && chown 70000:80000 /d/deep
ln /new /d/hard && ln /usr/bin/sort /d/sort
mknod /d/char c 4 300 && mknod /d/block b 259 70000 && mkfifo /d/fifo
head -c 3000000 /dev/urandom >/d/random
truncate -s 256M /d/sparse && printf middle | dd of=/d/sparse bs=1 seek=150000000 conv=notrunc 2>/dev/null
truncate -s 64M /d/empty && truncate -s 1M /d/blank && printf end >>/d/blank
for i in $(seq 60); do head -c 5000 /dev/zero; printf $i; head -c 300000 /dev/zero; done >/d/zeros
for i in $(seq 2000); do : >/d/deep/er/file-with-a-long-name-$i; done
ln -s $(printf "t%.0s" $(seq 2000)) /d/long-link
printf 1 >"$(printf "/d/not\377utf8")"
mkdir -p /d/$(printf "n%.0s" $(seq 255))/$(printf "m%.0s" $(seq 255))
cp /usr/bin/find /d/with-capability
chmod 640 /d/with-capability
python3 -B -c "
import os, socket
os.setxattr(\"/d/with-capability\", \"security.capability\", bytes.fromhex(\"0100000200200000000000000000000000000000\"))
os.setxattr(\"/d/random\", \"user.some\", b\"\\0value\\xff=\\n\")
os.setxattr(\"/d/random\", \"user.empty\", b\"\")
os.setxattr(\"/d/deep\", \"user.large\", b\"x\" * 3000)
os.setxattr(\"/etc/shadow\", \"system.posix_acl_access\", bytes.fromhex(\"0200000001000600ffffffff020004000500000004000400ffffffff10000400ffffffff20000000ffffffff\"))
socket.socket(socket.AF_UNIX).bind(\"/d/socket\")
"
exec python3 -B -c "$LISTER" / >&3
'

# Prints a line for each file. Not: what husk adds in memory, times of directories in which it does, sockets.
lister=$(cat <<'PYTHON'
import hashlib, os, stat, sys

ADDED = (b"dev", b"proc", b"sys", b"tmp", b"etc/hostname", b"etc/hosts", b"etc/mtab", b"umoci.json")

def attributes(path):
    try:
        return os.listxattr(path, follow_symlinks=False)
    except OSError:  # squashfs says so of links without any
        return []

# Of the pieces that are not all zeros, wherever the holes are; holes are not read.
def content_digest(path, size):
    piece, at, digest = 1 << 16, 0, hashlib.sha256()
    with open(path, "rb", buffering=0) as f:
        while at < size:
            try:
                at = os.lseek(f.fileno(), at, os.SEEK_DATA) // piece * piece
            except OSError:
                break
            data = os.pread(f.fileno(), piece, at)
            if data.strip(b"\0"):
                digest.update(b"%d:%s" % (at, data))
            at += piece
    return digest.hexdigest()

def describe(path, name):
    st = os.lstat(path)
    words = [name, oct(st.st_mode), st.st_uid, st.st_gid]
    if name not in (b"", b"etc"):
        words.append(int(st.st_mtime))
    if stat.S_ISREG(st.st_mode):
        digest = content_digest(path, st.st_size)
        words += [st.st_size, digest]
    elif stat.S_ISLNK(st.st_mode):
        words += [os.readlink(path)]
    elif stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
        words += [os.major(st.st_rdev), os.minor(st.st_rdev)]
    for attr in sorted(attributes(path)):
        words += [attr, os.getxattr(path, attr, follow_symlinks=False)]
    print(words)

def walk(path, name):
    describe(path, name)
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        return
    for child in sorted(os.listdir(path)):
        child_path = os.path.join(path, child)
        child_name = os.path.join(name, child)
        if child_name not in ADDED and not stat.S_ISSOCK(os.lstat(child_path).st_mode):
            walk(child_path, child_name)

walk(os.fsencode(sys.argv[1]), b"")
PYTHON
)

# compare WANT GOT WHAT
compare() {
	diff "$1" "$2" >"$work/difference" || die "$3: $(head -n 20 "$work/difference" | cut -c1-300)"
}

nothing_left() {
	equal "$(ls -A "$out_dir")" "" "what is left beside the archive"
}

# A whole Debian, changed: there and back again.
debian_and_back() {
	local debian
	debian=$(debian_image)
	say "every kind of change, listed by the guest"
	husk run "--uuid-file-save=$work/uuid" "$debian" --name=system --seccomp=@appc.io/all "--environment=LISTER=$lister" -- \
		sh -c "$changes" </dev/null >"$work/want" 2>"$work/err" || die "the app failed: $(tail -n 5 "$work/err")"
	uuid=$(cat "$work/uuid")
	[ "$(wc -l <"$work/want")" -gt 3000 ] || die "the listing is short"

	say "as an appc image"
	expect 0 husk export "$uuid" "$out_dir/a.aci"
	equal "$err" "" "messages"
	mkdir "$work/aci"
	tar --xattrs '--xattrs-include=*' --numeric-owner -xpzf "$out_dir/a.aci" -C "$work/aci" 2>"$work/tar.err" ||
		die "tar: $(tail -n 3 "$work/tar.err")"
	equal "$(jq -r '.acKind, .app.exec[0], .app.workingDirectory, (.labels | map(.value) | join(","))' "$work/aci/manifest")" \
		$'ImageManifest\nsh\n/\nlinux,amd64' "manifest"
	python3 -c "$lister" "$work/aci/rootfs" >"$work/got"
	match "$(zcat "$out_dir/a.aci" | grep -ac SCHILY.xattr.system.posix_acl_access=)" '^[1-9]' "access control lists in the archive"
	compare "$work/want" "$work/got" "the appc image differs from what the app saw"
	equal "$(stat -c %i "$work/aci/rootfs/new")" "$(stat -c %i "$work/aci/rootfs/d/hard")" "hard link"
	[ "$(du -k "$work/aci/rootfs/d/sparse" | cut -f1)" -lt 1000 ] || die "the hole was filled"

	say "as an OCI archive, the same bytes each time"
	expect 0 husk export --format=oci --app=system "$uuid" "$out_dir/a.oci"
	expect 0 husk export --format=oci --uuid-file="$work/uuid" "$out_dir/b.oci"
	cmp "$out_dir/a.oci" "$out_dir/b.oci" || die "two exports differ"
	skopeo inspect "oci-archive:$out_dir/a.oci" >"$work/inspect" || die "skopeo does not take it"
	equal "$(jq -r '.Architecture, .Os, (.Layers | length)' "$work/inspect")" $'amd64\nlinux\n1' "skopeo inspect"
	# The image has a Cmd and no Entrypoint; what was given behind "--" replaced the former.
	equal "$(skopeo inspect --config --raw "oci-archive:$out_dir/a.oci" | jq -c '[.config.Entrypoint, .config.Cmd[:2]]')" \
		'[null,["sh","-c"]]' "entrypoint and arguments"
	mkdir "$work/oci"
	tar -xf "$out_dir/a.oci" -C "$work/oci"
	umoci stat --image "$work/oci:system" >/dev/null || die "umoci stat"
	umoci unpack --image "$work/oci:system" "$work/bundle" >/dev/null 2>"$work/umoci.err" ||
		die "umoci: $(tail -n 3 "$work/umoci.err")"
	python3 -c "$lister" "$work/bundle/rootfs" >"$work/got"
	# An empty value means no value to the library that umoci reads tars with.
	sed "s/'user.empty', b'', //" "$work/want" >"$work/want-umoci"
	compare "$work/want-umoci" "$work/got" "the OCI image differs from what the app saw"
	rm -rf "$work/aci" "$work/bundle" "$work/oci"

	say "husk runs it again, with the app's own command and environment"
	expect 0 husk run "oci-archive:$out_dir/a.oci" --exec=/bin/sh -- -c \
		'cat /new /opt/x; test "$(ls /opt)" = x; test ! -e /etc/issue; echo ${#LISTER}; dd if=/d/sparse bs=1 skip=150000000 count=6'
	equal "$out" "new
opaque
${#lister}
middle" "the second run"
	rm -f "$out_dir"/*
}

if [ "${HUSK_TEST_VARIANT:-}" = short ]; then
	expect 0 husk run "--uuid-file-save=$work/uuid" "$busybox" -- true
	uuid=$(cat "$work/uuid")
else
	debian_and_back
fi

say "what is refused"
expect 254 husk export "$uuid" "$out_dir/a.tar"
one_line_error '^export: extension must be .aci \(given .*/a.tar\)'
expect 254 husk export --format=zip "$uuid" "$out_dir/a.aci"
one_line_error '^export: --format: "zip" is neither aci nor oci'
expect 254 husk export --app=none "$uuid" "$out_dir/a.aci"
one_line_error '^export: unable to find app: app "none" is not present in pod'
expect 254 husk export "$uuid" "$work/missing/a.aci"
one_line_error '^export: unable to open target ".*/missing/a.aci": its directory: No such file'
expect 254 husk export "$uuid"
match "$err" 'Error: exactly one of UUID and --uuid-file, and a FILE are needed' "operands"
expect 254 husk export ffffffff "$out_dir/a.aci"
one_line_error '^export: problem retrieving pod: no matches found for "ffffffff"'
expect 1 husk export "--uuid-file=$work/missing" "$out_dir/a.aci"
prepared=$(husk prepare "$busybox" -- true)
expect 254 husk export "$prepared" "$out_dir/a.aci"
one_line_error '^export: pod is not exited. Only exited pods can be exported$'
nothing_left
rm -f "$work/uuid"
expect 0 husk run "--uuid-file-save=$work/uuid" "$busybox" --name=a -- sh -c 'echo a >/who' \
	--- "$busybox" --name=b -- sh -c 'echo b >/who'
two=$(cat "$work/uuid")
expect 254 husk export "$two" "$out_dir/a.aci"
one_line_error '^export: unable to find app: pod contains multiple apps: a, b \(specify one with --app=NAME\)'
expect 0 husk export --app=b "$two" "$out_dir/b.aci"
equal "$(tar -xOzf "$out_dir/b.aci" rootfs/who)" b "the second app's file"
expect 254 husk export --app=a "$two" "$out_dir/b.aci"
one_line_error '^export: target file exists \(try --overwrite\)$'
expect 0 husk export --app=a --overwrite "$two" "$out_dir/b.aci"
equal "$(tar -xOzf "$out_dir/b.aci" rootfs/who)" a "the file written over"
mkdir "$out_dir/d.aci"
expect 254 husk export --app=a --overwrite "$two" "$out_dir/d.aci"
one_line_error 'it is not a regular file$'
rm -r "${out_dir:?}"/*

say "marked pods can be exported, running ones cannot"
expect 0 husk gc --mark-only
expect 0 husk export --app=b "$two" "$out_dir/b.aci"
rm -f "$work/uuid" "$out_dir"/*
"$husk_bin" "--dir=$data" run "${run_options[@]}" "--uuid-file-save=$work/uuid" "$busybox" -- \
	sh -c 'echo kept >/kept; mkdir /dir; echo x >/dir/x; rm /bin/vi; sync; echo synced; sleep 1000' \
	</dev/null >"$work/pod.out" 2>"$work/pod.err" &
pod=$!
wait_for_line "$work/pod.out" synced
uuid=$(cat "$work/uuid")
expect 254 husk export "$uuid" "$out_dir/a.aci"
one_line_error '^export: pod is not exited'

say "a killed machine"
expect 0 husk stop --force "$uuid"
wait $pod || :
expect 0 husk export --debug "$uuid" "$out_dir/a.aci"
! is_vm || match "$err" 'its scratch disk was not completed' "note"
equal "$(tar -xOzf "$out_dir/a.aci" rootfs/kept rootfs/dir/x)" $'x\nkept' "what was synced"
tar -tzf "$out_dir/a.aci" | grep -qx rootfs/bin/vi && die "the removed file is back"
rm "$out_dir/a.aci"

say "SIGKILL leaves nothing"
"$husk_bin" "--dir=$data" export "$uuid" "$out_dir/a.aci" &
victim=$!
kill -9 $victim
wait $victim 2>/dev/null || :
[ ! -e "$out_dir/a.aci" ] || rm "$out_dir/a.aci" # it was faster
nothing_left

if ! is_vm; then
	say "what the app has closed to all, owners and marks, with users of its own"
	read -r -a run_options <<<"${HUSK_TEST_RUN_OPTIONS:-}"
	run_exported() { # ARGUMENTS OF RUN
		expect 0 husk run --uuid-file-save="$work/uuid" "$@"
		expect 0 husk export "${app[@]}" "$(cat "$work/uuid")" "$out_dir/a.aci"
		tar -tvzf "$out_dir/a.aci" --numeric-owner >"$work/list"
	}
	app=()
	run_exported "$busybox" -- sh -c 'mkdir -p /shut/in && echo x >/shut/in/file && chown 1000:2000 /shut/in/file && chmod 0 /shut/in/file /shut/in /shut
		cp /bin/busybox /suid && chmod 4755 /suid; rm /etc/group; mkfifo /pipe; chown 1000 / && chmod 0 /'
	match "$(grep 'rootfs/shut/in/file$' "$work/list")" '^---------- 1000/2000 +2 ' "a file that is closed"
	match "$(grep 'rootfs/suid$' "$work/list")" '^-rwsr-xr-x 0/0 ' "a set-user-ID file"
	match "$(grep 'rootfs/$' "$work/list")" '^d--------- 1000/0 ' "the root directory"
	match "$(grep 'rootfs/pipe$' "$work/list")" '^p' "a FIFO"
	! grep -q 'rootfs/etc/group$' "$work/list" || die "a file that was removed is there"
	rm "$out_dir/a.aci"

	say "names that broke what made a file system of them; thirty thousand in a directory; and the neighbour is not read"
	app=(--app=rootfs)
	# shellcheck disable=SC2016
	run_exported "$busybox" --name=rootfs -- sh -c 'n=$(printf "n%.0s" $(seq 255)); for i in 1 2 3 4 5 6 7; do mkdir $n && cd $n; done
		mkdir "$(echo "$n" | cut -c1-234)"; mkdir /many && cd /many && seq 30000 | xargs touch' --- \
		"$busybox" --name=neighbour -- sh -c 'i=0; while [ $i -lt 1100 ]; do mkdir d && cd d; i=$((i + 1)); done 2>/dev/null; head -c 1000000 /dev/zero >/large'
	equal "$(grep -c ' rootfs/many/[0-9][0-9]*$' "$work/list")" 30000 "names in the directory"
	grep -qE '/(n{255}/){7}n{234}/$' "$work/list" || die "the long path is not there"
	! grep -q large "$work/list" || die "a file of the neighbour is there"
	rm "$out_dir/a.aci"
	expect 254 husk export --app=neighbour "$(cat "$work/uuid")" "$out_dir/a.aci"
	one_line_error "app \"neighbour\": the app's changes have too many files, or they are too deep"
	nothing_left

	say "no files, no image"
	rm -r "$data/pods/run/$uuid/scratch"
	expect 254 husk export "$uuid" "$out_dir/a.aci"
	one_line_error "^export: pod \"$uuid\": there is no directory \"scratch/apps/busybox/upper\" with changes"
	nothing_left
	exit 0
fi

say "damaged disks"
disk=$data/pods/run/$uuid/scratch
size=$(stat -c %s "$disk")
cp --sparse=always "$disk" "$work/disk"
damaged() { # REGEX
	expect 254 husk export "$uuid" "$out_dir/a.aci"
	one_line_error "^export: pod \"$uuid\", app \"busybox\": $1"
	nothing_left
	cp --sparse=always "$work/disk" "$disk"
}
truncate -s $((size / 2)) "$disk"
damaged 'the scratch disk is damaged: the file is shorter than its file system'
truncate -s 1000 "$disk"
damaged 'the scratch disk is damaged: the file is too short for a file system'
dd if=/dev/zero of="$disk" bs=1024 seek=1 count=1 conv=notrunc status=none
damaged 'the scratch disk is damaged: there is no ext4 file system on it'
truncate -s 0 "$disk" && truncate -s "$size" "$disk" && dd if="$work/disk" of="$disk" bs=4096 count=1 conv=notrunc status=none
damaged 'the scratch disk'
printf '\xff' | dd of="$disk" bs=1 seek=$((1024 + 96)) count=1 conv=notrunc status=none
damaged 'the scratch disk has features that husk did not give it'

# Forty disks with one to ten random bytes each, in what was written; the seeds make them the same each time.
cat >"$work/flip.py" <<'PYTHON'
import os, random, sys
fd, seed = os.open(sys.argv[1], os.O_RDWR), int(sys.argv[2])
blocks, at, size = [], 0, os.fstat(fd).st_size
while at < size:
    try:
        at = os.lseek(fd, at, os.SEEK_DATA)
    except OSError:
        break
    end = os.lseek(fd, at, os.SEEK_HOLE)
    blocks += range(at // 4096, (end + 4095) // 4096)
    at = end
rng = random.Random(seed)
for _ in range(seed % 10 + 1):
    # Few bytes of a block are in use; most of those are not zero.
    block = rng.choice(blocks) * 4096
    data = os.pread(fd, 4096, block)
    used = [i for i, b in enumerate(data) if b] or [0]
    os.pwrite(fd, bytes([rng.randrange(256)]), block + rng.choice(used))
PYTHON
failures=0
for seed in $(seq 40); do
	python3 "$work/flip.py" "$disk" "$seed"
	status=0
	timeout "$vm_limit" "$husk_bin" "--dir=$data" export "$uuid" "$out_dir/a.aci" 2>"$work/err" || status=$?
	case $status in
	0) rm "$out_dir/a.aci" ;;
	254)
		equal "$(wc -l <"$work/err")" 1 "lines on stderr, seed $seed"
		! grep -q 'helper process' "$work/err" || die "seed $seed: $(cat "$work/err")"
		failures=$((failures + 1))
		;;
	*) die "seed $seed: exit status $status: $(cat "$work/err")" ;;
	esac
	nothing_left
	cp --sparse=always "$work/disk" "$disk"
done
case $failures in
0 | 40) die "$failures of 40 damaged disks were refused" ;;
esac
say "$failures of 40 damaged disks were refused"

say "no disk, no image"
rm "$disk"
expect 254 husk export "$uuid" "$out_dir/a.aci"
one_line_error "^export: pod \"$uuid\": there is no file \"scratch\" with changes \(the pod never started"
rm "$data/pods/run/$uuid/apps/busybox/rootfs"
expect 254 husk export "$uuid" "$out_dir/a.aci"
one_line_error "^export: pod \"$uuid\": cannot open the image of app \"busybox\": No such file"
nothing_left
