#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Hostile images (tests/hostile/images.py), as a user meets them: each is refused in one line, or rendered into a tree
# that is harmless and written down here. Nothing outside of the store is written.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
export LC_ALL=C

[ "$(id -u)" -eq 0 ] || skip "needs root: read-only mounts, device nodes"
require python3 zstd unshare nsenter findmnt pgrep
python3 -c 'import bz2, lzma' || skip "this python3 has no bz2 or lzma"
vm_limit=120
images=$work/images
out_dir=$work/unpacked

say "making the images"
busybox=$(command -v busybox) || skip "busybox is not installed (tools/install-deps check)"
python3 "$top/tests/hostile/images.py" "$images" "$busybox"
mkdir "$data" "$out_dir" "$work/canary"
echo kept >"$work/canary/file"
ln -s ../canary "$work/canary/link"

# A mount namespace in which nothing can be written but $work and a copy of /etc, which is in $work, too: so what an
# image leads husk to write elsewhere either fails or shows. A process keeps it.
cp -a /etc "$work/etc"
mkfifo "$work/stay"
unshare --mount --propagation=private bash -c '
	set -e
	mount --bind "$1" "$1"
	mount --bind "$1/etc" /etc
	findmnt -rno TARGET | while IFS= read -r target; do
		target=$(printf %b "$target")
		case $target in
		"$1" | /etc | /proc | /proc/*) ;;
		*) mount -o remount,bind,ro "$target" 2>/dev/null || : ;; # one that is below another has no name
		esac
	done
	echo ready
	read -r _ <"$1/stay" || :' - "$work" >"$work/namespace.out" &
namespace=$!
wait_for_line "$work/namespace.out" ready
inside() { nsenter --target="$namespace" --mount --root --wd="$images" -- "$@"; }
for dir in / /tmp /usr /var "$HOME"; do
	! inside touch "$dir/probe" 2>/dev/null || die "$dir can be written: the test does not test"
done
inside touch /etc/probe "$images/probe"
rm "$work/etc/probe" "$images/probe"

hhusk() {
	timeout --kill-after=10 "$vm_limit" nsenter --target="$namespace" --mount --root --wd="$images" -- \
		"$husk_bin" --insecure-options=image "--dir=$data" "$@"
}

around() { find "$work" \( -path "$data" -o -path "$out_dir" -o -name out -o -name err -o -name 'namespace.*' \) -prune -o \
	-path "$work" -o -printf '%p %i %m %s %T@ %l\n' | sort; }
around >"$out_dir/before"

# The error is one line, behind the lines that tell how far a copy is, and cannot take over a terminal.
one_error() { # REGEX WHAT
	local lines
	lines=$(grep -Ev '^[^ ]+( [0-9]+ of [0-9]+)?: [0-9.]+(B|KiB|MiB) in [0-9.]+s$' "$work/err" || :)
	equal "$(wc -l <<<"$lines")" 1 "$2: lines of the error ($lines)"
	match "$lines" '^(fetch|run): image "' "$2"
	match "$lines" "$1" "$2"
	! grep -q '[[:cntrl:]]' "$work/err" || die "$2: control characters on stderr"
}

nothing_left() { # WHAT
	equal "$(find "$data/tmp" -mindepth 1)" "" "$1: left in tmp"
}

refused() { # IMAGE REGEX [OPTION...]
	local name=$1 regex=$2
	shift 2
	expect 254 hhusk fetch "$@" "$name"
	equal "$out" "" "$name: standard output"
	one_error "$regex" "$name"
	nothing_left "$name"
}

# Type and name of each file, and where links lead, in one line.
listing() {
	(cd "$1" && find . -mindepth 1 \( -type l -printf 'l%P>%l\n' -o -printf '%y%P\n' \)) | sort | tr '\n' ' ' | sed 's/ $//'
}

harmless() { # IMAGE LISTING
	expect 0 hhusk fetch --full "$1"
	local id=$out
	expect 0 hhusk image render --rootfs-only "$id" "$out_dir/tree"
	equal "$(listing "$out_dir/tree")" "$2" "$1: the tree"
	rm -rf "$out_dir/tree"
	nothing_left "$1"
}

say "names, links and whiteouts"
harmless dot-dot 'dd detc fabs fb fd/e fetc/escape'
harmless through-link 'detc fescape-up fetc/escape lout>/etc lup>../../..'
harmless links-to-nowhere 'la>/nowhere/at/all lb>../../../etc/shadow lc>c'
harmless duplicates 'da fa/y fd'
harmless whiteout-of-nothing ''
harmless opaque-root 'fupper'
harmless whiteout-through-link 'detc fkept lout>/etc'
harmless name-255 "f$(printf 'n%.0s' {1..100}) f$(printf 'n%.0s' {1..255})"
harmless sockets-and-nodes 'bdisk cnull fodd pfifo'
refused through-loop 'entry "a/x": more than 40 symbolic links in a path'
refused hard-link-outside 'entry "a": hard link to "/etc/shadow", which does not exist'
refused hard-link-up 'hard link to "../../../../etc/shadow", which does not exist'
refused hard-link-through 'hard link to "out/shadow", which does not exist'
refused hard-link-to-itself 'hard link to "a", which does not exist'
refused hard-link-to-directory 'hard link to the directory "d"'
for name in of-dot-dot of-dot without-name; do refused whiteout-$name 'a whiteout that names nothing'; done
for name in a-file a-link; do refused root-is-$name 'the top of the tree is not a directory'; done
refused root-is-removed 'a whiteout that names nothing'
refused name-256 'a file name is longer than 255 bytes'
refused path-long 'has a name of more than 4095 bytes'
refused deep 'directories are nested more than 1024 deep'
refused link-long 'the target of the symbolic link is empty or longer than 4095 bytes'
refused control-characters 'hard link to "nowhere", which does not exist'

say "extended headers, sparse files, ends"
harmless pax-times 'fa fb fc fd'
harmless pax-nul 'fb'
harmless pax-path-up 'detc fetc/escape ll>/etc/shadow'
harmless pax-global 'fa fb'
harmless pax-unknown 'fa'
harmless pax-privileges 'fa'
harmless sparse-harmless 'fs'
harmless tar-without-end 'fa'
harmless tar-trailing 'fa'
harmless tar-trailing-entry 'fa'
harmless gzip-trailing 'fzeros'
harmless gzip-members 'fa'
refused pax-negative-size 'size attribute is negative'
refused pax-overflowing-size 'size attribute overflow'
refused pax-no-key 'damaged tar: a header makes no sense'
refused pax-owner 'entry "a": owner out of range'
refused pax-xattr 'an extended attribute has a name of more than 255 or a value of more than 65536 bytes'
refused pax-huge 'header too large'
refused pax-size-lies 'header too large'
refused pax-alone 'damaged tar'
for name in pax gnu; do refused sparse-$name 'the files of the image have more than 68719476736 bytes .*raise HUSK_IMAGE_BYTES_MAX'; done
refused tar-truncated-header 'damaged tar'
refused tar-truncated-data 'entry "a": damaged tar: Truncated'
for name in empty empty-gzip empty-zstd; do harmless tar-$name ''; done
harmless tar-empty-above 'fa'
refused tar-noise 'damaged tar'
refused gzip-truncated 'damaged compressed data: truncated gzip input'
refused gzip-damaged 'damaged|mismatch'
refused gzip-in-gzip 'mismatch|damaged tar'
refused gzip-in-gzip-honest 'damaged tar'
refused gzip-nested 'mismatch'
refused zstd-truncated 'damaged compressed data'
refused zstd-trailing 'damaged compressed data'
for name in zstd-window zstd-window-256 zstd-window-later-256; do refused $name 'a zstd window of more than 128 MiB'; done
harmless zstd-window-128 'fa'
harmless zstd-window-later-128 'fa'
harmless zstd-skippable 'fa'
harmless zstd-skippable-alone ''
refused zstd-skippable-truncated 'damaged compressed data'
refused zstd-skippable-many 'begins with more than 1024 zstd frames without content'
refused xz-layer 'compressed with xz, which layers must not be'
refused bzip2-layer 'compressed with bzip2, which layers must not be'

say "bombs"
export HUSK_IMAGE_BYTES_MAX=16Mi
for name in plain gzip zstd sum removed; do refused bomb-$name 'the files of the image have more than 16777216 bytes .*raise HUSK_IMAGE_BYTES_MAX'; done
for name in bomb-behind-end bomb.aci bomb-bzip2.aci bomb.tar.gz rootfs:bomb.tar.gz rootfs:bomb.tar.zst; do
	refused $name 'more than 16777216 bytes when decompressed .*raise HUSK_IMAGE_BYTES_MAX'
done
expect 0 hhusk fetch bomb-links # a hundred names, one content
[ "$(du -sm "$data" | cut -f1)" -lt 32 ] || die "the store has $(du -sm "$data" | cut -f1) MiB"
unset HUSK_IMAGE_BYTES_MAX

say "documents"
harmless manifest-twice 'fa' # the last member of a name counts, as in other parsers
while read -r name regex; do refused "$name" "$regex"; done <<'TABLE'
no-layers the image has no layers
layers-too-many 129 layers, more than the 128
layers-a-million image manifest has more than 32768 objects and lists
layers-no-list image manifest has no list "layers"
layers-unlike-config the manifest has 2 layers but the configuration has 1
layer-size-lies has 2048 bytes instead of 7
layer-size-huge field "size"
layer-size-negative field "size"
layer-size-text field "size"
layer-unknown-type layer 1 has the unknown media type "text/html"
digest-sha512 digest "sha512:0+\.\.\." is not sha256
digest-sha512-in-index digest "sha512:0+\.\.\." is not sha256
digest-unknown is not sha256
digest-unknown-in-index is not sha256
digest-path malformed digest
digest-path-in-index malformed digest
digest-path-64 malformed digest
digest-path-64-in-index malformed digest
digest-upper malformed digest
digest-upper-in-index malformed digest
digest-empty malformed digest
digest-empty-in-index malformed digest
diff-id-lies diff_id mismatch
manifest-schema-1 schema 1, husk reads schema 2
manifest-is-index image manifest has no field "config"
config-not-json image configuration is not a JSON object
config-huge image configuration is larger than 4194304 bytes
config-control image configuration: field "Cmd"
config-types image configuration: field "Cmd"
config-foreign not for this machine: the image is for linux/pdp11
index-empty there is no image in it
index-not-json image index is not a JSON object
index-huge "index.json" is larger than 4194304 bytes
index-deep image index has more than 32768 objects and lists
index-deep-member image index is not a JSON object
index-many 1025 manifests, more than the 1024
index-wide image index has more than 32768 objects and lists
index-control there are several images in it
index-nested image indexes are nested more than 4 deep
index-loop image index: digest mismatch
TABLE

say "what is not a file"
blob='"blobs/sha256/[0-9a-f]{64}"'
for kind in fifo device directory; do refused oci:blob-is-$kind "$blob is not a regular file"; done
for name in blob-is-link blobs-is-link; do refused oci:$name "$blob is, or is behind, a symbolic link that leads out of the layout"; done
refused oci:blob-is-socket "cannot open $blob"
for kind in fifo link device directory socket; do refused oci:index-is-$kind 'oci-layout and index.json are not both there'; done
for name in fifo link-to-device; do
	for prefix in "" oci-archive: docker-archive: rootfs:; do refused $prefix$name 'neither a regular file nor a directory'; done
done

say "archives of docker"
for name in layer-up layer-absolute layer-link layer-hard-link layer-through-link layer-fifo config-up link-chain link-loop; do
	refused docker-$name.tar 'the archive has no "'
done
refused docker-no-list.tar 'manifest.json is not a JSON list'
refused docker-truncated.tar 'the archive is cut off'

say "appc images"
for name in up slash control empty upper; do refused aci-name-$name.aci 'is not a name of an image'; done
refused aci-name-long.aci 'field "name"'
for name in relative many long; do refused aci-whitelist-$name.aci 'field "pathWhitelist"'; done
harmless aci-whitelist-up.aci 'fa'
harmless aci-whitelist-nothing.aci ''
harmless aci-whitelist-link.aci ''
harmless aci-whiteout.aci 'f.wh.a fa'
for name in outside-rootfs two-manifests; do refused aci-$name.aci 'an ACI has one file manifest and the directory rootfs, nothing else'; done
refused aci-rootfs-link.aci 'the top of the tree is not a directory'
refused aci-dependencies.aci 'field "dependencies" has too many members'

say "a directory that changes while it is packed"
mkdir -p "$out_dir/changing/tree/d" "$out_dir/changing/other"
echo mine >"$out_dir/changing/tree/d/file"
echo leaked-text >"$out_dir/changing/other/leaked-name"
cp "$out_dir/changing/other/leaked-name" "$out_dir/changing/other/file"
python3 - "$out_dir/changing" <<'PY' &
import os, sys
os.chdir(sys.argv[1])
with open("tree/grows", "ab", buffering=0) as f:
    open("ready", "w").close()
    for i in range(10**7):  # until the test is done
        if os.path.exists("done"):
            break
        os.rename("tree/d", "d")
        os.symlink("../other", "tree/d")
        os.remove("tree/d")
        os.rename("d", "tree/d")
        if i % 100 == 0 and f.tell() < 10**7:
            f.write(bytes(1000))
PY
changer=$!
deadline=$((SECONDS + 60))
until [ -e "$out_dir/changing/ready" ]; do
	[ $SECONDS -lt $deadline ] || die "nothing changes"
	read -rt 0.05 <> <(:) || :
done
for _ in {1..20}; do
	status=0
	hhusk fetch "rootfs:$out_dir/changing/tree" >"$work/out" 2>"$work/err" </dev/null || status=$?
	err=$(cat "$work/err")
	[ $status -eq 0 ] || { equal $status 254 "exit code ($err)" && one_error "changed while it was read|No such file|Couldn't read link data" "a directory that changes"; }
	nothing_left "a directory that changes"
done
touch "$out_dir/changing/done"
wait "$changer"
! grep -rq leaked "$data/oci/blobs" || die "a file from outside of the directory is in an image"

say "who reads the layers: nobody, with nothing"
checked=
field() { sed -n "s/^$2:[[:blank:]]*//p" "/proc/$1/status" 2>/dev/null | tr '\t' ' ' | sed 's/ *$//'; }
hhusk fetch many-entries >"$work/out" 2>"$work/err" </dev/null &
fetch=$!
while [ -z "$checked" ] && kill -0 $fetch 2>/dev/null; do
	for pid in $(pgrep -x husk); do
		[ "$(field "$pid" Seccomp)" = 2 ] || continue
		grep -qsF -- "--dir=$data" "/proc/$pid/cmdline" || continue
		kill -STOP "$pid" 2>/dev/null || continue
		for set in CapInh CapPrm CapEff CapBnd CapAmb; do equal "$(field "$pid" $set)" 0000000000000000 "renderer: $set"; done
		for ids in Uid Gid; do equal "$(field "$pid" $ids)" "65534 65534 65534 65534" "renderer: $ids"; done
		equal "$(field "$pid" Groups)" "" "renderer: supplementary groups"
		equal "$(field "$pid" NoNewPrivs)" 1 "renderer: no_new_privs"
		for fd in /proc/"$pid"/fd/*; do
			# The layer, its file without a name, the pipe for its report: nothing that has a name can be written.
			case $(readlink "$fd") in
			*/dev/null | pipe:* | *' (deleted)' | */tmp/#*) ;;
			*/blobs/sha256/*) match "$(sed -n 's/^flags:[[:blank:]]*//p' "/proc/$pid/fdinfo/${fd##*/}")" '0$' "renderer: flags of $(readlink "$fd")" ;;
			*) die "the renderer has $(readlink "$fd")" ;;
			esac
		done
		kill -CONT "$pid"
		checked=$pid
	done
