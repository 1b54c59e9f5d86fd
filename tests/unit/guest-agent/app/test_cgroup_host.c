/* SPDX-License-Identifier: Apache-2.0 */
/* check-style allows mirror: cgroup.c and cgroup_v1.c with the kernel, below the whole agent */
/*
 * The real agent with control groups of this host: of version 1, where it has hierarchies with
 * controllers, else of version 2; and of version 2 without controllers, where the host has a tree
 * of that kind, or one can be mounted. Needs root.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest-agent/app/execute.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/guest-agent/client.h"

#define MIB INT64_C(1048576)

static const char *const hierarchies[] = { "memory", "cpu", "cpuacct", "pids", "blkio" };
static char v2_root[64]; /* of the tree of version 2; empty: none */
static char mounted[64]; /* the same, if the test has mounted it */
static bool is_v1;       /* the controllers are in hierarchies of version 1 */
static char dir[256];    /* the agent's --cgroup-dir */

static bool have(const char *in, const char *name, const char *file)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s/%s", in, name, file);
	return access(path, F_OK) == 0;
}

static void look_around(void)
{
	static const char top[] = "/sys/fs/cgroup";
	is_v1 = have(top, "memory", "tasks") && have(top, "pids", "tasks");
	if (have(top, ".", "cgroup.controllers"))
		snprintf(v2_root, sizeof(v2_root), "%s", top);
	else if (have(top, "unified", "cgroup.controllers"))
		snprintf(v2_root, sizeof(v2_root), "%s/unified", top);
}

/* A tree of version 2 beside hierarchies of version 1 that are all that the host has mounted. */
static void mount_v2(void)
{
	snprintf(mounted, sizeof(mounted), "/tmp/husk-test-unified-%d", (int)getpid());
	if (mkdir(mounted, 0755) == 0 && mount("cgroup2", mounted, "cgroup2", 0, NULL) == 0) {
		memcpy(v2_root, mounted, sizeof(v2_root));
		return;
	}
	rmdir(mounted);
	mounted[0] = '\0';
}

static void unmount_v2(void)
{
	if (*mounted) {
		umount2(mounted, MNT_DETACH);
		rmdir(mounted);
	}
}

static const char *group_in(const char *hierarchy)
{
	static char path[256];
	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/husk-test-%d", hierarchy, (int)getpid());
	return path;
}

static int make_v1(void)
{
	char link[600];
	snprintf(dir, sizeof(dir), "/tmp/husk-test-cgroups-%d", (int)getpid());
	if (mkdir(dir, 0755) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(hierarchies); i++) {
		const char *group = group_in(hierarchies[i]);
		snprintf(link, sizeof(link), "%s/%s", dir, hierarchies[i]);
		if (have("/sys/fs/cgroup", hierarchies[i], "tasks") &&
		    ((mkdir(group, 0755) < 0 && errno != EEXIST) || symlink(group, link) < 0))
			return -1;
	}
	return 0;
}

