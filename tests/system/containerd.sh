#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# containerd runs containers as pods of husk: ctr, a containerd of the test's own, and what is left when one of them dies.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/containerd_lib.sh
. "$(dirname "$0")/containerd_lib.sh"
require umoci

say "an image that containerd unpacks"
import_busybox
PATH=$build/bin:$PATH husk doctor --format=json >"$work/out" || :
jq -e --arg path "$build/bin/containerd-shim-husk-v2" \
	'.checks[] | select(.name == "containerd-shim-husk-v2") | .ok and .value == $path' "$work/out" >/dev/null ||
	die "husk doctor does not find the shim"

say "exit code, both outputs, no input"
code=0
run --rm $i exits sh -c 'echo out; echo err >&2; exit 7' >"$work/out" 2>"$work/err" </dev/null || code=$?
equal "$code $(cat "$work/out")" "7 out" "exit code and output"
match "$(cat "$work/err")" '^err' "errors"
nothing_left

say "input, to its end"
equal "$(echo some words | run --rm $i reads cat)" "some words" "what was read"
head -c $((${HUSK_TEST_STREAM_MIB:-64} << 20)) /dev/urandom >"$work/bytes"
# ctr may leave the last of an output in the fifo when it hears of the end meanwhile. So the container waits for its reader.
mkdir "$work/rest"
size=$(stat -c %s "$work/bytes")
# shellcheck disable=SC2094 # both read it
run --rm --mount "type=bind,src=$work/rest,dst=/rest,options=rbind:rw" $i copies sh -c \
	"cat; for n in \$(seq $((10 * vm_limit))); do [ ! -e /rest/read ] || exit 0; sleep 0.1; done; exit 1" \
	<"$work/bytes" | { head -c "$size" | cmp - "$work/bytes" && : >"$work/rest/read" && [ "$(wc -c)" = 0 ]; } || die "bytes are lost"
# An output to its end without ctr: the shim writes it into a file.
run -d --log-uri "file://$work/copy" --mount "type=bind,src=$work/bytes,dst=/bytes,options=bind:ro" $i writes cat /bytes </dev/null
wait_state writes STOPPED
cmp "$work/copy" "$work/bytes" || die "bytes are lost at the end"
c task rm writes >/dev/null
c container rm writes

say "what the specification of the container says"
out=$(run --rm --env A=1 --cwd /tmp --read-only --cap-drop CAP_CHOWN --memory-limit 33554432 $i says sh -c \
	'echo $A; id -u; pwd; touch /x 2>&1; touch /run/x && grep " /run " /proc/mounts; grep -E "NoNewPrivs|CapBnd" /proc/self/status' </dev/null)
equal "$(head -3 <<<"$out" | paste -sd' ')" "1 0 /tmp" "variable, user, directory"
match "$out" 'Read-only file system' "its root directory"
match "$out" 'tmpfs /run tmpfs rw,nosuid,.*size=65536k' "what it may write to"
match "$out" 'CapBnd:.00000000a80425fa.NoNewPrivs:.1' "privileges"

say "directories and files of the host"
mkdir "$work/mine"
echo of the host >"$work/mine/file"
equal "$(run --rm --mount "type=bind,src=$work/mine,dst=/mine,options=rbind:rw" \
	--mount "type=bind,src=$work/mine/file,dst=/etc/deep/file,options=bind:ro" $i binds sh -c \
	'cat /etc/deep/file; echo new 2>/dev/null >/etc/deep/file || echo read-only; echo back >/mine/new' </dev/null | paste -sd,)" \
	"of the host,read-only" "what it sees"
equal "$(cat "$work/mine/new")" back "what it has left"
nothing_left

say "a root directory is read once for all containers of the same layers, and anew where something is written"
expected=0
[ "${CONTAINERD_SNAPSHOTTER-}" != native ] || expected=2 # it tells nothing of layers
known=$(packed)
run --rm $i layers1 true </dev/null
run --rm $i layers2 true </dev/null
equal "$(packed)" $((known + expected)) "how often it was packed"
if [ $expected = 0 ]; then
	c container create --runtime io.containerd.husk.v2 --runtime-config-path "$config" $i written cat /new
	upper=$(c snapshots mounts /mnt written | sed -n 's/.*upperdir=\([^,]*\).*/\1/p')
	echo written >"$upper/new"
	equal "$(c task start written </dev/null)" written "what is in it"
	equal "$(packed)" $((known + 1)) "how often it was packed"
	c container rm written
