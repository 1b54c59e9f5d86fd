#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Configuration directories: what they say together, what is ignored, what each mistake is called, and that a pod
# really uses the data directory and the stage1 they name.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require jq strace unsquashfs
image=$(busybox_image)
system=$work/system local=$work/local user=$work/user
mkdir -p "$system" "$local" "$user"

configured() { # ARGS...: husk with our three directories, and without --dir
	timeout --kill-after=10 "$vm_limit" "$husk_bin" "--system-config=$system" "--local-config=$local" \
		"--user-config=$user" "$@"
}

put() { # FILE JSON-MEMBERS
	mkdir -p "${1%/*}"
	echo "{\"rktVersion\":\"v1\",$2}" >"$1"
	chmod 640 "$1"
}

put_token() { # FILE TOKEN HOST...
	local file=$1 token=$2
	shift 2
	put "$file" "\"rktKind\":\"auth\",\"domains\":$(jq -nc '$ARGS.positional' --args "$@"),
		\"type\":\"oauth\",\"credentials\":{\"token\":\"$token\"}"
}

# fails FILE TEXT: every file of husk config is read, and FILE is what is wrong.
fails() {
	expect 254 configured config
	equal "$err" "config: configuration file \"$1\": $2" "error"
	equal "$out" "" "output of a failure"
}

say "nothing configured"
expect 0 configured --pretty-print=false config
nothing='{"stage0":[{"rktVersion":"v1","rktKind":"paths","data":"","stage1-images":""},'
nothing+='{"rktVersion":"v1","rktKind":"stage1","name":"","version":"","location":""}]}'
equal "$out" "$nothing" "empty configuration"
expect 0 "$husk_bin" --system-config= config --pretty-print=false
equal "$out" "$nothing" "no directories at all"

say "later directories override earlier ones, host by host and setting by setting"
put_token "$system/auth.d/a.json" system one two
put_token "$local/auth.d/b.json" local two three
put_token "$user/auth.d/c.json" user three
put "$system/auth.d/docker.json" '"rktKind":"dockerAuth","registries":["quay.io","gcr.io"],"credentials":{"user":"u","password":"p"}'
put "$user/auth.d/docker.json" '"rktKind":"dockerAuth","registries":["gcr.io"],"credentials":{"user":"over","password":"written"}'
put "$system/paths.d/p.json" '"rktKind":"paths","data":"/system","stage1-images":"/images"'
put "$user/paths.d/p.json" '"rktKind":"paths","data":"/user"'
put "$system/stage1.d/s.json" '"rktKind":"stage1","name":"n","version":"1","location":"http://localhost/a"'
put "$local/stage1.d/s.json" '"rktKind":"stage1","location":"https://localhost/b"'
expect 0 configured config --pretty-print=false
equal "$(jq -r '.stage0[] | select(.rktKind == "auth") | "\(.domains[]) \(.type) \(.credentials.token)"' <<<"$out" | sort)" \
	$'one oauth system\nthree oauth user\ntwo oauth local' "auth"
equal "$(jq -r '.stage0[] | select(.rktKind == "dockerAuth") | "\(.registries[]) \(.credentials.user)"' <<<"$out" | sort)" \
	$'gcr.io over\nquay.io u' "dockerAuth"
equal "$(jq -c '.stage0[-2:]' <<<"$out")" "$(jq -c . <<<'[
	{"rktVersion":"v1","rktKind":"paths","data":"/user","stage1-images":"/images"},
	{"rktVersion":"v1","rktKind":"stage1","name":"n","version":"1","location":"https://localhost/b"}]')" "paths and stage1"
compact=$out
expect 0 configured config
equal "$(jq -c . <<<"$out")" "$compact" "indented output"
equal "$(head -n 3 "$work/out")" $'{\n  "stage0":[\n    {' "indentation"

say "what it printed is a configuration"
mkdir -p "$work/again"/{auth,paths,stage1}.d
n=0
while read -r entry; do
	n=$((n + 1))
	kind=$(jq -r .rktKind <<<"$entry")
	case $kind in auth | dockerAuth) part=auth ;; *) part=$kind ;; esac
	(umask 077 && echo "$entry" >"$work/again/$part.d/$n.json")
done < <(jq -c '.stage0[]' <<<"$compact")
expect 0 "$husk_bin" --system-config= "--local-config=$work/again" config --pretty-print=false
equal "$(jq -c '.stage0 | sort' <<<"$out")" "$(jq -c '.stage0 | sort' <<<"$compact")" "printed, read and printed"

