#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Further processes in containers of containerd, terminals, and a shim that is asked for what ctr never asks.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/containerd_lib.sh
. "$(dirname "$0")/containerd_lib.sh"
require python3
typist=$top/tests/support/typist.py
export TYPIST_LIMIT=$vm_limit SHIM_CALL_LIMIT=$vm_limit

n=0
exec_in() { # [OPTION...] CONTAINER COMMAND...
	n=$((n + 1))
	c task exec --exec-id "e$n" "$@"
}
# ask METHOD FIELD=VALUE... [-- METHOD ...]: of the shim itself.
ask() {
	"$top/tests/support/shim_call.py" "$address" "$@"
}
# type_to STATUS STEP... -- ctr's words: what appeared is in $out.
type_to() {
	local want=$1 got=0 steps=()
	shift
	while [ "$1" != -- ]; do
		steps+=("$1")
		shift
	done
	shift
	"$typist" "${steps[@]}" -- ctr -a "$work/containerd.sock" "$@" >"$work/out" 2>&1 </dev/null || got=$?
	out=$(tr -d '\0\r' <"$work/out")
	[ "$got" -eq "$want" ] || die "exit code $got instead of $want: $out"
}
wait_in() { # CONTAINER COMMAND...: until it succeeds
	until exec_in "$@" </dev/null >/dev/null 2>&1; do
		[ "$(state "$1")" = RUNNING ] || die "container $1 has ended"
	done
}

import_busybox
run -d --env A=1 $i box sh -c 'trap "exit 7" TERM; touch /tmp/up; while :; do sleep 0.1; done' </dev/null
wait_in box test -e /tmp/up

say "a further process: exit code, both outputs, input"
code=0
exec_in box sh -c 'echo out; echo err >&2; exit 5' >"$work/out" 2>"$work/err" </dev/null || code=$?
equal "$code $(cat "$work/out") $(cat "$work/err")" "5 out err" "exit code and outputs"
equal "$(echo some words | exec_in box cat)" "some words" "what was read"
head -c $((${HUSK_TEST_STREAM_MIB:-64} << 20)) /dev/urandom >"$work/bytes"
# shellcheck disable=SC2094 # both read it
exec_in box cat <"$work/bytes" | cmp - "$work/bytes" || die "bytes are lost"
code=0
exec_in box sh -c 'kill -9 $$' </dev/null || code=$?
equal "$code" 137 "exit code of one that a signal ended"

say "where, as whom and with what it runs"
out=$(exec_in --user 1000:1001 --cwd /tmp box sh -c 'id -u; id -g; id -G; pwd; echo $A' </dev/null)
equal "$(paste -sd' ' <<<"$out")" "1000 1001 1001 /tmp 1" "ids, directory, variable"
address=$(cat "$work/state/io.containerd.runtime.v2.task/default/box/address")
c container info box --spec | jq '.process | .args = ["sh", "-c", "sleep 0.2; [ \"$A$B\" = 2 ]"] | .env = ["B=2", "PATH=/bin"] |
	.user = {uid: 5, gid: 6}' >"$work/process.json"
ask Exec id=box exec_id=own spec=@"$work/process.json" -- Start id=box exec_id=own -- Wait id=box exec_id=own >"$work/out"
match "$(cat "$work/out")" 'Wait .*"exited_at"' "end of one with variables of its own"
grep -q exit_status "$work/out" && die "it has other variables: $(cat "$work/out")"
ask Delete id=box exec_id=own >/dev/null

say "what cannot be run, or as it cannot be run, is refused, and the container goes on"
refused() { # REGEX OPTIONS...
	local code=0
	exec_in "${@:2}" >"$work/out" 2>"$work/err" </dev/null || code=$?
	match "$code $(cat "$work/err")" "^1 .*$1" "refusal"
}
refused '"/no/such": No such file or directory' box /no/such
refused '"/nope": No such file or directory' --cwd /nope box true
jq '.capabilities.bounding += ["CAP_SYS_ADMIN"]' "$work/process.json" >"$work/more.json"
ask Exec id=box exec_id=more spec=@"$work/more.json" >"$work/out" || :
match "$(cat "$work/out")" '^Exec 12 .*"process.capabilities" is not that of the container' "more privileges"
match "$(ask Checkpoint id=box || :)" '^Checkpoint 12 this method is not supported' "a checkpoint"
equal "$(state box)" RUNNING "state"

say "one that leaves something behind, which has its outputs open, ends all the same"
equal "$(exec_in box sh -c 'sleep 1000 & echo done' </dev/null)" "done" "output"

