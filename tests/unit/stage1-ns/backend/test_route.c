/* SPDX-License-Identifier: Apache-2.0 */
/* What gc does for a pod of namespaces: it waits for the end of all that lives in there. */
#include "stage1/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/lock.h"
#include "stage1-ns/backend/files.h"
#include "tests/support/fixture.h"

#define UUID "12345678-1234-4123-8123-123456789abc" /* of no pod: there is no control group */

static int holder; /* of the lock, as the pod's processes are */
static volatile sig_atomic_t has_ended;

static void hold(void **state)
{
	assert_int_equal(chdir(fixture_path(state)), 0);
	holder = open(NS_FILE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(lock_try_exclusive(holder), 0);
}

static void let_go(void)
{
	holder = fd_close(holder);
	assert_int_equal(chdir("/"), 0);
}

static void on_alarm(int sig)
{
	(void)sig;
	has_ended = true;
	lock_release(holder);
}

static void clean_up(bool stays)
{
	struct err e = ERR_INIT;
	if (flavor_clean_up(UUID, "", stays, &e) < 0)
		fail_msg("%s", e.text);
}

/* The pod goes on for a moment. */
static void test_waits(void **state)
{
	hold(state);
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = 50000 }, NULL);
	clean_up(false);
	assert_true(has_ended);
	/* And the file is nobody's afterwards: gc is done with it. */
	assert_int_equal(lock_try_exclusive(holder), 0);
	let_go();
}

/* What does not end within the limit is said, and so is what cannot be looked at. */
static void test_does_not_end(void **state)
{
	struct err e = ERR_INIT;
	hold(state);
	assert_int_equal(flavor_clean_up(UUID, "", true, &e), -ETIMEDOUT);
	assert_non_null(strstr(e.text, "processes of the pod do not end: "));
	assert_int_equal(unlink(NS_FILE_LOCK) | symlink("elsewhere", NS_FILE_LOCK), 0);
	assert_int_equal(flavor_clean_up(UUID, "", true, &e), -ELOOP);
	assert_non_null(strstr(e.text, "processes of the pod do not end: "));
	let_go();
}

/* A pod that never was: there is nothing to wait for. */
static void test_nothing(void **state)
{
	assert_int_equal(chdir(fixture_path(state)), 0);
	clean_up(true);
	clean_up(false);
	assert_int_equal(chdir("/"), 0);
}

static void test_helper_name(void **state)
{
	(void)state;
	assert_string_equal(flavor_helper_name("husk-ns"), "keeper");
	assert_string_equal(flavor_helper_name("husk-agent"), "agent");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_waits),
		fixture_test(test_does_not_end),
		fixture_test(test_nothing),
		fixture_test(test_helper_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
