#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What goes wrong before the VM runs: one line that names object, cause and remedy, exit code 254,
# and no pod left behind.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq umoci
image=$(busybox_image)

no_pod() {
	local left
	left=$(find "$data"/pods -mindepth 2 -maxdepth 2 2>/dev/null || :)
	equal "$left" "" "pods left behind"
	left=$(find "$data"/tmp -mindepth 1 2>/dev/null || :)
	equal "$left" "" "temporary files left behind"
}

say "no such image"
expect 254 husk run "$work/none" -- true
one_line_error "none.*(No such file|no such file)"
no_pod

say "neither layout nor archive"
echo text >"$work/text"
expect 254 husk run "$work/text" -- true
one_line_error "text"
no_pod

copy_image() {
	rm -rf "$work/image"
	cp -r "$image" "$work/image"
	manifest=$work/image/blobs/sha256/$(jq -r '.manifests[0].digest' "$work/image/index.json" | cut -d: -f2)
	layer=$work/image/blobs/sha256/$(jq -r '.layers[0].digest' "$manifest" | cut -d: -f2)
}

say "digest mismatch in a layer"
copy_image
printf 'X' | dd of="$layer" bs=1 seek=5000 conv=notrunc status=none
expect 254 husk run "$work/image" -- true
one_line_error "sha256:"
no_pod

say "truncated layer"
copy_image
truncate -s -1000 "$layer"
expect 254 husk run "$work/image" -- true
one_line_error "sha256:"
no_pod

say "manifest that is not what the index says"
copy_image
echo ' ' >>"$manifest"
expect 254 husk run "$work/image" -- true
one_line_error "(digest|sha256|size)"
no_pod

say "image without a command"
umoci init --layout "$work/empty" >/dev/null
umoci new --image "$work/empty:empty" >/dev/null
tar --create --file "$work/layer.tar" --directory "$top" README.md
umoci raw add-layer --image "$work/empty:empty" "$work/layer.tar" >/dev/null
expect 254 husk run "$work/empty"
one_line_error "command"
no_pod

say "QEMU missing"
expect 254 husk run --qemu="$work/no-qemu" "$image" -- true
one_line_error "no-qemu"

say "kernel missing"
expect 254 husk run --kernel="$work/no-kernel" "$image" -- true
one_line_error "no-kernel"

if ! "$husk_bin" "--dir=$data" doctor --format=json | jq -e '.checks[] | select(.name == "kvm") | .ok' >/dev/null; then
	say "KVM asked for where it is unusable"
	expect 254 husk run --accel=kvm "$image" -- true
	one_line_error "[Kk][Vv][Mm]"
fi

say "disk full while rendering"
mkdir "$work/small"
if mount -t tmpfs -o size=5m none "$work/small" 2>/dev/null; then
	dd if=/dev/zero of="$work/small/filler" bs=1M count=64 status=none 2>/dev/null || :
	status=0
	timeout "$vm_limit" "$husk_bin" "--dir=$work/small/data" run "${run_options[@]}" "$image" -- true 2>"$work/err" </dev/null || status=$?
	err=$(cat "$work/err")
	left=$(find "$work/small/data" -type f -size +0 ! -name oci-layout 2>/dev/null || :)
	umount "$work/small"
	equal $status 254 "exit code with a full disk"
	match "$err" "[Nn]o space left" "error text"
	equal "$(wc -l <"$work/err")" 1 "lines on stderr"
	equal "$left" "" "files left on the full disk"
else
	skip "cannot mount a file system"
fi

say "layers with tricks in their names stay in their image"
mkdir -p "$work/evil/ok"
echo harmless >"$work/evil/ok/file"
python3 - "$work/evil.tar" <<'PY'
import io, sys, tarfile
with tarfile.open(sys.argv[1], "w") as tar:
    def add(name, **kw):
        info = tarfile.TarInfo(name)
        data = kw.pop("data", b"")
        for key, value in kw.items():
            setattr(info, key, value)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    add("../../../../../../../../tmp/husk-escape", data=b"escaped\n")
    add("/tmp/husk-escape-absolute", data=b"escaped\n")
    add("link", type=tarfile.SYMTYPE, linkname="/tmp")
    add("link/husk-escape-symlink", data=b"escaped\n")
    add("up", type=tarfile.SYMTYPE, linkname="../../../../tmp")
    add("up/husk-escape-up", data=b"escaped\n")
PY
umoci init --layout "$work/tricks" >/dev/null
cp -r "$image/." "$work/tricks/"
umoci raw add-layer --image "$work/tricks:busybox" "$work/evil.tar" >/dev/null
status=0
husk run "$work/tricks" -- sh -c 'find / -xdev -name "husk-escape*"' \
	>"$work/out" 2>"$work/err" </dev/null || status=$?
case $status in
0) say "rendered harmlessly: $(tr '\n' ' ' <"$work/out")" ;;
254) one_line_error "tricks" ;;
*) die "exit code $status: $(cat "$work/err")" ;;
esac
for name in /tmp/husk-escape*; do
	[ ! -e "$name" ] || die "$name was created on the host"
done
