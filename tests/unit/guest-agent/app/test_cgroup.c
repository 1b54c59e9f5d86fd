/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On directories and files that stand for the kernel's: what is written where. That it has an
 * effect is a matter of the kernel.
 */
#include "guest-agent/app/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/cgroup/cgroup_limits.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static struct fault fault;

/* Group 1 with the files that the kernel would make. */
static void make_group(void **state, const char *const *files)
{
	char name[64];
	assert_int_equal(mkdirat(fixture_dir(state), "1", 0755), 0);
	for (; *files; files++) {
		snprintf(name, sizeof(name), "1/%s", *files);
		fixture_write(state, name, "", 0);
	}
}

static const char *content(void **state, const char *name)
{
	static char text[64];
	char path[64];
	size_t len = 0;
	snprintf(path, sizeof(path), "1/%s", name);
	cleanup_fd int fd = openat(fixture_dir(state), path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fd_read_full(fd, text, sizeof(text) - 1, &len), 0);
	text[len] = '\0';
	return text;
}

static const struct cgroup_dir *in(void **state)
{
	static struct cgroup_dir dir;
	dir.path = fixture_path(state);
	return &dir;
}

static int make(void **state, const struct cgroup_limits *l)
{
	CLEANUP(cgroup_close) struct cgroup group = CGROUP_INIT;
	int r = cgroup_make(in(state), 1, l, &group, &fault);
	if (r == 0) {
		assert_true(group.fd >= 0);
		assert_null(group.v1_dir);
		assert_int_equal(cgroup_enter(&group, &fault), 0); /* it is born there */
	}
	return r;
}

static const char *const all_files[] = { "memory.max", "memory.swap.max", "memory.oom.group",
					 "cpu.max",    "cpu.weight",      "pids.max",
					 NULL };

static void test_limits(void **state)
{
	make_group(state, all_files);
	const struct cgroup_limits l = { 1 << 20, 1500, 10000, 7 };
	assert_int_equal(make(state, &l), 0);
	assert_string_equal(content(state, "memory.max"), "1048576");
	assert_string_equal(content(state, "memory.swap.max"), "0");
	assert_string_equal(content(state, "memory.oom.group"), "1");
	assert_string_equal(content(state, "cpu.max"), "150000 100000");
	assert_string_equal(content(state, "cpu.weight"), "10000");
	assert_string_equal(content(state, "pids.max"), "7");
}

static void test_no_limits(void **state)
{
	make_group(state, all_files);
	const struct cgroup_limits none = { 0 };
	assert_int_equal(make(state, &none), 0);
	assert_string_equal(content(state, "memory.oom.group"), "1");
	assert_string_equal(content(state, "memory.max"), "");
	assert_string_equal(content(state, "memory.swap.max"), "");
	assert_string_equal(content(state, "cpu.max"), "");
	assert_string_equal(content(state, "pids.max"), "");
}

static void test_kernel_without(void **state)
{
	static const char *const few[] = { "memory.max", NULL };
	make_group(state, few);
	assert_int_equal(make(state, &(struct cgroup_limits){ .memory_max = 4096 }), 0);
	assert_int_equal(make(state, &(struct cgroup_limits){ .pids_max = 1 }), FAULT_SET);
	assert_string_equal(fault.text,
			    "the kernel cannot limit pids.max here (leave the limit away)");
}

static void test_no_groups(void **state)
{
	(void)state;
	const struct cgroup_limits none = { 0 }, one = { .cpu_weight = 1 };
	const struct cgroup_dir dirs[] = { { NULL, false }, { "/no/such/directory", false } };
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		struct cgroup group = { .fd = 7 };
		assert_int_equal(cgroup_make(&dirs[i], 1, &none, &group, &fault), 0);
		assert_int_equal(group.fd, -EBADF);
		assert_int_equal(cgroup_make(&dirs[i], 1, &one, &group, &fault), FAULT_SET);
		assert_int_equal(fault.code, AGENT_E_INTERNAL);
		assert_non_null(strstr(fault.text, "(run the app without limits)"));
		group.fd = 7;
		assert_int_equal(cgroup_open(&dirs[i], 1, &group), 0);
		assert_int_equal(group.fd, -EBADF);
		assert_int_equal(cgroup_enter(&group, &fault), 0);
		assert_false(cgroup_had_oom_kill(&dirs[i], 1));
		cgroup_remove(&dirs[i], 1);
	}
}

