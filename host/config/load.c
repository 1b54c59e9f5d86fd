/* SPDX-License-Identifier: Apache-2.0 */
#include "host/config/load.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/config/parse.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

#define SUFFIX ".json"

/* One subdirectory that is being read. */
struct place {
	const char *source; /* path, for messages */
	const char *name;   /* "auth.d" */
	unsigned part;
	bool passable; /* by everybody: with it and the source everybody gets to the files */
	const struct config_warn *warn;
};

static bool everybody_may(int fd, mode_t mode)
{
	struct stat st;
	return fstat(fd, &st) < 0 || (st.st_mode & mode) != 0;
}

static void warn_of_readers(const struct place *p, const char *file, int fd)
{
	char text[ERR_TEXT_MAX];
	if (p->part != CONFIG_AUTH || !p->warn || !p->passable || !everybody_may(fd, S_IROTH))
		return;
	snprintf(
		text, sizeof(text),
		"warning: configuration file \"%s/%s/%s\" holds credentials and everybody may read "
		"it (chmod o-r)",
		p->source, p->name, file);
	p->warn->fn(p->warn->ctx, text);
}

/* Reads the regular file @fd; @e has no file name yet. */
static int read_text(int fd, char **ret, size_t *ret_len, struct err *e)
{
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && st.st_size > (off_t)CONFIG_FILE_MAX)
		return err_set(e, -EFBIG, "it has more than %zu bytes (split it)", CONFIG_FILE_MAX);
	if (r == 0)
		r = file_read_fd(fd, CONFIG_FILE_MAX, ret, ret_len);
	return r < 0 ? err_sys(e, r, "cannot read it") : 0;
}

static int read_file(const struct place *p, int dirfd, const char *file, struct config *layer,
		     struct err *e)
{
	cleanup_fd int fd = -EBADF;
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = file_open_regular_at(dirfd, file, &fd);
	if (r == FILE_E_OTHER)
		return 0;
	if (r < 0)
		err_sys(e, r, "cannot open it");
	else
		r = read_text(fd, &text, &len, e);
	if (r == 0)
		r = config_parse(text, len, p->part, layer, e);
	if (r == 0)
		warn_of_readers(p, file, fd); /* only now it is known to hold some */
	else
		err_context(e, "configuration file \"%s/%s/%s\"", p->source, p->name, file);
	return r;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the names in @dir that end in .json to @names, sorted. */
static int list_names(DIR *dir, struct strv *names, struct err *e)
{
	for (;;) {
		errno = 0;
		struct dirent *de = readdir(dir);
		if (!de && errno)
			return err_sys(e, -errno, "cannot read it");
		if (!de)
			break;
		if (!str_ends(de->d_name, SUFFIX))
			continue;
		if (names->n >= CONFIG_FILES_MAX)
			return err_set(e, -E2BIG,
				       "it has more than %zu files *" SUFFIX " (merge some)",
				       CONFIG_FILES_MAX);
		int r = strv_add(names, de->d_name);
		if (r < 0)
			return err_sys(e, r, "cannot read it");
	}
	if (names->n > 0)
		qsort(names->v, names->n, sizeof(*names->v), compare_names);
	return 0;
}

/* Reads all files of the subdirectory @fd, which is consumed. */
static int read_dir(const struct place *p, int fd, struct config *layer, struct err *e)
{
	cleanup_strv struct strv names;
	strv_init(&names, CONFIG_FILES_MAX);
	cleanup_dir DIR *dir = fd_open_dir(fd);
	int r = dir ? list_names(dir, &names, e) : err_sys(e, -errno, "cannot read it");
	if (r < 0) {
		err_context(e, "configuration directory \"%s/%s\"", p->source, p->name);
		return r;
	}
	for (size_t i = 0; r == 0 && i < names.n; i++)
		r = read_file(p, dirfd(dir), names.v[i], layer, e);
	return r;
}

/*
 * True if the directory @dir/@name does not count because its reader, who is not root, may not read
 * it.
 */
static bool is_not_for_us(const char *dir, const char *name, const struct config_warn *warn)
{
	char text[ERR_TEXT_MAX];
	if (errno != EACCES || geteuid() == 0)
		return false;
	snprintf(text, sizeof(text),
		 "configuration directory \"%s/%s\" may not be read, it does not count", dir, name);
	if (warn && warn->debug)
		warn->fn(warn->ctx, text);
	return true;
}

/* Opens the source; *@ret_fd stays as it is if there is none and none is needed. */
static int open_source(const struct config_source *s, const struct config_warn *warn, int *ret_fd,
		       struct err *e)
{
	int fd = open(s->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	if ((errno == ENOENT && s->optional) || is_not_for_us(s->dir, "", warn))
		return 0;
	if (errno == ENOENT)
		return err_set(
			e, -ENOENT,
			"configuration directory \"%s\" is not there (make it, or name another "
			"one)",
			s->dir);
	return err_sys(e, -errno, "configuration directory \"%s\": cannot open it", s->dir);
}

/* What @s says about @part goes into the empty @layer. */
static int read_source(const struct config_source *s, unsigned part, const struct config_warn *warn,
		       struct config *layer, struct err *e)
{
	struct place p = {
		.source = s->dir, .name = config_part_dir(part), .part = part, .warn = warn
	};
	cleanup_fd int source = -EBADF;
	int r = s->dir[0] ? open_source(s, warn, &source, e) : 0;
	if (r < 0 || source < 0)
		return r;
	cleanup_fd int fd = openat(source, p.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || is_not_for_us(s->dir, p.name, warn)))
		return 0;
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return err_set(e, -ENOTDIR,
			       "configuration directory \"%s/%s\" is something else (make it a "
			       "directory; symbolic links are not followed)",
			       p.source, p.name);
	if (fd < 0)
		return err_sys(e, -errno, "configuration directory \"%s/%s\": cannot open it",
			       p.source, p.name);
	p.passable = everybody_may(source, S_IXOTH) && everybody_may(fd, S_IXOTH);
	return read_dir(&p, TAKE_FD(fd), layer, e);
}

static int load_part(struct config *c, const struct config_source *sources, size_t n, unsigned part,
		     const struct config_warn *warn, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		CLEANUP(config_deinit) struct config layer;
		config_init(&layer);
		r = read_source(&sources[i], part, warn, &layer, e);
		if (r < 0)
			break;
		r = config_merge(c, &layer);
		if (r == AUTHS_FULL)
			r = err_set(e, -E2BIG,
				    "configuration directory \"%s/%s\": more than %zu hosts with "
				    "those before it (remove some)",
				    sources[i].dir, config_part_dir(part), AUTHS_MAX);
		else if (r < 0)
			err_sys(e, r, "configuration directory \"%s\"", sources[i].dir);
	}
	if (r < 0)
		config_drop(c, part);
	else
		c->parts |= part;
	return r;
}

int config_load(struct config *c, const struct config_source *sources, size_t n, unsigned parts,
		const struct config_warn *warn, struct err *e)
{
	static const unsigned order[] = { CONFIG_AUTH, CONFIG_PATHS, CONFIG_STAGE1, CONFIG_IMAGES };
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(order); i++)
		if (parts & ~c->parts & order[i])
			r = load_part(c, sources, n, order[i], warn, e);
	return r;
}
