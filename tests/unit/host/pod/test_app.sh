#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Adding and removing apps of a pod that runs, with a stage1 whose entrypoints are shell scripts: what is
# in the pod directory after success, failure, a crash at any point, and with two at the same time. No VM.
#   test_app.sh HUSK MAKE-IMAGE
set -euo pipefail

husk_bin=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/husk-app.XXXXXX")
data=$work/data
stage1=$work/stage1
supervisors=()

finish() {
	local status=$?
	[ ${#supervisors[@]} -eq 0 ] || kill "${supervisors[@]}" 2>/dev/null || :
	wait
	rm -rf "$work"
	exit $status
}
trap finish EXIT

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
	timeout 30 "$husk_bin" --system-config= --local-config= "--dir=$data" "--stage1=$stage1" "$@" \
		>"$work/out" 2>"$work/err" </dev/null || got=$?
	out=$(cat "$work/out")
	err=$(cat "$work/err")
	[ "$got" -eq "$want" ] || die "exit code $got instead of $want: $* ($err)"
}

equal() { # GOT WANT WHAT
	[ "$1" = "$2" ] || die "$3: got \"$1\", want \"$2\""
}

# files WANT WHAT: all of the pod directory but what every pod has.
files() {
	equal "$(cd "$pod" && find . -mindepth 1 ! -name pod ! -name pod.lck ! -name pod-created ! -name stage1.json ! -name pid ! -name ready |
		sed 's,^\./,,' | sort | tr '\n' ' ')" "$1" "$2"
}

apps_in_manifest() {
	expect 0 app list --no-legend "$uuid"
	cut -f 1 <<<"$out" | tr '\n' ' '
}

# The crossing entrypoints note how they were called, fail if the test says so, and see the lock held.
mkdir -p "$stage1/bin"
{
	echo '{"acKind":"ImageManifest","acVersion":"0.8.11","name":"test","annotations":['
	for verb in add start stop rm; do
		echo "{\"name\":\"husk/stage1/app/$verb\",\"value\":\"bin/app-$verb\"},"
	done
	echo '{"name":"husk/stage1/interface-version","value":"2"},{"name":"husk/stage1/run","value":"bin/run"}]}'
} >"$stage1/manifest"
cat >"$stage1/bin/run" <<END
#!/bin/sh
echo \$\$ >pid
[ -e "$work/not-ready" ] || : >ready
: >"$work/up"
exec sleep 1000
END
for verb in add start stop rm; do
	cat >"$stage1/bin/app-$verb" <<END
#!/bin/sh
echo "$verb \$*" >>"$work/calls"
for arg; do case \$arg in --app=*) app=\${arg#--app=} ;; esac; done
case $verb in add | rm) flock -n pod.lck true && echo "unlocked" >>"$work/calls" ;; esac
echo "noise" >&2
if [ -e "$work/fail-$verb" ]; then
	echo "stage1: app/$verb: played: \$app" >&2
	exit \$(cat "$work/fail-$verb")
