#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# husk image export, extract and render: files are the same as umoci(1) unpacks, archives the same as were
# fetched; what is refused says so in one line and leaves nothing. As root, and as a user in a data
# directory of his own. Needs root: owners and device files are restored.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/image_lib.sh
. "$top/tests/system/image_lib.sh"
export LC_ALL=C

[ "$(id -u)" -eq 0 ] || skip "needs root"
require umoci skopeo python3 jq setcap setpriv
debian=$(debian_image)
cd "$work"
out_dir=$work/out-dir
mkdir "$out_dir" tree

say "making an image with everything that is tricky"
make_tricky_tree tree
tar --xattrs --xattrs-include='*' --format=pax --numeric-owner -C tree -cf tree.tar .
umoci init --layout layout
umoci new --image layout:tricky
umoci raw add-layer --image layout:tricky tree.tar
umoci config --image layout:tricky --config.cmd /bin/capable --config.user 12:34

nothing_left() {
	equal "$(ls -A "$out_dir")" "${1:-}" "what is left"
}

fetch() { # REFERENCE; sets $out to the ID
	expect 0 husk fetch --full "$1"
}

say "extracting it: the same as umoci makes"
fetch oci:layout:tricky
tricky=$out
unpack layout:tricky bundle
list bundle/rootfs >want
# Everybody else's group, and attributes, would be handed down.
chmod 2777 "$out_dir"
python3 -c '
import os, sys
acl = bytes.fromhex("0200000001000700ffffffff0200070001000000040007 00ffffffff10000700ffffffff20000700ffffffff".replace(" ", ""))
os.setxattr(sys.argv[1], "system.posix_acl_default", acl)' "$out_dir" 2>/dev/null || say "no access control lists here"
expect 0 husk image extract "$tricky" "$out_dir/x"
equal "$out$err" "" "messages"
list "$out_dir/x/rootfs" >got
compare want got "the extracted image differs from what umoci unpacks"
equal "$(stat -c '%a %u %g' "$out_dir/x" "$out_dir/x/manifest")" $'700 0 0\n600 0 0' "modes"
equal "$(ls -A "$out_dir/x")" $'manifest\nrootfs' "what is in it"
equal "$(jq -r '.acKind, .app.exec[0], .app.user, .app.group' "$out_dir/x/manifest")" \
	$'ImageManifest\n/bin/capable\n12\n34' "manifest"
equal "$(stat -c %i "$out_dir/x/rootfs/hard")" "$(stat -c %i "$out_dir/x/rootfs/d/hard")" "hard link"
for file in sparse hole; do
	[ "$(du -k "$out_dir/x/rootfs/$file" | cut -f1)" -lt 1000 ] || die "the hole in $file was filled"
done
expect 0 husk image cat-manifest --pretty-print=false "$tricky"
equal "$out" "$(cat "$out_dir/x/manifest")" "manifest and cat-manifest"
nothing_left x

say "as an appc image: exactly manifest and rootfs"
expect 0 husk image export "$tricky" "$out_dir/a.aci"
equal "$out$err" "" "messages"
expect 0 husk image export --format=aci "$tricky" "$out_dir/b.aci"
cmp "$out_dir/a.aci" "$out_dir/b.aci" || die "two exports differ"
equal "$(tar -tf "$out_dir/a.aci" --quoting-style=escape 2>tar.err | sed 's|/.*|/|' | sort | uniq -c | awk '{ print $2 }')" \
	$'manifest\nrootfs/' "top level of the archive"