say "what is there, a signal for one, and that it outlives its client"
c task exec -d --exec-id late box sleep 1000 </dev/null
match "$(c task ps box)" '[0-9]+ +-.*ExecID:late' "ps"
pid=$(c task ps box | awk '/ExecID:late/ { print $1 }')
[ -d "/proc/$pid" ] || die "there is no process $pid, which stands for it"
c task kill --exec-id late --signal INT box
until ! c task ps box | grep -q late; do :; done
match "$(ask State id=box exec_id=late)" '"status": 3.*"exit_status": 130' "its state"
ctr -a "$work/containerd.sock" task exec --exec-id left box sh -c 'echo it-is-there; sleep 1000' >"$work/left.out" 2>&1 &
client=$!
wait_for_line "$work/left.out" it-is-there $client
kill -9 $client
wait $client 2>/dev/null || :
match "$(ask State id=box exec_id=left)" '"status": 2' "state without its client"

say "what is only asked for"
p=$work/process.json
ask Exec id=box exec_id=x spec=@"$p" -- Exec id=box exec_id=x spec=@"$p" -- Delete id=box exec_id=x -- Start id=box exec_id=x >"$work/out" || :
equal "$(sed 's/[0-9]* the.*exited.*//; s/{.*/{/' "$work/out" | paste -sd' ')" \
	"Exec { Exec 6 the container has a process of this ID Delete { Start 5 there is no such process" "twice, deleted, started"
ask Exec id=box exec_id=y spec=@"$p" -- Kill id=box exec_id=y signal=15 -- Wait id=box exec_id=y -- Start id=box exec_id=y -- \
	Delete id=box exec_id=y >"$work/out" || :
match "$(cat "$work/out")" 'Wait .*"exit_status": 137' "killed before it was started"
match "$(cat "$work/out")" 'Start 9 ' "started then"
ask Exec id=box exec_id=z spec=@"$p" -- Start id=box exec_id=z -- Delete id=box exec_id=z -- Start id=box exec_id=z >"$work/out" || :
match "$(cat "$work/out")" 'Delete 9 the process runs' "deleted while it starts"
match "$(cat "$work/out")" 'Start 9 ' "started twice"
ask Exec id=box exec_id=k spec=@"$p" -- Start id=box exec_id=k -- Kill id=box exec_id=k signal=9 -- Wait id=box exec_id=k >"$work/out" || :
match "$(cat "$work/out")" 'Start 2 the process was killed' "a start that is killed"
match "$(cat "$work/out")" 'Wait .*"exit_status": 137' "its end"
ask Exec id=box exec_id=t spec=@"$p" -- Start id=box exec_id=t -- Kill id=box exec_id=t signal=15 -- Wait id=box exec_id=t >"$work/out"
match "$(cat "$work/out")" 'Start .*"pid"' "a start with a signal behind it"
match "$(cat "$work/out")" 'Wait .*"exit_status": 143' "its end"
mkfifo "$work/in"
jq '.args = ["sh", "-c", "cat; for i in 1 2 3; do echo for-no-log >&2; done"]' "$p" >"$work/cat.json"
ask Exec id=box exec_id=c stdin="$work/in" spec=@"$work/cat.json" -- CloseIO id=box exec_id=c stdin=1 -- Start id=box exec_id=c -- \
	Wait id=box exec_id=c >"$work/out"
match "$(cat "$work/out")" 'Wait .*"exited_at"' "the end of one whose input ended before it began"
grep for-no-log "$work/containerd.log" && die "a container writes into containerd's log"
match "$(ask Exec id=box exec_id= spec=@"$p" || :)" 'Exec 3 ' "without a name"
match "$(ask Exec id=box exec_id=w || :)" 'Exec 3 .*no specification' "without a specification"
match "$(ask ResizePty id=box exec_id=none width=1 height=1 || :)" 'ResizePty 5 ' "the size of what is not there"

say "as many as may be"
for k in {1..1019}; do
	printf '%s\n' -- Exec id=box exec_id="many$k" spec=@"$p"
done | tail -n +2 >"$work/words"
mapfile -t words <"$work/words"
ask "${words[@]}" >"$work/out" || :
match "$(grep -v '{}' "$work/out" | sort | uniq -c)" '^ +[0-9]+ Exec 9 the container has 1024 further processes already$' "one too many"
ask Delete id=box exec_id=many1 >/dev/null

