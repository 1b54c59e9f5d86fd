#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A data directory that root shares with a group, and a member of it who is after root: he replaces directories, forges
# the number of a supervisor, reads what is in manifests. And data directories with owners and modes that are no good.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || skip "needs root: becomes another user"
require setpriv jq flock
image=$(busybox_image)
group=30000 member=20002 # numbers that nobody has
secret="what nobody may read"

chmod 711 "$work"
mkdir -p "$work/prefix/bin" "$work/elsewhere" "$work/own"
cp "$build/bin/husk" "$work/prefix/bin/"
cp -rL "$build/lib" "$work/prefix/"
cp -r "$image" "$work/image"
head -c 100000 /dev/urandom >"$work/other"
chmod -R a+rX "$work/prefix" "$work/image"
chown "$member:$member" "$work/own"

bob() { setpriv "--reuid=$member" "--regid=$member" "--groups=$group" "$@"; }
bob_husk() {
	(cd "$work/own" && bob env -i "PATH=$PATH" "HOME=$work/own" timeout "$vm_limit" \
		"$work/prefix/bin/husk" --system-config= --local-config= "--dir=$data" "$@")
}
# refused WHAT COMMAND...: he tries, and cannot.
refused() {
	local what=$1
	shift
	! bob "$@" >/dev/null 2>&1 || die "he may: $what"
}
new_data() { # MODE
	rm -rf "$data"
	mkdir "$data"
	chgrp "$group" "$data"
	chmod "$1" "$data"
}

say "a directory as they were once made: sticky from the next use of its owner on"
new_data 2770
expect 254 bob_husk image list
one_line_error "its group can replace what is in it .*chmod 3770 $data"
expect 0 husk fetch --full "$image"
id=$out
equal "$(stat -c %a "$data")" 3770 "mode of the data directory"
expect 0 husk prepare "--set-env=SECRET=$secret" "$id" -- true
pod=$data/pods/prepared/$out
grep -q "$secret" "$pod/pod"
expect 0 bob_husk image list --full --no-legend --fields=id
equal "$out" "$id" "what he sees"

say "manifests"
equal "$(stat -c %a "$pod/pod")" 600 "mode of the manifest"
equal "$(bob grep -rl "$secret" "$data" 2>/dev/null)" "" "where he reads the environment"
chmod 640 "$pod/pod" # as they once were
expect 0 husk list
equal "$(stat -c %a "$pod/pod")" 600 "mode of an old manifest after a look at it"
expect 0 bob_husk image gc --grace-period=0
expect 0 husk image list --full --no-legend --fields=id
equal "$out" "$id" "images after he collected"

say "the owner's directories are out of reach"
for name in oci images refs trees tmp locks pods cache; do
	refused "rename $name" mv "$data/$name" "$data/x"
	case $name in
	oci | images | refs) continue ;; # members remove images
	esac
	refused "remove $name" rm -rf "$data/$name"
done
refused "put something into trees" touch "$data/trees/x"
refused "put something into pods" mkdir "$data/pods/x"
for phase in embryo prepare prepared run exited-garbage garbage; do
	refused "make a pod in $phase" mkdir "$data/pods/$phase/11111111-1111-4111-8111-111111111111"
done
refused "write into a pod" touch "$pod/pid"
refused "replace the template of scratch disks" touch "$data/cache/x"
expect 0 husk image verify "$id"

say "he is first: his own are refused"
for name in pods cache; do
	new_data 3770
	expect 0 husk fetch "$image"
	bob mkdir "$data/$name"
	expect 254 husk prepare busybox -- true
	one_line_error "$name of the data directory belongs to user $member instead of 0 .*remove it"
	rmdir "$data/$name"
	expect 0 husk prepare busybox -- true
done
for name in trees oci tmp locks refs images; do
	new_data 3770
	bob mkdir "$data/$name"
	expect 254 husk fetch "$image"
	one_line_error "$data/$name belongs to user $member instead of 0"
done
new_data 3770
expect 254 bob_husk image list
one_line_error "the owner of the data directory has to use it first"
# While it was not sticky he replaced what is rendered.
new_data 2770
expect 0 husk fetch "$image"
chmod 2770 "$data"
bob mv "$data/trees" "$data/x"
bob cp -r "$data/x" "$data/trees"
expect 254 husk prepare busybox -- true
one_line_error "$data/trees belongs to user $member"
equal "$(stat -c %a "$data")" 3770 "mode of the data directory"

say "links in what the group may change"
new_data 3770
expect 0 husk image list
bob mv "$data/oci/blobs" "$data/oci/x"
bob ln -s "$work/elsewhere" "$data/oci/blobs"
expect 254 husk fetch "$image"
equal "$(find "$work/elsewhere" -mindepth 1)" "" "what root has put elsewhere"
bob rm "$data/oci/blobs"
bob mv "$data/oci/x" "$data/oci/blobs"
bob rmdir "$data/oci/blobs/sha256"
mkdir "$work/elsewhere/sha256"
bob ln -s "$work/elsewhere/sha256" "$data/oci/blobs/sha256"
expect 254 husk fetch "$image"
equal "$(find "$work/elsewhere" -mindepth 1 ! -name sha256)" "" "what root has put elsewhere"

