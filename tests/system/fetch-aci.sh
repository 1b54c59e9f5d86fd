#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# appc images: signatures, dependencies, whitelists, labels; from files, URLs and by discovery, from a real web server.
# Root has a network namespace for it, where every port is free.
if [ -z "${HUSK_TEST_OWN_NET:-}" ] && [ "$(id -u)" -eq 0 ]; then
	HUSK_TEST_OWN_NET=1 exec unshare --net -- "$0" "$@"
fi
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/aci_lib.sh
. "$top/tests/system/aci_lib.sh"

require gpg nginx openssl jq busybox xz ip
[ -z "${HUSK_TEST_OWN_NET:-}" ] || ip link set lo up
export HOME=$work/home
mkdir -p "$HOME"
cd "$work"
config=$work/config
mkdir config

# As husk, with a configuration that has our keys. SSL_CERT_FILE: the test's own authority.
hconf() {
	SSL_CERT_FILE=$work/ca.pem husk --local-config="$config" "$@"
}

say "making keys and images"
make_key good
make_key bad
mkdir -p base.aci.d/rootfs/bin base.aci.d/rootfs/etc
cp "$(command -v busybox)" base.aci.d/rootfs/bin/busybox
ln -s busybox base.aci.d/rootfs/bin/sh
ln base.aci.d/rootfs/bin/busybox base.aci.d/rootfs/bin/cat
echo base >base.aci.d/rootfs/etc/base
echo lower >base.aci.d/rootfs/etc/both
echo kept >base.aci.d/rootfs/etc/.wh.kept
aci base.aci example.com/base '.labels += [{name: "version", value: "1.0"}]' xz
mkdir -p app.aci.d/rootfs/etc
echo upper >app.aci.d/rootfs/etc/both
aci app.aci example.com/app '.labels += [{name: "version", value: "2"}]
	| .app = {exec: ["/bin/cat", "/etc/base", "/etc/both", "/etc/.wh.kept"], user: "0", group: "0",
		environment: [{name: "PATH", value: "/bin"}], workingDirectory: "/etc"}
	| .dependencies = [{imageName: "example.com/base", labels: [{name: "version", value: "1.0"}]}]'
mkdir -p thin.aci.d/rootfs
aci thin.aci example.com/thin '.app = {exec: ["/bin/sh", "-c", "echo /* /etc/*"], user: "0", group: "0"}
	| .dependencies = [{imageName: "example.com/base"}]
	| .pathWhitelist = ["/bin/busybox", "/bin/sh", "/etc/base"]' none
for image in base app thin; do sign "$image.aci"; done

say "signatures: none, unknown, trusted, wrong"
mv base.aci.asc kept.asc
expect 254 hconf fetch "$work/base.aci"
one_line_error 'fetch: image ".*base\.aci": error opening signature file ".*base\.aci\.asc" \(.*\): No such file or directory' "no signature"
mv kept.asc base.aci.asc
expect 254 hconf fetch "$work/base.aci"
match "$err" 'husk trust' "nobody is trusted"
expect 0 hconf trust --prefix=example.com --skip-fingerprint-review good.pub
expect 0 hconf fetch --full "$work/base.aci"
base=$out
sign base.aci bad
touch base.aci
expect 254 hconf fetch "$work/base.aci"
match "$err" 'openpgp: signature made by unknown entity' "signed by somebody else"
# Only a file that has not changed for a second is remembered.
while [ "$(stat -c %Z base.aci)" -gt "$(($(date +%s) - 3))" ]; do read -rt 0.05 <> <(:) || :; done
expect 0 hconf --insecure-options=image fetch --full "$work/base.aci"
equal "$out" "$base" "not verified"
expect 254 hconf fetch "$work/base.aci"
match "$err" 'openpgp: signature made by unknown entity' "what was fetched without looking is looked at again"
sign base.aci
expect 0 hconf fetch --full --signature="$work/base.aci.asc" "$work/base.aci"
cp app.aci changed.aci && cp app.aci.asc changed.aci.asc && printf x >>changed.aci
expect 254 hconf fetch "$work/changed.aci"
match "$err" '(bad|changed)' "changed after signing"
chmod a+w changed.aci base.aci # others can change them at any time: husk works on a copy
expect 254 hconf fetch "$work/changed.aci"
match "$err" '(bad|changed)' "changed after signing, in a copy"
expect 0 hconf fetch --full --signature="$work/base.aci.asc" "$work/base.aci"
equal "$out" "$base" "from a copy"
equal "$(find "$data/tmp" -mindepth 1)" "" "left in tmp"
cp base.aci.asc good.asc
sign base.aci bad
expect 254 hconf prepare "$work/base.aci" --exec=/bin/sh --signature="$work/base.aci.asc"
match "$err" 'openpgp: signature made by unknown entity' "signature of an app's image, signed by somebody else"
expect 0 hconf prepare "$work/base.aci" --exec=/bin/sh --signature="$work/good.asc"
expect 0 hconf rm "$out"
mv good.asc base.aci.asc
expect 254 hconf image rm
expect 0 hconf image list --fields=name --no-legend
equal "$out" "example.com/base:1.0" "names"

