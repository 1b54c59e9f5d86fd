#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a pod costs, in figures that depend on no machine, against the committed budget; and that the comparison finds what
# it is there to find.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require strace jq nm "${HUSK_QEMU:-qemu-system-x86_64}"

[ -e "$build/lib/husk/kernel/small/vmlinux" ] || skip "no small guest kernel (cmake --build build --target guest-kernel)"
match "$("${HUSK_QEMU:-qemu-system-x86_64}" -plugin "$work/none.so" 2>&1)" 'Could not load plugin' "a QEMU with plug-ins"

say "a pod costs what it may cost"
"$top/tools/bench" cost --json >"$work/cost.json"
"$top/tools/bench" cost --from="$work/cost.json"
"$top/tools/bench" cost --from="$work/cost.json" --check || die "see above"

say "a figure that has grown is named, with its budget and the remedy"
agent=$(jq '.["instructions.agent"].least' "$work/cost.json")
forks=$(jq '.["supervisor.forks"].least' "$work/cost.json")
budget() { # AGENT FORKS
	printf '# planted\ninstructions.agent %s 2%%\nsupervisor.forks %s exact\n' "$1" "$2" >"$work/budget"
}
budget $((agent - agent / 60)) "$forks"
expect 0 "$top/tools/bench" cost --from="$work/cost.json" --budget="$work/budget" --check
match "$out" '2 figures are within'
budget $((agent - agent / 40)) $((forks - 1))
expect 1 "$top/tools/bench" cost --from="$work/cost.json" --budget="$work/budget" --check
match "$out" "instructions.agent: .*, budget .* and 2 %"
match "$out" "supervisor.forks: $forks, budget $((forks - 1)) exactly"
match "$out" '2 of 2 figures are beyond .*--update'

say "less is said and no failure; --update writes it down"
budget $((agent * 2)) "$forks"
expect 0 "$top/tools/bench" cost --from="$work/cost.json" --budget="$work/budget" --check
match "$out" 'instructions.agent: .*, less than its budget'
expect 0 "$top/tools/bench" cost --from="$work/cost.json" --budget="$work/budget" --update
equal "$(awk '/^instr/ { print $2, $3 } /^#/' "$work/budget")" "# planted
$agent 2%" "the budget after --update"

say "made with other packages than there are here, it is a warning"
{ echo '# Made with qemu-system-x86 1'; budget 1 "$forks" && cat "$work/budget"; } >"$work/other"
expect 0 "$top/tools/bench" cost --from="$work/cost.json" --budget="$work/other" --check
match "$out" '1 of 2 figures are beyond .*made with other packages'

say "a budget that cannot be read is named with its line"
echo 'instructions.agent many 2%' >"$work/budget"
expect 1 "$top/tools/bench" cost --from="$work/cost.json" --budget="$work/budget" --check
match "$err" 'budget:1: .*write NAME VALUE exact'
