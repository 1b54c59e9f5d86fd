#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Real images are rendered by husk and unpacked by umoci(1); the kernel's view of both must be the same: names, types, modes,
# owners, times, links, devices, extended attributes, contents. What the guest makes of them is image-in-guest.sh's. Needs
# root: umoci restores owners and the rendered image is mounted.
# shellcheck source=tests/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/system/image_lib.sh
. "$top/tests/system/image_lib.sh"
export LC_ALL=C

[ "$(id -u)" -eq 0 ] || skip "needs root"
require umoci mmdebstrap setcap python3 unshare
grep -qw squashfs /proc/filesystems || modprobe squashfs 2>/dev/null ||
	skip "this kernel has no squashfs"

cd "$work"
mkdir data mnt
cached_layout changed-2 make_changed
unpack "$layout:image" unpacked
"$build/tests/render-image" data "$layout:image" image.squashfs
list unpacked/rootfs >want
# In a mount namespace of its own, so that nothing has to be unmounted.
unshare --mount sh -c "mount -t squashfs -o loop,ro image.squashfs mnt && '$list_tree' mnt" >got
compare want got "husk's rendering differs from umoci's"
say "$(wc -l <got) files are equal"
