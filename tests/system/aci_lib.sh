# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# appc images, their keys and signatures, and a web server for them; sourced behind lib.sh, in the directory $work.

case $(uname -m) in
x86_64) aci_arch=amd64 ;;
aarch64) aci_arch=aarch64 ;;
*) skip "no appc name known for $(uname -m)" ;;
esac

# aci FILE NAME JQ-FILTER [COMPRESSOR]: an image of the directory FILE.d, whose manifest the filter completes.
aci() {
	mkdir -p "$1.d/rootfs"
	jq -n --arg name "$2" --arg arch "$aci_arch" '{acKind: "ImageManifest", acVersion: "0.8.11", name: $name,
		labels: [{name: "os", value: "linux"}, {name: "arch", value: $arch}]} | '"$3" >"$1.d/manifest"
	tar -C "$1.d" -cf "$1.tar" manifest rootfs
	case ${4:-gzip} in
	none) cp "$1.tar" "$1" ;;
	*) "${4:-gzip}" -c "$1.tar" >"$1" ;;
	esac
}

# make_key NAME: in the user's keyring; the public half in NAME.pub.
make_key() {
	gpg --batch --quiet --passphrase '' --quick-gen-key "$1 <$1@example.com>" ed25519 sign never 2>gpg.log || die "$(cat gpg.log)"
	gpg --batch --armor --export "$1" >"$1.pub"
}

sign() { # FILE [KEY]
	rm -f "$1.asc"
	gpg --batch --quiet --armor --local-user "${2:-good}" --detach-sign --output "$1.asc" "$1"
}

key_of() { # the ID that appc gives an image
	sha512sum <"$1.tar" | cut -d' ' -f1
}

# make_authority: one for the host localhost, and its certificate in one, ca.pem; key.pem.
make_authority() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out ca.pem -days 2 \
		-subj /CN=localhost -addext subjectAltName=DNS:localhost 2>openssl.log || die "$(cat openssl.log)"
}

# start_nginx SERVERS: nginx with these blocks; sets $nginx_pid. Requests are in access.log.
start_nginx() {
	cat >nginx.conf <<-CONF
		user root; daemon off; master_process off; pid $work/nginx.pid; error_log $work/nginx.err;
		events {}
		http {
			access_log $work/access.log;
			client_body_temp_path $work/t1; proxy_temp_path $work/t2; fastcgi_temp_path $work/t3; uwsgi_temp_path $work/t4;
			scgi_temp_path $work/t5;
			ssl_certificate $work/ca.pem; ssl_certificate_key $work/key.pem;
			root $work/www;
			$1
		}
	CONF
	nginx -e "$work/nginx.err" -c "$work/nginx.conf" &
	nginx_pid=$!
	local deadline=$((SECONDS + gone_limit))
	until [ -s nginx.pid ]; do
		if ! kill -0 $nginx_pid || [ $SECONDS -ge $deadline ]; then die "nginx did not start: $(cat nginx.err)"; fi
		read -rt 0.05 <> <(:) || :
	done
}

# requests_of URL: the lines of access.log, of which the server at URL writes the last.
requests_of() {
	wait_for_log "$1" access.log
	grep -v '/asked-[0-9]*-[0-9]* ' access.log
}

# discovery_page URL-TEMPLATE [KEY-URL]: says where the images and keys of localhost are.
discovery_page() {
	echo "<html><head><meta name=\"ac-discovery\" content=\"localhost $1\">
		${2:+<meta name=\"ac-discovery-pubkeys\" content=\"localhost $2\">}</head></html>"
}
