#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fifty pods of Kubernetes that begin, work and end at the same time: each gets what is its own, and nothing is left of them.
# shellcheck source=tests/system/cri_lib.sh
. "$(dirname "$0")/cri_lib.sh"
require skopeo curl
pods=50
# Two processors start so many machines one after the other.
! is_vm || {
	vm_limit=$((vm_limit * 10))
	jq '.options["boot-timeout"] = "600"' "$config/stage1.d/stage1.json" >stage1.json && mv stage1.json "$config/stage1.d"
}
start_cri
mkdir ids
snapshots() { c snapshots --snapshotter "$(sed -n 's/^ *snapshotter = "\(.*\)"/\1/p' "$work/containerd.toml")" ls | awk 'NR > 1 { print $1 }' | sort; }
before=$(snapshots)

# all COMMAND: for each number at the same time.
all() {
	local k failed=0 jobs=()
	for k in $(seq $pods); do
		"$1" "$k" &
		jobs+=($!)
	done
	for k in "${jobs[@]}"; do
		wait "$k" || failed=$((failed + 1))
	done
	[ $failed = 0 ] || die "$1: $failed of $pods have failed"
}
begin() { # NUMBER
	start_sandbox "pod$1" ".port_mappings = [{container_port: 8080, host_port: $((21000 + $1))}]"
	start_container web . sh -c "echo I am \$(hostname); echo $1 >/tmp/index.html; exec httpd -f -p 8080 -h /tmp"
	wait_for_words "I am pod$1"
	echo "$sandbox $container $(sandbox_ip)" >"ids/$1"
}
work() { # NUMBER
	local sandbox container ip neighbour
	read -r sandbox container ip <"ids/$1"
	equal "$(exec_sync "$container" hostname)" "pod$1" "the name of pod $1"
	read -r _ _ neighbour <"ids/$(($1 % pods + 1))"
	equal "$(exec_sync "$container" wget -qO- "http://$neighbour:8080")" $(($1 % pods + 1)) "what its neighbour says"
	equal "$(curl -sf "http://$ip:8080")" "$1" "what pod $1 says"
	equal "$(curl -sf "http://$subnet.1:$((21000 + $1))")" "$1" "what it says on its port of the host"
}
end() { # NUMBER
	local sandbox
	read -r sandbox _ <"ids/$1"
	remove_sandbox
}

say "begin"
all begin
equal "$(cri ListPodSandbox | jq '[.items[] | select(.state == 0)] | length')" $pods "sandboxes that are ready"
equal "$(husk list --format=json | jq '[.[] | select(.state == "running")] | length')" $pods "pods that run"
equal "$(cut -d' ' -f3 ids/* | sort -u | wc -l)" $pods "their addresses"
say "work"
all work
equal "$(cri ListContainerStats | jq '.stats | length')" $pods "containers that are counted"
say "end"
all end
pods_gone
equal "$(snapshots)" "$before" "snapshots that are left"
