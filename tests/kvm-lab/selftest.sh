#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The lab itself: what comes out of it and how it ends, whatever runs in it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/kvm-lab-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
# The lab makes no files: this directory stays empty.
mkdir "$work/tmp"
export TMPDIR=$work/tmp

say() {
	echo "-- $*" >&2
}

die() {
	echo "FAILED: $*" >&2
	exit 1
}

# lab STATUS ARGUMENTS...: runs the lab, its output in $work/out and $work/err.
lab() {
	local want=$1 got=0
	shift
	"$here/run" "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
	[ "$got" -eq "$want" ] || die "exit code $got instead of $want: run $*
stdout: $(tail -n 20 "$work/out")
stderr: $(tail -n 20 "$work/err")"
}

equal() { # GOT WANT WHAT
	[ "$1" = "$2" ] || die "$3: got \"$1\", want \"$2\""
}

# Waits until a file has the text.
wait_for_line() { # FILE TEXT
	local deadline=$((SECONDS + 600))
	until grep -qs "$2" "$1"; do
		[ $SECONDS -lt $deadline ] || die "\"$2\" did not appear in $1"
		read -rt 0.05 <> <(:) || :
	done
}

wait_until_gone() { # PID...
	local deadline=$((SECONDS + 120)) pid
	for pid; do
		while [ -e "/proc/$pid/stat" ] && ! grep -qs '^State:.*Z' "/proc/$pid/status"; do
			[ $SECONDS -lt $deadline ] || die "process $pid is left: $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c 1-200)"
			read -rt 0.05 <> <(:) || :
		done
	done
}

say "the kernel is there, or is made now"
start=$SECONDS
"$here/kernel" >/dev/null
say "which took $((SECONDS - start)) s"

say "exit code, both streams apart, directory, environment, devices, no network, files stay inside"
cat >"$work/inside" <<'EOF'
echo to stdout
echo to stderr >&2
echo "directory $(pwd)"
echo "variables $COLOUR $HUSK_SELFTEST ${OTHER-unset}"
echo "home $HOME path $PATH"
for device in /dev/kvm /dev/vhost-vsock; do
	[ -c $device ] && exec 3<>$device && echo "opens $device"
done
echo "interfaces $(ls /sys/class/net | tr '\n' ' ')"
echo "file systems $(stat -f -c %T /proc /sys /dev/pts /dev/shm /run /sys/fs/cgroup | tr '\n' ' ')"
echo changed >"$(dirname "$0")/inside" && echo new >"$(dirname "$0")/new" && echo "written $(cat "$(dirname "$0")/inside")"
read -r line || echo "stdin is empty"
exit 7
EOF
cd "$work"
OTHER=x HUSK_SELFTEST="two words" lab 7 --env "COLOUR=light blue" -- sh "$work/inside"
equal "$(cat "$work/err")" "to stderr" stderr
equal "$(cat "$work/out")" "to stdout
directory $work
variables light blue two words unset
home $HOME path $PATH
opens /dev/kvm
opens /dev/vhost-vsock
interfaces lo 
file systems proc sysfs devpts tmpfs tmpfs cgroup2fs 
written changed
stdin is empty" stdout
grep -q 'to stderr' "$work/inside" || die "the machine wrote to the host's file"
[ ! -e "$work/new" ] || die "the machine made a file on the host"

say "64 MiB come through whole"
want=$(openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 00000000000000000000000000000000 \
	-in /dev/zero 2>/dev/null | head -c 64M | sha256sum) || :
lab 0 -- sh -c 'openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 00000000000000000000000000000000 \
	-in /dev/zero 2>/dev/null | head -c 64M; echo done >&2'
equal "$(sha256sum <"$work/out")" "$want" "checksum of 64 MiB"
equal "$(cat "$work/err")" "done" "stderr beside 64 MiB"

say "two machines at once; a signal is 128 + n; a command that is not there"
"$here/run" -- sh -c 'kill -9 $$' >"$work/first" 2>&1 &
first=$!
lab 127 -- /not/there
equal "$(cat "$work/err")" "kvm-lab: /not/there: No such file or directory" "error text"
status=0
wait $first || status=$?
equal $status 137 "exit code of a command killed by SIGKILL ($(cat "$work/first"))"

say "a command that says something may take longer than the limit; one that hangs is ended there"
# shellcheck disable=SC2016 # of the inner shell; read with a limit waits without a process
lab 124 --limit 6 -- bash -c 'for n in 1 2 3 4; do echo $n; read -rt 2 <> <(:); done; echo before; exec tail -f /dev/null'
equal "$(tr '\n' ' ' <"$work/out")" "1 2 3 4 before " "output before the limit"
equal "$(cat "$work/err")" "kvm-lab: ended after 6 s without output (--limit): bash" "message at the limit"

say "a machine that dies shows its console, which is kept"
lab 125 --keep-console "$work/console" -- sh -c 'echo c >/proc/sysrq-trigger'
grep -q '^kvm-lab: the machine died before the command ended' "$work/err" || die "no reason: $(cat "$work/err")"
grep -q '^kvm-lab: console: .*Kernel panic' "$work/err" || die "no console: $(cat "$work/err")"
grep -q 'Kernel panic' "$work/console" || die "the console was not kept"

say "the machine dies with its caller"
cat >"$work/caller" <<'EOF'
"$1/run" -- sh -c 'echo up; exec tail -f /dev/null' >"$2/out" 2>&1 &
echo $! >"$2/pid"
wait
EOF
: >"$work/out"
bash "$work/caller" "$here" "$work" &
caller=$!
wait_for_line "$work/out" up
lab_pid=$(cat "$work/pid")
qemu=$(pgrep -P "$lab_pid") || die "no QEMU below the lab"
kill -9 $caller
wait $caller 2>/dev/null || :
wait_until_gone "$lab_pid" "$qemu"

say "SIGTERM ends it, too"
: >"$work/out" # else the line of the last machine may still be there
"$here/run" -- sh -c 'echo up; exec tail -f /dev/null' >"$work/out" 2>&1 &
lab_pid=$!
wait_for_line "$work/out" up
qemu=$(pgrep -P $lab_pid) || die "no QEMU below the lab"
kill $lab_pid
status=0
wait $lab_pid || status=$?
equal $status 143 "exit code after SIGTERM"
wait_until_gone "$qemu"

say "errors of the caller"
lab 125 --
lab 125 --limit 0 -- true
lab 125 --env '1=2' -- true
equal "$(wc -l <"$work/err")" 1 "lines about a bad option"

equal "$(find "$work/tmp" -mindepth 1)" "" "temporary files"
