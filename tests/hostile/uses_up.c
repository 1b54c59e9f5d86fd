/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uses-up inotify|aio|tasks: takes as many as the kernel gives of what it has for all of the host,
 * says how many these are, and keeps them until it is killed. Part of tests/system/namespaces.sh,
 * where it runs as an app.
 */
#include <errno.h>
#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/macros.h"

#define MANY 100000 /* more than the limits that are tested */

static bool take_inotify(void)
{
	return inotify_init1(IN_CLOEXEC) >= 0;
}

static bool take_aio(void)
{
	aio_context_t context = 0;
	return syscall(SYS_io_setup, 16, &context) == 0;
}

static bool take_task(void)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid > 0;
	prctl(PR_SET_PDEATHSIG, 9);
	for (;;)
		pause();
}

static const struct {
	const char *name;
	bool (*take)(void);
} kinds[] = { { "inotify", take_inotify }, { "aio", take_aio }, { "tasks", take_task } };

int main(int argc, char **argv)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(kinds); i++) {
		int n = 0;
		if (strcmp(argv[1], kinds[i].name) != 0)
			continue;
		while (n < MANY && kinds[i].take())
			n++;
		printf("%d: %s\n", n, strerrorname_np(errno));
		fflush(stdout);
		for (;;)
			pause();
	}
	fprintf(stderr, "usage: uses-up inotify|aio|tasks\n");
	return 2;
}
