# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Images with all that images can have, and the comparison of trees; for the system tests, sourced behind lib.sh.

# One line for each file of a tree; see tests/support/list_tree.c. It is static.
list_tree=$build/tests/list-tree
list() {
	"$list_tree" "$@"
}

# compare WANT GOT WHAT: files with lists.
compare() {
	diff "$1" "$2" >"$work/difference" || die "$3: $(head -n 20 "$work/difference" | cut -c1-300)"
}

# unpack LAYOUT:TAG DIR: what umoci makes of an image, in DIR/rootfs.
unpack() {
	umoci unpack --image "$1" "$2" >/dev/null 2>"$work/umoci.err" || die "umoci: $(tail -n 3 "$work/umoci.err")"
}

# as_app_sees TREE-LIST: what the list of an app has to be if its image is that tree. husk adds, and nothing else:
#   /dev /proc /sys              mounts; files that the image has there are not seen
#   /tmp /etc                    if the image has none; an app may rely on them
#   /etc/mtab                    likewise; its time is the pod's
#   /etc/hostname hosts          the pod's, which has a name of its own, whatever the image has there
as_app_sees() {
	{
		sed -E '/^\/(dev|proc|sys)[/ ]/d; /^\/etc\/(hostname|hosts) /d' "$1"
		printf '/%s mount point\n' dev proc sys
		grep -q '^/tmp ' "$1" || echo '/tmp d1777 0 0'
		grep -q '^/etc ' "$1" || echo '/etc d0755 0 0'
		printf '/etc/%s f0644 0 0 of the pod\n' hostname hosts
		grep -q "^/etc/mtab " "$1" || echo '/etc/mtab l0777 0 0 of the pod -> ../proc/self/mounts'
	} | sort
}

# added_are_marked TREE-LIST APP-LIST: that list, with "of the pod" instead of what a tree without the file cannot say.
added_are_marked() {
	local files='hostname|hosts'
	grep -q '^/etc/mtab ' "$1" || files+='|mtab'
	sed -E "s,^(/etc/($files) [fl][0-7]* 0 0) mtime [0-9]+( [0-9]+ [0-9a-f]{16})?,\1 of the pod," "$2" | sort
}

# put_on_top LAYOUT TAR: makes guest-layout of them.
put_on_top() {
	rm -rf guest-layout
	cp -r "$1" guest-layout
	umoci raw add-layer --image guest-layout:image "$2"
}

