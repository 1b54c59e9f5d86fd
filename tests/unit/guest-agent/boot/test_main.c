/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real program, as PID 1 of a PID namespace, with directories (and once a squashfs on a loop
 * device) for disks. Needs root for namespaces and mounts.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"
#include "lib/os/spawn.h"
#include "lib/wire/agent.h"
#include "lib/wire/rpc.h"
#include "tests/support/fixture.h"
#include "tests/unit/guest-agent/client.h"

static void test_identity(void **state)
{
	(void)state;
	const char *out = run("a", (struct how){ .argv = { "app", "id" },
						 .user = "bob",
						 .cwd = "/made/for/me",
						 .env = "PATH=/nope:/bin" });
	assert_non_null(strstr(out, "uid 1000 gid 1001 groups 10\n"));
	assert_non_null(strstr(out, "cwd /made/for/me\nhost husk-test\nsession 1\n"));
	assert_non_null(strstr(out, "env PATH=/nope:/bin\n"));
	assert_non_null(strstr(out, "env HOME=/home/bob\n"));
	assert_non_null(strstr(out, "env AC_APP_NAME=a\n"));
	assert_null(strstr(out, "env TERM"));
	out = run("b",
		  (struct how){ .argv = { "bin/app", "id" }, .user = "/bin/app", .group = "7" });
	assert_non_null(strstr(out, "uid 0 gid 7 groups"));
	assert_int_equal(wait_reply(&host,
				    ask_add("c", (struct how){ .argv = { "x" }, .user = "eve" }),
				    NULL),
			 AGENT_E_USER);
	assert_int_equal(start("c"), AGENT_E_NO_APP);
}

static void test_root_directory(void **state)
{
	(void)state;
	const char *out =
		run("a", (struct how){ .argv = { "/bin/app", "read", "/etc/hostname", "read",
						 "/etc/hosts", "read", "/etc/passwd" } });
	assert_int_equal(strncmp(out, "husk-test\n127.0.0.1 localhost ", 30), 0);
	assert_non_null(strstr(out, "localdomain4 husk-test\n"));
	assert_non_null(strstr(out, "bob:x:1000"));
	out = run("b", (struct how){ .argv = { "/bin/app", "mode", "/tmp", "mode", "/dev/ptmx",
					       "mode", "/etc/mtab" } });
	assert_string_equal(out, "/tmp 41777 0:0\n/dev/ptmx 120777 0:0\n/etc/mtab 120777 0:0\n");
	out = run("c", (struct how){ .argv = { "/bin/app", "mode", "/dev/null", "mode", "/dev/shm",
					       "create", "/new" } });
	assert_string_equal(out, "/dev/null 20666 0:0\n/dev/shm 41777 0:0\n/new ok\n");
	/* Directories to which something is added, too, are as the image has them. */
	out = run("changed",
		  (struct how){ .argv = { "/bin/app", "changed", "/", "changed", "/etc" } });
	assert_string_equal(out, "/ 1000000001\n/etc 1000000002\n");
	/* Another app has its own copy of the image. */
	out = run("d",
		  (struct how){ .argv = { "/bin/app", "open", "/new", "open", "/etc/passwd" } });
	assert_string_equal(out, "/new ENOENT\n/etc/passwd ok\n");
}

static void test_confinement(void **state)
{
	(void)state;
	const char *out =
		run("a", (struct how){ .argv = { "/bin/app", "openw", "/proc/sysrq-trigger",
						 "openw", "/proc/sys/kernel/core_pattern", "openw",
						 "/proc/sys/fs/suid_dumpable" } });
	assert_null(strstr(out, " ok"));
	out = run("sys", (struct how){ .argv = { "/bin/app", "open", "/sys/module/overlay" } });
	assert_null(strstr(out, " ok"));
	out = run("b", (struct how){ .argv = { "/bin/app", "read", "/proc/self/status" } });
	assert_non_null(strstr(out, "CapEff:\t00000000a80425fb\n"));
	assert_non_null(strstr(out, "CapBnd:\t00000000a80425fb\n"));
	assert_non_null(strstr(out, "CapInh:\t0000000000000000\n"));
	assert_non_null(strstr(out, "SigBlk:\t0000000000000000\n"));
	assert_non_null(strstr(out, "SigIgn:\t0000000000000000\n"));
	out = run("c", (struct how){ .argv = { "/bin/app", "read", "/proc/self/status" },
				     .user = "bob" });
	assert_non_null(strstr(out, "CapEff:\t0000000000000000\n"));
	assert_non_null(strstr(out, "CapPrm:\t0000000000000000\n"));
	out = run("d", (struct how){ .argv = { "/bin/app", "read", "/proc/self/oom_score_adj" } });
	assert_string_equal(out, "0\n");
	/* The standard streams belong to the app, so that it can open them. */
	out = run("e",
		  (struct how){ .argv = { "/bin/app", "openw", "/dev/stdout" }, .user = "bob" });
	assert_string_equal(out, "/dev/stdout ok\n");
	/* No descriptor of the agent is left. */
	out = run("f", (struct how){ .argv = { "/bin/app", "open", "/proc/self/fd/3", "open",
					       "/proc/self/fd/4" } });
	assert_string_equal(out, "/proc/self/fd/3 ENOENT\n/proc/self/fd/4 ENOENT\n");
}

