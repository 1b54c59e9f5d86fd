# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Common ground of the system tests; sourced by each. Bash.
#
# A test runs in its own data directory, which is checked and removed at the end: no process of a
# pod may be left, whatever the test did. HUSK_BUILD_DIR names the build tree. The words of
# HUSK_TEST_RUN_OPTIONS are put behind every "husk run", so that the same tests run on each kind of
# machine: HUSK_TEST_RUN_OPTIONS="--accel=kvm --vsock=kernel --machine=q35" (see tests/kvm-lab). HUSK_TEST_STAGE1=ns
# makes the pods out of namespaces instead (see tests/tiers).
#
# No limit says how fast something is: all are for what hangs, and come from the two numbers $slow, how many times slower
# than a quiet host this machine is (HUSK_TEST_SLOWNESS, or measured), and $vm_limit, seconds for one husk command
# (HUSK_TEST_LIMIT, or 180 times that).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
build=${HUSK_BUILD_DIR:-$top/build}
cache=${HUSK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/husk}
work=$(mktemp -d "${TMPDIR:-/tmp}/husk-test.XXXXXX")
data=$work/data
# husk without the configuration of this machine, and pods without a network unless a test asks for one; options that
# follow override that.
husk_bin=$work/husk
no_network=$top/tests/support/no-network
stage1=${HUSK_TEST_STAGE1:-kvm}
printf '#!/bin/sh\nexec "%s" --system-config="%s" --local-config= %s "$@"\n' "$build/bin/husk" "$no_network" \
	"$([ "$stage1" = kvm ] || echo "--stage1=$stage1")" >"$husk_bin"
chmod +x "$husk_bin"
slow=${HUSK_TEST_SLOWNESS:-$("$top/tests/support/slowness")}
vm_limit=${HUSK_TEST_LIMIT:-$((180 * slow))}
gone_limit=$((vm_limit / 3)) # seconds until what was killed is gone
read -r -a run_options <<<"${HUSK_TEST_RUN_OPTIONS:-}"
# The servers of a test are on this machine: no proxy is asked for them, but for packages (install_debian).
proxies=()
for proxy in http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY; do
	[ -z "${!proxy-}" ] || proxies+=("$proxy=${!proxy}")
	unset "$proxy"
done
unset proxy

# What is different between flavors, as docs/namespaces.md lists it.
is_vm() { [ "$stage1" = kvm ]; }
# Apps are in control groups of version 2, which they see: always in a VM, else if the host has no others.
has_cgroup2() { is_vm || [ -e /sys/fs/cgroup/cgroup.controllers ]; }

# The VM of a test may take longer to boot than a user would wait.
if is_vm && [[ " ${run_options[*]-}" != *" --boot-timeout="* ]]; then
	run_options+=("--boot-timeout=$((180 * slow))")
fi

say() {
	echo "-- $*" >&2
}

die() {
	echo "FAILED: $*" >&2
	exit 1
}

# Says why the test cannot run here, for ctest (and an error under CI; see tools/check).
skip() {
	echo "SKIPPED: $*" >&2
	exit 77
}

require() { # PROGRAM...
	local program
	for program; do
		command -v "$program" >/dev/null || skip "$program is not installed (tools/install-deps check)"
	done
}

# The test begins once more, in namespaces of its own that unshare(1) makes with these options.
own_namespaces() { # OPTION...
	[ -z "${HUSK_TEST_OWN_NAMESPACES:-}" ] || return 0
	trap - EXIT
	rm -rf "$work"
	HUSK_TEST_OWN_NAMESPACES=1 exec unshare "$@" -- "$0"
}

# Processes whose working directory is in our data directory: supervisors, QEMU, husk-vsock.
pod_processes() {
	local cwd
	for cwd in /proc/[0-9]*/cwd; do
		case $(readlink "$cwd" 2>/dev/null) in
		"$data"/*) basename "$(dirname "$cwd")" ;;
		esac
	done
}

# The control groups that pods of namespaces in our data directory have: the end of a pod removes them, or husk gc.
pod_groups() {
	local pod group
	for pod in "$data"/pods/*/*-*; do
		for group in {/sys/fs/cgroup,/sys/fs/cgroup/*}/husk/"${pod##*/}"; do
			[ ! -d "$group" ] || echo "$group"
		done
	done
}

