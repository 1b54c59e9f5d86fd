#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A pod of Kubernetes whose guest says nothing any more: nobody waits for it for ever, and it can be removed.
# shellcheck source=tests/system/cri_lib.sh
. "$(dirname "$0")/cri_lib.sh"
start_cri

# What runs the agent, $guest, stands still: the machine, or process 1 of the namespaces.
silence() {
	local supervisor
	supervisor=$(husk list --format=json | jq '.[] | select(.state == "running").pid')
	guest=$(pgrep -P "$supervisor" "$(if is_vm; then echo qemu; else echo husk-ns; fi)")
	is_vm || guest=$(pgrep -P "$guest")
	kill -STOP "$guest"
}
said() { grep -c "$1" "$work/containerd.log" || :; }

has_figures() { # N: of so many containers
	[ "$(cri ListContainerStats | jq '[.stats[].memory.working_set_bytes.value | tonumber? | select(. > 0)] | length')" = "$1" ]
}

start_sandbox silent
start_container stuck . sleep 100000
stuck=$container
start_container other . sleep 100000
run -d --snapshotter "$(cri ContainerStatus "{\"id\": \"$stuck\", \"verbose\": true}" | jq -r .info.info | jq -r .snapshotter)" \
	--annotation io.kubernetes.cri.container-type=container --annotation "io.kubernetes.cri.sandbox-id=$sandbox" \
	--with-ns network:/proc/1/ns/net $i ended true
wait_state ended STOPPED
has_figures 2 || die "containers have no figures"
silence

say "its figures are waited for once, not for each container, and are there again when it speaks"
has_figures 0 || die "figures of a pod that says nothing"
equal "$(said 'the pod takes too long to say what it uses')" 1 "requests that were waited for"
equal "$(said 'the pod took too long to say what it uses; it is asked again')" 1 "requests that were not"
kill -CONT "$guest"
until_true has_figures 2
kill -STOP "$guest"

say "limits are not waited for either"
if cri UpdateContainerResources "{\"id\": \"$stuck\", \"linux\": {\"memory_limit_in_bytes\": 67108864}}" 2>"$work/err"; then
	die "limits were set"
fi
match "$(cat "$work/err")" 'the pod takes too long to set limits' "what is said"

say "a container that has ended can be deleted, though its app is there"
c task rm ended
c container rm ended
equal "$(husk list --format=json | jq '.[].app_names | length')" 3 "apps"

say "stopping a container ends the pod: what SIGKILL does not end in its time goes with its machine"
# A kubelet waits no longer.
vm_limit=120 cri StopContainer "{\"id\": \"$stuck\", \"timeout\": 1}" >/dev/null
equal "$(said "container .*$stuck.* has not ended within 60 s of SIGKILL: pod .* is ended")" 1 "what containerd's log says"
equal "$(exit_code "$stuck") $(exit_code "$container")" "137 255" "exit codes"
until_true sandbox_is "$sandbox" 1

say "it can be removed, and nothing is left"
cri StopPodSandbox "{\"id\": \"$sandbox\"}" >/dev/null
remove_sandbox
pods_gone
