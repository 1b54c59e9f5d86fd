#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Images from a real registry, Debian's docker-registry: over HTTP and HTTPS, with passwords and without, by tag and by
# digest, with blobs that are there already. And from one that misbehaves in between.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/registry_lib.sh
. "$top/tests/system/registry_lib.sh"

require skopeo docker-registry umoci jq openssl htpasswd python3 busybox
copy_bin=$build/tests/registry-copy
export HOME=$work/home XDG_RUNTIME_DIR=$work/run
mkdir -p "$HOME/.config/containers" "$XDG_RUNTIME_DIR"
unset XDG_CONFIG_HOME REGISTRY_AUTH_FILE DOCKER_CONFIG
cd "$work"

rcopy() {
	timeout --kill-after=5 120 "$copy_bin" "$@"
}

value() { # NAME of a line "NAME VALUE" of the last output
	sed -n "s/^$1 //p" <<<"$out"
}

# check_layout DIR IMAGE: exactly that image, with every digest right.
check_layout() {
	local blob
	for blob in "$1"/blobs/sha256/*; do
		equal "$(sha256sum "$blob" | cut -d' ' -f1)" "$(basename "$blob")" "digest of a blob in $1"
	done
	equal "$(jq '.manifests | length' "$1/index.json")" 1 "images in $1"
	equal "$(jq -r '.manifests[0].digest' "$1/index.json")" "sha256:$2" "image in $1"
	[ -z "$(find "$1" -name 'oci-put-blob*')" ] || die "half-written blobs are left in $1"
}

say "making images"
make_image "$arch" >make.log 2>&1 || die "$(cat make.log)"
make_index "$arch"
image_hex=$(jq -r '.manifests[] | select(.annotations[] == "1") | .digest[7:]' image/index.json)
config_hex=$(jq -r '.config.digest[7:]' "image/blobs/sha256/$image_hex")
mapfile -t layers < <(jq -r '.layers[].digest[7:]' "image/blobs/sha256/$image_hex")
equal "${#layers[@]}" 3 "layers of the image"

start_registry plain "}"
plain=127.0.0.1:$port plain_port=$port
push() {
	skopeo copy --quiet --dest-tls-verify=false "$@"
}
push oci:image:1 "docker://$plain/three:1"
push --format v2s2 oci:image:1 "docker://$plain/docker:1"
push --all oci:multi "docker://$plain/multi:latest"
skopeo copy --quiet --dest-decompress oci:image:1 dir:decompressed
push --preserve-digests dir:decompressed "docker://$plain/uncompressed:1"

say "pull by tag, and again"
expect 0 rcopy --insecure-tls "$plain/three:1" three
equal "$(value manifest)" "$image_hex" "manifest"
equal "$(value source)" "$image_hex" "source"
check_layout three "$image_hex"
total=$(jq '.config.size + ([.layers[].size] | add)' "image/blobs/sha256/$image_hex")
equal "$(grep '^progress' <<<"$out" | tail -n 1)" "progress $total $total ended" "last progress"
before=$(asked_blobs plain)
expect 0 rcopy --insecure-tls "$plain/three:1"
equal "$(asked_blobs plain)" "$before" "blobs fetched by a look"
expect 0 rcopy --insecure-tls "$plain/three:1" three
# The configuration: skopeo reads it in any case.
equal "$(asked_blobs plain)" $((before + 1)) "blobs fetched although all are there"
for layer in "${layers[@]}"; do
	equal "$(asked plain "$layer")" 1 "fetches of a layer"
done
equal "$(grep '^progress' <<<"$out" | tail -n 1)" "progress 0 0 ended" "progress with nothing to do"

say "blobs that are there are not fetched"
mkdir -p reuse/blobs/sha256
ln "three/blobs/sha256/${layers[1]}" "three/blobs/sha256/$image_hex" reuse/blobs/sha256/
before=$(asked plain "${layers[1]}") before_other=$(asked plain "${layers[2]}")
expect 0 rcopy --insecure-tls "$plain/three:1" reuse
check_layout reuse "$image_hex"
equal "$(asked plain "${layers[1]}")" "$before" "fetches of a blob that is there"
equal "$(asked plain "${layers[2]}")" $((before_other + 1)) "fetches of a blob that is not"
equal "$(stat -c %i reuse/blobs/sha256/"${layers[1]}")" "$(stat -c %i three/blobs/sha256/"${layers[1]}")" "linked blob"
[ reuse/blobs/sha256/"$image_hex" -ef three/blobs/sha256/"$image_hex" ] && die "the manifest was written through a link"
# One of the wrong size is.
cp -r three damaged
truncate -s 100 "damaged/blobs/sha256/${layers[1]}"
expect 0 rcopy --insecure-tls "$plain/three:1" damaged
check_layout damaged "$image_hex"

say "digests, platforms, docker's format, layers that are not compressed"
expect 0 rcopy --insecure-tls "$plain/three@sha256:$image_hex" by-digest
check_layout by-digest "$image_hex"
expect 0 rcopy --insecure-tls "$plain/multi" multi-copy
equal "$(value manifest)" "$image_hex" "manifest for this platform"
equal "$(value source)" "$(jq -r '.manifests[0].digest[7:]' multi/index.json)" "digest of the index"
check_layout multi-copy "$image_hex"
expect 0 rcopy --insecure-tls "$plain/docker:1" docker-copy
check_layout docker-copy "$(value manifest)"
equal "$(jq -r .mediaType "docker-copy/blobs/sha256/$(value manifest)")" \
	application/vnd.docker.distribution.manifest.v2+json "media type"
[ -e "docker-copy/blobs/sha256/$config_hex" ] || die "the configuration was changed"
expect 0 rcopy --insecure-tls "$plain/uncompressed:1" uncompressed
check_layout uncompressed "$(value manifest)"
mkdir data
"$build/tests/render-image" data multi-copy >render.out 2>&1 || die "not rendered: $(cat render.out)"
"$build/tests/render-image" data docker-copy >render.out 2>&1 || die "not rendered: $(cat render.out)"
grep -qx 'rendered 0' render.out || die "the same layers were rendered twice"

say "names and hosts that are not there"
expect 1 rcopy --insecure-tls "$plain/three:nope"
one_line_error "registry \"$plain\" has no such image or tag"
expect 1 rcopy --insecure-tls "$plain/nope:1"
one_line_error "registry \"$plain\" has no such image or tag"
expect 1 rcopy no-such-host.invalid/three:1
one_line_error 'there is no host of the name|the name server cannot say'
expect 1 rcopy "$plain/three:1"
one_line_error 'speaks plain HTTP .*--insecure-options=tls'
expect 1 rcopy "--insecure-tls" "127.0.0.1:1/three:1"
one_line_error 'nobody answers at registry "127.0.0.1:1"'
expect 1 rcopy --insecure-tls "--max=1000000" "$plain/three:1" too-large
one_line_error 'bytes, more than the 1000000 allowed'

say "signature policy"
echo '{"default": [{"type": "reject"}]}' >"$HOME/.config/containers/policy.json"
expect 1 rcopy --insecure-tls "$plain/three:1" rejected
one_line_error "rejected by the host's signature policy"
# Also if there is nothing to fetch.
expect 1 rcopy --insecure-tls "$plain/three:1" three
one_line_error "rejected by the host's signature policy"
expect 0 rcopy --insecure-tls --insecure-image "$plain/three:1" three
rm "$HOME/.config/containers/policy.json"

say "passwords"
htpasswd -Bbc users user 'p:ss"word' 2>/dev/null
start_registry password "}
auth: {htpasswd: {realm: test, path: $work/users}}"
password=127.0.0.1:$port
expect 1 rcopy --insecure-tls "$password/three:1" auth
one_line_error 'wants a user and a password.*auth.d, or "skopeo login'
expect 1 rcopy --insecure-tls "--auth=$password=user=wrong" "$password/three:1" auth
one_line_error 'wants a user and a password, or others than it got'
expect 1 rcopy --insecure-tls "--auth=other.host=user=p:ss\"word" "$password/three:1" auth
expect 0 rcopy --insecure-tls "--auth=$password=user=p:ss\"word" "$password/three:1" auth
check_layout auth "$image_hex"
case $out$err in *ss\"word* | *"$(printf 'user:p:ss"word' | base64)"*) die "the password is shown" ;; esac
[ -z "$(find "$work" /dev/shm -name '*auth*.json' 2>/dev/null)" ] || die "a file with credentials is left"
skopeo login --tls-verify=false --authfile login.json -u user --password-stdin "$password" <<<'p:ss"word' >/dev/null
expect 0 env REGISTRY_AUTH_FILE="$work/login.json" "$copy_bin" --insecure-tls "$password/three:1" login
check_layout login "$image_hex"
kill "$registry_pid"

say "certificates"
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -subj /CN=husk-test -days 2 2>/dev/null
openssl req -newkey rsa:2048 -nodes -keyout tls.key -out tls.csr -subj /CN=127.0.0.1 2>/dev/null
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out tls.crt -days 2 \
	-extfile <(echo subjectAltName=IP:127.0.0.1) 2>/dev/null
start_registry tls ", tls: {certificate: $work/tls.crt, key: $work/tls.key}}"
tls=127.0.0.1:$port
expect 1 rcopy "$tls/three:1" tls
one_line_error 'certificate of registry .* cannot be trusted: .*certs.d/.*ca.crt, or use --insecure-options=tls'
expect 0 rcopy --insecure-tls "$tls/three:1" tls-unverified
mkdir -p "$HOME/.config/containers/certs.d/$tls"
cp ca.crt "$HOME/.config/containers/certs.d/$tls/"
expect 0 rcopy "$tls/three:1" tls
check_layout tls "$image_hex"
kill "$registry_pid"

say "a connection that breaks in a blob"
start_proxy "$plain_port" cut 3000000 1
expect 0 rcopy --insecure-tls "$proxy/three:1" cut
check_layout cut "$image_hex"
match "$out" 'note image: registry .* too early .*; trying again in 1 s' "what is said about a second attempt"
equal "$(grep -c "blobs/sha256:${layers[1]}" proxy.log)" 2 "requests for the blob that broke"
for blob in "${layers[0]}" "${layers[2]}" "$config_hex"; do
	match "$(grep -c "blobs/sha256:$blob" proxy.log)" '^[12]$' "requests for another blob"
done
# What skopeo does about the bytes that it had: nothing. If this fails, the comment in registry.c is out of date.
equal "$(grep blobs/ proxy.log | grep -vc whole || :)" 0 "requests for a part of a blob"

say "a connection that breaks again and again, and a later fetch"
start_proxy "$plain_port" cut 3000000
expect 1 rcopy --insecure-tls "$proxy/three:1" later
one_line_error 'ended the connection too early'
[ -e "later/blobs/sha256/${layers[0]}" ] || die "a complete blob was not kept"
[ -z "$(find later -name 'oci-put-blob*')" ] || die "half-written blobs are left"
before=$(asked plain "${layers[0]}")
expect 0 rcopy --insecure-tls "$plain/three:1" later
check_layout later "$image_hex"
equal "$(asked plain "${layers[0]}")" "$before" "fetches of a blob that was complete"

say "a fetch that is killed"
start_proxy "$plain_port" hang 3000000
"$copy_bin" --insecure-tls "$proxy/three:1" killed >killed.out 2>&1 &
killed_pid=$!
wait_for_line killed.out '^progress [3-5][0-9]\{6\} '
kill -9 $killed_pid
wait $killed_pid 2>/dev/null || :
skopeo_in() {
	local cwd
	for cwd in /proc/[0-9]*/cwd; do
		[ "$(readlink "$cwd")" != "$1" ] || echo "$cwd"
	done
}
deadline=$((SECONDS + gone_limit))
while [ -n "$(skopeo_in "$work/killed")" ]; do
	[ $SECONDS -lt $deadline ] || die "skopeo outlives who started it"
	read -rt 0.05 <> <(:) || :
