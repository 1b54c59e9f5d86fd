#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether a kind of machine works at all, with three pods: what an app writes and how it ends, a pod in the background that
# is entered and stopped, two apps that share what a pod has. Where every pod costs much; all else is said by other tests.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
image=$(busybox_image)

say "an app, to its end"
expect 7 husk run "$image" -- sh -c 'echo out; echo err >&2; exit 7'
equal "$out" out "stdout"
equal "$err" err "stderr"

say "in the background: entered, listed, stopped"
expect 0 husk run --detach "$image" -- sleep 1000
uuid=$out
expect 3 husk enter "$uuid" sh -c 'echo inside; exit 3'
equal "$out" inside "what a process in the pod writes"
expect 0 husk list --no-legend --full
match "$out" "^$uuid.*running" "list"
expect 0 husk stop "$uuid"
expect 0 husk status --wait "$uuid"
match "$out" 'state=exited' "status"

say "two apps share the network and the end"
expect 0 husk run "$image" --name=server -- sh -c 'echo hello | nc -l -p 4000' --- \
	"$image" --name=client -- sh -c 'until [ "$(nc 127.0.0.1 4000)" = hello ]; do sleep 0.1; done; echo heard'
match "$out" 'heard' "what came through"

say "all is collected"
expect 0 husk gc --grace-period=0
expect 0 husk list --no-legend
equal "$out" "" "what is left"
