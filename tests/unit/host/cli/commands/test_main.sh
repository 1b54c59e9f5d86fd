#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The husk program as a whole, with a stage1 whose entrypoints are shell scripts: the exec contract
# of `run`, what a failure leaves behind, list, status, version, doctor, help. No VM.
#   test_main.sh HUSK MAKE-IMAGE
set -euo pipefail

husk_bin=$1
make_image=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/husk-cli.XXXXXX")
trap 'rm -rf "$work"' EXIT
data=$work/data
stage1=$work/stage1
export TZ=UTC

die() {
	echo "FAILED: $*" >&2
	exit 1
}

husk() {
	"$husk_bin" --system-config= --local-config= "--dir=$data" "--stage1=$stage1" "$@"
}

# expect STATUS COMMAND...: runs it, stdout in $out, stderr in $err.
expect() {
	local want=$1 got=0
	shift
	"$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
	out=$(cat "$work/out")
	err=$(cat "$work/err")
	[ "$got" -eq "$want" ] || die "exit code $got instead of $want: $* ($err)"
}

equal() { # GOT WANT WHAT
	[ "$1" = "$2" ] || die "$3: got \"$1\", want \"$2\""
}

match() { # TEXT REGEX WHAT
	[[ $1 =~ $2 ]] || die "$3: \"$1\" does not match \"$2\""
}

no_pods() {
	equal "$(find "$data/pods" -mindepth 2 -maxdepth 2 2>/dev/null || :)" "" "pods left behind"
}

mkdir -p "$stage1/bin"
cat >"$stage1/manifest" <<'END'
{"acKind":"ImageManifest","acVersion":"0.8.11","name":"test","annotations":[
 {"name":"husk/stage1/interface-version","value":"2"},
 {"name":"husk/stage1/option/accel","value":"NAME how"},{"name":"husk/stage1/option/memory","value":"SIZE how much"},
 {"name":"husk/stage1/run","value":"bin/run"},{"name":"husk/stage1/doctor","value":"bin/doctor"}]}
END
# Prints what it sees, writes the status files of a pod, and ends with what the test asks for.
cat >"$stage1/bin/run" <<'END'
#!/bin/sh
for last; do :; done
echo "cwd=${PWD##*/}" "uuid=$last" "args=$*"
[ "$$" = "$(cat ../../../shell-pid)" ] && echo same-pid
for fd in 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
	[ -e "/proc/$$/fd/$fd" ] || continue
	case $(readlink "/proc/$$/fd/$fd") in */bin/run) continue ;; esac # the shell reads us
	[ "$fd" = "$HUSK_LOCK_FD" ] && echo lock || echo "extra=$fd"
done
flock -n -s . true && echo unlocked || echo locked
echo $$ >pid
for app in apps/*; do
	app=${app##*/}
	[ -s "apps/$app/rootfs" ] && echo "app=$app"
	: >"status/$app-created"
	: >"status/$app-started"
	echo "${APP_STATUS:-0}" >"status/$app"
done
exit "${APP_STATUS:-0}"
END
cat >"$stage1/bin/doctor" <<'END'
#!/bin/sh
echo '{"checks":[{"name":"qemu","ok":true,"value":"7.2"},{"name":"kvm","ok":false,"remedy":"buy one"}]}'
exit "${DOCTOR_STATUS:-0}"
END
chmod +x "$stage1/bin/run" "$stage1/bin/doctor"
image=$work/busybox
"$make_image" "$image" >/dev/null

# Nothing there yet.
expect 0 husk list
match "$out" $'^UUID\tAPP\tIMAGE NAME\tSTATE\tCREATED\tSTARTED\tNETWORKS\tNAME\tFLAVOR$' "empty list"
expect 0 husk list --no-legend
equal "$(wc -c <"$work/out")" 1 "empty list without legend is one newline"
expect 0 husk list --format=json
equal "$out" "[]" "empty JSON list"
expect 254 husk status abc
equal "$err" 'status: problem retrieving pod: no matches found for "abc"' "status without pods"
[ ! -e "$data" ] || die "reading made the data directory"

uuid_like=01234567-89ab-4def-8123-456789abcdef