static void expect_not_executed(const char *app, const char *program, const char *message)
{
	add_and_start(app, (struct how){ .argv = { program } });
	const struct agent_app_exited *m = wait_exit(&host, app);
	assert_int_equal(m->code, 203);
	assert_int_equal(m->signal, 0);
	assert_string_equal(m->message, message);
	assert_string_equal(output(app, AGENT_STREAM_STDOUT), "");
}

static void test_not_executed(void **state)
{
	(void)state;
	expect_not_executed("a", "/foo-not-there",
			    "Unable to open \"/foo-not-there\": No such file or directory");
	expect_not_executed("b", "nowhere",
			    "Unable to open \"nowhere\": No such file or directory");
	expect_not_executed("c", "/bin/script",
			    "Unable to open \"/no/such/interpreter\": No such file or directory");
	expect_not_executed("d", "/bin/plain",
			    "Unable to execute \"/bin/plain\": Exec format error");
	expect_not_executed("e", "/bin/noexec",
			    "Unable to open \"/bin/noexec\": Permission denied");
	expect_not_executed("f", "/bin", "Unable to open \"/bin\": Permission denied");
}

static void test_status(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "exit", "203" } });
	assert_int_equal(wait_exit(&host, "a")->code, 203);
	assert_string_equal(wait_exit(&host, "a")->message, "");
	add_and_start("b", (struct how){ .argv = { "/bin/app", "wait" } });
	cleanup_fd int out = attach("b", AGENT_STREAM_STDOUT);
	char c1;
	assert_int_equal(read(out, &c1, 1), 1);
	struct agent_app_signal m = { .app = "b", .signal = SIGKILL };
	struct json_object *body;
	assert_int_equal(agent_app_signal_encode(&m, &body), 0);
	assert_int_equal(call(&host, AGENT_APP_SIGNAL, body), 0);
	assert_int_equal(wait_exit(&host, "b")->signal, SIGKILL);
	assert_int_equal(wait_exit(&host, "b")->code, 0);
	/* Who connects later hears of both. */
	CLEANUP(client_deinit) struct client late;
	client_init(&late);
	assert_int_equal(hello(&late, SECRET), 0);
	assert_int_equal(wait_exit(&late, "a")->code, 203);
	assert_int_equal(wait_exit(&late, "b")->signal, SIGKILL);
}

static void test_streams(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "cat" }, .with_stdin = true });
	cleanup_fd int in = attach("a", AGENT_STREAM_STDIN);
	cleanup_fd int out = attach("a", AGENT_STREAM_STDOUT);
	assert_int_equal(attach("a", AGENT_STREAM_STDOUT), AGENT_E_STATE);
	assert_int_equal(attach("a", AGENT_STREAM_TTY), AGENT_E_STATE);
	assert_int_equal(attach("x", AGENT_STREAM_STDOUT), AGENT_E_NO_APP);
	char text[16];
	assert_int_equal(fd_write_all(in, "echo", 4), 0);
	assert_int_equal(read(out, text, sizeof(text)), 4);
	assert_int_equal(shutdown(in, SHUT_WR), 0);
	assert_int_equal(read(out, text, sizeof(text)), 0);
	assert_int_equal(wait_exit(&host, "a")->code, 0);
	assert_string_equal(output("a", AGENT_STREAM_STDERR), "");
}