mkdir aci
tar --xattrs --xattrs-include='*' --numeric-owner -xpf "$out_dir/a.aci" -C aci 2>tar.err || die "tar: $(tail -n 3 tar.err)"
cmp aci/manifest "$out_dir/x/manifest" || die "the manifests differ"
list --times aci/rootfs >want-times
list --times "$out_dir/x/rootfs" >got-times
compare want-times got-times "the extracted image differs from the archive"
rm -rf aci "$out_dir"/*.aci

say "render, overwriting, without a manifest"
expect 254 husk image render "$tricky" "$out_dir/x"
one_line_error '^render: output directory exists \(try --overwrite\)$'
expect 0 husk image render --overwrite --rootfs-only "$tricky" "$out_dir/x"
list "$out_dir/x" >got
compare want got "the rendered image differs from what umoci unpacks"
touch "$out_dir/x/mine"
expect 0 husk image extract --overwrite --rootfs-only "$tricky" "$out_dir/x/"
[ ! -e "$out_dir/x/mine" ] || die "the old directory was kept"
list --times "$out_dir/x" >got
compare want-times got "the second time"
nothing_left x
rm -rf "$out_dir/x" bundle

say "as an OCI archive: the same image"
expect 0 husk image export --format=oci "$tricky" "$out_dir/a.oci"
equal "$(skopeo inspect --format '{{.Digest}}' "oci-archive:$out_dir/a.oci")" "sha256:${tricky#sha256-}" "as skopeo sees it"
mkdir oci && tar -xf "$out_dir/a.oci" -C oci
equal "$(ls oci)" $'blobs\nindex.json\noci-layout' "what is in it"
tag=$(jq -r '.manifests[0].annotations["org.opencontainers.image.ref.name"]' oci/index.json)
match "$(husk image list --no-legend --fields=name)" "$tag" "its name"
for blob in oci/blobs/sha256/*; do
	cmp "$blob" "layout/blobs/sha256/${blob##*/}" || die "the blob differs"
done
skopeo copy --quiet "oci-archive:$out_dir/a.oci" oci:copied:1
umoci stat --image copied:1 >/dev/null || die "umoci stat"
data=$work/data2
fetch "$out_dir/a.oci"
equal "$out" "$tricky" "the ID, fetched again"
expect 0 husk image extract "$tricky" "$out_dir/x"
list "$out_dir/x/rootfs" >got
compare want got "the image that was exported and fetched"
data=$work/data
rm -rf oci copied "$out_dir/x" "$out_dir/a.oci"