fi
nothing_left

say "an image of many layers, whose directories are more than mount(2) takes"
cp -r "$image" "$work/layout"
echo in-the-last-layer >"$work/last"
tar -C "$work" -cf "$work/layer.tar" last
for _ in {1..64}; do
	umoci raw add-layer --image "$work/layout:busybox" "$work/layer.tar"
done
skopeo copy --quiet "oci:$work/layout:busybox" "oci-archive:$work/layers.tar:layers:1"
c image import "$work/layers.tar" >/dev/null
equal "$(run --rm layers:1 layers cat /last </dev/null)" in-the-last-layer "its file"
nothing_left

say "a specification in a file, and a root directory that is not containerd's"
"$husk_bin" "--dir=$data" --insecure-options=image fetch "$image" >/dev/null
"$husk_bin" "--dir=$data" image extract --rootfs-only busybox "$work/tree"
c container create --runtime io.containerd.husk.v2 $i model
c container info model --spec | jq --arg root "$work/tree" '.root.path = $root | .hostname = "box" |
	.process.user = {uid: 1000, gid: 100, additionalGids: [5, 6]} |
	.process.rlimits = [{type: "RLIMIT_NOFILE", soft: 99, hard: 99}] |
	.process.args = ["sh", "-c", "id -u; id -G; hostname; ulimit -n; exit 5"]' >"$work/config.json"
c container rm model
code=0
out=$(run --rm --config "$work/config.json" filed </dev/null) || code=$?
equal "$code $(paste -sd' ' <<<"$out")" "5 1000 100 5 6 box 99" "what it says"
equal "$(run --rm --seccomp $i filtered sh -c 'grep -c "^Seccomp:.*2" /proc/self/status' </dev/null)" 1 "with containerd's profile"
run --rm --privileged $i privileged sh -c 'mkdir /m && mount -t tmpfs tmpfs /m && : <>/proc/sys/kernel/msgmax' </dev/null
# Larger than what is read, and how that is said.
refused_spec() { # FILTER PATTERN
	jq "$1" "$work/config.json" >"$work/large.json"
	! run --rm --config "$work/large.json" large </dev/null >"$work/refused" 2>&1 || die "$1 is taken"
	grep -q "config.json: $2" "$work/refused" || die "$(cat "$work/refused")"
}
refused_spec '.mounts += [range(100000) | {destination: "/m\(.)", type: "tmpfs", source: "tmpfs"}]' 'larger than 4 MiB'
refused_spec '.mounts += [range(1025) | {destination: "/m\(.)", type: "tmpfs", source: "tmpfs"}]' '"mounts" has 10[0-9]* members, more than 1024'
refused_spec '.process.env += [range(100000) | "V\(.)=x"]' '"process.env" has more than 16384 members'
refused_spec '.process.args += ["x" * 1000000]' '"process.args" is not a list of texts of at most [0-9]* bytes'
nothing_left

say "file systems in memory: a size, options; and what of the host is only read is so with all below"
run_tmpfs() {
	run --rm --mount "type=tmpfs,src=tmpfs,dst=/cache,options=$1" $i tmpfs sh -c "$2" </dev/null
}
equal "$(run_tmpfs size=64k:noexec:nosuid:nodev:mode=0711 'grep -o " /cache tmpfs rw[a-z0-9=,]*mode=711" /proc/mounts; stat -c %a /cache
	cp /bin/busybox /cache/b 2>/dev/null || echo full; rm /cache/b; echo "echo ran" >/cache/s; chmod +x /cache/s; /cache/s 2>/dev/null || echo not executed')" \
	"$(printf '%s\n' ' /cache tmpfs rw,nosuid,nodev,noexec,relatime,size=64k,mode=711' 711 full 'not executed')" "a small one"
