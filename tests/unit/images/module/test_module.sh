#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# husk without its module, and with one that is not its own: what touches no image works, what needs the module says in one
# line what is wrong and what helps; what is known already is found without it.
#   test_module.sh HUSK HUSK-IMAGES MAKE-TRY-IMAGE
set -euo pipefail
husk_program=$1 module=$2 make_image=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/husk-module.XXXXXX")
trap 'rm -rf "$work"' EXIT
installed=$work/lib/husk/husk-images.so

die() {
	echo "FAILED: $*" >&2
	exit 1
}

# Ends with STATUS; its output is in $out and $err.
expect() { # STATUS ARG...
	local want=$1 got=0
	shift
	"$work/bin/husk" --system-config= --local-config= "--dir=$work/data" "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
	out=$(cat "$work/out")
	err=$(cat "$work/err")
	[ "$got" -eq "$want" ] || die "husk $*: exit code $got instead of $want ($err)"
}

# One line that begins and ends so.
says() { # BEGIN END
	[ "$(wc -l <"$work/err")" -eq 1 ] || die "not one line: $err"
	[[ $err == "$1"*"$2" ]] || die "\"$err\" instead of \"$1...$2\""
}

mkdir -p "$work/bin" "$work/lib/husk"
cp "$husk_program" "$work/bin/husk"
"$make_image" "$work/busybox" >"$work/log" 2>&1 || die "$(cat "$work/log")"
image=$work/busybox

# Whatever is wrong with it: who does not need it does not load it.
works_without() {
	expect 0 --version
	expect 0 list
	expect 0 image list
	expect 0 gc
	expect 0 help
}

works_without
expect 254 fetch "$image"
says "fetch: image \"$image\": cannot find husk-images.so, a part of husk (install husk again): " "No such file or directory"
expect 1 doctor --format=json
jq -e '.checks[] | select(.name == "husk-images") | .ok == false and .remedy == "install husk again"' "$work/out" >"$work/log" ||
	die "doctor: $out"

echo 'not a module' >"$installed"
works_without
expect 254 fetch "$image"
says "fetch: image \"$image\": cannot load $installed: " " (install husk again)"

# Of a husk before this one: the version is told before anything of it is called.
version=$("$work/bin/husk" --version)
version=${version#husk }
older=$(tr 0-9 8 <<<"$version")
sed -b "s/$version\\x00/$older\\x00/g" "$module" >"$installed"
! cmp -s "$module" "$installed" || die "the version $version is not in $module"
works_without
expect 254 fetch "$image"
says "fetch: image \"$image\": " "$installed is of husk $older, this is $version (install husk again)"

cp "$module" "$installed"
expect 0 fetch "$image"
id=$out
[ -n "$id" ] || die "fetch printed no ID"

# What downloads is a module of that module.
expect 254 --insecure-options=image fetch http://127.0.0.1:1/image.aci
says "fetch: image \"http://127.0.0.1:1/image.aci\": " "cannot find husk-http.so, a part of husk (install husk again): No such file or directory"

# What the store has is found without it, whether by its ID, its name or where it came from.
rm "$installed"
works_without
expect 0 fetch "$id"
[ "$out" = "$id" ] || die "by ID: \"$out\" instead of \"$id\""
expect 0 fetch busybox
[ "$out" = "$id" ] || die "by name: \"$out\" instead of \"$id\""
expect 0 image cat-manifest "$id"
expect 254 image export "$id" "$work/export"
says "export: " "No such file or directory"
