/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/helpers.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

#define FDINFO_LEN_MAX ((size_t)4096) /* fdinfo/N: of a pidfd 5 lines */
#define PID_KEY        "\nPid:\t"

/* The process that the descriptor is a pidfd of; 0: none, or it has ended, which is -1 there. */
static pid_t process_of_pidfd(const char *fdinfo, const char *fd)
{
	char path[PATH_MAX];
	cleanup_free char *info = NULL;
	uint64_t pid;
	size_t len;
	int n = snprintf(path, sizeof(path), "%s/%s", fdinfo, fd);
	if (n < 0 || (size_t)n >= sizeof(path) ||
	    file_read_path(path, FDINFO_LEN_MAX, &info, &len) < 0)
		return 0;
	char *at = strstr(info, PID_KEY);
	if (!at)
		return 0;
	at += strlen(PID_KEY);
	at[strcspn(at, "\n")] = '\0';
	return num_parse_u64(at, INT_MAX, &pid) < 0 ? 0 : (pid_t)pid;
}

static bool is_among(const pid_t *pids, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

size_t pod_helpers(const char *proc, pid_t supervisor, pid_t ret[POD_HELPERS_MAX])
{
	char path[PATH_MAX];
	size_t n = 0;
	int len = snprintf(path, sizeof(path), "%s/%d/fdinfo", proc, (int)supervisor);
	cleanup_dir DIR *dir = len > 0 && (size_t)len < sizeof(path) ? opendir(path) : NULL;
	for (struct dirent *de; dir && n < POD_HELPERS_MAX && (de = readdir(dir));) {
		pid_t pid = process_of_pidfd(path, de->d_name);
		if (pid > 0 && !is_among(ret, n, pid))
			ret[n++] = pid;
	}
	return n;
}
