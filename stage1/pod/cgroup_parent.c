/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/cgroup_parent.h"

#include <errno.h>
#include <limits.h>
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
static int take_slice(const char *name, size_t len, char ret[CGROUP_PATH_MAX])
{
	int r = 0;
	if (len == 1 && name[0] == '-')
		return 0;
	for (size_t n = 0; r == 0 && n < len; n++) {
		const char *dash = memchr(name + n, '-', len - n);
		size_t end = dash ? (size_t)(dash - name) : len;
		if (end == n || end + 1 == len)
			return -EINVAL;
		n = end;
		r = add_component(ret, name, n);
		if (r == 0)
			r = append(ret, SLICE, strlen(SLICE));
	}
	return r;
}

static int take_name(const char *name, char ret[CGROUP_PATH_MAX])
{
	if (name[0] == '/')
		return take_path(name, ret);
	const size_t len = strcspn(name, "/"), suffix = strlen(SLICE);
	if (len <= suffix || memcmp(name + len - suffix, SLICE, suffix) != 0)
		return -EINVAL;
	int r = take_slice(name, len - suffix, ret);
	return r == 0 ? take_path(name + len, ret) : r;
}

int cgroup_parent_expand(const char *name, char ret[CGROUP_PATH_MAX])
{
	bool is_own = name[0] == '+';
	ret[0] = '\0';
	name += is_own;
	if (!str_is_text(name, CGROUP_PATH_MAX - 1))
		return strlen(name) >= CGROUP_PATH_MAX ? -ENAMETOOLONG : -EINVAL;
	int r = take_name(name, ret);
	if (r < 0 || !is_own)
		return r;
	return ret[0] ? append(ret, "/", 1) : -EINVAL;
}

bool cgroup_parent_is_own(const char *path)
{
	return str_ends(path, "/");
}