# Waits, by watching /proc, until no process of a pod is left.
wait_no_processes() {
	local deadline=$((SECONDS + gone_limit))
	while [ -n "$(pod_processes)" ]; do
		[ $SECONDS -lt $deadline ] || return 1
		read -rt 0.05 <> <(:) || :
	done
}

# The end of a console: from the kernel's first complaint on if there is one, else the last lines.
console_end() { # FILE
	local found
	found=$(awk '/BUG: |Oops: |general protection|invalid opcode/ { on = 1 } on && n++ < 60' "$1")
	if [ -n "$found" ]; then echo "$found"; else tail -n 5 "$1"; fi
}

finish() {
	local status=$?
	trap - EXIT
	# A test that fails leaves its background alone; what is in there must not go on writing to $work.
	for pid in $(jobs -p); do
		kill "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	if ! wait_no_processes; then
		say "left behind:"
		for pid in $(pod_processes); do
			tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c1-200 >&2
			echo >&2
			kill -9 "$pid" 2>/dev/null || :
		done
		[ $status -ne 0 ] || status=1
	fi
	for group in $(pod_groups); do
		if find "$group" -name cgroup.procs -exec cat {} + | grep -q .; then
			say "processes left in $group"
			[ $status -ne 0 ] || status=1
		fi
		find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null || :
	done
	if [ $status -ne 0 ] && [ $status -ne 77 ]; then
		log=$(find "$data" -name console.log -printf '%T@ %p\n' 2>/dev/null | sort -n | tail -n 1) || log=
		[ -z "$log" ] || { say "end of the newest console log:"; console_end "${log#* }" >&2; }
	fi
	! mountpoint -q "$data" || umount --lazy "$data" # of a test in a mount namespace of its own
	rm -rf "$work"
	exit $status
}
trap finish EXIT

# pod_choice NAME: what a pod gets of "vsock" (kernel, user) or "acceleration" (kvm, tcg), unless an
# option says it.
pod_choice() {
	local option=$1 word
	[ "$1" != acceleration ] || option=accel
	for word in "${run_options[@]}"; do
		case $word in
		--"$option"=auto) ;;
		--"$option"=*) echo "${word#*=}" && return ;;
		esac
	done
	require jq
	"$husk_bin" "--dir=$data" doctor --format=json | jq -r ".checks[] | select(.name == \"$1\") | .value"
}

husk() {
	if [ "$1" = run ]; then
		shift
		set -- run "${run_options[@]}" "$@"
	fi
	timeout --kill-after=10 "$vm_limit" "$husk_bin" "--dir=$data" "$@"
}

# expect STATUS COMMAND...: runs it, stdout in $out, stderr in $err.
expect() {
	local want=$1 got=0
	shift
	"$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
	out=$(tr -d '\0' <"$work/out")
	err=$(tr -d '\0' <"$work/err")
	[ "$got" -eq "$want" ] || die "exit code $got instead of $want: $*
stdout: $out
stderr: $err"
}

# expect_forms STATUS WORDS of husk...: as expect, but three times: with files, with pipes, and on a terminal, where all three
# descriptors are one and a person sits. Each must say the same. $out and $err are those of the files. With
# HUSK_TEST_FORMS=file only once.
expect_forms() {
	local want=$1 got form said words
	shift
	words=("$@")
	[ "$1" != run ] || words=(run "${run_options[@]}" "${@:2}")
	if [ "${HUSK_TEST_FORMS:-}" = file ]; then
		expect "$want" husk "$@"
		return
	fi
	for form in pipe terminal; do
		got=0
		if [ $form = pipe ]; then
			{ { husk "$@" 2>&3 </dev/null || echo $? >"$work/form-status"; } | cat >"$work/form-pipe"; } 3>&1 | cat >"$work/form-pipe-err"
			got=$(cat "$work/form-status" 2>/dev/null || echo 0)
			rm -f "$work/form-status"
		else
			TYPIST_LIMIT=$vm_limit "$top/tests/support/typist.py" -- "$husk_bin" "--dir=$data" "${words[@]}" \
				>"$work/form-$form" 2>&1 </dev/null || got=$?
			: >"$work/form-$form-err"
		fi
		[ "$got" -eq "$want" ] || die "$form: exit code $got instead of $want: $* ($(cat "$work/form-$form" "$work/form-$form-err"))"
	done
	expect "$want" husk "$@"
	said=$(sort "$work/out" "$work/err")
	for form in pipe terminal; do
		equal "$(tr -d '\r' <"$work/form-$form" | sort - "$work/form-$form-err")" "$said" "what $* says, $form"
	done
}

