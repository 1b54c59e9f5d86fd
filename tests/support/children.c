/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of unit tests, in every one of them: a child that a signal ends, or whose assertion
 * fails, ends, and its parent sees that.
 *
 * Theory of operation: cmocka handles signals like SIGSEGV, and lets a failed assertion jump to the
 * next test. A child would inherit both, and go on with the rest of the test program instead of
 * ending. So it begins with the signals as they are in other programs, and with the environment
 * variable that makes cmocka call abort(3); that is a byte of ours, since a child of a program with
 * an allocator that fails on demand had better not allocate.
 */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

static char test_abort[] = "CMOCKA_TEST_ABORT=0";

static void begin_child(void)
{
	static const int handled[] = { SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS, SIGABRT };
	for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
		signal(handled[i], SIG_DFL);
	test_abort[sizeof(test_abort) - 2] = '1';
}

__attribute__((constructor)) static void prepare(void)
{
	if (putenv(test_abort) != 0 || pthread_atfork(NULL, NULL, begin_child) != 0)
		abort();
}
