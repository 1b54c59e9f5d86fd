#!/usr/bin/env bash
# husk doctor tells the truth: its exit code says whether a pod can run, each miss has a remedy.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq
image=$(busybox_image)

expect 0 husk doctor
match "$out" "acceleration" "table"
expect 0 husk doctor --format=json
jq -e '.checks | length > 5 and all(.ok or .remedy != "")' "$work/out" >/dev/null ||
	die "a check that misses has no remedy: $out"
accel=$(jq -r '.checks[] | select(.name == "acceleration") | .value' "$work/out")
kvm_ok=$(jq -r '.checks[] | select(.name == "kvm") | .ok' "$work/out")
case $accel/$kvm_ok in
tcg/false | kvm/true) say "acceleration: $accel" ;;
*) die "acceleration is $accel, but kvm is $kvm_ok" ;;
esac

say "what an option of every run says must be among what doctor found"
for word in "${run_options[@]}"; do
	case $word in
	--accel=kvm) equal "$accel" kvm "acceleration" ;;
	--vsock=kernel) equal "$(jq -r '.checks[] | select(.name == "vsock") | .value' "$work/out")" kernel vsock ;;
	esac
done

say "what doctor promises, run does"
expect 0 husk run "$image" -- true

say "a host without QEMU"
mkdir "$work/bin"
expect 1 env PATH="$work/bin" "$husk_bin" "--dir=$data" doctor
match "$out" "qemu-system-x86" "remedy"
