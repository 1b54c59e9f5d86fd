# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of husk-bench(1) for bash. Compared with its help by tests/system/bench.sh.

_husk_bench() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local suites='app disk many memory network processor start stream volume'
	COMPREPLY=()
	# --flag=value comes as three words, unless = is not a break.
	if [ "$cur" = = ]; then
		cur=
	elif [ "$prev" = = ]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	case $prev in
	--image) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--out) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	--peer) mapfile -t COMPREPLY < <(compgen -W 'crun host podman runc runsc' -- "$cur") ;;
	--stage1) mapfile -t COMPREPLY < <(compgen -W 'kvm ns' -- "$cur") ;;
	--pods | --rounds) ;;
	*)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W '--help --image= --out= --peer= --pods= --rounds= --stage1= --version' -- "$cur")
			[[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace 2>/dev/null
		else
			mapfile -t COMPREPLY < <(compgen -W "$suites" -- "$cur")
		fi
		;;
	esac
}

complete -F _husk_bench husk-bench
