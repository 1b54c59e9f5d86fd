#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One app: output, exit codes, environment, user, working directory, name of the pod's states.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
image=$(busybox_image)

say "output and exit code"
expect_forms 7 run "$image" -- sh -c 'echo to stdout; echo to stderr >&2; exit 7'
equal "$out" "to stdout" stdout
equal "$err" "to stderr" stderr

say "a program that is not there"
expect_forms 203 run "$image" -- /foo-not-there
one_line_error '^stage1: app "busybox": Error: Unable to open "/foo-not-there": No such file or directory$'

say "an image without PATH: its programs are found where they usually are"
mkdir -p "$work/root/usr/sbin"
cp "$(command -v busybox)" "$work/root/usr/sbin/hostname"
expect 0 husk run --hostname=found "rootfs:$work/root" --name=busybox -- hostname
equal "$out" found "output of a program in /usr/sbin"

say "environment, working directory, user, host name"
expect 0 husk run --hostname=shell "$image" --environment=COLOUR=blue --user=nobody --working-dir=/tmp -- \
	sh -c 'echo "$COLOUR $(id -un) $(pwd) $(hostname) $AC_APP_NAME"'
equal "$out" "blue nobody /tmp shell busybox" "app environment"

say "an image's own files of names, as makers bring them: the pod's name is in there, what they name stays"
mkdir -p "$work/maker/bin" "$work/maker/etc" "$work/maker/home/joe" "$work/maker/opt"
cp "$(command -v busybox)" "$work/maker/bin/busybox"
for applet in cat echo env grep id ls nc nslookup ping pwd sh sleep; do ln -s busybox "$work/maker/bin/$applet"; done
printf '127.0.0.1\tlocalhost localhost.localdomain\n10.1.2.3 printer' >"$work/maker/etc/hosts"
echo localhost >"$work/maker/etc/hostname"
printf 'root:x:0:0::/var/root:/bin/sh\njoe:x:1000:1000::/home/joe:/bin/sh\n' >"$work/maker/etc/passwd"
printf 'root:x:0:\njoe:x:1000:\nwheel:x:10:joe\n' >"$work/maker/etc/group"
chown -R 1000:1000 "$work/maker/home/joe"
expect 0 husk run --hostname=box "rootfs:$work/maker" --name=busybox -- sh -c 'cat /etc/hostname /etc/hosts; ping -c 1 -W 1 box >/dev/null && echo found'
equal "$out" "box
127.0.0.1	localhost localhost.localdomain
10.1.2.3 printer
127.0.0.1 box
::1 box
found" "hostname and hosts"

say "home and name are the user's; groups beside the one that is said do not count; every user has low ports"
show='echo $HOME ${USER-none} ${LOGNAME-none} $(id -G)'
for words in "joe /home/joe joe joe 1000 10" "1000:1000 /home/joe joe joe 1000" "joe:wheel /home/joe joe joe 10" "4711 / none none 0" \
	"0 /var/root root root 0"; do
	expect 0 husk run "rootfs:$work/maker" --name=busybox "--user=${words%% *}" -- sh -c "$show"
	equal "$out" "${words#* }" "--user=${words%% *}"
done
expect 0 husk run "rootfs:$work/maker" --name=busybox --user=joe --environment=HOME= --environment=USER=me -- sh -c "$show"
equal "$out" "/home/joe me joe 1000 10" "what is given, and what is given as nothing"
expect 0 husk run "rootfs:$work/maker" --name=busybox --user=joe --exec=/bin/sh -- -c \
	'echo hello | nc -l -p 80 127.0.0.1 & sleep 0.2; nc 127.0.0.1 80 </dev/null; wait'
equal "$out" hello "port 80 of a user"

say "a working directory that somebody names has to be there, an image's is made"
expect 203 husk run "rootfs:$work/maker" --name=busybox --working-dir=/otp -- pwd
one_line_error 'cannot change to directory "/otp": No such file or directory'
expect 0 husk run "rootfs:$work/maker" --name=busybox --working-dir=/opt -- pwd
equal "$out" /opt "a directory that is there"

say "what a program can be given: as much as Linux gives it, and not more"
seq -f 'V%.0f=x' 3000 >"$work/env"
expect 0 husk run --set-env-file="$work/env" "$image" -- sh -c 'env | grep -c ^V'
equal "$out" 3000 "variables"
long=$(head -c 131071 /dev/zero | tr '\0' x)
# shellcheck disable=SC2046 # numbers
expect 0 husk run "$image" -- sh -c 'echo $# ${#1}' sh "$long" $(seq 20000)
equal "$out" "20001 131071" "arguments, and bytes of the longest"
printf 'A=%s\n' "$long" >"$work/env"
expect 254 husk run --set-env-file="$work/env" "$image" -- true
one_line_error '^run: image ".*": variable "A" has 131073 bytes with its name, and Linux takes at most 131071 in one \(shorten it'
for i in {1..20}; do printf 'A%s=%s\n' "$i" "${long:0:110000}"; done >"$work/env"
expect 254 husk run --set-env-file="$work/env" "$image" -- true
one_line_error '^run: image ".*": 1 arguments and 21 variables have [0-9]+ bytes together, .*at most 2080768 \(give fewer or shorter ones'