equal "$(run_tmpfs ro 'stat -c %a /cache; touch /cache/x 2>/dev/null || echo read-only' | paste -sd,)" "1777,read-only" "one that is only read"
refused_tmpfs() {
	! run_tmpfs "$1" true 2>"$work/refused" || die "$1 is taken"
	grep -q "the mount at ./cache.: .*$1" "$work/refused" || die "$(cat "$work/refused")"
}
equal "$(run --rm $i shm sh -c 'set -- $(df -k /dev/shm | tail -n 1); echo $2; head -c 70000000 /dev/zero 2>/dev/null >/dev/shm/x || wc -c </dev/shm/x' </dev/null |
	paste -sd,)" "65536,67108864" "shared memory, of which ctr has 64 MiB"
if is_vm; then # nothing of the host is in there, so nobody serves it
	cp "$config/stage1.d/stage1.json" "$work/as-ever"
	jq '.options.virtiofsd = "/nonexistent"' "$work/as-ever" >"$config/stage1.d/stage1.json"
	run --rm --mount type=tmpfs,src=tmpfs,dst=/cache $i alone df /cache </dev/null >/dev/null
	mv "$work/as-ever" "$config/stage1.d/stage1.json"
fi
refused_tmpfs size=50%
refused_tmpfs nr_inodes=7
mkdir "$work/host-tree" "$work/host-tree/below"
mount -t tmpfs below "$work/host-tree/below"
equal "$(run --rm --mount "type=bind,src=$work/host-tree,dst=/h,options=rbind:rro" $i rro sh -c 'touch /h/below/x 2>/dev/null || echo read-only' </dev/null)" \
	read-only "below"
umount "$work/host-tree/below"
nothing_left

say "in the background: states, a signal, the end"
run -d $i bg sh -c 'trap "exit 9" TERM; trap "echo usr1 >/tmp/got" USR1; touch /tmp/up; while :; do sleep 0.1; done' </dev/null
equal "$(state bg)" RUNNING "state"
pid=$(c task ls | awk '$1 == "bg" { print $2 }')
[ -d "/proc/$pid" ] || die "there is no process $pid, which stands for the container"
uuid=$("$husk_bin" "--dir=$data" list --full --no-legend | awk '{ print $1 }')
until_true husk app exec --app=bg "$uuid" -- test -e /tmp/up
c task kill -s USR1 bg
until_true husk app exec --app=bg "$uuid" -- test -e /tmp/got
equal "$(state bg)" RUNNING "state after a signal that it catches"
c task kill -s TERM bg
wait_state bg STOPPED
code=0
c task kill bg 2>"$work/err" || code=$?
match "$code $(cat "$work/err")" '^1 .*not found' "a signal for one that has ended"
watch_events
code=0
c task rm bg 2>"$work/err" || code=$?
match "$(cat "$work/err")" 'exit code 9' "exit code"
c container rm bg
wait_for_line "$work/events" '/tasks/delete .*"container_id":"bg".*"exit_status":9' $events
kill $events
nothing_left

say "killed, and removed before it has started"
run -d $i killed sleep 1000 </dev/null
c task kill -s KILL killed
wait_state killed STOPPED
c task rm killed 2>"$work/err" || :
match "$(cat "$work/err")" 'exit code 137' "exit code"
c container rm killed
c container create --runtime io.containerd.husk.v2 --runtime-config-path "$config" $i early true
c container rm early

say "what cannot be had is refused, and nothing is left"
refused() { # REGEX OPTIONS...
	local code=0
	run --rm "${@:2}" $i refused true >"$work/out" 2>"$work/err" </dev/null || code=$?
	match "$code $(cat "$work/err")" "^1 .*$1" "refusal"
	c container rm refused 2>/dev/null || :
	nothing_left
}
refused "the host.s network" --net-host
refused 'the mount at "/proc/x": no volume can be there' --mount type=bind,src=/tmp,dst=/proc/x,options=rbind:ro
refused 'the mount at "/x": "nfs" is not supported' --mount type=nfs,src=/tmp,dst=/x
refused '/nonexistent.*No such file' --mount type=bind,src=/nonexistent,dst=/x,options=rbind:ro
refused '"/dev/ptmx" of the host is not to be had in a pod' --device /dev/ptmx

say "a client gives up on a shim that does not answer, or no more, which containerd then clears away"
mkdir "$work/bin"
cat >"$work/bin/containerd-shim-stuck-v2" <<-END
	#!/bin/sh
	address=\$("$build/bin/containerd-shim-husk-v2" "\$@") || exit
	stop() { pkill -o -STOP -f "[c]ontainerd-shim-husk-v2.*$work/.*-id \$1"; }
	case "\$*" in
	*"-id early start") stop early ;;
	*"-id late start") (until [ -e husk-pod ]; do :; done; stop late) >/dev/null 2>&1 & ;;
	esac
	printf %s "\$address"
