#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The store: images fetched from a registry, from files and directories, listed, used, removed and collected.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/registry_lib.sh
. "$top/tests/system/registry_lib.sh"

require skopeo docker-registry umoci jq busybox
export HOME=$work/home XDG_RUNTIME_DIR=$work/run
mkdir -p "$HOME/.config/containers" "$XDG_RUNTIME_DIR"
unset XDG_CONFIG_HOME REGISTRY_AUTH_FILE DOCKER_CONFIG
cd "$work"

blobs() { find "$data/oci/blobs/sha256" -type f | wc -l; }
trees() { find "$data/trees" -type f -name '*.v*[0-9]' | wc -l; }
images() { husk image list --no-legend --fields=name | sed '/^$/d' | LC_ALL=C sort | tr '\n' ' '; }
hfetch() { expect 0 husk --insecure-options=tls fetch --full "$@"; }

# Nothing is left of unfinished work, and what is there is a layout that others can read.
check_store() {
	equal "$(find "$data/tmp" -mindepth 1)" "" "left in tmp"
	jq -e '.manifests' "$data/oci/index.json" >/dev/null || die "index.json is damaged"
	local blob
	for blob in "$data"/oci/blobs/sha256/*; do
		[ -e "$blob" ] || continue
		equal "$(sha256sum "$blob" | cut -d' ' -f1)" "$(basename "$blob")" "digest of a blob in the store"
	done
}

say "making images"
make_image "$arch" >make.log 2>&1 || die "$(cat make.log)"
make_index "$arch"
image_hex=$(jq -r '.manifests[] | select(.annotations[] == "1") | .digest[7:]' image/index.json)
start_registry plain "}"
plain=127.0.0.1:$port
push() { skopeo copy --quiet --dest-tls-verify=false "$@"; }
push oci:image:1 "docker://$plain/three:1"
push oci:image:1 "docker://$plain/three:same"
push --all oci:multi "docker://$plain/multi:latest"

say "no image is known"
expect 0 husk image list
equal "$out" $'ID\tNAME\tSIZE\tIMPORT TIME\tLAST USED' "empty list"
expect 0 husk image list --no-legend
equal "$out" "" "empty list without legend"
expect 0 husk image list --format=json
equal "$out" "[]" "empty list as JSON"
expect 254 husk run three -- true
match "$err" '^run: image "three": cannot find an image of this name in the local store' "unknown name"
expect 254 husk run sha256-1234 -- true
match "$err" '^run: image "sha256-1234": no image IDs found' "unknown ID"
expect 254 husk run --pull-policy=never "docker://$plain/three:1" -- true
match "$err" 'is not in the local store' "never"
expect 254 husk run --pull-policy=sometimes three -- true
match "$err" 'invalid pull policy "sometimes" \(never, new or update\)' "unknown policy"
expect 254 husk fetch
match "$err" '^Error: must provide at least one image' "no image"
expect 254 husk fetch --store-only --no-store x
match "$err" 'both --store-only and --no-store specified' "both"

say "a registry: fetched once, used by name and by ID"
hfetch "docker://$plain/three:1"
equal "$out" "sha256-$image_hex" "ID"
check_store
equal "$(images)" "$plain/three:1 " "names"
equal "$(blobs)" 5 "blobs"
before=$(asked_blobs plain)
hfetch "docker://$plain/three:1"
equal "$(asked_blobs plain)" "$before" "blobs asked for by a second fetch"
expect 0 husk fetch --pull-policy=new "docker://$plain/three:1"
equal "$out" "sha256-${image_hex:0:32}" "short ID"
expect 0 husk fetch --store-only "docker://$plain/three:1" "$plain/three:1" "sha256-${image_hex:0:6}"
equal "$(wc -l <<<"$out")" 3 "IDs"
equal "$(skopeo inspect --format '{{.Digest}}' "oci:$data/oci:$plain/three:1")" "sha256:$image_hex" "as skopeo sees it"
expect 0 husk run "${run_options[@]}" "docker://$plain/three:1" -- sh -c 'cat /small; wc -c </random'
equal "$(tr -d '\r' <<<"$out")" $'small\n8000000' "the image in a pod"
expect 0 husk run "${run_options[@]}" "$plain/three:1" --name=named -- cat /small
equal "$(asked_blobs plain)" "$before" "blobs asked for by running it"

say "a second tag of the same image, and an index that has it"
hfetch "docker://$plain/three:same"
equal "$out" "sha256-$image_hex" "ID"
equal "$(asked_blobs plain)" $((before + 1)) "blobs asked for: the configuration, as the policy is asked"
hfetch "docker://$plain/multi"
equal "$(asked_blobs plain)" $((before + 2)) "blobs asked for by the index"
hfetch "docker://$plain/multi"
equal "$(asked_blobs plain)" $((before + 2)) "blobs asked for by a second fetch of the index"
echo '{"default": [{"type": "reject"}]}' >"$HOME/.config/containers/policy.json"
push oci:image:1 "docker://$plain/rejected:1" --insecure-policy
expect 254 husk --insecure-options=tls fetch "docker://$plain/rejected:1"
match "$err" "fetch: image \"docker://$plain/rejected:1\": rejected by the host's signature policy" "policy"
expect 0 husk --insecure-options=tls,image fetch "docker://$plain/rejected:1"
expect 0 husk --insecure-options=tls,image fetch "docker://$plain/rejected:1"
for policy in update new never; do
	expect 254 husk --insecure-options=tls fetch --pull-policy=$policy "docker://$plain/rejected:1"
	match "$err" "rejected by the host's signature policy|is not in the local store" "policy, about what is there"
done
rm "$HOME/.config/containers/policy.json"
hfetch "docker://$plain/rejected:1"
expect 0 husk --insecure-options=tls fetch --pull-policy=never "docker://$plain/rejected:1"
expect 0 husk --insecure-options=tls image rm "$plain/rejected:1"
hfetch "docker://$plain/three:1" && hfetch "docker://$plain/three:same" && hfetch "docker://$plain/multi"
before=$(asked_blobs plain)
equal "$(images)" "$plain/multi:latest $plain/three:1 $plain/three:same " "names"
equal "$(husk image list --format=json | jq -r '.[] | .id, .name, (.names | length)' | tr '\n' ' ')" \
	"sha256-$image_hex $plain/multi:latest 3 " "JSON"

say "a tag that moves"
umoci config --image image:1 --tag 2 --config.cmd /moved
push oci:image:2 "docker://$plain/three:1"
expect 0 husk --insecure-options=tls fetch --full --pull-policy=new "docker://$plain/three:1"
equal "$out" "sha256-$image_hex" "new: what is there"
hfetch "docker://$plain/three:1"
moved=${out#sha256-}
[ "$moved" != "$image_hex" ] || die "update did not see the new image"
hfetch "$plain/three:1"
equal "$out" "sha256-$moved" "the name stands for the new one"
equal "$(asked_blobs plain)" $((before + 1)) "blobs asked for: the configuration"
equal "$(trees)" 1 "rendered images: they have the same layers"
check_store

say "listing"
expect 0 husk image list --fields=name,size --sort=name --order=desc
equal "$(head -n 1 <<<"$out" | tr '\t' ' ' | tr -s ' ')" "NAME SIZE" "columns"
expect 254 husk image list --fields=color
match "$err" 'unknown field "color"' "unknown field"
expect 254 husk image list --sort=id
match "$err" 'unknown field "id"' "not sortable"
expect 254 husk image list --order=up
match "$err" '"up" is neither asc nor desc' "order"
expect 0 husk image cat-manifest --pretty-print=false "$plain/three:same"
equal "$(jq -r '.acKind, .app' <<<"$out" | tr '\n' ' ')" "ImageManifest null " "manifest of an image without a command"
expect 0 husk image cat-manifest "$plain/three:1"
equal "$(jq -r '.acKind, .app.exec[0]' <<<"$out" | tr '\n' ' ')" "ImageManifest /moved " "manifest"

say "files and directories: imported once, by content"
hfetch "oci:image:2"
equal "$out" "sha256-$moved" "ID of the layout"
skopeo copy --quiet oci:image:1 docker-archive:saved.tar:saved:1
skopeo copy --quiet oci:image:1 oci-archive:archive.tar:one
for reference in docker-archive:saved.tar saved.tar "$work/saved.tar:saved:1"; do
	hfetch "$reference"
	saved=${saved:-$out}
	equal "$out" "$saved" "ID of $reference"
done
hfetch archive.tar
equal "$out" "sha256-$image_hex" "ID of the archive"
check_store
cp -r image variants
for order in . reverse; do # of builds for variants of the processor that without one
	jq -c --arg arch "$arch" '.manifests |= ([(.[] | select(.annotations[] == "2") | .platform = {os: "linux", architecture: $arch, variant: "v3"}),
		(.[] | select(.annotations[] == "1") | .platform = {os: "linux", architecture: $arch})] | map(del(.annotations)) | '$order')' \
		image/index.json >variants/index.json
	hfetch oci:variants
	equal "$out" "sha256-$image_hex" "ID of the build for every processor"
done
mkdir -p tree/bin && cp "$(command -v busybox)" tree/bin/busybox
ln -s busybox tree/bin/sh
ln tree/bin/busybox tree/bin/cat
mkdir tree/.wh.dir && echo kept >tree/.wh.dir/.wh.file
tar -C tree -cf tree.tar . && xz -k tree.tar
hfetch rootfs:tree
tree_id=$out
hfetch rootfs:tree
equal "$out" "$tree_id" "ID of a directory, again"
hfetch rootfs:tree.tar
tar_id=$out
match "$err" '^tree.tar: [0-9.]+MiB in ' "what was told of the tar"
hfetch rootfs:tree.tar.xz
equal "$out" "$tar_id" "ID of the compressed tar"
match "$err" '^tree.tar.xz: [0-9.]+MiB in ' "what was told of the compressed tar"
for id in "$tree_id" "$tar_id"; do
	expect 0 husk run "${run_options[@]}" "$id" --exec=/bin/sh -- -c '/bin/cat /.wh.dir/.wh.file'
	equal "$(tr -d '\r' <<<"$out")" kept "a root file system has no whiteouts"
done
# Nor has it any when others have copied it: its manifest says so.
skopeo copy --quiet "oci:$data/oci:tree" oci:copied:tree
hfetch oci:copied:tree
expect 0 husk image extract --rootfs-only "$out" "$work/extracted"
equal "$(cat "$work/extracted/.wh.dir/.wh.file")" kept "a copy of a root file system"
check_store

say "names beyond ASCII are told apart, and shown as they are"
for name in ä ö ボックス $'x\xe2\x80\xae\ny'; do
	mkdir "$name" && echo "$name" >"$name/f"
	hfetch "rootfs:$name"
	[ "$name" != ä ] || first_id=$out
	rm -r "$name" # else that is meant by the name
done
for name in ä ö ボックス 'x????y'; do
	match " $(images)" " ${name//\?/\\?} " "name of an image"
	match "$(husk image list --format=json | jq -r '.[].name')" "(^|"$'\n'")${name//\?/\\?}($|"$'\n'")" "in JSON"
done
expect 0 husk fetch --full --store-only ä
equal "$out" "$first_id" "the ID of a name"
expect 0 husk image rm ä ö ボックス 'x????y'
match "$err" '^rm: 4 image' "removed by name"

say "verifying: what was changed is rendered anew"
expect 0 husk image verify "$tree_id" "$plain/three:1"
equal "$out" "successfully verified checksum for image: \"$tree_id\" (\"$tree_id\")
successfully verified checksum for image: \"$plain/three:1\" (\"sha256-$moved\")" "intact"
tree=$(find "$data/trees" -name '*.v*[0-9]' -printf '%s %p\n' | sort -n | sed -n '1s/^[0-9]* //p')
sum=$(sha256sum <"$tree")
chmod u+w "$tree" && printf 'not what was there' | dd of="$tree" bs=1 seek=1000 conv=notrunc status=none
[ "$(sha256sum <"$tree")" != "$sum" ] || printf y | dd of="$tree" bs=1 seek=1000 conv=notrunc status=none
mapfile -t ids < <(husk image list --no-legend --full --fields=id | sort -u)
expect 0 husk image verify "${ids[@]}"
match "$err" '^verify: tree cache verification failed for image sha256-[0-9a-f]*: .*;  rebuilding\.\.\.$' "damaged"
equal "$(sha256sum <"$tree")" "$sum" "repaired"
expect 0 husk image verify "${ids[@]}"
equal "$err" "" "intact again"
rm "$tree"
expect 0 husk image verify "${ids[@]}"
match "$out" 'not rendered; no verification needed' "not rendered"

say "a damaged blob: what it says to do helps"
layer=$data/oci/blobs/sha256/$(jq -r '.layers[1].digest[7:]' "$data/oci/blobs/sha256/$moved")
chmod u+w "$layer"
printf 'not what was there' | dd of="$layer" bs=1 seek=5000000 conv=notrunc status=none
[ "$(sha256sum "$layer" | cut -d' ' -f1)" != "$(basename "$layer")" ] || printf y | dd of="$layer" bs=1 seek=5000000 conv=notrunc status=none
rm "$data"/trees/*
expect 254 husk run "${run_options[@]}" --pull-policy=never "docker://$plain/three:1" --exec=/bin/cat -- /small
one_line_error 'digest mismatch: it is sha256:.*\(fetch the image again\)' "damaged blob"
hfetch "docker://$plain/three:1"
equal "$out" "sha256-$moved" "fetched again"
check_store

say "removing: by name and ID, what others need stays"
expect 0 husk image rm "$plain/three:same" "sha256-$image_hex"
match "$out" "^successfully removed aci for image: \"sha256-$image_hex\"$" "removed"
match "$err" '^rm: 1 image\(s\) successfully removed$' "number"
expect 0 husk image rm nothing
match "$err" '^rm: image "nothing": cannot find' "unknown name"
expect 254 husk image rm
match "$err" 'must provide at least one image ID' "no image"
check_store
expect 0 husk run "${run_options[@]}" --pull-policy=never "docker://$plain/three:1" --exec=/bin/cat -- /small

remove_pods() {
	local uuid
	for uuid in $(husk list --full --no-legend | cut -f1 | sed '/^$/d'); do husk rm "$uuid" >/dev/null; done
}

say "collecting: a pod keeps its image, the rest goes"
remove_pods
expect 0 husk prepare "$tree_id" --exec=/bin/cat -- /.wh.dir/.wh.file
uuid=$out
before=$(husk image list --no-legend --full --fields=id,name)
expect 0 husk image gc
equal "$(husk image list --no-legend --full --fields=id,name)" "$before" "nothing is old enough"
expect 0 husk image gc --grace-period=0
equal "$(husk image list --no-legend --fields=id --full)" "$tree_id" "what a pod uses"
expect 0 husk run-prepared "$uuid"
equal "$(tr -d '\r' <<<"$out")" kept "the pod"
remove_pods
expect 0 husk image gc --grace-period=0
equal "$(images)" "" "images"
equal "$(blobs) $(trees)" "0 0" "blobs and rendered images"
equal "$(find "$data/refs" -type f | wc -l)" 0 "references"
check_store

say "by size: those used longest ago first"
for i in 1 2 3; do
	mkdir "d$i" && head -c 3000000 /dev/urandom >"d$i/random"
	hfetch "rootfs:d$i"
	sized[i]=$out
done
touch -d '1 hour ago' "$data/images/${sized[2]#sha256-}.json"
expect 0 husk image gc --max-size=14Mi
equal "$(husk image list --no-legend --full --fields=id | sort)" "$(printf '%s\n' "${sized[1]}" "${sized[3]}" | sort)" "what is left"
expect 254 husk image gc --max-size=0
match "$err" '--max-size: "0" is not a size' "no size"
expect 0 husk image gc --grace-period=0

say "a name that has moved does not come back when its new image goes"
mkdir moving
for i in 1 2; do
	echo "$i" >moving/file
	hfetch rootfs:moving
	versions[i]=$out
done
equal "$(husk image list --no-legend --full --fields=id,name | tr -s '\t ' ' ' | sed 's/ $//' | LC_ALL=C sort)" \
	"$(printf '%s\n' "${versions[1]}" "${versions[2]} moving" | LC_ALL=C sort)" "names"
equal "$(husk image list --format=json | jq -c --arg id "${versions[1]}" '.[] | select(.id == $id) | [.name, .names]')" '["",[]]' "JSON"
expect 0 husk image rm moving
expect 0 husk image rm moving
match "$err" '^rm: image "moving": cannot find an image of this name' "the name"
equal "$(husk image list --no-legend --full --fields=id,name | tr -s '\t ' ' ' | sed 's/ $//')" "${versions[1]}" "the older one, by its ID"
expect 0 husk image gc --grace-period=0
equal "$(find "$data/refs" -type f | wc -l)" 0 "references"

say "at the same time: the work is done once"
before=$(asked_blobs plain)
for i in 1 2 3 4; do
	husk --insecure-options=tls fetch --full "docker://$plain/three:1" >"at-once.$i" 2>"at-once-err.$i" &
	pids[i]=$!
done
for i in 1 2 3 4; do wait "${pids[i]}" || die "fetch $i: $(cat "at-once-err.$i")"; done
equal "$(sort -u at-once.?)" "sha256-$moved" "IDs"
equal "$(asked_blobs plain)" $((before + 4)) "blobs asked for: three layers and a configuration"
check_store

say "a full disk can be emptied"
if [ "$(id -u)" = 0 ]; then
	mkdir small && mount -t tmpfs -o size=24M none small
	small() { timeout "$vm_limit" "$husk_bin" --insecure-options=tls --dir="$work/small/data" "$@"; }
	expect 0 small fetch "docker://$plain/three:1"
	dd if=/dev/zero of=small/filler bs=64k status=none 2>/dev/null || :
	expect 254 small fetch rootfs:d1
	one_line_error "No space left on device" "full disk"
	equal "$(find small/data/tmp -mindepth 1)" "" "left in tmp"
	expect 0 small image rm "$plain/three:1"
	equal "$(find small/data/oci/blobs -type f | wc -l)" 0 "blobs"
	expect 0 small fetch rootfs:d1
	umount small
fi
