#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The life of a pod from outside: prepared, run, waited for, stopped, removed, collected; and what is said of pods
# that are not there, not whole or not ours.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

require python3 setpriv
image=$(busybox_image)

start_pod() { # ARGS...
	run_in_background "$image" -- "$@"
	expect 0 husk status --wait-ready=120s "$uuid"
}

ended() { # STATUS: waits for the pod in the background
	local got=0
	wait $pod || got=$?
	equal "$got" "$1" "exit status of the pod ($(cat "$work/pod.err"))"
}

state_of() { # UUID
	husk status "$1" | sed -n 's/^state=//p'
}

say "prepared, run once, read, collected"
uuid=$(husk prepare "$image" -- sh -c 'echo out; exit 3')
equal "$(stat -c %a "$data/pods/prepared/$uuid/pod")" 600 "mode of the manifest, which nobody has read yet"
equal "$(state_of "$uuid")" prepared "state"
expect 0 husk cat-manifest "${uuid:0:8}"
match "$out" '"acKind":"PodManifest"' "manifest"
expect 254 husk stop "$uuid"
match "$err" "pod \"$uuid\" is not running" "stop of a prepared pod"
expect 3 husk run-prepared "${run_options[@]}" "$uuid"
equal "$out" out "output"
expect 254 husk run-prepared "$uuid"
one_line_error "^run-prepared: pod \"$uuid\" is not prepared"
dir=$data/pods/run/$uuid
for secret in pod secret console.log logs/busybox scratch; do
	case $(stat -c %a "$dir/$secret") in 600 | 700) ;; *) die "others get to $secret of the pod" ;; esac
done
# The group may see which pods there are; below a scratch directory modes are those of apps.
equal "$(find "$data/pods" -path '*/scratch/*' -prune -o '(' -type f -perm /0137 ! -name rootfs -o -type d -perm /0027 ')' -print)" "" \
	"what others may read, or the group may write"
equal "$(state_of "$uuid")" exited "state"
match "$(husk status --wait=1s "$uuid")" app-busybox=3 "status of what has ended"
expect 0 husk stop "$uuid"
equal "$out" "pod \"$uuid\" is already stopped" "stop of what has ended"
expect 0 husk gc
match "$err" "moving pod \"$uuid\" to garbage" "gc"
match "$err" "pod \"$uuid\" not removed: still within grace period \(30m0s\)" "gc"
equal "$(state_of "$uuid")" "exited garbage" "state"
match "$(husk status "$uuid")" app-busybox=3 "exit code after the mark"
expect 0 husk gc --mark-only --grace-period=0
expect 0 husk gc --grace-period=0
equal "$out" "Garbage collecting pod \"$uuid\"" "gc"
expect 254 husk status "$uuid"
one_line_error "no matches found for \"$uuid\""

say "stopped in good order, by two at once; a running pod is not removed"
start_pod sh -c 'trap "echo bye; exit 7" TERM; echo up; while :; do sleep 0.1; done'
# The pod is ready when its apps are started: the trap is the app's own, and is there once it says so.
until [ -s "$work/pod.out" ]; do
	kill -0 $pod || die "the pod ended: $(cat "$work/pod.err")"
	read -rt 0.02 <> <(:) || :
done
expect 254 husk rm "$uuid"
match "$err" "pod \"$uuid\" is currently running" "rm of a running pod"
expect 0 husk gc --grace-period=0 --expire-prepared=0
equal "$(state_of "$uuid")" running "state after a gc"
husk stop "$uuid" >"$work/stop.1" 2>&1 &
other=$!
expect 0 husk stop "$uuid"
wait $other || die "the other stop failed: $(cat "$work/stop.1")"
ended 0
equal "$(cat "$work/pod.out")" $'up\nbye' "output"
match "$(husk status "$uuid")" app-busybox=7 "exit code of a stopped app"
expect 0 husk rm "$uuid"
equal "$out" "\"$uuid\"" "rm"