static int write_to(const char *file, const char *text)
{
	cleanup_fd int fd = open(file, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/*
 * Whether version 2 has controllers for the groups of pods. That is the host's matter; the test
 * does its best. A container that has processes in its top can have none.
 */
static bool has_v2_controllers(void)
{
	static const char *const controllers[] = { "+memory", "+pids", "+cpu", "+io" };
	char file[128], text[256] = "";
	snprintf(file, sizeof(file), "%s/cgroup.subtree_control", v2_root);
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
		write_to(file, controllers[i]);
	cleanup_fd int fd = open(file, O_RDONLY | O_CLOEXEC);
	size_t len;
	return fd >= 0 && fd_read_full(fd, text, sizeof(text) - 1, &len) == 0 &&
	       strstr(text, "memory") && strstr(text, "pids") && strstr(text, "cpu");
}

static int make_v2(void)
{
	snprintf(dir, sizeof(dir), "%s/husk-test-%d", v2_root, (int)getpid());
	return mkdir(dir, 0755);
}

/* The processes of the agent take a moment to be gone. */
static int remove_group(const char *path)
{
	int64_t deadline = clock_monotonic_ns() + 120 * NS_PER_SEC;
	int r;
	while ((r = rmdir(path)) < 0 && errno == EBUSY && clock_monotonic_ns() < deadline)
		/* check-style allows sleep: nothing tells when the last process is gone */
		usleep(1000);
	return r < 0 && errno != ENOENT ? -1 : 0;
}

/* Groups that the agent has left when it was killed, and nothing else. */
static void remove_numbered(const char *path)
{
	char child[300];
	for (unsigned i = 1; i <= 9; i++) {
		snprintf(child, sizeof(child), "%s/%u", path, i);
		remove_group(child);
	}
}

static int remove_v1(void)
{
	char link[600];
	int r = 0;
	for (size_t i = 0; i < ARRAY_SIZE(hierarchies); i++) {
		snprintf(link, sizeof(link), "%s/%s", dir, hierarchies[i]);
		unlink(link);
		remove_numbered(group_in(hierarchies[i]));
		r |= remove_group(group_in(hierarchies[i]));
	}
	return r | rmdir(dir);
}

static int remove_v2(void)
{
	remove_numbered(dir);
	return remove_group(dir);
}

static int begin_grouped(void **state)
{
	if ((is_v1 ? make_v1() : make_v2()) < 0)
		return -1;
	cgroup_dir = dir;
	return begin(state);
}

static int end_grouped(void **state)
{
	int r = end(state);
	return r | (is_v1 ? remove_v1() : remove_v2());
}

static int begin_bare(void **state)
{
	if (make_v2() < 0)
		return -1;
	cgroup_dir = dir;
	return begin(state);
}

static int end_bare(void **state)
{
	return end(state) | remove_v2();
}

/* An app that says "ready" and waits. */
static void start_waiting(const char *app, struct how how)
{
	how.argv[0] = "/bin/app";
	how.argv[1] = "wait";
	add_and_start(app, how);
	cleanup_fd int out = attach(app, AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(out), "ready\n");
}

/* Removes @app, whose group may live as long as its namespace. */
static void remove_app(const char *app)
{
	assert_int_equal(call(&host, AGENT_APP_REMOVE, ref(app)), 0);
}

static bool is_group(unsigned number)
{
	char path[300];
	snprintf(path, sizeof(path), "%s/%u", dir, number);
	bool found = access(path, F_OK) == 0;
	for (size_t i = 0; is_v1 && i < ARRAY_SIZE(hierarchies); i++) {
		snprintf(path, sizeof(path), "%s/%s/%u", dir, hierarchies[i], number);
		found |= access(path, F_OK) == 0;
	}
	return found;
}

static void test_processes(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "fill" }, .pids_max = 5 });
	cleanup_fd int out = attach("a", AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(out), "4 children EAGAIN\n");
	struct agent_app_stats m = stats_of("a");
	assert_int_equal(m.pids, 5);
	assert_int_equal(m.pids_limit, 5);
	/* No further process: one of version 1 finds that out itself. */
	int n = exec_in(&host, "a", (struct how){ .argv = { "/bin/app", "exit", "0" } });
	if (is_v1) {
		assert_int_equal(wait_exec(&host, n)->code, EXECUTE_EXIT_CODE);
		assert_string_equal(host.exec_exit.message,
				    "the app has as many processes as it may have");
	} else {
		assert_int_equal(n, AGENT_E_LIMIT);
	}
	/* The group of another app is another one. */
	start_waiting("b", (struct how){ .pids_max = 2 });
	assert_int_equal(stats_of("b").pids, 1);
	n = exec_in(&host, "b", (struct how){ .argv = { "/bin/app", "fill" } });
	cleanup_fd int more = attach_to("b", n, AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(more), "0 children EAGAIN\n");
	assert_int_equal(stats_of("b").pids, 2);
	assert_true(is_group(1) && is_group(2));
}

static void test_memory(void **state)
{
	(void)state;
	struct how how = { .argv = { "/bin/app", "memory", "8388608", "wait" },
			   .memory_max = 32 * MIB };
	add_and_start("a", how);
	cleanup_fd int out = attach("a", AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(out), "8388608 bytes\n");
	struct agent_app_stats m = stats_of("a");
	assert_int_equal(m.memory_limit, 32 * MIB);
	assert_true(m.memory_bytes >= 8 * MIB && m.memory_bytes <= 32 * MIB);
	assert_true(m.memory_peak_bytes == -1 || m.memory_peak_bytes >= m.memory_bytes / 2);
	assert_int_equal(m.oom_kills, 0);
	how.argv[2] = "268435456";
	add_and_start("b", how);
	const struct agent_app_exited *x = wait_exit(&host, "b");
	assert_int_equal(x->signal, SIGKILL);
	assert_true(x->oom);
	assert_int_equal(stats_of("a").oom_kills, 0);
}

