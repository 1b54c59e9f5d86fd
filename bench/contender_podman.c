/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers of podman, with a storage of their own; the image's files are the root, with an
 * overlay of podman's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/contender.h"
#include "lib/base/num.h"

struct prefix {
	char root[PATH_MAX], state[PATH_MAX], rootfs[PATH_MAX], name[32];
	const char *words[7];
};

static void make_prefix(const struct contender *c, unsigned slot, struct prefix *p)
{
	snprintf(p->root, sizeof(p->root), "--root=%s/root", c->dir);
	snprintf(p->state, sizeof(p->state), "--runroot=%s/state", c->dir);
	snprintf(p->rootfs, sizeof(p->rootfs), "%s:O", c->site->rootfs);
	snprintf(p->name, sizeof(p->name), "husk-bench-%u", slot);
	p->words[0] = c->program;
	p->words[1] = p->root;
	p->words[2] = p->state;
	p->words[3] = "--cgroup-manager=cgroupfs";
	p->words[4] = "--events-backend=file";
	p->words[5] = NULL;
}

static int podman(struct contender *c, const char *const *words, char **ret_out, struct err *e)
{
	struct prefix p = { 0 };
	make_prefix(c, 0, &p);
	return contender_run(c, p.words, words, ret_out, e);
}

static int prepare_podman(struct contender *c, struct err *e)
{
	return contender_unshare(c, contender_hide_unified, e);
}

/* Its own limits are more than root may have in some hosts that are containers. */
#define OPTIONS "--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"

static int run_podman(struct contender *c, unsigned slot, const char *const *words,
		      struct command *command, struct err *e)
{
	struct prefix p = { 0 };
	make_prefix(c, slot, &p);
	command->namespaces = contender_namespaces(c);
	int r = command_words(command, p.words, e);
	if (r == 0)
		r = command_words(
			command,
			WORDS("run", "--rm", "--interactive", OPTIONS, "--rootfs", p.rootfs), e);
	return r < 0 ? r : command_words(command, words, e);
}

static int start_podman(struct contender *c, unsigned slot, bool for_apps, struct err *e)
{
	struct prefix p = { 0 };
	(void)for_apps;
	make_prefix(c, slot, &p);
	return podman(c,
		      WORDS("run", "--detach", OPTIONS, "--name", p.name, "--rootfs", p.rootfs,
			    IDLE_PROGRAM, IDLE_ARGUMENT),
		      NULL, e);
}

static int add_podman_app(struct contender *c, struct err *e)
{
	(void)c;
	return err_set(e, -ENOTSUP, "podman's pods need an image of their own");
}

/* There is no second container: of pod 0 itself. */
static int exec_podman(struct contender *c, struct err *e)
{
	return podman(c, WORDS("exec", "husk-bench-0", "true"), NULL, e);
}

static int remove_podman(struct contender *c, struct err *e)
{
	return podman(c, WORDS("rm", "--force", "--time=0", "husk-bench-0"), NULL, e);
}

/* conmon, which every container has, and whose child the container is. */
static int pid_of_podman(struct contender *c, unsigned slot, pid_t *ret, struct err *e)
{
	struct prefix p = { 0 };
	cleanup_free char *text = NULL;
	uint64_t pid;
	make_prefix(c, slot, &p);
	int r = podman(c, WORDS("inspect", "--format={{.State.ConmonPid}}", p.name), &text, e);
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	if (num_parse_u64(text, INT32_MAX, &pid) < 0)
		return err_set(e, -EBADMSG, "it does not say which process the pod has");
	*ret = (pid_t)pid;
	return 0;
}

static int sweep_podman(struct contender *c, struct err *e)
{
	return podman(c, WORDS("rm", "--all", "--force", "--time=0"), NULL, e);
}

const struct contender_ops contender_podman = {
	.find = contender_find_peer,
	.prepare = prepare_podman,
	.run = run_podman,
	.start = start_podman,
	.app_add = add_podman_app,
	.app_exec = exec_podman,
	.app_remove = remove_podman,
	.pid = pid_of_podman,
	.sweep = sweep_podman,
};