END
chmod +x "$work/bin/containerd-shim-stuck-v2"
is_stopped() { pgrep -r T -f "containerd-shim-husk-v2.*$work/.*-id $1" >/dev/null; }
for id in early late; do
	ctr -a "$work/containerd.sock" run --runtime io.containerd.stuck.v2 --runtime-config-path "$config" $i $id true \
		>"$work/out" 2>&1 </dev/null &
	client=$!
	until_true is_stopped $id
	kill -KILL $client # another signal would be for the container, if there is one
	wait $client || :
	c container rm $id
	shims_gone
	"$husk_bin" "--dir=$data" gc --grace-period=0s >/dev/null
	nothing_left
done

say "a program that is not there"
code=0
run $i missing /no/such/program 2>"$work/err" </dev/null || code=$?
match "$code $(cat "$work/err")" '^1 .*/no/such/program.*No such file' "error"
c task rm -f missing >/dev/null 2>&1 || :
c container rm missing
nothing_left

# It ends, and takes along what is still in it.
let_end() { "$husk_bin" "--dir=$data" app exec --app="$1" "$uuid" -- touch /tmp/go || [ $? = 137 ]; }

say "containerd ends and comes again, is killed and comes again: the container goes on, and its end is told"
run -d $i stays sh -c 'until [ -e /tmp/go ]; do sleep 0.1; done; exit 3' </dev/null
uuid=$("$husk_bin" "--dir=$data" list --full --no-legend | awk '{ print $1 }')
end_containerd
start_containerd
equal "$(state stays)" RUNNING "state after an end"
kill_containerd
start_containerd
equal "$(state stays)" RUNNING "state after a kill"
watch_events
let_end stays
wait_for_line "$work/events" '/tasks/exit .*"container_id":"stays".*"exit_status":3' $events
kill $events
wait_state stays STOPPED
c task rm stays 2>/dev/null || :
c container rm stays
nothing_left

say "the end of a container while containerd is away is told when it comes again"
run -d $i ends sh -c 'until [ -e /tmp/go ]; do sleep 0.1; done; exit 4' </dev/null
uuid=$("$husk_bin" "--dir=$data" list --full --no-legend | awk '{ print $1 }')
kill_containerd
let_end ends
start_containerd
wait_state ends STOPPED
c task rm ends 2>"$work/err" || :
match "$(cat "$work/err")" 'exit code 4' "exit code"
c container rm ends
nothing_left

say "a shim that is killed takes its pod along"
run -d $i orphan sleep 1000 </dev/null
pkill -9 -f "containerd-shim-husk-v2.*$work/.*-id orphan"
wait_state orphan "" # containerd forgets it, after the shim's delete
c container rm orphan
nothing_left

say "a pod that is killed is a container that has ended"
run -d $i lost sleep 1000 </dev/null
uuid=$("$husk_bin" "--dir=$data" list --full --no-legend | awk '{ print $1 }')
"$husk_bin" "--dir=$data" stop --force "$uuid" >/dev/null
wait_state lost STOPPED
c task rm lost 2>/dev/null || :
c container rm lost
nothing_left

say "the same of one whose output nobody reads, and of whom nobody may wait for ever"
run -d $i chatty yes </dev/null
uuid=$("$husk_bin" "--dir=$data" list --full --no-legend | awk '{ print $1 }')
"$husk_bin" "--dir=$data" stop --force "$uuid" >/dev/null
wait_state chatty STOPPED
! c task kill -s KILL chatty 2>"$work/err" || die "it was killed"
match "$(cat "$work/err")" 'already finished|not found' "what is said of it"
fifo=$("$top/tests/support/shim_call.py" "$(cat "$work/state/io.containerd.runtime.v2.task/default/chatty/address")" State id=chatty |
	sed 's/^State //' | jq -r .stdout)
has_ends() { ! dd if=/dev/null of="$fifo" oflag=nonblock conv=notrunc; } # nobody has it open
until_true has_ends
c task rm chatty 2>/dev/null || :
c container rm chatty
nothing_left
