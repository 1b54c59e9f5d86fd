#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pods that a file describes, and variables from files and from husk's own environment.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

require jq
image=$(busybox_image)
id=$(husk prepare "$image" -- true)
id=$(husk cat-manifest "$id" | jq -r '.apps[0].image.id')

manifest() { # APPS: a pod manifest with these apps in $work/pod.json
	echo "{\"acKind\":\"PodManifest\",\"acVersion\":\"0.8.11\",\"apps\":[$1]}" >"$work/pod.json"
}

say "two apps, one as its image says, one as the manifest says"
manifest "{\"name\":\"told\",\"image\":{\"name\":\"$image\",\"id\":\"$id\"},\"app\":{\"exec\":[\"sh\",\"-c\",
	\"echo \$COLOR; id -u; pwd; env | grep -c ^PATH=\"],\"user\":\"12\",\"group\":\"34\",\"workingDirectory\":\"/tmp\",
	\"environment\":[{\"name\":\"COLOR\",\"value\":\"blue\"}]}},{\"name\":\"image\",\"image\":{\"name\":\"$image\"}}"
expect 0 husk run "${run_options[@]}" --uuid-file-save="$work/uuid" --pod-manifest="$work/pod.json" </dev/null
equal "$(grep -x -A 3 blue "$work/out" | tr '\n' ' ')" "blue 12 /tmp 1 " "what the app says of itself"
match "$(husk status "$(cat "$work/uuid")")" app-told=0 "status"
uuid=$(husk prepare --pod-manifest=<(cat "$work/pod.json"))
equal "$(husk cat-manifest "$uuid" | jq -c '.apps[0].app.exec[0:2]')" '["sh","-c"]' "exec of the prepared pod"

say "what confines an app, from options to the manifest and back"
uuid=$(husk prepare "$image" --memory=64Mi --cpu=1.5 --caps-remove=mknod --seccomp=mode=remove,errno=EPERM,chmod \
	--readonly-rootfs --supplementary-gids=7 --rlimit=nofile=99 -- true)
husk cat-manifest "$uuid" >"$work/told.json"
jq -c '.apps[0] | .readOnlyRootFS, .app.supplementaryGIDs, .app.isolators[]' "$work/told.json" >"$work/got"
diff "$work/got" - <<-END || die "isolators of the prepared pod"
	true
	[7]
	{"name":"resource/memory","value":{"limit":"67108864"}}
	{"name":"resource/cpu","value":{"limit":"1500m"}}
	{"name":"os/linux/capabilities-remove-set","value":{"set":["CAP_MKNOD"]}}
	{"name":"os/linux/seccomp-remove-set","value":{"set":["chmod"],"errno":"EPERM"}}
	{"name":"husk/rlimits","value":{"set":["nofile=99"]}}
END
jq --arg image "$image" '.apps[0].image.name = $image' "$work/told.json" >"$work/pod.json"
again=$(husk prepare --pod-manifest="$work/pod.json")
diff <(husk cat-manifest "$again" | jq '.apps[0].app') <(jq '.apps[0].app' "$work/told.json") ||
	die "the manifest of a pod, given as a request, makes another one"
husk rm "$uuid" "$again" >/dev/null

say "the manifest is one that appc tools take: hashes, identifiers and labels in their forms"
uuid=$(husk prepare "$image" -- true)
husk cat-manifest "$uuid" >"$work/told.json"
jq -e '.acVersion == "0.8.11" and (.apps[0] |
	(.image.id | test("^sha512-[0-9a-f]{64}$")) and
	(.image.name | test("^[a-z0-9]+([-._~/][a-z0-9]+)*$")) and
	([.image.labels[] | select(.name != "version") | .name + "=" + .value] == ["os=linux", "arch=amd64"]) and
	([.annotations[].name] | all(test("^[a-z0-9]+([-._~/][a-z0-9]+)*$"))) and
	.app.user != "" and .app.group != "")' "$work/told.json" >/dev/null || die "$(cat "$work/told.json")"
digest=$(jq -r '.apps[0].annotations[] | select(.name == "husk/image-digest") | .value' "$work/told.json")
match "$(husk list --full --no-legend | grep "^$uuid")" "sha256-${digest:7:12}" "list"