static int update(struct agent_app_update m)
{
	struct json_object *body;
	str_copy(m.app, sizeof(m.app), "a");
	assert_int_equal(agent_app_update_encode(&m, &body), 0);
	return call(&host, AGENT_APP_UPDATE, body);
}

/* Limits of an app that runs, as the kernel takes them. */
static void test_updated(void **state)
{
	(void)state;
	struct how how = { .argv = { "/bin/app", "memory", "8388608", "wait" } };
	add_and_start("a", how);
	cleanup_fd int out = attach("a", AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(out), "8388608 bytes\n");
	assert_int_equal(update((struct agent_app_update){ .memory_max = 32 * MIB,
							   .cpu_millis = 500,
							   .cpu_weight = 50,
							   .pids_max = 5 }),
			 0);
	assert_int_equal(stats_of("a").memory_limit, 32 * MIB);
	assert_int_equal(stats_of("a").pids_limit, 5);
	/* Below what it uses: nothing is changed, and it lives. */
	assert_int_equal(update((struct agent_app_update){ .memory_max = 4 * MIB, .pids_max = 7 }),
			 AGENT_E_STATE);
	assert_int_equal(stats_of("a").memory_limit, 32 * MIB);
	assert_int_equal(stats_of("a").pids_limit, 5);
	assert_int_equal(update((struct agent_app_update){ 0 }), 0);
	assert_int_equal(stats_of("a").memory_limit, -1);
	assert_int_equal(stats_of("a").pids_limit, -1);
	assert_int_equal(stats_of("a").oom_kills, 0);
}

static void test_counted(void **state)
{
	(void)state;
	start_waiting("a", (struct how){ 0 });
	int n = exec_in(&host, "a", (struct how){ .argv = { "/bin/app", "flood", "100000000" } });
	cleanup_fd int out = attach_to("a", n, AGENT_STREAM_STDOUT);
	char mem[65536];
	while (read(out, mem, sizeof(mem)) > 0)
		;
	assert_int_equal(wait_exec(&host, n)->code, 0);
	struct agent_app_stats m = stats_of("a");
	assert_true(m.cpu_usec > 0);
	assert_true(m.user_usec >= 0 && m.system_usec >= 0);
	assert_int_equal(m.throttled_usec, 0);
	assert_int_equal(m.memory_limit, -1);
	assert_int_equal(m.pids_limit, -1);
	assert_int_equal(m.pids, 1);
	assert_int_equal(m.oom_kills, 0);
}

/* A group goes with its app, so the directory of the pod is empty in the end. */
static void test_removed(void **state)
{
	(void)state;
	run("a", (struct how){ .argv = { "/bin/app", "exit", "0" }, .pids_max = 3 });
	assert_true(is_group(1));
	remove_app("a");
	for (int i = 0; is_group(1) && i < 10000; i++)
		/* check-style allows sleep: the agent does not tell when it has removed it */
		usleep(1000);
	assert_false(is_group(1));
}

/* What an app sees of its group: itself as the root of version 2, nothing of version 1. */
static void test_sight(void **state)
{
	(void)state;
	const char *out =
		run("a", (struct how){ .argv = { "/bin/app", "open", "/sys/fs/cgroup/cgroup.procs",
						 "openw", "/sys/fs/cgroup/cgroup.procs" } });
	assert_string_equal(out, is_v1 ? "/sys/fs/cgroup/cgroup.procs ENOENT\n"
					 "/sys/fs/cgroup/cgroup.procs ENOENT\n"
				       : "/sys/fs/cgroup/cgroup.procs ok\n"
					 "/sys/fs/cgroup/cgroup.procs EROFS\n");
}

/* A tree without controllers is adopted as it is: groups, but no limits. */
static void test_bare_tree(void **state)
{
	(void)state;
	char text[AGENT_TEXT_MAX + 1];
	const char *out = run(
		"a", (struct how){ .argv = { "/bin/app", "read", "/sys/fs/cgroup/cgroup.procs" } });
	assert_string_equal(out, "1\n");
	struct how how = { .argv = { "/bin/app" }, .pids_max = 1 };
	assert_int_equal(wait_reply(&host, ask_add("b", how), text), AGENT_E_INTERNAL);
	assert_non_null(strstr(text, "cannot limit pids.max"));
	start_waiting("c", (struct how){ 0 });
	assert_int_equal(stats_of("c").pids, -1);
	remove_app("a");
}

