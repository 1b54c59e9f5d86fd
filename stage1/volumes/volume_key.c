/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/volumes/volume_key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/base/str.h"

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U /* Linux 6.8: of no other mount later; older ones ignore it */
#endif

#define FLAGS (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC) /* the lowest four bits */
_Static_assert(FLAGS == 0xf, "two more bits have two digits");

/* ---- what is mounted below ---- */

/* FNV-1a: nobody but who mounts could make two alike. */
#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)

static uint64_t hash_more(uint64_t hash, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)text[i]) * HASH_PRIME;
	return hash;
}

/* As mountinfo writes it, each special character with four. */
#define ESCAPED_MAX (4 * PATH_MAX + 2)

/* What paths below @path begin with in mountinfo. */
static void begin_of_below(const char *path, char ret[ESCAPED_MAX])
{
	size_t n = 0;
	for (; *path; path++) {
		if (strchr(" \t\n\\", *path))
			n += (size_t)snprintf(ret + n, 5, "\\%03o", (unsigned)*path & 0xff);
		else
			ret[n++] = *path;
	}
	if (n == 0 || ret[n - 1] != '/')
		ret[n++] = '/';
	ret[n] = '\0';
}

/* What is behind the first @n blanks of @line; NULL: it has not so many. */
static const char *skip_fields(const char *line, int n)
{
	for (; line && n > 0; n--) {
		line = strchr(line, ' ');
		line += line ? 1 : 0;
	}
	return line;
}

/* "31 23 0:28 ROOT PATH rw,nosuid ...", of which what follows says nothing of this mount. */
static int hash_lines(const char *below, uint64_t *hash)
{
	cleanup_free char *line = NULL;
	size_t size = 0;
	FILE *f = fopen("/proc/self/mountinfo", "re");
	if (!f)
		return -errno;
	while (getline(&line, &size, f) > 0) {
		const char *path = skip_fields(line, 4), *end = skip_fields(line, 6);
		if (end && str_starts(path, below))
			*hash = hash_more(*hash, line, (size_t)(end - line));
	}
	int r = ferror(f) ? -EIO : 0;
	fclose(f);
	return r;
}

static int hash_below(int found, uint64_t *ret)
{
	char self[32], path[PATH_MAX], below[ESCAPED_MAX];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", found);
	ssize_t n = readlink(self, path, sizeof(path) - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	begin_of_below(path, below);
	*ret = HASH_BEGIN;
	return hash_lines(below, ret);
}

/* ---- all of it ---- */

int volume_key(int found, bool read_only, bool recursive, char ret[VOLUME_KEY_MAX + 1])
{
	const unsigned wanted = STATX_INO | STATX_MNT_ID | STATX_MNT_ID_UNIQUE;
	struct statvfs of;
	struct statx st;
	uint64_t below = 0;
	if (statx(found, "", AT_EMPTY_PATH, wanted, &st) < 0 || fstatvfs(found, &of) < 0)
		return -errno;
	int r = recursive ? hash_below(found, &below) : 0;
	if (r < 0)
		return r;
	unsigned flags =
		((unsigned)of.f_flag & FLAGS) << 2 | (read_only ? 2U : 0) | (recursive ? 1U : 0);
	snprintf(ret, VOLUME_KEY_MAX + 1, "%x-%x-%jx-%jx-%x-%jx", st.stx_dev_major,
		 st.stx_dev_minor, (uintmax_t)st.stx_ino, (uintmax_t)st.stx_mnt_id, flags,
		 (uintmax_t)below);
	return 0;
}
