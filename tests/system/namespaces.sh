#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pods of namespaces: what an app inside tries against the host and its own pod, each of which fails; the rows of the table
# in docs/namespaces.md; users without privileges; what is left when something of the pod is killed.
# shellcheck source=tests/system/lib.sh
export HUSK_TEST_STAGE1=ns
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/aci_lib.sh
. "$top/tests/system/aci_lib.sh"
[ "$(id -u)" -eq 0 ] || skip "needs root"
require jq unshare losetup squashfuse_ll newuidmap
image=$(busybox_image)

app_options=()
# As root of the pod, with the default capabilities, in both kinds of pods.
inside() { # SCRIPT: its output in $out
	expect 0 husk run --userns="$userns" --insecure-options=image "$image" "${app_options[@]}" --exec=/bin/sh -- -c "$1"
}

# in_vain WHAT SCRIPT: prints nothing that begins with "broke".
in_vain() {
	inside "$2"
	! grep -q '^broke' <<<"$out" || die "$userns: $1: $out"
}

host_secret=$work/host-secret
echo of-the-host >"$host_secret"
modprobe -q loop || :

say "doctor says beforehand if the data directory cannot hold what apps change"
expect 0 husk doctor
match "$out" 'ok +changes +yes' "doctor on this data directory"
# shellcheck disable=SC2016 # expanded by the inner shell
unshare -m sh -ec 'mkdir "$1" && mount -t tmpfs none "$1" && cd "$1" && mkdir l u w o && mount -t overlay -o lowerdir=l,upperdir=u,workdir=w none o
	! "$2" --dir=o/data --stage1=ns doctor' - "$work/tmpfs" "$husk_bin" >"$work/out" || die "doctor on an overlay: $(cat "$work/out")"
match "$(cat "$work/out")" 'changes +no +data directory: its file system cannot be' "doctor on an overlay"
match "$(cat "$work/out")" 'another file system, such as ext4, xfs or tmpfs: --dir=DIR' "remedy"

say "doctor says that no pod can run where there are no user namespaces"
# The setting is that of the namespace in which it is written.
# shellcheck disable=SC2016 # expanded by the inner shell
expect 1 unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' - "$husk_bin" "--dir=$data" doctor
match "$out" 'MISS +user-namespaces +no +user namespace: not allowed here' "the check"

say "users and groups that a user namespace does not have"
for words in --user=70000 --user=5:70000 --group=70000 --supplementary-gids=70000; do
	kind=group
	[ "$words" != --user=70000 ] || kind=user
	case $words in
	--supp*) expect 203 husk run "$image" "$words" -- true ;; # by then the app's process is there
	*) expect 254 husk run "$image" "$words" -- true ;;
	esac
	one_line_error "^stage1: app \"busybox\": (Error|app.add): $kind 70000 does not exist in the user namespace of this pod, where the last one is 65535 \(choose another $kind, or give --userns=host\)"
	expect 0 husk run --userns=host "$image" "$words" -- true
done
for words in kind=empty kind=empty,medium=memory; do
	for kind in user group; do
		expect 254 husk run --volume="v,$words,${kind:0:1}id=70000" --mount=volume=v,target=/v "$image" -- true
		one_line_error "^stage1: app \"busybox\": app.add: $kind 70000 does not exist in the user namespace of this pod"
	done
done
expect 0 husk run "$image" --user=65535 --group=65535 --supplementary-gids=65535 -- id -u
equal "$out" 65535 "the last user there is"

