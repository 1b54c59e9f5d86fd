#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034,SC2154
# Pods of Kubernetes by runc, and by husk in VMs and in namespaces: tools/bench cri [ROUNDS]. One containerd with its CRI plugin
# and one network for all of them, as in the tests; what the plugins of the network take is measured by scripts in their place.
set -euo pipefail
rounds=${1:-10}
export HUSK_TEST_STAGE1=kvm HUSK_TEST_LIMIT=${HUSK_TEST_LIMIT:-300}
# shellcheck source=tests/system/cri_lib.sh
. "$(dirname "$0")/../system/cri_lib.sh"
require runc

cni_bin=$work/cni
cni_times=$work/cni.times
mkdir "$cni_bin"
for plugin in bridge portmap loopback; do
	cat >"$cni_bin/$plugin" <<-END
		#!/bin/bash
		begun=\$EPOCHREALTIME
		"$plugins/$plugin"
		status=\$?
		echo "\$CNI_COMMAND \$begun \$EPOCHREALTIME" >>"$cni_times"
		exit \$status
	END
	chmod +x "$cni_bin/$plugin"
done
ln -s "$plugins/host-local" "$cni_bin/"

# husk in namespaces beside the VMs, which are the default of the tests' configuration.
config_ns=$work/etc-ns
mkdir -p "$config_ns/paths.d" "$config_ns/stage1.d"
cp "$config/paths.d/data.json" "$config_ns/paths.d/"
echo "{\"rktKind\": \"stage1\", \"rktVersion\": \"v1\", \"location\": \"$build/lib/husk/stage1-ns\"}" \
	>"$config_ns/stage1.d/stage1.json"
of_containerd='    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes'
more_runtimes="$of_containerd.runc]
      runtime_type = \"io.containerd.runc.v2\"
$of_containerd.husk-ns]
      runtime_type = \"io.containerd.husk.v2\"
$of_containerd.husk-ns.options]
        ConfigPath = \"$config_ns\""

# The image of a sandbox has to stay there for runc.
skopeo copy --quiet "oci:$(busybox_image)" "oci:$work/image:stays"
umoci config --image "$work/image:stays" --config.cmd sleep --config.cmd 1000000 >/dev/null
busybox_image() { echo "$work/image"; }

: >"$work/sandboxes"
start_cri
export CNI_TIMES=$cni_times
"$top/tests/bench/cri.py" "$work/containerd.sock" "$i" "$rounds"
pods_gone