say "an image that is a root file system"
fetch rootfs:tree.tar
rootfs=$out
expect 0 husk image extract --rootfs-only "$rootfs" "$out_dir/x"
list "$out_dir/x" >got
compare want got "the root file system"
expect 0 husk image export --format=oci "$rootfs" "$out_dir/a.oci"
equal "$(skopeo inspect --format '{{.Digest}}' "oci-archive:$out_dir/a.oci")" "sha256:${rootfs#sha256-}" "as skopeo sees it"
rm -rf "${out_dir:?}"/*

say "appc images: the archive and the manifest that they came with"
mkdir -p appc/rootfs/etc && echo appc >appc/rootfs/etc/appc
jq -n '{acKind: "ImageManifest", acVersion: "0.8.11", name: "example.com/appc", annotations: [{name: "homepage", value: "x"}]}' \
	>appc/manifest
tar -C appc -cf appc.tar manifest rootfs
gzip -c appc.tar >appc.aci
expect 0 husk --insecure-options=image fetch --full "$work/appc.aci"
appc=$(tail -n 1 <<<"$out")
expect 0 husk image export "$appc" "$out_dir/a.aci"
cmp appc.tar "$out_dir/a.aci" || die "the archive differs"
expect 254 husk image export --format=oci "$appc" "$out_dir/a.oci"
one_line_error "^export: image \"$appc\" is an appc image, which no OCI archive can hold \(try --format=aci\)$"
expect 0 husk image extract "$appc" "$out_dir/x"
cmp appc/manifest "$out_dir/x/manifest" || die "the manifest differs"
equal "$(cat "$out_dir/x/rootfs/etc/appc")" appc "its file"
equal "$(husk image cat-manifest "$appc" | jq -r '.annotations[0].value')" x "the manifest's own words"
rm -rf "${out_dir:?}"/*

say "Debian"
fetch "$debian"
debian_id=$out
unpack "$debian:debian" bundle
expect 0 husk image extract "$debian_id" "$out_dir/x"
list bundle/rootfs >want-debian
list "$out_dir/x/rootfs" >got
compare want-debian got "Debian differs from what umoci unpacks"
say "$(wc -l <got) files are equal"
rm -rf "$out_dir/x" bundle

say "what only the kernel's administrator sees is left out, and said"
mkdir marked && echo x >marked/f
python3 -c 'import os; os.setxattr("marked/f", "trusted.t", b"1")'
tar --xattrs --xattrs-include='*' --format=pax -C marked -cf marked.tar .
fetch rootfs:marked.tar
marked=$out
expect 0 husk image extract "$marked" "$out_dir/x"
one_line_error "^extract: warning: image \"$marked\": left out what cannot be made here: 1 extended attribute$"
rm -rf "$out_dir/x"

say "what is refused"
expect 254 husk image extract "$tricky"
match "$err" '^Error: exactly one IMAGE and one DIR are needed' "operands"
expect 254 husk image export "$tricky"
match "$err" '^Error: exactly one IMAGE and one FILE are needed' "operands"
expect 254 husk image extract sha256-ffffffff "$out_dir/x"
one_line_error '^extract: image "sha256-ffffffff": no image IDs found'
expect 254 husk image extract nothing "$out_dir/x"
one_line_error '^extract: image "nothing": cannot find'
expect 254 husk image export --format=zip "$tricky" "$out_dir/x"
one_line_error '^export: --format: "zip" is neither aci nor oci'
expect 254 husk image export "$tricky" "$out_dir/missing/x"
one_line_error '^export: unable to open target ".*/missing/x": its directory: No such file'
expect 254 husk image extract "$tricky" "$out_dir/missing/x"
one_line_error '^extract: output directory ".*/missing/x": the directory above it: No such file'
ln -s / root
for dir in / /.. //. "$work/root" ../../../../../../../../../..; do
	expect 254 husk image extract --overwrite "$tricky" "$dir"
	one_line_error '^extract: this would delete your root filesystem\. Refusing\.$'
	expect 254 husk image render --rootfs-only "$tricky" "$dir"
	one_line_error '^render: output directory exists \(try --overwrite\)$'
done
for dir in . "$work" "$data"; do
	expect 254 husk image extract --overwrite "$tricky" "$dir"
	one_line_error '^extract: this would delete the data directory of husk\. Refusing\.$'
done
nothing_left
echo old >"$out_dir/a"
expect 254 husk image export "$tricky" "$out_dir/a"
one_line_error '^export: output ACI file exists \(try --overwrite\)$'
expect 254 husk image export --format=oci "$tricky" "$out_dir/a"
one_line_error '^export: output OCI file exists \(try --overwrite\)$'
expect 254 husk image extract --overwrite "$tricky" "$out_dir/a"
one_line_error '^extract: output directory ".*/a": it is not a directory$'
equal "$(cat "$out_dir/a")" old "the old file"
expect 0 husk image export --overwrite "$tricky" "$out_dir/a"
tar -tf "$out_dir/a" manifest >/dev/null 2>tar.err || die "the archive that was written over: $(cat tar.err)"
nothing_left a
rm "$out_dir/a"

say "a blob that is damaged"
layer=$(jq -r '.layers[0].digest[7:]' "$data/oci/blobs/sha256/${tricky#sha256-}")
cp "$data/oci/blobs/sha256/$layer" layer
chmod u+w "$data/oci/blobs/sha256/$layer"
printf 'not what was there' | dd of="$data/oci/blobs/sha256/$layer" bs=1 seek=1000 conv=notrunc status=none
expect 254 husk image export --format=oci "$tricky" "$out_dir/a"
one_line_error "^export: image \"$tricky\": blob sha256:${layer:0:12}\.\.\. is damaged \(fetch the image again\)$"
nothing_left
cat layer >"$data/oci/blobs/sha256/$layer"