# Failures before the pod runs leave nothing.
expect 254 husk run "$work/none" -- true
equal "$(wc -l <"$work/err")" 1 "lines on stderr"
no_pods
expect 254 husk run "$image" --name=a "$image" --name=a
match "$err" '^run: error: multiple apps with name a \(' "duplicate names"
no_pods
expect 254 husk run --uuid-file-save="$work/no/dir" "$image" -- true
match "$err" '^run: --uuid-file-save: cannot write' "UUID file"
no_pods
expect 254 "$husk_bin" "--dir=$data" "--stage1=$work/none" run "$image"
match "$err" '^run: stage1 "' "no stage1"
no_pods

expect 254 husk prepare "$image" --caps-retain=kill,fly -- true
equal "$err" 'prepare: app "busybox": there is no capability "CAP_FLY"' "unknown capability"
expect 254 husk prepare "$image" --seccomp=raed -- true
equal "$err" 'prepare: app "busybox": there is no system call "raed"' "unknown system call"
expect 254 husk prepare --memory=1Gi "$image" -- true
match "$err" '^Error: --memory must follow an image' "prepare has no VM to size"
expect 254 husk --insecure-options=seccom run "$image" -- true
equal "$err" 'Error: --insecure-options: unknown option "seccom"; see husk help run' "unknown insecure option"
expect 254 husk run "$image" --insecure-options=tls,TLS -- true
match "$err" '^run: .*--insecure-options: duplicated option "TLS"' "duplicated insecure option"
no_pods

expect 254 husk prepare --mount=volume=v,target=/v "$image"
equal "$err" 'prepare: dangling mount point "/v": volume "v" not found' "no such volume"
expect 254 husk app add "$uuid_like" "$image" --mnt-volume=name=v
equal "$err" 'add: error parsing app image arguments: --mnt-volume: "name=v": kind= is none (empty, host and block are)' "no kind"
expect 254 husk app add "$uuid_like" "$image" --volume=v,kind=host,source=/
match "$err" 'unknown flag: --volume \(use --mnt-volume=name=NAME,kind=KIND,target=PATH\)' "a flag of the pod's"
expect 254 husk app add "$uuid_like" "$image" -v /:/v
match "$err" 'unknown shorthand flag: -v \(use --mnt-volume=name=NAME,kind=host,source=PATH,target=PATH\)' "a habit"
no_pods
for flag in --inherit-env --no-store --store-only --pull-policy=never --pull-policy=update --port=a:80 --set-env=A=b \
	--set-env-file=none --volume=v,kind=empty --mount=volume=v,target=/v "$image --exec=x" "$image --user=0" "$image --group=0"; do
	read -ra words <<<"$flag"
	for command in run prepare; do
		expect 254 husk "$command" --pod-manifest="$work/none" "${words[@]}"
		equal "$err" "$command: conflicting flags set with --pod-manifest (see --help)" "$command, $flag"
	done
done
expect 254 husk run --no-store --store-only "$image"
equal "$err" "run: both --store-only and --no-store specified" "contradictory flags"
expect 254 husk run --ipc=parent "$image"
match "$err" "private IPC namespace" "--ipc=parent"
no_pods

# What rkt has and means nothing here; annotations, the host name.
expect 0 husk prepare --mds-register=false --no-overlay --no-store --net=none --hostname=under_score --annotation=a/b=c \
	--user-label=tier=db "$image" --cap-retain=kill --annotation=x=y --user-label=l=m
equal "$err" "" "what means nothing is not mentioned"
prepared=$out
expect 0 husk cat-manifest "$prepared" --pretty-print=false
equal "$(wc -l <"$work/out")" 1 "lines of a compact manifest"
match "$out" '"annotations":\[\{"name":"husk/hostname","value":"under_score"\},\{"name":"a/b","value":"c"\}\]' "annotations of the pod"
match "$out" ',\{"name":"x","value":"y"\}\]' "annotations of the app"
match "$out" '"userLabels":\{"tier":"db"\}' "label of the pod"
echo "$prepared" >"$work/uuid"
expect 0 husk cat-manifest --uuid-file="$work/uuid" extra words
match "$out" '"acKind": *"PodManifest"' "a manifest in spite of more words"
expect 0 husk run-prepared --ipc=private --mds-register "$prepared"
match "$out" "=--hostname=under_score " "host name of a prepared pod"
match "$err" "^run-prepared: --mds-register has no effect, there is no metadata service" "no metadata service"
expect 0 husk rm "$prepared"

