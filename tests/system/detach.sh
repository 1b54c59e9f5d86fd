#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# husk run --detach: the UUID when the pod is up, a supervisor that lives on alone, and nothing left if that fails.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

image=$(busybox_image)

state_of() { # UUID
	husk status "$1" | sed -n 's/^state=//p'
}

say "up when husk returns; the supervisor has a session of its own and nothing of the caller's"
expect 0 husk run "${run_options[@]}" --detach --uuid-file-save="$work/uuid" "$image" -- sleep 1000
uuid=$out
match "$uuid" '^[0-9a-f]{8}-[0-9a-f-]{27}$' "output"
equal "$err" "" "messages"
equal "$(cat "$work/uuid")" "$uuid" "saved UUID"
equal "$(state_of "$uuid")" running "state"
supervisor=$(cat "$data/pods/run/$uuid/pid")
equal "$(ps -o sid= -p "$supervisor" | tr -d ' ')" "$supervisor" "session of the supervisor"
equal "$(readlink "/proc/$supervisor/fd/0" "/proc/$supervisor/fd/1" "/proc/$supervisor/fd/2" | tr '\n' ' ')" \
	"/dev/null /dev/null $data/pods/run/$uuid/supervisor.log " "its standard streams"
expect 0 husk enter "$uuid" echo there
equal "$out" there "output of a command in it"
expect 0 husk stop "$uuid"
equal "$(state_of "$uuid")" exited "state after stop"

say "what an app writes is in its log, as it comes and afterwards"
expect 0 husk run "${run_options[@]}" --detach "$image" -- \
	sh -c 'echo one; echo two >&2; printf half; read -r line </dev/null; sleep 1; echo " done"; exit 3'
uuid=$out
husk logs --follow "$uuid" >"$work/followed" 2>"$work/followed.err" || die "logs --follow: $(cat "$work/followed.err")"
equal "$(cat "$work/followed")" $'one\nhalf done' "standard output, followed"
equal "$(cat "$work/followed.err")" two "standard error, followed"
match "$(husk status "$uuid")" 'state=exited' "state when nothing more comes"
expect 0 husk logs --tail=1 "$uuid"
equal "$out$err" "half done" "last line"
expect 0 husk logs --timestamps --tail=1 "$uuid"
match "$out" '^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{9}Z stdout F half done$' "record"
expect 0 husk logs --since=1h "$uuid"
equal "$out/$err" $'one\nhalf done/two' "everything of the last hour"
expect 254 husk logs --app=nothing "$uuid"
one_line_error 'nonexistent app "nothing"'
expect 254 husk logs --tail=x "$uuid"
# A line of more than 16 KiB is several records, and one line all the same.
expect 0 husk run "${run_options[@]}" --detach "$image" -- sh -c 'echo one; head -c 40000 /dev/zero | tr "\0" x; echo; echo three'
uuid=$out
expect 0 husk status --wait="${vm_limit}s" "$uuid"
expect 0 husk logs --tail=1 "$uuid"
equal "$out" three "the line behind a long one"
expect 0 husk logs --tail=2 "$uuid"
equal "${#out}" 40006 "bytes of a long line, and of the one behind it"
expect 254 husk logs "$(husk prepare "$image" -- true)"
one_line_error 'app "busybox" has no log \(it was not run, has a terminal, or its output goes elsewhere\)'

say "output that nobody reads does not hold the app up, nor fill the disk"
expect 0 husk run "${run_options[@]}" --detach "$image" -- sh -c 'yes | head -c 2000000; head -c 8388608 /dev/zero >&2; exit 9'
uuid=$out
expect 0 husk status --wait="${vm_limit}s" "$uuid"
match "$out" app-busybox=9 "exit code"
equal "$(stat -c %s "$data/pods/run/$uuid/supervisor.log")" 0 "size of the supervisor's log"
size=$(du -sb "$data/pods/run/$uuid/logs" | cut -f1)
[ "$size" -le 8400000 ] || die "the logs have $size bytes"

