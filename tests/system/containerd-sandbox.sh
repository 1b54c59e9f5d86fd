#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A shim that serves the containers of a sandbox, asked by hand for what no CRI plugin asks, or only sometimes.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/containerd_lib.sh
. "$(dirname "$0")/containerd_lib.sh"
cd "$work"
export SHIM_CALL_LIMIT=$vm_limit
"$husk_bin" "--dir=$data" --insecure-options=image fetch "$(busybox_image)" >/dev/null
"$husk_bin" "--dir=$data" image extract --rootfs-only busybox tree
printf '\x12%b%s' "\\x$(printf %02x ${#config})" "$config" >options # runtimeoptions.v1.Options

bundle() { # ID TYPE SANDBOX COMMAND...
	mkdir -p "bundles/$1"
	jq -n --arg root "$work/tree" --arg type "$2" --arg sandbox "$3" '{root: {path: $root},
		annotations: {"io.kubernetes.cri.container-type": $type, "io.kubernetes.cri.sandbox-id": $sandbox},
		process: {args: $ARGS.positional}, linux: {namespaces: [{type: "pid"}, {type: "ipc"}, {type: "network"} +
			if $type == "container" then {path: "/proc/1/ns/net"} else {} end]}}' --args -- "${@:4}" >"bundles/$1/config.json"
}
start() { # ID: its shim, whose address is in $address
	address=$(cd "bundles/$1" && "$build/bin/containerd-shim-husk-v2" -namespace by-hand -address "$work/none.sock" -id "$1" start </dev/null) || return
	equal "$(cat "bundles/$1/address")" "$address" "address of $1"
}
ask() { # METHOD FIELD=VALUE... [-- METHOD ...]
	"$top/tests/support/shim_call.py" "$address" "$@"
}
creation() { # ID: the request, in $request
	request=(Create "id=$1" "bundle=$work/bundles/$1" "options=@$work/options")
}
create() { # ID
	creation "$1"
	ask "${request[@]}" >out || die "Create: $(cat out)"
}
refuse() { # CODE PATTERN METHOD FIELD=VALUE...
	! ask "${@:3}" >out || die "not refused: $*"
	match "$(cat out)" "^$3 $1 .*$2" "what is said"
}
refuse_creation() { # CODE PATTERN ID
	creation "$3"
	refuse "$1" "$2" "${request[@]}"
}
apps() { "$husk_bin" "--dir=$data" list --format=json | jq -c '[.[].app_names[]]'; }
apps_are() { [ "$(apps)" = "$1" ]; }
until_apps() { # JSON
	local deadline=$((SECONDS + vm_limit))
	until apps_are "$1"; do
		[ $SECONDS -lt $deadline ] || die "apps are $(apps), not $1"
		read -rt 0.1 <> <(:) || :
	done
}
delete() { (cd "bundles/$1" && "$build/bin/containerd-shim-husk-v2" -namespace by-hand -address "$work/none.sock" -id "$1" -bundle "$PWD" delete); }

say "a container before its sandbox, or with a text that is none"
bundle early container pod true
! start early 2>err || die "a shim for a container without its sandbox"
match "$(cat err)" 'the shim of sandbox "pod" does not answer' "what is said"
mkdir -p bundles/broken
echo '{' >bundles/broken/config.json
! start broken 2>err || die "a shim for no configuration"
match "$(cat err)" 'config.json: it is not valid JSON' "what is said"

say "a sandbox, in which nothing runs"
bundle pod sandbox pod /nothing
start pod
create pod
pod_address=$address
bundle hasty container pod true
refuse_creation 9 'the sandbox was not started' hasty
ask Start id=pod >/dev/null
refuse 9 'was started before' Start id=pod
refuse 9 'the process runs' Delete id=pod
match "$(ask State id=pod)" '"status": 2' "its state"
refuse 12 'nothing runs in the sandbox' Stats id=pod
refuse 12 'nothing runs in the sandbox' Pause id=pod
refuse 12 'nothing runs in the sandbox' Update id=pod
echo '{"args": ["true"]}' >process
refuse 12 'nothing runs in the sandbox' Exec id=pod exec_id=x spec=@process
ask Kill id=pod signal=28 >/dev/null
match "$(ask State id=pod)" '"status": 2' "after a signal that means nothing to it"

