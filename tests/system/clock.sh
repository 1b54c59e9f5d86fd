#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The time of day in a pod: after QEMU stood for a while, and, in a machine of the test's own (HUSK_TEST_OWN_MACHINE), after the
# host's clock was set. See also libvirt.sh.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
image=$(busybox_image)
pause=${HUSK_TEST_PAUSE:-20} # seconds

expect 0 husk run --detach --net=none --name=clock "$image" -- sleep 100000
qemu=$(vmm_process clock)
clock_follows clock

say "QEMU stands for $pause s"
kill -STOP "$qemu"
until_time=$((SECONDS + pause))
until [ $SECONDS -ge $until_time ]; do read -rt 0.5 <> <(:) || :; done
kill -CONT "$qemu"
clock_follows clock

if [ -n "${HUSK_TEST_OWN_MACHINE:-}" ]; then
	for jump in '+1 hour' '-2 hours' '+1 hour'; do
		say "the host's clock is set: $jump"
		date -s "$jump" >/dev/null
		clock_follows clock
	done
fi
expect 0 husk stop clock