for userns in host private; do
	say "--userns=$userns: nothing of the host is to be seen"
	inside 'cat /proc/self/mountinfo /proc/self/mounts /proc/self/cgroup; readlink /proc/*/exe /proc/*/root /proc/*/cwd; cat /proc/*/cmdline /proc/*/maps /proc/*/environ; ls -R /sys/fs 2>/dev/null'
	for word in "$data" "$work" "$build" "$(basename "$data")" /var/lib /home; do
		! grep -aqF "$word" <<<"$out" || die "$userns: \"$word\" can be read: $(grep -aF "$word" <<<"$out" | head -n 3)"
	done
	inside 'ls -A /; hostname; cat /proc/net/dev; ls /sys/class/net; ipcs 2>/dev/null | wc -l'
	! grep -q 'eth0\|ens' <<<"$out" || die "$userns: the host's network: $out"
	grep -qx 'husk-[0-9a-f-]*' <<<"$out" || die "$userns: the pod's host name: $out"

	say "--userns=$userns: mounts"
	in_vain "mount" '
		for fs in proc sysfs tmpfs devpts cgroup cgroup2 overlay devtmpfs bpf debugfs; do mount -t $fs none /tmp 2>/dev/null && echo broke $fs; done
		mount -o bind / /tmp 2>/dev/null && echo broke bind
		mount -o remount,rw /sys 2>/dev/null && echo broke remount; mount -o remount,rw /proc/sys 2>/dev/null && echo broke remount
		umount /proc/sys 2>/dev/null && echo broke umount; umount /sys/fs 2>/dev/null && echo broke umount
		pivot_root / /tmp 2>/dev/null && echo broke pivot; unshare -m true 2>/dev/null && echo broke unshare
		unshare -U true 2>/dev/null && echo broke user namespace; :'

	# What is tried would do no harm if it could be done: settings are written as they are, devices are only opened.
	say "--userns=$userns: /proc and /sys"
	in_vain "kernel settings" '
		for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/overcommit_memory /proc/sysrq-trigger \
			/proc/sys/kernel/modprobe /sys/kernel/uevent_helper /sys/kernel/mm/ksm/run /proc/sys/fs/suid_dumpable; do
			was=h; [ $f = /proc/sysrq-trigger ] || was=$(cat $f 2>/dev/null)
			[ ! -e $f ] || { echo "$was" >$f; } 2>/dev/null && [ -e $f ] && echo broke $f; done
		for f in /proc/kcore /proc/kallsyms /proc/keys /proc/timer_list /proc/config.gz; do
			[ ! -e $f ] || [ "$(head -c 1 $f 2>/dev/null | wc -c)" -eq 0 ] || echo broke $f; done
		cat /sys/block/*/loop/backing_file /sys/devices/virtual/block/*/loop/backing_file 2>/dev/null | sed "s/^/broke /"
		dmesg >/dev/null 2>&1 && echo broke dmesg; :'

	say "--userns=$userns: devices"
	in_vain "devices" '
		for d in "b 7 0" "b 254 0" "b 8 0" "c 1 1" "c 1 11" "c 10 237" "c 10 232" "c 10 229" "c 5 1"; do
			rm -f /tmp/node; mknod /tmp/node $d 2>/dev/null || continue
			head -c 1 /tmp/node >/dev/null 2>&1 && echo broke read $d
			{ true >>/tmp/node; } 2>/dev/null && echo broke write $d; done
		rm -f /dev/shm/node; mknod /dev/shm/node c 1 11 2>/dev/null && cat /dev/shm/node >/dev/null 2>&1 && echo broke shm; :'

	nodes=$(stat -c '%n %a %u' /dev/null /dev/full /dev/tty /dev/urandom)
	# To what they are, so that the host's are what they were if it can be done.
	in_vain "modes and owners of devices" '
		for d in /dev/null /dev/full /dev/tty /dev/urandom /proc/kallsyms; do
			chmod "$(stat -c %a $d)" $d 2>/dev/null && echo broke chmod $d; chown 0 $d 2>/dev/null && echo broke chown $d
			touch $d 2>/dev/null && echo broke touch $d; done; echo x >/dev/null || echo broke null; :'
	equal "$(stat -c '%n %a %u' /dev/null /dev/full /dev/tty /dev/urandom)" "$nodes" "devices of the host"

	say "--userns=$userns: processes: the agent, its first process, those of the host"
	inside 'cat /proc/[0-9]*/comm; :'
	equal "$out" sh "--userns=$userns: all processes that there were when it looked"
	app_options=(--init)
	in_vain "processes" '
		kill -0 1 2>/dev/null && kill -9 1 2>/dev/null; sleep 0.2; [ -d /proc/1 ] || echo broke killed
		for f in /proc/1/mem /proc/1/environ /proc/1/root/ /proc/1/cwd/ /proc/1/fd/ /proc/1/map_files/ /proc/1/exe; do
			ls $f >/dev/null 2>&1 && case $f in /proc/1/exe | *mem | *environ) head -c 1 $f >/dev/null 2>&1 && echo broke $f ;; *)
				[ -z "$(ls -A $f 2>/dev/null)" ] || echo broke $f ;; esac; done
		for p in /proc/[0-9]*/comm; do case $(cat $p) in husk-init | sh | busybox | cat) ;; *) echo broke sees $p ;; esac; done
		kill -9 -1 2>/dev/null; echo alive'
	app_options=()

	say "--userns=$userns: descriptors"
	inside 'for fd in /proc/self/fd/*; do n=${fd##*/}; case $n in 0 | 1 | 2 | 3) ;; *) echo broke $n $(readlink $fd) ;; esac; done; :'
	! grep -q '^broke' <<<"$out" || die "$userns: descriptors: $out"
