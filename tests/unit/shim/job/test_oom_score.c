/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/job/oom_score.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

/* Whether the file says @want. */
static bool is_score(const char *want)
{
	char text[16] = "";
	size_t len = 0;
	int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
	bool same = fd_read_full(fd, text, sizeof(text) - 1, &len) == 0 && strcmp(text, want) == 0;
	close(fd);
	return same;
}

/* In a child, since without privileges there is no way back. */
static void test_scores(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		bool ok = oom_score_set(600) == 0 && is_score("600\n") && oom_score_raise(1) == 0 &&
			  is_score("601\n") && oom_score_raise(1000) == 0 && is_score("1000\n") &&
			  oom_score_set(1001) < 0 && is_score("1000\n");
		_exit(ok ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EXIT_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = { fixture_test(test_scores) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
