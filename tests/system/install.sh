#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a package ships, as somebody who is not root builds it in his home: the release preset, installed into a prefix and
# below DESTDIR, runs a pod from there; without a guest kernel it says so, and what husk doctor then names is true; what is
# uninstalled leaves nothing.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require cmake git jq setpriv
[ "$(id -u)" = 0 ] || skip "not root: cannot become another user"
packaged=$("$top/tools/guest-kernel-packaged" --print-dir) ||
	skip "no packaged guest kernel in the cache (cmake --build build --target guest-kernel-packaged)"

readonly uid=54321
home=$work/home
mkdir -p "$home" "$data/user"
cp -r "$(busybox_image)" "$home/busybox"
mkdir -p "$home/.cache/husk/guest-kernel"
cp -r "$packaged" "$home/.cache/husk/guest-kernel/"
say "the sources, in a home"
(cd "$top" && git -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
	xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh | tar -c --null -T -) |
	tar -x -C "$home" --one-top-level=husk
chown -R $uid:$uid "$home" "$data/user"
chmod 0755 "$work" "$data"

# user COMMAND...: as the other user, in his directory with the sources.
user() {
	(cd "$home/husk" && exec setpriv --reuid=$uid --regid=$uid --clear-groups -- \
		env -i "PATH=$PATH" "HOME=$home" LC_ALL=C "TMPDIR=/tmp" "$@")
}
# Quiet, but for what goes wrong.
quietly() {
	"$@" >"$work/log" 2>&1 </dev/null || die "$*: $(tail -n 30 "$work/log")"
}

say "the release preset builds, without the tests"
quietly user cmake --preset release
quietly user cmake --build build-release
! grep -q 'warning:' "$work/log" || die "warnings: $(grep -A 5 'warning:' "$work/log")"
[ ! -e "$home/husk/build-release/tests" ] || die "HUSK_TESTS=OFF built tests"

say "installed into a prefix, without a guest kernel: says so, and what helps"
prefix=$home/.local
find "$home" -path "$home/husk" -prune -o -print | sort >"$work/before"
quietly user cmake --install build-release --prefix "$prefix"
grep -q 'No guest kernel is installed' "$work/log" || die "the installation says nothing: $(cat "$work/log")"
installed=$prefix/bin/husk
one="$installed --dir=$data/user"
# shellcheck disable=SC2086 # a command and its option
expect 1 user $one doctor --format=json
remedy=$(jq -r '.checks[] | select(.name == "guest-kernel") | .remedy' "$work/out")
equal "$remedy" "run $prefix/lib/husk/kernel-config/get packaged" "remedy"
equal "$(jq -r '.checks[] | select(.name == "kernel-small") | .remedy' "$work/out")" \
	"run $prefix/lib/husk/kernel-config/get small" "remedy of the small kernel"
[ -x "$prefix/lib/husk/kernel-config/build" ] || die "the small kernel cannot be built"
# shellcheck disable=SC2086
expect 254 user $one run "$home/busybox" -- true
match "$err" "kernel-config/get packaged" "error of a pod without a kernel"
say "what the doctor says is true"
# shellcheck disable=SC2086 # its words
quietly user ${remedy#run }
# shellcheck disable=SC2086
expect 0 user $one doctor
# shellcheck disable=SC2086
expect 7 user timeout --kill-after=10 "$vm_limit" $one run "${run_options[@]}" "$home/busybox" -- sh -c 'echo runs; exit 7'
equal "$out" runs "output of a pod of another user"

say "uninstalled: nothing is left"
quietly user cmake --build build-release --target uninstall
equal "$(find "$home" -path "$home/husk" -prune -o -print | sort | diff "$work/before" -)" "" "what is left"
quietly user cmake --build build-release --target guest-kernel-packaged
if user cmake --build build-release --target uninstall >"$work/log" 2>&1; then
	die "a second uninstall succeeds"
fi
grep -q 'nothing was installed' "$work/log" || die "a second uninstall: $(cat "$work/log")"

say "with DESTDIR, twice; runs from there as root; what others have made stays"
stage=$work/stage
mkdir -p "$stage/usr/bin" "$stage/usr/share/bash-completion"
find "$stage" | sort >"$work/before"
for _ in 1 2; do
	quietly env DESTDIR="$stage" cmake --install "$home/husk/build-release" --prefix /usr
	! grep -q 'No guest kernel' "$work/log" || die "a kernel is installed: $(cat "$work/log")"
done
husk_bin=$stage/usr/bin/husk
expect 0 husk doctor
expect 0 husk run "$home/busybox" -- echo runs
equal "$out" runs "output of a pod below DESTDIR"
expect 0 husk version
quietly env DESTDIR="$stage" cmake --build "$home/husk/build-release" --target uninstall
equal "$(find "$stage" | sort | diff "$work/before" -)" "" "what is left below DESTDIR"