done

say "what is the host's: kernel, its settings, processors, memory, time since its start"
inside 'cat /proc/sys/fs/aio-max-nr /proc/sys/kernel/pty/max'
equal "$out" "$(cat /proc/sys/fs/aio-max-nr /proc/sys/kernel/pty/max)" "what there is once for all users"
in_vain "settings of the host" 'cd /proc/sys && for f in fs/aio-max-nr kernel/pty/max vm/overcommit_memory; do
	was=$(cat $f); { echo $was >$f; } 2>/dev/null && echo broke $f; done; :'
inside 'uname -sr; nproc; sed -n "s/^MemTotal: *//p" /proc/meminfo; cut -d. -f1 /proc/uptime'
equal "$(head -n 3 <<<"$out")" "$(uname -sr; nproc; sed -n 's/^MemTotal: *//p' /proc/meminfo)" "what an app reads of its machine"
[ "$(cut -d. -f1 /proc/uptime)" -ge "$(tail -n 1 <<<"$out")" ] || die "its uptime: $out"

say "capabilities that reach beyond namespaces are not given, whatever options say"
for userns in host private; do
	# CAP_SYS_MODULE, SYS_RAWIO, SYS_TIME, SYS_BOOT: 16, 17, 25, 22. A user namespace has them, for itself: for nothing.
	# The clock is set to what it is, in case the app can.
	expect 0 husk --insecure-options=image,capabilities,seccomp run --userns=$userns "$image" -- \
		sh -c 'sed -n "s/^CapEff:.//p" /proc/self/status; date -s "@$(date +%s)" 2>&1 >/dev/null || :'
	if [ $userns = host ]; then
		equal "$((0x$(head -n 1 <<<"$out") & (1 << 16 | 1 << 17 | 1 << 22 | 1 << 25)))" 0 "capabilities in the host's user namespace"
	fi
	match "$out" 'not permitted' "--userns=$userns: setting the clock"
done
userns=private

say "devices that a pod has no business with are closed to the host's root, too, on a file system that would open them"
# FUSE and a loop device: whoever is root opens these. The third is null.
expect 0 husk --insecure-options=image,capabilities,seccomp run --userns=host "$image" -- sh -c 'mkdir /m && mount -t tmpfs none /m && cd /m
	for d in "c 10 229" "b 7 0" "c 1 3"; do mknod node $d && (: <node) 2>&1 && echo "opened $d"; rm node; done'
equal "$(grep -c 'Operation not permitted$' <<<"$out") $(grep opened <<<"$out")" "2 opened c 1 3" "what could be opened: $out"

# ---- what an image may decide: the table of docs/threat-model.md, line by line ----

mkdir -p "$work/wish.aci.d/rootfs/bin"
cp "$(command -v busybox)" "$work/wish.aci.d/rootfs/bin/busybox"
for applet in cat echo grep id mkdir mount sed sh sleep umount; do ln -s busybox "$work/wish.aci.d/rootfs/bin/$applet"; done

# image_wishes ISOLATORS [MEMBERS]: $work/wish.aci, whose app section has these.
image_wishes() {
	aci "$work/wish.aci" example.com/wish '.app = {exec: ["/bin/sh", "-c", "exit 99"], user: "0", group: "0", isolators: ['"$1"']'"${2:-}"'}' none
}
wish() { # OPTION... SCRIPT
	husk --insecure-options=image run "${@:1:$#-1}" "$work/wish.aci" "${word[@]}" --exec=/bin/sh -- -c "${!#}"
}
isolator() { echo "{name: \"os/linux/$1\", value: $2}"; }
admin=$(isolator capabilities-retain-set '{set: ["CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE", "CAP_MKNOD"]}')
ptrace=$(isolator capabilities-retain-set '{set: ["CAP_SYS_PTRACE"]}')
unfiltered=$(isolator seccomp-retain-set '{set: ["@appc.io/all"]}')
removing=$(isolator seccomp-remove-set '{set: ["chmod"]}')
narrow=$(isolator capabilities-retain-set '{set: ["CAP_CHOWN"]}')
quiet=$(isolator seccomp-retain-set '{set: ["@rkt/default-whitelist"]}')
protected=$(isolator oom-score-adj -1000)
first=$(isolator oom-score-adj 500)
no_privs=$(isolator no-new-privileges true)
amounts='{name: "resource/memory", value: {limit: "64Mi"}}, {name: "resource/cpu", value: {limit: "1"}}, {name: "husk/pids-limit", value: 100},
	{name: "os/linux/cpu-shares", value: 2000}'