say "a terminal of a further process: size, a new size, Ctrl-C, the end"
type_to 3 --size 33x101 --await '# ' --type 'stty size; tty\n' --await '33 101' --await /dev/pts/ --resize 20x70 \
	--type 'until stty size | grep "20 70"; do :; done\n' --await '20 70' --type 'sh -c "echo slee\"\"ps; exec sleep 1000"\n' --await sleeps \
	--type '\x03' --await '# ' --type 'exit 3\n' -- task exec -t --exec-id tty box sh

say "the container ends, and with it what ran in it; nothing is left"
c task kill -s TERM box
wait_state box STOPPED
match "$(ask State id=box exec_id=left)" '"status": 3.*"exit_status": 137' "its further process"
match "$(ask Exec id=box exec_id=last spec=@"$p" || :)" 'Exec 9 ' "another one"
c task rm box 2>/dev/null || :
c container rm box
nothing_left

say "a terminal of the container itself"
type_to 4 --size 30x90 --await '# ' --type 'stty size; tty\n' --await '30 90' --await /dev/pts/ --resize 20x70 \
	--type 'until stty size | grep "20 70"; do :; done\n' --await '20 70' --type 'sh -c "echo slee\"\"ps; exec sleep 1000"\n' --await sleeps \
	--type '\x03' --await '# ' --type 'exit 4\n' -- \
	run --rm -t --runtime io.containerd.husk.v2 --runtime-config-path "$config" $i shell sh
nothing_left

say "left, by whatever way, and joined again"
type_to 0 -- run -d -t --runtime io.containerd.husk.v2 --runtime-config-path "$config" $i shell sh
"$typist" --type 'echo fi""rst\n' --await first --group KILL -- ctr -a "$work/containerd.sock" task attach shell >/dev/null </dev/null || :
equal "$(state shell)" RUNNING "state when its client was killed"
type_to 6 --type 'echo sec""ond\n' --await second --type 'exit 6\n' -- task attach shell # which removes the task
c container rm shell
nothing_left

say "a container that is made by hand: what ctr never asks"
"$husk_bin" "--dir=$data" --insecure-options=image fetch "$image" >/dev/null
"$husk_bin" "--dir=$data" image extract --rootfs-only busybox "$work/tree"
c container create --runtime io.containerd.husk.v2 $i model
printf '\x12%b%s' "\\x$(printf %02x ${#config})" "$config" >"$work/options" # runtimeoptions.v1.Options
make() { # ID COMMAND: a shim, and the container that it has; its address is in $address
	mkdir -p "$work/bundle-$1"
	c container info model --spec | jq --arg root "$work/tree" --arg command "$2" \
		'.root.path = $root | .process.args = ($command | split(" "))' >"$work/bundle-$1/config.json"
	address=$(cd "$work/bundle-$1" && "$build/bin/containerd-shim-husk-v2" -namespace by-hand -address "$work/none.sock" -id "$1" start </dev/null)
	ask Create id="$1" bundle="$work/bundle-$1" options=@"$work/options" >"$work/out" || die "Create: $(cat "$work/out")"
}
unmake() { # ID
	ask Delete id="$1" >"$work/out" || die "Delete: $(cat "$work/out")"
	ask Shutdown id="$1" >/dev/null
	shims_gone
	equal "$("$husk_bin" "--dir=$data" list --no-legend)" "" "pods that are left"
}
make never "sleep 1000"
match "$(ask State id=never)" '"status": 1' "state of one that is made"
match "$(ask Exec id=never exec_id=x spec=@"$p" || :)" 'Exec 9 ' "a further process in it"
unmake never

make signals "sleep 1000"
ask Start id=signals -- Kill id=signals signal=9 -- Kill id=signals signal=9 -- Wait id=signals >"$work/out" || :
match "$(paste -sd' ' "$work/out")" '^Start \{.*\} Kill \{\}' "a signal while it starts comes behind that"
match "$(cat "$work/out")" 'Wait .*"exit_status": 137' "its end"
unmake signals

make failing /no/such/program
ask Start id=failing -- Kill id=failing signal=9 -- Wait id=failing >"$work/out" || :
match "$(cat "$work/out")" 'Start 2 .*/no/such/program.*No such file' "a start that fails"
match "$(cat "$work/out")" 'Kill 5 process already finished' "a signal for it"
match "$(cat "$work/out")" 'Wait .*"exit_status": 127' "its end"
unmake failing

make lost "sleep 1000"
"$husk_bin" "--dir=$data" stop --force "$(cat "$work/bundle-lost/husk-pod")" >/dev/null
ask Wait id=lost >"$work/out"
match "$(cat "$work/out")" '"exit_status": 255' "a pod that ends before the start"
match "$(ask Start id=lost || :)" 'Start 9 ' "a start then"
unmake lost
c container rm model
