# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# containerd's CRI plugin as a kubelet has it: pods of husk in a network of the test's own; sourced instead of lib.sh. The test
# is in the directory $work.
needs_image=busybox_image
# shellcheck source=tests/system/network_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/network_lib.sh"
# shellcheck source=tests/system/containerd_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/containerd_lib.sh"
require protoc-c
/usr/bin/python3 -c 'import grpc' 2>/dev/null || skip "python3-grpcio is not installed (tools/install-deps check)"

cd "$work"
subnet=10.83.40
export CONTAINERD_NAMESPACE=k8s.io

network cri <<END
{"plugins": [
	{"type": "bridge", "bridge": "cri0", "isGateway": true,
	 "ipam": {"type": "host-local", "ranges": [[{"subnet": "$subnet.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
	{"type": "portmap", "capabilities": {"portMappings": true}}]}
END

write_config() { # SNAPSHOTTER
	cat >"$work/containerd.toml" <<-END
		version = 2
		root = "$work/root"
		state = "$work/state"
		disabled_plugins = ["io.containerd.internal.v1.opt"]
		[grpc]
		  address = "$work/containerd.sock"
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "docker.io/library/busybox:1"
		  disable_apparmor = true
		  restrict_oom_score_adj = true
		  stream_server_address = "127.0.0.1"
		  stream_server_port = "0"
		  [plugins."io.containerd.grpc.v1.cri".cni]
		    bin_dir = "${cni_bin:-$plugins}"
		    conf_dir = "$etc/net.d"
		  [plugins."io.containerd.grpc.v1.cri".containerd]
		    snapshotter = "$1"
		    default_runtime_name = "husk"
		    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.husk]
		      runtime_type = "io.containerd.husk.v2"
		      pod_annotations = ["husk/*"]
		      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.husk.options]
		        ConfigPath = "$config"
		$more_runtimes
	END
}
more_runtimes= # of who sources this: further lines

# A containerd that is ready for pods, with the image $i.
start_cri() {
	local snapshotter=overlayfs
	write_config $snapshotter
	start_containerd
	if ! has_overlayfs; then
		snapshotter=native
		end_containerd
		write_config $snapshotter
		start_containerd
	fi
	i=docker.io/library/busybox:1
	skopeo copy --quiet "oci:$(busybox_image)" "oci-archive:$work/busybox.tar:$i"
	c image import --snapshotter $snapshotter "$work/busybox.tar" >/dev/null
	until_true cri_is_ready
}
cri_is_ready() { cri ImageStatus "{\"image\": {\"image\": \"$i\"}}" | jq -e '.image.id != ""' && cri Status | jq -e '[.status.conditions[].status] | all'; }

# cri METHOD [REQUEST]: the answer as JSON. cri stream, cri port-forward: tests/support/cri_call.py.
cri() { CRI_CALL_LIMIT=$vm_limit "$top/tests/support/cri_call.py" "$work/containerd.sock" "$@"; }

sandbox_config() { # NAME
	jq -cn --arg name "$1" --arg logs "$work/logs/$1" '{metadata: {$name, uid: "\($name)-uid", namespace: "default"},
		hostname: $name, log_directory: $logs, linux: {}}'
}

# start_sandbox NAME [FILTER]: its ID in $sandbox; the filter of jq changes its configuration.
start_sandbox() {
	sandbox_settings=$(sandbox_config "$1" | jq -c "${2:-.}")
	sandbox=$(cri RunPodSandbox "{\"config\": $sandbox_settings}" | jq -r .pod_sandbox_id)
	[ -n "$sandbox" ] && echo "$sandbox" >>"$work/sandboxes"
}

# create_container NAME FILTER COMMAND...: in $sandbox; its ID in $container, its log in $log. The filter as above.
create_container() {
	local name=$1 filter=$2 settings
	shift 2
	settings=$(jq -cn --arg name "$name" --arg i "$i" '{metadata: {$name}, image: {image: $i}, command: $ARGS.positional,
		log_path: "\($name).log", linux: {}}' --args -- "$@" | jq -c "$filter")
	log=$(jq -r .log_directory <<<"$sandbox_settings")/$(jq -r .log_path <<<"$settings")
	container=$(cri CreateContainer "{\"pod_sandbox_id\": \"$sandbox\", \"config\": $settings,
		\"sandbox_config\": $sandbox_settings}" | jq -r .container_id)
	[ -n "$container" ]
}

start_container() { # as create_container
	create_container "$@"
	cri StartContainer "{\"id\": \"$container\"}" >/dev/null
}

# The words of a log, without times.
logged() { cut -d' ' -f4- "${1:-$log}"; }
wait_for_words() { # PATTERN: a line of the log that is nothing else
	wait_for_line "$log" "[^ ]* [^ ]* F $1\$" "$containerd"
}

container_status() { cri ContainerStatus "{\"id\": \"${1:-$container}\"}" | jq -c .status; }
sandbox_status() { cri PodSandboxStatus "{\"id\": \"$1\"}" | jq -c .status; }
sandbox_ip() { sandbox_status "$sandbox" | jq -r .network.ip; }
# States of containers: 0 created, 1 running, 2 exited; of sandboxes 0 ready, 1 not.
container_is() { [ "$(container_status "$1" | jq .state)" = "$2" ]; }
sandbox_is() { [ "$(sandbox_status "$1" | jq .state)" = "$2" ]; }
# The exit code, when it has ended.
exit_code() {
	until_true container_is "${1:-$container}" 2
	container_status "${1:-$container}" | jq .exit_code
}
exec_sync() { # CONTAINER COMMAND...: its output
	local id=$1
	shift
	cri ExecSync "{\"id\": \"$id\", \"cmd\": $(jq -cn '$ARGS.positional' --args -- "$@")}" | jq -r '.stdout | @base64d'
}
remove_sandbox() { cri RemovePodSandbox "{\"id\": \"$sandbox\"}" >/dev/null; }

# Of all pods nothing is left: namespaces and addresses of the network, mounts, snapshots, processes, control groups.
pods_gone() {
	equal "$(cri ListPodSandbox | jq -c .items) $(cri ListContainers | jq -c .containers)" "[] []" "what is left"
	equal "$(c task ls -q)$(c container ls -q)" "" "containers that are left"
	shims_gone
	equal "$("$husk_bin" "--dir=$data" list --no-legend)" "" "pods that are left"
	equal "$(find /sys/fs/cgroup -type d | grep -Ff "$work/sandboxes")" "" "control groups that are left"
	equal "$(ls -A /run/netns)" "" "network namespaces that are left"
	equal "$(find /var/lib/cni/networks/cri -name "$subnet.*")" "" "addresses that are left"
	equal "$(find "$work/state/io.containerd.runtime.v2.task" -mindepth 2)" "" "bundles that are left"
	equal "$(awk -v dir="$work/state/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo)" "" "mounts that are left"
}