limits='{name: "husk/rlimits", value: {set: ["nofile=100:200"]}}'
caps="sed -n 's/^CapEff:.//p' /proc/self/status"

say "an image alone: a whole proc to write to, which is the host's kernel"
core=$(cat /proc/sys/kernel/core_pattern)
image_wishes "$admin, $unfiltered"
word=()
expect 0 wish 'mkdir /p; mount -t proc proc /p 2>/dev/null && was=$(cat /p/sys/kernel/core_pattern) && { echo "$was" >/p/sys/kernel/core_pattern; echo h >/p/sysrq-trigger; } 2>/dev/null && echo broke; :'
equal "$out" "" "what it could do"
equal "$(cat /proc/sys/kernel/core_pattern)" "$core" "the host's core_pattern"
expect 254 wish --userns=host 'echo broke'
one_line_error '^stage1: app "wish": its image asks for CAP_SYS_ADMIN, and root of the pod is root of the host \(leave --userns=host away, or say --caps-retain for the app\)$'

say "what widens is granted behind a wall, and refused by name without, unless the command line says it"
while IFS='|' read -r wishes name options script; do
	image_wishes "$wishes"
	word=()
	expect 0 wish "$script"
	granted=$out
	expect 254 wish --userns=host "$script"
	one_line_error "^stage1: app \"wish\": its image asks for $name, and root of the pod is root of the host"
	expect 254 husk --insecure-options=image run --userns=host "$image" --name=first --exec=/bin/true --- "$work/wish.aci"
	match "$err" "app \"wish\": its image asks for $name" "as a second app"
	read -ra word <<<"$options"
	expect 0 wish --userns=host "$script"
	[ "$name" = husk/rlimits ] || equal "$out" "$granted" "what the command line grants"
done <<TABLE
$admin|CAP_SYS_ADMIN|--caps-retain=SYS_ADMIN,DAC_OVERRIDE,MKNOD|$caps
$ptrace|CAP_SYS_PTRACE|--caps-retain=SYS_PTRACE|$caps
$unfiltered|@appc.io/all|--seccomp=@appc.io/all|echo works
$removing|os/linux/seccomp-remove-set|--seccomp=mode=remove,chmod|echo works
$limits|husk/rlimits|--rlimit=nofile=300:400|ulimit -n
TABLE
image_wishes "$protected"
word=()
expect 254 wish 'echo broke'
one_line_error 'cannot lower oom_score_adj to -1000, which takes CAP_SYS_RESOURCE of the host \(give the app another --oom-score-adj\)$'
expect 254 wish --userns=host 'echo broke'
one_line_error 'its image asks for os/linux/oom-score-adj, .*say --oom-score-adj for the app'
word=(--oom-score-adj=-5)
if (echo -5 >/proc/self/oom_score_adj) 2>/dev/null; then # root of a container may not
	expect 0 wish --userns=host 'cat /proc/self/oom_score_adj'
	equal "$out" -5 "what the command line says"
fi

say "what narrows is granted everywhere"
word=()
for userns in host private; do
	image_wishes "$narrow, $quiet, $first, $no_privs, $amounts" ', supplementaryGIDs: [77], workingDirectory: "/bin",
		environment: [{name: "X", value: "y"}], ports: [{name: "web", port: 80, protocol: "tcp"}],
		mountPoints: [{name: "data", path: "/data"}], eventHandlers: [{name: "pre-start", exec: ["/bin/sh", "-c", "'"$caps"'"]},
			{name: "post-stop", exec: ["/bin/sh", "-c", "echo $(id -u) after"]}]'
	expect 0 wish --userns=$userns "$caps; "'cat /proc/self/oom_score_adj; id -G; echo $PWD $X; grep NoNewPrivs /proc/self/status; grep -c " /data " /proc/mounts'
	equal "$out" "0000000000000001
0000000000000001
500
0 77
/bin y
NoNewPrivs:	1
1
0 after" "--userns=$userns"
done

