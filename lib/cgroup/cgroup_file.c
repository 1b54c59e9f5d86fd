/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cgroup/cgroup_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/num.h"
#include "lib/os/fd.h"

#define NUMBER_LEN_MAX 20 /* digits of 2^64 */

int cgroup_file_write(int dir, const char *name, const char *text)
{
	cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

int cgroup_file_read(int dir, const char *name, char *text, size_t size)
{
	size_t len = 0;
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd_read_full(fd, text, size - 1, &len);
	text[len] = '\0';
	return r;
}

/* The number at the beginning of @s; -1 if there is none, or it is too large. */
static int64_t number_at(const char *s)
{
	char digits[NUMBER_LEN_MAX + 1];
	uint64_t n;
	size_t len = strspn(s, "0123456789");
	if (len > NUMBER_LEN_MAX)
		return -1;
	memcpy(digits, s, len);
	digits[len] = '\0';
	return num_parse_u64(digits, INT64_MAX, &n) < 0 ? -1 : (int64_t)n;
}

int64_t cgroup_file_number(int dir, const char *name)
{
	char text[32];
	return cgroup_file_read(dir, name, text, sizeof(text)) < 0 ? -1 : number_at(text);
}

int64_t cgroup_text_number(const char *text, const char *key)
{
	size_t len = strlen(key);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0 && line[len] == ' ')
			return number_at(line + len + 1);
	}
	return -1;
}

int64_t cgroup_text_sum(const char *text, const char *key)
{
	int64_t sum = 0;
	for (const char *at = text; (at = strstr(at, key));) {
		at += strlen(key);
		int64_t n = number_at(at);
		if (n < 0 || __builtin_add_overflow(sum, n, &sum))
			return -1;
	}
	return sum;
}

int cgroup_file_each(int dir, const char *name, void (*fn)(void *ctx, int64_t number), void *ctx)
{
	char text[4096];
	size_t kept = 0;
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, text + kept, sizeof(text) - 1 - kept);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		text[kept + (size_t)n] = '\0';
		char *line = text;
		for (char *end; (end = strchr(line, '\n')); line = end + 1)
			if (number_at(line) >= 0)
				fn(ctx, number_at(line));
		kept = strlen(line); /* of a line that comes with the next read */
		memmove(text, line, kept);
		if (kept == sizeof(text) - 1)
			return -EBADMSG;
	}
}
