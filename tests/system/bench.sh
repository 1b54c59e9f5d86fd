#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# husk-bench: a short run beside a peer, peers that are unknown or missing, an interrupted run, two at once; and that nothing
# is left behind by any of them.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq runc busybox nginx ip
[ "$(id -u)" = 0 ] || skip "not root: no peer can be measured"
bench=$build/bin/husk-bench
results=$work/results

# What a run must not leave: its directory, processes of pods, processes of containers.
nothing_left() { # DIR
	[ ! -e "$1/work" ] || die "$1/work is left: $(ls "$1/work")"
	data=$1 # below which lib.sh looks for processes
	wait_no_processes || die "processes are left"
	! pgrep -f "$1/work" >&2 || die "processes of containers are left"
}

# Of the cells of a contender: those with, or without, a value.
count() { # CONTENDER VALUES
	jq "[.rows[].cells[] | select(.contender == \"$1\" and (.values | length) == $2)] | length" "$results/results.json"
}

say "unknown and missing contenders"
expect 254 "$bench" --peer=docker
one_line_error '^husk-bench: peer "docker": unknown \(there are runc, crun, podman, runsc, host\)$'
expect 254 "$bench" --stage1=xen
one_line_error '^husk-bench: stage1 "xen": unknown \(there are kvm, ns\)$'
expect 254 "$bench" speed
one_line_error '^husk-bench: suite "speed": unknown'
expect 254 env PATH=/nowhere "$bench" --stage1= --peer=runsc "--out=$results"
match "$err" 'runsc: not installed' "a peer that is not there"
match "$err" 'nothing to measure' "nothing but that"

say "its options and suites are those of the man page and the completion"
"$bench" --help >"$work/help"
complete() { :; }
# shellcheck source=docs/completion/husk-bench.bash
. "$top/docs/completion/husk-bench.bash"
COMP_WORDS=(husk-bench --) COMP_CWORD=1
_husk_bench
options=("${COMPREPLY[@]}")
equal "$(printf '%s\n' "${options[@]%=}" | sort)" "$(grep -o -- '--[a-z0-9]*' "$work/help" | sort -u)" "options of the completion"
COMP_WORDS=(husk-bench '')
_husk_bench
equal "$(printf '%s\n' "${COMPREPLY[@]}" | sort)" "$(sed -n 's/^Suites: \(.*\) (.*/\1/p' "$work/help" | tr ' ' '\n' | sort)" "suites of it"
for word in --help --version "${options[@]%=}"; do
	grep -q -- "\*$word\*" "$top/docs/man/husk-bench.1.scd" || die "husk-bench(1) does not have $word"
done
for word in "${COMPREPLY[@]}"; do
	grep -qx "_${word}_" "$top/docs/man/husk-bench.1.scd" || die "husk-bench(1) does not have the suite $word"
done

