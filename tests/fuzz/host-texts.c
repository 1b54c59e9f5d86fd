/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of the host that are read without a library: mountinfo, /proc/PID/cgroup, subuid(5), words
 * between our own processes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/os/userns.h"
#include "stage1/pod/cgroup_mounts.h"
#include "stage1/volumes/host_volume.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct cgroup_mount tree = { .path = "/sys/fs/cgroup", .root = "/" };
	static struct cgroup_mounts mounts;
	char own[2 * CGROUP_PATH_MAX];
	uint32_t first;
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	cgroup_mounts_find(text, &mounts);
	cgroup_mounts_own(&mounts.at[CGROUP_UNIFIED], text, own, sizeof(own));
	if (cgroup_mounts_own(&tree, text, own, sizeof(own)) == 0 && strstr(own, "/../"))
		abort(); /* a path that leads out of the tree */
	struct host_volume volume;
	if (host_volume_parse(text, &volume) == 0 && volume.path[0] != '/')
		abort();
	userns_find_range(text, size, "bob", 1001, &first);
	free(text);
	return 0;
}
