/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/pod/list.h"
#include "lib/os/lock.h"
#include "tests/support/fixture.h"

#define TAKERS 8

static struct pods *open_pods(void **state)
{
	struct pods *ps = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(pods_open(fixture_dir(state), true, &ps, &e), 0);
	return ps;
}

static void test_valid(void **state)
{
	static const struct {
		const char *name;
		bool valid;
	} cases[] = {
		{ "a", true },
		{ "0", true },
		{ "web-1", true },
		{ "a--b", true },
		{ "0123456789012345678901234567890123456789012345678901234567890ab", true },
		{ "0123456789012345678901234567890123456789012345678901234567890abc", false },
		{ "", false },
		{ "-a", false },
		{ "a-", false },
		{ "A", false },
		{ "a_b", false },
		{ "a.b", false },
		{ "a/b", false },
		{ "a\n", false },
		{ "01234567-89ab-4def-8123-456789abcdef", false },
		{ "01234567-89ab-4def-8123-456789abcde", true },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(pod_name_is_valid(cases[i].name), cases[i].valid);
}

/* A pod that has taken @name, or what was said. */
static int make(struct pods *ps, const char *name, struct pod *p, struct err *e)
{
	int r = pod_create(ps, false, p, e);
	return r < 0 ? r : pod_name_take(ps, p, name, e);
}

/* A name is held from the preparation to the end, by who lives; then others may have it, too. */
static void test_life(void **state)
{
	cleanup_pods struct pods *ps = open_pods(state);
	cleanup_pod struct pod one = POD_INIT, two = POD_INIT, three = POD_INIT, gone = POD_INIT;
	struct err e = ERR_INIT;
	struct uuid uuid;
	char name[POD_NAME_MAX + 1];
	assert_int_equal(pod_name_find(ps, "db", &uuid, &e), POD_GONE);
	assert_int_equal(make(ps, "db", &one, &e), 0);
	pod_name_read(one.fd, name);
	assert_string_equal(name, "db");
	assert_int_equal(make(ps, "db", &two, &e), -EEXIST);
	assert_non_null(strstr(e.text, one.uuid.text));
	assert_int_equal(pod_name_take(ps, &two, "other", &e), 0);
	assert_int_equal(pod_start(ps, &one, &e), 0);
	assert_int_equal(make(ps, "db", &three, &e), -EEXIST);
	assert_int_equal(pods_resolve(ps, "db", &uuid, &e), 0);
	assert_string_equal(uuid.text, one.uuid.text);
	/* Who gave up a preparation has no name. */
	pod_deinit(&two);
	assert_int_equal(pod_name_find(ps, "other", &uuid, &e), POD_GONE);
	assert_int_equal(pod_name_take(ps, &three, "other", &e), 0);
	/* Garbage keeps its name and leaves it to others. */
	assert_int_equal(pod_mark_exited(ps, &one, &e), 0);
	assert_int_equal(pods_resolve(ps, "db", &uuid, &e), 0);
	assert_int_equal(make(ps, "db", &gone, &e), 0);
	assert_int_equal(pod_start(ps, &gone, &e), 0);
	assert_int_equal(pods_resolve(ps, "db", &uuid, &e), 0);
	assert_string_equal(uuid.text, gone.uuid.text);
	assert_int_equal(pod_mark_exited(ps, &gone, &e), 0);
	assert_int_equal(pods_resolve(ps, "db", &uuid, &e), -EEXIST);
	assert_string_equal(e.text, "2 pods that have ended are named \"db\" (use a UUID)");
}

/* A pod that waits for its start has a name like any other. */
static void test_prepared(void **state)
{
	cleanup_pods struct pods *ps = open_pods(state);
	cleanup_pod struct pod one = POD_INIT, two = POD_INIT;
	struct err e = ERR_INIT;
	struct uuid uuid;
	assert_int_equal(make(ps, "db", &one, &e), 0);
	assert_int_equal(pod_finish_prepare(ps, &one, &e), 0);
	assert_int_equal(make(ps, "db", &two, &e), -EEXIST);
	assert_int_equal(pods_resolve(ps, "db", &uuid, &e), 0);
	assert_string_equal(uuid.text, one.uuid.text);
}

/* What is in the file is not believed. */
static void test_damaged(void **state)
{
	static const char *const texts[] = { "", "A", "a b", "\x1b[2J", "../x" };
	cleanup_pods struct pods *ps = open_pods(state);
	cleanup_pod struct pod p = POD_INIT;
	struct err e = ERR_INIT;
	char name[POD_NAME_MAX + 1];
	assert_int_equal(pod_create(ps, false, &p, &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		int fd = openat(p.fd, "name", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
		assert_int_equal(write(fd, texts[i], strlen(texts[i])), strlen(texts[i]));
		close(fd);
		pod_name_read(p.fd, name);
		assert_string_equal(name, "");
	}
	assert_int_equal(symlinkat("/etc/hostname", p.fd, "link"), 0);
	assert_int_equal(renameat(p.fd, "link", p.fd, "name"), 0);
	pod_name_read(p.fd, name);
	assert_string_equal(name, "");
	pod_name_read(-EBADF, name);
	assert_string_equal(name, "");
}

/* Tries to take the name; lives until @end is closed, as it would who prepares a pod. */
static int take_in_child(struct pods *ps, int end)
{
	cleanup_pod struct pod p = POD_INIT;
	struct err e = ERR_INIT;
	char c;
	int r = make(ps, "db", &p, &e);
	if (r < 0)
		return r == -EEXIST ? 1 : 2;
	return read(end, &c, 1) == 0 ? 0 : 3;
}

/* Of several who want the same name at a time one gets it. */
static void test_race(void **state)
{
	cleanup_pods struct pods *ps = open_pods(state);
	int end[2], won = 0, lost = 0;
	pid_t pids[TAKERS];
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	for (int i = 0; i < TAKERS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			close(end[1]);
			_exit(take_in_child(ps, end[0]));
		}
	}
	/* All but one end by themselves. */
	for (int i = 0; i < TAKERS - 1; i++) {
		int status;
		assert_true(waitpid(-1, &status, 0) > 0);
		lost += WIFEXITED(status) && WEXITSTATUS(status) == 1;
	}
	close(end[1]);
	int status;
	assert_true(waitpid(-1, &status, 0) > 0);
	won += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	close(end[0]);
	assert_int_equal(lost, TAKERS - 1);
	assert_int_equal(won, 1);
}

/* Somebody who keeps the names locked stops nobody for long. */
static void test_locked(void **state)
{
	cleanup_pods struct pods *ps = open_pods(state);
	cleanup_pod struct pod p = POD_INIT;
	struct err e = ERR_INIT;
	int fd = openat(pods_phase_fd(ps, POD_PREPARE), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(lock_exclusive(fd), 0);
	assert_int_equal(make(ps, "db", &p, &e), -EBUSY);
	assert_string_equal(e.text, "cannot lock the names of pods: Device or resource busy");
	close(fd);
	assert_int_equal(pod_name_take(ps, &p, "db", &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_valid), fixture_test(test_life),   fixture_test(test_damaged),
		fixture_test(test_race),  fixture_test(test_locked), fixture_test(test_prepared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