/* What a further process in @app says: itself, and how many there are to be seen. */
static const char *count_in(const char *app)
{
	int n = exec_in(&host, app, (struct how){ .argv = { "/bin/app", "pids" } });
	cleanup_fd int out = attach_to(app, n, AGENT_STREAM_STDOUT);
	const char *text = read_line(out);
	assert_int_equal(wait_exec(&host, n)->code, 0);
	return text;
}

/* Whatever its number is. */
static int seen_in(const char *app)
{
	const char *of = strstr(count_in(app), " of ");
	assert_non_null(of);
	return atoi(of + 4);
}

/*
 * Apps that share see each other, behind a process 1 that is nobody's; what one of them leaves
 * behind ends with it, and its control group goes.
 */
static void test_shared(void **state)
{
	const struct how shares = { .shares_processes = true };
	char byte;
	(void)state;
	start_waiting("a", shares);
	assert_int_equal(seen_in("a"), 3);
	start_waiting("b", (struct how){ 0 });
	assert_string_equal(count_in("b"), "pid 2 parent 0 of 2\n");
	start_waiting("c", (struct how){ .shares_processes = true, .post_stop = { "/bin/app" } });
	assert_int_equal(seen_in("a"), 5);
	assert_int_equal(seen_in("c"), 5);
	assert_string_equal(
		run("d", (struct how){ .argv = { "/bin/app", "init" }, .shares_processes = true }),
		"trace EPERM kill ok\n/proc/1/root EACCES\n/proc/1/mem EACCES\n");
	remove_app("d");

	for (int i = 0; i < 2; i++) { /* as often as it is started */
		if (i == 0)
			add_and_start("e", (struct how){ .argv = { "/bin/app", "orphan" },
							 .shares_processes = true });
		else
			assert_int_equal(call(&host, AGENT_APP_START, ref("e")), 0);
		cleanup_fd int out = attach("e", AGENT_STREAM_STDOUT);
		assert_int_equal(wait_exit(&host, "e")->code, 0);
		assert_int_equal(read(out, &byte, 1), 0);
	}
	remove_app("e");
	assert_int_equal(seen_in("a"), 5);

	/* A further process ends with its app, too; the others go on. */
	int n = exec_in(&host, "c", (struct how){ .argv = { "/bin/app", "wait" } });
	cleanup_fd int out = attach_to("c", n, AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(out), "ready\n");
	struct agent_app_signal m = { .app = "c", .signal = SIGTERM };
	struct json_object *body;
	assert_int_equal(agent_app_signal_encode(&m, &body), 0);
	assert_int_equal(call(&host, AGENT_APP_SIGNAL, body), 0);
	assert_int_equal(wait_exit(&host, "c")->code, 4);
	assert_int_equal(wait_exec(&host, n)->signal, SIGKILL);
	remove_app("c");
	assert_int_equal(seen_in("a"), 3);

	/* One that was never started, and one that cannot be added. */
	char text[AGENT_TEXT_MAX + 1];
	struct how how = { .argv = { "/bin/app" }, .shares_processes = true };
	assert_int_equal(wait_reply(&host, ask_add("f", how), text), 0);
	assert_int_equal(seen_in("a"), 4);
	remove_app("f");
	how.user = "nobody-of-that-name";
	assert_int_equal(wait_reply(&host, ask_add("g", how), text), AGENT_E_USER);
	while (seen_in("a") != 3) /* who adds does not wait for the end of what failed */
		;
}

#define GROUPED(fn) cmocka_unit_test_setup_teardown(fn, begin_grouped, end_grouped)

int main(void)
{
	look_around();
	if (geteuid() == 0 && is_v1 && !*v2_root)
		mount_v2();
	if (geteuid() != 0 || (!is_v1 && !*v2_root)) {
		puts("SKIP: needs root, and control groups in /sys/fs/cgroup");
		return 77;
	}
	const struct CMUnitTest tests[] = {
		GROUPED(test_processes), GROUPED(test_memory),  GROUPED(test_updated),
		GROUPED(test_counted),   GROUPED(test_removed), GROUPED(test_sight),
	};
	const struct CMUnitTest bare[] = {
		cmocka_unit_test_setup_teardown(test_bare_tree, begin_bare, end_bare),
		cmocka_unit_test_setup_teardown(test_shared, begin_bare, end_bare),
	};
	bool is_bare = *v2_root && (is_v1 || !has_v2_controllers());
	int r = is_bare ? cmocka_run_group_tests(bare, NULL, NULL) : 0;
	if (is_v1 || !is_bare)
		r |= cmocka_run_group_tests(tests, NULL, NULL);
	unmount_v2();
	return r;
}
