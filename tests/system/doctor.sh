#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# husk doctor tells the truth: its exit code says whether a pod can run, each miss has a remedy.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq unshare setpriv
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

say "a host without /dev/kvm, and one where it may not be opened"
# other_dev COMMAND...: husk doctor with a /dev of its own, which COMMAND makes complete. /dev/shm stays: the test may be there.
other_dev() {
	mkdir -p "$work/dev"
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare -m sh -ec 'dev=$1 husk=$2 data=$3; shift 3
		mount -t tmpfs none "$dev"
		for name in null zero full random urandom tty; do
			: >"$dev/$name"
			mount --bind "/dev/$name" "$dev/$name"
		done
		mkdir "$dev/shm"
		mount --rbind /dev/shm "$dev/shm"
		mount --move "$dev" /dev
		"$@"
		exec setpriv --bounding-set=-dac_override,-dac_read_search "$husk" "--dir=$data" doctor --format=json' \
		other_dev "$work/dev" "$husk_bin" "$data" "$@"
}
check_value() { # NAME WANT
	equal "$(jq -r ".checks[] | select(.name == \"$1\") | .value" "$work/out")" "$2" "$1"
}
other_dev true >"$work/out" || die "no pod could run"
check_value kvm absent
check_value acceleration tcg
other_dev mknod -m 0 /dev/kvm c 10 232 >"$work/out" || die "no pod could run"
check_value kvm "no permission"
check_value acceleration tcg

say "a host without QEMU"
mkdir "$work/bin"
expect 1 env PATH="$work/bin" "$husk_bin" "--dir=$data" doctor
match "$out" "qemu-system-x86" "remedy"