say "by its key, as appc has it"
key=$(key_of base.aci)
expect 0 hconf fetch --full "sha512-$key" "sha512-${key:0:20}"
equal "$out" "$base
$base" "ID"
equal "$base" "sha512-${key:0:64}" "the ID is half of the key, as in rkt"
expect 0 hconf fetch "$base"
equal "$out" "sha512-${key:0:32}" "fetch shows 32 digits"
expect 0 hconf image list --fields=id --no-legend
equal "$out" "sha512-${key:0:12}" "image list shows 12"
expect 0 hconf image list --fields=id --no-legend --full
equal "$out" "$base" "image list --full"
expect 0 hconf prepare "$base" --exec=/bin/sh
uuid=$out
expect 0 hconf cat-manifest "$uuid"
equal "$(jq -c '.apps[0].image | .id, .name, [.labels[].value]' <<<"$out")" \
	"\"$base\""$'\n"example.com/base"\n["1.0","linux","amd64"]' "the image in the pod manifest"
expect 0 hconf list --full --no-legend
match "$out" "example.com/base:1.0"$'\t+'"sha512-${key:0:12}"$'\t' "list --full"
expect 0 hconf status --format=json "$uuid"
equal "$(jq -r '.apps[0].image_id' <<<"$out")" "$base" "status"
expect 0 hconf image gc --grace-period=0
equal "$out" "" "gc: the pod uses it"
expect 0 hconf rm "$uuid"
expect 0 hconf image gc --grace-period=0
equal "$out" "removed image \"$base\"" "gc"
expect 0 hconf fetch --full "$work/base.aci"
equal "$out" "$base" "fetched again"
expect 254 hconf fetch "sha512-${key:0:1}"
match "$err" 'image ID too short' "too short"

say "dependencies, and what they give"
expect 0 hconf --debug fetch "$work/app.aci"
match "$err" "image: using image from file $work/app.aci"$'\n' "the file"
match "$err" 'image: using image from local store for image name example.com/base:1.0' "the dependency"
expect 0 hconf --debug fetch "$work/app.aci"
match "$err" "image: using image from file $work/app.aci"$'\n' "the file again"
expect 0 hconf --debug prepare "$work/app.aci"
match "$err" 'stage0: Writing pod manifest' "prepare"
expect 0 hconf rm "$out"
expect 0 hconf run "${run_options[@]}" "$work/app.aci"
equal "$(tr -d '\r' <<<"$out")" $'base\nupper\nkept' "the app's output"
expect 0 hconf image cat-manifest example.com/app:2
equal "$(jq -r '.app.exec[0], .app.workingDirectory' <<<"$out" | tr '\n' ' ')" "/bin/cat /etc " "manifest"

say "a name without its version, in every command"
with_version=$out
for name in example.com/app example.com/app,os=linux; do
	expect 0 hconf image cat-manifest "$name"
	equal "$out" "$with_version" "manifest of $name"
	expect 0 hconf image verify "$name"
	expect 0 hconf image export --overwrite "$name" exported.aci
	expect 0 hconf image extract --overwrite "$name" extracted
	expect 0 hconf image render --overwrite "$name" rendered
