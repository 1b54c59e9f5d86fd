/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gc entrypoint of a stage1: cleans up what the pod in the working directory may have left
 * outside of that directory (docs/protocol-stage1.md). It runs under the pod's lock, so no
 * supervisor is left. Helpers die with their supervisor; should one of them be stuck or just dying,
 * its files must not be deleted under it: so whatever helper works in the pod directory is killed
 * and awaited. Others who do, somebody's shell for example, are left alone. What is stuck keeps
 * nobody from the rest as long as the pod stays.
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
#include "lib/os/path.h"
#include "lib/os/spawn.h"
#include "lib/wire/stage1.h"
#include "stage1/backend.h"
#include "stage1/entry/husk_net.h"
#include "stage1/net/cni/state.h"
#include "stage1/net/netns.h"
#include "stage1/pod/cgroup_parent.h"
#include "stage1/pod/pod_cgroup.h"
#include "stage1/pod/podfiles.h"
#include "stage1/pod/process.h"

#define KILL_WAIT_NS (10 * NS_PER_SEC) /* for one process, from SIGKILL to its end */

/* Of one that is dying, memory goes first, which takes a while for QEMU, and with it this. */
static bool is_marked_or_dying(const char *pid)
{
	static const char mark[] = PROCESS_MARK; /* with its NUL, as the kernel has it */
	char path[64], text[sizeof(mark) + 1];
	size_t len = 0;
	snprintf(path, sizeof(path), "/proc/%.16s/environ", pid);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fd_read_full(fd, text, sizeof(text), &len) < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%.16s/exe", pid);
	return len == 0 ? readlink(path, text, sizeof(text)) < 0 && errno == ENOENT
			: len == sizeof(mark) && memcmp(text, mark, sizeof(mark)) == 0;
}

static bool is_helper(const char *pid, const struct stat *dir)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%.16s/cwd", pid);
	return stat(path, &st) == 0 && st.st_dev == dir->st_dev && st.st_ino == dir->st_ino &&
	       is_marked_or_dying(pid);
}

/*
 * Kills the process if it is a helper in @dir. The pidfd first: its number may pass to another
 * process.
 */
static int kill_helper(const char *name, const struct stat *dir, struct err *e)
{
	uint64_t pid;
	if (num_parse_u64(name, INT_MAX, &pid) < 0 || !is_helper(name, dir))
		return 0;
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (pidfd < 0 || !is_helper(name, dir))
		return pidfd < 0 && errno != ESRCH ? err_sys(e, -errno, "process %s", name) : 0;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
		return err_sys(e, -errno, "cannot kill process %s", name);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int n = poll(&p, 1, KILL_WAIT_NS / NS_PER_MS);
	return n == 0 ? err_set(e, -ETIMEDOUT, "process %s does not end", name) : 0;
}

static int kill_helpers(struct err *e)
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
			r = kill_helper(de->d_name, &dir, e);
	return r;
}

/*
 * Whether there is something to clean up: of a pod of ours, as anybody can give the UUID of another
 * pod to a directory of theirs.
 */
static bool has_network(const char *uuid)
{
	struct stat dir;
	char netns[PATH_MAX];
	netns_path(uuid, netns);
	return stat(".", &dir) == 0 && dir.st_uid == geteuid() &&
	       (access(CNI_STATE_FILE, F_OK) == 0 || access(netns, F_OK) == 0);
}

/* What the pod's network has left: husk-net says itself what is wrong. */
static int clean_up_network(const char *uuid, bool *ret_told)
{
	int code = 0;
	if (!has_network(uuid))
		return 0;
	int r = husk_net_call(uuid, "--clean-up", STDERR_FILENO, &code);
	*ret_told = r == 0 && code != 0;
	return r < 0 ? r : code != 0 ? -EIO : 0;
}

int main(int argc, char **argv)
{
	bool told = false;
	char cgroup_parent[CGROUP_PATH_MAX];
	struct err e = ERR_INIT;
	int at = 1;
	if (at < argc && strcmp(argv[at], "--debug") == 0) /* there is nothing more to say */
		at++;
	bool stays = at < argc && strcmp(argv[at], "--pod-stays") == 0;
	if (argc != at + stays + 1) {
		fprintf(stderr, "stage1: gc: usage: gc [--debug] [--pod-stays] UUID\n");
		return EXIT_HUSK_FAILURE;
	}
	const char *uuid = argv[argc - 1];
	int r = uuid_is_valid(uuid) ? 0 : err_set(&e, -EINVAL, "no UUID: \"%s\"", uuid);
	if (r == 0 && !stays)
		r = kill_helpers(&e);
	if (r == 0)
		r = podfiles_read_cgroup_parent(AT_FDCWD, cgroup_parent, &e);
	if (r == 0)
		r = flavor_clean_up(uuid, cgroup_parent, stays, &e);
	if (r == 0 && (r = clean_up_network(uuid, &told)) < 0)
		err_sys(&e, r, "network");
	if (r == 0 && cgroup_parent_is_own(cgroup_parent)) /* with what plugins have started */
		r = pod_cgroup_remove_own(uuid, cgroup_parent, &e);
	if (r == 0)
		return 0;
	if (!told)
		fprintf(stderr, "stage1: gc: %s\n", e.text);
	return EXIT_HUSK_FAILURE;
}
