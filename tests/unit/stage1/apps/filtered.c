/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/stage1/apps/filtered.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/hex.h"
#include "stage1/apps/appfilter.h"
#include "tests/support/fixture.h"

/* Exit codes of a child beside 0; anything else is the errno of a call. */
#define NOT_INSTALLED 250

static int install(const char *hex)
{
	static struct sock_filter insns[APPFILTER_INSNS_MAX];
	struct sock_fprog prog = { .filter = insns };
	prog.len = (unsigned short)(strlen(hex) / 2 / sizeof(insns[0]));
	if (hex_decode(hex, (unsigned char *)insns, prog.len * sizeof(insns[0])) < 0)
		return -EINVAL;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return -errno;
	return 0;
}

/*
 * Ends a child. Neither _exit(2) nor a function that is known not to return: before those,
 * sanitizers make system calls that the filters do not allow.
 */
static void leave(int code)
{
	syscall(SYS_exit_group, code);
}

int filtered_run(const char *hex, int (*fn)(void *ctx), void *ctx)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (install(hex) < 0)
			leave(NOT_INSTALLED);
		leave(fn(ctx));
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int make_call(void *ctx)
{
	const long *c = ctx;
	return syscall(c[0], c[1], c[2], c[3], c[4]) < 0 ? errno : 0;
}

int filtered_call(const char *hex, long number, long a, long b, long c, long d)
{
	long call[] = { number, a, b, c, d };
	return filtered_run(hex, make_call, call);
}
