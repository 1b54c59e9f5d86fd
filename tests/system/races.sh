#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Many husk processes at one data directory: whoever loses a race says so in the documented words, or
# finds the work done. No VM runs but where a pod must run; the races are those of directories and locks.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

rounds=${HUSK_TEST_ROUNDS:-40}
image=$(busybox_image)
require python3
husk prepare "$image" -- true >/dev/null # renders the image

# race N COMMAND...: N processes at once; their outputs and exit statuses in $work/race.N.*.
race() {
	local n=$1 i
	shift
	local pids=()
	for ((i = 1; i <= n; i++)); do
		husk_at_once "$@" >"$work/race.$i.out" 2>"$work/race.$i.err" &
		pids+=($!)
	done
	for ((i = 1; i <= n; i++)); do
		if wait "${pids[i - 1]}"; then echo 0; else echo $?; fi >"$work/race.$i.status"
	done
}

# Without the bookkeeping of husk(), so that the processes really start together.
husk_at_once() {
	"$husk_bin" "--dir=$data" "$@" </dev/null
}

# allowed N PATTERN: every line of the N processes on stderr matches.
allowed() {
	local i
	for ((i = 1; i <= $1; i++)); do
		if grep -vE "$2" "$work/race.$i.err" >&2; then die "round $round: an error that is not documented (above)"; fi
	done
}

winners() {
	cat "$work"/race.[0-9]*.status | grep -c '^0$' || :
}

forget() {
	rm -f "$work"/race.*
}

# A listing in a loop for as long as the test runs: it must never fail or complain.
(
	while [ -d "$work" ] && [ ! -e "$work/stop-listing" ]; do
		husk_at_once list --full >"$work/listing.out" 2>"$work/listing.err" || echo "list: exit status $?" >>"$work/listing.failed"
		[ ! -s "$work/listing.err" ] || cat "$work/listing.err" >>"$work/listing.failed"
	done
) &
listing=$!

for n in 2 8; do
	say "rm x rm, $n processes, $rounds rounds"
	for ((round = 1; round <= rounds; round++)); do
		forget
		uuid=$(husk prepare "$image" -- true)
		race $n rm "$uuid"
		allowed $n '^rm: (pod "[0-9a-f-]*" is currently being (deleted|started)|no matches found for "[0-9a-f-]*"|failed to remove one or more pods)$'
		[ "$(winners)" -eq 1 ] || die "round $round: $(winners) processes removed one pod"
	done

	say "gc x gc, $n processes, $rounds rounds"
	for ((round = 1; round <= rounds; round++)); do
		forget
		uuid=$(husk prepare "$image" -- true)
		race $n gc --grace-period=0 --expire-prepared=0
		allowed $n '^gc: moving (expired prepared|failed prepare)? ?(pod )?"[0-9a-f-]*" to garbage$'
		[ "$(winners)" -eq $n ] || die "round $round: a gc failed"
		[ "$(cat "$work"/race.[0-9]*.out | grep -c "Garbage collecting pod \"$uuid\"")" -eq 1 ] ||
			die "round $round: not exactly one gc collected the pod"
	done

	say "rm x gc, $n processes, $rounds rounds"
	for ((round = 1; round <= rounds; round++)); do
		forget
		uuid=$(husk prepare "$image" -- true)
		husk_at_once gc --grace-period=0 --expire-prepared=0 >"$work/gc.out" 2>"$work/gc.err" &
		gc=$!
		race $((n - 1)) rm "$uuid"
		wait $gc || die "round $round: gc failed"
		allowed $((n - 1)) '^rm: (pod "[0-9a-f-]*" is currently being (deleted|started)|no matches found for "[0-9a-f-]*"|failed to remove one or more pods)$'
	done
	equal "$(find "$data/pods" -mindepth 2)" "" "what is left"
done

# Of several that run the same pod one wins. stage1 is a stub of a few lines here: what is raced for is
# the pod, and a VM for each of hundreds of rounds would only make the races rarer.
stub=$work/stage1
mkdir -p "$stub/bin"
sed 's/@PROJECT_VERSION@/test/' "$top/stage1-kvm/manifest.in" >"$stub/manifest"
for program in $(grep -oE '"bin/[a-z-]+"' "$stub/manifest" | tr -d '"'); do
	printf '#!/bin/sh\nexit 0\n' >"$stub/$program"
	chmod 0755 "$stub/$program"
done
for n in 2 8; do
	say "run-prepared x run-prepared, $n processes, $rounds rounds"
	for ((round = 1; round <= rounds; round++)); do
		forget
		uuid=$(husk --stage1="$stub" prepare "$image" -- true)
		race $n run-prepared "$uuid"
		allowed $n "^run-prepared: pod \"$uuid\" is not prepared(: it has moved on)?\$"
		[ "$(winners)" -eq 1 ] || die "round $round: $(winners) processes ran one pod"
	done

	say "gc x status --wait, $n processes, $rounds rounds"
	for ((round = 1; round <= rounds; round++)); do
		forget
		husk run-prepared "$(husk --stage1="$stub" prepare "$image" -- true)"
		uuid=$(husk list --full --no-legend | grep -oE '^[0-9a-f-]{36}' | tail -n 1)
		husk_at_once gc --grace-period=0 >/dev/null 2>"$work/gc.err" &
		gc=$!
		race $((n - 1)) status --wait=10s "$uuid"
		wait $gc || die "round $round: gc failed"
		allowed $((n - 1)) '^status: (problem retrieving pod: no matches found|(error waiting for pod to finish: )?pod "[0-9a-f-]*" (was removed meanwhile|is being deleted))'
	done
done

# The real stop entrypoint, and a supervisor that does nothing but wait for it.
cp "$build/lib/husk/stage1-kvm/bin/stop" "$stub/bin/stop"
cat >"$stub/bin/run" <<'STUB'
#!/usr/bin/python3
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
with open("pid.new", "w") as f:
    f.write(f"{os.getpid()}\n")
os.rename("pid.new", "pid")
signal.sigwait([signal.SIGTERM])
STUB
for n in 2 8; do
	say "stop x stop, $n processes, $rounds rounds"
	for ((round = 1; round <= rounds; round++)); do
		forget
		uuid=$(husk --stage1="$stub" prepare "$image" -- true)
		husk_at_once run-prepared "$uuid" &
		supervisor=$!
		until [ -d "$data/pods/run/$uuid" ]; do
			kill -0 $supervisor || die "round $round: the pod ended"
		done
		race $n stop "$uuid"
		[ "$(winners)" -eq $n ] || die "round $round: a stop failed: $(cat "$work"/race.[0-9]*.err)"
		[ "$(sort -u "$work"/race.[0-9]*.out | grep -cvxE "\"$uuid\"|pod \"$uuid\" is already stopped")" -eq 0 ] ||
			die "round $round: $(cat "$work"/race.[0-9]*.out)"
		wait $supervisor || die "round $round: the pod ended with $?"
	done
done

touch "$work/stop-listing"
wait $listing
[ ! -e "$work/listing.failed" ] || die "a listing failed or complained: $(sort "$work/listing.failed" | uniq -c | head -n 5)"
