#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What libvirt's own schema says of the golden domains.
set -euo pipefail
golden=$(cd "$(dirname "$0")/../../../../golden/libvirt-domain" && pwd)
command -v virt-xml-validate >/dev/null || {
	echo "SKIPPED: virt-xml-validate is not installed (tools/install-deps check)" >&2
	exit 77
}
for domain in "$golden"/[kt]*.xml; do
	virt-xml-validate "$domain" domain
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed 's/<vcpu>/<vcpus>/' "$golden/tcg-user.xml" >"$work/wrong.xml"
if virt-xml-validate "$work/wrong.xml" domain >/dev/null 2>&1; then
	echo "FAILED: the schema accepts everything" >&2
	exit 1
fi
