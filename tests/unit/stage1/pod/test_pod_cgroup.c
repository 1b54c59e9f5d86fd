/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With the control groups of this host, whatever versions it has, and real processes. Needs root
 * and a tree that can be written.
 */
#include "stage1/pod/pod_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/cgroup/cgroup_file.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/random.h"
#include "lib/wire/isolators.h"
#include "stage1/pod/device_filter.h"
#include "stage1/pod/pod_limits.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/support/trace.h"
#include "tests/unit/stage1/pod/groups.h"

static void test_life(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT, again = POD_CGROUP_INIT;
	make_groups(&g);
	assert_true(count_groups(&g) > 0);
	pid_t pid = start_in_groups(&g, NULL);
	assert_true(count_mentions(pid, "") > 0);
	assert_int_equal(count_mentions(getpid(), ""), 0);
	assert_int_equal(pod_cgroup_open(uuid.text, "", &again, &e), 0);
	assert_int_equal(count_groups(&again), count_groups(&g));
	assert_int_equal(pod_cgroup_is_v1(&again), pod_cgroup_is_v1(&g));
	assert_int_equal(pod_cgroup_kill(uuid.text, "", &e), 0);
	assert_int_equal(status_of(pid), SIGKILL);
	assert_int_equal(pod_cgroup_remove(uuid.text, "", &e), 0);
	pod_cgroup_deinit(&again);
	assert_int_equal(pod_cgroup_open(uuid.text, "", &again, &e), 0);
	assert_int_equal(count_groups(&again), 0);
	assert_int_equal(pod_cgroup_kill(uuid.text, "", &e), 0);
	assert_int_equal(pod_cgroup_remove(uuid.text, "", &e), 0);
}

/* A program that is started in a group is in there from the beginning, and is limited. */
static void test_spawn(void **state)
{
	static char cat[] = "cat", file[] = "/proc/self/cgroup";
	static char *const argv[] = { cat, file, NULL };
	const struct cgroup_limits limits = { .memory_max = 64 << 20,
					      .cpu_weight = 100,
					      .pids_max = 5 };
	(void)state;
	struct err e = ERR_INIT;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	struct spawn_cgroups groups = SPAWN_CGROUPS_NONE;
	char text[4096], place[64];
	size_t len, n = 0;
	pid_t pid;
	int ends[2];
	make_groups(&g);
	assert_int_equal(pod_limits_open(&g, &groups, &e), 0);
	assert_int_equal(groups.n + (groups.dir >= 0), count_groups(&g));
	assert_true(pod_limits_set(&g, POD_LIMITS_OF_MACHINE, &limits, &e) >= 0);
	assert_false(pod_limits_killed(&g));
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	struct spawn_plan plan = { .program = "/bin/cat", .argv = argv, .cgroups = &groups };
	assert_int_equal(spawn_plan_fd(&plan, ends[1], STDOUT_FILENO), 0);
	assert_int_equal(spawn(&plan, &pid, NULL), 0);
	fd_close(ends[1]);
	assert_int_equal(fd_read_full(ends[0], text, sizeof(text) - 1, &len), 0);
	text[len] = '\0';
	fd_close(ends[0]);
	assert_int_equal(status_of(pid), 0);
	snprintf(place, sizeof(place), ":/husk/%s\n", uuid.text);
	for (const char *at = text; (at = strstr(at, place)); at++)
		n++;
	assert_int_equal(n, count_groups(&g));
	pod_limits_close(&groups);
	groups.dir = ends[0]; /* closed, or no group: the program does not start elsewhere */
	assert_true(spawn(&plan, &pid, NULL) < 0);
}

