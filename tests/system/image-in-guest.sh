#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What an app sees as its root is what umoci(1) unpacks of the same image: names, types, modes, owners, times, links, devices,
# extended attributes, contents; for images of Debian, umoci and buildah and by hand. Servers out of them run. Needs root:
# umoci restores owners and device files.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/image_lib.sh
. "$top/tests/system/image_lib.sh"
export LC_ALL=C

[ "$(id -u)" -eq 0 ] || skip "needs root"
require umoci mmdebstrap buildah setcap python3
is_vm || run_options+=(--userns=host) # a user namespace has no device nodes, and no ids beyond 65535
cd "$work"

say "files of every kind, and no system"
umoci init --layout tricky && umoci new --image tricky:image
make_tricky_tree tree
set_xattrs tree user.root=1
touch -d @978307200 tree
tar --xattrs --xattrs-include='*' --format=pax --numeric-owner -C tree -cf tree.tar .
umoci raw add-layer --image tricky:image tree.tar
rm -r tree tree.tar
guest_equals_umoci tricky
match "$(head -n 1 app-list)" '^/ d0755 0 0 mtime 978307200 ' "time of the root directory"

say "buildah"
cached_layout built-1 make_built
guest_equals_umoci "$layout"
expect 0 husk run "$guest_image" -- sh -c 'cat /tree/deep/new /bin/cat.link'
equal "$out" $'1\nchanged' "its files"

say "Debian with changes of every kind"
cached_layout changed-2 make_changed
guest_equals_umoci "$layout"
match "$(grep '^/etc ' app-list)" ' mtime 1000000000 ' "time of a directory to which files were added"

say "nginx serves a page to python3 in the same pod"
expect 0 husk run "$guest_image" --exec=/usr/sbin/nginx -- -t
match "$out$err" 'configuration file /etc/nginx/nginx.conf test is successful' "nginx -t"
expect 7 husk run "$guest_image" --name=server --exec=/usr/sbin/nginx -- -g 'daemon off;' --- \
	"$guest_image" --name=client --exec=/usr/bin/python3 -- -c '
import sys, time, urllib.request
for attempt in range(300):
    try:
        print(urllib.request.urlopen("http://127.0.0.1/").read().decode())
        sys.exit(7) # ends the pod
    except OSError:
        time.sleep(0.1)
'
match "$out" '<h1>Welcome to nginx!</h1>' "the page"

say "Debian with databases"
cached_layout databases-1 make_databases
guest_equals_umoci "$layout"

say "postgres, as its user"
expect 0 husk run "$guest_image" --user=postgres --group=postgres --exec=/bin/sh -- -c '
set -e
PATH=/usr/lib/postgresql/15/bin:$PATH
cd /tmp
initdb --no-sync -D data >/dev/null 2>&1
pg_ctl -D data -o "-k /tmp" -w -l log start >/dev/null || cat log
psql -h /tmp -d postgres -Atc "SELECT 6 * 7, current_user"
pg_ctl -D data -m immediate stop >/dev/null
'
equal "$out" "42|postgres" "its answer"

say "redis, as its user"
expect 0 husk run "$guest_image" --user=redis --group=redis --exec=/bin/sh -- -c '
redis-server --save "" --unixsocket /tmp/socket --daemonize yes >/dev/null
for attempt in $(seq 300); do redis-cli -s /tmp/socket ping 2>/dev/null && break; sleep 0.1; done
redis-cli -s /tmp/socket shutdown nosave
'
equal "$out" PONG "its answer"