static bool oom_kill(void **state, const char *events)
{
	fixture_write(state, "1/memory.events", events, strlen(events));
	return cgroup_had_oom_kill(in(state), 1);
}

static void test_oom_kill(void **state)
{
	static const char *const files[] = { NULL };
	make_group(state, files);
	assert_false(cgroup_had_oom_kill(in(state), 1));
	assert_false(
		oom_kill(state, "low 1\nhigh 1\nmax 1\noom 1\noom_kill 0\noom_group_kill 1\n"));
	assert_true(oom_kill(state, "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\noom_group_kill 0\n"));
	assert_true(oom_kill(state, "low 0\nhigh 0\nmax 0\noom 0\noom_kill 20\n"));
	assert_false(oom_kill(state, "low 0\n"));
	assert_false(oom_kill(state, ""));
}

static struct agent_app_stats stats(void **state)
{
	struct agent_app_stats m;
	cgroup_stats(in(state), 1, &m);
	return m;
}

static void set(void **state, const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof(path), "1/%s", name);
	fixture_write(state, path, text, strlen(text));
}

/* Of the group of the number; nothing where there are no groups. */
static void test_stats(void **state)
{
	static const char *const none[] = { NULL };
	struct agent_app_stats m;
	make_group(state, none);
	assert_int_equal(stats(state).cpu_usec, -1);
	set(state, "cpu.stat", "usage_usec 12\nuser_usec 7\n");
	set(state, "pids.max", "4194304\n");
	assert_int_equal(stats(state).cpu_usec, 12);
	assert_int_equal(stats(state).pids_limit, 4194304);
	cgroup_stats(&(struct cgroup_dir){ 0 }, 1, &m);
	assert_int_equal(m.pids, -1);
	cgroup_stats(&(struct cgroup_dir){ .path = "/no/such/directory" }, 1, &m);
	assert_int_equal(m.oom_kills, -1);
}

static const char *const files_in_use[] = { "memory.max",  "memory.swap.max",
					    "memory.high", "memory.current",
					    "cpu.max",     "cpu.weight",
					    "pids.max",    NULL };

/* Files are made anew, since those of a file system are not replaced by what is written. */
static void empty_group(void **state, const char *current)
{
	char name[64];
	for (const char *const *file = files_in_use; *file; file++) {
		snprintf(name, sizeof(name), "1/%s", *file);
		unlinkat(fixture_dir(state), name, 0);
		fixture_write(state, name, "", 0);
	}
	fixture_write(state, "1/memory.current", current, strlen(current));
}

static int change(void **state, struct cgroup_limits from, struct cgroup_limits to)
{
	empty_group(state, "4096\n");
	return cgroup_change(in(state), 1, &from, &to, &fault);
}

static void test_change(void **state)
{
	const struct cgroup_limits none = { 0 }, some = { 1 << 20, 1500, 7, 9 };
	make_group(state, all_files);
	assert_int_equal(change(state, none, some), 0);
	assert_string_equal(content(state, "memory.max"), "1048576");
	assert_string_equal(content(state, "memory.swap.max"), "0");
	assert_string_equal(content(state, "cpu.max"), "150000 100000");
	assert_string_equal(content(state, "cpu.weight"), "7");
	assert_string_equal(content(state, "pids.max"), "9");
	assert_int_equal(change(state, some, none), 0);
	assert_string_equal(content(state, "memory.max"), "max");
	assert_string_equal(content(state, "memory.swap.max"), "max");
	assert_string_equal(content(state, "cpu.max"), "max");
	assert_string_equal(content(state, "cpu.weight"), "100");
	assert_string_equal(content(state, "pids.max"), "max");
}

/* The kernel would kill for it. */
static void test_change_below_use(void **state)
{
	const struct cgroup_limits from = { 1 << 20, 0, 0, 0 }, less = { 4095, 500, 0, 0 };
	make_group(state, all_files);
	assert_int_equal(change(state, from, less), FAULT_SET);
	assert_int_equal(fault.code, AGENT_E_STATE);
	assert_non_null(strstr(fault.text, "cannot limit its memory to 4095 bytes: it uses 4096 "));
	assert_string_equal(content(state, "memory.max"), "1048576"); /* as it was */
}

