/* SPDX-License-Identifier: Apache-2.0 */
/* What runs before and after an app: a real agent and its apps. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/fixture.h"
#include "tests/unit/guest-agent/client.h"

/* Where each of @words begins in @text, in this order and none twice. */
static void expect_in_order(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *found = strstr(text, words[i]);
		if (!found)
			fail_msg("no \"%s\" in \"%s\"", words[i], text);
		text = found + strlen(words[i]);
	}
	assert_null(strstr(text, words[n - 1]));
}

static void test_order_and_user(void **state)
{
	(void)state;
	static const char *const order[] = { "uid 0 gid 0 groups\n",
					     "uid 1000 gid 1001 groups 10\n",
					     "/bin/app 100755 0:0\n" };
	add_and_start("a", (struct how){ .argv = { "/bin/app", "id", "exit", "7" },
					 .user = "bob",
					 .cwd = "/bin",
					 .env = "PATH=/bin",
					 .pre_start = { "app", "id" },
					 .post_stop = { "./app", "mode", "/bin/app" } });
	const char *text = output("a", AGENT_STREAM_STDOUT);
	expect_in_order(text, order, ARRAY_SIZE(order));
	assert_non_null(strstr(text, "cwd /bin\n"));
	assert_int_equal(wait_exit(&host, "a")->code, 7);
}

/* As the app is: capabilities, limits, filter. */
static void test_confined(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "exit", "0" },
					 .user = "bob",
					 .capabilities = 0x21,
					 .no_new_privs = true,
					 .rlimits = { "nofile=5:6" },
					 .pre_start = { "/bin/app", "read", "/proc/self/status" },
					 .post_stop = { "/bin/app", "limits", "openw",
							"/proc/sysrq-trigger" } });
	const char *text = output("a", AGENT_STREAM_STDOUT);
	assert_non_null(strstr(text, "CapEff:\t0000000000000021\n"));
	assert_non_null(strstr(text, "CapBnd:\t0000000000000021\n"));
	assert_non_null(strstr(text, "NoNewPrivs:\t1\n"));
	assert_non_null(strstr(text, "nofile 5:6 "));
	assert_null(strstr(text, " ok\n"));
	wait_exit(&host, "a");
}

static void expect_failure(const char *app, const char *const handler[4], const char *message)
{
	struct how how = { .argv = { "/bin/app", "id" } };
	memcpy(how.pre_start, handler, sizeof(how.pre_start));
	add_and_start(app, how);
	assert_null(strstr(output(app, AGENT_STREAM_STDOUT), "uid"));
	const struct agent_app_exited *m = wait_exit(&host, app);
	assert_int_equal(m->code, 203);
	assert_string_equal(m->message, message);
}

static void test_pre_start_fails(void **state)
{
	(void)state;
	expect_failure("a", (const char *const[4]){ "/bin/app", "exit", "3" },
		       "event handler \"pre-start\" ended with exit code 3");
	expect_failure("b", (const char *const[4]){ "/nothing" },
		       "event handler \"pre-start\": Unable to open \"/nothing\": No such file or "
		       "directory");
	expect_failure("c", (const char *const[4]){ "/bin/plain" },
		       "event handler \"pre-start\": Unable to execute \"/bin/plain\": Exec format "
		       "error");
}

/* The end of the app counts, not that of its handler. */
static void test_post_stop_fails(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "exit", "0" },
					 .post_stop = { "/nothing" } });
	assert_string_equal(
		output("a", AGENT_STREAM_STDERR),
		"husk-agent: event handler \"post-stop\": Unable to open \"/nothing\": No "
		"such file or directory\n");
	assert_int_equal(wait_exit(&host, "a")->code, 0);
	add_and_start("b", (struct how){ .argv = { "/nowhere" },
					 .post_stop = { "/bin/app", "mode", "/bin/app" } });
	assert_string_equal(output("b", AGENT_STREAM_STDOUT), "/bin/app 100755 0:0\n");
	const struct agent_app_exited *m = wait_exit(&host, "b");
	assert_int_equal(m->code, 203);
	assert_string_equal(m->message, "Unable to open \"/nowhere\": No such file or directory");
}

static void send_signal(const char *app, int number)
{
	struct agent_app_signal m = { .signal = number };
	struct json_object *body;
	snprintf(m.app, sizeof(m.app), "%s", app);
	assert_int_equal(agent_app_signal_encode(&m, &body), 0);
	assert_int_equal(call(&host, AGENT_APP_SIGNAL, body), 0);
}

/* Signals reach the app; how it ends of them is how the app ends. */
static void test_signals(void **state)
{
	(void)state;
	const struct how how = { .argv = { "/bin/app", "wait" },
				 .post_stop = { "/bin/app", "mode", "/bin/app" } };
	add_and_start("a", how);
	int fd = attach("a", AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(fd), "ready\n");
	send_signal("a", SIGTERM);
	assert_string_equal(read_line(fd), "/bin/app 100755 0:0\n");
	close(fd);
	assert_int_equal(wait_exit(&host, "a")->code, 4);

	add_and_start("b", how);
	fd = attach("b", AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(fd), "ready\n");
	/* A further process can be started beside it. */
	int n = exec_in(&host, "b", (struct how){ .argv = { "/bin/app", "exit", "6" } });
	assert_int_equal(wait_exec(&host, n)->code, 6);
	send_signal("b", SIGUSR1);
	assert_string_equal(read_line(fd), "/bin/app 100755 0:0\n");
	close(fd);
	assert_int_equal(wait_exit(&host, "b")->signal, SIGUSR1);

	add_and_start("c", how);
	send_signal("c", SIGKILL);
	assert_int_equal(wait_exit(&host, "c")->signal, SIGKILL);
}

/* A pre-start handler that hangs ends with its app. */
static void test_stop_in_pre_start(void **state)
{
	(void)state;
	const struct how how = { .argv = { "/bin/app", "id" },
				 .pre_start = { "/bin/app", "wait" } };
	assert_int_equal(wait_reply(&host, ask_add("a", how), NULL), 0);
	int64_t starts = ask(&host, AGENT_APP_START, ref("a"));
	int fd = attach("a", AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(fd), "ready\n");
	send_signal("a", SIGTERM);
	close(fd);
	assert_int_equal(wait_reply(&host, starts, NULL),
			 0); /* its end may have been told before */
	assert_int_equal(wait_exit(&host, "a")->signal, SIGTERM);
}

int main(void)
{
	if (geteuid() != 0) {
		puts("SKIP: namespaces and mounts need root");
		return 77;
	}
	const struct CMUnitTest tests[] = {
		TEST(test_order_and_user),  TEST(test_confined), TEST(test_pre_start_fails),
		TEST(test_post_stop_fails), TEST(test_signals),  TEST(test_stop_in_pre_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
