#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The store without root: one that two users of a group share, from which a third is kept out, and that of a user in his
# home directory, with a pod from it.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || skip "needs root: becomes other users"
require setpriv jq
image=$(busybox_image)
group=30000 # numbers that nobody has

# Where others may read it: the program, and an image.
chmod 711 "$work"
mkdir -p "$work/prefix/bin" "$work/homes" "$work/images"
cp "$build/bin/husk" "$work/prefix/bin/"
cp -rL "$build/lib" "$work/prefix/"
cp -r "$image" "$work/images/one"
for name in two three; do
	mkdir "$work/images/$name"
	head -c 3000000 /dev/urandom >"$work/images/$name/random"
done
chmod -R a+rX "$work/prefix" "$work/images"
for user in ann bob eve; do mkdir -m 700 "$work/homes/$user"; done
declare -A uids=([ann]=20001 [bob]=20002 [eve]=20003)
for user in "${!uids[@]}"; do chown "${uids[$user]}:${uids[$user]}" "$work/homes/$user"; done

# as USER UMASK WORDS...: husk WORDS... of this user. ann and bob are in the group, eve is not.
as() {
	local uid=${uids[$1]} user=$1 mask=$2 groups=(--clear-groups)
	shift 2
	[ "$user" = eve ] || groups=("--groups=$group")
	(
		umask "$mask"
		cd "$work/homes/$user"
		exec timeout --kill-after=10 "$vm_limit" setpriv "--reuid=$uid" "--regid=$uid" "${groups[@]}" \
			env -i "PATH=$PATH" "HOME=$work/homes/$user" ${xdg:+"XDG_DATA_HOME=$xdg"} \
			"$work/prefix/bin/husk" --system-config= --local-config= "$@"
	)
}
shared() { # USER UMASK WORDS...
	local user=$1 mask=$2
	shift 2
	as "$user" "$mask" "--dir=$data" "$@"
}
blobs() { find "$data/oci/blobs" "$data/trees" -type f -printf '%p %i %T@\n' | sort; }
names() { shared "$1" 022 image list --no-legend --fields=name | sed '/^$/d' | sort | tr '\n' ' '; }
nothing_left() { equal "$(find "$data/tmp" -mindepth 1)" "" "left in tmp"; }

