#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# husk run --interactive: the app has a terminal of the right size, typed bytes reach it raw.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require script
image=$(busybox_image)

say "a terminal, its size, and a typed line"
printf 'typed\n' | timeout "$vm_limit" script -qec "stty rows 33 cols 101; $husk_bin --dir=$data run ${run_options[*]} --interactive $image -- sh -c 'tty; stty size; echo go; read -r line; echo got \$line; exit 4'" \
	/dev/null >"$work/out" 2>&1 && status=0 || status=$?
equal "$status" 4 "exit code ($(cat "$work/out"))"
match "$(cat "$work/out")" "/dev/pts/[0-9]+" "tty"
match "$(cat "$work/out")" "33 101" "size"
match "$(cat "$work/out")" "got typed" "typed line"

say "only one app can have it"
expect 254 husk run --interactive "$image" --name=a --- "$image" --name=b
one_line_error "interactive option only supports one image"
