#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Building a test builds what the test runs: else it says something about an older program.
#   dependencies.sh BUILD-DIRECTORY
set -euo pipefail

cd "$1"
[ -e build.ninja ] || { echo "SKIPPED: the build tree is not ninja's" >&2; exit 77; }
failed=0
while read -r target file; do
	ninja -t inputs "$target" | grep -x "$file" >/dev/null || { echo "FAILED: $target does not build $file" >&2; failed=1; }
done <<'END'
husk lib/husk/husk-images.so
husk lib/husk/husk-http.so
containerd-shim-husk-v2 lib/husk/husk-images.so
test-images-fetch-http-test_http lib/husk/husk-http.so
test-images-appc-test_discovery lib/husk/husk-http.so
test-host-cli-commands-test_main host/cli/CMakeFiles/husk.dir/commands/main.c.o
test-host-cli-commands-test_main lib/husk/husk-images.so
test-images-module-test_module lib/husk/husk-http.so
test-host-cli-test_help host/cli/CMakeFiles/husk.dir/commands/main.c.o
test-host-pod-test_app host/cli/CMakeFiles/husk.dir/commands/main.c.o
test-stage1-entry-test_stop lib/husk/stage1-kvm/bin/stop
test-stage1-entry-test_gc lib/husk/stage1-kvm/bin/gc
test-stage1-kvm-backend-test_doctor lib/husk/stage1-kvm/bin/doctor
test-stage1-kvm-vmm-qemu-real_qemu lib/husk/stage1-kvm/bin/husk-vsock
test-stage1-kvm-vsock-test_program lib/husk/stage1-kvm/bin/husk-vsock
test-guest-agent-boot-test_main lib/husk/guest/husk-agent.debug
END
exit $failed
