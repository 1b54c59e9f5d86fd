#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# PostgreSQL on volumes of each kind, redis on one of the host: what they have acknowledged outlives a VM that is killed, in
# another pod with the same volume.
#   HUSK_TEST_PGBENCH_SCALE    hundred thousands of rows (default 1)
#   HUSK_TEST_PGBENCH_SECONDS  how long it is at work (default 3)
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require mkfs.ext4
[ "$(id -u)" -eq 0 ] || skip "needs root"
image=$(database_image)
scale=${HUSK_TEST_PGBENCH_SCALE:-1} seconds=${HUSK_TEST_PGBENCH_SECONDS:-3}
memory=()
! is_vm || memory=(--memory=768Mi)
truncate -s $((128 + 32 * scale))M "$work/disk"
mkfs.ext4 -q "$work/disk"
mkdir "$work/shared"

# What the pods do. The directory of a volume is root's, as whoever runs a database finds it.
server='set -e
bin=/usr/lib/postgresql/15/bin
as() { setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"; }
start() {
	install -d -o postgres -g postgres /var/run/postgresql
	as $bin/pg_ctl -D /data/db -w -t 120 -o "-c listen_addresses= -c fsync=on" -l /data/log start >/dev/null || { cat /data/log; exit 1; }
}
install -d -o postgres -g postgres -m 700 /data/db
chown postgres /data
'
first=$server'
as $bin/initdb -D /data/db --auth=trust >/dev/null
start
as $bin/pgbench -q -i -s '$scale' postgres 2>/dev/null >/dev/null
as $bin/pgbench -n -T '$seconds' -c 2 postgres 2>&1 | grep "^tps"
as psql -q postgres -c "create table acknowledged (n int)"
echo ready
n=0
while :; do n=$((n + 1)); as psql -q postgres -c "insert into acknowledged values ($n)" && echo "committed $n"; done'
second=$server'
start
as psql -At postgres -c "select max(n), count(*) from acknowledged" -c "select count(*) from pgbench_accounts"
as $bin/pg_ctl -D /data/db -m fast stop >/dev/null'

# database KIND OPTIONS...: made, used and killed in one pod, and read in another.
database() {
	local kind=$1 last counts
	shift
	say "$kind"
	run_in_background --net=none "${memory[@]}" "$@" --mount=volume=d,target=/data "$image" --exec=/bin/sh -- -c "$first"
	wait_for_line "$work/pod.out" '^committed 10$' $pod
	if is_vm; then kill -9 "$(vmm_process "$uuid")"; else husk stop --force "$uuid" >/dev/null 2>&1; fi
	wait $pod || :
	last=$(sed -n 's/^committed //p' "$work/pod.out" | tail -n 1)
	say "$(grep '^tps' "$work/pod.out"); killed after $last rows"
	[ "$kind" != empty ] || return 0
	expect 0 husk run --net=none "${memory[@]}" "$@" --mount=volume=d,target=/data "$image" --exec=/bin/sh -- -c "$second"
	counts=$(head -n 1 <<<"$out")
	[ "${counts%|*}" -ge "$last" ] || die "$kind: $counts, of which $last were committed"
	equal "${counts#*|}" "${counts%|*}" "$kind: rows"
	equal "$(tail -n 1 <<<"$out")" $((100000 * scale)) "$kind: accounts"
}

! is_vm || database block --volume="d,kind=block,source=$work/disk"
database host --volume="d,kind=host,source=$work/shared"
database empty --volume=d,kind=empty
! is_vm || e2fsck -fn "$work/disk" >/dev/null 2>&1 || die "the disk's file system is damaged"

say "redis"
services=$(services_image)
mkdir "$work/redis"
redis=("--volume=d,kind=host,source=$work/redis" "--mount=volume=d,target=/data" "$services" --exec=/bin/sh)
server='redis-server --daemonize yes --dir /data --appendonly yes --appendfsync always --save "" >/dev/null
until redis-cli ping >/dev/null 2>&1; do :; done'
run_in_background --net=none "${redis[@]}" -- -c "$server; while n=\$(redis-cli incr n); do echo \"set \$n\"; done"
wait_for_line "$work/pod.out" '^set 100$' $pod
if is_vm; then kill -9 "$(vmm_process "$uuid")"; else husk stop --force "$uuid" >/dev/null 2>&1; fi
wait $pod || :
last=$(sed -n 's/^set //p' "$work/pod.out" | tail -n 1)
expect 0 husk run --net=none "${redis[@]}" -- -c "$server; until redis-cli get n | grep -v LOADING; do :; done"
[ "$out" -ge "$last" ] || die "redis: $out, of which $last were acknowledged"
say "killed after $last numbers"