say "an app that is added to a pod later, and a manifest, which is its user's word"
image_wishes "$admin"
expect 0 husk app sandbox --userns=host --detach "${run_options[@]}"
sandbox=$out
expect 254 husk --insecure-options=image app add "$sandbox" "$work/wish.aci"
one_line_error 'app "wish": its image asks for CAP_SYS_ADMIN'
expect 0 husk --insecure-options=image app add "$sandbox" "$work/wish.aci" --caps-retain=CHOWN
expect 0 husk stop --force "$sandbox"
for words in --private-users '--userns=host --private-users'; do
	# shellcheck disable=SC2086 # words
	expect 0 husk run $words "$image" -- cat /proc/self/uid_map
	match "$out" '^ +0 +[1-9][0-9]+ +65536$' "$words: root of the pod outside"
done
expect 0 husk prepare --private-users "$image" -- cat /proc/self/uid_map
expect 0 husk run-prepared --userns=host "$out"
match "$out" '^ +0 +[1-9][0-9]+ +65536$' "as it was prepared"
expect 0 husk --insecure-options=image prepare "$work/wish.aci" --exec=/bin/sh -- -c "$caps"
prepared=$out
expect 254 husk run-prepared --userns=host "$prepared"
match "$err" 'its image asks for CAP_SYS_ADMIN' "a pod that was prepared"
jq '.apps[0].app.isolators |= map(.["husk/wish"] = true)' "$data/pods/"*"/$prepared/pod" >"$work/own.json"
expect 0 husk --insecure-options=image run --userns=host --pod-manifest="$work/own.json"

say "a network that is shared, with the host or with who has made it: seen, used, and not owned"
for userns in host private; do
	expect 0 husk run --userns=$userns --net=host "$image" -- ls /sys/class/net
	equal "$out" "$(ls /sys/class/net)" "--userns=$userns: the host's interfaces"
done
expect 0 unshare --net "$husk_bin" "--dir=$data" run --insecure-options=image --netns="/proc/$$/ns/net" "$image" --exec=/bin/sh -- -c '
	ls /sys/class/net; ip link set lo down 2>/dev/null && echo broke lo; ip link add broken type dummy 2>/dev/null && echo broke dummy
	timeout 5 nc -l -p 81 2>/dev/null; case $? in 0 | 124 | 143) echo broke port ;; esac; { echo x >/sys/class/net/lo/mtu; } 2>/dev/null && echo broke sysfs; :'
equal "$out" "$(ls /sys/class/net)" "what it sees, and what it can"

say "paths of the kernel are not opened to the host's root"
for words in paths all-run all; do
	expect 254 husk "--insecure-options=image,$words" run --userns=host "$image" -- true
	one_line_error '--insecure-options=paths opens the host.s kernel to its root in the pod \(leave --userns=host away\)$'
done
expect 0 husk --insecure-options=image,all-run run "$image" -- sh -c 'was=$(cat /proc/sys/kernel/core_pattern); { echo "$was" >/proc/sys/kernel/core_pattern; } 2>/dev/null && echo broke; { echo h >/proc/sysrq-trigger; } 2>/dev/null && echo broke; :'
equal "$out" "" "what can be written with all of it"

say "what a pod has written is there when it was killed, synced or not"
run_in_background "$image" --name=writer -- sh -c 'echo kept >/file; echo ready; exec sleep 1000'
wait_for_line "$work/pod.out" ready $pod
kill -9 "$(pgrep -P "$(cat "$data/pods/run/$uuid/pid")" husk-ns)"
wait $pod || :
expect 0 husk export "$uuid" "$work/killed.aci"
equal "$(tar -xzOf "$work/killed.aci" rootfs/file)" kept "what it had written"

say "the agent's program cannot be written, by whomever it is executed"
agent=$build/lib/husk/guest/husk-agent
before=$(sha256sum <"$agent")
inside 'printf "#!/proc/self/exe\n" >/evil; chmod 755 /evil
	(while :; do for p in /proc/[0-9]*; do { echo broken >$p/exe; } 2>/dev/null && echo broke $p; done; done) & w=$!
	i=0; while [ $i -lt 100 ]; do /evil >/dev/null 2>&1; i=$((i + 1)); done; kill $w; :'
! grep -q '^broke' <<<"$out" || die "the agent's program was opened: $out"
run_in_background "$image" -- sh -c 'printf "#!/proc/self/exe\n" >/evil; chmod 755 /evil; echo ready
	while :; do for p in /proc/[0-9]*; do { echo broken >$p/exe; } 2>/dev/null && echo broke $p; done; done'
wait_for_line "$work/pod.out" ready $pod
for _ in $(seq 10); do husk enter "$uuid" /evil >/dev/null 2>&1 || :; done
kill -TERM $pod
wait $pod || :
! grep -q '^broke' "$work/pod.out" || die "the agent's program was opened: $(cat "$work/pod.out")"
equal "$(sha256sum <"$agent")" "$before" "the agent's program"

