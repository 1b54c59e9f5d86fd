/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/cgroup_mounts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/str.h"

static const char *const names[] = {
	[CGROUP_UNIFIED] = "unified", [CGROUP_MEMORY] = "memory", [CGROUP_CPU] = "cpu",
	[CGROUP_CPUACCT] = "cpuacct", [CGROUP_PIDS] = "pids",     [CGROUP_BLKIO] = "blkio",
	[CGROUP_DEVICES] = "devices",
};
_Static_assert(ARRAY_SIZE(names) == CGROUP_KINDS, "each has a name");

const char *cgroup_kind_name(enum cgroup_kind kind)
{
	return names[kind];
}

/* A part of a text. */
struct span {
	const char *at;
	size_t len;
};

static bool is(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

/* Cuts the next piece, which ends at one of @ends, off the rest of a line; empty at its end. */
static struct span cut(struct span *rest, char end)
{
	const char *stop = memchr(rest->at, end, rest->len);
	struct span piece = { rest->at, stop ? (size_t)(stop - rest->at) : rest->len };
	size_t used = piece.len + (stop ? 1 : 0);
	rest->at += used;
	rest->len -= used;
	return piece;
}

static bool is_octal(const char *s)
{
	return s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' && s[2] >= '0' &&
	       s[2] <= '7';
}

/* Undoes the kernel's "\040" for a blank. False if it does not fit or is no absolute path. */
static bool unescape(struct span s, char ret[CGROUP_PATH_MAX])
{
	size_t n = 0;
	for (size_t i = 0; i < s.len; i++) {
		const char *at = s.at + i;
		int c = (unsigned char)*at;
		if (n == CGROUP_PATH_MAX - 1)
			return false;
		if (c == '\\' && s.len - i > 3 && is_octal(at + 1)) {
			c = (at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0');
			i += 3;
		}
		ret[n++] = (char)c;
	}
	ret[n] = '\0';
	return ret[0] == '/';
}

static void note(struct cgroup_mount *known, const struct cgroup_mount *found)
{
	bool better = strcmp(known->root, "/") != 0 && strcmp(found->root, "/") == 0;
	if (!known->path[0] || better)
		*known = *found;
}

/* A hierarchy of version 1 has the names of its controllers among its options. */
static void note_v1(struct cgroup_mounts *ret, const struct cgroup_mount *found,
		    struct span options)
{
	while (options.len > 0) {
		struct span option = cut(&options, ',');
		for (int kind = CGROUP_UNIFIED + 1; kind < CGROUP_KINDS; kind++)
			if (is(option, names[kind]))
				note(&ret->at[kind], found);
	}
}

/*
 * "31 23 0:28 ROOT PATH rw,nosuid shared:1 master:2 - TYPE SOURCE OPTIONS": any number of fields
 * before the dash.
 */
static void find_in_line(struct span line, struct cgroup_mounts *ret)
{
	struct cgroup_mount found;
	for (int i = 0; i < 3; i++)
		cut(&line, ' ');
	struct span root = cut(&line, ' '), path = cut(&line, ' ');
	while (line.len > 0 && !is(cut(&line, ' '), "-"))
		;
	struct span type = cut(&line, ' ');
	cut(&line, ' ');
	bool is_v2 = is(type, "cgroup2");
	if ((!is_v2 && !is(type, "cgroup")) || !unescape(root, found.root) ||
	    !unescape(path, found.path))
		return;
	if (is_v2)
		note(&ret->at[CGROUP_UNIFIED], &found);
	else
		note_v1(ret, &found, line);
}

void cgroup_mounts_find(const char *mountinfo, struct cgroup_mounts *ret)
{
	struct span text = { mountinfo, strlen(mountinfo) };
	*ret = (struct cgroup_mounts){ 0 };
	while (text.len > 0)
		find_in_line(cut(&text, '\n'), ret);
}

/* What of @path is below the group @root; NULL if it is not. */
static const char *below(const char *path, const char *root)
{
	size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (strncmp(path, root, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return path + len;
}

int cgroup_mounts_own(const struct cgroup_mount *unified, const char *own, char *ret, size_t size)
{
	char path[CGROUP_PATH_MAX];
	struct span text = { own, strlen(own) };
	while (text.len > 0) {
		struct span line = cut(&text, '\n');
		if (line.len < 4 || strncmp(line.at, "0::/", 4) != 0)
			continue;
		int n = snprintf(path, sizeof(path), "%.*s", (int)(line.len - 3), line.at + 3);
		if (n >= (int)sizeof(path))
			return -ENAMETOOLONG;
		/* A group above the root of our namespace of groups begins with "/..". */
		const char *rest = below(path, unified->root);
		if (!unified->path[0] || !rest || strstr(path, "/.."))
			return -ENOENT;
		n = snprintf(ret, size, "%s%s", unified->path, rest);
		return n >= (int)size ? -ENAMETOOLONG : 0;
	}
	return -ENOENT;
}