equal() { # GOT WANT WHAT
	[ "$1" = "$2" ] || die "$3: got \"$1\", want \"$2\""
}

# The QEMU of a pod that runs, whoever's child it is.
vmm_process() { # UUID
	require jq
	husk status --wait-ready="${vm_limit}s" "$1" >/dev/null
	husk stats --format=json "$1" | jq .vmm.pid
}

# The names in the root directory of a scratch disk, or in the directory that there is instead.
scratch_names() { # FILE
	is_vm || { find "$1/apps" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | tr '\n' ' ' && return; }
	debugfs -R 'ls -p /' "$1" 2>/dev/null | awk -F/ 'NF {print $6}' | sort | tr '\n' ' '
}

match() { # TEXT REGEX WHAT
	[[ $1 =~ $2 ]] || die "$3: \"$1\" does not match \"$2\""
}

# one_line_error REGEX: the last command printed exactly one line on stderr, and that matches.
one_line_error() {
	equal "$(wc -l <"$work/err")" 1 "lines on stderr ($err)"
	match "$err" "$1" "error text"
}

# Until the log of an app of the pod $uuid has a line: it has come so far.
wait_log() { # NAME LINE
	local deadline=$((SECONDS + vm_limit))
	until expect 0 husk logs --app="$1" "$uuid" && grep -qx "$2" <<<"$out"; do
		[ $SECONDS -lt $deadline ] || die "app $1 does not print \"$2\": $out"
		read -rt 0.05 <> <(:) || :
	done
}

# Waits until the file has the text, by looking, not by guessing a time. The command that is to write it is the newest in
# the background if no process is given.
wait_for_line() { # FILE TEXT [PROCESS]
	local deadline=$((SECONDS + vm_limit)) alive=1 code=0 writer=${3-$!} # which the <(:) below changes
	until grep -q "$2" "$1" 2>/dev/null; do
		if [ $alive = 0 ]; then
			wait "$writer" 2>/dev/null || code=$? # 127 if it is no child of this shell
			die "\"$2\" did not appear in $1, its writer ended with $code ($(cat "$work"/*err))"
		fi
		[ $SECONDS -lt $deadline ] || die "\"$2\" did not appear in $1 ($(cat "$work"/*err))"
		kill -0 "$writer" 2>/dev/null || alive=0 # one look is left: it may have written before its end
		read -rt 0.2 <> <(:) || : # each look takes time from the guest where the machine is emulated, too
	done
}

# run_in_background WORDS of run...: a pod in the background, as soon as it has a UUID; its process in $pod, its UUID in
# $uuid, its output in $work/pod.out and pod.err.
run_in_background() {
	rm -f "$work/uuid"
	"$husk_bin" "--dir=$data" run "${run_options[@]}" "--uuid-file-save=$work/uuid" "$@" </dev/null >"$work/pod.out" \
		2>"$work/pod.err" &
	pod=$!
	wait_for_uuid "$work/uuid"
}

# Waits until the pod of process $pod, whose errors go to $work/pod.err, has written its UUID to the file, which it does as
# soon as it has a directory, and is prepared; the UUID is then in $uuid.
wait_for_uuid() { # FILE
	until [ -s "$1" ] && uuid=$(cat "$1") && [ ! -e "$data/pods/embryo/$uuid" ] && [ ! -e "$data/pods/prepare/$uuid" ]; do
		kill -0 "$pod" 2>/dev/null || die "the pod ended: $(cat "$work/pod.err")"
		read -rt 0.02 <> <(:) || :
	done
}

# What an app executes to wait until let_go lets it go on. The clock tells an app nothing about how far the test is.
# shellcheck disable=SC2034 # the caller's
wait_go='until [ -e /go ]; do sleep 0.1; done'

# The pod may end with the app before who was sent there has got all streams, or has ended himself; the file is made then.
let_go() { # UUID APP...
	local app code
	for app in "${@:2}"; do
		code=0
		husk enter --app="$app" "$1" touch /go >/dev/null 2>"$work/err" </dev/null || code=$?
		[ $code = 0 ] || match "$code $(cat "$work/err")" '^(137 $|254 stage1: enter: .*(: cannot attach: |: the pod has ended, or its agent))' "husk enter"
	done
}

