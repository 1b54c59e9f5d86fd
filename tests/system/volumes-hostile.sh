#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A guest whose kernel asks virtiofsd for what no kernel would, and a QEMU that it has taken over.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require python3
[ "$(id -u)" -eq 0 ] || skip "needs root"
for virtiofsd in /usr/libexec/virtiofsd /usr/lib/virtiofsd /usr/lib/qemu/virtiofsd; do
	[ ! -x "$virtiofsd" ] || break
done
[ -x "$virtiofsd" ] || skip "no virtiofsd"

say "volumes, and what is beside them"
volumes=$work/volumes
mkdir -p "$volumes"/{rw/{dir,many},ro/dir}
echo secret >"$volumes/secret"
for dir in rw ro; do
	echo "in $dir" >"$volumes/$dir/file"
done
ln -s /etc/passwd "$volumes/rw/absolute"
ln -s ../secret "$volumes/rw/above"
ln -s / "$volumes/rw/everything"
cp "$(command -v busybox)" "$volumes/rw/suid"
chmod 4755 "$volumes/rw/suid"
(cd "$volumes/rw/many" && seq 0 29999 | xargs touch)
# Who may not have so many files open gets as far as he may.
around() { find "$volumes" -path "$volumes/rw" -prune -o -printf '%p %M %U %G %s %i %T@\n' | sort && cat "$volumes/secret" "$volumes/ro/file" && sha256sum /etc/passwd; }
around >"$work/before"

say "what a hostile client asks for"
expect 0 "$top/tests/support/fuse_client.py" "$build/lib/husk/stage1-kvm/bin/husk-virtiofs" "$virtiofsd" "$volumes"
equal "$out" "" "what worked"

say "what has become of it"
around >"$work/after"
diff "$work/before" "$work/after" >&2 || die "something beside the volume changed"
equal "$(find "$volumes" -perm /6000 ! -name suid)" "" "files with set-ID bits"
equal "$(find "$volumes/rw/suid" -perm /6000)" "" "one that was written to"
equal "$(find "$volumes" '(' -type b -o -type c ')' )" "" "devices"
equal "$(find "$volumes" -links +1 -type f)" "" "links"
equal "$(pgrep -f "husk-virtiofs.*$volumes" || :)" "" "processes"