# Networks: refused for a stage1 that knows none, before anything is fetched; else told in full.
for flag in --net --net=a:K=V --netns=/x --dns=none --dns-domain=d --hosts-entry=host --port=80/tcp:8080; do
	expect 254 husk run "$flag" "$work/none"
	name=${flag%%=*}
	equal "$err" "run: stage1 \"$stage1\" does not support networks (leave $name away)" "run $flag"
done
no_pods
cp -r "$stage1" "$work/networks"
sed -i 's,^ {"name":"husk/stage1/run",{"name":"husk/stage1/network"\,"value":"true"}\,&,' "$work/networks/manifest"
mkdir -p "$work/system/paths.d" "$work/local"
echo '{"rktVersion":"v1","rktKind":"paths","cni-plugins":["/opt/cni/bin","/p"]}' >"$work/system/paths.d/a.json"
networks() {
	(cd "$work" && "$husk_bin" --system-config=system --local-config="$work/local" "--dir=$data" --stage1="$work/networks" "$@")
}
dirs="--net-config=$work/system/net.d --net-config=$work/local/net.d --cni-path=/opt/cni/bin --cni-path=/p"
expect 0 networks run "$image" --exec=true
match "$out" "args=$dirs --cache-dir=" "what is said where nothing was said"
expect 0 networks run --net=b --net="a:IP=10.0.0.2,c" --dns=1.1.1.1 --hosts-entry=10.0.0.1=x,y "$image" --exec=true
match "$out" "args=--net=b --net=a:IP=10.0.0.2 --net=c $dirs --dns=1.1.1.1 --hosts-entry=10.0.0.1=x,y --cache-dir=" "networks"
expect 254 networks run --port=http:80 "$image"
equal "$err" 'run: port name "http" could not be found in any apps (give PORT/PROTOCOL:HOSTPORT)' "a port that no image has"
expect 254 networks run --net=host --port=80/tcp:80 "$work/none"
equal "$err" "run: --port flag does not work with 'host' networking" "--port without a network"
expect 254 networks run-prepared --net=a,a "$uuid_like"
equal "$err" 'Error: found duplicate netname "a"; see husk help run-prepared' "a network twice"
expect 0 networks prepare --net=a "--port=80/tcp:[::1]:8080" "$image" --exec=true
prepared=$out
expect 0 husk cat-manifest --pretty-print=false "$prepared"
match "$out" '"ports":\[\{"name":"80-tcp","hostPort":8080,"hostIP":"::1","podPort":\{"name":"80-tcp","protocol":"tcp","port":80\}\}\]' "ports"
expect 254 husk --stage1="$stage1" run-prepared --dns=none --netns=/x --net "$prepared"
match "$err" "^run-prepared: --net and --netns exclude each other" "a namespace and a network"
expect 0 networks run-prepared --netns=/x "$prepared"
match "$out" "args=--netns=/x $dirs" "a namespace"
expect 0 husk gc --grace-period=0
no_pods

