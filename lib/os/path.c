/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"

int path_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned long long)(flags | O_CLOEXEC),
		.mode = flags & (O_CREAT | O_TMPFILE) ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	long fd;
	do
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	return fd < 0 ? -errno : (int)fd;
}

/* Makes the directory @path, and its name durable. 0, also if it is there, or -errno. */
static int make_level(const char *path, mode_t mode)
{
	char parent[PATH_MAX] = ".";
	const char *slash = strrchr(path, '/');
	if (mkdir(path, mode) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (slash)
		snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path) + 1, path);
	cleanup_fd int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES) /* who may write there need not be able to read */
		return 0;
	return fd < 0 || (fsync(fd) < 0 && errno != EINVAL) ? -errno : 0;
}

int path_make_dirs(const char *path, mode_t mode)
{
	char partial[PATH_MAX];
	int r = str_copy(partial, sizeof(partial), path);
	if (r < 0)
		return r;
	for (char *slash = partial + 1; *partial && (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		r = make_level(partial, mode);
		if (r < 0)
			return r;
		*slash = '/';
	}
	r = make_level(partial, mode);
	if (r < 0)
		return r;
	int fd = open(partial, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int path_from_self(const char *suffix, char *out, size_t size)
{
	char exe[PATH_MAX], joined[PATH_MAX], resolved[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n < 0)
		return -errno;
	exe[n] = '\0';
	char *slash = strrchr(exe, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	int len = snprintf(joined, sizeof(joined), "%s/%s", exe, suffix);
	if (len < 0 || (size_t)len >= sizeof(joined))
		return -ENAMETOOLONG;
	if (!realpath(joined, resolved))
		return -errno;
	return str_copy(out, size, resolved);
}

static int is_program(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

int path_find_program(const char *name, const char *path_list, char *out, size_t size)
{
	if (strchr(name, '/'))
		return is_program(name) ? str_copy(out, size, name) : -ENOENT;
	for (const char *p = path_list; p && *p;) {
		size_t len = strcspn(p, ":");
		char candidate[PATH_MAX];
		int n = snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)len, p, name);
		if (n > 0 && (size_t)n < sizeof(candidate) && len > 0 && is_program(candidate))
			return str_copy(out, size, candidate);
		p += len + (p[len] == ':');
	}
	return -ENOENT;
}
