/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/idmap.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"
#include "lib/os/fd.h"

/* Cuts the next line off *@map. False at its end, or where it is none. */
static bool next_range(const char **map, uint64_t *ret_first, uint64_t *ret_count)
{
	uint64_t numbers[3];
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		char digits[16];
		*map += strspn(*map, " \n");
		size_t len = strcspn(*map, " \n");
		if (len >= sizeof(digits))
			return false;
		memcpy(digits, *map, len);
		digits[len] = '\0';
		if (num_parse_u64(digits, UINT32_MAX, &numbers[i]) < 0)
			return false;
		*map += len;
	}
	*ret_first = numbers[0];
	*ret_count = numbers[2];
	return true;
}

bool idmap_has(const char *map, uint32_t id, uint32_t *ret_last)
{
	uint64_t first, count, last = 0;
	bool has = false;
	while (next_range(&map, &first, &count) && count > 0) {
		has = has || (id >= first && id - first < count);
		last = MAX(last, MIN(first + count - 1, (uint64_t)UINT32_MAX));
	}
	*ret_last = (uint32_t)last;
	return has;
}

/* Reads a map of ours. False if there is none to be read. */
static bool read_map(const char *path, char map[IDMAP_TEXT_MAX + 1])
{
	size_t len = 0;
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fd_read_full(fd, map, IDMAP_TEXT_MAX, &len) < 0)
		return false;
	map[len] = '\0';
	return len > 0 && len < IDMAP_TEXT_MAX;
}

static int check(const char *kind, const char *map, uint32_t id, struct fault *f)
{
	uint32_t last;
	if (idmap_has(map, id, &last))
		return 0;
	return fault_set(f, AGENT_E_USER,
			 "%s %" PRIu32 " does not exist in the user namespace of this pod, where "
			 "the last one is %" PRIu32 " (choose another %s, or give --userns=host)",
			 kind, id, last, kind);
}

/* Root is there in any case, and most apps are root's. */
int idmap_check_user(uid_t uid, struct fault *f)
{
	char map[IDMAP_TEXT_MAX + 1];
	if (uid == 0 || !read_map("/proc/self/uid_map", map))
		return 0;
	return check("user", map, uid, f);
}

int idmap_check_groups(const gid_t *groups, size_t n, struct fault *f)
{
	char map[IDMAP_TEXT_MAX + 1];
	if (n == 0 || (n == 1 && groups[0] == 0) || !read_map("/proc/self/gid_map", map))
		return 0;
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = check("group", map, groups[i], f);
	return r;
}
