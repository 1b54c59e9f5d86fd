/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk-ns, the program, with a pod whose agent runs: what it is told at its start, and by messages
 * then. System tests look at the pod.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/spawn.h"
#include "lib/os/unix.h"
#include "lib/wire/agent.h"
#include "stage1-ns/message.h"
#include "tests/support/fixture.h"

#define UUID      "12345678-1234-4123-8123-123456789abc"
#define SECRET    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define WORDS_MAX 200

struct keeper {
	pid_t pid;
	int socket;
	int errors; /* read from */
};

/* All that it is given but images and a network, as the backend gives it. */
static void start(void **state, struct keeper *k, struct strv *argv)
{
	int pair[2], out[2], secret[2];
	assert_int_equal(fchdir(fixture_dir(state)), 0);
	unlink("sock");
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC) | pipe2(secret, O_CLOEXEC), 0);
	int listener = unix_listen("sock", 0600);
	int lock = openat(fixture_dir(state), "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int console = openat(fixture_dir(state), "console", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(listener >= 0 && lock >= 0 && console >= 0);
	assert_int_equal(fd_write_all(secret[1], SECRET, AGENT_SECRET_LEN), 0);
	struct spawn_plan plan = { .program = KEEPER_PROGRAM, .argv = argv->v };
	const int fds[][2] = { { out[1], STDERR_FILENO },      { pair[1], HELPER_FD_SOCKET },
			       { listener, HELPER_FD_LISTEN }, { secret[0], HELPER_FD_SECRET },
			       { lock, HELPER_FD_LOCK },       { console, HELPER_FD_CONSOLE } };
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		assert_int_equal(spawn_plan_fd(&plan, fds[i][0], fds[i][1]), 0);
	assert_int_equal(spawn(&plan, &k->pid, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i][0]);
	fd_close(secret[1]);
	k->socket = pair[0];
	k->errors = out[0];
	assert_int_equal(chdir("/"), 0);
}

/* Waits for its end: it has the exit code @code, and what it wrote begins with @line. */
static void finish(struct keeper *k, int code, const char *line)
{
	char text[512];
	size_t len;
	int status;
	assert_int_equal(fd_read_full(k->errors, text, sizeof(text) - 1, &len), 0);
	text[len] = '\0';
	assert_int_equal(spawn_wait(k->pid, &status), 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != code || !str_starts(text, line))
		fail_msg("status %d: %s", status, text);
	fd_close(k->socket);
	fd_close(k->errors);
}

static void add(struct strv *argv, const char *word)
{
	assert_int_equal(strv_add(argv, word), 0);
}

static void expect_refused(void **state, const char *const *words, size_t n)
{
	struct keeper k;
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, WORDS_MAX);
	add(&argv, "husk-ns");
	for (size_t i = 0; i < n; i++)
		add(&argv, words[i]);
	start(state, &k, &argv);
	finish(&k, 2, "husk-ns: is started by husk\n");
}

/* It makes no pod of what the backend would not say, so that there are places for all of it. */
static void test_options(void **state)
{
	static const char *const bad[][2] = {
		{ "--images=0" },
		{ "--uuid=x" },
		{ "--uuid=" UUID, "--images=33" },
		{ "--uuid=" UUID, "--images=-1" },
		{ "--uuid=" UUID, "--net=none" },
		{ "--uuid=" UUID, "--tasks=4294967296" },
		{ "--uuid=" UUID, "--volume=0:ro:all:relative" },
	};
	const char *words[1 + AGENT_VOLUME_SLOTS + 1] = { "--uuid=" UUID };
	_Static_assert(AGENT_APPS_MAX == 32, "33 images are too many");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refused(state, bad[i], bad[i][1] ? 2 : 1);
	for (size_t i = 1; i < ARRAY_SIZE(words); i++)
		words[i] = "--volume=0:ro:all:/";
	expect_refused(state, words, ARRAY_SIZE(words));
}

/* What it answers to a message, with @fd unless that is negative. */
static const char *ask(const struct keeper *k, uint32_t kind, int slot, int fd)
{
	static struct message m;
	int fds[UNIX_FDS_MAX];
	size_t len, n;
	m = (struct message){ .kind = kind, .slot = slot };
	assert_int_equal(unix_send_fds(k->socket, &m, sizeof(m), &fd, fd < 0 ? 0 : 1, &len), 0);
	assert_int_equal(unix_recv_fds(k->socket, &m, sizeof(m), fds, &len, &n), 0);
	assert_int_equal(len, sizeof(m));
	assert_int_equal(n, 0);
	assert_int_equal(m.kind, MESSAGE_DONE);
	assert_int_equal(m.slot, slot);
	return m.text;
}

static void start_pod(void **state, struct keeper *k)
{
	struct message m;
	int fds[UNIX_FDS_MAX];
	size_t len, n;
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, WORDS_MAX);
	add(&argv, "husk-ns");
	add(&argv, "--uuid=" UUID);
	start(state, k, &argv);
	assert_int_equal(unix_recv_fds(k->socket, &m, sizeof(m), fds, &len, &n), 0);
	if (len != sizeof(m))
		finish(k, 0, "a pod");
	assert_int_equal(m.kind, MESSAGE_UP);
	assert_int_equal(n, 1);
	fd_close(fds[0]);
}

/* Images have as many places as a pod has apps, and no more, and whatever is wrong is answered. */
static void test_messages(void **state)
{
	static const int none[] = { -1, AGENT_APPS_MAX, AGENT_APPS_MAX + 1, INT32_MIN, INT32_MAX };
	struct keeper k;
	char want[64];
	if (geteuid() != 0)
		skip();
	start_pod(state, &k);
	cleanup_fd int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		snprintf(want, sizeof(want), "slot %d: there is none", none[i]);
		assert_string_equal(ask(&k, MESSAGE_PLUG, none[i], file), want);
		assert_string_equal(ask(&k, MESSAGE_UNPLUG, none[i], -1), want);
	}
	/* Not an image, which FUSE finds out later, if at all. */
	assert_null(strstr(ask(&k, MESSAGE_PLUG, AGENT_APPS_MAX - 1, file), "there is none"));
	assert_string_equal(ask(&k, MESSAGE_UNPLUG, AGENT_APPS_MAX - 1, -1), "");
	assert_string_equal(ask(&k, MESSAGE_UNPLUG, 0, -1), "");
	assert_string_equal(ask(&k, MESSAGE_PLUG, 0, -1), "message 0: not understood");
	assert_string_equal(ask(&k, MESSAGE_DONE, 0, -1), "message 3: not understood");
	assert_int_equal(shutdown(k.socket, SHUT_WR), 0);
	finish(&k, 0, "husk-agent: killed by signal 9\n");
}

/* A message that is too short comes from nobody who is to be obeyed. */
static void test_short_message(void **state)
{
	struct keeper k;
	char byte;
	if (geteuid() != 0)
		skip();
	start_pod(state, &k);
	assert_int_equal(send(k.socket, "x", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(recv(k.socket, &byte, 1, 0), 0);
	finish(&k, 0, "husk-agent: killed by signal 9\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_options),
		fixture_test(test_messages),
		fixture_test(test_short_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