say "SIGTERM leaves nothing"
status=0
"$husk_bin" "--dir=$data" image extract "$debian_id" "$out_dir/x" 2>err &
victim=$!
until [ -n "$(find "$out_dir" -mindepth 4 -print -quit 2>/dev/null)" ]; do
	kill -0 $victim 2>/dev/null || die "it was too fast: $(cat err)"
	read -rt 0.01 <> <(:) || :
done
kill -TERM $victim
wait $victim || status=$?
equal "$status" 143 "exit status"
nothing_left

say "a full disk"
full_disk() {
	local command
	mkdir small/old && echo old >small/old/f
	for command in "extract $tricky small/x" "extract --overwrite $tricky small/old" "export $debian_id small/a"; do
		# shellcheck disable=SC2086 # words
		expect 254 husk image $command
		one_line_error '[Nn]o space left .*\(free some .* elsewhere\)$'
		equal "$(ls -A small)" old "what is left"
		equal "$(cat small/old/f)" old "the old file"
	done
	expect 254 husk image extract --overwrite "$tricky" small
	one_line_error '^extract: cannot replace output directory "small": it is a mount point$'
	equal "$(find . -maxdepth 1 -name '.husk*')" "" "what is left"
}
mkdir small
if mount -t tmpfs -o size=2M none small; then
	status=0
	(full_disk) || status=1
	umount small
	[ $status = 0 ] || exit 1
fi

say "a user with a data directory of his own"
chmod 711 "$work"
mkdir -m 755 theirs && chown 65534:65534 theirs
expect 0 husk image export --format=oci "$tricky" "$out_dir/a.oci"
as_user() {
	timeout "$vm_limit" setpriv --reuid=65534 --regid=65534 --clear-groups env "HOME=$work/theirs" \
		"$husk_bin" "--dir=$work/theirs/data" "$@"
}
chmod 755 "$husk_bin" "$out_dir" && chmod 644 "$out_dir/a.oci"
expect 0 as_user fetch --full "$out_dir/a.oci"
equal "$out" "$tricky" "ID"
expect 0 as_user image extract "$tricky" theirs/x
one_line_error "^extract: warning: image \"$tricky\": left out what cannot be made here without root: 3 device files, 1 extended attribute, 3 set-ID bits$"
equal "$(find theirs/x ! -user 65534 -o ! -group 65534)" "" "files of others"
equal "$(find theirs/x -type c -o -type b)" "" "device files"
equal "$(find theirs/x -type f -perm /6000)" "" "set-ID files"
# All else is the same.
without_privileges() {
	sed -E '/^[^ ]+ [bc]/d; s/ security\.capability=[^ ]*//; s/^([^ ]+ .)[0246]/\10/; s/^([^ ]+ .)[1357]/\11/
		s/^([^ ]+ [^ ]+) [0-9]+ [0-9]+/\1/'
}
without_privileges <want >want-user
list theirs/x/rootfs | without_privileges >got-user
compare want-user got-user "the user's files differ"
expect 0 as_user image extract --overwrite "$tricky" theirs/x
expect 0 as_user image render --overwrite --rootfs-only "$tricky" theirs/x
list theirs/x | without_privileges >got-user
compare want-user got-user "the user's files differ, the second time"
expect 0 as_user image export "$tricky" theirs/a.aci
equal "$(tar -tvf theirs/a.aci --numeric-owner rootfs/bin/sgid 2>tar.err | awk '{ print $1, $2 }')" "-rwx--s--x 12/34" \
	"the archive has what a directory cannot have"
expect 254 as_user image extract "$tricky" /x
one_line_error '^extract: cannot create output directory "/x": Permission denied$'
expect 254 as_user image extract --overwrite "$tricky" /
one_line_error 'Refusing\.$'
equal "$(ls -A theirs)" $'a.aci\ndata\nx' "what is left"
