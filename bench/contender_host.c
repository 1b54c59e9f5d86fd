/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No pod: the programs of the image on the host itself, below chroot(8), as the floor of what
 * volumes, disks and processors of pods can be.
 *
 * Its mounts are in a namespace of its own, as those of other contenders are, with the image's
 * files below an overlay: what they write goes to the same file system of the host as theirs.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "bench/contender.h"
#include "bench/volume.h"

struct root {
	char path[SITE_PATH_MAX + 64];
};

static struct root root_of(const struct contender *c, const char *below)
{
	struct root root;
	snprintf(root.path, sizeof(root.path), "%s/" CONTENDER_ROOT "%s", c->dir, below);
	return root;
}

static int find_chroot(struct contender *c, struct err *e)
{
	return contender_find_program(c, "chroot", e);
}

/* What @source of the host is, at @target in the image's files. */
static int bind(const struct contender *c, const char *source, const char *target)
{
	const struct root at = root_of(c, target);
	if (mkdir(at.path, 0755) < 0 && errno != EEXIST)
		return -errno;
	return mount(source, at.path, NULL, MS_BIND | MS_REC, NULL) < 0 ? -errno : 0;
}

static int mount_host(const struct contender *c)
{
	int r = contender_mount_overlay(c);
	if (r == 0)
		r = bind(c, "/proc", "/proc");
	return r < 0 ? r : bind(c, "/dev", "/dev");
}

static int prepare_host(struct contender *c, struct err *e)
{
	int r = contender_make_dirs(c, e);
	return r < 0 ? r : contender_unshare(c, mount_host, e);
}

/* The last one goes, and the one of now comes. */
static int change_volume(void *ctx)
{
	const struct contender *c = ctx;
	const struct root at = root_of(c, VOLUME_TARGET);
	while (umount2(at.path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		;
	return c->volume ? bind(c, c->source, VOLUME_TARGET) : 0;
}

static int run_on_host(struct contender *c, unsigned slot, const char *const *words,
		       struct command *command, struct err *e)
{
	const struct root root = root_of(c, "");
	(void)slot;
	command->namespaces = contender_namespaces(c);
	int r = namespaces_call(command->namespaces, change_volume, c);
	if (r < 0)
		return err_sys(e, r, "cannot mount its volume");
	r = command_words(command, WORDS(c->program, root.path), e);
	return r < 0 ? r : command_words(command, words, e);
}

static int start_on_host(struct contender *c, unsigned slot, bool for_apps, struct err *e)
{
	(void)c;
	(void)slot;
	(void)for_apps;
	return err_set(e, -ENOTSUP, "it has no pods");
}

/* Nothing runs in the background. */
static int sweep_host(struct contender *c, struct err *e)
{
	(void)c;
	(void)e;
	return 0;
}

static const char *const volumes[] = { "host", NULL };

/* Who cannot start a pod is not asked for its apps, nor for its process. */
const struct contender_ops contender_host = {
	.volumes = volumes,
	.find = find_chroot,
	.prepare = prepare_host,
	.run = run_on_host,
	.start = start_on_host,
	.sweep = sweep_host,
};
