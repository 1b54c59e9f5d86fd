#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One app: output, exit codes, environment, user, working directory, name of the pod's states.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
image=$(busybox_image)

say "output and exit code"
expect_forms 7 run "$image" -- sh -c 'echo to stdout; echo to stderr >&2; exit 7'
equal "$out" "to stdout" stdout
equal "$err" "to stderr" stderr

say "a program that is not there"
expect_forms 203 run "$image" -- /foo-not-there
one_line_error '^stage1: app "busybox": Error: Unable to open "/foo-not-there": No such file or directory$'

say "an image without PATH: its programs are found where they usually are"
mkdir -p "$work/root/usr/sbin"
cp "$(command -v busybox)" "$work/root/usr/sbin/hostname"
expect 0 husk run --hostname=found "rootfs:$work/root" --name=busybox -- hostname
equal "$out" found "output of a program in /usr/sbin"

say "environment, working directory, user, host name"
expect 0 husk run --hostname=shell "$image" --environment=COLOUR=blue --user=nobody --working-dir=/tmp -- \
	sh -c 'echo "$COLOUR $(id -un) $(pwd) $(hostname) $AC_APP_NAME"'
equal "$out" "blue nobody /tmp shell busybox" "app environment"

say "user and group are each overridden alone; what the image does not have"
require umoci
mkdir -p "$work/image"
cp -r "$image" "$work/image/oci"
umoci config --image "$work/image/oci:busybox" --config.user=400:500 >/dev/null
expect 0 husk run "$work/image/oci" --name=busybox --user=200 -- sh -c 'echo $(id -u) $(id -g)'
equal "$out" "200 500" "an image's group with another user"
expect 0 husk run "$work/image/oci" --name=busybox --group=7 -- sh -c 'echo $(id -u) $(id -g)'
equal "$out" "400 7" "an image's user with another group"
expect 254 husk run "$image" --user=user2 -- true
one_line_error '^stage1: .*"user2" user not found'
expect 254 husk run "$image" --group=group2 -- true
one_line_error '^stage1: .*"group2" group not found'

say "the root is writable, and only for this pod; success is 0"
expect 0 husk run "$image" -- sh -c 'echo x >/etc/new && cat /etc/new && rm /bin/ls && ! test -e /bin/ls'
expect 1 husk run "$image" -- test -e /etc/new

say "the app died of a signal: its number is the status"
expect 9 husk run "$image" -- sh -c 'kill -9 $$'

say "list and status know the pods"
expect 0 husk list --no-legend
forms=3
[ "${HUSK_TEST_FORMS:-}" != file ] || forms=1
equal "$(grep -c exited "$work/out")" $((9 + 2 * forms)) "exited pods"
uuid=$(husk list --no-legend --full | awk 'NR==1 {print $1}')
expect 0 husk status "$uuid"
match "$out" "state=exited" "status"
match "$out" "app-busybox=[0-9]+" "app status"
