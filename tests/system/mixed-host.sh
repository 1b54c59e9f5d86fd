#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pods of two installations, each with a stage1 of its own, in one data directory: whichever husk is
# called, and without an option, what is done to a pod is done by the stage1 that it was made with.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
image=$(busybox_image)
trace=$work/trace

# An installation whose entrypoints say who they are.
install_as() { # NAME
	local root=$work/$1 program
	mkdir -p "$root/bin" "$root/lib/husk"
	cp -a "$build/bin/husk" "$root/bin/"
	cp -a "$build"/lib/husk/{husk-images.so,stage1-kvm} "$root/lib/husk/"
	ln -s "$build/lib/husk/kernel" "$root/lib/husk/kernel"
	for program in run check stop gc enter attach stats app-add app-start app-stop app-rm; do
		mv "$root/lib/husk/stage1-kvm/bin/$program" "$root/lib/husk/stage1-kvm/bin/$program.real"
		printf '#!/bin/sh\necho "%s %s" >>"%s"\nexec "${0}.real" "$@"\n' "$1" "$program" "$trace" \
			>"$root/lib/husk/stage1-kvm/bin/$program"
		chmod +x "$root/lib/husk/stage1-kvm/bin/$program"
	done
	printf '#!/bin/sh\nexec "%s" --system-config="%s" --local-config= "$@"\n' "$root/bin/husk" "$no_network" >"$work/husk-$1"
	chmod +x "$work/husk-$1"
}

# Becomes the husk of an installation.
use() { # NAME
	husk_bin=$work/husk-$1
	: >"$trace"
}

# The entrypoints that were called since then.
called() {
	equal "$(paste -sd, "$trace")" "$1" "entrypoints"
}

install_as old
install_as new

say "each makes pods: one that ends, one that goes on"
for name in old new; do
	use "$name"
	expect 0 husk run --uuid-file-save="$work/ended-$name" "$image" -- sh -c "echo $name >/made-by"
	expect 0 husk app sandbox --name="goes-on-$name" --detach
done
ended_old=$(cat "$work/ended-old") ended_new=$(cat "$work/ended-new")

say "lists are of all, and nobody's stage1 is asked"
for name in old new; do
	use "$name"
	expect 0 husk list --quiet
	equal "$(wc -l <<<"$out")" 4 "pods that $name lists"
	expect 0 husk status "$ended_old"
	expect 0 husk status "$ended_new"
	called ""
done

say "verbs of apps"
use new
expect 0 husk app add goes-on-old "$image" --name=a -- sh -c 'exec sleep 1000'
expect 0 husk app start goes-on-old --app=a
expect 0 husk app exec --app=a goes-on-old echo entered
equal "$out" entered "output of a command"
expect 0 husk stats goes-on-old
expect 0 husk app stop goes-on-old --app=a
expect 0 husk app rm goes-on-old --app=a
called "old app-rm,old app-add,old app-start,old enter,old stats,old app-stop,old app-rm"

say "events of both"
use new
expect 0 husk events --replay "$ended_old"
match "$out" '"exited"' "what happened to the pod of the other installation"
called ""

say "an export"
use old
expect 0 husk export "$ended_new" "$work/new.aci"
equal "$(tar -xOf "$work/new.aci" rootfs/made-by)" new "what the app of the other installation wrote"

say "stop, from the other side each"
use old
expect 0 husk stop goes-on-new
called "new stop"
use new
expect 0 husk stop goes-on-old
called "old stop"

say "removal and collection"
use old
expect 0 husk rm "$ended_new"
called "new gc"
use new
expect 0 husk gc --grace-period=0
equal "$(sort "$trace" | uniq -c | tr -s ' ' | paste -sd,)" " 1 new gc, 2 old gc" "entrypoints of gc"
expect 0 husk list --quiet
equal "$out" "" "pods that are left"

say "an installation that is gone: its pods are listed, and told apart"
use old
expect 0 husk run --uuid-file-save="$work/ended-old" "$image" -- true
rm -rf "$work/old"
use new
expect 0 husk list --quiet
equal "$out" "$(cat "$work/ended-old")" "the pod without a stage1"
expect 254 husk export "$(cat "$work/ended-old")" "$work/x.aci"
one_line_error "^export: pod \"$(cat "$work/ended-old")\": the stage1 of the pod: .*/old/lib/husk/stage1-kvm.* \\(name one with --stage1=DIR\\)$"