say "an agent that never accepts a connection holds nobody up"
run_in_background "$image" --name=app -- sh -c 'echo ready; exec sleep 1000'
wait_for_line "$work/pod.out" ready $pod
keeper=$(pgrep -P "$(cat "$data/pods/run/$uuid/pid")" husk-ns)
"$top/tests/support/stop_accepting.py" "$(pgrep -P "$keeper")" "$data/pods/run/$uuid/agent.sock" >"$work/full" &
accepts_not=$!
wait_for_line "$work/full" full $accepts_not
expect 254 husk enter "$uuid" true
one_line_error '^stage1: enter: app "app": cannot reach the agent: Connection timed out$'
got=0
timeout "$vm_limit" "$husk_bin" "--dir=$data" --stage1=ns stats "$uuid" >"$work/out" 2>"$work/err" || got=$?
[ $got != 124 ] || die "husk stats is held up"
match "$(cat "$work/err")" 'app "app": cannot reach the agent' "what stats says"
expect 0 husk stop --force "$uuid"
wait $pod || :
kill $accepts_not
wait $accepts_not || :
expect 0 husk rm "$uuid"

# ---- what the host has for all ----

# uses_up OPTION... KIND: an app in the background has taken as much as it gets; how much in $taken.
uses_up() {
	run_in_background --insecure-options=image "${@:1:$#-1}" --volume=tests,kind=host,source="$build/tests",readOnly=true \
		--mount=volume=tests,target=/tests "$image" --name=app --exec=/tests/uses-up -- "${!#}"
	wait_for_line "$work/pod.out" '[0-9]*: E[A-Z]*' $pod
	taken=$(cut -d: -f1 "$work/pod.out")
}
end_pod() {
	expect 0 husk stop --force "$uuid"
	wait $pod || :
}

say "inotify instances: a pod has those of its own user, and leaves those of the host's root"
uses_up inotify
[ "$taken" -ge 1 ] || die "an app gets none"
"$build/tests/uses-up" inotify >"$work/of-root" &
root=$!
wait_for_line "$work/of-root" '[0-9]*: E[A-Z]*' $root
kill $root
[ "$(cut -d: -f1 "$work/of-root")" -ge 1 ] || die "root of the host has none left: $(cat "$work/of-root")"
end_pod

say "processes: 4096 for a pod, or as many as --pids-limit says; it can be stopped all the same"
limit_of() { cat /sys/fs/cgroup{,/pids}/husk/"$1"/pids.max 2>/dev/null; }
for userns in host private; do
	uses_up --userns=$userns --pids-limit=50 tasks
	# The agent, and the app, which does not count itself.
	equal "$taken $(limit_of "$uuid")" "48 50" "processes that an app gets"
	expect 254 husk enter "$uuid" true
	one_line_error '^stage1: enter: app "app" has as many processes as its pod may have$'
	end_pod
	run_in_background --userns=$userns "$image" -- sh -c 'echo ready; exec sleep 1000'
	wait_for_line "$work/pod.out" ready $pod
	equal "$(limit_of "$uuid")" 4096 "the limit that nobody has asked for"
	end_pod
done
for bad in 7 4194305 -1 many ''; do
	expect 254 husk run --pids-limit="$bad" "$image"
	one_line_error "--pids-limit=$bad: not a number from 8 to 4194304"
done

# ---- what ends when something is killed ----

mounts_left() { # mounts, loop devices and processes of ours
	grep -F "$data" /proc/self/mountinfo || :
	losetup --list --noheadings --output BACK-FILE | grep -F "$data" || :
	pgrep -af "husk-ns --uuid=$uuid" || :
	pod_processes
}

wait_nothing_left() {
	local deadline=$((SECONDS + gone_limit))
	while [ -n "$(mounts_left)" ]; do
		[ $SECONDS -lt $deadline ] || die "$1: left: $(mounts_left)"
		read -rt 0.05 <> <(:) || :
	done
}

# Also before gc does something about it.
wait_app_gone() {
	local deadline=$((SECONDS + gone_limit))
	while pgrep -f "sleep $nap" >/dev/null; do
		[ $SECONDS -lt $deadline ] || die "the app lives on"
		read -rt 0.05 <> <(:) || :
	done
}

