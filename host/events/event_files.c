/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod goes on while it is looked at. So its files are read in the reverse of the order in which
 * they are written: what is found has everything before it, and what came meanwhile is left to the
 * next look.
 *
 * The names in status/ say which apps there are, not the manifest, which is about what the pod
 * began with. A status file without its number is one that is being written, unless the pod is
 * over: then the writer is dead, and `husk status` takes it for a failure, too.
 */
#include "host/events/event_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "host/pod/info.h"
#include "host/pod/networks.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/wire/agent.h"
#include "lib/wire/stage1.h"

#define EXIT_DAMAGED 1 /* of an app whose status file has no number */

/*
 * An app that is started again and again while it is looked at, that often, is left to the next
 * look.
 */
#define READ_TRIES 8

static const char *const suffixes[] = { POD_STATUS_CREATED_SUFFIX, POD_STATUS_STARTED_SUFFIX,
					POD_STATUS_OOM_SUFFIX, POD_STATUS_REASON_SUFFIX };

static int64_t mark_time(int status_fd, const char *app, const char *suffix)
{
	char name[AGENT_NAME_MAX + 16];
	snprintf(name, sizeof(name), "%s%s", app, suffix);
	return pod_file_time(status_fd, name);
}

/* Reads status/NAME; what is replaced meanwhile is left to the look that follows the change. */
static void read_exit(int status_fd, bool over, struct app_seen *app)
{
	uint64_t code = EXIT_DAMAGED;
	int64_t ns = pod_file_time(status_fd, app->name);
	int r = pod_file_number(status_fd, app->name, UINT8_MAX, &code);
	bool steady = pod_file_time(status_fd, app->name) == ns;
	app->exited_ns = (r == 0 || over) && steady ? ns : 0;
	app->exit_code = app->exited_ns ? (int)code : 0;
}

/* What is known of the end beside its number, which has been written before that. */
static void read_end(int status_fd, struct app_seen *app)
{
	struct app_reason why;
	app_reason_read(status_fd, app->name, &why);
	app->signal = why.signal;
	app->end = app_end_from(app->exit_code, app->oom_ns > 0, &why);
}

/*
 * The files of one app, the last one written first: what is there then has what came before it,
 * too.
 */
static void read_app(int status_fd, bool over, struct app_seen *app)
{
	for (int i = 0; i < READ_TRIES; i++) {
		int64_t end_ns = pod_file_time(status_fd, app->name);
		read_exit(status_fd, over, app);
		app->oom_ns = mark_time(status_fd, app->name, POD_STATUS_OOM_SUFFIX);
		app->end = APP_END_NONE;
		if (app->exited_ns)
			read_end(status_fd, app);
		app->started_ns = mark_time(status_fd, app->name, POD_STATUS_STARTED_SUFFIX);
		app->created_ns = mark_time(status_fd, app->name, POD_STATUS_CREATED_SUFFIX);
		/* Else the end may be that of the run before the one whose start was read. */
		if (pod_file_time(status_fd, app->name) == end_ns)
			break;
	}
}

/* Takes one name in status/. 0 or OBSERVE_APPS. */
static int take_name(const char *name, struct pod_seen *s)
{
	char app[AGENT_NAME_MAX + 1];
	size_t len = strlen(name);
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (str_ends(name, suffixes[i])) {
			len -= strlen(suffixes[i]);
			break;
		}
	if (len > AGENT_NAME_MAX)
		return 0;
	memcpy(app, name, len);
	app[len] = '\0';
	if (!agent_name_is_valid(app)) /* a temporary file, for instance */
		return 0;
	return pod_seen_app(s, app) ? 0 : OBSERVE_APPS;
}

/* Which apps there are. 0, OBSERVE_APPS, -errno. */
static int read_names(DIR *dir, struct pod_seen *s)
{
	for (;;) {
		errno = 0;
		struct dirent *de = readdir(dir);
		if (!de)
			return -errno;
		int r = take_name(de->d_name, s);
		if (r != 0)
			return r;
	}
}

static int read_apps(int pod_fd, struct pod_seen *s)
{
	int fd = openat(pod_fd, POD_DIR_STATUS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : 0;
	cleanup_dir DIR *dir = fd_open_dir(fd);
	if (!dir)
		return -errno;
	int r = read_names(dir, s);
	for (size_t i = 0; i < s->n_apps; i++)
		read_app(dirfd(dir), s->over, &s->apps[i]);
	return r;
}

static int64_t ns_of(const struct timespec *t)
{
	return (int64_t)t->tv_sec * NS_PER_SEC + t->tv_nsec;
}

static int add_ip(void *ctx, const char *net, bool is_ipv6, const char *ip)
{
	struct pod_seen *s = ctx;
	size_t len = strlen(s->ips);
	(void)net;
	(void)is_ipv6;
	snprintf(s->ips + len, sizeof(s->ips) - len, "%s%s", len > 0 ? " " : "", ip);
	return 0;
}

/* Stage1 has written them down before the pod is ready, and takes them away when it ends. */
static int read_ips(int pod_fd, struct pod_seen *s)
{
	cleanup_free struct net_info_list *networks = NULL;
	s->ips[0] = '\0';
	int r = s->ready_ns > 0 ? pod_networks_read(pod_fd, &networks) : 0;
	return r < 0 ? r : pod_networks_each_ip(networks, add_ip, s);
}

int pod_observe(int pod_fd, struct pod_seen *ret)
{
	struct stat st;
	ret->n_apps = 0;
	pod_name_read(pod_fd, ret->name);
	ret->ready_ns = pod_file_time(pod_fd, POD_FILE_READY);
	ret->full_ns = pod_file_time(pod_fd, POD_FILE_DISK_FULL);
	ret->suspended_ns = pod_file_time(pod_fd, POD_FILE_SUSPENDED);
	int r = read_ips(pod_fd, ret);
	if (r == 0)
		r = read_apps(pod_fd, ret);
	ret->started_ns = pod_file_time(pod_fd, POD_FILE_PID);
	ret->created_ns = pod_file_time(pod_fd, POD_FILE_CREATED);
	if (ret->created_ns == 0)
		ret->created_ns = pod_file_time(pod_fd, POD_FILE_MANIFEST);
	if (fstat(pod_fd, &st) < 0)
		return -errno;
	ret->moved_ns = ns_of(&st.st_ctim);
	ret->changed_ns = ns_of(&st.st_mtim);
	ret->now_ns = clock_realtime_ns();
	return r;
}