/* 64 MiB through both streams while another connection gets its answers. */
static void test_flow(void **state)
{
	(void)state;
	enum {
		SIZE = 64 << 20
	};
	static char mem[65536];
	add_and_start("a", (struct how){ .argv = { "/bin/app", "flood", "67108864" } });
	cleanup_fd int out = attach("a", AGENT_STREAM_STDOUT);
	assert_int_equal(call(&host, AGENT_INFO, NULL), 0); /* nobody reads yet */
	size_t got = 0;
	for (ssize_t n; (n = read(out, mem, sizeof(mem))) > 0;)
		got += (size_t)n;
	assert_int_equal(got, SIZE);
	assert_int_equal(wait_exit(&host, "a")->code, 0);
}

static void test_terminal(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "tty", "cat" }, .with_tty = true });
	cleanup_fd int tty = attach("a", AGENT_STREAM_TTY);
	char text[256];
	size_t len = 0;
	while (!memchr(text, '\n', len))
		len += (size_t)read(tty, text + len, sizeof(text) - len);
	text[len] = '\0';
	assert_string_equal(text, "/dev/pts/0 24 80\r\n");
	struct agent_app_resize m = { .app = "a", .rows = 50, .cols = 100 };
	struct json_object *body;
	assert_int_equal(agent_app_resize_encode(&m, &body), 0);
	assert_int_equal(call(&host, AGENT_APP_RESIZE, body), 0);
	assert_int_equal(fd_write_all(tty, "\004", 1), 0); /* end of file */
	assert_int_equal(wait_exit(&host, "a")->code, 0);
	assert_int_equal(read(tty, text, sizeof(text)), 0);
}

/* It sees what the app has written, and is who the host says, in a session of its own. */
static void test_exec(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "create", "/mine", "wait" } });
	cleanup_fd int ready = attach("a", AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(ready), "/mine ok\n");
	int n = exec_in(&host, "a",
			(struct how){ .argv = { "/bin/app", "mode", "/mine", "id", "exit", "7" },
				      .user = "bob",
				      .env = "A=b",
				      .cwd = "/etc" });
	assert_true(n > 0);
	const char *text = output_of("a", n, AGENT_STREAM_STDOUT);
	assert_non_null(strstr(text, "/mine 100644 0:0\nuid 1000 gid 1001 groups 10\ncwd /etc\n"));
	assert_non_null(strstr(text, "session 1\nenv A=b\n"));
	assert_non_null(strstr(text, "env AC_APP_NAME=a\n"));
	assert_int_equal(wait_exec(&host, n)->code, 7);
	assert_int_equal(host.exec_exit.message[0], '\0');
	assert_int_equal(exec_in(&host, "b", (struct how){ .argv = { "/bin/app" } }),
			 AGENT_E_NO_APP);
}

/* The same bounds as the app's (test_confinement). */
static void test_exec_is_confined(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	int n = exec_in(&host, "a",
			(struct how){ .argv = { "/bin/app", "read", "/proc/self/status", "open",
						"/proc/kcore", "openw", "/proc/sysrq-trigger" } });
	const char *text = output_of("a", n, AGENT_STREAM_STDOUT);
	assert_non_null(strstr(text, "CapEff:\t00000000a80425fb\n"));
	assert_non_null(strstr(text, "CapBnd:\t00000000a80425fb\n"));
	assert_null(strstr(text, " ok\n"));
	wait_exec(&host, n);
}

/* A working directory stays in the app's root, whatever links lead there. */
static void test_working_directory(void **state)
{
	static const char *const ways[] = { "/escape", "/escape/tmp", "/escape/made/here",
					    "/proc/1/root", "/proc/1/cwd" };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		char name[16];
		snprintf(name, sizeof(name), "a%zu", i);
		add_and_start(name, (struct how){ .argv = { "/bin/app", "id" }, .cwd = ways[i] });
		assert_int_equal(wait_exit(&host, name)->code, 203);
	}
	const char *out = run("up", (struct how){ .argv = { "/bin/app", "id" }, .cwd = "/up/etc" });
	assert_non_null(strstr(out, "\ncwd /etc\n"));
	out = run("in", (struct how){ .argv = { "/bin/app", "id" }, .cwd = "/inside/new/one" });
	assert_non_null(strstr(out, "\ncwd /etc/new/one\n"));
	add_and_start("b", (struct how){ .argv = { "/bin/app", "wait" } });
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		int n = exec_in(&host, "b",
				(struct how){ .argv = { "/bin/app", "id" }, .cwd = ways[i] });
		assert_int_equal(wait_exec(&host, n)->code, 203);
		assert_non_null(strstr(host.exec_exit.message, "cannot change to directory"));
	}
}

