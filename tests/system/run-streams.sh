#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bytes through stdin and stdout: complete, in order, and a reader that stops costs the host nothing.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
image=$(busybox_image)
mib=${HUSK_TEST_STREAM_MIB:-64}
bytes=$((mib * 1024 * 1024))

# A stream whose every block is different, so that loss, doubling and order show.
pattern() ( # BYTES
	set +o pipefail # head ends the endless stream
	openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff \
		-iv 00000000000000000000000000000000 -in /dev/zero 2>/dev/null | head -c "$1"
)

say "stdin to stdout and back: $mib MiB"
start=$(date +%s%N)
got=$(pattern $bytes | husk run "$image" -- cat | sha256sum)
echo "echo: $((bytes * 1000 / ($(date +%s%N) - start))) MB/s including boot" >&2
equal "$got" "$(pattern $bytes | sha256sum)" "checksum of what came back"

say "an empty stdin ends"
equal "$(husk run "$image" -- wc -c </dev/null)" 0 "bytes of an empty stdin"

say "a reader that goes away ends the writer"
(
	set +o pipefail
	husk run "$image" -- yes 2>/dev/null | head -c 4 >"$work/out"
)
equal "$(cat "$work/out")" "$(printf 'y\ny')" "first bytes of yes"

say "a file that takes no more: it is said that output is lost, and the app goes on to its end"
code=0
husk run "$image" -- sh -c 'head -c 1000000 /dev/zero; echo err >&2; exit 3' >/dev/full 2>"$work/err" || code=$?
equal "$code $(sort "$work/err" | paste -sd,)" \
	"3 err,stage1: stdout of app \"busybox\" cannot be written, and is lost: No space left on device" "what is said"

say "a reader that stops stalls the app, not the host"
mkfifo "$work/pipe"
husk run "$image" -- sh -c 'yes | head -c 20000000; echo done >&2' >"$work/pipe" 2>"$work/err" &
exec 5<"$work/pipe"
head -c 100000 <&5 >/dev/null
own_kib() { # what a neighbour's end does not change
	local pid sum=0 kib
	for pid in $(pod_processes); do
		case $(cat "/proc/$pid/comm") in qemu*) continue ;; esac
		kib=$(awk '/^Pss_Anon:/ {print $2}' "/proc/$pid/smaps_rollup")
		sum=$((sum + kib))
	done
	echo $sum
}
before=$(own_kib)
timeout 5 tail -f /dev/null || : # let the guest push all it can
after=$(own_kib)
say "memory of supervisor and husk-vsock: $before KiB, then $after KiB"
[ "$after" -lt $((before + 1024)) ] || die "host memory grows while the reader stands still"
[ ! -s "$work/err" ] || die "the app was not stalled"
rest=$(wc -c <&5)
exec 5<&-
wait
equal $((rest + 100000)) 20000000 "bytes after the pause"

say "a slow reader gets what an app wrote before it ended"
husk run "$image" -- head -c 400000 /dev/zero >"$work/pipe" 2>"$work/err" &
exec 5<"$work/pipe"
head -c 1 <&5 >/dev/null
timeout 5 tail -f /dev/null || : # the app has ended long before
rest=$(wc -c <&5)
exec 5<&-
wait
equal $((rest + 1)) 400000 "bytes of the app that has ended"