# The contract: cwd, argv, lock, pid, exit code.
status=0
(
	cd "$work"
	sh -c "echo \$\$ >'$data/shell-pid'; exec '$husk_bin' --debug --insecure-options=all-run '--dir=$data' '--stage1=$stage1' \
		run --hostname=h --memory=1Gi --accel=tcg --uuid-file-save='$work/uuid' '$image' --name=one \
		-- sh -c 'exit 7' --- '$image' --name=two -- true" 9</dev/null
) >"$work/out" 2>"$work/err" </dev/null || status=$?
equal "$status" 0 "exit code of run ($(cat "$work/err"))"
uuid=$(cat "$work/uuid")
{
	echo "cwd=$uuid uuid=$uuid args=--debug --disable-capabilities-restriction --disable-paths --disable-seccomp --hostname=h --cache-dir=$data/cache --memory=1Gi --accel=tcg --start-ns=N $uuid"
	printf '%s\n' same-pid lock locked app=one app=two
} >"$work/want"
sed 's/--start-ns=[0-9][0-9]*/--start-ns=N/' "$work/out" | diff "$work/want" - >&2 || die "the contract of run"
match "$(cat "$work/err")" "image: using image from file $image"$'\n' "debug messages"
pod=$data/pods/run/$uuid
equal "$(stat -c %a "$pod" "$pod/pod" "$pod/pod-created" | tr '\n' ' ')" "750 600 640 " "modes"
equal "$(stat -c %i "$pod/apps/one/rootfs")" "$(stat -c %i "$pod/apps/two/rootfs")" "one rendered image"
match "$(tr -d ' \n\t' <"$pod/pod")" '"exec":\["sh","-c","exit7"\]' "command in the manifest"

# list and status.
expect 0 husk status "${uuid:0:8}"
match "$out" $'^state=exited\ncreated=.* \\+0000 UTC\nstarted=.*\nnetworks=\npid=[0-9]+\nexited=true\napp-one=0\napp-two=0$' status
expect 0 husk status --uuid-file="$work/uuid" --format=json
match "$out" "\"name\":\"$uuid\",\"state\":\"exited\",\"networks\":\\[\\],\"app_names\":\\[\"one\",\"two\"\\]" "JSON status"
expect 1 husk status --uuid-file="$work/none"
match "$err" '^status: unable to resolve UUID from file: ' "unreadable UUID file"
expect 254 husk status
match "$err" '^Error: exactly one of UUID and --uuid-file' "status without UUID"
expect 0 husk list --no-legend
ago='(now|[0-9]+ (second|minute)s? ago)'
match "$out" "^${uuid:0:8}"$'\tone\tbusybox\texited\t'"$ago"$'\t'"$ago"$'\t+\n\t\ttwo\tbusybox\t+$' list

# Names: of pods that are not garbage, for whatever takes a UUID. The listing and its filters.
expect 0 husk prepare --name=db --user-label=tier=back "$image" --name=app -- true
db=$out
expect 254 husk prepare --name=db "$image" -- true
equal "$err" "prepare: name \"db\" is that of pod \"$db\" (choose another, or husk rm db)" "a name twice"
equal "$(find "$data/pods/prepare" "$data/pods/prepared" -mindepth 1 -maxdepth 1 | wc -l)" 1 "pods after a name that was taken"
expect 254 husk prepare --name=Db "$image" -- true
match "$err" '^Error: --name: "Db" is not a name of a pod' "a name that is none"
expect 0 husk status db
match "$out" $'^state=prepared\nname=db\n' "status by name"
expect 0 husk status --format=json "${db:0:8}"
match "$out" "\"name\":\"$db\",\"pod_name\":\"db\"" "JSON of a named pod"
expect 0 husk cat-manifest db
expect 0 husk list --quiet
equal "$out" "$db"$'\n'"$uuid" "UUIDs, the newest first"
expect 0 husk list -q --state=prepared,running
equal "$out" "$db" "list by states"
expect 0 husk list -q --state=exited --running
equal "$out" "$uuid" "list by state and --running"
expect 0 husk list -q --running
equal "$(wc -c <"$work/out")" 0 "nothing runs"
expect 0 husk list --name=db --no-legend
match "$out" "^${db:0:8}"$'\tapp\t.*\tdb\t$' "list by name"
for label in tier tier=back; do
	expect 0 husk list -q --label="$label"
	equal "$out" "$db" "list by label $label"
