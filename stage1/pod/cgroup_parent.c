/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/cgroup_parent.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/str.h"

#define SLICE ".slice"

static int append(char ret[CGROUP_PATH_MAX], const char *s, size_t n)
{
	size_t len = strlen(ret);
	if (len + n >= CGROUP_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(ret + len, s, n);
	ret[len + n] = '\0';
	return 0;
}

static bool is_component(const char *s, size_t n)
{
	bool is_dots = (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.');
	return n <= NAME_MAX && !is_dots;
}

static int add_component(char ret[CGROUP_PATH_MAX], const char *s, size_t n)
{
	int r = is_component(s, n) ? 0 : -EINVAL;
	if (r == 0 && ret[0])
		r = append(ret, "/", 1);
	return r == 0 ? append(ret, s, n) : r;
}

static int take_path(const char *path, char ret[CGROUP_PATH_MAX])
{
	int r = 0;
	for (size_t n; r == 0 && *(path += strspn(path, "/")); path += n) {
		n = strcspn(path, "/");
		r = add_component(ret, path, n);
	}
	return r;
}

/* "a-b.slice" is in "a.slice". No part is empty, but "-.slice" is the root. */
static int take_slice(const char *name, char ret[CGROUP_PATH_MAX])
{
	const size_t len = strlen(name) - strlen(SLICE);
	int r = 0;
	if (strcmp(name, "-" SLICE) == 0)
		return 0;
	for (size_t n = 0; r == 0 && n < len; n++) {
		size_t part = strcspn(name + n, "-");
		bool is_last = n + part >= len;
		if (part == 0 || n + part + 1 == len)
			return -EINVAL;
		n = is_last ? len : n + part;
		r = add_component(ret, name, n);
		if (r == 0)
			r = append(ret, SLICE, strlen(SLICE));
	}
	return r;
}

int cgroup_parent_expand(const char *name, char ret[CGROUP_PATH_MAX])
{
	ret[0] = '\0';
	if (!str_is_text(name, CGROUP_PATH_MAX - 1))
		return strlen(name) >= CGROUP_PATH_MAX ? -ENAMETOOLONG : -EINVAL;
	if (name[0] == '/')
		return take_path(name, ret);
	bool is_slice = str_ends(name, SLICE) && !strchr(name, '/');
	return is_slice && strlen(name) > strlen(SLICE) ? take_slice(name, ret) : -EINVAL;
}
