/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/file.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

static struct pod fixture_pod(void **state)
{
	struct pod p = POD_INIT;
	memcpy(p.uuid.text, "12345678-1234-4123-8123-123456789abc", UUID_TEXT_LEN + 1);
	p.fd = fixture_dir(state);
	return p;
}

/* In the new process: says @text, makes the pod ready if asked to, and ends with @status. */
static _Noreturn void supervise(const struct pod *p, const char *text, bool ready, int status)
{
	struct stat st;
	if (getsid(0) != getpid() || fstat(STDIN_FILENO, &st) < 0 || !S_ISCHR(st.st_mode))
		dprintf(STDERR_FILENO, "not detached\n");
	dprintf(STDOUT_FILENO, "nobody sees this\n");
	dprintf(STDERR_FILENO, "%s", text);
	if (ready)
		file_touch_at(p->fd, POD_FILE_READY, 0640);
	_exit(status);
}

static int detach(void **state, const char *text, bool ready, int status, struct err *e)
{
	struct pod p = fixture_pod(state);
	int r = pod_detach(&p, e);
	if (r == 0)
		supervise(&p, text, ready, status);
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	return r;
}

static void test_ready(void **state)
{
	struct err e = ERR_INIT;
	assert_int_equal(detach(state, "", true, 7, &e), DETACH_READY);
	cleanup_free char *log = NULL;
	size_t len;
	assert_int_equal(file_read_at(fixture_dir(state), POD_FILE_LOG, 100, &log, &len), 0);
	assert_int_equal(len, 0);
	struct stat st; /* what a supervisor says may be of secrets in environments */
	assert_int_equal(fstatat(fixture_dir(state), POD_FILE_LOG, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_reason(void **state)
{
	struct err e = ERR_INIT;
	assert_int_equal(detach(state, "first\nstage1: why\n\n", false, 254, &e), -EIO);
	assert_string_equal(e.text, "stage1: why");
	assert_int_equal(detach(state, "stage1: why\nstage1: warning: and\n", false, 254, &e),
			 -EIO);
	assert_string_equal(e.text, "stage1: why");
}

/* Only the end of a long log is looked at. */
static void test_long_reason(void **state)
{
	static char text[3 * DETACH_LOG_MAX];
	struct err e = ERR_INIT;
	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(detach(state, text, false, 254, &e), -EIO);
	assert_int_equal(e.text[0], 'x');
	memcpy(text + sizeof(text) - 6, "\nend\n", 5);
	assert_int_equal(detach(state, text, false, 254, &e), -EIO);
	assert_string_equal(e.text, "end");
}

static void test_no_reason(void **state)
{
	struct err e = ERR_INIT;
	assert_int_equal(detach(state, "", false, 3, &e), -EIO);
	assert_string_equal(e.text,
			    "pod \"12345678-1234-4123-8123-123456789abc\" ended before it was "
			    "ready, with exit status 3");
	struct pod p = fixture_pod(state);
	int r = pod_detach(&p, &e);
	if (r == 0)
		kill(getpid(), SIGKILL);
	assert_int_equal(r, -EIO);
	assert_string_equal(e.text,
			    "pod \"12345678-1234-4123-8123-123456789abc\": its supervisor was "
			    "killed by signal 9");
}

static void test_no_log(void **state)
{
	struct err e = ERR_INIT;
	struct pod p = fixture_pod(state);
	assert_int_equal(mkdirat(p.fd, POD_FILE_LOG, 0700), 0);
	assert_int_equal(pod_detach(&p, &e), -EISDIR);
	assert_non_null(strstr(e.text, POD_FILE_LOG));
}

/* Until it is ready it goes with husk: who interrupts `husk run --detach` does not get a pod. */
static void test_goes_with_husk(void **state)
{
	struct err e = ERR_INIT;
	struct pod p = fixture_pod(state);
	int r = pod_detach(&p, &e);
	if (r == 0) {
		int sig = 0;
		prctl(PR_GET_PDEATHSIG, &sig);
		supervise(&p, sig == SIGTERM ? "yes" : "no", false, 1);
	}
	assert_int_equal(r, -EIO);
	assert_string_equal(e.text, "yes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_ready),       fixture_test(test_reason),
		fixture_test(test_long_reason), fixture_test(test_no_reason),
		fixture_test(test_no_log),      fixture_test(test_goes_with_husk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
