#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stage1s that husk does not bring along: made for rkt, as directories; which of them a pod keeps.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/aci_lib.sh
. "$top/tests/system/aci_lib.sh"

require jq busybox
cd "$work"
image=$(busybox_image)
export LOG=$work/log

# entrypoints DIR NAME: programs that tell who they are and how they were called. "run" ends with 7, or, with STAY set, waits
# for "stop".
entrypoints() {
	local program
	mkdir -p "$1"
	for program in stop gc enter; do
		printf '#!/bin/sh\necho "%s %s $*" | tee -a "$LOG"\n' "$2" "$program" >"$1/$program"
	done
	echo 'kill "$(cat pid)"' >>"$1/stop"
	cat >"$1/run" <<-END
		#!/bin/sh
		echo "$2 run \$*"
		echo "\$PWD"
		readlink "/proc/self/fd/\$RKT_LOCK_FD"
		echo "\$\$" >pid.new && mv pid.new pid
		[ -z "\$STAY" ] || exec sleep 1000
		exit 7
	END
	chmod 0755 "$1"/*
}

# The annotations of such a stage1 of this interface version, for jq.
annotations() { # VERSION
	echo ".annotations = ([[\"run\", \"stop\", \"gc\", \"enter\"][] | {name: \"coreos.com/rkt/stage1/\(.)\", value: \"/\(.)\"}]
		+ [{name: \"coreos.com/rkt/stage1/interface-version\", value: \"$1\"}])"
}

# start STAGE1-OPTION: a pod that stays, in the background, once it has told its process.
start() {
	STAY=1 run_in_background_of "$@"
	until [ -s "$data/pods/run/$uuid/pid" ]; do
		kill -0 $pod 2>/dev/null || die "the pod ended: $(cat pod.err)"
		read -rt 0.02 <> <(:) || :
	done
}

run_in_background_of() { # OPTIONS of run
	rm -f uuid
	"$husk_bin" "--dir=$data" run "--uuid-file-save=$work/uuid" "$@" "$image" </dev/null >pod.out 2>pod.err &
	pod=$!
	until [ -s uuid ]; do
		kill -0 $pod 2>/dev/null || die "the pod ended: $(cat pod.err)"
		read -rt 0.02 <> <(:) || :
	done
	uuid=$(cat uuid)
}

called() { # WANT WHAT: what entrypoints wrote since it was asked last
	equal "$(cat "$LOG")" "$1" "$2"
	: >"$LOG"
}

for name in one two; do
	entrypoints "$name.aci.d/rootfs" "$name"
done
aci one.aci example.com/one "$(annotations 1)"
aci two.aci example.com/two ".labels += [{name: \"version\", value: \"2.0\"}] | $(annotations 6)"
: >"$LOG"

say "a directory: what rkt's interface has words for is said, of the rest a warning or an error"
one=$work/one.aci.d two=$work/two.aci.d
expect 7 husk --stage1="$one" run --uuid-file-save=uuid "$image"
uuid=$(cat uuid)
equal "$out" "one run --net=none $uuid
$data/pods/run/$uuid
$data/pods/run/$uuid" "arguments, directory and lock"
equal "$(jq -c . "$data/pods/run/$uuid/stage1.json")" "{\"path\":\"$one\",\"interface\":\"rkt\",\"version\":1}" "what the pod knows"
expect 7 husk --stage1="$one" --insecure-options=seccomp run --hostname=h --memory=1G --cpus=1 --cpus=2 "$image"
match "$out" '^one run --net=none [0-9a-f-]{36}'$'\n' "an old stage1"
equal "$err" 'run: warning: --hostname option is not supported by stage1
run: warning: --insecure-options option is not supported by stage1
run: warning: --memory option is not supported by stage1
run: warning: --cpus option is not supported by stage1' "what it lacks"
expect 7 husk --debug --stage1="$two" --insecure-options=seccomp run --hostname=h "$image"
match "$out" '^two run --debug --net=none --hostname=h --disable-seccomp [0-9a-f-]{36}'$'\n' "a new stage1"
expect 254 husk --stage1="$two" run --detach "$image"
one_line_error "^run: stage1 \"$two\" speaks rkt's interface, which does not tell when a pod is up \(leave --detach away\)$"
expect 254 husk --stage1="$two" app sandbox
one_line_error '^sandbox: stage1 does not support mutable pods$'
expect 0 husk gc --grace-period=0
equal "$(grep -c '^one gc [0-9a-f-]*$' log) $(grep -c '^two gc [0-9a-f-]*$' log)" "2 1" "gc of each"
: >log
equal "$(find "$data/pods" -mindepth 2)" "" "what is left of them"

say "a host with several: each pod keeps its own, whatever is said later"
start --stage1="$one"
pod1=$pod uuid1=$uuid
start --stage1="$two"
pod2=$pod uuid2=$uuid
equal "$(husk list --no-legend | grep -c running)" 2 "pods that run"
expect 0 husk enter "$uuid2" ls -l
equal "$out" "two enter --pid=$pod2 --appname=busybox -- ls -l" "enter"
expect 254 husk enter --user=1 "$uuid1" ls
one_line_error '^enter: --user option is not supported by stage1$'
expect 0 husk stop "$uuid1" "$uuid2"
wait $pod1 $pod2 || :
called "two enter --pid=$pod2 --appname=busybox -- ls -l
one stop $uuid1
two stop $uuid2" "stop"
expect 0 husk --stage1="$one" rm "$uuid2"
expect 0 husk --stage1="$work/none" gc --grace-period=0
called "two gc $uuid2
one gc $uuid1" "rm and gc"
uuid=$(husk --stage1="$two" prepare "$image")
expect 7 husk --stage1="$one" run-prepared "$uuid"
match "$out" "^two run --net=none $uuid"$'\n' "a prepared pod"
expect 0 husk rm "$uuid"
called "two gc $uuid" "rm"

say "a pod of an older husk has what is configured"
start --stage1="$one"
rm "$data/pods/run/$uuid/stage1.json"
expect 0 husk --stage1="$two" stop --force "$uuid"
wait $pod || :
called "two stop --force $uuid" "stop"
expect 0 husk --stage1="$one" rm "$uuid"
called "one gc $uuid" "rm"

say "what others could have changed is not executed, unless it is named"
start --stage1="$one"
refused() { # REGEX
	expect 254 husk stop "$uuid"
	match "$err" "^stop: the stage1 of the pod: $1 \(name one with --stage1=DIR\)"$'\n' "refusal"
	called "" "what was executed"
}
if [ "$(id -u)" = 0 ]; then
	chown 4711 "$one/rootfs"
	refused "\"$one/rootfs\" belongs to user 4711, whose programs are not executed here"
	chown 0 "$one/rootfs"
fi
chmod g+w "$one/rootfs/gc"
refused "\"$one/rootfs/gc\" can be changed by others \(chmod go-w\)"
chmod g-w "$one/rootfs/gc"
mkdir other
chmod 0777 other
cp -a "$one" other/one
record=$data/pods/run/$uuid/stage1.json
cp "$record" kept.json
jq --arg path "$work/other/one" '.path = $path' kept.json >"$record"
refused "\"$work/other\" can be changed by others \(chmod go-w\)"
echo '{}' >"$record"
refused 'its file "stage1.json" does not say which stage1 it was made with'
ln -sf "$work/kept.json" "$record"
refused 'its file "stage1.json": Too many levels of symbolic links'
rm "$record"
jq --arg path "$work/gone" '.path = $path' kept.json >"$record"
refused "stage1 \"$work/gone\": No such file or directory"
jq --arg path "$work/other/one" '.path = $path' kept.json >"$record"
expect 0 husk --stage1="$work/other/one" stop "$uuid"
wait $pod || :
called "one stop $uuid" "the same directory, named"
expect 0 husk rm "$uuid"
match "$err" "^rm: pod \"$uuid\": the stage1 of the pod: .*: what it left outside of the pod is not cleaned up$" "rm"
called "" "gc"
