/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/hostfacts/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "tests/support/fixture.h"

#define NOBODY 65534

static void check_texts(const struct probe_result *r, const char *device)
{
	assert_non_null(probe_verdict_name(r->verdict));
	assert_non_null(strstr(r->reason, device));
	assert_null(strchr(r->reason, '\n'));
	if (r->verdict != PROBE_USABLE)
		assert_true(probe_verdict_remedy(r->verdict)[0] != '\0');
}

static void test_absent(void **state)
{
	struct probe_result r;

	(void)state;
	probe_kvm("/nonexistent/kvm", true, &r);
	assert_int_equal(r.verdict, PROBE_ABSENT);
	assert_int_equal(r.per_sec, 0);
	check_texts(&r, "/nonexistent/kvm");
}

static void test_not_kvm(void **state)
{
	struct probe_result r;

	(void)state;
	probe_kvm("/dev/null", true, &r);
	assert_int_equal(r.verdict, PROBE_BROKEN);
	check_texts(&r, "/dev/null");
	assert_non_null(strstr(r.reason, "KVM_GET_API_VERSION"));
}

static int verdict_of_nobody(const char *path)
{
	struct probe_result r;

	if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return -1;
	probe_kvm(path, true, &r);
	return (int)r.verdict;
}

static void test_no_permission(void **state)
{
	char path[4096];
	int status;
	pid_t pid;

	fixture_write(state, "kvm", "", 0);
	snprintf(path, sizeof(path), "%s/kvm", fixture_path(state));
	assert_int_equal(chmod(path, 0), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(verdict_of_nobody(path));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), PROBE_NO_PERMISSION);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* The KVM of this host, whatever it is: an answer in bounded time, and no trace of the probe. */
static void test_this_host(void **state)
{
	struct sigaction mine = { .sa_handler = on_alarm }, after;
	sigset_t blocked, mask;
	struct probe_result quick, thorough;

	(void)state;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGALRM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &mine, NULL), 0);
	probe_kvm("/dev/kvm", false, &quick);
	probe_kvm("/dev/kvm", true, &thorough);
	assert_int_equal(sigaction(SIGALRM, NULL, &after), 0);
	assert_ptr_equal(after.sa_handler, on_alarm);
	assert_int_equal(sigprocmask(SIG_UNBLOCK, &blocked, &mask), 0);
	assert_true(sigismember(&mask, SIGALRM));
	check_texts(&quick, "/dev/kvm");
	check_texts(&thorough, "/dev/kvm");
	/* Where others keep the processor busy one of them may be too slow. */
	if (quick.verdict != PROBE_TOO_SLOW && thorough.verdict != PROBE_TOO_SLOW)
		assert_int_equal(quick.verdict == PROBE_USABLE, thorough.verdict == PROBE_USABLE);
	if (thorough.verdict == PROBE_USABLE)
		assert_true(thorough.per_sec >= PROBE_MIN_PER_SEC);
	print_message("%s: %.1f ms; thorough: %s: %.1f ms\n", probe_verdict_name(quick.verdict),
		      (double)quick.cost_ns / NS_PER_MS, thorough.reason,
		      (double)thorough.cost_ns / NS_PER_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_absent),
		fixture_test(test_not_kvm),
		fixture_test(test_no_permission),
		fixture_test(test_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
