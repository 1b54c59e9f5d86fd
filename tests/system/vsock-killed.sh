#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# husk-vsock killed while the VM runs: one line, exit code 254, the pod is exited, no process is left.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
[[ " ${run_options[*]}" == *" --vsock="* ]] || run_options+=(--vsock=user) # where the kernel could do it, too
[ "$(pod_choice vsock)" = user ] || skip "the kernel carries this pod's vsock: there is no husk-vsock"
image=$(busybox_image)

"$husk_bin" "--dir=$data" run "${run_options[@]}" "$image" -- sh -c 'echo ready; while :; do sleep 1; done' \
	>"$work/out" 2>"$work/err" </dev/null &
pod=$!
wait_for_line "$work/out" ready
kill -9 "$(pgrep -P $pod husk-vsock)"
status=0
wait $pod || status=$?
err=$(cat "$work/err")
equal $status 254 "exit code ($err)"
one_line_error husk-vsock
wait_no_processes || die "processes are left: $(pod_processes)"
equal "$(husk list --no-legend | awk -F'\t+' 'NF {print $4}' | sort -u)" exited "state of all pods"