say "asked to end by the signal that its image wishes, or that somebody says; one that is none does not matter"
require umoci
mkdir "$work/signals"
cp -r "$image" "$work/signals/oci"
traps='for s in TERM QUIT INT; do trap "echo $s; exit 0" $s; done; echo up; while :; do sleep 0.1; done'
ask_to_end() { # HOW SIGNAL WORDS...: the word of the app's last line
	run_in_background "$work/signals/oci" --name=app "${@:3}" -- sh -c "$traps"
	wait_for_line "$work/pod.out" up $pod
	expect 0 husk stop "$uuid"
	ended 0
	equal "$(tail -n 1 "$work/pod.out")" "$2" "$1"
}
umoci config --image "$work/signals/oci:busybox" --config.stopsignal=SIGQUIT >/dev/null
ask_to_end "an image's" QUIT
ask_to_end "an option" INT --stop-signal=int
umoci config --image "$work/signals/oci:busybox" --config.stopsignal=SIGNOTHING >/dev/null
ask_to_end "an image's that is none" TERM
expect 254 husk run "$image" --stop-signal=SIGNOTHING
one_line_error '--stop-signal: "SIGNOTHING" is no signal \(like SIGQUIT, SIGRTMIN\+3, 15\)'

say "who works in a pod's directory is left alone when that goes"
for how in "rm" "gc --grace-period=0"; do
	expect 0 husk run "${run_options[@]}" --uuid-file-save="$work/uuid" "$image" -- true
	uuid=$(cat "$work/uuid")
	(cd "$data"/pods/*/"$uuid" && exec sleep 1000) &
	visitor=$!
	until [ "$(readlink "/proc/$visitor/cwd")" = "$data/pods/run/$uuid" ]; do :; done
	read -ra words <<<"$how"
	[ "$how" != rm ] || words+=("$uuid")
	expect 0 husk "${words[@]}"
	expect 254 husk status "$uuid"
	kill $visitor 2>/dev/null || die "husk $how has killed who worked there"
	wait $visitor || :
done

say "killed: stop --force, and SIGKILL to the supervisor"
start_pod sh -c 'trap "" TERM; sleep 1000'
expect 0 husk stop --force "$uuid"
ended 137
equal "$(state_of "$uuid")" exited "state"
start_pod sleep 1000
kill -9 $pod
expect 0 husk status --wait=60s "$uuid"
match "$out" '^state=exited' "state"
ended 137
expect 0 husk gc --grace-period=0
equal "$(find "$data/pods" -mindepth 2)" "" "what is left"

say "waiting"
start_pod sh -c "$wait_go; exit 5"
expect 254 husk status --wait=1ms "$uuid"
one_line_error "error waiting for pod to finish: context deadline exceeded"
husk status --wait "$uuid" >"$work/waited" &
waiter=$!
let_go "$uuid" busybox
wait $waiter || die "status --wait: status $?"
match "$(cat "$work/waited")" app-busybox=5 "status after the wait"
ended 5
a=$(husk prepare "$image" -- true)
expect 254 husk status --wait-ready=1ms "$a"
one_line_error "error waiting for pod readiness: context deadline exceeded"

say "a service manager hears when the pod is up"
python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(120)
print(s.recv(100).decode())' "$work/notify" >"$work/heard" &
manager=$!
until [ -S "$work/notify" ]; do read -rt 0.02 <> <(:) || :; done
expect 0 env NOTIFY_SOCKET="$work/notify" "$husk_bin" "--dir=$data" run "${run_options[@]}" "$image" -- sh -c 'echo "${NOTIFY_SOCKET-none}"'
equal "$out" none "the app's NOTIFY_SOCKET"
wait $manager || die "the service manager heard nothing"
equal "$(cat "$work/heard")" READY=1 "what the service manager heard"

say "names of pods"
b=$(husk prepare "$image" -- true)
expect 254 husk status ""
one_line_error "UUID cannot be empty"
expect 254 husk rm ffffffff-ffff
match "$err" 'no matches found for "ffffffff-ffff"' "rm of a foreign UUID"
mkdir "$data/pods/prepared/${a:0:8}-0000-4000-8000-000000000000"
expect 254 husk status "${a:0:8}"
one_line_error "ambiguous uuid, 2 matches"
expect 0 husk rm "${a:0:8}-0000-4000-8000-000000000000"
expect 1 husk rm "--uuid-file=$work/no-such-file"
one_line_error "unable to resolve UUID from file"

say "damaged pods do not hide the others"
echo '{' >"$data/pods/prepared/$a/pod"
expect 0 husk list --full
match "$out" "$b" "the other pod"
match "$err" "pod \"$a\": .*" "what is wrong"
expect 254 husk run-prepared "${run_options[@]}" "$a"
match "$err" "manifest" "a pod with a damaged manifest"
expect 0 husk gc --grace-period=0 --expire-prepared=0
equal "$(find "$data/pods" -mindepth 2)" "" "what is left"

say "no data directory, a file in its place"
expect 0 "$husk_bin" "--dir=$work/none" gc
expect 0 "$husk_bin" "--dir=$work/none" list
expect 254 "$husk_bin" "--dir=$work/none" rm "$a"
[ ! -e "$work/none" ] || die "a data directory was made"
: >"$work/file"
expect 254 "$husk_bin" "--dir=$work/file" gc
one_line_error "^gc: .*$work/file"
mkdir -p "$work/odd/pods"
: >"$work/odd/pods/run"
expect 254 "$husk_bin" "--dir=$work/odd" list
one_line_error "^list: cannot open pods/run of the data directory: Not a directory"

say "what is somebody else's"
data=$work/theirs
uuid=$(husk prepare "$image" -- true)
chown -R 12345 "$data"
chmod 0700 "$data" "$data/pods/prepared/$uuid"
# powerless WORDS...: husk as root without the capabilities that let root pass file modes.
powerless() {
	setpriv --bounding-set=-dac_override,-dac_read_search,-fowner,-chown "$husk_bin" "--dir=$data" "$@"
}
for words in list "status $uuid" "rm $uuid" "stop $uuid" "cat-manifest $uuid" "run-prepared $uuid" gc "enter $uuid" "prepare $image"; do
	# shellcheck disable=SC2086 # a list of words
	expect 254 powerless $words
	match "$err" 'Permission denied' "$words in a data directory that may not be read"
done
chmod 0755 "$data" "$data/pods" "$data/pods/"*
expect 254 powerless list
one_line_error "data directory \"$data\" belongs to user 12345"
chown 0 "$data" "$data/cache" "$data/pods" "$data/pods/"*
for words in "status $uuid" "rm $uuid" "cat-manifest $uuid" "run-prepared $uuid"; do
	# shellcheck disable=SC2086
	expect 254 powerless $words
	match "$err" 'Permission denied' "$words of a pod that may not be read"
done
expect 0 powerless list --full
match "$err" "pod \"$uuid\": .*Permission denied" "list of a pod that may not be read"

say "a host that was rebooted in the middle of a run"
data=$work/data
start_pod sleep 1000
cp -a "$data" "$work/rebooted" # what is on the disk, and nothing that holds a lock
expect 0 husk stop --force "$uuid"
ended 137
data=$work/rebooted
equal "$(state_of "$uuid")" exited "state"
echo $$ >"$data/pods/run/$uuid/pid" # a number that somebody else has now
expect 0 husk stop --force "$uuid"
equal "$out" "pod \"$uuid\" is already stopped" "stop after the reboot"
expect 254 husk enter "$uuid" true
one_line_error "isn't currently running"
expect 0 husk gc --grace-period=0
equal "$(find "$data/pods" -mindepth 2)" "" "what is left"
