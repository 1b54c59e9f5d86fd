/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/host.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fixture.h"

static void test_facts(void **state)
{
	static struct results r;
	(void)state;
	host_add_facts(&r);
	assert_true(r.n_facts >= 5);
	for (size_t i = 0; i < r.n_facts; i++)
		assert_null(strchr(r.facts[i].text, '\n'));
}

/* Waits for its end. */
static _Noreturn void wait_for_ever(void)
{
	for (;;)
		pause();
}

/* A child that waits, and a child of it. */
static pid_t make_family(pid_t *ret_child)
{
	int ready[2];
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		pid_t child = fork();
		if (child > 0)
			(void)!write(ready[1], &child, sizeof(child));
		wait_for_ever();
	}
	assert_true(pid > 0);
	assert_int_equal(read(ready[0], ret_child, sizeof(*ret_child)), sizeof(*ret_child));
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void test_family(void **state)
{
	struct family one, all;
	struct err e = ERR_INIT;
	pid_t child, head = make_family(&child);
	(void)state;
	assert_int_equal(host_count_families(&head, 1, "/no such mark", true, &one, &e), 0);
	assert_int_equal(one.processes, 2);
	assert_true(one.pss_kib > 0);
	assert_int_equal(one.guest_kib, 0);
	assert_int_equal(host_count_families(&head, 1, "/no such mark", false, &all, &e), 0);
	assert_int_equal(all.processes, 2);
	assert_int_equal(all.pss_kib, 0); /* not asked for */
	kill(child, SIGKILL);
	kill(head, SIGKILL);
	assert_int_equal(waitpid(head, NULL, 0), head);
	assert_int_equal(host_count_families(&head, 1, "/no such mark", true, &one, &e), 0);
	assert_int_equal(one.processes, 0);
}

static void test_drop_cache(void **state)
{
	fixture_write(state, "file", "text", 4);
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fixture_dir(state));
	host_drop_cache(path);
	host_drop_cache("/not/there");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_facts),
		fixture_test(test_family),
		fixture_test(test_drop_cache),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
