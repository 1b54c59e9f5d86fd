#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pods of Kubernetes through containerd's CRI plugin, as a kubelet makes them: sandboxes with several containers.
# shellcheck source=tests/system/cri_lib.sh
. "$(dirname "$0")/cri_lib.sh"
require skopeo docker-registry curl
# What is configured for machines holds for these, too.
! is_vm || { jq '.options.memory = "384Mi"' "$config/stage1.d/stage1.json" >stage1.json && mv stage1.json "$config/stage1.d"; }
start_cri

say "a sandbox: a pod that runs, with nothing in it"
start_sandbox one
sandbox_is "$sandbox" 0 || die "the sandbox is not ready"
ip=$(sandbox_ip)
match "$ip" "^${subnet//./\\.}\.[0-9]+$" "its address"
equal "$(husk list --format=json | jq -c '[.[] | [.state, (.app_names | length)]]')" '[["running",0]]' "the pod"
expect_refusal() { # CODE PATTERN COMMAND...
	local code=$1 pattern=$2
	shift 2
	! "$@" >"$work/out" 2>"$work/err" || die "not refused: $*"
	match "$(cat "$work/err")" "^$code: .*$pattern" "what is said"
}
! c task exec --exec-id x "$sandbox" true 2>"$work/err" || die "something runs in a sandbox"
match "$(cat "$work/err")" 'nothing runs in the sandbox of a pod' "what is said of it"

say "its containers: one network, one host name, one shared memory, files of the pod"
start_container web . sh -c 'echo from web >/tmp/index.html; httpd -p 8080 -h /tmp; echo shared >/dev/shm/x; echo ready; exec sleep 1000'
web=$container
wait_for_words ready
start_container client . sh -c 'wget -qO- http://127.0.0.1:8080; wget -qO- http://'"$ip"':8080; cat /dev/shm/x; hostname
	cat /etc/hostname; grep -c nameserver /etc/resolv.conf; grep -q localhost /etc/hosts && echo hosts; echo bad >&2; exit 4'
equal "$(exit_code)" 4 "its exit code"
equal "$(container_status | jq -r .reason)" Error "its reason"
equal "$(logged | sort -u | paste -sd,)" "$({ echo bad; echo from web; echo hosts; echo one; echo shared; grep -c nameserver /etc/resolv.conf; } |
	sort | paste -sd,)" "what it says"
match "$(grep -m1 ' stdout ' "$log")" '^[0-9-]+T[0-9:.]+(Z|[+-][0-9:]+) stdout F from web$' "a line of its log"
match "$(cat "$log")" ' stderr F bad' "its errors"
match "$(husk list --format=json | jq -r '.[].app_names[]')" '^web-[0-9a-f]{12}$' "the app in husk list"
start_container reader . sh -c 'cat; echo ended' # who has no input reads its end
equal "$(exit_code) $(logged)" "0 ended" "a container without input"

