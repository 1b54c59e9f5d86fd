#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Downloads from nginx, a server that others wrote: whole, interrupted on either side and continued, unchanged,
# changed meanwhile, with TLS.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require nginx openssl sha256sum
get=$build/tests/http-get
unset SSL_CERT_FILE SSL_CERT_DIR

mkdir "$work/www"
openssl rand 6000000 >"$work/www/image"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
	-addext subjectAltName=DNS:localhost -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null

# start_nginx PORT: false if it does not listen there (the port is somebody else's).
start_nginx() {
	cat >"$work/nginx.conf" <<-EOF
		user root;
		daemon off;
		master_process off;
		pid $work/nginx.pid;
		error_log $work/error.log;
		events { worker_connections 64; }
		http {
			access_log $work/access.log;
			client_body_temp_path $work/tmp1; proxy_temp_path $work/tmp2; fastcgi_temp_path $work/tmp3;
			uwsgi_temp_path $work/tmp4; scgi_temp_path $work/tmp5;
			root $work/www;
			gzip on; gzip_types *; gzip_proxied any; gzip_min_length 0;
			server {
				listen 127.0.0.1:$1;
				location /slow/ { alias $work/www/; limit_rate 200k; }
			}
			server { listen 127.0.0.1:$(($1 + 1)) ssl; ssl_certificate $work/cert.pem; ssl_certificate_key $work/key.pem; }
		}
	EOF
	nginx -c "$work/nginx.conf" 2>>"$work/error.log" &
	nginx=$!
	local deadline=$((SECONDS + gone_limit))
	until "$get" "http://127.0.0.1:$1/image" "$work/probe" >/dev/null 2>&1; do
		kill -0 "$nginx" 2>/dev/null && [ $SECONDS -lt $deadline ] || return 1
		read -rt 0.05 <> <(:) || :
	done
}

stop_nginx() {
	kill -TERM "$nginx"
	wait "$nginx" || :
}

for tries in 4 3 2 1 0; do
	port=$((20000 + RANDOM % 20000))
	! start_nginx "$port" || break
	[ $tries -gt 0 ] || die "nginx does not start: $(tail -n 1 "$work/error.log")"
done
url=http://127.0.0.1:$port

# wait_for_size FILE SIZE: until it has so many bytes.
wait_for_size() {
	local deadline=$((SECONDS + 60))
	until [ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -ge "$2" ]; do
		[ $SECONDS -lt $deadline ] || die "$1 does not grow"
		read -rt 0.05 <> <(:) || :
	done
}

same() { # FILE
	equal "$(sha256sum <"$1")" "$(sha256sum <"$work/www/image")" "content of $1"
}

say "whole"
expect 0 "$get" "$url/image" "$work/whole"
equal "$out" "status=200 resumed=0 size=6000000" "result"
same "$work/whole"

say "we are killed, and continue"
"$get" "$url/slow/image" "$work/killed" &
client=$!
wait_for_size "$work/killed" 200000
kill -KILL $client
wait $client 2>/dev/null || :
had=$(stat -c %s "$work/killed")
[ "$had" -lt 6000000 ] || die "it was complete before it was killed"
expect 0 "$get" "$url/image" "$work/killed"
equal "$out" "status=206 resumed=1 size=6000000" "result"
same "$work/killed"
grep -q '"GET /image HTTP/1.1" 206' "$work/access.log" || die "nginx sent no part"

say "the server goes away, and we continue when it is back"
"$get" "$url/slow/image" "$work/left" 2>"$work/left.err" &
client=$!
wait_for_size "$work/left" 200000
stop_nginx
status=0
wait $client || status=$?
equal $status 1 "exit status"
match "$(cat "$work/left.err")" "^\"$url/slow/image\": connection refused.*; [0-9]+ bytes are there: a repeated fetch continues$" \
	"error"
start_nginx "$port" || die "nginx does not come back"
expect 0 "$get" "$url/image" "$work/left"
equal "$out" "status=206 resumed=1 size=6000000" "result"
same "$work/left"

say "the image changed meanwhile"
truncate -s 1000000 "$work/left"
openssl rand 6000001 >"$work/www/image"
expect 0 "$get" "$url/image" "$work/left"
equal "$out" "status=200 resumed=0 size=6000001" "result"
same "$work/left"

say "TLS"
expect 1 "$get" "https://localhost:$((port + 1))/image" "$work/tls"
one_line_error "TLS: .*SSL_CERT_FILE"
SSL_CERT_FILE=$work/cert.pem expect 0 "$get" "https://localhost:$((port + 1))/image" "$work/tls"
same "$work/tls"

say "not there"
expect 1 "$get" "$url/none" "$work/none"
one_line_error "^\"$url/none\": bad HTTP status code: 404 \(not found on the server\)$"
equal "$(stat -c %s "$work/none")" 0 "size of what is not there"
stop_nginx
