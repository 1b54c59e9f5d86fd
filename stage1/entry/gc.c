/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gc entrypoint of a stage1: cleans up what the pod in the working directory may have left
 * outside of that directory (docs/protocol-stage1.md). It runs under the pod's lock, so no
 * supervisor is left. Helpers die with their supervisor; should one of them be stuck or just dying,
 * its files must not be deleted under it: so whatever process works in the pod directory is killed
 * and awaited.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/num.h"
#include "lib/base/uuid.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1/backend.h"

#define KILL_WAIT_NS (10 * NS_PER_SEC) /* for one process, from SIGKILL to its end */

static bool works_in(const char *pid, const struct stat *dir)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%.16s/cwd", pid);
	return stat(path, &st) == 0 && st.st_dev == dir->st_dev && st.st_ino == dir->st_ino;
}

/*
 * Kills the process if it works in @dir. The pidfd first: its number may pass to another process.
 */
static int kill_if_ours(const char *name, const struct stat *dir, struct err *e)
{
	uint64_t pid;
	if (num_parse_u64(name, INT_MAX, &pid) < 0 || (pid_t)pid == getpid() ||
	    !works_in(name, dir))
		return 0;
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (pidfd < 0 || !works_in(name, dir))
		return pidfd < 0 && errno != ESRCH ? err_sys(e, -errno, "process %s", name) : 0;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
		return err_sys(e, -errno, "cannot kill process %s", name);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int n = poll(&p, 1, KILL_WAIT_NS / NS_PER_MS);
	return n == 0 ? err_set(e, -ETIMEDOUT, "process %s does not end", name) : 0;
}

static int kill_all(struct err *e)
{
	struct stat dir;
	if (stat(".", &dir) < 0)
		return err_sys(e, -errno, "pod directory");
	cleanup_dir DIR *proc = opendir("/proc");
	if (!proc)
		return err_sys(e, -errno, "/proc");
	int r = 0;
	for (struct dirent *de; r == 0 && (de = readdir(proc));)
		if (isdigit((unsigned char)de->d_name[0]))
			r = kill_if_ours(de->d_name, &dir, e);
	return r;
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	bool debug = argc == 3 && strcmp(argv[1], "--debug") == 0;
	if (argc != (debug ? 3 : 2)) {
		fprintf(stderr, "stage1: gc: usage: gc [--debug] UUID\n");
		return EXIT_HUSK_FAILURE;
	}
	const char *uuid = argv[argc - 1];
	int r = uuid_is_valid(uuid) ? kill_all(&e) : err_set(&e, -EINVAL, "no UUID: \"%s\"", uuid);
	if (r == 0)
		r = flavor_clean_up(uuid, &e);
	if (r == 0)
		return 0;
	fprintf(stderr, "stage1: gc: %s\n", e.text);
	return EXIT_HUSK_FAILURE;
}
