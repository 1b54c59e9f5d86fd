# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# A real registry on loopback and images for it, for the system tests; sourced behind lib.sh, which
# sets $work and $top.

case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
riscv64) arch=riscv64 ;;
*) skip "no Go name known for $(uname -m)" ;;
esac

declare -A registry_port

# start_registry NAME [YAML]: on a port that the kernel chooses; sets $port and $registry_pid. All have the same storage.
start_registry() {
	local name=$1
	cat >"$name.yml" <<YAML
version: 0.1
log: {accesslog: {disabled: false}, level: info, formatter: text}
storage: {filesystem: {rootdirectory: $work/storage}}
http: {addr: 127.0.0.1:0${2:-}
YAML
	docker-registry serve "$name.yml" >"$name.log" 2>&1 &
	registry_pid=$!
	wait_for_line "$name.log" 'listening on 127.0.0.1:'
	port=$(grep -o 'listening on 127.0.0.1:[0-9]*' "$name.log" | head -n 1)
	port=${port##*:}
	registry_port[$name]=$port
}

# start_proxy UPSTREAM-PORT MODE [BYTES [TIMES]]: sets $proxy; its requests are in proxy.log.
start_proxy() {
	stop_proxy
	: >proxy.log
	python3 "$top/tests/support/registry_proxy.py" "$@" >proxy.log 2>proxy.err &
	proxy_pid=$!
	wait_for_line proxy.log '^[0-9]*$'
	proxy=127.0.0.1:$(head -n 1 proxy.log)
}

stop_proxy() {
	[ -n "${proxy_pid:-}" ] || return 0
	kill "$proxy_pid"
	wait "$proxy_pid" || :
	proxy_pid=
}

# How often the registry $1 was asked for the blob $2.
asked() {
	wait_for_log "http://127.0.0.1:${registry_port[$1]}" "$1.log"
	grep -c "^127.0.0.1.*\"GET /v2/[^ ]*/blobs/sha256:$2 " "$1.log" || :
}

# How often for any blob.
asked_blobs() {
	wait_for_log "http://127.0.0.1:${registry_port[$1]}" "$1.log"
	grep -c '^127.0.0.1.*"GET /v2/[^ ]*/blobs/' "$1.log" || :
}

# Three layers: busybox, eight MiB that do not compress, something small.
make_image() {
	"$top/tools/make-try-image" base
	mkdir tree && head -c 8000000 /dev/urandom >tree/random && tar -cf random.tar -C tree random
	echo small >tree/small && tar -cf small.tar -C tree small
	umoci init --layout image
	umoci new --image image:1
	gunzip -c base/blobs/sha256/"$(jq -r '.layers[0].digest[7:]' <(manifest_of base))" >busybox.tar
	for layer in busybox random small; do umoci raw add-layer --image image:1 "$layer.tar"; done
	umoci config --image image:1 --architecture "$1" --os linux
	umoci config --image image:1 --tag foreign --architecture s390x
	umoci gc --layout image
}

manifest_of() { # LAYOUT, of its first image
	cat "$1/blobs/sha256/$(jq -r '.manifests[0].digest[7:]' "$1/index.json")"
}

# An index of both images, and that as the only entry of the layout "multi".
make_index() {
	local hex
	cp -r image multi
	jq -c --arg arch "$1" '{schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests: [.manifests[]
		| .platform = {os: "linux", architecture: (if .annotations[] == "1" then $arch else "s390x" end)}
		| del(.annotations)]}' image/index.json >index
	hex=$(sha256sum index | cut -d' ' -f1)
	jq -n --arg digest "sha256:$hex" --argjson size "$(stat -c %s index)" '{schemaVersion: 2, manifests: [
		{mediaType: "application/vnd.oci.image.index.v1+json", digest: $digest, size: $size}]}' >multi/index.json
	mv index "multi/blobs/sha256/$hex"
}