nap=$((1000000 + $$)) # nobody else sleeps as long
for userns in host private; do
	for victim in supervisor husk-ns husk-agent husk-init; do
		say "--userns=$userns: SIGKILL of $victim"
		run_in_background --userns=$userns "$image" --init -- sh -c "echo ready; exec sleep $nap"
		wait_for_line "$work/pod.out" ready $pod
		supervisor=$(cat "$data/pods/run/$uuid/pid")
		keeper=$(pgrep -P "$supervisor" husk-ns)
		case $victim in
		supervisor) kill -9 "$supervisor" ;;
		husk-ns) kill -9 "$keeper" ;;
		husk-agent) kill -9 "$(pgrep -P "$keeper" husk-agent)" ;;
		husk-init) kill -9 "$(pgrep -P "$(pgrep -P "$keeper" husk-agent)" husk-init)" ;;
		esac
		status=0
		wait $pod || status=$?
		case $victim in
		supervisor) equal $status 137 "exit status" ;;
		husk-init) equal $status 9 "exit status: the app goes with it" ;;
		*) equal "$status $(wc -l <"$work/pod.err")" "254 1" "exit status and lines: $(cat "$work/pod.err")" ;;
		esac
		[ $victim != husk-ns ] || wait_app_gone
		expect 0 husk gc --grace-period=0s
		wait_nothing_left "$victim"
		[ ! -e "$data/pods/run/$uuid" ] || die "the pod is still there"
		! pgrep -f "sleep $nap" >/dev/null || die "$victim: the app lives on"
	done
done

# ---- another user, with and without subordinate ids; everything on files of a mount namespace of its own ----

cat >"$work/as-user" <<'SCRIPT'
set -e
mount --make-rprivate /
printf '%s' "$SUBIDS" >"$WORK/subids"
touch /etc/subuid /etc/subgid
mount --bind "$WORK/subids" /etc/subuid
mount --bind "$WORK/subids" /etc/subgid
mknod -m 666 "$WORK/fuse" c 10 229
mount --bind "$WORK/fuse" /dev/fuse
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
SCRIPT
chmod 755 "$work"
cp -r "$image" "$work/image"
chmod -R a+rX "$work/image"
home=$work/home
mkdir "$home"
chown 65534:65534 "$home"
as_user() { # COMMAND...: as a user with the subordinate ids $subids
	rm -f "$work/fuse"
	HOME=$home WORK=$work SUBIDS=$subids unshare --mount -- bash "$work/as-user" "$@"
}
user_husk() { as_user "$husk_bin" "--dir=$home/data" "$@"; }

say "in a chroot, which pods would be in, too"
expect 254 unshare --mount bash -c 'mount --make-rprivate / && mkdir "$1" && mount --rbind / "$1" && exec chroot "$@"' sh \
	"$work/chroot" "$husk_bin" "--dir=$data" run --insecure-options=image "$image" --exec=/bin/true
match "$err" 'stage1: namespaces: a user namespace is not permitted here \(in a chroot\(2\) it never is' "the refusal"
expect 254 unshare --mount bash -c 'mount --make-rprivate / && mount --rbind / "$1" && exec chroot "$@"' sh \
	"$work/chroot" "$husk_bin" "--dir=$data" run --userns=host --insecure-options=image "$image" --exec=/bin/true
match "$err" 'stage1: namespaces: husk is in a chroot\(2\)' "the refusal without a user namespace"

say "root of a container without loop devices"
mkdir "$work/nodev"
cat >"$work/as-container" <<'SCRIPT'
set -e
mount --make-rprivate /
mount -t tmpfs -o nodev none "$WORK/nodev"
mknod "$WORK/nodev/loop" c 10 237
mount --bind "$WORK/nodev/loop" /dev/loop-control
rm -f "$WORK/fuse"
mknod -m "$FUSE_MODE" "$WORK/fuse" c 10 229
mount --bind "$WORK/fuse" /dev/fuse
exec "$@"
SCRIPT
husk_in_container() { WORK=$work FUSE_MODE=$fuse_mode unshare --mount bash "$work/as-container" "$husk_bin" "--dir=$data" "$@"; }
in_container() { husk_in_container run --insecure-options=image "$@"; }
for userns in host private; do
	fuse_mode=666
	expect 0 in_container --userns=$userns "$image" --exec=/bin/sh -- -c 'cat /proc/self/mountinfo; echo works'
	match "$out" works "its app"
done
expect 0 husk_in_container doctor
match "$out" 'ok +images +squashfuse' "what doctor says of it"
fuse_mode=600
expect 1 husk_in_container doctor
match "$out" 'MISS +images +loop devices.*No pod can run' "what doctor says without squashfuse"
expect 254 in_container "$image" --exec=/bin/true
one_line_error '/dev/fuse, which root of the pod opens \(chmod 666\): Permission denied'