/* Limits of a pod that runs, found by its UUID; where a controller is missing, that is said. */
static void test_update(void **state)
{
	const struct cgroup_limits pids = { .pids_max = 7 }, less = { .memory_max = 4096 };
	(void)state;
	struct err e = ERR_INIT;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	make_groups(&g);
	pid_t pid = start_in_groups(&g, NULL);
	int dir = g.fds[g.fds[CGROUP_PIDS] >= 0 ? CGROUP_PIDS : CGROUP_UNIFIED];
	int r = pod_limits_update(uuid.text, POD_LIMITS_OF_PROGRAMS, 1U << ISOLATOR_PIDS, &pids,
				  &e);
	if (faccessat(dir, "pids.max", F_OK, 0) == 0) {
		assert_int_equal(r, 0);
		assert_int_equal(cgroup_file_number(dir, "pids.max"), 7);
	} else {
		assert_int_equal(r, -EOPNOTSUPP);
	}
	/* Not even a kernel stack fits; and nobody dies for it. */
	r = pod_limits_update(uuid.text, POD_LIMITS_OF_PROGRAMS, 1U << ISOLATOR_MEMORY, &less, &e);
	assert_true(r == -EBUSY || r == -EOPNOTSUPP);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	assert_int_equal(pod_cgroup_kill(uuid.text, "", &e), 0);
	assert_int_equal(status_of(pid), SIGKILL);
	assert_int_equal(pod_cgroup_remove(uuid.text, "", &e), 0);
	assert_int_equal(
		pod_limits_update(uuid.text, POD_LIMITS_OF_MACHINE, 1U << ISOLATOR_CPU, &pids, &e),
		-ENOENT);
	assert_non_null(strstr(e.text, "it has no control group on this host"));
}

static const char *v2_mount(void)
{
	static struct cgroup_mounts mounts;
	size_t len;
	cleanup_free char *text = NULL;
	assert_int_equal(file_read_path("/proc/self/mountinfo", 1 << 22, &text, &len), 0);
	cgroup_mounts_find(text, &mounts);
	return mounts.at[CGROUP_UNIFIED].path;
}

/* Whether the tree of version 2 has controllers that its top could enable, unlike a container's. */
static bool has_controllers(void)
{
	char name[CGROUP_PATH_MAX + 40];
	size_t len;
	cleanup_free char *text = NULL;
	snprintf(name, sizeof(name), "%s/cgroup.subtree_control", v2_mount());
	return file_read_path(name, 4096, &text, &len) == 0 && strstr(text, "memory") &&
	       strstr(text, "pids");
}

/* On a tree with controllers, and on hierarchies, the limits can be set. */
static void test_limits(void **state)
{
	(void)state;
	struct stat st;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	make_groups(&g);
	if (!pod_cgroup_is_v1(&g) && !has_controllers())
		return;
	int pids = pod_cgroup_is_v1(&g) ? g.fds[CGROUP_PIDS] : g.fds[CGROUP_UNIFIED];
	int memory = pod_cgroup_is_v1(&g) ? g.fds[CGROUP_MEMORY] : g.fds[CGROUP_UNIFIED];
	assert_int_equal(fstatat(pids, "pids.max", &st, 0), 0);
	assert_int_equal(fstatat(memory,
				 pod_cgroup_is_v1(&g) ? "memory.limit_in_bytes" : "memory.max", &st,
				 0),
			 0);
}

/* Groups that the pod has made, deep and wide, with processes in them. */
static void test_children(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	make_groups(&g);
	pid_t pids[CGROUP_KINDS] = { 0 };
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		if (g.fds[kind] < 0)
			continue;
		assert_int_equal(mkdirat(g.fds[kind], "1", 0755) & mkdirat(g.fds[kind], "2", 0755),
				 0);
		assert_int_equal(mkdirat(g.fds[kind], "2/3", 0755), 0);
		assert_int_equal(mkdirat(g.fds[kind], "2/3/4", 0755), 0);
		pids[kind] = fork();
		if (pids[kind] == 0)
			for (;;)
				pause();
		char text[16];
		snprintf(text, sizeof(text), "%d", (int)pids[kind]);
		cleanup_fd int fd = openat(g.fds[kind], "2/3/4/cgroup.procs", O_WRONLY);
		assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	}
	assert_int_equal(pod_cgroup_kill(uuid.text, "", &e), 0);
	for (int kind = 0; kind < CGROUP_KINDS; kind++)
		if (pids[kind] > 0)
			assert_int_equal(status_of(pids[kind]), SIGKILL);
	assert_int_equal(pod_cgroup_remove(uuid.text, "", &e), 0);
}

/* A group that empties while it is removed. */
static void test_remove_waits(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	make_groups(&g);
	pid_t pid = fork();
	if (pid == 0) {
		enter_groups(&g, NULL);
		poll(NULL, 0, 200);
		_exit(0);
	}
	while (count_mentions(pid, "") == 0)
		sched_yield();
	assert_int_equal(pod_cgroup_remove(uuid.text, "", &e), 0);
	assert_int_equal(status_of(pid), 0);
}

