/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/cgroup_v1.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest-agent/log.h"
#include "lib/cgroup/cgroup_counts.h"
#include "lib/cgroup/cgroup_file.h"
#include "lib/cgroup/cgroup_limits.h"
#include "lib/os/fd.h"

#define PATH_LEN_MAX (CGROUP_V1_DIR_MAX + 80) /* "/cpuacct/NUMBER/" and the longest file name */

static const char *const hierarchies[] = { "memory", "cpu", "cpuacct", "pids", "blkio" };

struct path {
	char text[PATH_LEN_MAX];
};

static struct path group_path(const char *dir, const char *hierarchy, unsigned number)
{
	struct path p;
	snprintf(p.text, sizeof(p.text), "%s/%s/%u", dir, hierarchy, number);
	return p;
}

static struct path file_path(const char *dir, const char *hierarchy, unsigned number,
			     const char *file)
{
	struct path p;
	snprintf(p.text, sizeof(p.text), "%s/%s/%u/%s", dir, hierarchy, number, file);
	return p;
}

static bool has_hierarchy(const char *dir, const char *hierarchy)
{
	struct path p;
	snprintf(p.text, sizeof(p.text), "%s/%s", dir, hierarchy);
	return access(p.text, F_OK) == 0;
}

bool cgroup_v1_is_there(const char *dir)
{
	for (size_t i = 0; i < ARRAY_SIZE(hierarchies); i++)
		if (has_hierarchy(dir, hierarchies[i]))
			return true;
	return false;
}

/* Where two names are one hierarchy, the second finds the group made. */
static int make_group(const char *dir, const char *hierarchy, unsigned number, struct fault *f)
{
	if (mkdir(group_path(dir, hierarchy, number).text, 0755) == 0 || errno == EEXIST ||
	    (errno == ENOENT && !has_hierarchy(dir, hierarchy)))
		return 0;
	return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot create control group %u of \"%s\"",
			 number, hierarchy);
}

/* Which may be missing: what is to be limited there then is refused. */
static int open_group(const char *dir, const char *hierarchy, unsigned number)
{
	return open(group_path(dir, hierarchy, number).text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int cgroup_v1_change(const char *dir, unsigned number, const struct cgroup_limits *from,
		     const struct cgroup_limits *to, struct fault *f)
{
	struct err e = ERR_INIT;
	cleanup_fd int memory = open_group(dir, "memory", number);
	cleanup_fd int cpu = open_group(dir, "cpu", number);
	cleanup_fd int pids = open_group(dir, "pids", number);
	const struct cgroup_controllers c = { .memory = { memory, true },
					      .cpu = { cpu, true },
					      .pids = { pids, true },
					      .cpuacct.dir = -EBADF,
					      .io.dir = -EBADF };
	return cgroup_limits_change(&c, from, to, &e) < 0 ? fault_err(f, &e) : 0;
}

int cgroup_v1_make(const char *dir, unsigned number, const struct cgroup_limits *limits,
		   struct fault *f)
{
	static const struct cgroup_limits none = { 0 };
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(hierarchies); i++)
		r = make_group(dir, hierarchies[i], number, f);
	if (r == 0)
		r = cgroup_v1_change(dir, number, &none, limits, f);
	if (r != 0)
		cgroup_v1_remove(dir, number);
	return r;
}

static int64_t number_in(const char *dir, const char *hierarchy, unsigned number, const char *file)
{
	return cgroup_file_number(AT_FDCWD, file_path(dir, hierarchy, number, file).text);
}

int cgroup_v1_enter(const char *dir, unsigned number, struct fault *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(hierarchies); i++) {
		/* Of one thread: to move a whole process takes the kernel some milliseconds. */
		struct path tasks = file_path(dir, hierarchies[i], number, "tasks");
		int r = cgroup_file_write(AT_FDCWD, tasks.text, "0");
		if (r < 0 && (r != -ENOENT || has_hierarchy(dir, hierarchies[i])))
			return fault_sys(f, AGENT_E_INTERNAL, r,
					 "cannot enter control group %u of \"%s\"", number,
					 hierarchies[i]);
	}
	int64_t max = number_in(dir, "pids", number, "pids.max");
	if (max >= 0 && number_in(dir, "pids", number, "pids.current") > max)
		return fault_set(f, AGENT_E_LIMIT, "the app has as many processes as it may have");
	return 0;
}

bool cgroup_v1_had_oom_kill(const char *dir, unsigned number)
{
	cleanup_fd int group = open_group(dir, "memory", number);
	const struct cgroup_controller memory = { group, true };
	return cgroup_oom_kills(&memory) > 0;
}

void cgroup_v1_stats(const char *dir, unsigned number, struct agent_app_stats *ret)
{
	cleanup_fd int memory = open_group(dir, "memory", number);
	cleanup_fd int cpu = open_group(dir, "cpu", number);
	cleanup_fd int pids = open_group(dir, "pids", number);
	cleanup_fd int cpuacct = open_group(dir, "cpuacct", number);
	cleanup_fd int io = open_group(dir, "blkio", number);
	const struct cgroup_controllers c = { .memory = { memory, true },
					      .cpu = { cpu, true },
					      .pids = { pids, true },
					      .cpuacct = { cpuacct, true },
					      .io = { io, true } };
	cgroup_counts_read(&c, ret);
}

int cgroup_v1_open(const char *dir, unsigned number)
{
	int fd = -EBADF;
	for (size_t i = 0; fd < 0 && i < ARRAY_SIZE(hierarchies); i++)
		fd = open_group(dir, hierarchies[i], number);
	return fd < 0 ? -errno : fd;
}

void cgroup_v1_remove(const char *dir, unsigned number)
{
	for (size_t i = 0; i < ARRAY_SIZE(hierarchies); i++)
		if (rmdir(group_path(dir, hierarchies[i], number).text) < 0 && errno != ENOENT)
			log_error("control group %u of \"%s\": errno %d", number, hierarchies[i],
				  errno);
}