say "user and group are each overridden alone; what the image does not have"
require umoci
mkdir -p "$work/image"
cp -r "$image" "$work/image/oci"
umoci config --image "$work/image/oci:busybox" --config.user=400:500 >/dev/null
expect 0 husk run "$work/image/oci" --name=busybox --user=200 -- sh -c 'echo $(id -u) $(id -g)'
equal "$out" "200 500" "an image's group with another user"
expect 0 husk run "$work/image/oci" --name=busybox --group=7 -- sh -c 'echo $(id -u) $(id -g)'
equal "$out" "400 7" "an image's user with another group"
umoci config --image "$work/image/oci:busybox" --config.workingdir=/not/there >/dev/null
expect 0 husk run "$work/image/oci" --name=busybox -- pwd
equal "$out" /not/there "an image's working directory that it does not have"
expect 254 husk run "$image" --user=user2 -- true
one_line_error '^stage1: .*"user2" user not found'
expect 254 husk run "$image" --group=group2 -- true
one_line_error '^stage1: .*"group2" group not found'

say "a group of thousands, as of a directory service, is one long line"
mkdir -p "$work/root/etc"
echo 'joe:x:1000:1000::/:/bin/sh' >"$work/root/etc/passwd"
{ printf 'many:x:77:'; printf 'user%d,' {1..5000}; printf 'joe\nlast:x:78:joe\n'; } >"$work/root/etc/group"
cp "$(command -v busybox)" "$work/root/usr/sbin/id"
expect 0 husk run "rootfs:$work/root" --name=busybox --user=joe -- id -G
equal "$out" "1000 77 78" "groups"
expect 0 husk run "rootfs:$work/root" --name=busybox --user=joe --group=many -- id -G
equal "$out" 77 "the one that is said"

say "the root is writable, and only for this pod; success is 0"
expect 0 husk run "$image" -- sh -c 'echo x >/etc/new && cat /etc/new && rm /bin/ls && ! test -e /bin/ls'
expect 1 husk run "$image" -- test -e /etc/new

say "the app died of a signal: its number is the status; process 1 does not die of its own"
expect 9 husk run "$image" --init -- sh -c 'kill -9 $$'
expect 0 husk run "$image" -- sh -c 'kill -9 $$; echo $$'
equal "$out" 1 "number of the app"
expect 0 husk run "$image" --init -- sh -c 'sh -c "sleep 0.1 & exit" & wait; sleep 0.3; echo $$; ps | grep -c "[Zz]ombie\|\[sleep\]"; :'
equal "$out" $'2\n0' "number behind a process 1 that reaps"

say "list and status know the pods"
expect 0 husk list --no-legend
forms=3
[ "${HUSK_TEST_FORMS:-}" != file ] || forms=1
equal "$(grep -c exited "$work/out")" $((26 + 2 * forms)) "exited pods"
uuid=$(husk list --no-legend --full | awk 'NR==1 {print $1}')
expect 0 husk status "$uuid"
match "$out" "state=exited" "status"
match "$out" "app-busybox=[0-9]+" "app status"

# put_blob LAYOUT FILE: prints the members of a descriptor.
put_blob() {
	local hex
	hex=$(sha256sum <"$2" | cut -d' ' -f1)
	cp "$2" "$1/blobs/sha256/$hex"
	printf '{"digest":"sha256:%s","size":%d}' "$hex" "$(stat -c %s "$2")"
}

# configured LAYOUT PROGRAM: a copy of the image whose configuration jq's PROGRAM has changed; no tool here writes such.
configured() {
	local index=$1/index.json manifest
	rm -rf "$1" && cp -r "$image" "$1"
	manifest=$1/blobs/sha256/$(jq -r '.manifests[0].digest[7:]' "$index")
	jq -c "$2" "$1/blobs/sha256/$(jq -r '.config.digest[7:]' "$manifest")" >"$work/config"
	jq -c --argjson new "$(put_blob "$1" "$work/config")" '.config += $new' "$manifest" >"$work/manifest"
	jq -c --argjson new "$(put_blob "$1" "$work/manifest")" '.manifests[0] += $new' "$index" >"$work/index"
	cp "$work/index" "$index"
}

say "images of other tools: an empty command is none, a variable without a value is not there"
require jq
configured "$work/odd" '.config.Entrypoint = [""] | .config.Cmd = ["echo", "cmd"] | .config.Env += ["UNSET", "=x"]'
expect 0 husk run "$work/odd"
equal "$out" cmd "the command behind an empty entrypoint"
expect 0 husk run "$work/odd" -- sh -c 'env | grep -c -e UNSET -e "^=" || :'
equal "$out" 0 "variables without a value"
configured "$work/odd" '.config.Entrypoint = ["echo", "entrypoint"] | .config.Cmd = [""]'
expect 0 husk run "$work/odd"
equal "$out" entrypoint "an entrypoint ahead of an empty command"
configured "$work/odd" '.config.Entrypoint = [""] | .config.Cmd = [""]'
expect 254 husk run "$work/odd"
one_line_error 'image ".*" has no command and none is given' "both are empty"

say "an image whose name has no letter that an app's name may have"
cp -r "$image" "$work/日本"
jq -c 'del(.manifests[].annotations)' "$image/index.json" >"$work/日本/index.json"
expect 0 husk run "$work/日本" -- sh -c 'echo "$AC_APP_NAME"'
equal "$out" app "name of the app"
match "$(husk list --no-legend)" $'\tapp\t+日本\t' "name of the image"