done
expect 254 hconf image cat-manifest example.com/app:latest
match "$err" 'cannot find an image of this name' "latest is not a version 2"
aci short.aci shorthash--0 . && sign short.aci
expect 0 hconf --insecure-options=image fetch "$work/short.aci"
expect 0 hconf image rm shorthash--0
match "$err" '^rm: 1 image\(s\) successfully removed$' "removed by its name"
expect 0 hconf run "${run_options[@]}" "$work/thin.aci"
equal "$(tr -d '\r' <<<"$out")" "/bin /dev /etc /proc /sys /tmp /etc/base /etc/hostname /etc/hosts /etc/mtab" "only what is listed"
expect 0 hconf run "${run_options[@]}" example.com/app --name=again
aci other.aci example.com/other '.dependencies = [{imageName: "example.com/nowhere"}]'
sign other.aci
expect 254 hconf fetch --pull-policy=never "$work/other.aci"
match "$err" 'dependency example.com/nowhere: ' "missing dependency"
mkdir -p evil.aci.d/rootfs
aci evil.aci example.com/evil '.labels = []'
aci upon.aci example.com/upon '.dependencies = [{imageName: "example.com/evil"}]'
sign upon.aci
expect 0 hconf --insecure-options=image fetch "$work/evil.aci"
expect 254 hconf fetch --pull-policy=never "$work/upon.aci"
match "$err" 'dependency example.com/evil: cannot find aci' "a signed image on top of one that nobody looked at"
expect 0 hconf --insecure-options=image fetch --pull-policy=never "$work/upon.aci"
sign evil.aci
expect 0 hconf fetch "$work/evil.aci"
expect 0 hconf fetch --pull-policy=never "$work/upon.aci"
expect 0 hconf image rm example.com/evil example.com/upon
aci upon.aci example.com/upon '.dependencies = [{imageName: "example.com/thin"}]'
sign upon.aci
expect 254 hconf fetch "$work/upon.aci"
match "$err" 'has a pathWhitelist, which husk knows only of the image on top' "a whitelist below"
aci foreign.aci example.com/foreign '.labels[1].value = "armv6l"'
sign foreign.aci
expect 0 hconf fetch "$work/foreign.aci"
expect 254 hconf prepare "$work/foreign.aci" --exec=/bin/sh
one_line_error 'image ".*foreign.aci": bad arch "armv6l" for linux \(must be one of: \[amd64\]\)$'
aci foreign.aci example.com/foreign 'del(.labels[] | select(.name == "os"))'
sign foreign.aci
expect 0 hconf fetch "$work/foreign.aci"
expect 254 hconf prepare example.com/foreign --exec=/bin/sh
one_line_error 'image "example.com/foreign": missing os label in the image manifest$'
expect 0 hconf image rm example.com/foreign example.com/foreign
expect 0 hconf image rm example.com/base:1.0
expect 0 hconf run "${run_options[@]}" --pull-policy=never example.com/app
equal "$(tr -d '\r' <<<"$out")" $'base\nupper\nkept' "an image whose dependency was removed"

say "a web server: TLS, discovery, unchanged images"
make_authority
mkdir www && cp app.aci app.aci.asc base.aci base.aci.asc www/
port=$((20000 + RANDOM % 20000))
mkdir -p www/disc www/liar www/found/localhost
for page in disc liar; do
	discovery_page "https://localhost:$port/found/{name}-{version}-{os}-{arch}.{ext}" "https://localhost:$port/good.pub" >www/$page/index.html
done
cp good.pub www/
mkdir -p disc.aci.d/rootfs && cp -r base.aci.d/rootfs/bin disc.aci.d/rootfs/
aci disc.aci localhost/disc '.labels += [{name: "version", value: "3"}] | .app = {exec: ["/bin/sh", "-c", "echo found"], user: "0", group: "0"}'
sign disc.aci
for version in latest 3; do
	cp disc.aci "www/found/localhost/disc-$version-linux-$aci_arch.aci"
	cp disc.aci.asc "www/found/localhost/disc-$version-linux-$aci_arch.aci.asc"
