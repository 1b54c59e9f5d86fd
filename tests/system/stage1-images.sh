#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stage1s that husk does not bring along: made for rkt, as directories; which of them a pod keeps.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
vm_options=("${run_options[@]}") run_options=() # most stage1s of this test know none of them
# shellcheck source=tests/system/aci_lib.sh
. "$top/tests/system/aci_lib.sh"

require jq busybox python3
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
equal "$out" "one run --net=default $uuid
$data/pods/run/$uuid
$data/pods/run/$uuid" "arguments, directory and lock"
equal "$(jq -c . "$data/pods/run/$uuid/stage1.json")" "{\"path\":\"$one\",\"interface\":\"rkt\",\"version\":1}" "what the pod knows"
expect 7 husk --stage1="$one" --insecure-options=seccomp run --hostname=h "$image"
match "$out" '^one run --net=default [0-9a-f-]{36}'$'\n' "an old stage1"
equal "$err" 'run: warning: --hostname option is not supported by stage1
run: warning: --insecure-options option is not supported by stage1' "what it lacks"
expect 254 husk --stage1="$one" run --accel=tcg "$image"
one_line_error '^Error: unknown flag: --accel; see husk help run$'
expect 7 husk --debug --stage1="$two" --insecure-options=seccomp run --hostname=h "$image"
match "$out" '^two run --debug --net=default --hostname=h --disable-seccomp [0-9a-f-]{36}'$'\n' "a new stage1"
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
match "$out" "^two run --net=default $uuid"$'\n' "a prepared pod"
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

# ---- stage1s that come as images ----
# The images are not signed.
insecure() {
	husk --insecure-options=image "$@"
}
extracted() { # IMAGE-FILE: where husk puts it
	echo "$data/stage1/sha512-$(key_of "$1" | cut -c1-64)"
}
one=$(extracted one.aci) two=$(extracted two.aci)
: >log

say "from a file: signature, store, once extracted, and in the pod"
expect 254 husk run --stage1-path=one.aci "$image"
match "$err" '^run: --stage1-path: image "one\.aci": error opening signature file' "without a signature"
[ ! -e "$data/stage1" ] || die "an image that was refused was extracted"
expect 7 insecure run --stage1-path=one.aci --uuid-file-save=uuid "$image"
match "$out" "^one run --net=default $(cat uuid)"$'\n' "run"
equal "$(stat -c '%a %u' "$one" "$one/manifest" | tr '\n' ' ')" "700 $(id -u) 600 $(id -u) " "whose it is"
equal "$(jq -r '.path, .image' "$data/pods/run/$(cat uuid)/stage1.json")" "$one"$'\n'"${one##*/}" "what the pod knows"
expect 0 husk image list --no-legend --fields=name
match "$out" 'example\.com/one' "image list"
inode=$(stat -c %i "$one/rootfs/run")
expect 7 insecure --debug run --stage1-path=one.aci "$image"
match "$err" $'image: using image from file one.aci\n' "told as it was given"
expect 7 insecure --debug run --stage1-path="./two.aci.d/../one.aci" "$image"
match "$err" $'image: using image from file ./two.aci.d/../one.aci\n' "told as it was given"
expect 7 insecure run "--stage1-path=$work/one.aci" "$image"
equal "$(stat -c %i "$one/rootfs/run")" "$inode" "the second time"
expect 7 husk run --stage1-path=one.aci.d "$image"
match "$out" '^one run ' "a directory"
expect 254 insecure run --stage1-path=none.aci "$image"
one_line_error '^run: --stage1-path: stage1 "none.aci": No such file or directory$'
aci bad.aci example.com/bad .
expect 254 insecure run --stage1-path=bad.aci "$image"
one_line_error "^run: --stage1-path: stage1 image \"bad.aci\": stage1 \".*\": its manifest has no annotation \"husk/stage1/run\"$"
cp one.aci docker:one.aci && cp one.aci sha256-00
for name in docker:one.aci sha256-00; do
	expect 7 insecure --debug run --stage1-path=$name "$image"
	match "$err" "image: using image from file $name"$'\n' "$name is a path"
done
aci absent.aci example.com/absent "$(annotations 1)"
expect 254 insecure run --stage1-path=absent.aci "$image"
match "$err" 'entrypoint "run": No such file or directory$' "entrypoints that are not there"
entrypoints open.aci.d/rootfs open
chmod o+w open.aci.d/rootfs/gc
aci open.aci example.com/open "$(annotations 1)"
expect 254 insecure run --stage1-path=open.aci "$image"
match "$err" '/rootfs/gc" can be changed by others \(chmod go-w\)$' "entrypoints that others could change"

