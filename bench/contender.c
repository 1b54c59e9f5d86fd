/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/contender.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"

/* runsc's other platform takes KVM of hardware. It is given no network. */
static const char *const runsc_options[] = { "--platform=ptrace", "--network=none", NULL };

const char *const contender_stage1s[] = { "kvm", "ns", NULL };
const char *const contender_peers[] = { "runc", "crun", "podman", "runsc", "host", NULL };

static const char *const no_options[] = { NULL };

static const struct kind {
	const char *name, *title;
	const struct contender_ops *ops;
	const char *const *options;
} kinds[] = {
	{ "kvm", "kvm", &contender_husk, no_options },
	{ "ns", "ns", &contender_husk, no_options },
	{ "runc", "runc", &contender_oci, no_options },
	{ "crun", "crun", &contender_oci, no_options },
	{ "podman", "podman", &contender_podman, no_options },
	{ "runsc", "runsc (ptrace)", &contender_oci, runsc_options },
	{ "host", "host", &contender_host, no_options },
};

void contender_init(struct contender *c, const char *name, const struct site *site,
		    struct column *column)
{
	*c = (struct contender){ .column = column, .site = site, .namespaces = NAMESPACES_INIT };
	column->name = name;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].name, name) != 0)
			continue;
		c->ops = kinds[i].ops;
		c->options = kinds[i].options;
		str_copy_text(column->title, sizeof(column->title), kinds[i].title);
	}
	snprintf(c->dir, sizeof(c->dir), "%s/%s", site->dir, name);
}

void contender_deinit(struct contender *c)
{
	namespaces_close(&c->namespaces);
	json_object_put(TAKE_PTR(c->spec));
}

int contender_find_program(struct contender *c, const char *name, struct err *e)
{
	const char *path = getenv("PATH");
	if (path_find_program(name, path ? path : "/usr/sbin:/usr/bin:/sbin:/bin", c->program,
			      sizeof(c->program)) < 0)
		return err_set(e, -ENOENT, "not installed");
	return geteuid() == 0 ? contender_ask_version(c, e)
			      : err_set(e, -EPERM, "only root can measure it");
}

int contender_find_peer(struct contender *c, struct err *e)
{
	return contender_find_program(c, c->column->name, e);
}

const struct namespaces *contender_namespaces(const struct contender *c)
{
	return c->namespaces.mounts < 0 ? NULL : &c->namespaces;
}

static int arrange_mounts(const struct contender *c, int (*mounts)(const struct contender *c))
{
	/* Our root may be that of a chroot(2), and no mount. */
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 && errno != EINVAL)
		return -errno;
	return mounts ? mounts(c) : 0;
}

/* By going there and back. */
int contender_unshare(struct contender *c, int (*mounts)(const struct contender *c), struct err *e)
{
	CLEANUP(namespaces_close) struct namespaces home = NAMESPACES_INIT;
	cleanup_fd int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (cwd < 0 || namespaces_here(&home) < 0 || unshare(CLONE_NEWNS | CLONE_NEWNET) < 0)
		return err_sys(e, -errno, "no namespaces of its own");
	int r = arrange_mounts(c, mounts);
	if (r == 0)
		r = namespaces_here(&c->namespaces);
	if (namespaces_enter(&home) < 0 || fchdir(cwd) < 0)
		return err_sys(e, -errno, "cannot leave its namespaces");
	return r < 0 ? err_sys(e, r, "cannot mount what it needs") : 0;
}

int contender_hide_unified(const struct contender *c)
{
	(void)c;
	(void)umount2("/sys/fs/cgroup/unified", MNT_DETACH);
	return 0;
}

int contender_make_dirs(const struct contender *c, struct err *e)
{
	static const char *const names[] = { "state", "upper", "work", CONTENDER_ROOT };
	char path[PATH_MAX];
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", c->dir, names[i]);
		int fd = path_make_dirs(path, 0755);
		if (fd < 0)
			return err_sys(e, fd, "cannot make \"%s\"", path);
		fd_close(fd);
	}
	return 0;
}

int contender_mount_overlay(const struct contender *c)
{
	char options[3 * PATH_MAX], merged[PATH_MAX];
	snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s/upper,workdir=%s/work",
		 c->site->rootfs, c->dir, c->dir);
	snprintf(merged, sizeof(merged), "%s/" CONTENDER_ROOT, c->dir);
	return mount("overlay", merged, "overlay", 0, options) < 0 ? -errno : 0;
}

int contender_ask_version(struct contender *c, struct err *e)
{
	cleanup_free char *text = NULL;
	int r = contender_run(c, WORDS(c->program, "--version"), NULL, &text, e);
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	results_set_text(c->column->version, text);
	return 0;
}

int contender_run(struct contender *c, const char *const *prefix, const char *const *words,
		  char **ret_out, struct err *e)
{
	cleanup_command struct command command;
	command_init(&command);
	command.namespaces = contender_namespaces(c);
	int r = command_words(&command, prefix, e);
	if (r == 0)
		r = command_words(&command, words, e);
	if (r == 0)
		r = command_run(c->site->runner, &command, e);
	if (r < 0 || !ret_out)
		return r;
	*ret_out = buf_take_string(&command.out);
	return *ret_out ? 0 : err_sys(e, -ENOMEM, "cannot read what %s says", c->program);
}
