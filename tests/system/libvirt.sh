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

wait_until() { # COMMAND...
	local deadline=$((SECONDS + vm_limit))
	until "$@"; do
		[ $SECONDS -lt $deadline ] || die "never: $*"
		read -rt 0.1 <> <(:) || :
	done
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
	wait_until no_domain
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
expect 0 husk status web
match "$out" 'suspended=true' "status"
expect 0 husk status --format=json web
equal "$(jq .suspended <<<"$out")" true "suspended in JSON"
virsh resume web >/dev/null
wait_for_line "$work/events" '"resumed"'
expect 0 husk enter web true
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
wait_until no_domain
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
wait_until no_domain
expect 0 husk rm web

say "the daemon is killed, and stopped: the pod ends with the reason"
for signal in KILL TERM; do
	start_web
	pkill -"$signal" -x libvirtd
	check_end "libvirt's daemon has ended"
	kill -USR1 "$LIBVIRTD_KEEPER"
	wait_until virsh list >/dev/null 2>&1
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
cp -rL "$build/lib/husk/stage1-kvm" "$theirs/lib/husk/"
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

say "killed wherever it is, nothing is left after one gc"
for ms in 20 60 120 200 300 500 900 1500 2500; do
	"$husk_bin" "--dir=$data" run "${run_options[@]}" "$image" -- sleep 100 >/dev/null 2>&1 </dev/null &
	pod=$!
	read -rt "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))" <> <(:) || :
	kill -KILL $pod
	wait $pod 2>/dev/null || :
	expect 0 husk gc --grace-period=0s
	wait_until no_domain
	wait_no_processes || die "after $ms ms: processes are left"
	equal "$(ls /run/husk)" "" "files after $ms ms"
done