say "who does not belong there"
bundle other sandbox other /nothing
mkdir -p bundles/other
refuse_creation 6 'the pod has a container already' other
bundle stranger container nobody true
refuse_creation 5 'there is no sandbox "nobody"' stranger
bundle pod-in-app container pod true
start pod-in-app
equal "$address" "$pod_address" "the shim of a container"

say "containers"
bundle a container pod sleep 1000
create a
refuse_creation 6 'there is such a container already' a
ask Start id=a >/dev/null
until_apps '["a"]'
change() { jq "$2" "bundles/$1/config.json" >changed && mv changed "bundles/$1/config.json"; }
bundle masked container pod sh -c '[ "$(umask)" = 0027 ] && exit 5'
change masked '.process.user = {umask: 23}'
create masked
ask Start id=masked >/dev/null
match "$(ask Wait id=masked)" '"exit_status": 5' "with a umask"
ask Delete id=masked >/dev/null
bundle A container pod true
refuse_creation 6 'another container is the app "a"' A
bundle own container pod true
change own '.linux.namespaces[2] = {type: "network"}'
refuse_creation 12 'network namespace of its own' own
bundle own container pod true
change own '.linux.sysctl = {"kernel.msgmax": "8192"}'
refuse_creation 12 '"linux.sysctl" of its own' own
bundle own container pod true
change own '.hostname = "other"'
refuse_creation 12 '"hostname" of its own' own
"$husk_bin" "--dir=$data" app add "$(cat bundles/pod/husk-pod)" busybox --name=taken >/dev/null
bundle taken container pod true
refuse_creation '[0-9]*' 'taken' taken
until_apps '["a","taken"]'
"$husk_bin" "--dir=$data" app rm --app=taken "$(cat bundles/pod/husk-pod)" >/dev/null
delete own >out # which was never made
bundle inner container a true
refuse_creation 5 'there is no sandbox "a"' inner

say "another data directory is configured, from now on: pods stay where they are"
sed -i "s|\"$data\"|\"$work/elsewhere\"|" "$config/paths.d/data.json"

say "one that is given up while it is made, and one that is cleared away from outside"
bundle b container pod sleep 1000
creation b
ask "${request[@]}" -- Delete id=b >out || :
match "$(sort out | paste -sd' ')" '^Create 2 the container was deleted while it was made.* Delete 5 ' "both answers"
equal "$(apps)" '["a"]' "apps of the pod"
create b
ask Start id=b >/dev/null
until_apps '["a","b"]'
delete b >out
until_apps '["a"]'
match "$(ask Wait id=b)" '"exit_status": 137' "its end"
ask Delete id=b >/dev/null
[ ! -e bundles/b/husk-pod ] || die "who clears up would find something"

say "as many as may be"
requests=()
for n in {2..33}; do
	bundle "c$n" container pod sleep 1000
	creation "c$n"
	requests+=(-- "${request[@]}")
done
ask "${requests[@]:1}" >out || :
equal "$(grep -c '^Create {' out)" 31 "containers that were made"
match "$(grep -v '^Create {' out)" '^Create 9 a pod has at most 32 containers' "one more"

say "the end of the sandbox is the end of all; the shim ends with it, whatever is left"
ask Kill id=pod signal=9 >/dev/null
match "$(ask Wait id=pod)" '"exit_status": 137' "the sandbox"
match "$(ask Wait id=a)" '"exit_status": 255' "a container"
match "$(ask Pids id=a)" '"pid": [1-9]' "its process, which is to be asked for" # or containerd takes it for a leak
ask Delete id=a >/dev/null
refuse_creation 5 'the pod has ended' b
ask Delete id=pod -- Delete id=pod >out || : # the last one who asks is told how it ended
match "$(paste -sd' ' out)" '^Delete 9 the container is being deleted for another Delete \{' "two at a time"
refuse_creation 5 'there is no sandbox "pod"' b
ask Shutdown id=pod >/dev/null
shims_gone
delete c2 >out
equal "$("$husk_bin" "--dir=$data" list --no-legend)" "" "pods that are left"
[ ! -e elsewhere ] || die "there is another data directory"
