/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What confines apps: how app.add is read, and then a real agent, its apps, and further processes
 * in them. What needs cgroup v2 controllers is tested in a guest (tests/system/limits.sh).
 */
#include "guest-agent/app/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/hex.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/guest-agent/client.h"

static char seccomp_hex[AGENT_SECCOMP_MAX + 17];

/* --- app.add, read --- */

static struct fault fault;

/* The code of the error, or 0. */
static int read_one(const char *group, const char *rlimit, const char *seccomp)
{
	CLEANUP(agent_confinement_deinit) struct agent_confinement m;
	CLEANUP(confinement_deinit) struct confinement c;
	agent_confinement_init(&m);
	if (group)
		assert_int_equal(strv_add(&m.groups, group), 0);
	if (rlimit)
		assert_int_equal(strv_add(&m.rlimits, rlimit), 0);
	m.seccomp = seccomp ? strdup(seccomp) : NULL;
	return confinement_init(&c, &m, &fault) == 0 ? 0 : fault.code;
}

static void test_read(void **state)
{
	(void)state;
	CLEANUP(agent_confinement_deinit) struct agent_confinement m;
	CLEANUP(confinement_deinit) struct confinement c;
	agent_confinement_init(&m);
	m.capabilities = INT64_MAX;
	m.oom_score_adj = -7;
	m.memory_max = 1;
	m.cpu_millis = 2;
	m.cpu_weight = 3;
	m.pids_max = 4;
	strv_add(&m.groups, "4294967294");
	strv_add(&m.rlimits, "core=0:unlimited");
	m.seccomp = strdup("0600000001000200");
	assert_int_equal(confinement_init(&c, &m, &fault), 0);
	assert_int_equal(c.capabilities, INT64_MAX);
	assert_int_equal(c.oom_score_adj, -7);
	assert_int_equal(c.limits.memory_max, 1);
	assert_int_equal(c.limits.cpu_millis, 2);
	assert_int_equal(c.limits.cpu_weight, 3);
	assert_int_equal(c.limits.pids_max, 4);
	assert_int_equal(c.groups[0], 4294967294U);
	assert_int_equal(c.rlimits[0].resource, RLIMIT_CORE);
	assert_int_equal(c.filter_len, 1);
	assert_int_equal(c.filter->code, BPF_RET);
	assert_int_equal(c.filter->k, 0x00020001);
}

static void test_read_errors(void **state)
{
	(void)state;
	assert_int_equal(read_one(NULL, NULL, NULL), 0);
	assert_int_equal(read_one("4294967295", NULL, NULL), AGENT_E_PARAMS);
	assert_string_equal(fault.text, "groups: \"4294967295\" is not a number to 4294967294");
	assert_int_equal(read_one("wheel", NULL, NULL), AGENT_E_PARAMS);
	assert_int_equal(read_one(NULL, "nofile=2:1", NULL), AGENT_E_PARAMS);
	assert_string_equal(fault.text,
			    "rlimits: \"nofile=2:1\" is not a NAME=SOFT:HARD with SOFT <= HARD");
	assert_int_equal(read_one(NULL, NULL, "06000000000000"), AGENT_E_PARAMS);
	assert_string_equal(fault.text, "seccomp: not 1 to 4096 instructions of 16 digits");
	assert_int_equal(read_one(NULL, NULL, "060000000000000G"), AGENT_E_PARAMS);
	assert_non_null(strstr(fault.text, "hexadecimal"));
	memset(seccomp_hex, '0', AGENT_SECCOMP_MAX + 16);
	assert_int_equal(read_one(NULL, NULL, seccomp_hex), AGENT_E_PARAMS);
	seccomp_hex[AGENT_SECCOMP_MAX] = '\0';
	assert_int_equal(read_one(NULL, NULL, seccomp_hex), 0);
}

/* --- system call filters --- */

#define JUMP_IF(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1)
#define DO(action)  BPF_STMT(BPF_RET | BPF_K, (action))
#define LOAD_NR     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))

static const char *to_hex(const struct sock_filter *filter, size_t n)
{
	hex_encode((const unsigned char *)filter, n * sizeof(*filter), seccomp_hex);
	return seccomp_hex;
}

/* All but making directories. */
static const char *filter_mkdir(void)
{
	static const struct sock_filter filter[] = {
		LOAD_NR,
		JUMP_IF(SYS_mkdirat),
		DO(SECCOMP_RET_ERRNO | EXDEV),
#ifdef SYS_mkdir
		JUMP_IF(SYS_mkdir),
		DO(SECCOMP_RET_ERRNO | EXDEV),
#endif
		DO(SECCOMP_RET_ALLOW),
	};
	return to_hex(filter, sizeof(filter) / sizeof(filter[0]));
}