say "its ID alone names the image, also cut, in every command"
key=$(jq -r '.apps[0].image.id' "$work/told.json")
manifest "{\"name\":\"a\",\"image\":{\"id\":\"${key:0:27}\"},\"app\":{\"exec\":[\"true\"],\"user\":\"0\",\"group\":\"0\"}}"
again=$(husk prepare --pod-manifest="$work/pod.json")
equal "$(husk cat-manifest "$again" | jq -r '.apps[0].image.id')" "$key" "the image by its ID"
equal "$(husk image cat-manifest "$key")" "$(husk image cat-manifest "sha256-${digest:7:20}")" "an image by both of its IDs"

say "a pod of the version before, whose manifest has the OCI digest as the ID and the version in the name"
jq --arg id "sha256-${digest:7}" '.apps[0] |= (.name = "a" | .image = {id: $id, name: "busybox:1"} | del(.annotations) | .app.user = "" | .app.group = "")' \
	"$work/told.json" >"$data/pods/prepared/$again/pod"
match "$(husk list --full --no-legend | grep "^$again")" "busybox:1"$'\t+'"sha256-${digest:7:12}" "list"
equal "$(husk status --format=json "$again" | jq -r '.apps[0].image_id')" "sha256-${digest:7}" "status"
expect 0 husk image gc --grace-period=0
equal "$out" "" "gc: what a pod uses stays"
expect 0 husk run-prepared "${run_options[@]}" "$again"
expect 0 husk export --format=oci "$again" "$work/old.oci"
husk rm "$uuid" "$again" >/dev/null

say "the VM has the sizes that the apps' limits add up to"
expect 0 husk run "${run_options[@]}" "$image" --memory=500Mi --cpu=2 -- \
	sh -c 'test "$(sed -n "s/MemTotal: *\([0-9]*\) kB/\1/p" /proc/meminfo)" -gt 560000'
expect 0 husk --insecure-options=capabilities,seccomp run "${run_options[@]}" "$image" -- true

say "what does not go together, and what is wrong with the file"
conflict='conflicting flags set with --pod-manifest \(see --help\)'
for words in "$image" --set-env=A=b --inherit-env --set-env-file=/dev/null; do
	expect 254 husk run --pod-manifest="$work/pod.json" "$words"
	match "$err" "$conflict" "conflict with $words"
done
expect 254 husk run --pod-manifest="$work/none"
one_line_error 'cannot read ".*/none": No such file or directory'
expect 254 husk run
one_line_error 'must provide at least one image or specify the pod manifest'
manifest ''
expect 254 husk run --pod-manifest="$work/pod.json"
one_line_error 'pod must contain at least one application'
manifest "{\"name\":\"a\",\"image\":{\"name\":\"$image\",\"id\":\"sha256-00\"}}"
expect 254 husk run --pod-manifest="$work/pod.json"
one_line_error 'image "sha256-00": no image IDs found'
manifest "{\"name\":\"a\",\"image\":{\"name\":\"$image\"},\"mounts\":[{\"volume\":\"v\",\"path\":\"/v\"}]}"
expect 254 husk prepare --pod-manifest="$work/pod.json"
one_line_error 'dangling mount point "/v": volume "v" not found'

say "where variables come from, from weak to strong"
printf '# of a file\nFILE=file\nBOTH=file\nPATH=/bin:/from/file\n' >"$work/env"
expect 0 env HOST=host FILE=host BOTH=host PATH="$PATH" "$husk_bin" "--dir=$data" run "${run_options[@]}" --inherit-env \
	--set-env-file="$work/env" --set-env=BOTH=set --set-env=OWN=set "$image" --environment=OWN=own -- \
	sh -c 'echo $HOST $FILE $BOTH $OWN $PATH'
equal "$out" "host file set own /bin:/from/file" "variables"
printf '  FILE=windows\r\nBOTH=\r\n' >"$work/env.windows"
expect 0 husk run "${run_options[@]}" --set-env-file="$work/env.windows" "$image" -- sh -c 'echo "[$FILE$BOTH]"'
equal "$out" "[windows]" "a file from Windows"
expect 254 husk run --set-env-file="$work/env" --set-env-file="$work/env" "$image"
one_line_error 'line 2: variable "FILE" is already set'
equal "$(husk list --no-legend | grep -cw prepared)" 2 "prepared pods"