done
status=0
wait $fetch || status=$?
[ -n "$checked" ] || die "no process without privileges was seen"
equal $status 254 "exit code of the fetch"
one_error 'file names and attributes need more than 47 MiB of memory' "a million files"
nothing_left "a million files"

say "in a pod: what the guest's process 1 mounts, makes and reads in an app's root"
apps=()
for dir in "$images"/guest-*; do
	name=${dir##*/guest-}
	[ ${#apps[@]} -eq 0 ] || apps+=(---)
	# What is hidden in an app's /proc shows as a mount; where else /proc is mounted, it would not.
	apps+=("guest-$name" --name="$name" --exec=/bin/busybox -- sh -c "echo $name \$(busybox grep -c ' /proc/' /proc/mounts) \$(busybox find / -xdev -name kmsg)")
done
expect 203 hhusk run "${run_options[@]}" --exit-policy=all-exited "${apps[@]}"
started=$(tr -d '\r' <<<"$out" | sort)
hidden=$(sed -n 's/^tmp-file \([0-9]*\)$/\1/p' <<<"$started")
[ "${hidden:-0}" -ge 5 ] || die "nothing is hidden in /proc: $started"
want=$(for name in dev-entries etc-entries etc-file etc-link etc-link-up passwd-fifo passwd-huge passwd-link tmp-file tmp-link; do echo "$name $hidden"; done)
equal "$started" "$want" "apps that start"
refusals=$(grep '^stage1: app' "$work/err" | sort)
equal "$refusals" "$(
	while read -r name place what; do
		echo "stage1: app \"$name\": Error: cannot mount /$place: the image has a $what there (make it a directory)"
	done <<'TABLE'
all-links proc symbolic link
dev-file dev file
dev-link dev symbolic link
dev-link-up dev symbolic link
proc-file proc file
proc-link proc symbolic link
proc-lost proc symbolic link
sys-file sys file
sys-link sys symbolic link
TABLE
)" "apps that do not"
for name in fifo huge; do
	expect 254 hhusk run "${run_options[@]}" "guest-passwd-$name" --exec=/bin/busybox --user=somebody -- true
	match "$err" '/etc/passwd: no regular file of at most 1048576 bytes' "a user that is looked for in $name"
done

say "the store is as good as before, and nothing else has changed"
mapfile -t ids < <(husk image list --no-legend --full --fields=id | sort -u)
[ ${#ids[@]} -gt 40 ] || die "only ${#ids[@]} images are in the store"
expect 0 husk image verify "${ids[@]}"
equal "$err" "" "what image verify says"
for blob in "$data"/oci/blobs/sha256/*; do
	equal "$(sha256sum "$blob" | cut -d' ' -f1)" "${blob##*/}" "digest of a blob in the store"
done
mapfile -t pods < <(husk list --full --no-legend | cut -f1 | sed '/^$/d')
expect 0 husk rm "${pods[@]}"
expect 0 husk image gc --grace-period=0
equal "$err" "" "what image gc says"
equal "$(find "$data/oci/blobs" "$data/trees" "$data/images" "$data/tmp" -type f)" "" "what image gc leaves"
around >"$out_dir/after"
cmp "$out_dir/before" "$out_dir/after" || die "changed around the store: $(diff "$out_dir/before" "$out_dir/after" | head -n 5)"
printf '%s' "--dir=$data" >"$work/out"
equal "$(grep -lsFf "$work/out" /proc/[0-9]*/cmdline || :)" "" "processes that are left"
echo >"$work/stay"
wait "$namespace"
