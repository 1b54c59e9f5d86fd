/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/trace.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

#define SYSCALL_STOP (SIGTRAP | 0x80) /* with PTRACE_O_TRACESYSGOOD */

void trace_me(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(126);
	raise(SIGSTOP);
}

static bool is_entry(pid_t child, long nr)
{
	struct __ptrace_syscall_info info = { 0 };
	assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) > 0);
	return info.op == PTRACE_SYSCALL_INFO_ENTRY && (long)info.entry.nr == nr;
}

/* The signal that stopped it, or 0: it has ended. */
static int await_stop(pid_t child, int *ret_status)
{
	assert_int_equal(waitpid(child, ret_status, __WALL), child);
	return WIFSTOPPED(*ret_status) ? WSTOPSIG(*ret_status) : 0;
}

bool trace_until(pid_t child, long nr, int *ret_status)
{
	const unsigned long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
	static pid_t traced;
	int sig = 0;
	if (traced != child) {
		if (await_stop(child, ret_status) == 0)
			return false;
		assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, NULL, options), 0);
		traced = child;
	}
	for (;;) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, (long)sig), 0);
		int stop = await_stop(child, ret_status);
		if (stop == 0 || (stop == SYSCALL_STOP && is_entry(child, nr)))
			return stop != 0;
		/* execve(2) shows as SIGTRAP. */
		sig = stop == SYSCALL_STOP || stop == SIGTRAP ? 0 : stop;
	}
}

void trace_end(pid_t child)
{
	assert_int_equal(ptrace(PTRACE_DETACH, child, NULL, NULL), 0);
}
