#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What only a host with vhost-vsock can show: CIDs of pods that start at the same moment, and what the agent says to
# a process that dials it without the pod's secret. Runs in the KVM lab.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"

rounds=${HUSK_TEST_ROUNDS:-2}
image=$(busybox_image)

# start N: a pod in the background, until it is ready; its UUID and CID in the files uuid.N and cid.N.
start() {
	"$husk_bin" "--dir=$data" run "${run_options[@]}" --vsock=kernel "--uuid-file-save=$work/uuid.$1" "$image" -- sleep 1000 </dev/null >"$work/run.$1" 2>&1 &
	pids[$1]=$!
}

wait_ready() {
	until [ -s "$work/uuid.$1" ]; do
		kill -0 "${pids[$1]}" 2>/dev/null || die "pod $1 ended: $(cat "$work/run.$1")"
		read -rt 0.05 <> <(:) || :
	done
	husk status "--wait-ready=${vm_limit}s" "--uuid-file=$work/uuid.$1" >/dev/null || die "pod $1: $(cat "$work/run.$1")"
	cat "$data/pods/run/$(cat "$work/uuid.$1")/vsock.cid" >"$work/cid.$1"
}

# knock CID TEXT...: sends one frame after the other to the agent; prints what comes back until it closes, without NULs.
knock() {
	python3 - "$@" <<'PYTHON'
import socket, struct, sys
s = socket.socket(socket.AF_VSOCK)
s.settimeout(30)
s.connect((int(sys.argv[1]), 1024))
got = b""
try:
    for text in sys.argv[2:]:
        s.sendall(struct.pack(">I", len(text)) + text.encode())
    while chunk := s.recv(65536):
        got += chunk
except ConnectionError:
    pass
except TimeoutError:
    got += b" silent"
print(got.replace(b"\0", b"").decode(errors="replace"))
PYTHON
}

pids=()
for ((round = 1; round <= rounds; round++)); do
	rm -f "$work"/uuid.*
	start 1
	start 2
	wait_ready 1
	wait_ready 2
	[ "$(cat "$work/cid.1")" != "$(cat "$work/cid.2")" ] || die "round $round: two pods with CID $(cat "$work/cid.1")"
	if [ $round -eq 1 ]; then
		cid=$(cat "$work/cid.1")
		say "the helper of tools/bench reaches an agent"
		match "$("$build/tests/bench-agent-info" "$data/pods/run/$(cat "$work/uuid.1")")" "rss_kib [1-9]" "what it prints"
		say "a peer without the secret gets nothing"
		hello='{"jsonrpc":"2.0","id":1,"method":"agent.hello","params":{"version_min":1,"version_max":1,"secret":"%s"}}'
		for secret in '' "$(printf '%064d' 0)" "$(cat "$data/pods/run/$(cat "$work/uuid.2")/secret")"; do
			# shellcheck disable=SC2059
			answer=$(knock "$cid" "$(printf "$hello" "$secret")" '{"jsonrpc":"2.0","id":2,"method":"agent.info"}')
			[[ $answer == *'"error"'* && $answer != *'"result"'* ]] || die "hello with secret \"$secret\": \"$answer\""
		done
		answer=$(knock "$cid" '{"jsonrpc":"2.0","id":2,"method":"agent.info"}')
		[[ $answer != *'"result"'* ]] || die "a call without a hello: \"$answer\""
		answer=$(knock "$cid" '{"jsonrpc":"2.0","id":2,"method":"stream.attach","params":{"app":"busybox","stream":"stdout","secret":""}}')
		[[ $answer != *'"result"'* ]] || die "an attachment without the secret: \"$answer\""
		# shellcheck disable=SC2059
		answer=$(knock "$cid" "$(printf "$hello" "$(cat "$data/pods/run/$(cat "$work/uuid.1")/secret")")" '{"jsonrpc":"2.0","id":2,"method":"no.such"}' 'no JSON')
		[[ $answer == *'"result"'* ]] || die "with the secret it should have answered: \"$answer\""
	fi
	husk stop "$(cat "$work/uuid.1")" "$(cat "$work/uuid.2")" >/dev/null
	for n in 1 2; do
		wait "${pids[n]}" || die "round $round, pod $n: exit status $?: $(cat "$work/run.$n")"
	done
done
[ -z "$(find "$data/pods" -name vsock.cid)" ] || die "a CID file is left"