say "from URLs"
python3 -u -m http.server --bind 127.0.0.1 0 >http.log 2>&1 &
server=$!
wait_for_line http.log 'port [0-9]' $server
url=http://127.0.0.1:$(sed -n 's/.*port \([0-9]*\).*/\1/p' http.log)
expect 7 insecure run --stage1-url="$url/two.aci" "$image"
match "$out" '^two run ' "http"
expect 7 insecure run --stage1-url="$url/two.aci" "$image"
equal "$(grep -c 'GET /two.aci ' http.log)" 1 "downloads"
kill $server
expect 7 insecure run --stage1-url="file://$work/one.aci" "$image"
match "$out" '^one run ' "file"
expect 254 husk run --stage1-url="$work/one.aci" "$image"
one_line_error "^run: --stage1-url: \"$work/one.aci\" is not a URL of scheme docker, file, http or https \(use --stage1-path\)$"
expect 254 husk run --stage1-url=ftp://x/y "$image"
match "$err" '^run: --stage1-url: location "ftp://x/y" is not a URL of scheme' "another scheme"

say "from the store, by name and by hash"
mkdir -p example.com
echo "no image" >example.com/two:2.0
for name in example.com/two example.com/two:2.0; do
	expect 7 husk --debug run --stage1-name="$name" "$image"
	match "$out" '^two run ' "$name"
	match "$err" "image: using image from local store for image name $name"$'\n' "$name, told as rkt does"
