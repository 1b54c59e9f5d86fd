#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What containers of containerd use and may use, pausing them, signals for all of their processes, memory that runs out, logs.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/containerd_lib.sh
. "$(dirname "$0")/containerd_lib.sh"
require python3
export SHIM_CALL_LIMIT=$vm_limit

ask() { # METHOD FIELD=VALUE... [-- METHOD ...]: of the shim itself
	"$top/tests/support/shim_call.py" "$(cat "$work/state/io.containerd.runtime.v2.task/default/box/address")" "$@"
}
metric() { # JQ-FILTER
	c task metrics --format json box | jq -c "$1"
}
[ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] && v2=true || v2=false
usage() { if $v2; then metric .memory.usage; else metric .memory.usage.usage; fi; }
limit() { if $v2; then metric .memory.usage_limit; else metric .memory.usage.limit; fi; }
cpu() { if $v2; then metric .cpu.usage_usec; else metric .cpu.usage.total; fi; }
in_box() { c task exec --exec-id "e$((n += 1))" box "$@" </dev/null; }
n=0

import_busybox
run -d --memory-limit $((64 << 20)) $i box sh -c 'trap "echo first >>/tmp/got" USR1
	sh -c "trap \"echo second >>/tmp/got\" USR1; touch /tmp/up; while :; do sleep 0.1; done" & while :; do sleep 0.1; done' </dev/null
until in_box test -e /tmp/up; do :; done

say "what it uses, asked by many at once"
[ "$(usage)" -gt 100000 ] || die "memory: $(usage)"
equal "$(limit)" $((64 << 20)) "limit of memory"
[ "$(metric .pids.current)" -ge 3 ] || die "processes: $(metric .pids.current)"
before=$(cpu)
in_box sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done'
[ "$(cpu)" -gt "$before" ] || die "the processors are said to stand still"
for _ in {1..20}; do printf '%s\n' -- Stats id=box; done | tail -n +2 >"$work/words"
mapfile -t words <"$work/words"
equal "$(ask "${words[@]}" | grep -c '^Stats {"stats": {"type_url": "io.containerd.cgroups.v')" 20 "answers"
for _ in {1..65}; do printf '%s\n' -- Stats id=box; done | tail -n +2 >"$work/words"
mapfile -t words <"$work/words"
ask "${words[@]}" >"$work/out" || :
equal "$(grep -c '^Stats {' "$work/out") $(grep -c '^Stats 8 too many' "$work/out")" "64 1" "answers and refusals beyond what may wait"

say "other limits, and what cannot be limited"
echo '{"memory": {"limit": 33554432}, "cpu": {"shares": 512, "quota": 50000, "period": 100000}, "pids": {"limit": 50}}' >"$work/limits"
match "$(ask Update id=box resources=@"$work/limits")" '^Update \{\}' "update"
equal "$(limit) $(metric .pids.limit)" "$((32 << 20)) 50" "limits afterwards"
echo '{"memory": {"limit": -1}}' >"$work/limits"
match "$(ask Update id=box resources=@"$work/limits")" '^Update \{\}' "update"
[ "$(limit | tr -d '"')" != $((32 << 20)) ] || die "the limit is still there"
equal "$(metric .pids.limit)" 50 "what was not named"
echo '{"cpu": {"cpus": "0"}}' >"$work/limits"
match "$(ask Update id=box resources=@"$work/limits" || :)" '^Update 12 .*"linux.resources.cpu.cpus" is not supported' "a set of processors"
echo '[]' >"$work/limits"
match "$(ask Update id=box resources=@"$work/limits" || :)" '^Update 3 ' "no limits at all"
match "$(ask Update id=box)" '^Update \{\}' "nothing to do"

say "a signal for all of its processes"
c task kill -a -s USR1 box
until [ "$(in_box sort /tmp/got | paste -sd' ')" = "first second" ]; do :; done

say "it stands still, and goes on"
if [ "$stage1" = kvm ] || $v2; then
	c task pause box
	equal "$(state box)" PAUSED "state"
	before=$(cpu)
	match "$(in_box true 2>&1 || :)" 'the container is paused' "a further process"
	match "$(ask Pause id=box || :)" '^Pause 9 ' "once more"
	equal "$(cpu)" "$before" "processor time"
	c task resume box
	equal "$(state box)" RUNNING "state"
	in_box true
	match "$(ask Resume id=box || :)" '^Resume 9 ' "once more"
	c task pause box
else
	match "$(c task pause box 2>&1 || :)" 'cannot be paused without control groups of version 2' "refusal"
	equal "$(state box)" RUNNING "state"
fi
c task kill -s KILL box
wait_state box STOPPED
match "$(ask Stats id=box || :)" '^Stats 5 ' "what one that has ended uses"
c task rm box 2>/dev/null || :
c container rm box
nothing_left

say "memory runs out: that is told before the end"
watch_events
code=0
run --rm --memory-limit $((20 << 20)) $i box sh -c 'x=a; while :; do x=$x$x; done' >/dev/null 2>&1 </dev/null || code=$?
equal "$code" 137 "exit code"
wait_for_line "$work/events" '/tasks/delete .*"container_id":"box"' $events
kill $events
match "$(grep -o '/tasks/[a-z]*' "$work/events" | paste -sd' ')" '/tasks/start /tasks/oom /tasks/exit /tasks/delete' "events"
nothing_left

say "output to a file, and to a program"
run -d --log-uri "file://$work/logs/a.log" $i box sh -c 'echo out; echo err >&2' </dev/null
wait_state box STOPPED
equal "$(sort "$work/logs/a.log" | paste -sd' ')" "err out" "log"
c task rm box
c container rm box
cat >"$work/logger" <<-END
	#!/bin/sh
	exec 5>&-
	{ echo "\$*" \$CONTAINER_ID \$CONTAINER_NAMESPACE; cat <&3; cat <&4; } >"$work/program.log.part"
	mv "$work/program.log.part" "$work/program.log"
END
chmod +x "$work/logger"
run -d --log-uri "binary://$work/logger?key=value" $i box sh -c 'echo out; echo err >&2' </dev/null
wait_state box STOPPED
until [ -e "$work/program.log" ]; do read -rt 0.1 <> <(:) || :; done
equal "$(paste -sd' ' "$work/program.log")" "key value box default out err" "what the program was told and has read"
c task rm box
c container rm box
run -d --log-uri file:///dev/full $i box sh -c 'head -c 1000000 /dev/zero; sleep 0.2; exit 3' </dev/null
wait_state box STOPPED
wait_for_line "$work/containerd.log" 'container "box": some of its output was lost' $containerd
equal "$(c task ls | awk '$1 == "box" { print $3 }')" STOPPED "a container whose log takes no more"
match "$(c task rm box 2>&1)" 'exit code 3' "how it ended"
c container rm box
code=0
run --log-uri "binary:///no/such/logger" $i box true >"$work/out" 2>&1 </dev/null || code=$?
match "$code $(cat "$work/out")" '^1 .*logger "/no/such/logger": No such file' "one that is not there"
c container rm box
nothing_left
