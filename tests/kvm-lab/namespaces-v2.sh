#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pods of namespaces on a host that has control groups of version 2 alone, where namespaces are the bounds of groups (the mount
# option "nsdelegate"): who is in which, what an app sees, what its limits do. Runs in the KVM lab, whose host is such a one.
export HUSK_TEST_STAGE1=ns HUSK_TEST_RUN_OPTIONS=
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
require jq
[ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || skip "control groups of version 1"
image=$(busybox_image)
mount -o remount,nsdelegate /sys/fs/cgroup

# group_of PID: as the host sees it.
group_of() { sed -n s/^0:://p "/proc/$1/cgroup"; }
agent() { husk stats --format=json "$uuid" | jq .agent.pid; }
app_file() { cat "/sys/fs/cgroup/husk/$uuid/$1/$2"; }
add() { # NAME OPTIONS...: an app that runs
	expect 0 husk app add "$uuid" "$image" "--name=$1" "${@:2}" -- sleep 100000
	expect 0 husk app start "--app=$1" "$uuid"
}

for users in '' --userns=host; do
	say "the agent, an app, a further process of it, an app that comes later ${users:-}"
	expect 0 husk app sandbox --detach ${users:+"$users"} --memory=200Mi
	uuid=$out
	add one --memory=40Mi
	equal "$(group_of "$(agent)")" "/husk/$uuid/agent" "group of the agent"
	equal "$(cat "/sys/fs/cgroup/husk/$uuid/cgroup.procs")" "" "processes beside them"
	equal "$(cat "/sys/fs/cgroup/husk/$uuid/memory.max")" $((200 << 20)) "limit of the pod"
	equal "$(app_file 1 memory.max)" $((40 << 20)) "limit of app one"
	expect 0 husk app exec --app=one "$uuid" cat /proc/self/cgroup
	equal "$out" "0::/" "what app one sees"
	add two --pids-limit=3
	equal "$(app_file 2 pids.max) $(app_file 2 pids.current)" "3 1" "processes of app two"
	expect 0 husk update --app=two --pids-limit=9 "$uuid"
	equal "$(app_file 2 pids.max)" 9 "limit of app two"
	expect 0 husk app rm --app=two "$uuid"
	[ ! -e "/sys/fs/cgroup/husk/$uuid/2" ] || die "the group of app two is left"
	expect 0 husk stop "$uuid"
	expect 0 husk gc --grace-period=0s
	equal "$(find /sys/fs/cgroup -name "$uuid")" "" "groups that are left"
done

say "an app that takes more than its memory is killed as a whole, and nobody else"
expect 0 husk run --detach --exit-policy=never "$image" --name=one --memory=40Mi -- sleep 100000 \
	--- "$image" --name=two -- sleep 100000
uuid=$out
expect 137 husk app exec --app=one "$uuid" dd if=/dev/zero of=/dev/null bs=60M count=1
wait_app_end "$uuid" one
expect 0 husk app status --app=one "$uuid"
match "$out" 'reason=oom-killed' "app one"
expect 0 husk app exec --app=two "$uuid" true
expect 0 husk stop "$uuid"

# user_run GROUP WORDS...: another user, in that group, runs a pod in one below /theirs, which is his.
user_run() {
	local group=$1
	shift
	(
		echo "$BASHPID" >"/sys/fs/cgroup$group/cgroup.procs"
		export HOME=$work/home
		exec setpriv --reuid=65534 --regid=65534 --clear-groups --pdeathsig=keep "$husk_bin" "--dir=$work/home/data" \
			--stage1=ns --system-config= --local-config= run --insecure-options=image --net=none --cgroup-parent=/theirs "$@"
	)
}

say "another user, in groups that are his"
install -d -o 65534 -g 65534 "$work/home"
chmod 755 "$work"
cp -r "$image" "$work/image" && chmod -R a+rX "$work/image"
echo "65534:600000:65536" >"$work/subids"
touch /etc/subuid /etc/subgid
mount --bind "$work/subids" /etc/subuid
mount --bind "$work/subids" /etc/subgid
chmod 666 /dev/fuse
mkdir -p /sys/fs/cgroup/theirs/shell
chown 65534 /sys/fs/cgroup/theirs{,/shell}{,/cgroup.procs,/cgroup.subtree_control}
expect 0 user_run /theirs/shell --memory=100Mi "$work/image" -- sh -c 'cat /proc/self/cgroup; cat /sys/fs/cgroup/memory.max'
equal "$out" $'0::/\nmax' "what his app sees"
expect 254 user_run / "$work/image" -- true
one_line_error '^stage1: pod [-0-9a-f]*: its processes may not go from our control group to its own \('