/* As many commands as are promised, each with its streams attached. */
static void test_exec_limit(void **state)
{
	static int fds[AGENT_EXECS_MAX][3];
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	for (int i = 0; i < AGENT_EXECS_MAX; i++) {
		int n = exec_in(&host, "a",
				(struct how){ .argv = { "/bin/app", "cat" }, .with_stdin = true });
		assert_int_equal(n, i + 1);
		for (int k = 0; k < 3; k++) {
			fds[i][k] = attach_to("a", n, (enum agent_stream)k);
			assert_true(fds[i][k] >= 0);
		}
	}
	assert_int_equal(exec_in(&host, "a", (struct how){ .argv = { "/bin/app", "cat" } }),
			 AGENT_E_LIMIT);
	for (int i = 0; i < AGENT_EXECS_MAX; i++)
		for (int k = 0; k < 3; k++)
			close(fds[i][k]);
}

static void test_exec_fails(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	int n = exec_in(&host, "a", (struct how){ .argv = { "/nothing" } });
	assert_true(n > 0);
	assert_int_equal(wait_exec(&host, n)->code, 203);
	assert_string_equal(host.exec_exit.message,
			    "Unable to open \"/nothing\": No such file or directory");
	n = exec_in(&host, "a", (struct how){ .argv = { "/bin/app" }, .user = "nobody" });
	assert_int_equal(wait_exec(&host, n)->code, 203);
	assert_non_null(strstr(host.exec_exit.message, "nobody"));
	/* Right behind the start: the app may not be in its namespace yet. */
	assert_int_equal(
		wait_reply(&host, ask_add("b", (struct how){ .argv = { "/nothing" } }), NULL), 0);
	int64_t id = ask(&host, AGENT_APP_START, ref("b"));
	n = exec_in(&host, "b", (struct how){ .argv = { "/bin/app", "exit", "3" } });
	(void)id;
	if (n > 0) /* else the agent knew by then that the app has ended */
		assert_int_not_equal(wait_exec(&host, n)->code, 3);
	else
		assert_int_equal(n, AGENT_E_STATE);
}

static void exec_terminal(const char *expected)
{
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	cleanup_fd int ready = attach("a", AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(ready), "ready\n");
	int n = exec_in(&host, "a",
			(struct how){ .argv = { "/bin/app", "tty", "cat" }, .with_tty = true });
	cleanup_fd int tty = attach_to("a", n, AGENT_STREAM_TTY);
	assert_string_equal(read_line(tty), expected);
	const struct agent_exec_resize m = { .exec = n, .rows = 50, .cols = 100 };
	struct json_object *body;
	assert_int_equal(agent_exec_resize_encode(&m, &body), 0);
	assert_int_equal(call(&host, AGENT_EXEC_RESIZE, body), 0);
	const struct agent_exec_signal hangup = { .exec = n, .signal = SIGHUP };
	assert_int_equal(agent_exec_signal_encode(&hangup, &body), 0);
	assert_int_equal(call(&host, AGENT_EXEC_SIGNAL, body), 0);
	assert_int_equal(wait_exec(&host, n)->signal, SIGHUP);
}

static void test_exec_terminal(void **state)
{
	(void)state;
	exec_terminal("/dev/pts/0 24 80\r\n");
}

/* The agent cannot find the app's devpts instance without a /proc that knows its processes. */
static void test_exec_terminal_without_proc(void **state)
{
	(void)state;
	exec_terminal("(null) 24 80\r\n");
}

/* It ends with the connection that asked for it, and the processes of its group with it. */
static void test_exec_ends_with_connection(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	CLEANUP(client_deinit) struct client cl;
	client_init(&cl);
	assert_int_equal(hello(&cl, SECRET), 0);
	int n = exec_in(&cl, "a", (struct how){ .argv = { "/bin/app", "orphan-wait" } });
	cleanup_fd int out = attach_to("a", n, AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(out), "ready\n");
	fd_replace(&cl.fd, -EBADF);
	char byte;
	assert_int_equal(read(out, &byte, 1), 0);
	assert_int_equal(attach_to("a", n, AGENT_STREAM_STDERR), AGENT_E_NO_APP);
	assert_int_equal(call(&host, AGENT_INFO, NULL), 0);
}