done
[ -n "$(find killed -name 'oci-put-blob*')" ] || die "nothing half-written: the test does not test"
expect 0 rcopy --insecure-tls "$plain/three:1" killed
check_layout killed "$image_hex"

say "a registry that lies"
start_proxy "$plain_port" endless 3000000
expect 1 rcopy --insecure-tls "$proxy/three:1" endless
one_line_error 'sends more than .* manifest says'
[ -z "$(find endless -name 'oci-put-blob*')" ] || die "an endless blob is left"
start_proxy "$plain_port" manifest
expect 1 rcopy --insecure-tls "$proxy/multi" lie
one_line_error 'answers with sha256:.* when it is asked for'
stop_proxy
stored=$work/storage/docker/registry/v2/blobs/sha256/${layers[1]:0:2}/${layers[1]}/data
cp "$stored" stored
printf 'not what was there' | dd of="$stored" bs=1 seek=4000000 conv=notrunc status=none
expect 1 rcopy --insecure-tls "$plain/three:1" flipped
one_line_error 'another digest than the manifest says'
[ ! -e "flipped/blobs/sha256/${layers[1]}" ] || die "a blob with a wrong digest has its name"
truncate -s 5000000 "$stored"
expect 1 rcopy --insecure-tls "$plain/three:1" short
one_line_error 'another digest than the manifest says'
cp stored "$stored"