done
cp app.aci "www/found/localhost/liar-latest-linux-$aci_arch.aci"
cp app.aci.asc "www/found/localhost/liar-latest-linux-$aci_arch.aci.asc"
start_nginx "
	server {
		listen 127.0.0.1:$port ssl; server_name localhost;
		location /fresh/ { alias $work/www/; add_header Cache-Control max-age=3600; }
		location /closed/ { return 401; }
		location /later/ { alias $work/www/; location ~ \.asc\$ { return 202; } }
	}
	server { listen 127.0.0.1:$((port + 1)); }
	server { listen 127.0.0.1:443 ssl; }"
requests() { requests_of "http://127.0.0.1:$((port + 1))" || :; }
bodies() { requests | grep -c " 200 \| 206 " || :; }

expect 0 hconf fetch --full "https://localhost:$port/base.aci"
equal "$out" "$base" "ID"
expect 0 hconf fetch --full "https://localhost:$port/app.aci"
app=$out
before=$(bodies)
expect 0 hconf fetch --full "https://localhost:$port/app.aci"
equal "$out" "$app" "ID"
equal "$(bodies)" "$before" "bodies sent for what has not changed"
match "$(requests | tail -n 1)" '"GET /app\.aci HTTP/1\.1" 304 ' "asked with the validator"
lines=$(requests | wc -l)
expect 0 hconf fetch --pull-policy=new "https://localhost:$port/app.aci"
equal "$(requests | wc -l)" "$lines" "requests of a fetch of what is there"
expect 0 hconf fetch "https://localhost:$port/fresh/app.aci"
lines=$(requests | wc -l)
expect 0 hconf fetch "https://localhost:$port/fresh/app.aci"
equal "$(requests | wc -l)" "$lines" "requests while it is fresh"
expect 0 hconf --debug fetch "https://localhost:$port/fresh/app.aci"
match "$err" "image: image for https://localhost:$port/fresh/app.aci isn't expired, not fetching." "said"
expect 254 hconf --debug fetch "https://localhost:$port/missing.aci"
match "$err" 'error downloading the signature file: "https:[^"]*missing.aci.asc": bad HTTP status code: 404' "no such file"
match "$(requests | tail -n 1)" '"GET /missing\.aci\.asc HTTP' "an image without a signature is not fetched"
expect 254 hconf --insecure-options=image fetch "https://localhost:$port/missing.aci"
match "$err" 'missing.aci": bad HTTP status code: 404 \(not found' "no such image"
expect 254 hconf fetch "https://localhost:$port/closed/app.aci"
match "$err" 'error downloading the signature file: .*bad HTTP status code: 401 \(the server wants credentials' "no credentials"
expect 254 hconf --debug fetch "https://localhost:$port/later/app.aci"
match "$err" 'image: remote fetching from URL "https://localhost:.*app.aci"' "said"
match "$err" 'image: fetching image from https://localhost:' "said"
match "$err" 'image: server requested deferring the signature download' "a signature that is not there yet"
match "$err" 'error downloading the signature file: the server has it later \(try again\)' "nor after the image"
expect 254 husk fetch "https://localhost:$port/app.aci?other"
match "$err" 'certificate' "an authority that nobody knows"
expect 254 hconf fetch --pull-policy=never "https://localhost:$port/other.aci"
match "$err" 'is not in the local store' "never"
expect 0 hconf fetch --full "http://localhost:$((port + 1))/app.aci"
equal "$out" "$app" "signed, so the way does not matter"
cp -r "$(dirname "$(find "$cache/test-images/busybox-1" -name oci-layout)")" layout && tar -C layout -cf www/busybox.tar .
expect 254 hconf fetch "http://localhost:$((port + 1))/busybox.tar"
match "$err" 'it has no signature, and came without TLS' "an OCI archive without TLS"
expect 0 hconf fetch "https://localhost:$port/busybox.tar"
expect 0 hconf image cat-manifest "localhost:$port/busybox.tar" # its name, whatever tag it has
cp www/busybox.tar www/disguised.aci
expect 254 hconf fetch "https://localhost:$port/disguised.aci"
match "$err" 'error downloading the signature file: .*404' "an archive that evades its signature"
cp app.aci.asc www/disguised.aci.asc
expect 254 hconf fetch "https://localhost:$port/disguised.aci"
match "$err" 'it is called \.aci, but it is another kind of image' "the same with somebody else's"
expect 0 hconf --insecure-options=image fetch "https://localhost:$port/disguised.aci"
expect 254 hconf fetch "$work/www/disguised.aci"
match "$err" 'it is called \.aci' "the same as a file"
expect 0 hconf --insecure-options=image fetch "http://localhost:$((port + 1))/busybox.tar"