if is_vm; then
	kib=$(exec_sync "$web" sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
	if [ "$kib" -le $((320 << 10)) ] || [ "$kib" -gt $((384 << 10)) ]; then die "the machine has $kib KiB"; fi
	create_container large '.linux.resources.memory_limit_in_bytes = 1073741824' true
	expect_refusal '[A-Z]*' '384 MiB' cri StartContainer "{\"id\": \"$container\"}"
fi

say "from the host, from another pod, and through containerd"
equal "$(curl -sf "http://$ip:8080")" "from web" "the pod"
match "$({ printf 'GET / HTTP/1.0\r\n\r\n'; read -rt 1 <> <(:) || :; } | cri port-forward "$sandbox" 8080)" 'from web$' "a port"
first=$sandbox
start_sandbox two
start_container client . wget -qO- "http://$ip:8080"
equal "$(exit_code) $(logged)" "0 from web" "a container of another pod"
remove_sandbox
sandbox=$first

say "commands in it: exit codes, errors, time, no such program"
out=$(cri ExecSync "{\"id\": \"$web\", \"cmd\": [\"sh\", \"-c\", \"echo out; echo err >&2; exit 3\"]}")
equal "$(jq -r '"\(.stdout | @base64d)\(.stderr | @base64d)\(.exit_code)"' <<<"$out" | paste -sd' ')" "out err 3" "what came"
expect_refusal DEADLINE_EXCEEDED 'timeout 1s exceeded' cri ExecSync "{\"id\": \"$web\", \"cmd\": [\"sleep\", \"1234\"], \"timeout\": 1}"
no_sleeper() { ! exec_sync "$web" ps | grep -q 'sleep 1234'; }
until_true no_sleeper
expect_refusal UNKNOWN 'No such file or directory' cri ExecSync "{\"id\": \"$web\", \"cmd\": [\"/nonexistent\"]}"

say "streams as kubectl has them: exec with and without a terminal, attach"
code=0
cri stream Exec "{\"id\": \"$web\", \"cmd\": [\"sh\", \"-c\", \"echo out; echo err >&2; read x; echo got \$x; exit 3\"],
	\"stdin\": true, \"stdout\": true, \"stderr\": true}" <<<words >"$work/out" 2>"$work/err" || code=$?
equal "$code $(paste -sd' ' "$work/out") $(cat "$work/err")" "3 out got words err" "of exec"
equal "$(cri stream Exec "{\"id\": \"$web\", \"cmd\": [\"tty\"], \"tty\": true, \"stdin\": true, \"stdout\": true}" </dev/null | tr -d '\r')" \
	/dev/pts/0 "of exec with a terminal"
start_container talker '.stdin = true' sh -c 'while read x; do echo "said $x"; [ "$x" != end ] || exit 6; done'
cri stream Attach "{\"id\": \"$container\", \"stdin\": true, \"stdout\": true, \"stderr\": true}" < <(echo one; echo end) >"$work/out"
equal "$(exit_code) $(paste -sd, "$work/out")" "6 said one,said end" "of attach"

say "volumes of each kind, with what changes in them"
mkdir -p vol/map/..a vol/empty
echo first >vol/map/..a/key
ln -s ..a vol/map/..data
ln -s ..data/key vol/map/key
echo a file >vol/file
: >vol/words
mounts=$(jq -cn --arg dir "$work/vol" '[{container_path: "/map", host_path: "\($dir)/map", readonly: true},
	{container_path: "/empty", host_path: "\($dir)/empty"}, {container_path: "/etc/a/file", host_path: "\($dir)/file"},
	{container_path: "/made", host_path: "\($dir)/missing"}, {container_path: "/dev/termination-log", host_path: "\($dir)/words"}]')
start_container volumes ".mounts = $mounts" sh -c 'cat /map/key /etc/a/file; touch /map/x || echo read-only; echo written >/empty/x
	ls -d /made; echo last words >/dev/termination-log; while [ "$(cat /map/key)" != second ]; do sleep 0.1; done; echo changed'
wait_for_words /made
mkdir vol/map/..b
echo second >vol/map/..b/key
ln -s ..b vol/map/..new
mv -T vol/map/..new vol/map/..data
equal "$(exit_code)" 0 "its exit code"
equal "$(logged | grep -v touch: | paste -sd,)" "first,a file,read-only,/made,changed" "what it has seen"
equal "$(cat vol/empty/x vol/words | paste -sd,)" "written,last words" "what it has left"
mounts="[{container_path: \"/shared\", host_path: \"$work/vol/empty\"}]"
start_container reads ".mounts = $mounts" sh -c 'mkfifo /shared/fifo; cat /shared/fifo' # where containers of a pod meet
until_true test -p vol/empty/fifo
reader=$container reader_log=$log
start_container writes ".mounts = $mounts" sh -c 'echo of another >/shared/fifo'
equal "$(exit_code) $(exit_code "$reader") $(logged "$reader_log")" "0 0 of another" "what came through a FIFO"

say "settings of the pod: names, ports of the host; an image from a registry"
# shellcheck source=tests/system/registry_lib.sh
. "$top/tests/system/registry_lib.sh"
start_registry registry '}'
skopeo copy --quiet --dest-tls-verify=false "oci:$(busybox_image)" "docker://localhost:$port/box:1"
i=localhost:$port/box:1
match "$(cri PullImage "{\"image\": {\"image\": \"$i\"}}" | jq -r .image_ref)" '^sha256:' "what was pulled"
start_sandbox settings '.dns_config = {servers: ["192.0.2.53"], searches: ["a.example"], options: ["ndots:2"]} |
	.port_mappings = [{container_port: 8080, host_port: 18080}]'
start_container web . sh -c 'cat /etc/resolv.conf; echo on a port >/tmp/index.html; httpd -f -p 8080 -h /tmp'
wait_for_words 'options ndots:2'
equal "$(logged | paste -sd,)" "search a.example,nameserver 192.0.2.53,options ndots:2" "its resolv.conf"
until_true curl -sf "http://$subnet.1:18080"
equal "$(curl -sf "http://$subnet.1:18080")" "on a port" "the port of the host"
equal "$(curl -sf "http://127.0.0.1:18080")" "on a port" "the port of the host, at its loopback"
remove_sandbox
kill "$registry_pid"
i=docker.io/library/busybox:1
sandbox=$first
sandbox_settings=$(sandbox_config one)

say "logs: long lines in parts, the last one without an end, and another file from now on"
start_container logs . sh -c 'head -c 20000 /dev/zero | tr "\0" x; echo; until [ -e /go ]; do sleep 0.1; done; printf end'
wait_for_words 'x*'
mv "$log" "$log.1"
cri ReopenContainerLog "{\"id\": \"$container\"}" >/dev/null
exec_sync "$container" touch /go
equal "$(exit_code)" 0 "its exit code"
equal "$(cut -d' ' -f3 "$log.1" | paste -sd,) $(logged "$log.1" | tr -d '\n' | wc -c)" "P,F 20000" "a long line"
equal "$(cut -d' ' -f3- "$log")" "P end" "the last one"

say "what is refused, by name"
mkdir state/shared
mount --bind state/shared state/shared
mount --make-shared state/shared
create_container shared ".mounts = [{container_path: \"/x\", host_path: \"$work/state/shared\", propagation: 1}]" true
expect_refusal UNIMPLEMENTED 'mounts do not propagate between the host and a pod' cri StartContainer "{\"id\": \"$container\"}"
create_container kernel '.mounts = [{container_path: "/proc/x", host_path: "/tmp"}]' true
expect_refusal UNIMPLEMENTED 'the mount at "/proc/x": no volume can be there' cri StartContainer "{\"id\": \"$container\"}"
expect_refusal UNIMPLEMENTED "the host's network is not to be had in a pod" cri RunPodSandbox \
	"{\"config\": $(sandbox_config host | jq -c '.linux.security_context.namespace_options.network = 2')}"

umount state/shared

say "a container ends, and comes again under its name"
cri StopContainer "{\"id\": \"$web\", \"timeout\": 5}" >/dev/null
equal "$(container_status "$web" | jq .state)" 2 "the container"
start_container web '.metadata.attempt = 1' sh -c 'cat /dev/shm/x; exec sleep 1000'
again=$container
wait_for_words shared
match "$(husk list --format=json | jq -r '.[].app_names | join(" ")')" '^web-[0-9a-f]{12}$' "apps of the pod"

say "figures"
cri ListContainerStats | jq -e '[.stats[] | select(.cpu) | .memory.working_set_bytes.value, .cpu.usage_core_nano_seconds.value | tonumber > 0] |
	length == 2 and all' >/dev/null || die "figures: $(cri ListContainerStats)"

say "containerd dies: pod, containers and their logs go on"
start_container ticks . sh -c 'i=0; while :; do echo tick $i; i=$((i + 1)); sleep 0.1; done'
wait_for_words 'tick 1'
ticks=$container ticks_log=$log
start_container talker '.stdin = true' sh -c 'while read x; do echo "said $x"; [ "$x" != end ] || exit 6; done'
talk() { cri stream Attach "{\"id\": \"$container\", \"stdin\": true, \"stdout\": true}" < <(echo "$1"); }
talk before >"$work/out" 2>&1 &
wait_for_words 'said before'
kill_containerd
wait $! || : # it has lost containerd
read -rt 0.5 <> <(:) || :
start_containerd
until_true sandbox_is "$sandbox" 0
until_true container_is "$container" 1
equal "$(exec_sync "$again" echo alive)" alive "a command"
equal "$(talk end) $(exit_code)" "said end 6" "another client of a container that reads on"
container=$ticks log=$ticks_log
n=$(wc -l <"$log")
more_lines() { [ "$(wc -l <"$log")" -gt "$n" ]; }
until_true more_lines
sort -t' ' -nk5 "$log" | awk '$5 != NR - 1 { exit 1 }' || die "lines are lost"

say "the machine dies: everything in it has ended"
kill -9 "$(husk list --format=json | jq .[0].pid)"
until_true sandbox_is "$sandbox" 1
equal "$(exit_code) $(exit_code "$again")" "255 255" "exit codes"
remove_sandbox
pods_gone

say "the shim dies: what there was is cleared away"
start_sandbox three
start_container a . sleep 1000
start_container b . sleep 1000
pkill -9 -f "[c]ontainerd-shim-husk-v2 .*$work/.*start"
until_true sandbox_is "$sandbox" 1
until_true container_is "$container" 2
remove_sandbox
pods_gone

say "a sandbox that is stopped with all that is in it"
start_sandbox four
start_container a . sleep 1000
start_container b . sh -c 'trap "" TERM; sleep 1000'
cri StopPodSandbox "{\"id\": \"$sandbox\"}" >/dev/null
sandbox_is "$sandbox" 1 || die "it is ready"
equal "$(exit_code)" 137 "what does not go by itself"
expect_refusal UNKNOWN . cri ExecSync "{\"id\": \"$container\", \"cmd\": [\"true\"]}"
cri StopPodSandbox "{\"id\": \"$sandbox\"}" >/dev/null
remove_sandbox
pods_gone