/* Here without control groups: nothing is counted, which is not a failure. */
static void test_stats(void **state)
{
	(void)state;
	assert_int_equal(call(&host, AGENT_APP_STATS, ref("a")), AGENT_E_NO_APP);
	add_and_start("a", (struct how){ .argv = { "/bin/app", "cat" }, .with_stdin = true });
	assert_int_equal(call(&host, AGENT_APP_STATS, ref("a")), 0);
	cleanup_fd int in = attach("a", AGENT_STREAM_STDIN);
	in = fd_close(in);
	assert_int_equal(wait_exit(&host, "a")->code, 0);
	assert_int_equal(call(&host, AGENT_APP_STATS, ref("a")), AGENT_E_STATE);
}

static void test_unauthenticated(void **state)
{
	(void)state;
	CLEANUP(client_deinit) struct client bad, none;
	client_init(&bad);
	assert_int_equal(hello(&bad, "ff112233445566778899aabbccddeeff"
				     "00112233445566778899aabbccddeeff"),
			 AGENT_E_SECRET);
	char byte;
	assert_int_equal(recv(bad.fd, &byte, 1, 0), 0);
	client_init(&none);
	assert_int_equal(call(&none, AGENT_INFO, NULL), AGENT_E_SECRET);
	assert_int_equal(recv(none.fd, &byte, 1, 0), 0);
	assert_int_equal(call(&host, AGENT_INFO, NULL), 0);
}

/* Silent connections are bounded, and do not keep others out. */
static void test_silent_connections(void **state)
{
	(void)state;
	int silent[300];
	for (size_t i = 0; i < ARRAY_SIZE(silent); i++)
		silent[i] = dial();
	CLEANUP(client_deinit) struct client cl;
	client_init(&cl);
	assert_int_equal(hello(&cl, SECRET), 0);
	char byte;
	assert_int_equal(recv(silent[0], &byte, 1, 0), 0); /* the oldest were closed */
	for (size_t i = 0; i < ARRAY_SIZE(silent); i++)
		close(silent[i]);
}

static void test_disks(void **state)
{
	char text[RPC_ERROR_TEXT_MAX + 1], path[512];
	snprintf(path, sizeof(path), "%s/disks", fixture_path(state));
	write_file(path, "9", "not an image", 0644);
	assert_int_equal(
		wait_reply(&host, ask_add("a", (struct how){ .argv = { "x" }, .lun = 9 }), text),
		AGENT_E_DISK);
	assert_non_null(strstr(text, "disk 9"));
	assert_int_equal(setup(-1), AGENT_E_STATE);
}

/* A loop device with the image on it; its number in disks/3. Returns its descriptor. */
static int make_squashfs(const char *dir)
{
	char path[512], image[512], program[64];
	pid_t pid;
	int status;
	assert_int_equal(path_find_program("mksquashfs", "/usr/bin:/bin", program, sizeof(program)),
			 0);
	snprintf(image, sizeof(image), "%s/image", dir);
	snprintf(path, sizeof(path), "%s/image.squashfs", dir);
	char *argv[] = { program, image, path, NULL };
	const struct spawn_plan plan = { .program = program, .argv = argv };
	assert_int_equal(spawn(&plan, &pid, NULL), 0);
	assert_int_equal(spawn_wait(pid, &status), 0);
	assert_int_equal(status, 0);
	cleanup_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int number = ioctl(control, LOOP_CTL_GET_FREE);
	assert_true(number >= 0);
	cleanup_fd int file = open(path, O_RDONLY | O_CLOEXEC);
	char device[32];
	snprintf(device, sizeof(device), "/dev/loop%d", number);
	int fd = open(device, O_RDONLY | O_CLOEXEC);
	struct loop_config config = {
		.fd = (uint32_t)file,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_READ_ONLY,
	};
	assert_int_equal(ioctl(fd, LOOP_CONFIGURE, &config), 0);
	snprintf(path, sizeof(path), "%s/disks/3", dir);
	assert_int_equal(symlink(device, path), 0);
	return fd;
}

static void test_squashfs(void **state)
{
	cleanup_fd int device = make_squashfs(fixture_path(state));
	assert_true(device >= 0);
	const char *out = run("a", (struct how){ .argv = { "/bin/app", "create", "/etc/new", "read",
							   "/etc/group" },
						 .lun = 3 });
	assert_string_equal(out, "/etc/new ok\nbob:x:1001:\nwheel:x:10:bob\n");
	assert_int_equal(wait_reply(&host, ask_shutdown(&host, 1000), NULL), 0);
}

