#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What an app sees as its root is what umoci(1) unpacks of the same image: 100,000 files, and sparse files in all forms of tar.
# Needs root: umoci restores owners.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/image_lib.sh
. "$top/tests/system/image_lib.sh"
export LC_ALL=C

[ "$(id -u)" -eq 0 ] || skip "needs root"
require umoci python3
vm_limit=$((3 * vm_limit)) # a machine that is busy has them all
cd "$work"
cached_layout large-1 make_large

# umoci does not know GNU tar's own form; that is compared with the same files as plain zeros.
mkdir tree
make_sparse tree/gnu 50000000
make_sparse tree/plain 5000000
tar --format=gnu --sparse -C tree -cf sparse.tar gnu
tar --format=gnu -C tree -rf sparse.tar plain
tar --format=gnu -C tree -cf plain.tar gnu plain
rm -r tree
for form in sparse plain; do
	cp -r "$layout" $form
	umoci raw add-layer --image $form:image $form.tar
done

say "100,000 files, and large ones with holes"
guest_equals_umoci sparse plain
size=$(stat -c %s "$(find "$data/trees" -name '*.v*[0-9]')")
[ "$size" -lt 100000000 ] || die "holes were filled: the rendered image has $size bytes"
