#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What README.md and docs/*.md tell a reader to type does what they say it does.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require python3 umoci
export HUSK_SOURCE_DIR=$top

say "the runner itself: sees what differs, and what hangs"
mkdir "$work/bin" "$work/reader"
cd "$work/reader"
blocks() { # STATUS: of the file x.md on stdin
	cat >x.md
	expect "$1" env HUSK_DOC_LIMIT="${2:-300}" "$top/tests/support/doc_blocks.py" x.md
}
blocks 0 <<'EOT'
```console
$ x=1; cat; false
$ echo $? $x \
  two; echo to stderr >&2
1 1 two
to stderr
$ echo a long one
a … one
```
```sh
tools/check quick   # a comment
A=b ls
```
EOT
match "$out" "2 blocks, 0 wrong" "what the runner says"
printf '```console\n$ echo one\ntwo\n```\n' | blocks 1
printf '```console\n$ echo one\n```\n' | blocks 1
blocks 1 1 <<'EOT'
```console
$ tail -f /dev/null
```
EOT
match "$out" "did not end within 1 s" "what the runner says of a command that hangs"
printf '```\n$ echo one\none\n```\n' | blocks 1
printf '```sh\ntools/not-there\n```\n' | blocks 1
printf 'no block\n' | blocks 1

say "the images that the documents speak of"
cp -r "$(busybox_image)" busybox
cp -al "$(debian_image)" redis
cp --remove-destination "$(debian_image)/index.json" redis/
umoci config --image redis:debian --config.cmd redis-server
# What a reader has in PATH.
cat >"$work/bin/husk" <<EOT
#!/bin/bash
exec "$husk_bin" "--dir=$data" "\$@"
EOT
chmod +x "$work/bin/husk"

say "README.md, docs"
PATH=$work/bin:$PATH "$top/tests/support/doc_blocks.py" "$top"/README.md "$top"/CONTRIBUTING.md "$top"/docs/*.md >"$work/blocks" 2>&1 ||
	die "$(grep -A 20 -E '^FAIL|Error' "$work/blocks")"
say "$(tail -n 1 "$work/blocks")"

say "the unit of the manual"
unit=$work/pod.service
awk '/^# / { on = $2 == "SERVICES" } on && /^```/ { inside = !inside; next } on && inside' "$top/docs/man/husk-run.1.scd" |
	sed "s|/usr/bin/husk|$work/bin/husk|" >"$unit"
grep -qx 'KillMode=mixed' "$unit" || die "no unit in the manual"
if command -v systemd-analyze >/dev/null; then
	expect 0 systemd-analyze verify "$unit"
	equal "$(grep -F pod.service "$work/err" || :)" "" "what systemd-analyze says of the unit"
fi