say "a forged number of a supervisor: nobody is killed"
new_data 3770
expect 0 husk prepare "$image" -- true
uuid=$out
mkdir -p "$data/pods/run"
mv "$data/pods/prepared/$uuid" "$data/pods/run/$uuid"
flock "$data/pods/run/$uuid" tail -f /dev/null &
holder=$!
tail -f /dev/null &
victim=$!
echo $victim >"$data/pods/run/$uuid/pid"
for force in "" --force; do
	# shellcheck disable=SC2086 # a word or none
	expect 254 husk stop $force "$uuid"
	match "$err" "process $victim does not hold the lock of the pod" "what stop says"
	kill -0 $victim || die "the victim was killed"
done
kill $victim
pgrep -P $holder -x tail >"$data/pods/run/$uuid/pid" # who inherited it
expect 0 husk stop --force "$uuid"
! wait $holder || die "the holder of the lock goes on"

say "--uuid-file-save where others make links"
new_data 755
for mode in 1777 2770 3770; do
	rm -rf "$work/open"
	mkdir "$work/open"
	chgrp "$group" "$work/open"
	chmod $mode "$work/open"
	echo precious >"$work/precious"
	bob ln -s "$work/precious" "$work/open/uuid"
	expect 0 husk prepare "--uuid-file-save=$work/open/uuid" "$image" -- true
	equal "$(cat "$work/open/uuid")" "$out" "the file"
	equal "$(cat "$work/precious")" precious "what the link led to"
	[ ! -L "$work/open/uuid" ] || die "the link is still there"
done
ln -s "$work/precious" "$work/own-link"
expect 0 husk prepare "--uuid-file-save=$work/own-link" "$image" -- true
equal "$(cat "$work/precious")" "$out" "the file that a link of ours leads to"
expect 0 husk prepare --uuid-file-save=/dev/stderr "$image" -- true
match "$err" "$out" "a UUID for standard error"
[ -L /dev/stderr ] || die "/dev/stderr was replaced"

say "modes and owners that are no good"
for mode in 777 1777 757 3777; do
	new_data $mode
	expect 254 husk list
	one_line_error "everybody can write there .chmod o-w $data"
done
new_data 775
expect 254 husk image list
one_line_error "its group can write there .chmod g-w $data; to share it with the group: chmod 3770 $data"
chmod g-w "$data"
expect 0 husk image list
chmod 770 "$data/trees"
expect 254 husk image list
one_line_error "$data/trees can be changed by others, mode 770 .*chmod 750"
chmod 750 "$data/trees"
expect 0 husk image list
chown "$member" "$data"
expect 254 husk image list
one_line_error "data directory .* belongs to user $member .run husk as that user"
chown 0 "$data"
expect 0 husk image list

# What lies in the directory of husk-bench, containers that a killed run left among it, is given to runtimes as root.
say "husk-bench where others can put something"
bench() { # REGEX DIR
	expect 254 env PATH=/nowhere "$build/bin/husk-bench" --stage1= --peer=crun "--out=$2"
	one_line_error "^husk-bench: $1"
	[ ! -e "$2/results.json" ] || die "it has run"
}
prepared=$work/open/prepared # in a directory with the sticky bit, as /tmp
rm -rf "$work/open"
mkdir -m 1777 "$work/open"
state=crun/state
bob mkdir -p "$prepared/work/$state"
bench "--out: \"$prepared\" belongs to user $member" "$prepared"
chown 0 "$prepared"
bench "--out: \"$prepared/work\" belongs to user $member" "$prepared"
chown -R 0 "$prepared"
bob ln -s "$prepared" "$work/open/his"
chmod 777 "$prepared/work"
bench "--out: \"$prepared/work\" can be changed by others" "$work/open/his"
chmod 700 "$prepared/work"
chmod 777 "$work/open"
bench "--out: \"$work/open\" can be changed by others" "$prepared"
chmod 1777 "$work/open"
rm -r "$prepared/work"
ln -s /etc "$prepared/work"
bench "--out: \"$prepared/work\" is a symbolic link" "$prepared"
rm "$prepared/work"
expect 254 env PATH=/nowhere "$build/bin/husk-bench" --stage1= --peer=crun "--out=$prepared"
match "$err" "nothing to measure" "nobody has had a hand in it"

# Its root may give any mode to what the pod has, and on the host, too, a set-user-ID program of it belongs to root.
say "what apps of a pod of namespaces write is for nobody else"
new_data 3770
for users in private host; do
	rm -f "$work/pod.out" # of the round before
	husk run --stage1=ns --userns=$users "$image" -- sh -c 'cp /bin/busybox /su && chmod 4755 /su && echo up && exec sleep 1000' \
		>"$work/pod.out" 2>"$work/pod.err" &
	pod=$!
	wait_for_line "$work/pod.out" up $pod
	uuid=$(basename "$(find "$data/pods/run" -mindepth 1 -maxdepth 1)")
	su=$(find "$data/pods/run/$uuid" -name su -path '*/upper/*')
	equal "$(stat -c '%u %a' "$su")" "0 4755" "the program"
	agent=$(pgrep -P "$(pgrep -P "$(cat "$data/pods/run/$uuid/pid")" -x husk-ns)")
	chmod 777 "/proc/$agent/root/scratch" "/proc/$agent/root/scratch"/*
	bob ls "$data/pods/run/$uuid" >/dev/null
	refused "look into what apps write" ls "$data/pods/run/$uuid/scratch"
	refused "call what they have written" "$su" id
	expect 0 husk stop --force "$uuid"
	wait $pod || :
	expect 0 husk rm "$uuid"
done
