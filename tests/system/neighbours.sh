#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pods beside each other on one host: who wants all there is gets his share, and who takes too much hurts nobody else.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq
# shellcheck source=tests/system/cgroup_lib.sh
. "$(dirname "$0")/cgroup_lib.sh"
image=$(busybox_image)
pods=8
busy='echo up; until [ -e /tmp/more ]; do :; done; exec tail /dev/zero' # that keeps all it reads, which has no end

used_ms() { # what each has used by now
	for uuid in "${uuids[@]}"; do
		echo $(($(used_us) / 1000))
	done
}
sum() { awk '{sum += $1} END {print sum}'; }
# Waits until all together have used MS more than when it was called, and prints what each has, in percent of the mean.
shares_after() { # MS
	local from to deadline=$((SECONDS + vm_limit))
	from=$(used_ms)
	until to=$(used_ms) && [ $(($(sum <<<"$to") - $(sum <<<"$from"))) -ge "$1" ]; do
		[ $SECONDS -lt $deadline ] || die "they stand still: ${to//$'\n'/ }"
		read -rt 0.2 <> <(:) || : # a look every now and then
	done
	paste <(echo "$from") <(echo "$to") |
		awk '{d[NR] = $2 - $1; sum += d[NR]} END {for (i = 1; i <= NR; i++) print int(d[i] * 100 * NR / sum)}'
}
each_between() { # LOW HIGH PERCENT...
	local low=$1 high=$2 percent
	shift 2
	for percent; do
		if [ "$percent" -lt "$low" ] || [ "$percent" -gt "$high" ]; then
			die "not between $low and $high percent of the mean: $*"
		fi
	done
}

say "$pods pods that want all there is have equal shares"
uuids=()
for ((i = 0; i < pods; i++)); do
	expect 0 husk run --detach "${run_options[@]}" --net=none "$image" --name=one --memory=48Mi -- sh -c "$busy"
	uuids+=("$out")
	uuid=$out
	wait_log one up
done
# shellcheck disable=SC2046 # a number a line
each_between 60 150 $(shares_after 16000)

say "one that takes more memory than it may have is killed, and is named; the others are what they were"
supervisors=$(for uuid in "${uuids[@]:1}"; do husk status "$uuid" | grep '^pid='; done)
uuid=${uuids[0]}
expect 0 husk app exec --app=one "$uuid" touch /tmp/more
wait_app_end "$uuid" one
expect 0 husk app status --app=one --format=json "$uuid"
equal "$(jq -r .oom_killed <<<"$out")" true "who was killed"
uuids=("${uuids[@]:1}")
equal "$(for uuid in "${uuids[@]}"; do husk status "$uuid" | grep '^pid='; done)" "$supervisors" "the others' supervisors"
# shellcheck disable=SC2046 # a number a line
each_between 60 150 $(shares_after 7000)
for uuid in "${uuids[@]}"; do
	expect 0 husk stop --force "$uuid"
done
