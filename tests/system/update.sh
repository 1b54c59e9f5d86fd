#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Other limits for an app that runs: they hold, they are in the manifest, and what cannot be leaves all as it was.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq
image=$(busybox_image)
MiB=1048576

# has APP MEMORY PIDS: the limits that the kernel has, null where there is none.
has() {
	expect 0 husk stats --app="$1" --format=json "$uuid"
	equal "$(jq -c '.apps[0] | [.memory_limit, .pids_limit]' "$work/out")" "[$2,$3]" "limits of app $1"
}

# says APP ISOLATORS: what the manifest has of its limits, name and value.
says() {
	husk cat-manifest "$uuid" >"$work/manifest"
	equal "$(jq -c --arg app "$1" '[.apps[] | select(.name == $app).app.isolators // [] | .[]
		| select(.name | test("memory|cpu|pids")) | "\(.name)=\(.value.limit? // .value)"] | sort | join(" ")' "$work/manifest")" \
		"\"$2\"" "the manifest's limits of app $1"
}

refused() { # MESSAGE WORDS...
	local message=$1
	shift
	expect 254 husk update "$@" "$uuid"
	one_line_error "$message"
}

say "a pod whose apps were declared: one of them gets limits, keeps memory, loses the cache of its files"
expect 0 husk run --detach "${run_options[@]}" "$image" --name=one --memory=160Mi -- \
	sh -c 'dd if=/dev/zero of=/dev/shm/kept bs=1M count=24 2>/dev/null; dd if=/dev/zero of=/cache bs=1M count=60 2>/dev/null
		echo filled; while read -r x </dev/null; do :; done; sleep 100000' \
	--- "$image" --name=two -- sleep 100000
uuid=$out
wait_log one filled
has one $((160 * MiB)) null
expect 0 husk update --app=one --memory=64Mi --pids-limit=7 --cpu=500m --cpu-shares=2048 "$uuid"
equal "$out$err" "" "an update"
has one $((64 * MiB)) 7
has two null null
says one "husk/pids-limit=7 os/linux/cpu-shares=2048 resource/cpu=500m resource/memory=67108864"
says two ""
! is_vm || equal "$(husk app exec --app=one "$uuid" cat /sys/fs/cgroup/cpu.max)" "50000 100000" "the quota inside"

say "less than it uses is refused, with all that was to come with it; nothing dies"
refused '^update: error updating app: app "one": cannot limit its memory to 8388608 bytes: it uses [0-9]* that the kernel cannot take back \(let it free some, or stop it first\)$' \
	--app=one --memory=8Mi --pids-limit=5
has one $((64 * MiB)) 7
says one "husk/pids-limit=7 os/linux/cpu-shares=2048 resource/cpu=500m resource/memory=67108864"
expect 0 husk status "$uuid"
match "$out" 'state=running' "the pod"
if is_vm; then
	refused 'app "one": its memory limit, 8192 MiB, is beyond the VM, which has 512 MiB' --app=one --memory=8Gi
	refused 'app "one": its limit of 64 processors is beyond the VM' --app=one --cpu=64
	says one "husk/pids-limit=7 os/linux/cpu-shares=2048 resource/cpu=500m resource/memory=67108864"
fi

say "a limit of processes holds, and goes again"
fill='n=0; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1000 & done 2>/dev/null; jobs -p | wc -l; kill $(jobs -p)'
expect 2 husk app exec --app=one "$uuid" sh -c "$fill"
expect 0 husk update --app=one --pids-limit=none --cpu=none --cpu-shares=none "$uuid"
has one $((64 * MiB)) null
says one "resource/memory=67108864"
expect 0 husk app exec --app=one "$uuid" sh -c "$fill"
equal "$out" 10 "processes without the limit"

say "several at once: each is whole, and the manifest has the last"
for n in 11 12 13 14 15 16; do
	"$husk_bin" "--dir=$data" update --app=two --pids-limit=$n --memory=${n}Mi "$uuid" 2>"$work/err.$n" &
done
wait
equal "$(cat "$work"/err.*)" "" "what they say"
husk cat-manifest "$uuid" >"$work/manifest"
pids=$(jq '.apps[1].app.isolators[] | select(.name == "husk/pids-limit").value' "$work/manifest")
has two $((pids * MiB)) "$pids"

say "whoever asks gives up while the supervisor does not answer: the next finds its way"
supervisor=$(sed -n 's/^pid=//p' <<<"$(husk status "$uuid")")
kill -STOP "$supervisor"
expect 130 sh -c 'timeout --foreground --preserve-status -s INT 1 "$@"' sh "$husk_bin" "--dir=$data" update --app=two --pids-limit=20 "$uuid"
kill -CONT "$supervisor"
expect 0 husk update --app=two --memory=20Mi "$uuid"
has two $((20 * MiB)) 20
says two "husk/pids-limit=20 resource/memory=20971520"

say "what is not there, or no limit"
refused '^update: error updating app: error: nonexistent app "three"$' --app=three --cpu=1
refused '^Error: must provide a limit to change; see husk help update$' --app=one
refused '^Error: --cpu: given twice; see husk help update$' --app=one --cpu=1 --cpu=none
refused '^Error: --memory: "5" is less than 4096 bytes' --app=one --memory=5
refused '^Error: --pids-limit: ' --app=one --pids-limit=0

say "beyond the new limit it is killed, which says that limit"
expect 0 husk update --app=one --memory=40Mi "$uuid"
husk app exec --app=one "$uuid" sh -c 'dd if=/dev/zero of=/dev/shm/more bs=1M count=60' >/dev/null 2>&1 || :
deadline=$((SECONDS + vm_limit))
until expect 0 husk status "$uuid" && grep -q '^exited=true' "$work/out"; do
	[ $SECONDS -lt $deadline ] || die "it lives: $out"
	# Of version 1 the kernel kills one process of the app, the one that asked or another.
	is_vm || has_cgroup2 || break
	read -rt 0.05 <> <(:) || :
done
! grep -q '^exited=true' "$work/out" ||
	match "$(cat "$data"/pods/*/"$uuid"/supervisor.log)" 'app "one": killed: out of memory \(limit 41943040 bytes; raise its --memory\)' "why"
"$husk_bin" "--dir=$data" stop "$uuid" >/dev/null 2>&1 || :
expect 254 husk update --app=one --cpu=1 "$uuid"
equal "$err" "update: error updating app: pod \"$uuid\" isn't currently running" "of a pod that has ended"

say "an app that was added: before its start, and beyond its next one"
expect 0 husk app sandbox --detach "${run_options[@]}"
uuid=$out
expect 0 husk app add "$uuid" "$image" --name=late --memory=30Mi -- sleep 100000
expect 0 husk update --app=late --memory=50Mi --pids-limit=9 "$uuid"
expect 0 husk app start --app=late "$uuid"
has late $((50 * MiB)) 9
expect 0 husk app stop --app=late --grace=0 "$uuid"
expect 0 husk update --app=late --pids-limit=10 "$uuid"
expect 0 husk app start --app=late "$uuid"
has late $((50 * MiB)) 10
expect 0 husk app stop --app=late --grace=0 "$uuid"
expect 0 husk app start --app=late "$uuid"
has late $((50 * MiB)) 10
says late "husk/pids-limit=10 resource/memory=52428800"
expect 0 husk app rm --app=late --grace=0 "$uuid"
refused '^update: error updating app: error: nonexistent app "late"$' --app=late --cpu=1
expect 0 husk stop "$uuid"