say "a run: husk, a peer, and a peer that is not there"
mkdir "$work/bin" # all programs but crun
ln --symbolic --force /usr/sbin/* /usr/bin/* "$work/bin/"
rm -f "$work/bin/crun"
expect 0 env "PATH=$work/bin" "$bench" --stage1=kvm --peer=runc,crun --rounds=1 "--out=$results" start app
match "$err" 'husk-bench: crun: not installed: its column stays blank' "a peer that is not there"
equal "$out" "$results/index.html" "what is printed"
equal "$(jq -r '[.contenders[].name] | join(" ")' "$results/results.json")" "kvm runc crun" "columns"
equal "$(jq .partial "$results/results.json")" false "partial"
equal "$(count kvm 1) $(count runc 1) $(count crun 0)" "7 7 7" "cells with a value, without for crun"
equal "$(jq -r '[.rows[].cells[2].missing] | unique[]' "$results/results.json")" "not installed" "why"
match "$(jq -r '.contenders[0].title' "$results/results.json")" '^kvm \((TCG|KVM)\)$' "title with the acceleration"
[ -n "$(jq -r '.contenders[0].kernel' "$results/results.json")" ] || die "the guest's kernel is not told"
equal "$(jq '[.rows[].cells[0:2][].median | select(. <= 0)] | length' "$results/results.json")" 0 "medians that are not positive"
equal "$(wc -l <"$results/results.csv")" 22 "lines of CSV"
grep -q '</html>' "$results/index.html" || die "the page has no end"
! grep -Eq '<script|(src|href)="' "$results/index.html" || die "the page needs something from elsewhere"
if command -v gnuplot >/dev/null; then
	equal "$(grep -c '<svg' "$results/index.html")" 7 "drawings"
fi
nothing_left "$results"

# A run in the background, as soon as it measures; its process in $run.
start_run() { # DIR SUITE
	"$bench" --stage1=kvm --peer=runc --rounds=100 "--out=$1" "$2" >"$work/run.out" 2>"$work/run.err" &
	run=$!
	wait_for_line "$work/run.err" "$2, round 2 of 100" $run
}

say "two at once: one in a directory of its own works, one in the same is refused"
start_run "$work/first" start
expect 254 "$bench" --stage1=kvm --peer= --rounds=1 "--out=$work/first" network
one_line_error "^husk-bench: \"$work/first\": another husk-bench is at work there \(wait for it, or give another --out\)\$"
expect 0 "$bench" --stage1= --peer=runc --rounds=1 "--out=$work/second" start
nothing_left "$work/second"

say "interrupted: what is there is kept, and said to be partial"
kill -INT $run
got=0
wait $run || got=$?
equal "$got" 254 "exit status"
match "$(tail -n 1 "$work/run.err")" '^husk-bench: interrupted: the results in .* are partial$' "what it says"
results=$work/first
equal "$(jq .partial "$results/results.json")" true "partial"
match "$(jq '.rows[0].cells[0].values | length' "$results/results.json")" '^[1-9]' "values by then"
grep -q '<b>Partial:</b>' "$results/index.html" || die "the page does not say it"
grep -q ',yes,' "$results/results.csv" || die "the table does not say it"
nothing_left "$results"

say "killed: the next run in the same directory clears away what it left"
start_run "$work/first" app
kill -KILL $run
{ wait $run; } 2>/dev/null || :
expect 0 "$bench" --stage1=kvm --peer=runc --rounds=1 "--out=$work/first" app
nothing_left "$work/first"

say "volumes: of each kind, for whoever has it; and then none any more"
results=$work/volumes
expect 0 "$bench" --stage1=kvm,ns --peer=runc,host --rounds=1 "--out=$results" volume many
equal "$(count kvm 1) $(count ns 1) $(count runc 1) $(count host 1)" "16 11 6 6" "cells with a value: $(jq -c '[.rows[].cells[].missing]' "$results/results.json")"
equal "$(jq '[.rows[].cells[].median | select(. != null and . <= 0)] | length' "$results/results.json")" 0 "medians that are not positive"
nothing_left "$results"

say "networks: of its own, so the host's interfaces, addresses and rules stay as they are"
network_of_host() {
	ip -oneline link | cut -d ' ' -f 2
	ip -oneline address | sed 's/valid_lft.*//'
	ip route
	ip netns
	iptables-save | grep -v '^#'
}
network_of_host >"$work/before"
results=$work/network
expect 0 "$bench" --stage1=kvm,ns --peer=runc --rounds=1 "--out=$results" network
equal "$(count kvm 1) $(count ns 1) $(count runc 1)" "4 4 4" "cells with a value: $(jq -c '[.rows[].cells[].missing]' "$results/results.json")"
equal "$(jq '[.rows[].cells[].median | select(. <= 0)] | length' "$results/results.json")" 0 "medians that are not positive"
nothing_left "$results"
network_of_host | diff "$work/before" - || die "the host's network is another one"
