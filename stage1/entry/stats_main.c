/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stats entrypoint of a stage1: prints what the pod in the working directory costs, as one JSON
 * document (docs/protocol-stage1.md). The host's part is there also if the agent says nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/base/uuid.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1/backend.h"
#include "stage1/entry/stats.h"
#include "stage1/pod/find_supervisor.h"
#include "stage1/pod/pod_limits.h"
#include "stage1/pod/podfiles.h"

/* AGENT_APPS_MAX apps with a dozen numbers each, or with an escaped error. */
#define OUTPUT_MAX ((size_t)256 * 1024)

#define USAGE "stats [--debug=BOOL] [--uuid=UUID] [--app=NAME | --host]"

struct options {
	const char *app, *uuid;
	bool host; /* only what the host counts */
};

static int parse(int argc, char **argv, struct options *ret)
{
	*ret = (struct options){ 0 };
	for (int i = 1; i < argc; i++) {
		if (str_starts(argv[i], "--app="))
			ret->app = argv[i] + strlen("--app=");
		else if (str_starts(argv[i], "--uuid="))
			ret->uuid = argv[i] + strlen("--uuid=");
		else if (strcmp(argv[i], "--host") == 0)
			ret->host = true;
		else if (!str_starts(argv[i], "--debug="))
			return -EINVAL;
	}
	if (ret->app && ret->host)
		return -EINVAL;
	return !ret->uuid || uuid_is_valid(ret->uuid) ? 0 : -EINVAL;
}

/* All apps of the manifest, or the one that was named. */
static int choose_apps(int pod_fd, const char *name, struct stats_app *apps, size_t *ret_n,
		       struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest manifest;
	size_t n = 0;
	pod_manifest_init(&manifest);
	int r = podfiles_read_manifest(pod_fd, &manifest, e);
	for (size_t i = 0; r == 0 && i < manifest.n_apps && n < AGENT_APPS_MAX; i++) {
		if (name && strcmp(manifest.apps[i].name, name) != 0)
			continue;
		r = str_copy(apps[n].name, sizeof(apps[n].name), manifest.apps[i].name);
		n++;
	}
	if (r == 0 && name && n == 0)
		r = err_set(e, -ENOENT, "the pod has no app \"%s\"", name);
	if (r == 0)
		*ret_n = n;
	return r;
}

/* What the file takes on the disk, which is less than its size. -1 if there is no such file. */
static int64_t scratch_bytes(int pod_fd)
{
	struct stat st;
	if (fstatat(pod_fd, POD_FILE_SCRATCH, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return -1;
	return (int64_t)st.st_blocks * 512;
}

/* If the supervisor is still there afterwards, its number was its own all the time. */
static int read_cost(int pod_fd, struct pod_cost *ret, struct err *e)
{
	pid_t pid = 0;
	cleanup_fd int pidfd = find_supervisor(pod_fd, &pid, e);
	if (pidfd < 0)
		return pidfd;
	int r = cost_read("/proc", pid, flavor_helper_name, ret);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	if (poll(&end, 1, 0) != 0)
		r = -ESRCH;
	return r < 0 ? err_sys(e, r, "cannot read the costs of the supervisor") : 0;
}

static int print(const struct stats_document *d, struct err *e)
{
	cleanup_buf struct buf out;
	cleanup_json struct json_object *doc = stats_json(d);
	buf_init(&out, OUTPUT_MAX);
	int r = doc ? json_write(doc, false, &out) : -ENOMEM;
	if (r == 0)
		r = buf_puts(&out, "\n");
	if (r == 0)
		r = fd_write_all(STDOUT_FILENO, buf_data(&out), buf_len(&out));
	return r < 0 ? err_sys(e, r, "cannot print the statistics") : 0;
}

/* Of the control group of the pod. True if it has one. */
static bool count_total(int pod_fd, const char *uuid, struct agent_app_stats *ret)
{
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup group = POD_CGROUP_INIT;
	struct err ignored = ERR_INIT;
	char parent[CGROUP_PATH_MAX];
	if (!uuid || podfiles_read_cgroup_parent(pod_fd, parent, &ignored) < 0 ||
	    pod_cgroup_open(uuid, parent, &group, &ignored) < 0 || !pod_cgroup_is_there(&group))
		return false;
	pod_limits_count(&group, ret);
	return true;
}

static int ask_guest(int pod_fd, const char *app, struct stats_document *d, struct err *e)
{
	static struct stats_app apps[AGENT_APPS_MAX];
	char secret[AGENT_SECRET_LEN + 1];
	int r = choose_apps(pod_fd, app, apps, &d->n_apps, e);
	if (r == 0)
		r = podfiles_read_secret(pod_fd, secret, e);
	if (r < 0)
		return r;
	stats_ask(&flavor_route, secret, STATS_LIMIT_MS, apps, d->n_apps, &d->guest);
	d->apps = apps;
	return 0;
}

static int stats_run(const struct options *o, struct err *e)
{
	struct pod_cost cost;
	struct agent_app_stats total;
	struct stats_document d = { .uuid = o->uuid, .cost = &cost, .guest.memory_total = -1 };
	cleanup_fd int pod_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pod_fd < 0)
		return err_sys(e, -errno, "pod directory");
	int r = read_cost(pod_fd, &cost, e);
	if (r == 0 && !o->host)
		r = ask_guest(pod_fd, o->app, &d, e);
	if (r < 0)
		return r;
	if (count_total(pod_fd, o->uuid, &total))
		d.total = &total;
	d.scratch_bytes = scratch_bytes(pod_fd);
	return print(&d, e);
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	struct options o;
	if (fd_fill_stdio() < 0)
		return EXIT_HUSK_FAILURE;
	if (parse(argc, argv, &o) < 0) {
		fprintf(stderr, "stage1: stats: usage: " USAGE "\n");
		return EXIT_HUSK_FAILURE;
	}
	if (stats_run(&o, &e) == 0)
		return 0;
	fprintf(stderr, "stage1: stats: %s\n", e.text);
	return EXIT_HUSK_FAILURE;
}