# Waits until an app of a pod that runs has ended, and that is on disk; no longer than $pod lives, if there is one.
wait_app_end() { # UUID APP
	wait_for_line "$data/pods/run/$1/status/$2" '^[0-9]' "${pod-$$}"
}

# A server writes a line into its log behind its answer. When that of one more request, for /asked-..., has come, so have
# those of all requests before.
n_asked=0
wait_for_log() { # URL LOG
	local mark=asked-$BASHPID-$((++n_asked))
	busybox wget -q -O /dev/null "$1/$mark" 2>/dev/null || : # there is no such thing
	wait_for_line "$2" "/$mark " $$
}

# The busybox image of tools/try.
busybox_image() {
	local image=$cache/test-images/busybox-1
	if [ ! -e "$image/index.json" ]; then
		require busybox
		"$top/tools/make-try-image" "$image.$$" >&2
		mv -T "$image.$$" "$image" 2>/dev/null || rm -rf "$image.$$"
	fi
	echo "$image"
}

# until_true COMMAND...: it is tried again until it works.
until_true() {
	local deadline=$((SECONDS + vm_limit))
	until "$@" >"$work/until" 2>&1; do
		[ $SECONDS -lt $deadline ] || die "does not work: $* ($(tail -n 3 "$work/until"))"
		read -rt 0.1 <> <(:) || :
	done
}

# install_debian PACKAGES FILE: a Debian system with these as a tar archive. Mirrors move: three tries.
install_debian() {
	local try
	for try in 1 2 3; do
		env "${proxies[@]}" mmdebstrap --quiet --variant=minbase "--include=$1" bookworm "$2" >&2 && return
		say "mmdebstrap failed, try $try of 3"
	done
	return 1
}

# made_debian_image NAME PACKAGES: a Debian system with these (words with commas between them) as an OCI layout, made by
# mmdebstrap and umoci; once, whoever else wants it at this time.
made_debian_image() {
	local image=$cache/test-images/$1 scratch lock
	exec {lock}>"$cache/test-images/.$1.lock"
	flock "$lock"
	if [ ! -e "$image/index.json" ]; then
		require mmdebstrap umoci
		scratch=$(mktemp -d "$cache/test-images/.new.XXXXXX")
		say "making the test image $1"
		install_debian "$2" "$scratch/rootfs.tar" || die "cannot make the test image $1: is there a network?"
		umoci init --layout "$scratch/oci" >&2
		umoci new --image "$scratch/oci:debian" >&2
		umoci raw add-layer --image "$scratch/oci:debian" "$scratch/rootfs.tar" >&2
		umoci config --image "$scratch/oci:debian" --config.cmd /bin/bash \
			--config.env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${@:3}" >&2
		umoci gc --layout "$scratch/oci" >&2
		mv -T "$scratch/oci" "$image"
		rm -rf "$scratch"
	fi
	exec {lock}>&-
	echo "$image"
}

# One that keeps data.
database_image() {
	made_debian_image postgres-1 postgresql-15
}

# One to program in.
debian_image() {
	made_debian_image debian-1 redis-server,python3-minimal,perl,gcc,libc6-dev
}

# One that serves.
services_image() {
	made_debian_image services-1 nginx-light,redis-server,dnsmasq-base,curl,iputils-ping,python3-minimal \
		--config.exposedports 80/tcp
}

mkdir -p "$cache/test-images"
[ -x "$build/bin/husk" ] || die "$build/bin/husk is not built"

# clock_offset POD [APP]: by how much, in ms, the pod's time of day is surely ahead of the host's (> 0), or surely behind it
# (< 0); 0: it cannot be told from right. What a command takes is no error: the host is asked before and after.
clock_offset() {
	local before after guest text
	before=$(date +%s%N)
	text=$(husk enter "$1" sh -c 'rm -f /tmp/now && : >/tmp/now && stat -c %y /tmp/now' </dev/null) || die "no time from $1"
	after=$(date +%s%N)
	guest=$(date -d "$text" +%s%N)
	if [ "$guest" -gt "$after" ]; then
		echo $(((guest - after) / 1000000))
	elif [ "$guest" -lt "$before" ]; then
		echo $(((guest - before) / 1000000))
	else
		echo 0
	fi
}

# clock_follows POD: its time of day is the host's, but for 50 ms and a tick of the guest's of 10.
clock_follows() {
	local ms
	ms=$(clock_offset "$1")
	[ "${ms#-}" -lt 60 ] || die "the pod's time of day is off by $ms ms"
}