for mask in 022 077; do
	say "two users of a group, umask $mask"
	rm -rf "$data"
	mkdir "$data"
	chown "${uids[ann]}:$group" "$data"
	chmod 3770 "$data"

	expect 0 shared ann $mask fetch --full "$work/images/one"
	id=$out
	expect 0 shared bob $mask image list --full --no-legend --fields=id,name
	equal "$err" "" "what is wrong with the list"
	match "$out" "^$id"$'\t+busybox$' "the list of the other"
	before=$(blobs)
	expect 0 shared bob $mask fetch --full "$work/images/one"
	equal "$out" "$id" "ID"
	equal "$err" "" "what is copied by the second fetch"
	equal "$(blobs)" "$before" "blobs and rendered images after the second fetch"
	expect 0 shared bob $mask image render --rootfs-only "$id" "$work/homes/bob/tree$mask"
	[ -e "$work/homes/bob/tree$mask/bin/busybox" ] || die "nothing is unpacked"

	# The other way round. Who is not the owner of the store does not render.
	expect 0 shared bob $mask fetch --full "rootfs:$work/images/two"
	two=$out
	equal "$(find "$data/trees" -name '*.v*[0-9]' | wc -l)" 1 "rendered images"
	expect 254 shared bob $mask image render "$two" "$work/homes/bob/none"
	one_line_error "only the owner of $data may do that"
	expect 0 shared ann $mask image render --rootfs-only "$two" "$work/homes/ann/tree$mask"
	cmp "$work/homes/ann/tree$mask/random" "$work/images/two/random"
	expect 0 shared bob $mask image render --rootfs-only "$two" "$work/homes/bob/two$mask"
	expect 0 shared ann $mask image verify "$id" "$two"
	equal "$err" "" "what verify says"
	equal "$(names ann)" "$(names bob)" "names"

	say "both at once"
	for user in ann bob; do
		shared $user $mask fetch --full "rootfs:$work/images/three" >"$work/$user.out" 2>"$work/$user.err" </dev/null &
		pids[${uids[$user]}]=$!
	done
	for user in ann bob; do wait "${pids[${uids[$user]}]}" || die "$user: $(cat "$work/$user.err")"; done
	cmp "$work/ann.out" "$work/bob.out"
	nothing_left

	say "a third, who is not in the group"
	for words in "image list" "fetch $work/images/one" "image gc" "image rm $id" "list"; do
		# shellcheck disable=SC2086 # several words
		expect 254 shared eve $mask $words
		one_line_error "cannot open data directory .*[Pp]ermission denied"
	done
	# Trees are for whoever is shown one (libvirt's QEMU), their directory is not.
	equal "$(find "$data" -perm /007 ! -path "$data/trees/*")" "" "what everybody may do"
	for dir in oci/blobs/sha256 trees; do
		file=$(find "$data/$dir" -type f | head -n 1)
		! setpriv --reuid="${uids[eve]}" --regid="${uids[eve]}" --clear-groups cat "$file" >/dev/null 2>&1 || die "$file can be read"
	done

	say "what the other may not do to the owner"
	bob_does() { setpriv "--reuid=${uids[bob]}" "--regid=${uids[bob]}" "--groups=$group" "$@" 2>/dev/null; }
	expect 254 shared bob $mask prepare "$id" -- true
	one_line_error "only its owner has pods in it"
	[ ! -e "$data/pods" ] || die "the directory of the pods belongs to $(stat -c %U "$data/pods")"
	tree=$(find "$data/trees" -name '*.v*[0-9]' | head -n 1)
	! bob_does rm -f "$tree" || die "a rendered image can be removed"
	! bob_does dd if=/dev/zero of="$tree" count=1 || die "a rendered image can be written"
	! bob_does mv "$data/locks/images" "$data/locks/x" || die "a lock can be removed"

	say "collecting: not what a pod of the other uses"
	expect 0 shared ann 022 prepare "$id" -- true
	pod=$out
	expect 0 shared bob $mask image gc --grace-period=0
	equal "$(shared bob $mask image list --full --no-legend --fields=id | sort -u)" "$id" "what is left"
	chmod 700 "$data/pods"
	expect 254 shared bob $mask image gc --grace-period=0 # pods that he may not see
	one_line_error 'cannot open pods of the data directory: permission denied'
	chmod 750 "$data/pods"
	expect 0 shared ann $mask rm "$pod"
	expect 0 shared bob $mask image rm "$id"
	equal "$(names ann)" "" "names"
	expect 0 shared ann $mask image gc --grace-period=0
	equal "$(find "$data/oci/blobs" "$data/trees" "$data/images" -type f)" "" "what is left"
	nothing_left
done

say "a user's own store"
own=$work/homes/eve/.local/share/husk
expect 0 as eve 077 fetch --full "$work/images/one"
id=$out
[ -e "$own/images/${id#sha256-}.json" ] || die "it is not in $own"
expect 0 as eve 022 image verify busybox
equal "$out" "successfully verified checksum for image: \"busybox\" (\"$id\")" "verified"
expect 0 as eve 022 image list --full --no-legend --fields=id
equal "$out" "$id" "list"
if [ -z "${HUSK_TEST_RUN_OPTIONS:-}" ]; then
	expect 0 as eve 022 run busybox -- id -u
	equal "$(tr -d '\r' <<<"$out")" 0 "a pod"
	equal "$(find "$work/homes/eve" ! -user "${uids[eve]}")" "" "files of others"
	expect 0 as eve 022 gc --grace-period=0
	expect 0 as eve 022 gc --grace-period=0
else
	say "no pod: what $HUSK_TEST_RUN_OPTIONS ask for is root's"
fi
equal "$(find "$own" -mindepth 1 -perm /007 ! -path "$own/trees/*")" "" "what everybody may do"
expect 0 as eve 022 image rm busybox
expect 0 as eve 022 image gc --grace-period=0
equal "$(find "$own/oci/blobs" "$own/trees" "$own/images" "$own/tmp" -type f)" "" "what is left"
xdg=$work/homes/eve/xdg expect 0 as eve 022 fetch "$work/images/one"
[ -d "$work/homes/eve/xdg/husk/images" ] || die "XDG_DATA_HOME has no effect"