say "what is ignored: other names, symbolic links, fifos, subdirectories"
echo broken >"$local/auth.d/README"
echo broken >"$local/auth.d/x.json~"
echo broken >"$work/broken.json"
ln -s "$work/broken.json" "$local/auth.d/link.json"
mkfifo "$local/auth.d/fifo.json"
mkdir "$local/auth.d/dir.json"
echo broken >"$local/auth.d/dir.json/x.json"
mkdir "$local/other.d"
echo broken >"$local/other.d/x.json"
expect 0 configured config --pretty-print=false
equal "$out" "$compact" "configuration with what is ignored beside it"
equal "$err" "" "warnings"
strace -f -e trace=open,openat,openat2 -o "$work/trace" "$build/bin/husk" --system-config= "--local-config=$local" config >/dev/null
! grep -E 'link|fifo|dir\.json' "$work/trace" | grep -v O_PATH || die "something else than a file was opened"

say "mistakes"
bad=$local/auth.d/bad.json
put_token "$local/auth.d/dup.json" again two
fails "$local/auth.d/dup.json" 'auth for domain "two" is already specified in this directory (keep one of the two)'
rm "$local/auth.d/dup.json"
echo '{"rktVersion":"v1",}' >"$bad"
fails "$bad" 'it is not an object in valid JSON (correct it)'
put "$bad" '"rktKind":"paths"'
fails "$bad" 'kind "paths" does not belong into auth.d (move it to paths.d)'
put "$bad" '"rktKind":"network"'
fails "$bad" 'unknown kind "network" (auth.d takes "auth" and "dockerAuth")'
put "$bad" '"rktKind":"auth","rktVersion":"v2"'
fails "$bad" 'unknown version "v2" (write "v1")'
put "$bad" '"rktKind":"auth","domains":["x"],"type":"ntlm"'
fails "$bad" 'unknown auth type "ntlm" (use "basic", "oauth" or "aws")'
put "$bad" '"rktKind":"auth","domains":["x"],"type":"basic","credentials":{"user":"secret-user"}'
fails "$bad" '"credentials": "password" is missing (add it)'
put "$bad" '"rktKind":"dockerAuth","registries":[],"credentials":{"user":"u","password":"p"}'
fails "$bad" '"registries" is not a list of 1 to 256 names of hosts, each of at most 259 bytes (correct it)'
head -c 65537 /dev/zero >"$bad"
fails "$bad" 'it has more than 65536 bytes (split it)'
rm "$bad"
bad=$local/paths.d/bad.json
put "$bad" '"rktKind":"paths","data":"relative"'
fails "$bad" '"data" is not an absolute path (write it as /PATH)'
rm "$bad"
bad=$local/stage1.d/z.json
put "$bad" '"rktKind":"stage1","name":"n"'
fails "$bad" '"name" without "version" (give both or none)'
put "$bad" '"rktKind":"stage1","location":"/second"'
fails "$bad" 'the "location" of stage1 is already specified in this directory (keep one of the two)'
put "$bad" '"rktKind":"stage1","location":"ftp://x"'
fails "$bad" 'location "ftp://x" is not a URL of scheme docker, file, http or https (write it as /PATH or file:///PATH)'
rm "$bad"
expect 254 configured "--user-config=$work/none" config
equal "$err" "config: configuration directory \"$work/none\" is not there (make it, or name another one)" "missing directory"
mv "$user/auth.d" "$user/auth"
ln -s auth "$user/auth.d"
expect 254 configured config
one_line_error "^config: configuration directory \"$user/auth.d\" is something else \(make it a directory; symbolic links are not followed\)$"
rm "$user/auth.d"
mv "$user/auth" "$user/auth.d"

say "a file with credentials that everybody can read is used, and reported"
chmod o+x "$work"
chmod o+r "$user/auth.d/c.json"
expect 0 configured config --pretty-print=false
equal "$out" "$compact" "configuration"
one_line_error "^config: warning: configuration file \"$user/auth.d/c.json\" holds credentials and everybody may read it \(chmod o-r\)$"
chmod o-r "$user/auth.d/c.json"

