#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs of this host at work in a directory of it: on the host, and in a pod that has it as a volume. They have to say the
# same, and leave the same. They come into the pod with a volume, too.
#   HUSK_TEST_FILES  how many files the large tree has (default 2000)
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require git flock fallocate
[ "$(id -u)" -eq 0 ] || skip "needs root"
[ -x /usr/bin/python3 ] || skip "needs Debian's python3"
[ -L /bin ] || skip "programs of this host are not all in /usr"
files=${HUSK_TEST_FILES:-2000}

say "an image without programs"
mkdir -p "$work/image"/{etc,tmp,usr,v}
for dir in bin sbin lib lib64; do ln -s "usr/$dir" "$work/image/$dir"; done
echo 'root:x:0:0:root:/root:/bin/sh' >"$work/image/etc/passwd"
mkdir "$work/host" "$work/pod"
for dir in host pod; do
	cp "$top"/tests/support/{use_files.sh,file_calls.py} "$work/$dir"
	git -c safe.directory='*' clone -q --bare --depth 1 "file://$top" "$work/$dir/repository.git"
done

say "on the host"
"$work/host/use_files.sh" "$work/host" "$files"

say "in a pod"
expect 0 husk run --net=none --insecure-options=image --volume=usr,kind=host,source=/usr,readOnly=true,recursive=false \
	--mount=volume=usr,target=/usr --volume="v,kind=host,source=$work/pod" --mount=volume=v,target=/v "rootfs:$work/image" \
	--exec=/v/use_files.sh -- /v "$files"
equal "$err" "" "what it has to complain about"
if is_vm; then
	say "what virtiofsd does not have, and says so: files without a name, attributes"
	for line in 'a file without a name: ENOTSUP' 'set: ENOTSUP' 'list: ENOTSUP'; do
		grep -qx "$line" "$work/pod/report/calls" || die "not as expected: $(grep "^${line%:*}" "$work/pod/report/calls")"
	done
	sed -i '/^a file without a name: /d; /^what that has: /d; /^- attributes/,/^- waiting/d; / *\.\/dir\/later/d' "$work"/{host,pod}/report/calls
fi
for report in "$work/host/report"/*; do
	name=$(basename "$report")
	if diff "$report" "$work/pod/report/$name" >"$work/differ"; then
		say "$name: the same, $(wc -l <"$report") lines"
	else
		say "$name: differs"
		cat "$work/differ" >&2
		differing=1
	fi
done
equal "${differing:-0}" 0 "programs for which a volume is not what a directory is"
