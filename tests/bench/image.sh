# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # its variables are those of tools/bench
# The part of tools/bench that compares how images come in. Sourced by it.
#
# Every tool gets the same OCI layout and a directory in which it has never been, and makes of it what a container of it would
# use: husk a verified and rendered image in its store, synced to the disk; umoci and tar a directory; podman an image in its own
# store (overlay), from the archive that it wants. Only husk syncs.

image_tools='husk umoci tar podman'

# A hundred thousand small files in a hundred directories.
make_small_files() { # LAYOUT
	local tree=$work/small-files d
	mkdir -p "$tree"
	for ((d = 0; d < 100; d++)); do
		mkdir "$tree/$d"
		# Of five lines more in each directory, up to some 3,000 bytes.
		seq $((1000 * (5 * d + 1))) | (cd "$tree/$d" && split --lines=$((5 * d + 1)) --suffix-length=3 --numeric-suffixes)
	done
	umoci init --layout "$1"
	umoci new --image "$1:small-files"
	tar -C "$tree" --owner=0 --group=0 -cf "$work/small-files.tar" .
	umoci raw add-layer --image "$1:small-files" "$work/small-files.tar" >/dev/null
	rm -rf "$tree" "$work/small-files.tar"
}

layout_tag() { # LAYOUT
	jq -r '.manifests[0].annotations["org.opencontainers.image.ref.name"]' "$1/index.json"
}

layout_blob() { # LAYOUT DIGEST
	echo "$1/blobs/${2/://}"
}

# The files of the layers of an image, the lowest first.
layer_files() { # LAYOUT
	local manifest digest
	manifest=$(layout_blob "$1" "$(jq -r '.manifests[0].digest' "$1/index.json")")
	for digest in $(jq -r '.layers[].digest' "$manifest"); do
		layout_blob "$1" "$digest"
	done
}

# What each tool is run as. DIR is new. The words come out in the array @command.
image_command() { # TOOL LAYOUT DIR
	case $1 in
	husk) command=("$husk" "--dir=$3" fetch "$2") ;;
	umoci) command=(umoci unpack --image "$2:$(layout_tag "$2")" "$3") ;;
	# A layer after the other, which is right for images without whiteouts only.
	tar)
		mkdir "$3"
		# shellcheck disable=SC2016 # expanded by the inner shell
		command=(sh -c 'dir=$1; shift; for f; do tar -C "$dir" --xattrs --xattrs-include="*" --numeric-owner -xpf "$f" || exit; done' sh "$3")
		mapfile -t -O ${#command[@]} command < <(layer_files "$2")
		;;
	podman) command=(podman --root "$3" --runroot "$work/runroot" --storage-driver overlay load --quiet --input "$work/archive.tar") ;;
	esac
}

# Seconds of wall clock and of processors, to FILE.
image_round() { # TOOL LAYOUT FILE
	local command TIMEFORMAT='%R %U %S'
	image_command "$1" "$2" "$work/new"
	{ time "${command[@]}" >/dev/null 2>"$work/err" </dev/null || die "$1: $(cat "$work/err")"; } 2>"$work/time"
	awk '{print $1, $2 + $3}' "$work/time" >>"$3"
	disk=$(du -sm "$work/new" | cut -f 1)
	rm -rf "$work/new"
}

image_peak() { # TOOL LAYOUT
	local command
	image_command "$1" "$2" "$work/new"
	"$build/tests/peak" --tree "$work/peak" "${command[@]}" >/dev/null 2>"$work/err" </dev/null || die "$1: $(cat "$work/err")"
	rm -rf "$work/new"
	awk '{printf "%.1f", $1 / 1024}' "$work/peak"
}

image_table() { # LAYOUT ROUNDS
	local tool i wall cpu
	declare -A disks
	skopeo copy --quiet "oci:$1:$(layout_tag "$1")" "oci-archive:$work/archive.tar:image" # podman wants an archive
	for ((i = 0; i < $2; i++)); do
		for tool in $image_tools; do
			image_round "$tool" "$1" "$work/image.$tool"
			disks[$tool]=$disk
		done
	done
	echo "$(layout_tag "$1"): $(layer_files "$1" | wc -l) layers, $(layer_files "$1" | xargs -d '\n' du -cm | tail -n 1 | cut -f 1) MiB, $2 rounds"
	printf '  %-8s %9s %9s %10s %9s %9s %9s\n' '' 'wall s' '/ umoci' 'CPU s' '/ umoci' 'peak MiB' 'disk MiB'
	for tool in $image_tools; do
		wall=$(awk '{print $1}' "$work/image.$tool" | median) cpu=$(awk '{print $2}' "$work/image.$tool" | median)
		printf '  %-8s %9.2f %9.2f %10.2f %9.2f %9s %9s\n' "$tool" "$wall" "$(ratio_of "$wall" 1)" "$cpu" "$(ratio_of "$cpu" 2)" \
			"$(image_peak "$tool" "$1")" "${disks[$tool]}"
	done
	rm -f "$work"/image.* "$work/archive.tar"
}

# To the median of the same column of umoci.
ratio_of() { # SECONDS COLUMN
	awk -v c="$2" '{print $c}' "$work/image.umoci" | median | awk -v s="$1" '{print s / $1}'
}

# What an image costs that is there already: fetched again, beside a husk that does nothing; and until stage1 starts in a pod
# of it, which is all that husk does before.
image_again() { # LAYOUT
	local i
	"$husk" "--dir=$data" fetch "$1" >/dev/null 2>&1
	for ((i = 0; i < 5; i++)); do
		run_husk "$1" -- /bin/true 2>&1 | awk '/^timeline:.* stage1 started$/ {print $2}' >>"$work/start"
	done
	echo "second use, medians: husk fetch $(time_of fetch "$1") ms, husk version $(time_of version) ms; husk run until stage1" \
		"starts $(median <"$work/start") ms"
}

image() { # [ROUNDS] [LAYOUT...]
	local rounds=${1:-5} layout
	[ $# -eq 0 ] || shift
	for layout in umoci skopeo podman tar jq; do
		command -v $layout >/dev/null || die "$layout is not installed (apt-get install umoci skopeo podman tar jq)"
	done
	if [ $# -eq 0 ]; then
		make_small_files "$work/files"
		set -- "${HUSK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/husk}/test-images/debian-1" "$work/files"
		[ -e "$1/index.json" ] || die "$1: no image; tests/system/run-debian.sh makes it"
	fi
	for layout; do
		image_table "$layout" "$rounds"
	done
	image_again "$1"
}
