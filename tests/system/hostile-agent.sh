#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A guest agent that lies (tests/hostile/agent.c), in a VM or in namespaces. Whatever it says: husk ends with a status and one line that tells what
# is wrong, in the time that the documentation gives it; no process crashes or is left; and no process of the host needs
# more than 1 MiB of memory beyond what an honest agent makes it need.
#
# The cases run beside each other, as most of them wait for a limit; those that wait longest begin first.
#
#   HUSK_TEST_JOBS            how many cases at a time (default: six for each processor, two of the short list)
#   HUSK_TEST_VARIANT=short   only the first case of each kind, of those that do not wait for a limit
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
per_processor=6
[ "${HUSK_TEST_VARIANT:-}" != short ] || per_processor=2
jobs_max=${HUSK_TEST_JOBS:-$((per_processor * $(nproc)))}
image=$(busybox_image)
growth_max=1024 # KiB

# The agent of a VM is in the initramfs, that of namespaces beside the stage1 of an installation.
mkdir "$work/cases"
if is_vm; then
	[ -e "$build/lib/husk/kernel/small/vmlinux" ] || skip "no small guest kernel (cmake --build build --target guest-kernel)"
	mkdir "$work/kernel"
	cp "$build/lib/husk/kernel/small/vmlinux" "$work/kernel/"
	"$top/tools/mkinitramfs" --agent "$build/tests/hostile-agent" --output "$work/kernel/initramfs"
	run_options+=("--kernel=$work/kernel")
else
	mkdir -p "$work/prefix/lib/husk"
	cp -a "$build/bin" "$work/prefix/"
	cp -a "$build"/lib/husk/{guest,husk-images.so,stage1-ns} "$work/prefix/lib/husk/"
	cp "$build/tests/hostile-agent" "$work/prefix/lib/husk/guest/husk-agent"
	sed -i "s|$build/bin/|$work/prefix/bin/|" "$husk_bin"
fi

# ---- a case: a process in the background with files of its own, which says what failed by ending with another status ----