done
expect 0 husk list -q --label=tier=front
equal "$out" "" "no such label"
expect 0 husk list -q --label=tier --label=other
equal "$out" "" "one of two labels"
expect 0 husk list --format=json --running
equal "$out" "[]" "JSON of nothing"
expect 254 husk list --state=sleeping
match "$err" '^Error: --state: "sleeping" is not a state' "unknown state"
expect 254 husk list -q --format=json
match "$err" '^Error: --quiet prints UUIDs only' "--quiet and --format"
if command -v python3 >/dev/null; then
	"$make_image" "$work/an-image-whose-name-is-so-long-that-no-line-of-a-terminal-has-room-for-it" >/dev/null
	expect 0 husk prepare --name=a-name-of-a-pod-that-is-as-long-as-names-of-pods-may-be-at-most \
		"$work/an-image-whose-name-is-so-long-that-no-line-of-a-terminal-has-room-for-it" -- true
	long=$out
	expect 0 env COLUMNS=80 python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' \
		"$husk_bin" --system-config= --local-config= "--dir=$data" list
	match "$out" '^UUID +NAME +APP +IMAGE NAME +STATE +CREATED' "list on a terminal"
	match "$out" "${db:0:8}  db  " "a row on a terminal"
	equal "$(tr -d '\r' <"$work/out" | awk 'length > 80' | wc -l)" 0 "lines that are too long"
	expect 0 husk rm "$long"
fi
expect 0 husk rm db
match "$out" "$db" "rm by name"
expect 254 husk status db
equal "$err" 'status: problem retrieving pod: no matches found for "db"' "the name is gone with the pod"

# The app's status is husk's; a pod that cannot be read is told behind the list.
APP_STATUS=7 expect 7 husk run "$image" -- true
printf '{' >"$pod/pod"
expect 0 husk list --no-legend
match "$err" "^list: 1 error\\(s\\) encountered when listing pods:"$'\n'"list: pod \"$uuid\": pod manifest: not valid JSON$" "damaged pod"
match "$out" "${uuid:0:8}"$'\t-\t-\t+exited' "damaged pod in the list"

# Without --dir and --stage1 the configuration says what to use; a broken one stops who needs it, and only them.
mkdir -p "$work/etc/paths.d" "$work/etc/stage1.d"
echo "{\"rktVersion\":\"v1\",\"rktKind\":\"paths\",\"data\":\"$data\"}" >"$work/etc/paths.d/data.json"
echo "{\"rktVersion\":\"v1\",\"rktKind\":\"stage1\",\"location\":\"file://$stage1\"}" >"$work/etc/stage1.d/dir.json"
configured() {
	"$husk_bin" --system-config= "--local-config=$work/etc" "$@"
}
expect 0 configured list --no-legend
match "$out" "${uuid:0:8}" "list of the configured data directory"
expect 7 env APP_STATUS=7 "$husk_bin" --system-config= "--local-config=$work/etc" run "$image" -- true
echo 'no JSON' >"$work/etc/stage1.d/dir.json"
expect 0 configured list --no-legend
expect 254 configured run "$image" -- true
equal "$err" "run: configuration file \"$work/etc/stage1.d/dir.json\": it is not an object in valid JSON (correct it)" "broken file"
rm "$work/etc/stage1.d/dir.json"
echo 'no JSON' >"$work/etc/paths.d/data.json"
expect 254 configured list
for command in version help "help run" "run --help" --help; do
	# shellcheck disable=SC2086 # words
	expect 0 configured $command
done

# The exec failed: the pod has exited and is told so.
printf '#!/nonexistent\n' >"$stage1/bin/run"
expect 254 husk run --uuid-file-save="$work/uuid" "$image" -- true
match "$err" '^run: cannot execute "' "entrypoint that cannot run"
expect 0 husk status --uuid-file="$work/uuid"
match "$out" '^state=exited' "pod whose stage1 did not start"

# doctor.
expect 0 husk doctor
match "$out" $'ok    qemu +7.2\nMISS  kvm +\n +-> buy one\nA pod can run.$' doctor
match "$out" $'ok    hard-links  ' "hard links"
equal "$(find "$data" -maxdepth 1 -name '.husk-doctor*')" "" "left by doctor"
DOCTOR_STATUS=1 expect 1 husk doctor --format=json
match "$out" '^\{"ok":false,"checks":\[\{"name":"data-directory","ok":true' "JSON doctor"
expect 1 "$husk_bin" --dir=/proc/none "--stage1=$stage1" doctor
match "$out" 'MISS  data-directory .*No pod can run.$' "doctor without data directory"

