#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pods as domains of libvirt: what virsh shows of them and does to them, what happens when the daemon goes, is not there or says
# no; and that nothing is left, wherever a pod is killed.
# shellcheck source=tests/system/lib.sh
[ -n "${LIBVIRTD_KEEPER-}" ] || exec "$(dirname "$0")/with-libvirtd" "$0"
. "$(dirname "$0")/lib.sh"
require jq virsh setpriv
image=$(busybox_image)
run_options=(--vmm=libvirt --boot-timeout=150)

virsh() {
	command virsh -q -c qemu:///system "$@"
}

domains() {
	virsh list --all --name | grep . || :
}

no_domain() {
	[ -z "$(domains)" ] && [ -z "$(pgrep -f 'qemu-system.*guest=')" ]
}

# The pod in the background has ended with failure, which its last line says.
check_end() { # REGEX
	local got=0
	wait "$pod" || got=$?
	equal $got 254 "exit code of the pod"
	match "$(tail -n 1 "$work/pod.err")" "$1" "its last line"
	until_true no_domain
}

start_web() {
	run_in_background --name=web "$image" -- sh -c 'echo up; trap "echo down; exit 3" TERM; while :; do sleep 0.1; done'
	wait_for_line "$work/pod.out" up "$pod"
}

say "the host's libvirt shows the pod, and what it may"
start_web
equal "$(domains)" web "domains"
equal "$(virsh domuuid web)" "$uuid" "UUID of the domain"
virsh dumpxml web >"$work/web.xml"
grep -q "<husk:pod .*uuid=\"$uuid\".* name=\"web\"/>" "$work/web.xml" || die "no metadata: $(cat "$work/web.xml")"
secret=$(cat "$data/pods/run/$uuid/secret")
! grep -q "$secret" "$work/web.xml" || die "the secret is shown"
equal "$(find /run/husk -mindepth 2)" "" "files that QEMU has opened"
equal "$(virsh list --all --transient --name | grep .)" web "transient domains"
expect 0 husk stats --format=json web
[ "$(jq .vmm.pid <<<"$out")" = "$(pgrep -f 'qemu-system.*guest=web')" ] || die "stats: another VMM: $out"

say "suspended and resumed"
"$husk_bin" "--dir=$data" events "$uuid" >"$work/events" 2>/dev/null &
wait_for_line "$work/events" '"live"'
virsh suspend web >/dev/null
wait_for_line "$work/events" '"suspended"'
suspended_at=$SECONDS
expect 0 husk status web
match "$out" 'suspended=true' "status"
expect 0 husk status --format=json web
equal "$(jq .suspended <<<"$out")" true "suspended in JSON"
until [ $((SECONDS - suspended_at)) -ge 3 ]; do read -rt 0.1 <> <(:) || :; done # so long the guest's clock stands
virsh resume web >/dev/null
wait_for_line "$work/events" '"resumed"'
clock_follows web
expect 0 husk status web
[[ $out != *suspended* ]] || die "still suspended: $out"

say "a console for the curious does no harm"
timeout 5 "$top/tests/support/typist.py" -- virsh -c qemu:///system console web >"$work/console" 2>&1 </dev/null || :
expect 0 husk enter web true

say "an orderly stop"
expect 0 husk stop web
got=0
wait "$pod" || got=$?
equal "$got $(tail -n 1 "$work/pod.out")" "0 down" "exit code, and the last words"
until_true no_domain
expect 0 husk rm web

say "virsh destroy"
start_web
virsh destroy web >/dev/null
check_end 'the VM ended unexpectedly: libvirt: .* virsh destroy'
expect 0 husk rm web

say "by force, also while it is suspended"
start_web
virsh suspend web >/dev/null
expect 0 husk stop --force web
wait "$pod" || :
until_true no_domain
expect 0 husk rm web

say "the daemon is killed, and stopped: the pod ends with the reason"
for signal in KILL TERM; do
	start_web
	pkill -"$signal" -x libvirtd
	check_end "libvirt's daemon has ended"
	kill -USR1 "$LIBVIRTD_KEEPER"
	until_true virsh list
	expect 0 husk rm web
done

say "a domain of that name exists"
start_web
expect 254 husk run --dir="$work/other" --name=web "$image" -- true
one_line_error "^stage1: libvirt did not start: .*domain 'web' already exists"
expect 0 husk stop web
wait "$pod" || :
expect 0 husk rm web

say "refused before anything is made"
for options in --libvirt-uri=qemu+ssh://host/system --libvirt-uri= --machine=microvm --vmm=xen; do
	expect 254 husk run --dir="$work/none" "$options" "$image" -- true
	one_line_error "^run: ${options%%=*}"
done
mv /run/libvirt/libvirt-sock /run/libvirt/hidden
expect 254 husk run --dir="$work/none" "$image" -- true
one_line_error 'libvirtd or virtqemud installed and running'
mv /run/libvirt/hidden /run/libvirt/libvirt-sock
[ ! -e "$work/none" ] || die "a data directory was made"