/* What the host promises to allow, and nothing else. */
static const char *filter_narrow(void)
{
	static const struct sock_filter filter[] = {
		LOAD_NR,
		JUMP_IF(SYS_execve),
		DO(SECCOMP_RET_ALLOW),
		JUMP_IF(SYS_capset),
		DO(SECCOMP_RET_ALLOW),
		JUMP_IF(SYS_write),
		DO(SECCOMP_RET_ALLOW),
		JUMP_IF(SYS_exit_group),
		DO(SECCOMP_RET_ALLOW),
		DO(SECCOMP_RET_KILL_PROCESS),
	};
	return to_hex(filter, sizeof(filter) / sizeof(filter[0]));
}

/* --- apps --- */

#define STATUS "/bin/app", "read", "/proc/self/status"

/* Standard output of a further process in @app, which must end with 0. */
static const char *run_in(const char *app, struct how how)
{
	int n = exec_in(&host, app, how);
	assert_true(n > 0);
	const char *text = output_of(app, n, AGENT_STREAM_STDOUT);
	assert_int_equal(wait_exec(&host, n)->code, 0);
	assert_int_equal(host.exec_start.exec, n);
	return text;
}

/* An app that waits until the end of the test, confined as @how says. */
static void start_waiting(const char *app, struct how how)
{
	how.argv[0] = "/bin/app";
	how.argv[1] = "wait";
	add_and_start(app, how);
	cleanup_fd int ready = attach(app, AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(ready), "ready\n");
}

static void expect_in(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in: %s", part, text);
}

static void test_pid_namespace(void **state)
{
	(void)state;
	assert_string_equal(run("a", (struct how){ .argv = { "/bin/app", "pids" } }),
			    "pid 1 parent 0 of 1\n");
	start_waiting("b", (struct how){ 0 });
	assert_string_equal(run_in("b", (struct how){ .argv = { "/bin/app", "pids" } }),
			    "pid 2 parent 0 of 2\n");
	/* Another app's processes are not to be seen. */
	assert_string_equal(run("c", (struct how){ .argv = { "/bin/app", "pids" } }),
			    "pid 1 parent 0 of 1\n");
	/* With a process 1 of the agent's, by wish or because something comes after the app. */
	const struct how with_init = { .argv = { "/bin/app", "pids" }, .with_init = true };
	const struct how with_end = { .argv = { "/bin/app", "pids" }, .post_stop = { "/bin/app" } };
	assert_string_equal(run("d", with_init), "pid 2 parent 0 of 2\n");
	assert_string_equal(run("e", with_end), "pid 3 parent 2 of 3\n");
	/* kill(2) says that it worked, but the signal does not arrive. */
	const char *out =
		run("f", (struct how){ .argv = { "/bin/app", "init", "pids" }, .with_init = true });
	assert_string_equal(out, "trace EPERM kill ok\n/proc/1/root EACCES\n/proc/1/mem EACCES\n"
				 "pid 2 parent 0 of 2\n");
}

/* The end of the app's process is that of its children, and of further processes and theirs. */
static void test_end_of_namespace(void **state)
{
	(void)state;
	char byte;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "orphan" } });
	cleanup_fd int out = attach("a", AGENT_STREAM_STDOUT);
	assert_int_equal(wait_exit(&host, "a")->code, 0);
	assert_int_equal(read(out, &byte, 1), 0);

	start_waiting("b", (struct how){ 0 });
	int left = exec_in(&host, "b", (struct how){ .argv = { "/bin/app", "orphan" } });
	cleanup_fd int of_left = attach_to("b", left, AGENT_STREAM_STDOUT);
	assert_int_equal(wait_exec(&host, left)->code, 0);
	int stays = exec_in(&host, "b", (struct how){ .argv = { "/bin/app", "orphan-wait" } });
	cleanup_fd int of_stays = attach_to("b", stays, AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(of_stays), "ready\n");
	struct agent_app_signal m = { .app = "b", .signal = SIGTERM };
	struct json_object *body;
	assert_int_equal(agent_app_signal_encode(&m, &body), 0);
	assert_int_equal(call(&host, AGENT_APP_SIGNAL, body), 0);
	assert_int_equal(wait_exit(&host, "b")->code,
			 4); /* number 2 has the handler that it has set */
	assert_int_equal(wait_exec(&host, stays)->signal, SIGKILL);
	assert_int_equal(read(of_left, &byte, 1), 0);
	assert_int_equal(read(of_stays, &byte, 1), 0);
}