# Help, version, mistakes.
expect 2 "$husk_bin"
equal "$err" "husk: missing command" "bare husk"
match "$out" $'^NAME:\n\thusk - ' "help of bare husk"
for args in "--help" "help" "-h"; do
	expect 0 "$husk_bin" "$args"
	match "$out" $'\nVERSION:\n\t[0-9.]+\n\nCOMMANDS:\n' "help of husk"
done
for args in "list --help" "--help list" "help list" "run --help" "run img --help"; do
	read -ra words <<<"$args"
	expect 0 "$husk_bin" "${words[@]}"
	match "$out" $'\nOPTIONS:\n.*\nGLOBAL OPTIONS:\n' "help of a command: $args"
done
expect 0 "$husk_bin" version
match "$out" $'^husk Version: [0-9.]+\nstage1 Interface: 2\nAgent Protocol: ' version
expect 254 "$husk_bin" statsu
equal "$err" 'Error: unknown command "statsu" for "husk" (did you mean stats or status?); see husk help' "unknown command"
expect 254 "$husk_bin" list --nope
equal "$err" "Error: unknown flag: --nope; see husk help list" "unknown flag"
equal "$out" "" "no usage behind an error"
expect 254 "$husk_bin" --nope
equal "$err$out" "Error: unknown flag: --nope; see husk help" "unknown flag of husk"
expect 0 "$husk_bin" --version
match "$out" '^husk [0-9.]+$' "the version by a flag"
expect 0 "$husk_bin" --version --help
match "$out" $'^NAME:\n\thusk - ' "help rather than the version"

# What users of other tools type.
habit() { # WORDS TEXT
	local words
	read -ra words <<<"$1"
	expect 254 husk "${words[@]}"
	equal "$(wc -l <"$work/err")" 1 "lines on stderr: $1"
	equal "$out" "" "stdout: $1"
	match "$err" "$2" "$1"
}
habit "run -it $image" '^Error: unknown shorthand flag: -it \(use --interactive\); see husk help run$'
habit "run -d $image" '\(use --detach\)'
habit "run -e A=b $image" '\(use --environment=NAME=VALUE behind the image\)'
habit "run -v /a:/b $image" 'unknown shorthand flag: -v \(.*volume'
habit "run -p 80:80 $image" 'unknown shorthand flag: -p \('
habit "run --rm $image" 'unknown flag: --rm \(an ended pod stays until husk rm or husk gc\)'
habit "run --detatch $image" 'unknown flag: --detatch \(did you mean --detach\?\); see husk help run$'
habit "ps" '^Error: unknown command "ps" for "husk" \(use husk list\); see husk help$'
habit "rmi x" '\(use husk image rm\)'
habit "logs -f x" '\(use --follow\); see husk help logs$'
habit "app sandbox -d" '\(use --detach\); see husk help app sandbox$'
habit "run $image ls /" '^run: "ls" is taken for an image \(arguments of an app go behind --\): '
habit "prepare $image sh -c true" '"sh" is taken for an image \(arguments of an app go behind --\): unknown shorthand'
habit "run $image $work/none" 'is taken for an image'
expect 254 "$husk_bin" --dir= list
match "$err" '^list: --dir: ' "empty data directory"
expect 254 sh -c "'$husk_bin' '--dir=$data' list >/dev/full"
match "$err" 'cannot write to stdout$' "full stdout"

# A group of commands: its members by prefixes, flags in front of and behind the words.
expect 0 husk app
match "$out" $'^NAME:\n\thusk app - .*\nCOMMANDS:\n\tadd ' "a group without a member"
for args in "app rm --help" "app --help rm" "help app rm" "h app r" "--help ap rm"; do
	read -ra words <<<"$args"
	expect 0 "$husk_bin" "${words[@]}"
	match "$out" $'^NAME:\n\thusk app rm - ' "help of a member: $args"