say "rootless: root of the pod is the user, all others are subordinate ids"
subids=$'nobody:300000:65536\n'
expect 0 user_husk run --insecure-options=image "$work/image" --exec=/bin/sh -- -c \
	'id -u; cat /proc/self/uid_map; echo x >/x; chown 1000:1000 /x; stat -c "%u %g" /x; mkdir -m 700 /p; chown 5 /p; cat /etc/passwd | wc -l'
equal "$(tr -s ' \n' '  ' <<<"$out")" "0 0 65534 1 1 300000 65535 1000 1000 2 " "what root there sees"
equal "$(stat -c '%u %g' "$home"/data/pods/run/*/scratch/apps/*/upper/x)" "300999 300999" "what the host sees"
expect 0 user_husk export "$(basename "$home"/data/pods/run/*)" "$home/x.aci"
equal "$(tar -tvzf "$home/x.aci" --numeric-owner rootfs/x | awk '{print $2}')" 1000/1000 "the owner in an archive"
expect 0 user_husk gc # what the app wrote stays
expect 0 user_husk export "$(basename "$home"/data/pods/exited-garbage/*)" "$home/again.aci"
cmp <(tar -xzOf "$home/x.aci" rootfs/x) <(tar -xzOf "$home/again.aci" rootfs/x) || die "what is exported after gc"
expect 7 user_husk run --insecure-options=image "$work/image" --exec=/bin/sh -- -c 'exit 7'
expect 0 user_husk run --insecure-options=image --sysctl=net.core.somaxconn=77 "$work/image" --exec=/bin/cat -- \
	/proc/sys/net/core/somaxconn
equal "$out" 77 "a parameter of its own network"
expect 254 user_husk run --insecure-options=image --sysctl=kernel.core_pattern=x "$work/image"
one_line_error 'sysctl "kernel.core_pattern" is of the whole host'
expect 254 user_husk run --insecure-options=image --userns=host "$work/image"
match "$err" '^run: --userns=host: only root may start such pods' "what a user may not do"
expect 0 user_husk gc --grace-period=0s
equal "$(find "$home/data/pods" -mindepth 2 | wc -l)" 0 "what gc leaves"

say "an app that comes later brings what is his; what is not stays so"
mkdir "$home/shared" "$work/theirs"
chown 65534:65534 "$home/shared"
expect 0 user_husk app sandbox --net=none --detach
uuid=$out
expect 0 user_husk app add --insecure-options=image "$uuid" "$work/image" --name=app "--mnt-volume=name=h,kind=host,target=/h,source=$home/shared" \
	"--mnt-volume=name=t,kind=host,target=/t,source=$work/theirs" --exec=/bin/sleep -- 1000
expect 0 user_husk app start --app=app "$uuid"
expect 0 user_husk app exec --app=app "$uuid" sh -c 'echo x >/h/file; chown 1000:1000 /h/file; echo x 2>/dev/null >/t/file || echo not his; stat -c %u /h /t'
equal "$(tr '\n' ' ' <<<"$out")" "not his 0 65534 " "in the pod"
equal "$(stat -c '%u %g' "$home/shared/file")" "300999 300999" "on the host"
expect 0 user_husk app rm --grace=0 --app=app "$uuid"
! grep -F /host/apps/app/ "/proc/$(pgrep -x husk-agent | tail -n 1)/mountinfo" || die "a volume is still mounted"
expect 0 user_husk stop "$uuid"

say "rootless, where set-user-ID programs are none: what is missing"
expect 254 as_user setpriv --no-new-privs "$husk_bin" "--dir=$home/data" run --insecure-options=image "$work/image" --exec=/bin/true
one_line_error 'user namespace: [^ ]*/newuidmap failed: .*not permitted \(it needs its set-user-ID bit, and no no_new_privs\)$'

say "rootless: a limit of processes needs a control group, which the user does not have here"
expect 254 user_husk run --insecure-options=image --pids-limit=50 "$work/image" --exec=/bin/true
match "$err" 'limits of the pod: .*control group' "what is missing"
expect 0 user_husk gc --grace-period=0s

say "rootless, without subordinate ids: what is missing, before anything is made"
subids=
rm -r "$home/data"
expect 254 user_husk run --insecure-options=image "$work/image" --exec=/bin/true
match "$err" 'has no 65535 subordinate ids for user "nobody" \(as root: usermod' "what is missing"
wait_nothing_left rootless
