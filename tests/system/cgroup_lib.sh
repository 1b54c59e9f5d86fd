# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# The control groups of a pod on the host, of either version, and what it has used of a processor. Its UUID is in $uuid, the
# path of what it was put below in $parent.
[ "$(id -u)" -eq 0 ] || skip "needs root"
# Where the kernel has no such groups, nothing here can be seen.
[ -e /sys/fs/cgroup/memory ] || grep -q memory /sys/fs/cgroup/cgroup.controllers || skip "no control groups for memory"

is_v1() { [ -e "/sys/fs/cgroup/$1" ]; }
# group CONTROLLER: the directory of the pod's group that has it.
group() {
	local dir=/sys/fs/cgroup
	! is_v1 "$1" || dir+=/$1
	dir+=${parent:+/$parent}/husk/$uuid
	echo "$dir"
}
# value CONTROLLER FILE-OF-VERSION-1 FILE-OF-VERSION-2
value() {
	if is_v1 "$1"; then cat "$(group "$1")/$2"; else cat "$(group "$1")/$3"; fi
}
used_us() {
	if is_v1 cpuacct; then
		echo $(($(cat "$(group cpuacct)/cpuacct.usage") / 1000))
	else
		awk '/^usage_usec/ {print $2}' "$(group cpu)/cpu.stat"
	fi
}
# uses_at_most HUNDREDTHS of a processor, in SECONDS from now on.
uses_at_most() {
	local from to started ended
	from=$(used_us) started=$(date +%s%N)
	read -rt "$2" <> <(:) || : # what is measured is a rate
	to=$(used_us) ended=$(date +%s%N)
	[ $(((to - from) * 1000 * 100)) -le $(((ended - started) * $1)) ] ||
		die "it took $((to - from)) us in $(((ended - started) / 1000)) us"
}