say "a stage1 that cannot be fetched"
put "$user/paths.d/p.json" "\"rktKind\":\"paths\",\"data\":\"$data\""
expect 254 configured run "$image" -- true
one_line_error '^run: image "https://localhost/b": '
expect 1 configured doctor --format=json
match "$(jq -r '.checks[] | select(.name == "stage1").value' <<<"$out")" '^image "https://localhost/b": ' "doctor, which fetches nothing"

say "a pod in the configured data directory, with the configured stage1"
mkdir "$work/other place"
cp -a "$build/lib/husk/stage1-kvm" "$work/other place"
ln -s "$build/lib/husk/kernel" "$build/lib/husk/guest" "$work/other place"
put "$local/stage1.d/s.json" "\"rktKind\":\"stage1\",\"location\":\"file://$work/other%20place/stage1-kvm\""
expect 0 configured run "${run_options[@]}" "--uuid-file-save=$work/uuid" "$image" -- echo hello
equal "$out" hello "output"
[ -d "$data/pods/run/$(cat "$work/uuid")" ] || die "the pod is not in the configured data directory"
expect 0 configured doctor --format=json
equal "$(jq -r '.checks[] | select(.name == "stage1").detail' <<<"$out")" "$work/other place/stage1-kvm" "stage1"
equal "$(jq -r '.checks[] | select(.name == "data-directory").detail' <<<"$out")" "$data" "data directory"
expect 0 configured list --no-legend
match "$out" "^$(cut -c1-8 "$work/uuid")" "list"
expect 0 configured "--dir=$work/elsewhere" list --no-legend
equal "$out" "" "list of another data directory"

say "how images are kept"
compression_of() { # DATA
	unsquashfs -s "$1"/trees/*.v[0-9] | sed -n 's/^Compression //p'
}
put "$local/images.d/i.json" '"rktKind":"images","compression":"zstd:3","maxBytes":"1Gi"'
expect 0 configured "--dir=$work/zstd" fetch "$image"
equal "$(compression_of "$work/zstd")" zstd "compression of the configuration"
HUSK_IMAGE_COMPRESSION=lz4 expect 0 configured "--dir=$work/lz4" fetch "$image"
equal "$(compression_of "$work/lz4")" lz4 "compression of the environment"
put "$user/images.d/i.json" '"rktKind":"images","maxBytes":"1Ki"'
expect 254 configured "--dir=$work/small" fetch "$image"
match "$err" "more than 1024 bytes when decompressed .*raise HUSK_IMAGE_BYTES_MAX" "limit of the configuration"
HUSK_IMAGE_BYTES_MAX=1Gi expect 0 configured "--dir=$work/small" fetch "$image"
put "$user/images.d/i.json" '"rktKind":"images","compression":"zstd:20"'
expect 254 configured "--dir=$work/zstd" fetch "$image"
one_line_error '^fetch: configuration: images, "compression"="zstd:20" is not a compression \(give plain, lz4, zstd'
rm "$user/images.d/i.json"

say "the size of the scratch disk: configuration, and the option above it"
put "$local/stage1.d/size.json" '"rktKind":"stage1","options":{"scratch-size":"64Mi","of-another":"x"}'
expect 0 configured run "${run_options[@]}" "$image" -- df -k /
size=$(awk '/overlay/ {print $2}' <<<"$out")
{ [ "$size" -gt 40000 ] && [ "$size" -lt 65537 ]; } || die "scratch disk of $size KiB: $out"
expect 0 configured run "${run_options[@]}" --scratch-size=128Mi "$image" -- df -k /
[ "$(awk '/overlay/ {print $2}' <<<"$out")" -gt 100000 ] || die "the option does not count: $out"
expect 254 configured run "${run_options[@]}" --scratch-size=1Ki "$image" -- true
one_line_error '^run: --scratch-size=1Ki is not a size from 32Mi to 1Ti$'
rm "$local/stage1.d/size.json"

say "a broken file stops who needs it, and nobody else"
echo broken >"$local/stage1.d/s.json"
expect 254 configured run "$image" -- true
one_line_error "^run: configuration file \"$local/stage1.d/s.json\": it is not an object in valid JSON \(correct it\)$"
expect 0 configured list --no-legend
echo broken >"$user/paths.d/p.json"
expect 254 configured list
one_line_error "^list: configuration file \"$user/paths.d/p.json\": it is not"
expect 0 configured version
expect 0 configured help
expect 0 configured "--dir=$data" "--stage1=$build/lib/husk/stage1-kvm" rm "--uuid-file=$work/uuid"
