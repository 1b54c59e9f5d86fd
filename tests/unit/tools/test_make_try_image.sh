#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/make-try-image replaces a layout, and touches nothing else, whatever it is called with.
set -euo pipefail

tool=$(realpath "$(dirname "$0")/../../../tools/make-try-image")
command -v busybox >/dev/null || { echo "SKIPPED: busybox is not installed (tools/install-deps check)" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir tmp mine
export TMPDIR=$work/tmp
touch mine/file ./--help ./-x

die() {
	echo "FAILED: $*" >&2
	exit 1
}

files() { find . -printf '%p %i %s\n' | sort; }

# unchanged STATUS TEXT ARG...: says TEXT, ends with STATUS, and every file is as before.
unchanged() {
	local want=$1 text=$2 before status=0 said
	shift 2
	before=$(files)
	said=$("$tool" "$@" 2>&1) || status=$?
	[ "$status" = "$want" ] || die "make-try-image $*: status $status instead of $want ($said)"
	grep -qF -- "$text" <<<"$said" || die "make-try-image $*: \"$text\" is not in \"$said\""
	[ "$(files)" = "$before" ] || die "make-try-image $*: files have changed"
}

usage='usage: make-try-image DIR [BUSYBOX]'
unchanged 0 "$usage" --help
unchanged 0 "$usage" -h
unchanged 1 'unknown option "-x"' -x
unchanged 1 'unknown option "--halp"' --halp image
unchanged 1 "$usage"
unchanged 1 "$usage" ''
unchanged 1 "$usage" image busybox more
unchanged 1 '"mine" is there and is no OCI layout' mine
unchanged 1 '"mine/file" is there and is no OCI layout' mine/file

mkdir empty
for out in image image empty below/image; do
	"$tool" "$out" || die "make-try-image $out"
	[ -e "$out/index.json" ] || die "$out is no layout"
done
"$tool" -- -x.image
[ -e ./-x.image/index.json ] || die "a name that looks like an option"
[ -z "$(ls -A tmp)" ] || die "left behind: $(ls -A tmp)"