# A stranger's copy of husk, which he may execute.
theirs=$work/theirs
mkdir -p "$theirs/bin" "$theirs/lib/husk/kernel" "$theirs/home" "$theirs/run"
cp "$build/bin/husk" "$theirs/bin/"
cp -rL "$build"/lib/husk/{husk-images.so,stage1-kvm} "$theirs/lib/husk/"
cp -rL "$build/lib/husk/kernel/small" "$theirs/lib/husk/kernel/" 2>/dev/null || cp -rL "$build/lib/husk/kernel/packaged" "$theirs/lib/husk/kernel/"
cp -rL "$image" "$theirs/image"
chmod 755 "$work"
chown -R 65534:65534 "$theirs/home" "$theirs/run"
stranger() {
	(cd "$theirs/home" && exec setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH="$PATH" "HOME=$theirs/home" \
		"XDG_RUNTIME_DIR=$theirs/run" timeout "$vm_limit" "$theirs/bin/husk" --system-config= --local-config= "--dir=$theirs/home/data" "$@")
}

say "another user: not the host's libvirt, but one of his own"
expect 254 stranger run --vmm=libvirt --libvirt-uri=qemu:///system "$theirs/image" -- true
one_line_error 'needs root \(give --libvirt-uri=qemu:///session\)'
expect 7 stranger run --vmm=libvirt --boot-timeout=150 "$theirs/image" -- sh -c 'echo his; exit 7'
equal "$out" his "output"
pkill -u 65534 -x libvirtd || :

pause() { # MILLISECONDS
	read -rt "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))" <> <(:) || :
}

# After one gc there is nothing.
check_nothing_left() { # WHEN
	wait_no_processes || die "$1: processes are left" # of themselves; one may hold the pod's lock until it is gone
	expect 0 husk gc --grace-period=0s
	until_true no_domain
	equal "$(ls /run/husk)" "" "files, $1"
	equal "$(ls "$data/pods/run")" "" "pods, $1"
}

say "interrupted while libvirt starts it: nothing is left, without gc"
for ms in 60 150 300 600 1000; do
	"$husk_bin" "--dir=$data" run "${run_options[@]}" "$image" -- sleep 100 >/dev/null 2>"$work/pod.err" </dev/null &
	pod=$!
	pause $ms
	kill -INT $pod
	kill -QUIT $pod # a background job of a script does not get SIGINT
	wait $pod || :
	until_true no_domain
	equal "$(ls /run/husk)" "" "files after $ms ms ($(cat "$work/pod.err"))"
done

say "run, killed wherever it is: nothing is left after one gc"
for ms in 20 60 120 200 300 500 900 1500 2500; do
	"$husk_bin" "--dir=$data" run "${run_options[@]}" "$image" -- sleep 100 >/dev/null 2>&1 </dev/null &
	pod=$!
	pause $ms
	kill -KILL $pod
	wait $pod 2>/dev/null || :
	check_nothing_left "run killed after $ms ms"
done

add_late() { # after what was left of it, if there was any
	husk app rm --app=late "$uuid" >/dev/null 2>&1 || :
	husk app add "$uuid" "$image" --name=late -- true >/dev/null 2>&1
}

only_scratch() { [ "$(virsh domblklist "husk-$uuid" | grep -c /)" = 1 ]; } # of the disks: that of all apps
say "app add, killed: the pod goes on, and takes the app the next time"
expect 0 husk app sandbox --detach "${run_options[@]}"
uuid=$out
for ms in 5 20 40 80 160 320; do
	"$husk_bin" "--dir=$data" app add "$uuid" "$image" --name=late -- true >/dev/null 2>&1 </dev/null &
	late=$!
	pause $ms
	kill -KILL $late 2>/dev/null || :
	wait $late 2>/dev/null || :
	until_true add_late # the supervisor goes on with what it was asked for
	expect 0 husk app start --app=late "$uuid"
	expect 0 husk app rm --app=late "$uuid"
	until_true only_scratch # app rm does not wait until QEMU has let go of the image
done

say "app add, its supervisor killed"
for ms in 20 80 160; do
	"$husk_bin" "--dir=$data" app add "$uuid" "$image" --name=late -- true >/dev/null 2>&1 </dev/null &
	late=$!
	pause $ms
	kill -KILL "$(cat "$data/pods/run/$uuid/pid")"
	wait $late 2>/dev/null || :
	check_nothing_left "supervisor killed $ms ms into app add"
	expect 0 husk app sandbox --detach "${run_options[@]}"
	uuid=$out
done

say "stop, and gc after it, killed"
for ms in 5 30 100 300; do
	"$husk_bin" "--dir=$data" stop "$uuid" >/dev/null 2>&1 </dev/null &
	stop=$!
	pause $ms
	kill -KILL "$(cat "$data/pods/run/$uuid/pid")" 2>/dev/null || :
	wait $stop 2>/dev/null || :
	"$husk_bin" "--dir=$data" gc --grace-period=0s >/dev/null 2>&1 </dev/null &
	gc=$!
	pause $ms
	kill -KILL $gc 2>/dev/null || :
	wait $gc 2>/dev/null || :
	check_nothing_left "killed $ms ms into stop"
	expect 0 husk app sandbox --detach "${run_options[@]}"
	uuid=$out
done
expect 0 husk stop "$uuid"
check_nothing_left "stopped"
