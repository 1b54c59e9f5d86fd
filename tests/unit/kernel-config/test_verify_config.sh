#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kernel-config/verify-config: what survived, what was dropped, what has another value; and its exit status.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
verify=$here/../../../kernel-config/verify-config
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
cd -- "$scratch"

failures=0

# check NAME STATUS STDERR ARGUMENT...: runs the script, compares its status and all it says.
check() {
    local name=$1 status=$2 expected=$3 got=0
    shift 3
    "$verify" "$@" >stdout 2>stderr || got=$?
    if [ "$got" -eq "$status" ] && [ "$(cat stderr)" = "$expected" ] && [ ! -s stdout ]; then
        echo "ok - $name"
    else
        echo "not ok - $name: wanted status $status and '$expected', got status $got and '$(cat stderr)'"
        failures=$((failures + 1))
    fi
}

cat >config <<'EOF'
# Linux/x86 6.12 Kernel Configuration
CONFIG_NET=y
CONFIG_NR_CPUS=64
CONFIG_LOCALVERSION="-husk a=b"
CONFIG_PANIC_TIMEOUT=-1
# CONFIG_MODULES is not set
CONFIG_MICROCODE=y
EOF

printf '%s\n' '# net: a comment' 'CONFIG_NET=y' '' 'CONFIG_NR_CPUS=64' 'CONFIG_LOCALVERSION="-husk a=b"' \
    'CONFIG_PANIC_TIMEOUT=-1' '# CONFIG_MODULES is not set' '# CONFIG_NEVER_HEARD_OF is not set' >good.conf
check "everything survived" 0 '' config good.conf

echo 'CONFIG_VSOCKETS=y' >dropped.conf
check "a symbol was dropped" 1 'verify-config: dropped.conf:1: CONFIG_VSOCKETS: wanted y, got n' config dropped.conf

echo 'CONFIG_MODULES=y' >off.conf
check "a symbol is not set" 1 'verify-config: off.conf:1: CONFIG_MODULES: wanted y, got n' config off.conf

printf '%s\n' '# x86' 'CONFIG_NR_CPUS=8' >value.conf
check "another number" 1 'verify-config: value.conf:2: CONFIG_NR_CPUS: wanted 8, got 64' config value.conf

echo 'CONFIG_LOCALVERSION="-husk"' >string.conf
check "another string" 1 'verify-config: string.conf:1: CONFIG_LOCALVERSION: wanted "-husk", got "-husk a=b"' config string.conf

echo '# CONFIG_MICROCODE is not set' >selected.conf
check "a symbol was selected" 1 'verify-config: selected.conf:1: CONFIG_MICROCODE: wanted n, got y' config selected.conf

echo 'CONFIG_NE=y' >prefix.conf
check "a name that begins another is not it" 1 'verify-config: prefix.conf:1: CONFIG_NE: wanted y, got n' config prefix.conf

check "each failure of each fragment is named" 1 'verify-config: dropped.conf:1: CONFIG_VSOCKETS: wanted y, got n
verify-config: value.conf:2: CONFIG_NR_CPUS: wanted 8, got 64' config good.conf dropped.conf value.conf

mkdir a=b
cp value.conf a=b/value.conf
check "a path that looks like an assignment" 1 'verify-config: value.conf:2: CONFIG_NR_CPUS: wanted 8, got 64' config a=b/value.conf

: >empty
check "an empty configuration" 1 'verify-config: dropped.conf:1: CONFIG_VSOCKETS: wanted y, got n' empty dropped.conf
check "an empty fragment" 0 '' config empty

echo 'NET=y' >nonsense.conf
check "a line that is not a symbol" 2 'verify-config: nonsense.conf:1: neither a comment nor a symbol: NET=y' config nonsense.conf

echo '#CONFIG_NET is not set' >near.conf
check "a line that is almost a symbol" 2 'verify-config: near.conf:1: neither a comment nor a symbol: #CONFIG_NET is not set' config near.conf

check "no fragment" 2 'usage: verify-config CONFIG FRAGMENT...' config
check "no configuration" 2 \
    'verify-config: ./absent: not a readable file: name a kernel configuration and its fragments' absent good.conf

exit $((failures > 0))