/* Other pods keep their groups, and the directory of all. */
static void test_neighbour(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	struct uuid other = uuid, mine = uuid;
	other.text[0] = other.text[0] == '0' ? '1' : '0';
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT, h = POD_CGROUP_INIT;
	make_groups(&g);
	uuid = other;
	make_groups(&h);
	pid_t pid = start_in_groups(&h, NULL);
	assert_int_equal(pod_cgroup_kill(mine.text, "", &e) | pod_cgroup_remove(mine.text, "", &e),
			 0);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	assert_true(count_mentions(pid, "") > 0);
	assert_int_equal(pod_cgroup_kill(other.text, "", &e), 0);
	assert_int_equal(status_of(pid), SIGKILL);
}

/* Puts a process into the group by the directory of one kind. */
static void put(int dir, pid_t pid)
{
	char text[16];
	snprintf(text, sizeof(text), "%d", (int)pid);
	assert_int_equal(write_in(dir, "cgroup.procs", text), 0);
}

/* One that has been forked and is about to be put somewhere. */
static pid_t start_idle(void)
{
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

/*
 * Who was on the list of the group and has left it, or has ended and passed its number on, is not
 * killed: here it has gone to another pod when it is held fast. Where the kernel kills a whole
 * group it comes after that.
 */
static void test_left_in_time(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	struct uuid mine = uuid;
	int kind = CGROUP_UNIFIED, status = -1;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT, h = POD_CGROUP_INIT;
	make_groups(&g);
	uuid.text[0] = uuid.text[0] == '0' ? '1' : '0';
	make_groups(&h);
	while (g.fds[kind] < 0)
		kind++;
	pid_t pid = start_idle(), killer = fork();
	if (killer == 0) {
		trace_me();
		_exit(pod_cgroup_kill(mine.text, "", &e) == 0 ? 0 : 1);
	}
	if (kind == CGROUP_UNIFIED && faccessat(g.fds[kind], "cgroup.kill", F_OK, 0) == 0) {
		assert_true(trace_until(killer, SYS_write, &status));
		assert_true(trace_until(killer, SYS_close, &status)); /* that has been written */
	}
	put(g.fds[kind], pid);
	assert_true(trace_until(killer, SYS_pidfd_open, &status));
	put(h.fds[kind], pid);
	trace_end(killer);
	assert_int_equal(status_of(killer), 0);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	assert_int_equal(pod_cgroup_kill(uuid.text, "", &e), 0);
	assert_int_equal(status_of(pid), SIGKILL);
	assert_int_equal(pod_cgroup_remove(mine.text, "", &e), 0);
}

/* An agent in the group @child, which puts an app beside itself. */
static int manage(const struct pod_cgroup *g, const char *child)
{
	int group = g->fds[CGROUP_UNIFIED];
	if (enter_groups(g, child) != 0 || mkdirat(group, "1", 0755) < 0)
		return 1;
	if (!pod_cgroup_is_v1(g) && has_controllers() && write_in(group, "1/pids.max", "7") < 0)
		return 2;
	return write_in(group, "1/cgroup.procs", "0") < 0 ? 3 : 0;
}

/* The child of a group leaves it to others, with its controllers. */
static void test_make_child(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	make_groups(&g);
	if (g.fds[CGROUP_UNIFIED] < 0)
		return;
	cleanup_fd int child = pod_cgroup_make_child(&g, "agent", &e);
	assert_true(child >= 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(manage(&g, "agent"));
	assert_int_equal(status_of(pid), 0);
	assert_int_equal(pod_cgroup_remove(uuid.text, "", &e), 0);
	assert_int_equal(pod_cgroup_make_child(&g, "agent", &e), -ENOENT);
	assert_non_null(strstr(e.text, "cannot make a group \"agent\""));
}

/* --- devices --- */

/* In the group: what errno opening a new node of the device yields, 0: it was opened. */
static int open_node(const char *dir, mode_t type, unsigned major, unsigned minor)
{
	char path[300];
	snprintf(path, sizeof(path), "%s/node", dir);
	unlink(path);
	if (mknod(path, type | 0600, makedev(major, minor)) < 0)
		return 255;
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? errno : 0;
}

/* A child in the group opens the node; what open_node() yields, 254 if it could not even try. */
static int try_node(const struct pod_cgroup *g, const char *dir, mode_t type, unsigned major,
		    unsigned minor)
{
	pid_t pid = fork();
	if (pid == 0) {
		if (enter_groups(g, NULL) != 0 || unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("tmpfs", dir, "tmpfs", 0, NULL) < 0)
			_exit(254);
		_exit(open_node(dir, type, major, minor));
	}
	int status = status_of(pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect_filtered(const struct pod_cgroup *g, const char *dir)
{
	assert_int_equal(try_node(g, dir, S_IFCHR, 1, 3), 0);      /* null */
	assert_int_equal(try_node(g, dir, S_IFCHR, 1, 9), 0);      /* urandom */
	assert_int_equal(try_node(g, dir, S_IFCHR, 5, 2), ENOENT); /* ptmx, without devpts */
	assert_int_equal(try_node(g, dir, S_IFCHR, 1, 11), EPERM); /* kmsg */
	assert_int_equal(try_node(g, dir, S_IFCHR, 1, 1), EPERM);  /* mem */
	assert_int_equal(try_node(g, dir, S_IFBLK, 1, 3), EPERM);
	assert_int_equal(try_node(g, dir, S_IFBLK, 7, 0), EPERM); /* loop0 */
	assert_int_equal(open_node(dir, S_IFCHR, 1, 11), 0);      /* it is the group's matter */
}

static void test_devices(void **state)
{
	struct err e = ERR_INIT;
	const char *dir = fixture_path(state);
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	make_groups(&g);
	assert_int_equal(try_node(&g, dir, S_IFCHR, 1, 11), 0);
	if (pod_cgroup_filter_devices(&g, &e) != 0)
		fail_msg("%s", e.text);
	expect_filtered(&g, dir);
	assert_int_equal(pod_cgroup_filter_devices(&g, &e), 0);
	expect_filtered(&g, dir);
}

/* Where there is no tree of version 2, the hierarchy of version 1 does it. */
static void test_devices_v1(void **state)
{
	struct err e = ERR_INIT;
	const char *dir = fixture_path(state);
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	make_groups(&g);
	fd_replace(&g.fds[CGROUP_UNIFIED], -EBADF);
	if (g.fds[CGROUP_DEVICES] < 0) {
		assert_int_equal(pod_cgroup_filter_devices(&g, &e), -ENODEV);
		return;
	}
	assert_int_equal(pod_cgroup_filter_devices(&g, &e), 0);
	expect_filtered(&g, dir);
}

/* Lets the group's processes open every device, as far as it is this filter's matter. */
static int attach_open_filter(int group)
{
	const struct bpf_insn program[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr load, attach;
	memset(&load, 0, sizeof(load));
	memset(&attach, 0, sizeof(attach));
	load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	load.insns = (uintptr_t)program;
	load.insn_cnt = ARRAY_SIZE(program);
	load.license = (uintptr_t) "Apache-2.0";
	cleanup_fd int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));
	attach.target_fd = (uint32_t)group;
	attach.attach_bpf_fd = (uint32_t)fd;
	attach.attach_type = BPF_CGROUP_DEVICE;
	attach.attach_flags = BPF_F_ALLOW_MULTI;
	return fd < 0 || syscall(SYS_bpf, BPF_PROG_ATTACH, &attach, sizeof(attach)) < 0 ? -errno
											: 0;
}

/* A group below may have a filter of its own, as systemd wants it, beside the pod's. */
static void test_filter_below(void **state)
{
	const char *dir = fixture_path(state);
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	struct pod_cgroup below = POD_CGROUP_INIT;
	make_groups(&g);
	int top = g.fds[CGROUP_UNIFIED];
	if (top < 0)
		return;
	if (device_filter_attach(top) < 0)
		return; /* it is the matter of version 1, then */
	assert_int_equal(mkdirat(top, "below", 0755), 0);
	cleanup_fd int fd = openat(top, "below", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(attach_open_filter(fd), 0);
	below.fds[CGROUP_UNIFIED] = fd;
	expect_filtered(&below, dir);
}

/* --- who may not, and what is wrong --- */

/* Not root, and nothing is delegated: no group, and why. */
static void test_denied(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		struct err e = ERR_INIT;
		struct pod_cgroup g;
		if (become_nobody() != 0)
			_exit(2);
		int r = pod_cgroup_make(uuid.text, "", &g, &e);
		_exit(r == POD_CGROUP_E_NONE && (strstr(e.text, "Delegate=yes") ||
						 strstr(e.text, "(mount cgroup2)"))
			      ? 0
			      : 3);
	}
	assert_int_equal(status_of(pid), 0);
}

static int in_delegated(const char *group)
{
	struct err e = ERR_INIT;
	struct pod_cgroup g = POD_CGROUP_INIT;
	char procs[200];
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", group);
	int fd = open(procs, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || fd_write_all(fd, "0", 1) < 0 || become_nobody() != 0)
		return 2;
	fd_close(fd);
	if (pod_cgroup_make(uuid.text, "", &g, &e) != 0 || count_groups(&g) != 1)
		return 3;
	fd_close(pod_cgroup_make_child(&g, "agent", &e));
	pid_t pid = start_in_groups(&g, "agent");
	if (count_mentions(pid, "/agent") != 1 || pod_cgroup_is_v1(&g))
		return 4;
	pod_cgroup_deinit(&g);
	if (pod_cgroup_kill(uuid.text, "", &e) != 0 || status_of(pid) != SIGKILL)
		return 5;
	return pod_cgroup_remove(uuid.text, "", &e) == 0 ? 0 : 6;
}

/* A user's process in a group that is theirs has its pods in there. */
static void test_delegated(void **state)
{
	(void)state;
	static const char *const files[] = { ".", "cgroup.procs", "cgroup.subtree_control" };
	char group[100], path[200];
	if (!*v2_mount())
		return;
	snprintf(group, sizeof(group), "%.80s/t%d", v2_mount(), (int)getpid());
	assert_int_equal(mkdir(group, 0755), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", group, files[i]);
		assert_int_equal(chown(path, NOBODY, NOBODY), 0);
	}
	pid_t pid = fork();
	if (pid == 0)
		_exit(in_delegated(group));
	assert_int_equal(status_of(pid), 0);
	assert_int_equal(rmdir(group), 0); /* nothing is left in there, not even "husk" */
}

/* As another user: finds the group of the pod, which is his, or none. */
static int find_his(bool is_there)
{
	struct err e = ERR_INIT;
	struct pod_cgroup g = POD_CGROUP_INIT;
	struct stat st;
	if (become_nobody() != 0 || pod_cgroup_open(uuid.text, "", &g, &e) != 0)
		return 2;
	if (!is_there)
		return count_groups(&g) == 0 ? 0 : 3;
	return count_groups(&g) == 1 && fstat(g.fds[CGROUP_UNIFIED], &st) == 0 &&
			       st.st_uid == NOBODY
		       ? 0
		       : 4;
}

static void make_below(const char *top, const char *name, const char *child, uid_t owner)
{
	char path[300];
	snprintf(path, sizeof(path), "%s/%s%s", top, name, child);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(chown(path, owner, owner), 0);
}

/* Whoever has a group can make one in there that has the pod's name. */
static void test_of_another_user(void **state)
{
	(void)state;
	static const char *const names[] = { "a", "b", "c" };
	char top[100], below[100], path[300];
	if (!*v2_mount())
		return;
	snprintf(top, sizeof(top), "%.80s/t%d", v2_mount(), (int)getpid());
	snprintf(below, sizeof(below), "/husk/%s", uuid.text);
	assert_int_equal(mkdir(top, 0755), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		uid_t owner = i == 1 ? NOBODY : 0;
		make_below(top, names[i], "", owner);
		make_below(top, names[i], "/husk", owner);
		if (i != 1)
			make_below(top, names[i], below, owner);
	}
	pid_t pid = fork();
	if (pid == 0)
		_exit(find_his(false));
	assert_int_equal(status_of(pid), 0);
	make_below(top, names[1], below, NOBODY);
	pid = fork();
	if (pid == 0)
		_exit(find_his(true));
	assert_int_equal(status_of(pid), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		static const char *const left[] = { "/husk", "" };
		snprintf(path, sizeof(path), "%s/%s%s", top, names[i], below);
		assert_int_equal(rmdir(path), 0);
		for (size_t k = 0; k < ARRAY_SIZE(left); k++) {
			snprintf(path, sizeof(path), "%s/%s%s", top, names[i], left[k]);
			assert_int_equal(rmdir(path), 0);
		}
	}
	assert_int_equal(rmdir(top), 0);
}

/* With something else mounted on all control groups, or with them read-only. */
static int make_elsewhere(bool read_only)
{
	static struct cgroup_mounts mounts;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	struct err e = ERR_INIT;
	struct pod_cgroup g = POD_CGROUP_INIT;
	size_t len;
	cleanup_free char *text = NULL;
	if (file_read_path("/proc/self/mountinfo", 1 << 22, &text, &len) < 0 ||
	    unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 2;
	cgroup_mounts_find(text, &mounts);
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		const char *path = mounts.at[kind].path;
		if (path[0] && (read_only ? mount_setattr(AT_FDCWD, path, 0, &attr, sizeof(attr))
					  : mount("none", path, "tmpfs", 0, NULL)) < 0)
			return 3;
	}
	if (pod_cgroup_make(uuid.text, "", &g, &e) != POD_CGROUP_E_NONE)
		return 4;
	return strstr(e.text, read_only ? "Read-only file system"
					: "no control groups are mounted that could be used")
		       ? 0
		       : 5;
}

/* A directory is no group because one is mounted there, below what hides it. */
static void test_hidden(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (pid == 0)
		_exit(make_elsewhere(false));
	assert_int_equal(status_of(pid), 0);
}

/* As containers have them: a pod goes without. */
static void test_read_only(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (pid == 0)
		_exit(make_elsewhere(true));
	assert_int_equal(status_of(pid), 0);
}

static void test_no_uuid(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	struct pod_cgroup g;
	static const char *const bad[] = { "", "..", "husk", "../../memory" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(pod_cgroup_make(bad[i], "", &g, &e), -EINVAL);
		assert_int_equal(pod_cgroup_open(bad[i], "", &g, &e), -EINVAL);
		assert_int_equal(pod_cgroup_kill(bad[i], "", &e), -EINVAL);
		assert_int_equal(pod_cgroup_remove(bad[i], "", &e), -EINVAL);
	}
}

/* Groups in groups, more than descriptors, beside others. */
static void test_deep(void **state)
{
	enum {
		DEEP = 200,
		WIDE = 3
	};
	(void)state;
	struct err e = ERR_INIT;
	struct rlimit was, few = { 64, 64 };
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	make_groups(&g);
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		if (g.fds[kind] < 0)
			continue;
		int dir = openat(g.fds[kind], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		for (int i = 0; i < DEEP; i++) {
			for (int k = 0; k < WIDE; k++) {
				char name[16];
				snprintf(name, sizeof(name), "g%d", k);
				assert_int_equal(mkdirat(dir, name, 0755), 0);
			}
			fd_replace(&dir, openat(dir, "g1", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
			assert_true(dir >= 0);
		}
		fd_close(dir);
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few.rlim_max = was.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	if (pod_cgroup_remove(uuid.text, "", &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

static int make_and_remove(void *ctx)
{
	struct pod_cgroup g = POD_CGROUP_INIT;
	struct err e;
	(void)ctx;
	int r = pod_cgroup_make(uuid.text, "", &g, &e);
	pod_cgroup_deinit(&g);
	int n = pod_cgroup_kill(uuid.text, "", &e);
	int m = pod_cgroup_remove(uuid.text, "", &e);
	return r != 0 ? r : n != 0 ? n : m;
}

static void test_no_memory(void **state)
{
	(void)state;
	for_each_failing_alloc_lenient(make_and_remove, NULL);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, groups_begin, groups_end)

int main(void)
{
	if (!can_make()) {
		puts("SKIP: needs root, and control groups that can be written");
		return 77;
	}
	const struct CMUnitTest tests[] = {
		TEST(test_life),
		TEST(test_spawn),
		TEST(test_limits),
		TEST(test_children),
		TEST(test_remove_waits),
		TEST(test_neighbour),
		TEST(test_make_child),
		TEST(test_devices),
		TEST(test_devices_v1),
		TEST(test_denied),
		TEST(test_delegated),
		TEST(test_no_uuid),
		TEST(test_deep),
		TEST(test_no_memory),
		TEST(test_left_in_time),
		TEST(test_filter_below),
		TEST(test_of_another_user),
		TEST(test_hidden),
		TEST(test_read_only),
		TEST(test_update),
		TEST(test_parent),
		TEST(test_own_parent),
		TEST(test_own_parent_in_all),
		TEST(test_own_parent_of_two),
		TEST(test_parent_in_some),
		TEST(test_parent_of_root),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
