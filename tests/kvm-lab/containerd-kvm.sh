#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A pod of Kubernetes with two containers, by containerd's CRI plugin on a host with KVM. Runs in the KVM lab.
# shellcheck source=tests/system/cri_lib.sh
. "$(dirname "$0")/../system/cri_lib.sh"
require curl
start_cri

say "a pod with two containers"
start_sandbox pod
uuid=$(husk list --format=json | jq -r '.[0].name')
match "$(tr '\0' ' ' <"/proc/$(vmm_process "$uuid")/cmdline")" 'accel kvm|accel=kvm' "the arguments of QEMU"
start_container web . sh -c 'echo from web >/tmp/index.html; httpd -p 8080 -h /tmp; echo shared >/dev/shm/x; echo ready; exec sleep 1000'
web=$container
wait_for_words ready
start_container client . sh -c 'wget -qO- http://127.0.0.1:8080; cat /dev/shm/x; hostname; echo bad >&2; exit 4'
equal "$(exit_code) $(container_status | jq -r .reason)" "4 Error" "how the second has ended"
equal "$(logged "$log" | sort | paste -sd,)" "bad,from web,pod,shared" "what it says"
equal "$(curl -sf "http://$(sandbox_ip):8080")" "from web" "the pod, from the host"

say "a command, a terminal, a signal, and a container that is made again"
equal "$(exec_sync "$web" cat /tmp/index.html)" "from web" "a command"
equal "$(cri stream Exec "{\"id\": \"$web\", \"cmd\": [\"sh\", \"-c\", \"tty >/dev/null && echo terminal\"], \"tty\": true,
	\"stdin\": true, \"stdout\": true}" </dev/null | tr -d '\r')" terminal "a terminal"
cri StopContainer "{\"id\": \"$web\", \"timeout\": $vm_limit}" >/dev/null
equal "$(exit_code "$web")" 143 "its exit code"
cri RemoveContainer "{\"id\": \"$web\"}" >/dev/null
start_container web '.metadata.attempt = 1' sh -c 'cat /dev/shm/x; exec sleep 1000'
wait_for_words shared
remove_sandbox
pods_gone
