#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pods as domains of libvirt on KVM: of one without a daemon, and of a daemon, which here sees a /dev/kvm that is of use.
set -euo pipefail
system=$(cd "$(dirname "$0")/../system" && pwd)
options=$HUSK_TEST_RUN_OPTIONS
HUSK_TEST_RUN_OPTIONS="$options --vmm=libvirt --libvirt-uri=qemu:///embed" "$system/run-apps.sh"
HUSK_TEST_RUN_OPTIONS="$options --vmm=libvirt" LIBVIRTD_KVM=yes "$system/with-libvirtd" "$system/run-basic.sh"
