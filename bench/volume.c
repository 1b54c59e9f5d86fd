/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/contender.h"
#include "lib/base/num.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/os/rmtree.h"

#define DISK_MIB 256 /* more than a suite writes, with what ext4 has for itself */

static bool can_have(const struct contender *c, const char *kind)
{
	for (const char *const *has = c->ops->volumes; has && *has; has++)
		if (strcmp(*has, kind) == 0)
			return true;
	return false;
}

static int make_disk(struct contender *c, struct err *e)
{
	char mkfs[PATH_MAX];
	cleanup_command struct command command;
	command_init(&command);
	if (path_find_program("mkfs.ext4", "/usr/sbin:/sbin", mkfs, sizeof(mkfs)) < 0)
		return err_set(e, -ENOENT, "mkfs.ext4 is not there (install e2fsprogs)");
	cleanup_fd int fd = open(c->source, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)DISK_MIB << 20) < 0)
		return err_sys(e, -errno, "cannot make \"%s\"", c->source);
	int r = command_words(&command, WORDS(mkfs, "-q", c->source), e);
	return r < 0 ? r : command_run(c->site->runner, &command, e);
}

/* A directory, or a disk, by the name of the kind; the last one is gone. */
static int make_source(struct contender *c, struct err *e)
{
	snprintf(c->source, sizeof(c->source), "%s/volume-%s", c->dir, c->volume);
	int r = rmtree(AT_FDCWD, c->source);
	cleanup_fd int dir = r < 0 ? r : path_make_dirs(c->dir, 0700);
	if (dir < 0)
		return err_sys(e, dir, "cannot make \"%s\"", c->source);
	if (strcmp(c->volume, "block") == 0)
		return make_disk(c, e);
	return mkdir(c->source, 0755) < 0 ? err_sys(e, -errno, "cannot make \"%s\"", c->source) : 0;
}

int volume_make(struct contender *c, const char *kind, struct err *e)
{
	c->volume = kind;
	c->source[0] = '\0';
	if (kind && !can_have(c, kind))
		return err_set(e, -ENOTSUP, "it has no such volumes");
	return kind && strcmp(kind, "empty") != 0 ? make_source(c, e) : 0;
}
