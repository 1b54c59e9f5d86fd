#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Real programs out of a real Debian system: redis, python, perl, gcc; as OCI layout, OCI archive
# and docker archive.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require skopeo openssl
image=$(debian_image)

say "python and perl"
expect 0 husk run "$image" -- python3 -c 'print(6 * 7)'
equal "$out" 42 python
expect 3 husk run "$image" -- perl -e 'print "perl ", 2 ** 10, "\n"; exit 3'
equal "$out" "perl 1024" perl

say "gcc compiles, and the result runs"
expect 0 husk run "$image" -- sh -c \
	'cd /tmp && printf "#include <stdio.h>\nint main(void) { return puts(\"built here\") < 0; }\n" >a.c && gcc -o a a.c && ./a'
equal "$out" "built here" "compiled program"

say "redis-server and redis-benchmark in one pod"
expect 0 husk run "$image" --name=server -- redis-server --save '' --daemonize no --- \
	"$image" --name=bench -- sh -c \
	'until redis-cli ping >/dev/null 2>&1; do sleep 0.1; done; redis-benchmark -q -n 2000 -t set,get; redis-cli shutdown nosave'
match "$out" "SET: [0-9.]+ requests per second" "redis-benchmark"
match "$out" "GET: [0-9.]+ requests per second" "redis-benchmark"

say "docker archive made by skopeo"
archive=$work/debian.docker.tar
skopeo copy --quiet "oci:$image:debian" "docker-archive:$archive:debian:latest"
expect 0 husk run "$archive" -- cat /etc/debian_version
match "$out" "^12" "Debian release"

say "OCI archive made by skopeo"
archive=$work/debian.oci.tar
skopeo copy --quiet "oci:$image:debian" "oci-archive:$archive:debian"
expect 0 husk run "$archive" -- cat /etc/debian_version
match "$out" "^12" "Debian release"