say "what came while certificates did not matter does not count when they do"
expect 0 husk --insecure-options=tls fetch "https://localhost:$port/busybox.tar?tls"
before=$(bodies)
expect 0 husk --insecure-options=tls run "${run_options[@]}" --pull-policy=new "https://localhost:$port/busybox.tar?tls" --exec=/bin/true
equal "$(bodies)" "$before" "bodies sent for what is accepted now as well"
expect 254 husk fetch --pull-policy=new "https://localhost:$port/busybox.tar?tls"
match "$err" 'certificate' "what came without TLS"
leave() { # UNVERIFIED: the first bytes of a download that was interrupted, which somebody changed
	local url="https://localhost:$port/base.aci?rest" dir
	dir=$data/tmp/fetch-$(id -u)-$(printf %s "$url" | sha256sum | cut -d' ' -f1)
	mkdir -m 700 "$dir"
	head -c 1000 /dev/zero >"$dir/download"
	jq -n --arg url "$url" --arg etag "$(printf '"%x-%x"' "$(stat -c %Y www/base.aci)" "$(stat -c %s www/base.aci)")" \
		--arg image "$(sha256sum </dev/null | cut -d' ' -f1)" --argjson unverified "$1" \
		'{version: 1, ref: $url, image: $image, fetched: 0, maxAge: 0, etag: $etag, unverified: $unverified}' >"$dir/download.json"
}
leave false
expect 254 hconf fetch "https://localhost:$port/base.aci?rest"
leave true
expect 0 hconf fetch --full "https://localhost:$port/base.aci?rest"
equal "$out" "$base" "downloaded from its beginning"