static void test_shutdown(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	add_and_start("b", (struct how){ .argv = { "/bin/app", "orphan" } });
	cleanup_fd int ready = attach("a", AGENT_STREAM_STDOUT);
	cleanup_fd int held = attach("b", AGENT_STREAM_STDOUT);
	char byte;
	assert_int_equal(read(ready, &byte, 1), 1);
	assert_int_equal(wait_exit(&host, "b")->code, 0); /* and its child ends with it */
	assert_int_equal(read(held, &byte, 1), 0);
	int64_t id = ask_shutdown(&host, 10000);
	assert_int_equal(wait_exit(&host, "a")->code, 4);
	assert_int_equal(wait_reply(&host, id, NULL), 0);
	assert_int_equal(start("a"), AGENT_E_STATE);
	fd_replace(&host.fd, -EBADF);
	int status;
	assert_int_equal(waitpid(agent, &status, 0), agent);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Each app is asked in its way. */
static void test_stop_signals(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	add_and_start("b", (struct how){ .argv = { "/bin/app", "wait" }, .stop_signal = SIGUSR2 });
	cleanup_fd int a = attach("a", AGENT_STREAM_STDOUT), b = attach("b", AGENT_STREAM_STDOUT);
	char byte;
	assert_int_equal(read(a, &byte, 1), 1);
	assert_int_equal(read(b, &byte, 1), 1);
	int64_t id = ask_shutdown(&host, 60000);
	assert_int_equal(wait_exit(&host, "a")->code, 4);
	assert_int_equal(wait_exit(&host, "b")->signal, SIGUSR2);
	assert_int_equal(wait_reply(&host, id, NULL), 0);
}

static void test_forced_shutdown(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	CLEANUP(client_deinit) struct client other;
	client_init(&other);
	assert_int_equal(hello(&other, SECRET), 0);
	assert_int_equal(wait_reply(&other, ask_shutdown(&other, 0), NULL), 0);
	assert_int_equal(wait_exit(&host, "a")->signal, SIGKILL);
}

/* The open descriptors of the agent, which is the only child of @agent. */
static size_t count_fds(void)
{
	char path[128];
	char pid[32] = "";
	size_t len;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)agent, (int)agent);
	cleanup_fd int children = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd_read_full(children, pid, sizeof(pid) - 1, &len), 0);
	pid[strcspn(pid, " ")] = '\0';
	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	cleanup_dir DIR *dir = opendir(path);
	assert_non_null(dir);
	size_t n = 0;
	while (readdir(dir))
		n++;
	return n;
}

/* Not one more after connections, streams and apps have come and gone. */
static void test_descriptors(void **state)
{
	(void)state;
	char name[16];
	size_t before = count_fds();
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		run(name, (struct how){ .argv = { "/bin/app", "id" } });
		output(name, AGENT_STREAM_STDERR);
		CLEANUP(client_deinit) struct client cl;
		client_init(&cl);
		assert_int_equal(hello(&cl, SECRET), 0);
	}
	int64_t deadline = clock_monotonic_ns() + TIMEOUT_MS * NS_PER_MS;
	while (count_fds() != before && clock_monotonic_ns() < deadline)
		assert_int_equal(call(&host, AGENT_INFO, NULL), 0);
	assert_int_equal(count_fds(), before);
}

int main(void)
{
	if (geteuid() != 0) {
		puts("SKIP: namespaces and mounts need root");
		return 77;
	}
	const struct CMUnitTest tests[] = {
		TEST(test_identity),
		TEST(test_root_directory),
		TEST(test_confinement),
		TEST(test_not_executed),
		TEST(test_status),
		TEST(test_streams),
		TEST(test_flow),
		TEST(test_terminal),
		TEST(test_exec),
		TEST(test_exec_is_confined),
		TEST(test_working_directory),
		TEST(test_exec_limit),
		TEST(test_exec_fails),
		TEST(test_exec_terminal),
		cmocka_unit_test_setup_teardown(test_exec_terminal_without_proc, begin_without_proc,
						end),
		TEST(test_exec_ends_with_connection),
		TEST(test_stats),
		TEST(test_unauthenticated),
		TEST(test_silent_connections),
		TEST(test_disks),
		TEST(test_squashfs),
		TEST(test_shutdown),
		TEST(test_stop_signals),
		TEST(test_forced_shutdown),
		TEST(test_descriptors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
