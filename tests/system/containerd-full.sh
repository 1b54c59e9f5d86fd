#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The disk of husk's data is full: before a container, and while one runs. It can be used, ends as it does, and can be removed.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/containerd_lib.sh
. "$(dirname "$0")/containerd_lib.sh"
cd "$work"
import_busybox
mkdir -p "$data"
mount -t tmpfs -o size=40m,mode=755 full "$data" # finish unmounts it
fill() {
	! cat /dev/zero >"$data/filler" 2>/dev/null || die "a file without an end"
	[ "$(df --output=avail "$data" | tail -1)" -eq 0 ] || die "the disk is not full"
}
empty() { rm "$data/filler"; }
# The exit code that containerd has of a container that ended; and it goes.
ends_with() { # ID CODE
	wait_state "$1" STOPPED
	c task rm "$1" 2>"$work/err" || die "task rm: $(cat "$work/err")"
	match "$(cat "$work/err")" "exit code $2\"\$" "exit code"
	c container rm "$1"
	nothing_left
}

say "full before there is anything, and with an image that was packed already: it says so, and nothing is left"
for packed in no yes; do
	fill
	! run --rm "$i" box true 2>"$work/err" || die "it ran, on a full disk"
	match "$(cat "$work/err")" 'No space left on device' "what is said ($packed)"
	nothing_left
	empty
	run --rm "$i" box true
	nothing_left
done

say "full while one runs: figures, further processes, and its own exit code"
run -d "$i" box sh -c 'until [ -e /tmp/go ]; do sleep 0.1; done; exit 4'
fill
for n in 1 2; do
	code=0
	out=$(c task exec --exec-id "x$n" box sh -c 'echo out; exit 3') || code=$?
	equal "$out $code" "out 3" "a further process"
done
match "$(c task metrics box)" memory "metrics"
c task exec --exec-id go box sh -c ': >/tmp/go' || [ $? = 137 ] # it may be killed with the app that it ends
ends_with box 4
empty

say "ended by a signal, where there is no room to say why"
ended_by() { # SIGNAL CODE
	run -d "$i" box sleep 1000
	fill
	c task kill -s "$1" box
	ends_with box "$2"
	empty
}
ended_by KILL 137
ended_by TERM 143

say "its shim is killed: containerd has it removed"
run -d "$i" box sleep 1000
fill
pkill -9 -f "[c]ontainerd-shim-husk-v2 .*$work/"
shims_gone
deadline=$((SECONDS + gone_limit))
until [ -z "$(c task ls -q)$("$husk_bin" "--dir=$data" list --no-legend)" ]; do
	[ $SECONDS -lt $deadline ] || die "a container without its shim is left"
	read -rt 0.1 <> <(:) || :
done
c container rm box
"$husk_bin" "--dir=$data" gc --grace-period=0s
nothing_left
equal "$(find "$data/pods" -mindepth 2)" "" "what is left of pods"
end_containerd