done
expect 254 husk run --stage1-name=nowhere/two:3 "$image"
match "$err" '^run: --stage1-name: image "nowhere/two:3": ' "a name that the store has not"
expect 254 husk run --stage1-name=./one.aci "$image"
match "$err" '^run: --stage1-name: ' "no name"
id=${one##*/}
for hash in "$id" "${id:0:39}" "${id:0:12}"; do
	expect 7 husk --debug run --stage1-hash="$hash" "$image"
	match "$out" '^one run ' "$hash"
	match "$err" "image: using image from the store with hash $id"$'\n' "$hash, told as rkt does"
done
expect 254 husk run --stage1-hash=sha512-0000000000 "$image"
match "$err" '^run: --stage1-hash: image "sha512-0000000000": no image IDs found' "a hash that the store has not"
expect 254 husk run --stage1-hash=one.aci "$image"
one_line_error '^run: --stage1-hash: "one.aci" is not an image ID \(see husk image list\)$'

say "from a directory of such images, and as configured"
mkdir -p config/{paths,stage1}.d images
cp one.aci images/local.aci
configured() {
	insecure --local-config="$work/config" "$@"
}
put() { # FILE MEMBERS
	echo "{\"rktVersion\":\"v1\",$2}" >"config/$1"
}
put paths.d/p.json "\"rktKind\":\"paths\",\"stage1-images\":\"$work/images\""
expect 7 configured run --stage1-from-dir=local.aci "$image"
match "$out" '^one run ' "stage1-images"
for name in ../one.aci .. ''; do
	expect 254 configured run --stage1-from-dir="$name" "$image"
	match "$err" 'stage1-from-dir: ' "\"$name\""
done
expect 254 husk run --stage1-from-dir=local.aci "$image"
one_line_error '^run: --stage1-from-dir: no directory "../lib/husk/stage1-images" beside the husk program \(configure "stage1-images"\)'
put stage1.d/s.json "\"rktKind\":\"stage1\",\"name\":\"example.com/two\",\"version\":\"2.0\",\"location\":\"$work/one.aci\""
expect 7 configured run "$image"
match "$out" '^two run ' "a name that the store has"
expect 7 configured --debug run "$image"
match "$err" $'(^|\n)image: using image from local store for image name example.com/two:2.0\n' "told as rkt does"
put stage1.d/s.json "\"rktKind\":\"stage1\",\"name\":\"example.com/two\",\"version\":\"3.0\",\"location\":\"$work/one.aci\""
expect 7 configured run "$image"
match "$out" '^one run ' "the location, else"
expect 7 configured run --stage1-name=example.com/two "$image"
match "$out" '^two run ' "an option, before both"
expect 7 configured --stage1="$work/one.aci.d" run "$image"
match "$out" '^one run ' "--stage1"
put stage1.d/s.json '"rktKind":"stage1","name":"example.com/two","version":"3.0"'
expect 254 configured run "$image"
one_line_error '^run: the configured stage1 "example.com/two:3.0" is not in the store, and no location of it is configured \(husk fetch it\)$'
put stage1.d/s.json '"rktKind":"stage1","location":"images/local.aci"'
expect 254 configured run "$image"
match "$err" 'location "images/local.aci": default stage1 image location is either a relative path or a URL without scheme' "a relative location"
put stage1.d/s.json "\"rktKind\":\"stage1\",\"location\":\"$work/nowhere/no-such-stage1.aci\""
expect 254 configured run "$image"
one_line_error "^run: stage1 \"$work/nowhere/no-such-stage1.aci\": No such file or directory \(nor beside the husk program\)$"
mkdir -p alone lib/husk && cp "$build/bin/husk" two.aci alone/
cp "$build/lib/husk/husk-images.so" lib/husk/
put stage1.d/s.json "\"rktKind\":\"stage1\",\"location\":\"$work/nowhere/two.aci\""
expect 7 alone/husk "--system-config=$no_network" --insecure-options=image "--dir=$data" --local-config="$work/config" --debug run "$image"
match "$err" "image: using image from file $work/nowhere/two.aci"$'\n'"image: using image from file $work/alone/two.aci"$'\n' "both places"
put stage1.d/s.json "\"rktKind\":\"stage1\",\"location\":\"file://$work/two.aci\""
uuid=$(configured prepare "$image")
rm config/stage1.d/s.json
expect 7 husk run-prepared "$uuid"
match "$out" '^two run ' "prepared"

say "not from a store that a group can change"
mkdir shared
chgrp 4711 shared 2>/dev/null || : # with what group does not matter
chmod 3770 shared
expect 254 insecure --dir="$work/shared" run --stage1-path=one.aci "$image"
one_line_error "^run: --stage1-path: stage1 image \"one.aci\": a group shares the data directory and could put another in its place"
put stage1.d/s.json "\"rktKind\":\"stage1\",\"name\":\"example.com/two\",\"version\":\"2.0\",\"location\":\"$work/one.aci.d\""
expect 7 configured --dir="$work/shared" run "$image"
match "$out" '^one run ' "a directory"
rm config/stage1.d/s.json

say "one option at a time"
expect 254 husk run --stage1-path=a --stage1-path=b "$image"
match "$err" '--stage1-path already used' "twice"
expect 254 husk prepare --stage1-name=a --stage1-hash=b "$image"
match "$err" 'flags --stage1-name and --stage1-hash are mutually exclusive' "two"
expect 254 husk --stage1=/x app sandbox --stage1-url=b
match "$err" 'flags --stage1 and --stage1-url are mutually exclusive' "beside --stage1"

say "an extracted image stays as long as a pod has it, and no longer"
expect 0 husk gc --grace-period=0
for uuid in $(husk list --full --no-legend | grep -oE '^[0-9a-f-]{36}'); do husk rm "$uuid" >/dev/null 2>&1; done
: >log
start --stage1-hash="$id"
expect 0 husk image gc --grace-period=0
[ -d "$one" ] || die "image gc took away what a pod runs with"
husk image list --fields=name | grep -q example.com/one || die "image gc removed the image of a pod's stage1"
[ ! -d "$two" ] || die "what nobody uses is there"
expect 0 husk image rm "$id"
[ -d "$one" ] || die "image rm took away what a pod runs with"
expect 0 husk stop "$uuid"
wait $pod || :
expect 0 husk image gc
[ -d "$one" ] || die "image gc took away what a pod ended with"
expect 0 husk rm "$uuid"
called "one stop $uuid
one gc $uuid" "stop and rm, without the image"
mkdir "$data/stage1/.husk-export-interrupted"
expect 0 husk image gc
equal "$(ls -A "$data/stage1")" "" "what is left of the images"

say "several at once extract it once"
for n in 1 2 3 4; do
	insecure run --stage1-path=one.aci "$image" >"out.$n" 2>&1 &
	pids[n]=$!
done
for n in 1 2 3 4; do
	got=0
	wait "${pids[n]}" || got=$?
	equal "$got" 7 "run $n ($(cat "out.$n"))"
done
equal "$(ls -A "$data/stage1")" "$id" "what was extracted"

say "the stage1 of husk as an image"
mkdir -p own.aci.d/rootfs
cp -rL "$build/lib/husk/stage1-kvm" "$build/lib/husk/guest" "$build/lib/husk/kernel" own.aci.d/rootfs
chmod -R go-w own.aci.d
aci own.aci example.com/own "$(jq -c '.annotations
	| map(if .value | startswith("bin/") then .value = "/stage1-kvm/" + .value else . end)' "$build/lib/husk/stage1-kvm/manifest" |
	sed 's/^/.annotations = /')"
expect 5 insecure run "${vm_options[@]}" --stage1-path=own.aci --uuid-file-save=uuid "$image" -- sh -c 'echo booted; exit 5'
equal "$out" booted "output"
equal "$(jq -r .path "$data/pods/run/$(cat uuid)/stage1.json")" "$(extracted own.aci)" "its stage1"
expect 0 husk rm "$(cat uuid)"
expect 254 husk --stage1="$work/none" run --stage1-path=own.aci "$image"
match "$err" 'mutually exclusive' "both"
expect 0 insecure app sandbox "${vm_options[@]}" --stage1-path=own.aci --detach
uuid=$out
expect 0 husk app add "$uuid" "$image" --name=web -- echo hello
expect 0 husk stop "$uuid"
expect 0 husk rm "$uuid"