say "manifests that are none, too many, too large"
mkdir manifests
good=image/blobs/sha256/$image_hex
# The index around a manifest or index: its digest is its name; sets $wrapped.
wrap() { # HEX FILE
	jq -nc --arg digest "sha256:$1" --argjson size "$(stat -c %s "$2")" '{schemaVersion: 2, manifests: [
		{mediaType: "application/vnd.oci.image.index.v1+json", digest: $digest, size: $size}]}' >wrapped.json
	wrapped=$(sha256sum wrapped.json | cut -d' ' -f1)
	mv wrapped.json "manifests/sha256:$wrapped"
}
wrapped=$image_hex
cp "$good" "manifests/sha256:$image_hex"
for depth in 1 2 3 4 5; do
	wrap "$wrapped" "manifests/sha256:$wrapped"
	cp "manifests/sha256:$wrapped" "manifests/deep$depth"
done
echo '<html>' >manifests/html
jq -c '.manifests = []' "$good" >manifests/both
jq -c '.layers = [range(128) as $i | .layers[0]]' "$good" >manifests/most-layers
jq -c '.layers = [range(129) as $i | .layers[0]]' "$good" >manifests/more-layers
jq -c '.layers[1].size += 1' "$good" >manifests/two-sizes
jq -c '.layers[0].size = 1000000000000' "$good" >manifests/large
{ cat "$good" && head -c $((4194304 - $(stat -c %s "$good"))) /dev/zero | tr '\0' ' '; } >manifests/longest
{ cat manifests/longest && printf ' '; } >manifests/longer
start_proxy "$plain_port" replace
expect 0 rcopy --insecure-tls "$proxy/three:deep4"
equal "$(value manifest)" "$image_hex" "manifest within four indexes"
expect 1 rcopy --insecure-tls "$proxy/three:deep5"
one_line_error 'nested more than 4 deep'
expect 1 rcopy --insecure-tls "$proxy/three:html"
one_line_error 'not a JSON object'
expect 1 rcopy --insecure-tls "$proxy/three:both"
one_line_error 'index and manifest at once'
expect 0 rcopy --insecure-tls "$proxy/three:most-layers"
expect 1 rcopy --insecure-tls "$proxy/three:more-layers"
one_line_error '129 layers, more than the 128'
expect 0 rcopy --insecure-tls "$proxy/three:longest"
expect 1 rcopy --insecure-tls "$proxy/three:longer"
one_line_error 'larger than 4 MiB'
# Sizes that are wrong, which skopeo does not mind, and so large that no limit allows it.
digest=$(sha256sum manifests/two-sizes | cut -d' ' -f1)
cp manifests/two-sizes "manifests/sha256:$digest"
expect 1 rcopy --insecure-tls "$proxy/three:two-sizes" two-sizes
one_line_error 'has [0-9]* bytes instead of the [0-9]* that the manifest says'
jq -c '.layers[1].size = 10' "$good" >manifests/small
cp manifests/small "manifests/sha256:$(sha256sum manifests/small | cut -d' ' -f1)"
expect 1 rcopy --insecure-tls "$proxy/three:small" small-size
one_line_error 'sends more than .* manifest says|has [0-9]* bytes instead of the 10 that'
expect 1 rcopy --insecure-tls --max=100000000000 "$proxy/three:large" large
one_line_error 'more than the 100000000000 allowed'
stop_proxy

say "a full disk"
mkdir small
cat >full.sh <<'SH'
mount -t tmpfs -o size=4m tmpfs small || exit 99
"$1" --insecure-tls "$2" small/layout
SH
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
	expect 1 unshare --mount sh full.sh "$copy_bin" "$plain/three:1"
	one_line_error 'the disk is full .make room'
else
	say "no root: not tried"
fi
