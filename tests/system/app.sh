#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A mutable pod: apps are added, started, stopped, debugged and removed while it runs.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq
require debugfs
busybox=$(busybox_image)

# What is inside the pod's VM for each app: disks by LUN, and directories of what was written.
guest_disks() {
	expect 0 husk app exec --app=debug "$uuid" sh -c 'cat /proc/partitions' </dev/null
	grep -c ' sd' <<<"$out" || :
}

# Leaves the status of the app in $out.
wait_app_state() { # NAME STATE
	local tries=0
	until expect 0 husk app status --app="$1" "$uuid" && grep -qx "state=$2" <<<"$out"; do
		[ $((++tries)) -lt 500 ] || die "app $1 does not become $2: $out"
		read -rt 0.02 <> <(:) || :
	done
}

# The KiB that files in memory take: in the guest, or in the pod's control group. (/proc/meminfo is the host's there.)
pod_shmem() {
	if is_vm; then
		expect 0 husk app add "$uuid" "$busybox" --name=look -- grep Shmem: /proc/meminfo
		expect 0 husk app start --app=look "$uuid"
		wait_app_state look exited
		expect 0 husk logs --app=look "$uuid"
		awk '/Shmem:/ { print $(NF - 1) }' <<<"$out"
		expect 0 husk app rm --app=look "$uuid"
	else
		{ cat {/sys/fs/cgroup,/sys/fs/cgroup/memory}/husk/"$uuid"/memory.stat 2>/dev/null || :; } |
			awk '$1 == "shmem" { own = $2 } $1 == "total_shmem" { all = $2 } END { print int((all ? all : own) / 1024) }'
	fi
}

rkt=coreos.com/rkt/experiment
mkdir -p "$work/gathered/sub"
expect 0 husk app sandbox --detach --user-label=team=a --annotation=$rkt/logmode=k8s-plain \
	--annotation=$rkt/kubernetes-log-dir="$work/gathered" "${run_options[@]}"
uuid=$out
expect 0 husk status --format=json "$uuid"
equal "$(jq -c .user_labels <<<"$out")" '{"team":"a"}' "label of the pod"
expect 0 husk list --full --no-legend
match "$out" "$uuid.*-.*running" "an empty pod is listed"
expect 0 husk app list "$uuid"
equal "$out" "$(printf 'NAME\tSTATE')" "no apps"
expect 0 husk app list --no-legend "$uuid"
equal "$(wc -c <"$work/out")" 1 "no apps, no legend: an empty line"
for verb in "app exec" attach logs; do
	# shellcheck disable=SC2086 # a group and its command
	expect 254 husk $verb "$uuid"
	one_line_error "${verb##* }: (pod \"$uuid\": )?the pod has no apps .add one with husk app add."
done

# ---- what apps have in memory is the pod's: it outlives the app, and another takes it away ----
expect 0 husk app add "$uuid" "$busybox" --name=fill -- dd if=/dev/zero of=/dev/shm/x bs=1M count=150
for _ in 1 2 3; do # the VM has 512 MiB
	expect 0 husk app start --app=fill "$uuid"
	wait_app_state fill exited
	match "$out" "exit_code=0" "150 MiB in /dev/shm"
done
expect 0 husk app rm --app=fill "$uuid"
shmem=$(pod_shmem)
[ "$shmem" -ge 153600 ] || die "$shmem KiB: what an app had in the pod's memory went with it"
expect 0 husk app add "$uuid" "$busybox" --name=empty -- rm /dev/shm/x
expect 0 husk app start --app=empty "$uuid"
wait_app_state empty exited
match "$out" "exit_code=0" "another app takes it away"
expect 0 husk app rm --app=empty "$uuid"
shmem=$(pod_shmem)
[ "$shmem" -lt 51200 ] || die "$shmem KiB of what was taken away are still there"

# ---- logs where somebody gathers them, as rkt's users say it ----
expect 254 husk app add "$uuid" "$busybox" --name=logged --annotation=$rkt/kubernetes-log-path=../elsewhere.log
one_line_error "add: .*app \"logged\": its log \"../elsewhere.log\" is not below \"$work/gathered\" .see the annotations.\$"
expect 0 husk app add "$uuid" "$busybox" --name=logged --stdin=stream --stdout=stream --stderr=stream \
	--annotation=$rkt/kubernetes-log-path=sub/hello_0.log -- sh -c 'echo Hello; echo Bye >&2'