static void test_capabilities(void **state)
{
	(void)state;
	enum {
		CHOWN_KILL = 1 << 0 | 1 << 5
	};
	start_waiting("a", (struct how){ .capabilities = CHOWN_KILL });
	const char *out = run_in("a", (struct how){ .argv = { STATUS } });
	expect_in(out, "CapInh:\t0000000000000000\nCapPrm:\t0000000000000021\n"
		       "CapEff:\t0000000000000021\nCapBnd:\t0000000000000021\n"
		       "CapAmb:\t0000000000000000\n");
	out = run_in("a", (struct how){ .argv = { STATUS }, .user = "bob" });
	expect_in(out, "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
		       "CapBnd:\t0000000000000021\n");
	out = run("b", (struct how){ .argv = { STATUS }, .capabilities = -1 });
	expect_in(out, "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
		       "CapBnd:\t0000000000000000\n");
	expect_in(out, "NoNewPrivs:\t0\nSeccomp:\t0\n");
}

static void test_no_new_privs(void **state)
{
	(void)state;
	start_waiting("a", (struct how){ .no_new_privs = true, .user = "bob" });
	const char *out = run_in("a", (struct how){ .argv = { STATUS } });
	expect_in(out, "NoNewPrivs:\t1\nSeccomp:\t0\n");
}

/* For whatever user, and without giving up new privileges. */
static void test_filter(void **state)
{
	(void)state;
	const char *out = run("a", (struct how){ .argv = { STATUS, "mkdir", "/new" },
						 .seccomp = filter_mkdir() });
	expect_in(out, "NoNewPrivs:\t0\nSeccomp:\t2\n");
	expect_in(out, "mkdir /new EXDEV\n");
	start_waiting("b", (struct how){ .user = "bob", .seccomp = filter_mkdir() });
	out = run_in("b", (struct how){ .argv = { STATUS, "mkdir", "/new" } });
	expect_in(out, "NoNewPrivs:\t0\nSeccomp:\t2\n");
	expect_in(out, "CapEff:\t00000000a80425fb\n");
	expect_in(out, "mkdir /new EXDEV\n");
	out = run_in("b", (struct how){ .argv = { STATUS }, .user = "bob" });
	expect_in(out, "NoNewPrivs:\t0\nSeccomp:\t2\n");
	expect_in(out, "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n");
	out = run("c", (struct how){ .argv = { STATUS },
				     .no_new_privs = true,
				     .capabilities = -1,
				     .seccomp = filter_mkdir() });
	expect_in(out, "NoNewPrivs:\t1\nSeccomp:\t2\n");
}

/* Nothing that the agent does behind the filter is more than is promised. */
static void test_narrow_filter(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app" }, .seccomp = filter_narrow() });
	assert_int_equal(wait_exit(&host, "a")->signal, SIGSYS); /* the program's own doing */
	add_and_start("b", (struct how){ .argv = { "/bin/script" },
					 .user = "bob",
					 .seccomp = filter_narrow() });
	assert_string_equal(wait_exit(&host, "b")->message,
			    "Unable to open \"/no/such/interpreter\": No such file or directory");
	assert_int_equal(wait_exit(&host, "b")->code, 203);
	add_and_start("c", (struct how){ .argv = { "/bin/noexec" }, .seccomp = filter_narrow() });
	assert_string_equal(wait_exit(&host, "c")->message,
			    "Unable to open \"/bin/noexec\": Permission denied");
	/* An instruction that there is not: the kernel refuses. */
	add_and_start("d", (struct how){ .argv = { "/bin/app" }, .seccomp = "ffff000000000000" });
	assert_string_equal(wait_exit(&host, "d")->message,
			    "cannot install the system call filter: Invalid argument");
}

static void test_groups(void **state)
{
	(void)state;
	start_waiting("a", (struct how){ .groups = { "77", "4294967294" } });
	const char *out = run_in("a", (struct how){ .argv = { "/bin/app", "id" }, .user = "bob" });
	expect_in(out, "uid 1000 gid 1001 groups 10 77 -2\n");
	out = run_in("a", (struct how){ .argv = { "/bin/app", "id" } });
	expect_in(out, "uid 0 gid 0 groups 77 -2\n");
	/* A further process may have others; that one only. */
	const struct how other = { .argv = { "/bin/app", "id" }, .groups = { "5" } };
	expect_in(run_in("a", other), "uid 0 gid 0 groups 5\n");
	expect_in(run_in("a", (struct how){ .argv = { "/bin/app", "id" } }), "groups 77 -2\n");
	assert_int_equal(exec_in(&host, "a", (struct how){ .argv = { "/x" }, .groups = { "x" } }),
			 AGENT_E_PARAMS);
}