say "a log that is followed while it is renamed again and again has every line"
# Part after part, when the last was read: of an app that fills two files while nobody reads, the oldest part is left out.
# shellcheck disable=SC2016 # for the shell in the pod
expect 0 husk run "${run_options[@]}" --detach "$image" -- \
	sh -c 'echo begin; for i in 0 1 2 3 4 5 6 7 8 9; do
		until [ -e /go$i ]; do sleep 0.1; done; seq $((i * 30000 + 1)) $((i * 30000 + 30000)); done'
uuid=$out
"$husk_bin" "--dir=$data" logs --follow "$uuid" >"$work/followed" 2>"$work/err" &
follower=$!
last=begin
for i in 0 1 2 3 4 5 6 7 8 9; do
	wait_for_line "$work/followed" "^$last\$" $follower
	expect 0 husk enter "$uuid" touch /go$i
	last=$((i * 30000 + 30000))
done
wait $follower || die "logs --follow: $(cat "$work/err")"
[ -e "$data/pods/run/$uuid/logs/busybox.old" ] || die "the log was not renamed"
cmp "$work/followed" <(echo begin; seq 1 300000) || die "lines are missing"

say "a prepared pod"
uuid=$(husk prepare "$image" -- sleep 1000)
expect 0 husk run-prepared "${run_options[@]}" --detach "$uuid"
equal "$out" "$uuid" "output"
expect 0 husk stop --force "$uuid"

say "what goes wrong before is told as in the foreground, and leaves no pod running"
if is_vm; then
	expect 254 husk run --detach --kernel="$work/none" "$image" -- true
	one_line_error '^run: guest kernel '
	equal "$out" "" "output"
	expect 254 husk run --detach --boot-timeout=1 --memory=1P "$image" -- true
	one_line_error '^run: --memory='
else
	for option in --kernel=x --accel=tcg --scratch-size=1G; do
		expect 254 husk run "$option" --detach "$image" -- true
		one_line_error "^Error: unknown flag: ${option%=*}"
		equal "$out" "" "output"
	done
fi
expect 254 husk run --detach --interactive "$image"
one_line_error '^run: --interactive and --detach exclude each other$'
for round in 1 2 3; do
	expect 254 husk run --detach --uuid-file-save="$work/uuid" "$image" --exec=/no/program
	one_line_error '^run: stage1: app "busybox": Error: Unable to open "/no/program": No such file or directory$'
	equal "$out" "" "output of round $round"
	expect 0 husk status --wait "$(cat "$work/uuid")"
	match "$out" $'\nreason-busybox=not-executed: Unable to open "/no/program"' "the reason in the status"
	[ ! -e "$data/pods/run/$(cat "$work/uuid")/ready" ] || die "a pod that never ran was ready"
done
equal "$(husk list --no-legend | grep -c running)" 0 "running pods"

say "interrupted while the pod comes up"
# begin_and_kill: kills the caller of a pod that comes up. True if it was not up by then: else it goes on, as it should.
begin_and_kill() {
	rm -f "$work/uuid"
	"$husk_bin" "--dir=$data" run "${run_options[@]}" --detach --uuid-file-save="$work/uuid" "$image" -- sleep 1000 >"$work/out" 2>&1 &
	local caller=$! state='' deadline=$((SECONDS + vm_limit))
	until [ -s "$work/uuid" ] && [ -s "$data/pods/run/$(cat "$work/uuid")/pid" ]; do
		kill -0 $caller 2>/dev/null || die "husk ended: $(cat "$work/out")"
		read -rt 0.01 <> <(:) || :
	done
	kill -KILL $caller
	wait $caller || :
	uuid=$(cat "$work/uuid")
	until [ "$state" = exited ]; do
		[ ! -e "$data/pods/run/$uuid/ready" ] || return 1
		[ $SECONDS -lt $deadline ] || die "the pod neither ended nor came up"
		state=$(husk status "$uuid" | sed -n 's/^state=//p')
	done
}
tries=0
until begin_and_kill; do
	expect 0 husk stop --force "$uuid"
	[ $((++tries)) -lt 100 ] || die "the pod was up each time"
done
expect 0 husk status "$uuid"
match "$out" '^state=exited' "state"
expect 0 husk gc --grace-period=0 --expire-prepared=0
equal "$(find "$data/pods" -mindepth 2)" "" "what is left"
