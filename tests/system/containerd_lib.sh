# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# A containerd of the test's own, with the shim; sourced behind lib.sh, in the directory $work.

require containerd ctr skopeo jq
[ "$(id -u)" = 0 ] || skip "containerd needs root here"

# ---- a containerd of its own, and husk configured for it ----

config=$work/etc
mkdir -p "$config/paths.d" "$config/stage1.d"
echo "{\"rktKind\": \"paths\", \"rktVersion\": \"v1\", \"data\": \"$data\"}" >"$config/paths.d/data.json"
options=$(printf '%s\n' "${run_options[@]}" | sed -n 's/^--\([^=]*\)=\(.*\)$/"\1": "\2"/p' | paste -sd,)
echo "{\"rktKind\": \"stage1\", \"rktVersion\": \"v1\", \"location\": \"$build/lib/husk/stage1-$stage1\", \"options\": {$options}}" \
	>"$config/stage1.d/stage1.json"
cat >"$work/containerd.toml" <<-END
	version = 2
	root = "$work/root"
	state = "$work/state"
	disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
	[grpc]
	  address = "$work/containerd.sock"
END

start_containerd() {
	PATH=$work/bin:$build/bin:$PATH setsid containerd -c "$work/containerd.toml" >>"$work/containerd.log" 2>&1 &
	containerd=$!
	until timeout "$gone_limit" ctr -a "$work/containerd.sock" version >/dev/null 2>&1; do
		kill -0 $containerd 2>/dev/null || die "containerd: $(tail -3 "$work/containerd.log")"
		read -rt 0.1 <> <(:) || :
	done
}

kill_containerd() {
	kill -9 "$containerd"
	wait "$containerd" 2>/dev/null || :
	containerd= # the number may be that of another process soon
}

end_containerd() {
	kill "$containerd" 2>/dev/null || :
	wait "$containerd" 2>/dev/null || :
	containerd=
}
containerd=
# After a failure it leaves shims, and mounts of what it has run. finish sees the status of what is in front of it.
end_all() {
	local status=$?
	set +e
	[ -z "$containerd" ] || end_containerd
	pkill -f "[c]ontainerd-shim-husk-v2 .*$work/" || :
	awk -v dir="$work/state/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo | xargs -r umount -l
	(exit $status)
	finish
}
trap end_all EXIT

c() { timeout --kill-after=10 "$vm_limit" ctr -a "$work/containerd.sock" "$@"; }
run() { # OPTIONS... IMAGE NAME COMMAND...
	c run --runtime io.containerd.husk.v2 --runtime-config-path "$config" "$@"
}
# Events are in $work/events from now on, written by $events. Who watches says nothing until there is one: so some are made.
watch_events() {
	: >"$work/events"
	timeout "$vm_limit" ctr -a "$work/containerd.sock" events >"$work/events" &
	events=$!
	until [ -s "$work/events" ]; do
		kill -0 $events 2>/dev/null || die "ctr events has ended"
		c image label "$i" "made=$SECONDS$RANDOM" >/dev/null
		read -rt 0.1 <> <(:) || :
	done
}
# The state of a task, as ctr has it.
state() { c task ls | awk -v id="$1" '$1 == id { print $3 }'; }
wait_state() { # ID STATE
	local deadline=$((SECONDS + vm_limit))
	until [ "$(state "$1")" = "$2" ]; do
		[ $SECONDS -lt $deadline ] || die "task $1 is $(state "$1"), not $2"
		read -rt 0.1 <> <(:) || :
	done
}
shims_gone() {
	local deadline=$((SECONDS + gone_limit))
	while pgrep -f "containerd-shim-husk-v2.*$work/" >/dev/null; do
		[ $SECONDS -lt $deadline ] || die "a shim is left: $(pgrep -af "containerd-shim-husk-v2.*$work/")"
		read -rt 0.1 <> <(:) || :
	done
}
# How many root directories were packed.
packed() { grep -c '": packed in [0-9]* ms, an image of [0-9]* KiB for ' "$work/containerd.log" || :; }
# Nothing of a container is left: no pod, no shim, no bundle.
nothing_left() {
	equal "$(c task ls -q)$(c container ls -q)" "" "containers that are left"
	shims_gone
	equal "$("$husk_bin" "--dir=$data" list --no-legend)" "" "pods that are left"
	[ -z "$(ls -A "$work/state/io.containerd.runtime.v2.task/default" 2>/dev/null)" ] || die "a bundle is left"
}

# On some file systems there is no overlayfs, that of a container for instance. (grep -q would end before ctr.)
has_overlayfs() { c plugins ls | grep '\.snapshotter\..*overlayfs .*ok' >/dev/null; }

# An image that containerd has unpacked: $i. Starts containerd.
import_busybox() {
	image=$(busybox_image)
	skopeo copy --quiet "oci:$image" "oci-archive:$work/busybox.tar:busybox:1"
	start_containerd
	has_overlayfs || export CONTAINERD_SNAPSHOTTER=native
	c image import "$work/busybox.tar" >/dev/null
	i=busybox:1
}