/* A limit that cannot be set leaves those before it as they were. */
static void test_change_fails(void **state)
{
	const struct cgroup_limits from = { .cpu_millis = 100 }, to = { 0, 200, 0, 1 };
	make_group(state, all_files);
	empty_group(state, "");
	assert_int_equal(unlinkat(fixture_dir(state), "1/pids.max", 0), 0);
	assert_int_equal(cgroup_change(in(state), 1, &from, &to, &fault), FAULT_SET);
	assert_string_equal(fault.text,
			    "the kernel cannot limit pids.max here (leave the limit away)");
	assert_string_equal(content(state, "cpu.max"), "10000 100000");
	assert_int_equal(cgroup_change(in(state), 2, &from, &to, &fault), FAULT_SET);
	assert_non_null(strstr(fault.text, "cannot open control group 2"));
	const struct cgroup_dir nowhere = { 0 };
	const struct cgroup_limits none = { 0 };
	assert_int_equal(cgroup_change(&nowhere, 1, &none, &to, &fault), FAULT_SET);
	assert_non_null(strstr(fault.text, "no control groups here"));
	assert_int_equal(cgroup_change(&nowhere, 1, &none, &none, &fault), 0);
}

static void test_remove(void **state)
{
	const struct cgroup_limits none = { 0 };
	fixture_dir(state);
	assert_int_equal(make(state, &none), 0);
	assert_int_equal(faccessat(fixture_dir(state), "1", F_OK, 0), 0);
	cgroup_remove(in(state), 1);
	assert_int_equal(faccessat(fixture_dir(state), "1", F_OK, 0), -1);
	cgroup_remove(in(state), 1);
}

/* A child that waits for a signal. */
static pid_t wait_in_child(void)
{
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

/* Who is in the group, whatever else the file says; but for one. */
static void test_signal(void **state)
{
	static const char *const files[] = { "cgroup.procs", NULL };
	char text[128];
	int status;
	pid_t one = wait_in_child(), other = wait_in_child(), spared = wait_in_child();
	make_group(state, files);
	snprintf(text, sizeof(text), "%d\n0\nx\n99999999999\n%d\n%d\n", (int)one, (int)spared,
		 (int)other);
	set(state, "cgroup.procs", text);
	assert_int_equal(cgroup_signal(in(state), 1, SIGKILL, spared), 0);
	assert_int_equal(waitpid(one, &status, 0), one);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(waitpid(spared, &status, WNOHANG), 0);
	kill(spared, SIGKILL);
	assert_int_equal(waitpid(spared, &status, 0), spared);
	assert_int_equal(cgroup_signal(in(state), 2, SIGKILL, 0), -EOPNOTSUPP);
	assert_int_equal(cgroup_signal(&(struct cgroup_dir){ 0 }, 1, SIGKILL, 0), -EOPNOTSUPP);
}

static void test_freeze(void **state)
{
	static const char *const files[] = { "cgroup.freeze", NULL };
	struct cgroup_dir v1 = *in(state);
	make_group(state, files);
	assert_int_equal(cgroup_freeze(in(state), 1, true), 0);
	assert_string_equal(content(state, "cgroup.freeze"), "1");
	assert_int_equal(cgroup_freeze(in(state), 1, false), 0);
	assert_string_equal(content(state, "cgroup.freeze"), "0");
	assert_int_equal(cgroup_freeze(in(state), 2, true), -EOPNOTSUPP);
	v1.is_v1 = true;
	assert_int_equal(cgroup_freeze(&v1, 1, true), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_limits),           fixture_test(test_no_limits),
		fixture_test(test_signal),           fixture_test(test_freeze),
		fixture_test(test_kernel_without),   fixture_test(test_no_groups),
		fixture_test(test_oom_kill),         fixture_test(test_stats),
		fixture_test(test_remove),           fixture_test(test_change),
		fixture_test(test_change_below_use), fixture_test(test_change_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
