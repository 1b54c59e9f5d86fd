/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/net/proc_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/wire/sysctls.h"

static int write_value(const char *path, const char *value)
{
	char full[sizeof("/proc/sys/") + SYSCTL_NAME_MAX];
	snprintf(full, sizeof(full), "/proc/sys/%s", path);
	cleanup_fd int fd = open(full, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, value, strlen(value)); /* the kernel takes what one call brings */
	return n < 0 ? -errno : (size_t)n == strlen(value) ? 0 : -EINVAL;
}

static int refuse(const char *text, int error, struct err *e)
{
	int n = (int)strcspn(text, "=");
	switch (-error) {
	case ENOENT:
		return err_set(e, error, "sysctl \"%.*s\": the pod has none of that name", n, text);
	case EACCES:
	case EPERM:
	case EROFS:
	case EISDIR:
		return err_set(e, error, "sysctl \"%.*s\" cannot be changed in this pod", n, text);
	default:
		return err_sys(e, error, "sysctl \"%.*s\": its value \"%.80s\"", n, text,
			       text + n + 1);
	}
}

int proc_sys_set(const char *text, struct err *e)
{
	char path[SYSCTL_NAME_MAX + 1];
	const char *value;
	int r = sysctl_split(text, path, &value);
	if (r == 0)
		r = write_value(path, value);
	return r < 0 ? refuse(text, r, e) : 0;
}