done
expect 254 husk app sta --app=one "$uuid"
equal "$err" 'Error: unknown command "sta" for "husk app" (did you mean start or stats or status?); see husk help app' "ambiguous member"
expect 254 husk app gc
match "$err" '^Error: unknown command "gc" for "husk app"; see husk help app$' "unknown member"
expect 254 husk help app nothing
match "$err" '^Error: unknown command "nothing" for "husk app"; see husk help app$' "help of an unknown member"
uuid=$(cat "$work/uuid")
for args in "app list $uuid" "--debug app list $uuid" "app --debug list $uuid" "app list --debug $uuid" \
	"app li $uuid" "app list --uuid-file=$work/uuid" "app --no-legend list $uuid" "app --format json list $uuid"; do
	read -ra words <<<"$args"
	expect 0 husk "${words[@]}"
	match "$out" "busybox" "list of the apps: $args"
done
expect 0 "$husk_bin" --system-config= --local-config= app "--dir=$data" list "$uuid" --stage1 "$work/none"
match "$out" "busybox" "global flags behind the words"
expect 1 husk app list none
equal "$err" 'list: no matches found for "none"' "app list of no pod"
expect 1 husk app status --app=busybox none
equal "$err" 'status: problem retrieving pod: no matches found for "none"' "app status of no pod"
expect 1 husk app status --app=none "$uuid"
equal "$err" 'status: cannot find app "none" in the pod' "app status of no app"
for verb in rm start stop; do
	expect 254 husk app $verb --app=busybox none
	equal "$err" "$verb: problem retrieving pod: no matches found for \"none\"" "app $verb of no pod"
	expect 254 husk app $verb --app=busybox
	match "$err" "^Error: must provide the pod UUID" "app $verb without a pod"
	expect 254 husk app $verb "$uuid"
	match "$err" "^Error: must provide the app to " "app $verb without an app"
done
expect 254 husk app stop --app=busybox --grace=3601 "$uuid"
equal "$err" 'Error: --grace: "3601" is not a number of seconds up to 3600; see husk help app stop' "grace beyond its limit"
expect 254 husk app sandbox image
match "$err" "^Error: an image is added with husk app add" "sandbox with an image"
expect 254 husk app sandbox
equal "$err" "sandbox: stage1 does not support mutable pods" "sandbox with this stage1"

# Without privilege, in one's own directory.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	mkdir "$work/home"
	chown nobody "$work/home"
	chmod -R o+rX "$work"
	mkdir -p "$work/bin" "$work/lib/husk"
	cp "$husk_bin" "$work/bin/husk"
	cp "$(dirname "$husk_bin")/../lib/husk/husk-images.so" "$work/lib/husk/"
	as_nobody() {
		env -i HOME="$work/home" PATH="$PATH" setpriv --reuid=nobody --regid=nogroup --clear-groups "$work/bin/husk" "$@"
	}
	printf '#!/bin/sh\nexit 3\n' >"$stage1/bin/run"
	expect 3 as_nobody --system-config= --local-config= "--stage1=$stage1" run "$image" -- true
	[ -d "$work/home/.local/share/husk/pods/run" ] || die "data directory of a user"
	# Root's directory is said before anything else, and only of what acts; help is for everybody.
	for args in "run --nope" "prepare" "run-prepared" "gc x" "rm" "enter"; do
		read -ra words <<<"$args"
		expect 254 as_nobody --system-config= --local-config= "--dir=$data" "${words[@]}"
		match "$err" "^${words[0]}: cannot run as unprivileged user: data directory \"$data\" is root's \\(" "$args"
		equal "$(wc -l <"$work/err")" 1 "lines: $args"
	done
	expect 0 as_nobody --system-config= --local-config= "--dir=$data" list
	expect 0 as_nobody "--dir=$data" run --help
	expect 254 as_nobody --system-config= --local-config= "--dir=$data" image gc
	match "$err" '^gc: .*permission denied' "image gc without permission"
	# A configuration that a user may not read is none.
	mkdir -p "$work/closed/paths.d"
	echo 'no JSON' >"$work/closed/paths.d/x.json"
	for closed in "$work/closed/paths.d" "$work/closed"; do
		chmod 700 "$closed"
		expect 0 as_nobody --system-config= "--local-config=$work/closed" list
		equal "$err" "" "closed configuration"
		expect 0 as_nobody --debug --system-config= "--local-config=$work/closed" list
		match "$err" '^list: configuration directory ".*/closed/.*" may not be read, it does not count$' "closed configuration, --debug"
	done
fi