expect 0 husk app start --app=logged "$uuid"
wait_app_state logged exited
until_log() { # until both lines are there
	local end=$((SECONDS + gone_limit))
	until [ "$(wc -l <"$work/gathered/sub/hello_0.log")" = 2 ]; do
		[ $SECONDS -lt $end ] || die "the gathered log: $(cat "$work/gathered/sub/hello_0.log")"
		read -rt 0.05 <> <(:) || :
	done
}
until_log
equal "$(sed -E 's/^[-0-9]+T[:.0-9]+Z //' "$work/gathered/sub/hello_0.log" | sort)" $'stderr Bye\nstdout Hello' "the gathered log"
expect 0 husk app rm --app=logged "$uuid"
[ -s "$work/gathered/sub/hello_0.log" ] || die "a gathered log went with its app"

# ---- from nothing to running ----
expect 0 husk app add "$uuid" "$busybox" --name=web -- sh -c 'echo hello; echo "$X"; exec sleep 1000' </dev/null
equal "$out$err" "" "add says nothing"
equal "$(cd "$data/pods/run/$uuid" && stat -c %a control.sock pod pod.lck | tr '\n' ' ')" "600 600 600 " "modes of what changes a pod"
expect 0 husk app status --app=web "$uuid"
match "$out" "name=web
state=created
image_id=sha256-[0-9a-f]{64}
created_at=[-0-9]+ [:.0-9]+ .*" "status of an app that was added"
expect 254 husk app add "$uuid" "$busybox" --name=web
one_line_error "add: error adding app to pod: error: multiple apps with name web .give it another with --name."
expect 254 husk app stop --app=web "$uuid"
one_line_error "stop: app \"web\" is not running"
expect 0 husk app start --app=web "$uuid"
expect 0 husk app start --app=web "$uuid" # once more is not a mistake
expect 0 husk app list "$uuid"
equal "$out" "$(printf 'NAME\tSTATE\nweb\trunning')" "the list"
expect 0 husk app exec "$uuid" sh -c 'echo $AC_APP_NAME'
equal "$out" web "exec in the only app"

# ---- another app of the same image; what one writes the other does not see ----
expect 0 husk app add "$uuid" "$busybox" --name=debug --user-annotation=why=look --user-label=a=b --user-label=c= -- sleep 1000
expect 0 husk app status --app=debug "$uuid"
match "$out" "$(printf 'user_annotations=\nwhy:look\n\nuser_labels=\na:b,c:')" "notes on the app"
expect 0 husk app start --app=debug "$uuid"
expect 0 husk app exec --app=debug "$uuid" sh -c 'echo mine >/root-of-debug; ls /'
expect 0 husk app exec --app=web "$uuid" ls /
! grep -q root-of-debug <<<"$out" || die "an app sees the files of another"
! is_vm || equal "$(guest_disks)" 3 "disks in the guest"

# ---- stop, how it ended, start again ----
expect 0 husk app stop --app=web --grace=0 "$uuid"
expect 0 husk app status --app=web --format=json "$uuid"
equal "$(jq -r '.state, .exit_code' <<<"$out" | tr '\n' ' ')" "exited 9 " "after a stop without grace"
expect 0 husk status "$uuid"
match "$out" "state=running" "the pod goes on"
expect 0 husk app start --app=web "$uuid"
expect 0 husk app status --app=web "$uuid"
match "$out" "state=running" "started again"
! grep -q exit_code <<<"$out" || die "the exit code of the last run is still there"
end=$((SECONDS + gone_limit)) # it says so after it was started
until expect 0 husk logs --app=web "$uuid" && [ "$(grep -c hello <<<"$out")" = 2 ]; do
	[ $SECONDS -lt $end ] || die "lines in the log after two starts: $out"
	read -rt 0.05 <> <(:) || :
done

