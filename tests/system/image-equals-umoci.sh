#!/bin/bash
# A real image of two layers, with everything that changesets can hold, is rendered by husk and
# unpacked by umoci(1); the kernel's view of both must be the same: names, types, modes, owners,
# times, link counts, devices, extended attributes, contents. Needs root: umoci restores owners and
# the rendered image is mounted.
# shellcheck source=tests/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export LC_ALL=C

[ "$(id -u)" -eq 0 ] || skip "needs root"
require umoci mmdebstrap setcap python3 unshare
grep -qw squashfs /proc/filesystems || modprobe squashfs 2>/dev/null ||
	skip "this kernel has no squashfs"

# The lower layer: Debian. The upper one: changes of every kind, packed by umoci itself.
make_image() {
	mmdebstrap --quiet --variant=essential bookworm base.tar
	umoci init --layout layout
	umoci new --image layout:two
	umoci raw add-layer --image layout:two base.tar
	umoci unpack --image layout:two bundle >/dev/null
	change_tree bundle/rootfs
	umoci repack --image layout:two bundle
	rm -rf bundle
}

change_tree() {
	local r=$1
	rm -r "$r/usr/share/doc" "$r/etc/hostname"                    # whiteouts
	rm -r "$r/usr/share/man" && mkdir "$r/usr/share/man"          # a directory made anew
	echo x >"$r/usr/share/man/x"
	rm -r "$r/opt" && echo file >"$r/opt"                         # directory to file
	rm "$r/etc/issue" && mkdir "$r/etc/issue"                     # file to directory
	rm "$r/etc/issue.net" && ln -s /etc/motd "$r/etc/issue.net"   # file to link
	ln "$r/bin/bash" "$r/usr/hard-link"                           # link to the lower layer
	ln "$r/etc/passwd" "$r/etc/passwd.link" && echo >>"$r/etc/passwd"
	setcap cap_net_raw+ep "$r/usr/bin/find"
	chmod 4755 "$r/usr/bin/env"
	chown 1000:3000000000 "$r/etc/fstab" 2>/dev/null || chown 1000:100 "$r/etc/shells"
	mknod "$r/dev/device" c 4 300
	mknod "$r/dev/block" b 259 70000
	mkfifo "$r/fifo"
	truncate -s 5M "$r/sparse" && printf end >>"$r/sparse"
	touch -d 2001-02-03 "$r/etc/shadow"
	printf 1 >"$r/"$'not\xff\xfeutf8\n'
	printf 2 >"$r/ä"
	mkdir -p "$r/$(printf 'd%.0s/' {1..60})" && mkdir "$r/$(printf 'n%.0s' {1..255})"
	ln -s "$(printf 't%.0s' {1..4000})" "$r/long-link"
	head -c 300000 /dev/urandom >"$r/random"
}

# A script that prints one line for each file below its argument. Times of directories whose content umoci
# changed are what it happened to leave, so times of directories are not compared.
write_lister() {
	cat >list.py <<'PYTHON'
import hashlib, os, stat, sys

def describe(path, shown):
    st = os.lstat(path)
    words = [shown, oct(st.st_mode), st.st_uid, st.st_gid]
    if not stat.S_ISDIR(st.st_mode):
        words += ["mtime", int(st.st_mtime), "links", st.st_nlink]
    if stat.S_ISREG(st.st_mode):
        with open(path, "rb") as f:
            words += [st.st_size, hashlib.file_digest(f, "sha256").hexdigest()]
    elif stat.S_ISLNK(st.st_mode):
        words += [os.readlink(path)]
    elif stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
        words += [os.major(st.st_rdev), os.minor(st.st_rdev)]
    for name in sorted(os.listxattr(path, follow_symlinks=False)):
        words += [name, os.getxattr(path, name, follow_symlinks=False)]
    print(words)

root = os.fsencode(sys.argv[1])
describe(root, b".")
for top, dirs, files in os.walk(root):
    dirs.sort()
    for name in sorted(dirs + files):
        path = os.path.join(top, name)
        describe(path, path[len(root):])
PYTHON
}

cd "$work"
mkdir data mnt
make_image
umoci unpack --image layout:two unpacked >/dev/null
"$build/tests/render-image" data layout:two image.squashfs
write_lister
python3 list.py unpacked/rootfs >want.txt
# In a mount namespace of its own, so that nothing has to be unmounted.
unshare --mount sh -c 'mount -t squashfs -o loop,ro image.squashfs mnt && python3 list.py mnt' \
	>got.txt
diff -u want.txt got.txt >difference.txt ||
	die "husk's rendering differs from umoci's: $(head -n 40 difference.txt)"
say "$(wc -l <got.txt) files are equal"
