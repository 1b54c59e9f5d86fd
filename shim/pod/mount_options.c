/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/pod/mount_options.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>

#include "lib/base/macros.h"
#include "lib/base/str.h"

#define LOWER "lowerdir="

static const struct {
	const char *word;
	unsigned long set, clear;
} flags[] = {
	{ "async", 0, MS_SYNCHRONOUS },   { "atime", 0, MS_NOATIME },
	{ "bind", MS_BIND, 0 },           { "defaults", 0, 0 },
	{ "dev", 0, MS_NODEV },           { "diratime", 0, MS_NODIRATIME },
	{ "dirsync", MS_DIRSYNC, 0 },     { "exec", 0, MS_NOEXEC },
	{ "mand", MS_MANDLOCK, 0 },       { "noatime", MS_NOATIME, 0 },
	{ "nodev", MS_NODEV, 0 },         { "nodiratime", MS_NODIRATIME, 0 },
	{ "noexec", MS_NOEXEC, 0 },       { "nomand", 0, MS_MANDLOCK },
	{ "norelatime", 0, MS_RELATIME }, { "nostrictatime", 0, MS_STRICTATIME },
	{ "nosuid", MS_NOSUID, 0 },       { "rbind", MS_BIND | MS_REC, 0 },
	{ "relatime", MS_RELATIME, 0 },   { "ro", MS_RDONLY, 0 },
	{ "rw", 0, MS_RDONLY },           { "strictatime", MS_STRICTATIME, 0 },
	{ "suid", 0, MS_NOSUID },         { "sync", MS_SYNCHRONOUS, 0 },
};

/* True if the word is a flag. */
static bool take_flag(const char *word, unsigned long *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		if (strcmp(flags[i].word, word) != 0)
			continue;
		*ret = (*ret & ~flags[i].clear) | flags[i].set;
		return true;
	}
	return false;
}

/* How many bytes at the front of @list, paths with colons between them, are the same directory. */
static size_t common_dir(const char *list)
{
	size_t common = strcspn(list, ":"), n;
	if (list[0] != '/' || strchr(list, '\\'))
		return 0; /* none, or one whose colons may be part of a name */
	for (const char *path = list;; path += n + 1) {
		size_t same = 0;
		n = strcspn(path, ":");
		while (same < MIN(common, n) && path[same] == list[same])
			same++;
		common = same;
		if (!path[n])
			break;
	}
	while (common > 0 && list[common - 1] != '/')
		common--;
	return common < PATH_MAX ? common : 0;
}

static int append(struct mount_words *m, size_t *len, const char *text, size_t n)
{
	if (n > MOUNT_DATA_MAX - *len)
		return -E2BIG;
	memcpy(m->data + *len, text, n);
	*len += n;
	return 0;
}

/* Each path of @list without the @skip bytes that all of them begin with. */
static int append_paths(struct mount_words *m, size_t *len, const char *list, size_t skip)
{
	int r = 0;
	for (size_t n; r == 0; list += n + 1) {
		n = strcspn(list, ":");
		r = append(m, len, list + skip, n - skip);
		if (r < 0 || !list[n])
			break;
		r = append(m, len, ":", 1);
	}
	return r;
}

/* One word of the file system. */
static int take_word(struct mount_words *m, size_t *len, const char *word)
{
	int r = *len > 0 ? append(m, len, ",", 1) : 0;
	if (r < 0 || !str_starts(word, LOWER))
		return r < 0 ? r : append(m, len, word, strlen(word));
	const char *list = word + strlen(LOWER);
	size_t skip = common_dir(list);
	memcpy(m->dir, list, skip);
	r = append(m, len, LOWER, strlen(LOWER));
	return r < 0 ? r : append_paths(m, len, list, skip);
}

int mount_words_parse(char *const *words, size_t n, struct mount_words *ret, struct err *e)
{
	size_t len = 0;
	*ret = (struct mount_words){ .flags = 0 };
	for (size_t i = 0; i < n; i++)
		if (!take_flag(words[i], &ret->flags) && take_word(ret, &len, words[i]) < 0)
			return err_set(e, -E2BIG, "the options of a mount have more than %zu bytes",
				       MOUNT_DATA_MAX);
	return 0;
}