# ---- rm ----
expect 0 husk app rm --app=web "$uuid"
expect 254 husk app start --app=web "$uuid"
one_line_error "start: error starting app: error: nonexistent app \"web\""
expect 1 husk app status --app=web "$uuid"
one_line_error "status: cannot find app \"web\" in the pod"
! is_vm || equal "$(guest_disks)" 2 "disks in the guest after rm"
pod_dir=$data/pods/run/$uuid
equal "$(find "$pod_dir" -name 'web*' | wc -l)" 0 "files of the app that was removed"
expect 0 husk app add "$uuid" "$busybox" --name=web -- cat /kept
expect 0 husk app start --app=web "$uuid"
expect 0 husk app exec --app=debug "$uuid" true
expect 0 husk app rm --app=web "$uuid"

# ---- what apps write is theirs, and goes with them ----
write_name() { # NAME: of an app that writes it and ends
	expect 0 husk app add "$uuid" "$busybox" --name="$1" -- sh -c 'echo "$AC_APP_NAME" >/who'
	expect 0 husk app start --app="$1" "$uuid"
	wait_app_state "$1" exited
}
write_name gone
expect 0 husk app rm --app=gone "$uuid"
write_name one
write_name two

# ---- mistakes ----
expect 254 husk app add "$uuid" "$work/none.tar"
expect 254 husk app add "$uuid"
one_line_error "add: must provide the pod UUID and an IMAGEID"
expect 254 husk app add "$uuid" "$busybox" "$busybox"
one_line_error "add: must give only one app"
expect 254 husk app add "$uuid" "$busybox" --name=bad --user=nobody-here -- true
match "$err" "error adding app to pod: .*nobody-here" "a user that the image does not have"
if is_vm; then
	expect 254 husk app add "$uuid" "$busybox" --name=large --memory=512Mi
	one_line_error "add: error adding app to pod: app \"large\": its memory limit, 512 MiB, is beyond the VM, which has 512 MiB \
for itself and all apps .lower it, or start a pod with --memory=640Mi."
	if [ "$(nproc)" -gt 1 ]; then # else more are no use
		expect 254 husk app add "$uuid" "$busybox" --name=wide --cpu=1500m
		one_line_error "app \"wide\": its limit of 1.5 processors is beyond the VM, which has 1 for all apps \
.lower it, or start a pod with --cpus=2."
	fi
	expect 0 husk app add "$uuid" "$busybox" --name=half-a --memory=200Mi -- true
	expect 254 husk app add "$uuid" "$busybox" --name=half-b --memory=200Mi -- true
	one_line_error "app \"half-b\": its memory limit, 200 MiB, is beyond the VM, .*--memory=528Mi."
	expect 0 husk app rm --app=half-a "$uuid"
fi
expect 0 husk app list --no-legend "$uuid"
equal "$out" "$(printf 'debug\trunning\none\texited\ntwo\texited')" "nothing is left of what could not be added"
expect 0 husk app add "$uuid" "$busybox" --name=bad -- /not-there
for round in 1 2; do # and once more
	expect 254 husk app start --app=bad "$uuid"
	one_line_error '^start: error starting app: app "bad": Unable to open "/not-there": No such file or directory$'
	expect 0 husk app status --app=bad "$uuid"
	match "$out" $'\nexit_code=203\nreason=not-executed: Unable to open "/not-there"' "a program that is not there, round $round"
done
expect 0 husk logs --app=bad "$uuid"
equal "$err" 'logs: app "bad": Unable to open "/not-there": No such file or directory' "the reason in the log"

expect 0 husk stop "$uuid"
expect 0 husk app stop --app=debug "$uuid"
equal "$out" "pod \"$uuid\" is already stopped" "stop in a stopped pod"
expect 254 husk app add "$uuid" "$busybox" --name=late
one_line_error "add: pod \"$uuid\" isn't currently running"
expect 0 husk app rm --app=debug "$uuid"
expect 0 husk app list --no-legend "$uuid"
equal "$out" "$(printf 'one\texited\ntwo\texited\nbad\texited')" "removed from a pod that has ended"

want=". .. bad debug lost+found one two "
is_vm || want="bad debug one two "
equal "$(scratch_names "$data/pods/run/$uuid/scratch")" "$want" "on the disk: what was removed or could not be added is not"
for name in one two; do
	expect 0 husk export --app=$name "$uuid" "$work/$name.aci"
	equal "$(tar -xzOf "$work/$name.aci" rootfs/who)" $name "what is exported"
done
