/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/job.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static void work(const void *arg, struct fault *ret)
{
	if (*(const int *)arg != 0)
		fault_set(ret, *(const int *)arg, "as asked");
}

static void work_data(const void *arg, void *data, struct fault *ret)
{
	memset(data, 'x', JOB_DATA_MAX);
	if (*(const int *)arg != 0)
		fault_set(ret, *(const int *)arg, "as asked");
}

static void die(const void *arg, struct fault *ret)
{
	(void)arg;
	(void)ret;
	raise(SIGKILL);
}

/* Fails if a descriptor of the parent, whose number is *@arg, is there. */
static void look(const void *arg, struct fault *ret)
{
	if (fcntl(*(const int *)arg, F_GETFD) >= 0)
		fault_set(ret, AGENT_E_INTERNAL, "leaked");
}

static struct fault run(job_fn fn, const void *arg)
{
	struct job job = JOB_INIT;
	struct fault f, result;
	int status;
	assert_int_equal(job_start(&job, fn, arg, &f), 0);
	assert_int_equal(waitpid(job.pid, &status, 0), job.pid);
	job_finish(&job, &result);
	assert_int_equal(job.pid, 0);
	assert_true(job.result_fd < 0);
	return result;
}

static void test_result(void **state)
{
	(void)state;
	int code = 0;
	assert_int_equal(run(work, &code).code, 0);
	code = AGENT_E_DISK;
	struct fault f = run(work, &code);
	assert_int_equal(f.code, AGENT_E_DISK);
	assert_string_equal(f.text, "as asked");
}

static void test_data(void **state)
{
	(void)state;
	struct job job = JOB_INIT;
	struct fault f;
	char data[JOB_DATA_MAX];
	int status;
	for (int code = 0; code >= -1; code--) {
		memset(data, 0, sizeof(data));
		assert_int_equal(job_start_data(&job, work_data, &code, sizeof(data), &f), 0);
		assert_int_equal(waitpid(job.pid, &status, 0), job.pid);
		job_finish_data(&job, data, sizeof(data), &f);
		assert_int_equal(f.code, code);
		assert_int_equal(data[0], code == 0 ? 'x' : 0);
		assert_int_equal(data[sizeof(data) - 1], code == 0 ? 'x' : 0);
	}
	assert_int_equal(job_start_data(&job, work_data, &status, JOB_DATA_MAX + 1, &f), FAULT_SET);
}

static void test_death(void **state)
{
	(void)state;
	struct fault r = run(die, NULL);
	assert_int_equal(r.code, AGENT_E_INTERNAL);
	assert_string_equal(r.text, "interrupted");
}

static void test_descriptors(void **state)
{
	(void)state;
	cleanup_fd int fd = open("/dev/null", O_RDONLY); /* inheritable on purpose */
	assert_int_equal(run(look, &fd).code, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_result),
		fixture_test(test_data),
		fixture_test(test_death),
		fixture_test(test_descriptors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