fi
case $verb in
add) [ -s "apps/\$app/rootfs" ] && grep -q "\"\$app\"" pod && : >"status/\$app-created" ;;
rm) [ -e "status/\$app-deleting" ] || echo "unmarked" >>"$work/calls" ;;
esac
exit 0
END
done
chmod +x "$stage1"/bin/*
image=$work/busybox
"$2" "$image" >/dev/null

# sandbox: a pod whose supervisor does nothing.
sandbox() {
	rm -f "$work/up" "$work/uuid"
	"$husk_bin" --system-config= --local-config= "--dir=$data" "--stage1=$stage1" "$@" \
		"--uuid-file-save=$work/uuid" >/dev/null 2>&1 </dev/null &
	supervisors+=($!)
	until [ -e "$work/up" ]; do
		kill -0 "${supervisors[-1]}" || die "the pod ended"
	done
	uuid=$(cat "$work/uuid")
	pod=$data/pods/run/$uuid
}

whole="apps apps/web apps/web/image apps/web/rootfs status status/web-created "
sandbox app sandbox

# ---- in good order ----
files "apps status " "an empty pod"
expect 0 app add "$uuid" "$image" --name=web -- true
equal "$out$err" "" "what add says"
files "$whole" "after add"
equal "$(apps_in_manifest)" "web " "manifest after add"
equal "$(tail -n 1 "$work/calls")" "add --debug=false --uuid=$uuid --app=web" "call of app/add"
expect 0 app start --app=web "$uuid"
equal "$(tail -n 1 "$work/calls")" "start --debug=false --uuid=$uuid --app=web" "call of app/start"
expect 0 app stop --app=web --grace=3 "$uuid"
equal "$(tail -n 1 "$work/calls")" "stop --debug=false --uuid=$uuid --grace=3 --app=web" "call of app/stop"
expect 254 app add "$uuid" "$image" --name=web -- true
equal "$err" "add: error adding app to pod: error: multiple apps with name web (give it another with --name)" "twice"
files "$whole" "after a second add"

# ---- failures ----
echo 5 >"$work/fail-stop"
expect 254 app stop --app=web "$uuid"
equal "$err" 'stop: app "web" is not running' "not running"
echo 254 >"$work/fail-stop"
expect 254 app stop --app=web "$uuid"
equal "$err" "stop: error stopping app: played: web" "stop"
echo 254 >"$work/fail-start"
expect 254 app start --app=web "$uuid"
equal "$err" "start: error starting app: played: web" "start"
echo 254 >"$work/fail-rm"
expect 254 app rm --app=web "$uuid"
equal "$err" "rm: error removing app: played: web" "rm"
files "apps apps/web apps/web/image apps/web/rootfs status status/web-created status/web-deleting " "after a failed rm"
expect 0 app list --no-legend "$uuid"
equal "$out" $'web\tdeleting' "state after a failed rm"
rm "$work"/fail-*

# ---- remnants: what a crash at any point leaves ----
expect 0 app add "$uuid" "$image" --name=web -- true # of a failed rm
files "$whole" "add over a failed rm"
mkdir "$pod/logs"
touch "$pod/logs/web" "$pod/logs/web.old" "$pod/status/web" "$pod/status/web-started" "$pod/status/web-stopping"
touch "$pod/status/webber" "$pod/logs/webber" # of another app
expect 0 app rm --app=web "$uuid"
files "apps logs logs/webber status status/webber " "after rm"
equal "$(apps_in_manifest)" " " "manifest after rm"
rm -r "$pod/logs" "$pod/status/webber"
expect 254 app rm --app=web "$uuid"
equal "$err" 'rm: error removing app: error: nonexistent app "web"' "rm of what is not there"
files "apps status " "after that"

mkdir "$pod/apps/web" # add died before the manifest was written
touch "$pod/apps/web/rootfs" "$pod/status/web" "$pod/status/web-started" "$pod/status/.web-reserved"
expect 0 app add "$uuid" "$image" --name=web -- true
files "$whole" "add over a directory"
rm "$pod/status/web-created" # add died before the supervisor had the app
expect 0 app list --no-legend "$uuid"
equal "$out" $'web\tpreparing' "state of a remnant"
expect 0 app add "$uuid" "$image" --name=web -- true
files "$whole" "add over an entry in the manifest"
equal "$(apps_in_manifest)" "web " "manifest after that"
rm -r "$pod/status/web-created" "$pod/apps/web"
expect 0 app rm --app=web "$uuid"
files "apps status " "rm of an entry in the manifest"
equal "$(apps_in_manifest)" " " "manifest after that"

# ---- an add that fails leaves nothing ----
echo 254 >"$work/fail-add"
expect 254 app add "$uuid" "$image" --name=web -- true
equal "$err" "add: error adding app to pod: played: web" "failed add"
files "apps status " "after a failed add"
equal "$(apps_in_manifest)" " " "manifest after that"
rm "$work/fail-add"
for ending in created started stopping deleting oom; do
	expect 254 app add "$uuid" "$image" "--name=web-$ending" -- true
	equal "$err" "add: error adding app to pod: app name \"web-$ending\": the ending -$ending is reserved (use --name=NAME)" \
		"reserved name"
done
files "apps status " "after reserved names"

# ---- two at the same time ----
for round in 1 2 3 4 5; do
	husk app add "$uuid" "$image" --name=web -- true >/dev/null 2>"$work/one" &
	one=$!
	husk app add "$uuid" "$image" --name=web -- true >/dev/null 2>"$work/two" &
	winners=0
	wait $! && winners=$((winners + 1))
	wait $one && winners=$((winners + 1))
	equal "$winners" 1 "winners of two adds in round $round"
	equal "$(cat "$work/one" "$work/two")" \
		"add: error adding app to pod: error: multiple apps with name web (give it another with --name)" "the other one"
	files "$whole" "after two adds"
	husk app rm --app=web "$uuid" 2>/dev/null &
	one=$!
	husk app rm --app=web "$uuid" 2>/dev/null &
	winners=0
	wait $! && winners=$((winners + 1))
	wait $one && winners=$((winners + 1))
	equal "$winners" 1 "winners of two removals in round $round"
	files "apps status " "after two removals"
done
! grep -E 'unlocked|unmarked' "$work/calls" || die "an entrypoint found the pod unprepared"

# ---- who waits for the lock finds that the pod has ended, or is gone ----
expect 0 app add "$uuid" "$image" --name=web -- true
# waiter COMMAND...: starts it while the lock is held, and goes on when it waits for it.
waiter() {
	"$husk_bin" --system-config= --local-config= "--dir=$data" "--stage1=$stage1" "$@" \
		>/dev/null 2>"$work/waiter" </dev/null 9<&- &
	waiting=$!
	until grep -qE -- "-> FLOCK.* $waiting " /proc/locks; do
		kill -0 $waiting || die "it did not wait: $(cat "$work/waiter")"
	done
}
exec 9<>"$pod/pod.lck"
flock 9
waiter app add "$uuid" "$image" --name=late -- true
kill "${supervisors[0]}"
wait "${supervisors[0]}" || :
exec 9<&-
! wait $waiting || die "an app was added to a pod that has ended"
equal "$(cat "$work/waiter")" "add: error adding app to pod: pod \"$uuid\" isn't currently running" "add that waited"
files "$whole" "after that"

calls=$(wc -l <"$work/calls")
expect 254 app add "$uuid" "$image" --name=late -- true
equal "$err" "add: pod \"$uuid\" isn't currently running" "add to a pod that has ended"
expect 0 app stop --app=web "$uuid"
equal "$out" "pod \"$uuid\" is already stopped" "stop in a pod that has ended"
expect 0 app rm --app=web "$uuid"
files "apps status " "rm in a pod that has ended"
equal "$(wc -l <"$work/calls")" "$calls" "calls of stage1 about a pod that has ended"
exec 9<>"$pod/pod.lck"
flock 9
waiter app rm --app=web "$uuid"
rm -rf "$data/pods/run/$uuid"
exec 9<&-
! wait $waiting || die "an app was removed from a pod that is gone"
equal "$(cat "$work/waiter")" "rm: error removing app: pod \"$uuid\" is being deleted" "rm that waited"

# ---- pods that cannot be changed ----
touch "$work/not-ready"
sandbox app sandbox
expect 254 app add "$uuid" "$image" --name=web -- true
equal "$err" "add: supervisor for pod \"$uuid\" is not yet ready (wait with husk status --wait-ready)" "not ready"
rm "$work/not-ready"
sandbox run "$image" --name=web
before=$(find "$pod" | sort)
for command in "app add $uuid $image --name=other" "app rm --app=web $uuid" "app stop --app=web $uuid" "app start --app=web $uuid"; do
	# shellcheck disable=SC2086 # words
	expect 254 $command
	[[ $err =~ ^[a-z]+:\ error\ [a-z]+\ app.*:\ immutable\ pod\ \(make\ one\ with\ husk\ app\ sandbox\)$ ]] ||
		die "immutable pod: $command: $err"
done
equal "$(find "$pod" | sort)" "$before" "files of an immutable pod"
