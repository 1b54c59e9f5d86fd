/* SPDX-License-Identifier: Apache-2.0 */
/* What the device process gives up: proven in children, since every step is final. */
#include "stage1-kvm/vsock/confine.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fixture.h"

static void do_nothing(void)
{
}

static void do_map_data(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		_exit(3);
}

static void do_grow(void)
{
	char *p = malloc(1000);
	p = realloc(p, 200 << 10);
	p = p ? realloc(p, 400 << 10) : NULL;
	if (!p)
		_exit(3);
	free(p);
}

static int run_confined(void (*fn)(void))
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err e = ERR_INIT;
		if (confine_process(&e) < 0)
			_exit(2);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_work_is_allowed(void **state)
{
	(void)state;
	assert_int_equal(run_confined(do_nothing), 0);
	assert_int_equal(run_confined(do_map_data), 0);
	assert_int_equal(run_confined(do_grow), 0);
}

#if CONFINE_WORKS

static void do_unlisted(void)
{
	(void)syscall(SYS_getppid);
}

static void do_open(void)
{
	(void)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY);
}

static void do_socket(void)
{
	(void)syscall(SYS_socket, 1, 1, 0);
}

static void do_map_code(void)
{
	(void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void test_anything_else_kills(void **state)
{
	static void (*const deeds[])(void) = { do_unlisted, do_open, do_socket, do_map_code };
	(void)state;
	for (size_t i = 0; i < sizeof(deeds) / sizeof(*deeds); i++) {
		int status = run_confined(deeds[i]);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
	}
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_work_is_allowed),
#if CONFINE_WORKS
		fixture_test(test_anything_else_kills),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