# case_of FUNCTION LIE WORDS...: FUNCTION LIE WORDS... in the background, when there is room.
case_of() {
	local name=$1.${2//\//_}.$((++n_cases))
	is_chosen "$1" "${2##*.}" || return 0
	while [ "$(jobs -rp | wc -l)" -ge "$jobs_max" ]; do wait -n || :; done
	case_dir=$work/cases/$name
	mkdir "$case_dir"
	(
		trap - EXIT
		"$@" >"$case_dir/log" 2>&1
		touch "$case_dir/passed"
	) &
}
n_cases=0

# is_chosen FUNCTION KIND: the first time, and of a kind that ends by itself, if the list is to be short.
declare -A chosen
is_chosen() {
	[ "${HUSK_TEST_VARIANT:-}" = short ] || return 0
	[[ ! $2 =~ silence|half|endless-(flood|output) && -z ${chosen["$1 $2"]-} ]] || return 1
	chosen["$1 $2"]=1
}

# Like expect and one_line_error of lib.sh, in the directory of the case: STATUS REGEX COMMAND...; the peak of the memory
# of the command is in $peak. An empty REGEX is for a command that says nothing.
expect_line() {
	local want=$1 regex=$2 got=0
	shift 2
	timeout --kill-after=10 "$vm_limit" "$build/tests/peak" "$case_dir/peak" "$husk_bin" "--dir=$data" "$@" \
		>"${stdout:-$case_dir/out}" 2>"$case_dir/err" </dev/null || got=$?
	equal "$got" "$want" "exit status of $* ($(head -c 1000 "$case_dir/err"))"
	equal "$(wc -l <"$case_dir/err")" "$([ -z "$regex" ] && echo 0 || echo 1)" "lines on stderr of $* ($(head -c 1000 "$case_dir/err"))"
	match "$(cat "$case_dir/err")" "$regex" "error of $*"
	! grep -q '[[:cntrl:]]' "$case_dir/err" || die "control characters in the error of $*"
	peak=$(cat "$case_dir/peak")
	echo "$peak" "$@" >>"$work/peaks.$1"
}

# What every pod must still let one do, once it has ended.
epilogue() { # UUID
	expect_line 0 '' status "$1"
	match "$(cat "$case_dir/out")" '^state=exited' "state"
	expect_line 0 '' rm "$1"
}

run_husk() { # STATUS REGEX HOSTNAME [OPTION...] -- PROGRAM
	local status=$1 regex=$2 hostname=$3
	shift 3
	local options=()
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	expect_line "$status" "$regex" run "${run_options[@]}" --boot-timeout="${boot:-$long_boot}" \
		--uuid-file-save="$case_dir/uuid" --hostname="$hostname" "${options[@]}" "$image" --name=app "$@"
}

# run LIE STATUS REGEX: husk run of an app that ends by itself.
run() {
	stdout=$case_dir/run run_husk "$2" "$3" "$1" -- true
	run_peak=$peak
	[ "$peak" -le $((honest_peak + growth_max)) ] || die "$1: $peak KiB at the peak, $honest_peak KiB with an honest agent"
	epilogue "$(cat "$case_dir/uuid")"
}

# A pod in the background whose app goes on; its UUID in $uuid.
start_pod() { # HOSTNAME [OPTION OF THE APP...]
	local hostname=$1
	shift
	expect_line 0 '' run "${run_options[@]}" --boot-timeout="$long_boot" --detach --hostname="$hostname" "$image" \
		--name=app "$@" -- sleep
	uuid=$(cat "$case_dir/out")
}

check_supervisor() { # UUID: while it runs
	local hwm
	# None: it has ended by what it was told, or is ending and has no memory any more.
	hwm=$(awk '/^VmHWM:/ { print $2 }' "/proc/$(cat "$data/pods/run/$1/pid")/status" 2>/dev/null) || hwm=
	[ -z "$hwm" ] || [ "$hwm" -le $((honest_supervisor + growth_max)) ] ||
		die "the supervisor took $hwm KiB, $honest_supervisor KiB with an honest agent"
}

# detach LIE STATUS REGEX: husk run --detach of a pod that does not come up.
detach() {
	run_husk "$2" "$3" "$1" --detach -- sleep
	equal "$(cat "$case_dir/out")" "" "output"
	epilogue "$(cat "$case_dir/uuid")"
}

# stop LIE [--force]: husk stop ends the pod all the same.
stop() {
	start_pod "$1"
	expect_line 0 '' stop "${@:2}" "$uuid"
	epilogue "$uuid"
}

# logged LIE: the streams of a pod in the background go on and on, into a log of bounded size.
logged() {
	local size=0 deadline=$((SECONDS + vm_limit)) log
	start_pod "$1"
	log=$data/pods/run/$uuid/logs
	# The first file is full, and another was begun.
	until [ "$(find "$log" -type f | wc -l)" -ge 2 ]; do
		[ $SECONDS -lt $deadline ] || die "the log does not grow: $(find "$log" -ls)"
		read -rt 0.1 <> <(:) || :
	done
	expect_line 0 '' list
	check_supervisor "$uuid"
	size=$(du -sb "$log" | cut -f 1)
	[ "$size" -le 8500000 ] || die "the logs have $size bytes"
	expect_line 0 '' stop "$uuid"
	epilogue "$uuid"
}

# app LIE VERB STATUS REGEX: in a mutable pod, husk app VERB is what the lie is told to; what comes before succeeds.
app() {
	local lie=$1 status regex v
	expect_line 0 '' app sandbox "${run_options[@]}" --boot-timeout="$long_boot" --detach --hostname="$lie"
	uuid=$(cat "$case_dir/out")
	for v in add start stop rm; do
		local words=(--app=app "$uuid")
		[ $v != add ] || words=("$uuid" "$image" --name=app -- sleep)
		[ $v != stop ] || words=(--grace=0 "${words[@]}")
		status=0 regex=''
		[ $v != "$2" ] || status=$3 regex=$4
		expect_line "$status" "$regex" app $v "${words[@]}"
		[ $v != "$2" ] || break
	done
	if expect_line 0 '' status "$uuid" && grep -q '^state=running' "$case_dir/out"; then
		expect_line 0 '' app list "$uuid"
		check_supervisor "$uuid"
		expect_line 0 '' stop --force "$uuid"
	fi
	epilogue "$uuid"
}

# sandbox LIE STATUS REGEX: husk app sandbox does not come up.
sandbox() {
	expect_line "$2" "$3" app sandbox "${run_options[@]}" --boot-timeout="${boot:-$long_boot}" --detach --hostname="$1"
}

# attach LIE OPTIONS STATUS REGEX: husk attach to an app with these streams.
attach() {
	# shellcheck disable=SC2086 # words
	start_pod "$1" $2
	expect_line "$3" "$4" attach "$uuid"
	check_supervisor "$uuid"
	expect_line 0 '' stop --force "$uuid"
	epilogue "$uuid"
}

# enter LIE STATUS REGEX: in the pod that all these cases share.
enter() {
	uuid=$shared
	stdout=/dev/null expect_line "$2" "$3" enter "$uuid" "$1"
	[ "$peak" -le $((honest_enter + growth_max)) ] || die "$1: $peak KiB at the peak, $honest_enter KiB with an honest agent"
}

# ---- what an honest agent makes the processes need ----

case_dir=$work
honest_peak=999999
long_boot=$((180 * slow))
run none 0 '' # makes what is kept for later pods
start=$(date +%s%3N)
run none 0 ''
# For cases that wait for it: many times what all pods that run at a time would take if they began at once.
short_boot=$((10 + 4 * ($(date +%s%3N) - start) * jobs_max / $(nproc) / 1000))
honest_peak=$run_peak
equal "$(cat "$work/run")" output "what the app wrote"
honest_supervisor=999999
start_pod none
shared=$uuid
honest_supervisor=$(awk '/^VmHWM:/ { print $2 }' "/proc/$(cat "$data/pods/run/$uuid/pid")/status")
honest_enter=999999
enter none 0 ''
honest_enter=$peak
say "KiB with an honest agent: husk run $honest_peak, in the background $honest_supervisor, husk enter $honest_enter"

no_message='agent: sent what is not a message of the protocol: (Bad message|Message too long|Protocol error)'
ended='agent: (ended the connection: Connection reset by peer|cannot send it .*: Broken pipe)' # as they meet
silent="the agent did not answer within $short_boot s; the pod.s last line: "
late="the agent did not start the apps within $short_boot s .*raise --boot-timeout"

# ---- those that wait longest ----

case_of app app.add.silence add 254 'app "app": the agent does not answer'
case_of app app.start.silence start 254 'app "app": the agent does not answer'
case_of app app.remove.silence rm 254 'app "app": the agent does not answer'
case_of enter app.exec.silence 254 'app "app": the agent does not answer'
case_of enter all.silence 254 'app "app": the agent does not answer'
case_of enter stream.attach.half-frame 254 'std(out|err) of app "app": the agent does not attach it: Connection timed out'
case_of attach stream.attach.silence '--stdout=stream --stderr=null' 254 'app "app": the agent does not (answer|attach it)'
case_of stop pod.shutdown.silence
case_of logged stream.attach.endless-output

# ---- husk run ----

boot=$short_boot case_of run all.half-frame 254 "$silent"
case_of run agent.hello.half-frame 254 "$no_message" # the next reply is its end
boot=$short_boot case_of run agent.hello.endless-flood 254 "$silent"
boot=$short_boot case_of run all.silence 254 "$silent"
case_of run stream.attach.endless-output 254 "agent: the output of the apps did not end with the pod"
case_of run stream.attach.half-open 254 "agent: the output of the apps did not end with the pod"
boot=$short_boot case_of run app.start.silence 254 "$late"
boot=$short_boot case_of detach app.start.silence 254 "$late"
boot=$short_boot case_of sandbox pod.setup.silence 254 "$late"
case_of run agent.hello.silence 254 'agent: answers a call before the one that it depends on: Protocol error'
case_of run pod.setup.silence 254 'agent: answers a call before the one that it depends on: Protocol error'
case_of run app.add.silence 254 'app "app": app.start: the agent answers it before app.add'
# What reads the messages is the same at all times, so that a sample of the lies is told at some of them.
all_bad="wrong-id request empty-frame huge-frame endless-frame garbage deep objects numbers long-error"
for lie in agent.hello pod.setup app.add app.start pod.shutdown; do
	some_bad="wrong-id endless-frame garbage"
	[ $lie != agent.hello ] || some_bad=$all_bad
	for bad in $some_bad; do
		case_of run "$lie.$bad" 254 "$no_message"
	done
	# Whoever has heard of the shutdown does not listen any longer.
	[ $lie = pod.shutdown ] || case_of run $lie.twice 254 "$no_message"
	case_of run $lie.close 254 "$ended"
	case_of run $lie.error 254 'one.two.*three'
done
for bad in version no-object long-hello; do
	case_of run "agent.hello.$bad" 254 'agent: (its hello is not understood|sent what is not a message)'
done
case_of run agent.hello.flood 0 ''
case_of run app.start.no-app 254 'agent: reports the end of an app that does not run: Protocol error'
case_of run app.start.exited-early 254 'agent: reports the end of an app that does not run: Protocol error'
case_of run app.start.exited-twice 254 'agent: reports the end of an app that does not run: Protocol error'
case_of run app.start.exit-code 254 "agent: its report of an app's end is not understood: Protocol error"
for bad in wrong-id endless-frame garbage long-error; do
	case_of run "stream.attach.$bad" 254 'std(out|err) of app "app": the agent does not attach it: '
done
case_of run stream.attach.close 254 'std(out|err) of app "app": the pod has ended, or its agent: '
case_of run stream.attach.error 254 'one.two.*three'

# ---- the other commands ----

case_of stop pod.shutdown.close
case_of stop pod.shutdown.wrong-id
case_of stop pod.shutdown.endless-flood --force
case_of detach agent.hello.garbage 254 "$no_message"
case_of sandbox pod.setup.error 254 'agent: pod.setup: one.two.*three'
case_of app app.add.error add 254 'one.two.*three'
case_of app app.start.error start 254 'one.two.*three'
case_of app app.remove.error rm 254 'one.two.*three'
case_of app app.signal.silence stop 254 'app "app": '
case_of app app.add.wrong-id add 254 'app "app"'
case_of app app.start.close start 254 'app "app"'
case_of app app.remove.flood rm 0 ''
case_of attach stream.attach.wrong-id '--stdout=stream --stderr=null' 254 'stdout of app "app": the agent does not attach it: Protocol error'
case_of attach stream.attach.close '--stdout=stream --stderr=null' 254 'stdout of app "app": the pod has ended, or its agent: '
for bad in wrong-id garbage objects endless-frame; do
	case_of attach "later.agent.hello.$bad" --stdin=tty 254 "app \"app\": the pod has ended, or its agent: $no_message"
done
case_of attach later.agent.hello.close --stdin=tty 254 "app \"app\": the pod has ended, or its agent: $ended"
for lie in agent.hello app.exec; do
	for bad in $all_bad; do
		case_of enter "$lie.$bad" 254 "app \"app\": the pod has ended, or its agent: $no_message"
	done
	case_of enter $lie.close 254 "app \"app\": the pod has ended, or its agent: $ended"
	case_of enter $lie.error 254 'one.two.*three'
done
case_of enter agent.hello.flood 0 ''
case_of enter app.exec.exec-other 254 'app "app": the agent reports the end of another process'
case_of enter app.exec.exec-zero 254 'app "app": cannot reach the new process'
for bad in wrong-id empty-frame huge-frame endless-frame garbage long-error; do
	case_of enter "stream.attach.$bad" 254 'std(out|err) of app "app": the agent does not attach it: '
done
case_of enter stream.attach.close 254 'std(out|err) of app "app": the pod has ended, or its agent: '
case_of enter stream.attach.half-open 0 '' # as if the process had left something behind

# ---- the end ----

while [ -n "$(jobs -rp)" ]; do wait -n || :; done
failed=0
for case_dir in "$work"/cases/*; do
	[ ! -e "$case_dir/passed" ] || continue
	failed=$((failed + 1))
	echo "$(basename "$case_dir"): $(head -c 2000 "$case_dir/log")" >&2
done
case_dir=$work
check_supervisor "$shared"
expect_line 0 '' stop "$shared"
[ $failed = 0 ] || die "$failed of $n_cases lies"
epilogue "$shared"
# What is left are the pods of app sandbox that did not come up, of which only the list knows the names.
expect_line 0 '' list --no-legend
equal "$(awk -F'\t+' 'NF { print $4 }' "$work/out" | sort -u)" exited "state of all pods"
expect 0 husk gc --grace-period=0
expect_line 0 '' list --no-legend
equal "$(grep -c . "$work/out")" 0 "pods that are left"
say "$(find "$work/cases" -mindepth 1 -maxdepth 1 | wc -l) of $n_cases lies; KiB at the peak of husk run: up to $(sort -n "$work/peaks.run" | tail -n 1 | cut -d ' ' -f 1)"