static void test_rlimits(void **state)
{
	(void)state;
	start_waiting("a", (struct how){ .rlimits = { "nofile=100:200", "nproc=50" } });
	const char *out = run_in("a", (struct how){ .argv = { "/bin/app", "limits" } });
	assert_string_equal(out, "nofile 100:200 core 0 nproc 50\n");
	add_and_start("b",
		      (struct how){ .argv = { "/bin/app" }, .rlimits = { "nofile=1:9999999999" } });
	assert_string_equal(wait_exit(&host, "b")->message,
			    "cannot set resource limit \"nofile\": Operation not permitted");
	/*
	 * None of what comes between the limits and the program needs a descriptor or much memory.
	 */
	out = run("c", (struct how){ .argv = { "/bin/app", "limits" },
				     .rlimits = { "nofile=3", "core=7" } });
	expect_in(out, "nofile 3:3 core 7 ");
}

static void test_oom_score_adj(void **state)
{
	(void)state;
	start_waiting("a", (struct how){ .oom_score_adj = 500, .user = "bob" });
	const char *out =
		run_in("a", (struct how){ .argv = { "/bin/app", "read", "/proc/self/oom_score_adj",
						    "read", "/proc/2/oom_score_adj" } });
	assert_string_equal(out, "500\n500\n");
}

/* Only the root: what is mounted below it stays as it was; and not by the choice of the app. */
static void test_read_only_root(void **state)
{
	(void)state;
	start_waiting("a", (struct how){ .read_only_root = true, .cwd = "/made/before" });
	const char *out =
		run_in("a", (struct how){ .argv = { "/bin/app", "create", "/new", "create",
						    "/dev/shm/new", "remount", "/" } });
	assert_string_equal(out, "/new EROFS\n/dev/shm/new ok\nremount / EPERM\n");
	out = run_in("a", (struct how){ .argv = { "/bin/app", "create", "/tmp/x", "mode",
						  "/made/before" },
					.cwd = "/made" });
	assert_string_equal(out, "/tmp/x EROFS\n/made/before 40755 0:0\n");
	int n = exec_in(&host, "a", (struct how){ .argv = { "/bin/app" }, .cwd = "/not/there" });
	assert_int_equal(wait_exec(&host, n)->code, 203);
	assert_int_not_equal(host.exec_start.exec, n);
	assert_string_equal(host.exec_exit.message,
			    "cannot change to directory \"/not/there\": Read-only file system");
}

/* Limits that cannot be held are refused, and the name is free again. */
static void test_limits_without_cgroups(void **state)
{
	(void)state;
	char text[AGENT_TEXT_MAX + 1];
	struct how how = { .argv = { "/bin/app" }, .memory_max = 1 << 20 };
	assert_int_equal(wait_reply(&host, ask_add("a", how), text), AGENT_E_INTERNAL);
	expect_in(text, "no control groups here");
	how = (struct how){ .argv = { "/bin/app" }, .pids_max = 1 };
	assert_int_equal(wait_reply(&host, ask_add("a", how), text), AGENT_E_INTERNAL);
	how = (struct how){ .argv = { "/bin/app" }, .rlimits = { "files=1" } };
	assert_int_equal(wait_reply(&host, ask_add("a", how), text), AGENT_E_PARAMS);
	expect_in(text, "\"files=1\"");
	run("a", (struct how){ .argv = { "/bin/app", "exit", "0" } });
}

int main(void)
{
	if (geteuid() != 0) {
		puts("SKIP: namespaces and mounts need root");
		return 77;
	}
	const struct CMUnitTest tests[] = {
		fixture_test(test_read),
		fixture_test(test_read_errors),
		TEST(test_pid_namespace),
		TEST(test_end_of_namespace),
		TEST(test_capabilities),
		TEST(test_no_new_privs),
		TEST(test_filter),
		TEST(test_narrow_filter),
		TEST(test_groups),
		TEST(test_rlimits),
		TEST(test_oom_score_adj),
		TEST(test_read_only_root),
		TEST(test_limits_without_cgroups),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
