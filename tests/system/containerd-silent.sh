#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A pod of Kubernetes whose guest says nothing any more: nobody waits for it for ever, and it can be removed.
# shellcheck source=tests/system/cri_lib.sh
. "$(dirname "$0")/cri_lib.sh"
start_cri

# What runs the agent stands still: the machine, or process 1 of the namespaces.
silence() {
	local supervisor guest
	supervisor=$(husk list --format=json | jq '.[] | select(.state == "running").pid')
	guest=$(pgrep -P "$supervisor" "$(if is_vm; then echo qemu; else echo husk-ns; fi)")
	is_vm || guest=$(pgrep -P "$guest")
	kill -STOP "$guest"
}
said() { grep -c "$1" "$work/containerd.log" || :; }

start_sandbox silent
start_container stuck . sleep 100000
stuck=$container
start_container other . sleep 100000
equal "$(cri ListContainerStats | jq '[.stats[].memory.working_set_bytes.value | tonumber > 0] | length')" 2 "containers with figures"
run -d --snapshotter "$(jq -r .snapshotter <<<"$(cri ContainerStatus "{\"id\": \"$stuck\", \"verbose\": true}" | jq -r .info.info)")" \
	--annotation io.kubernetes.cri.container-type=container --annotation "io.kubernetes.cri.sandbox-id=$sandbox" \
	--with-ns network:/proc/1/ns/net $i ended true
wait_state ended STOPPED
silence

say "its figures are waited for once, not for each container"
cri ListContainerStats >"$work/stats"
equal "$(said 'the pod has not said what it uses; it is asked again')" 1 "requests that were not waited for"

say "a container that has ended can be deleted"
c task rm ended
c container rm ended
equal "$(said 'container .*ended.* is left in pod .*, and goes with it: .*the agent does not answer')" 1 "what containerd's log says"

say "stopping a container ends the pod: what SIGKILL does not end in its time goes with its machine"
cri StopContainer "{\"id\": \"$stuck\", \"timeout\": 1}" >/dev/null
equal "$(said "container .*$stuck.* has not ended within 60 s of SIGKILL: pod .* is ended")" 1 "what containerd's log says"
equal "$(exit_code "$stuck") $(exit_code "$container")" "137 255" "exit codes"
until_true sandbox_is "$sandbox" 1

say "it can be removed, and nothing is left"
cri StopPodSandbox "{\"id\": \"$sandbox\"}" >/dev/null
remove_sandbox
pods_gone