# guest_equals_umoci LAYOUT [OTHER]: an app of that image, with the lister on top of it, sees what umoci unpacks of it, or of
# the image OTHER. $guest_image is then that image; the file app-list is what the app saw, with times of directories.
guest_equals_umoci() {
	mkdir lister && cp "$list_tree" lister/.list-tree && tar --owner=0 --group=0 -C lister -cf lister.tar .list-tree
	put_on_top "${2:-$1}" lister.tar
	unpack guest-layout:image bundle
	list bundle/rootfs >tree-list
	rm -rf bundle
	[ $# -eq 1 ] || put_on_top "$1" lister.tar
	rm -rf lister lister.tar
	guest_image=oci:$PWD/guest-layout:image
	husk run "$guest_image" --caps-retain=DAC_OVERRIDE,SYS_ADMIN --exec=/.list-tree -- --times / </dev/null >app-list 2>err ||
		die "the lister failed in the guest: $(tail -n 5 err)"
	as_app_sees tree-list >want
	sed -E 's/^([^ ]+ d[0-7]+ [0-9]+ [0-9]+) mtime -?[0-9]+/\1/' app-list >list-without
	added_are_marked tree-list list-without >got
	compare want got "what an app sees differs from what umoci unpacks"
	say "$(wc -l <got) files are equal"
}

# cached_layout NAME MAKER: sets $layout to the OCI layout of that name in the cache; its tag is "image". If it is not there,
# MAKER makes it, as "layout", in an empty directory. Who changes a MAKER changes the number in the name.
cached_layout() {
	layout=$cache/test-images/$1
	[ ! -e "$layout/index.json" ] || return 0
	local back=$PWD
	say "making the image $1"
	mkdir "$work/making"
	cd "$work/making" || die "cd"
	umoci init --layout layout >&2
	umoci new --image layout:image >&2
	"$2" >&2
	umoci gc --layout layout >&2
	cd "$back" || die "cd"
	cp -r "$work/making/layout" "$layout.$$"
	mv -T "$layout.$$" "$layout" 2>/dev/null || rm -rf "$layout.$$" # somebody else was faster
	rm -rf "$work/making"
}

# new_layer DIR [OPTION of tar]...: puts the tree on top of the image in "layout".
new_layer() {
	local dir=$1
	shift
	tar --xattrs --xattrs-include='*' --format=pax --numeric-owner "$@" -C "$dir" -cf "$dir.tar" .
	umoci raw add-layer --image layout:image "$dir.tar"
	rm -r "$dir" "$dir.tar"
}

debian_layer() { # PACKAGES
	install_debian "$1" base.tar || die "cannot make the image: is there a network?"
	umoci raw add-layer --image layout:image base.tar
	rm base.tar
}

# A web server, and a client.
make_web() {
	debian_layer nginx-light,python3
}

make_databases() {
	debian_layer postgresql,redis-server
}

# set_xattrs FILE NAME=VALUE...: with the escapes of Python.
set_xattrs() {
	python3 - "$@" <<'PYTHON'
import os, sys
for word in sys.argv[2:]:
    name, value = word.split("=", 1)
    os.setxattr(sys.argv[1], name, value.encode().decode("unicode_escape").encode("latin-1"))
PYTHON
}

# make_tricky_tree DIR: no system, but files of every kind.
make_tricky_tree() {
	local t=$1
	mkdir -p "$t/bin" "$t/d/$(printf 'd/%.0s' {1..70})" "$t/$(printf 'n%.0s' {1..255})"
	cp /bin/true "$t/bin/suid" && chmod 4755 "$t/bin/suid"
	cp /bin/true "$t/bin/sgid" && chown 12:34 "$t/bin/sgid" && chmod 2711 "$t/bin/sgid"
	cp /bin/true "$t/bin/capable" && setcap cap_net_raw+ep "$t/bin/capable"
	ln "$t/bin/suid" "$t/d/hard" && ln "$t/bin/suid" "$t/hard"
	mkdir "$t/shut" && echo x >"$t/shut/x" && ln "$t/shut/x" "$t/x"
	chown 1000:1000 "$t/shut/x" && chmod 0 "$t/shut/x" "$t/shut" && chown 70000:3000000000 "$t/shut"
	mknod "$t/d/char" c 4 300 && mknod "$t/d/block" b 259 70000 && ln "$t/d/char" "$t/d/char2"
	mkfifo -m 622 "$t/fifo" && ln "$t/fifo" "$t/fifo2"
	ln -s /etc/passwd "$t/absolute" && ln -s ../../../../../out "$t/d/up" && ln "$t/absolute" "$t/link2"
	chown -h 5:6 "$t/absolute" && touch -hd 2002-03-04 "$t/d/up"
	ln -s "$(printf 't%.0s' {1..4000})" "$t/long-link"
	truncate -s 50M "$t/sparse" && printf middle | dd of="$t/sparse" bs=1 seek=20000000 conv=notrunc status=none
	truncate -s 3M "$t/hole" && : >"$t/empty"
	head -c 3000000 /dev/urandom >"$t/random"
	printf 1 >"$t/"$'not\xff\xfeutf8\n' && printf 2 >"$t/ä" && printf 3 >"$t/.wh"
	mkdir -m 3777 "$t/sticky" && chown 100:100 "$t/sticky"
	set_xattrs "$t/random" 'user.some=\x00value\xff=\n'
	set_xattrs "$t/sticky" "user.large=$(printf 'x%.0s' {1..2000})"
	touch -d 2001-02-03 "$t/random" "$t/bin" "$t/sticky" "$t/fifo" "$t/d/char"
}

# Changes of every kind in a Debian system, in a layer that umoci itself packs; then one that is made by hand.
make_changed() {
	make_web
	umoci unpack --image layout:image bundle >/dev/null
	change_tree bundle/rootfs
	umoci repack --image layout:image bundle
	rm -r bundle
	make_odd_layer odd.tar
	umoci raw add-layer --image layout:image odd.tar
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
	mknod "$r/srv/device" c 4 300
	mknod "$r/srv/block" b 259 70000
	mkfifo "$r/fifo"
	truncate -s 5M "$r/sparse" && printf end >>"$r/sparse"
	touch -d 2001-02-03 "$r/etc/shadow"
	printf 1 >"$r/"$'not\xff\xfeutf8\n'
	printf 2 >"$r/ä"
	mkdir -p "$r/$(printf 'd%.0s/' {1..60})" && mkdir "$r/$(printf 'n%.0s' {1..255})"
	ln -s "$(printf 't%.0s' {1..4000})" "$r/long-link"
	head -c 300000 /dev/urandom >"$r/random"
	# What the layer by hand works on.
	mkdir -p "$r/srv/covered/deep" "$r/srv/emptied" "$r/srv/names" "$r/srv/again"
	touch "$r/srv/covered/old" "$r/srv/covered/deep/old" "$r/srv/emptied/old" "$r/srv/again/old"
	echo names >"$r/srv/names/a"
	for name in b c d; do ln "$r/srv/names/a" "$r/srv/names/$name"; done
	set_xattrs "$r/srv/names" user.old=1 user.both=1
	set_xattrs "$r/srv/emptied" user.old=1
	set_xattrs "$r/etc" user.etc=1
	set_xattrs "$r" user.root=1
}

# make_odd_layer FILE: what no program packs, but the format allows.
make_odd_layer() {
	python3 - "$1" <<'PYTHON'
import io, sys, tarfile

tar = tarfile.open(sys.argv[1], "w", format=tarfile.PAX_FORMAT, errors="surrogateescape")

def add(name, type=tarfile.REGTYPE, content=b"", link="", mode=0o644, xattrs={}):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname, info.mtime = type, mode, link, 1000000000
    info.uid, info.gid = 3, 4
    info.size = len(content)
    info.pax_headers = {"SCHILY.xattr." + k: v for k, v in xattrs.items()}
    tar.addfile(info, io.BytesIO(content))

# An opaque directory: before its mark, behind it, and below.
add("srv/covered/before", content=b"before")
add("srv/covered", tarfile.DIRTYPE, mode=0o750)
add("srv/covered/.wh..wh..opq")
add("srv/covered/behind", content=b"behind")
add("srv/covered/deep/new", content=b"new")
# A mark alone: the directory stays as it was, but for its content.
add("srv/emptied/.wh..wh..opq")
# A whiteout of what the same layer brings, which stays.
add("srv/again/old", content=b"new")
add("srv/again/.wh.old")
# Names of one file: one goes, one is another file, one comes, and one by way of that.
add("srv/names/.wh.a")
add("srv/names/c", content=b"another")
add("srv/names/e", tarfile.LNKTYPE, link="srv/names/d")
add("srv/names/f", tarfile.LNKTYPE, link="srv/names/e")
add("srv/names/env", tarfile.LNKTYPE, link="usr/bin/env")
# Attributes of a directory are replaced as a whole.
add("srv/names", tarfile.DIRTYPE, mode=0o1770, xattrs={"user.both": "2", "user.new": "3"})
add("srv/privileged", content=b"x", xattrs={"trusted.a": "1", "security.b": "2"})
# husk adds files to this one.
add("etc", tarfile.DIRTYPE, mode=0o755, xattrs={"user.etc": "2"})
# Through links of the lower layers, as images do that were made before Debian merged /usr.
add("bin/through-link", content=b"#!/bin/sh\n", mode=0o755)
add("bin/.wh.tar")
add("var/run/through-absolute-link", content=b"x")
# Long names.
add("srv/" + "/".join(["long" * 50] * 12) + "/file", content=b"x")
add("./srv//odd/../odd-\udcff", content=b"x", xattrs={"user.a": "1"})
tar.close()
PYTHON
}

# An image of buildah, a layer for each line.
make_built() {
	local storage=(--root "$PWD/root" --runroot "$PWD/run" --storage-driver vfs)
	umoci unpack --image "$(busybox_image):busybox" bundle
	mkdir -p context/tree/deep/er && mv bundle/rootfs context/base
	echo 1 >context/tree/deep/er/file && chmod 4751 context/tree/deep/er/file
	ln context/tree/deep/er/file context/tree/link && ln -s /nowhere context/tree/deep/dangling
	cat >context/Dockerfile <<'DOCKERFILE'
FROM scratch
COPY base /
COPY --chown=12:34 tree /tree
RUN rm /bin/ash /bin/awk && echo changed >/bin/cat.new && ln /bin/cat.new /bin/cat.link && mknod /srv.pipe p
RUN rm -r /tree/deep && mkdir -m 2770 /tree/deep && echo 2 >/tree/deep/new && chown 5:6 /tree/deep /tree/deep/new
RUN rm /bin/cat.new && mkdir -p /var/lib/x /run/y && cp -p /bin/busybox /busybox && touch -t 200102030405 /busybox
COPY tree/link /tree/deep/new
ENV PATH=/bin
CMD ["sh"]
DOCKERFILE
	buildah "${storage[@]}" bud --quiet --isolation chroot --layers --format oci --network host -t built context
	buildah "${storage[@]}" push --quiet built oci:layout:image
	rm -rf root run context bundle
}

# 100,000 small files, and a file of 2 GiB that is nearly all hole, as a sparse file in the form of POSIX.
make_large() {
	mkdir tree
	python3 - tree/many <<'PYTHON'
import os, sys
for n in range(100000):
    path = f"{sys.argv[1]}/{n // 100}"
    if n % 100 == 0:
        os.makedirs(path)
    with open(f"{path}/file-{n}", "w") as f:
        f.write(f"{n}\n" * (n % 7))
PYTHON
	new_layer tree
	mkdir tree
	make_sparse tree/2G 2147483648
	new_layer tree --sparse
}

# make_sparse FILE BYTES: with data in the middle and behind that many.
make_sparse() {
	truncate -s "$2" "$1"
	printf middle | dd of="$1" bs=1 seek=$(($2 / 2 - 3)) conv=notrunc status=none
	printf end >>"$1"
}
