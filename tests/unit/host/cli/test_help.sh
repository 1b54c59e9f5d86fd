#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tables of commands and flags, as --help prints them, against man pages and completion.
#   test_help.sh HUSK SOURCE-DIR
set -euo pipefail

husk_bin=$1
top=$2
man=$top/docs/man
work=$(mktemp -d "${TMPDIR:-/tmp}/husk-docs.XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0

# same WHAT WANT GOT: compares two lists of words.
same() {
	diff <(tr -s ' \n\t' '\n' <<<"$2" | sort) <(tr -s ' \n\t' '\n' <<<"$3" | sort) >"$work/diff" && return
	echo "FAILED: $1: < in --help, > there" >&2
	cat "$work/diff" >&2
	failed=1
}

# The flags of a section of a help text on stdin: "--name=VALUES", or "--name" of a switch.
help_flags() { # SECTION
	awk -v section="$1:" '
		/^[A-Z ]+:$/ { inside = ($0 == section || section == "OPTIONS:" && $0 == "OPTIONS OF THE STAGE1:") }
		inside && /^\t--/ { print $1 }' | sed 's/\[=false\]$//; s/\[=\(.*\)\]$/=\1/' | sort -u
}

# The flags in one part of a man page on stdin, in the same form: the paragraphs of nothing else above what is indented.
man_flags() {
	awk '/^\t/ && head ~ /^( \*--[a-z0-9-]+\*(=_[^ ]+_)?,?)+$/ { print head }
		{ head = /^[^\t]/ ? head " " $0 : "" }' | tr ' ' '\n' |
		sed -n 's/^\*\(--[a-z0-9-]*\)\*\(=_\(.*\)_\)\{0,1\},\{0,1\}$/\1=\3/p' | sed 's/=$//; s/\\//g'
}

# The part of a man page that a heading begins, up to the next heading.
man_part() { # HEADING PAGE
	awk -v heading="$1" '/^#/ { inside = (index($0 " ", heading " ") == 1) } inside' "$2"
}

complete() { :; }
compopt() { :; }
# shellcheck source=docs/completion/husk.bash
. "$top/docs/completion/husk.bash"

# What the completion offers behind the given words, the last of which is being typed.
offers() {
	COMP_WORDS=(husk "$@")
	COMP_CWORD=$#
	_husk
	echo "${COMPREPLY[*]}"
}

# The names below COMMANDS in the help of husk or of a group of commands.
members() { # [GROUP]
	"$husk_bin" help "$@" | awk '/^[A-Z ]+:$/ { inside = ($0 == "COMMANDS:") } inside && /^\t/ { print $1 }'
}

# The usage of a command, all its words in front.
usage() { # WORD...
	"$husk_bin" help "$@" | awk '/^[A-Z ]+:$/ { inside = ($0 == "USAGE:") } inside && /^\t/' | tr -d '\t'
}

top_level=$(members)
[ -n "$top_level" ] || failed=1
same "commands of the completion" "$top_level" "$(offers '')"
commands=
for command in $top_level; do
	commands+="$command"$'\n'
	subs=$(members "$command")
	[ -n "$subs" ] || continue
	same "members of $command in the completion" "$subs" "$(offers "$command" '')"
	for sub in $subs; do
		commands+="$command $sub"$'\n'
	done
done

global=$("$husk_bin" help | help_flags "GLOBAL OPTIONS")
[ -n "$global" ] || failed=1
same "global flags of husk(1)" "$global" "$(man_part '# GLOBAL OPTIONS' "$man/husk.1.scd" | man_flags)"

for page in "$man"/husk-*.1.scd; do
	name=$(basename "$page" .1.scd)
	same "commands of $name(1), there and in husk(1)" "$(sed -n 's/^## husk \([a-z-]*\).*/\1/p' "$page" | sort -u)" \
		"$(awk -v head="*$name*(1)" '/^[^\t]/ { inside = ($0 == head) } inside && /^\t/' "$man/husk.1.scd" |
			grep -o '\*[a-z-]*\*' | tr -d '*')"
done

usages=
while read -r command; do
	# shellcheck disable=SC2086 # words
	usages+="## $(usage $command)"$'\n'
	[ -z "$(members "$command" 2>/dev/null)" ] || continue # a group
	# shellcheck disable=SC2086 # words
	flags=$("$husk_bin" help $command | help_flags OPTIONS)
	page=$(grep -lE "^## husk $command( |\$)" "$man"/*.scd || echo /dev/null)
	several=$(man_part '# OPTIONS OF SEVERAL COMMANDS' "$page" | man_flags | grep -Fx -e "$flags") || :
	awk -v page="$page" '{ print page, $0 }' <<<"$several" >>"$work/several"
	own=$(man_part "## husk $command" "$page" | man_flags)
	same "flags of the man page, $command" "$flags" "$(printf '%s\n' "$own" "$several" | sort -u | grep .)"
	# shellcheck disable=SC2086 # words
	same "flags of the completion, $command" \
		"$(printf '%s\n' $global $flags | sed 's/=.*/=/')" "$(offers $command --)"
	# Where --help lists words as values, the completion offers them. Capitals stand for what only the user knows.
	# shellcheck disable=SC2086 # words
	for flag in $flags; do
		case $flag in
		*=*[a-z]*'|'* | *=*'|'*[a-z]*) same "values of $flag" "$(tr '|' '\n' <<<"${flag#*=}" | grep -v '^[A-Z]*$')" \
			"$(offers $command "${flag%%=*}=")" ;;
		esac
	done
done <<<"${commands%$'\n'}"
for page in "$man"/*.scd; do
	same "options of several commands, $page" "$(grep -o "^$page --.*" "$work/several" | sort -u)" \
		"$(man_part '# OPTIONS OF SEVERAL COMMANDS' "$page" | man_flags | sed "s|^|$page |")"
done
diff <(sort <<<"${usages%$'\n'}") <(grep -h '^## husk ' "$man"/*.scd | sort) >"$work/diff" || {
	echo "FAILED: headings of the man pages: < as --help has the usage, > there" >&2
	cat "$work/diff" >&2
	failed=1
}
exit $failed