say "discovery: the page of a site says where its images are"
expect 254 hconf fetch localhost/disc
match "$err" 'husk trust --prefix' "signed by a key that is not trusted for this name"
expect 254 hconf trust --prefix=localhost/liars --skip-fingerprint-review
match "$err" 'error determining key location: discovery failed for "localhost/liars"' "no page with keys"
expect 0 hconf trust --prefix=localhost/disc --skip-fingerprint-review
match "$err" "Added key for prefix \"localhost/disc\" at " "the key that the page names"
expect 0 hconf trust --prefix=localhost --skip-fingerprint-review "https://localhost:$port/good.pub"
expect 0 hconf fetch --full localhost/disc
disc=$out
expect 0 hconf fetch --full localhost/disc:3 "localhost/disc,version=3,os=linux"
equal "$out" "$disc
$disc" "IDs"
lines=$(requests | wc -l)
expect 0 hconf run "${run_options[@]}" localhost/disc
equal "$(tr -d '\r' <<<"$out")" found "the app's output"
equal "$(requests | wc -l)" "$lines" "requests for what is in the store"
expect 254 hconf fetch localhost/disc:latest
match "$err" 'requested value for label "version": "latest" differs from fetched aci label value: "3"' "latest is not a version 3"
expect 254 hconf fetch --pull-policy=never localhost/disc:latest
expect 254 hconf fetch localhost/disc,flavour=x
match "$err" 'requested label "flavour" not provided by the image manifest' "a label that it has not"
expect 254 hconf fetch localhost/disc:4
match "$err" '404' "a version that is not there"
expect 254 hconf fetch localhost/nothing
match "$err" 'discovery failed for "localhost/nothing"' "no page"
expect 254 hconf fetch localhost/liar
match "$err" 'error when reading the app name: "localhost/liar" expected but "example.com/app" found' "another image than was asked for"
expect 0 hconf --insecure-options=image fetch --full localhost/liar
equal "$out" "sha512-$(key_of app.aci | cut -c1-64)" "whatever it is called"
for what in oci old; do cp -r www/disc "www/$what"; done
cp www/busybox.tar "www/found/localhost/oci-latest-linux-$aci_arch.aci"
cp app.aci.asc "www/found/localhost/oci-latest-linux-$aci_arch.aci.asc"
expect 254 hconf fetch localhost/oci
match "$err" 'it is not an appc image, but "localhost/oci" is one' "an image that cannot be signed"
cp disc.aci "www/found/localhost/disc-5-linux-$aci_arch.aci" && cp disc.aci.asc "www/found/localhost/disc-5-linux-$aci_arch.aci.asc"
expect 254 hconf fetch localhost/disc:5
match "$err" 'requested value for label "version": "5" differs from fetched aci label value: "3"' "an old image, signed, under a new version"
expect 0 hconf fetch "https://localhost:$port/found/localhost/liar-latest-linux-$aci_arch.aci"
expect 254 hconf fetch localhost/liar
match "$err" 'error when reading the app name: "localhost/liar" expected but "example.com/app" found' "the same, when the store has it"
cp -r www/disc www/loop
aci loop.aci localhost/loop '.dependencies = [{imageName: "localhost/loop"}]' && sign loop.aci
cp loop.aci "www/found/localhost/loop-latest-linux-$aci_arch.aci" && cp loop.aci.asc "www/found/localhost/loop-latest-linux-$aci_arch.aci.asc"
expect 254 hconf fetch localhost/loop
match "$err" 'dependency localhost/loop: the image depends on itself' "an image on top of itself"
for pair in ping:pong pong:ping; do
	one=${pair%:*} other=${pair#*:}
	cp -r www/disc "www/$one"
	aci "$one.aci" "localhost/$one" ".dependencies = [{imageName: \"localhost/$other\"}]" && sign "$one.aci"
	cp "$one.aci" "www/found/localhost/$one-latest-linux-$aci_arch.aci" && cp "$one.aci.asc" "www/found/localhost/$one-latest-linux-$aci_arch.aci.asc"
done
pids=()
for one in ping pong; do # each has its own and comes to want the other's
	hconf fetch "localhost/$one" >"$one.out" 2>"$one.err" </dev/null &
	pids+=("$!")
done
for pid in "${pids[@]}"; do
	ended=0
	wait "$pid" || ended=$?
	equal "$ended" 254 "fetches of images that depend on each other ($(cat ping.err pong.err))"
done
match "$(cat ping.err)" 'dependency localhost/pong: dependency localhost/ping: the image depends on itself' "one"
match "$(cat pong.err)" 'dependency localhost/ping: dependency localhost/pong: the image depends on itself' "the other"
equal "$(find "$data/tmp" -mindepth 1)" "" "left in tmp"
say "dependencies level by level, each once"
on_server() { # NAME DEPENDENCY...
	local name=$1
	shift
	cp -r www/disc "www/$name"
	aci "$name.aci" "localhost/$name" "$(jq -nr '[$ARGS.positional[] | {imageName: "localhost/\(.)"}] | ".dependencies = \(.)"' --args -- "$@")"
	[[ $name == deep* ]] || sign "$name.aci"
	cp "$name.aci" "www/found/localhost/$name-latest-linux-$aci_arch.aci"
	[[ $name == deep* ]] || cp "$name.aci.asc" "www/found/localhost/$name-latest-linux-$aci_arch.aci.asc"
}
on_server image-b
on_server image-f
on_server image-e image-f
on_server image-d image-b image-e
on_server image-c image-b image-e
on_server image-a image-b image-c image-d
expect 0 hconf fetch "$work/image-b.aci"
expect 0 hconf fetch "$work/image-f.aci"
expect 0 hconf --debug fetch localhost/image-a
equal "$(sed -n 's/.*image: \(fetching image from \|using image from local \).*localhost\/image-\(.\).*/\1\2/p' <<<"$err")" \
	"fetching image from a
using image from local b
fetching image from c
fetching image from d
using image from local b
fetching image from e
using image from local b
using image from local f" "the order"
equal "$(requests | grep -c 'GET /found/localhost/image-[a-e]-[^ ]*aci HTTP.* 200 ')" 4 "images fetched"
names=$(hconf image list --fields=name --no-legend)
for one in a c d e; do
	match "$names" "localhost/image-$one" "image-$one in the store"
done
on_server deep0
for i in {1..17}; do
	on_server "deep$i" "deep$((i - 1))"
done
expect 254 hconf --insecure-options=image fetch localhost/deep17
match "$err" 'dependency localhost/deep1: dependency localhost/deep0: images depend on each other more than 16 deep$' "too deep"
equal "$(hconf image list --fields=name --no-legend | grep -c deep)" 0 "images whose dependencies are not there"
expect 0 hconf --insecure-options=image fetch localhost/deep16
equal "$(find "$data/tmp" -mindepth 1)" "" "left in tmp"

say "an image that is called otherwise, and that somebody accepts, is known by its URL"
for suffix in aci aci.asc; do
	cp "www/found/localhost/liar-latest-linux-$aci_arch.$suffix" "www/found/localhost/alias-latest-linux-$aci_arch.$suffix"
done
cp -r www/disc www/alias
expect 0 hconf --insecure-options=image fetch localhost/alias
before=$(bodies)
expect 0 hconf --debug --insecure-options=image fetch localhost/alias
match "$err" "image: using image from local store for url https://localhost:$port/found/localhost/alias-latest-linux-$aci_arch.aci" "found again"
expect 0 hconf --insecure-options=image fetch --pull-policy=new localhost/alias
equal "$(($(bodies) - before))" 2 "answers with a body: two pages of discovery, no image"
expect 254 hconf fetch --pull-policy=new localhost/alias
match "$err" 'error when reading the app name: "localhost/alias" expected but "example.com/app" found' "without the option"

expect 0 hconf fetch --full "https://localhost:$port/app.aci?query"
equal "$out" "$app" "the signature of a URL with a query"
for i in 0 1; do # once fetched, once from the store
	aci "pin$i.aci" example.com/pin$i ".dependencies = [{imageName: \"localhost/disc\", imageID: \"sha512-$(printf '%0128d' $i)\"}]"
	sign "pin$i.aci"
	expect 254 hconf fetch "$work/pin$i.aci"
	match "$err" 'dependency localhost/disc: what was found under this name is another image' "another image than the ID says"
done
aci pinned.aci example.com/pinned ".dependencies = [{imageName: \"localhost/disc\", imageID: \"sha512-$(key_of disc.aci)\"}]"
sign pinned.aci
expect 0 hconf fetch --signature="$work/pinned.aci.asc" "$work/pinned.aci"
expect 254 hconf fetch --signature="$work/pinned.aci.asc" "$work/layout"
match "$err" 'it is not an appc image, so there is nothing that the signature' "a signature of what cannot have one"
expect 254 hconf fetch --signature="$work/pinned.aci.asc" "docker://localhost:1/x"
match "$err" 'there is nothing that the signature' "a signature of an image of a registry"
expect 254 hconf fetch --signature="$work/pinned.aci.asc" "$work/pinned.aci" "$work/app.aci"
match "$err" '--signature is of one image' "one signature of two images"
expect 254 hconf run example
match "$err" 'cannot find an image of this name' "a name without a host is not looked for anywhere"

say "a stage1 by its name"
cp -r www/disc www/stage
mkdir -p stage.aci.d/rootfs
printf '#!/bin/sh\necho "stage1: $*"\nexit 9\n' >stage.aci.d/rootfs/run
chmod 0755 stage.aci.d/rootfs/run
aci stage.aci localhost/stage '.annotations = [{name: "coreos.com/rkt/stage1/run", value: "/run"}]'
sign stage.aci bad
cp stage.aci "www/found/localhost/stage-latest-linux-$aci_arch.aci"
cp stage.aci.asc "www/found/localhost/stage-latest-linux-$aci_arch.aci.asc"
expect 254 hconf run --stage1-name=localhost/stage "$app"
match "$err" 'openpgp: signature made by unknown entity' "a stage1 that somebody else signed"
[ ! -e "$data/stage1" ] || die "it was extracted"
sign stage.aci
cp stage.aci.asc "www/found/localhost/stage-latest-linux-$aci_arch.aci.asc"
expect 9 hconf run --stage1-name=localhost/stage "$app"
match "$out" '^stage1: --net=default [0-9a-f-]{36}$' "a stage1 that was found by discovery"
