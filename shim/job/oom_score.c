/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/job/oom_score.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"
#include "lib/os/fd.h"

#define FILE_NAME "/proc/self/oom_score_adj"
#define SCORE_MAX 1000 /* as proc(5) has it */

int oom_score_set(int score)
{
	char text[16];
	cleanup_fd int fd = open(FILE_NAME, O_WRONLY | O_CLOEXEC);
	snprintf(text, sizeof(text), "%d", score);
	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int read_score(int *ret)
{
	char text[16] = "";
	size_t len = 0;
	uint64_t n = 0;
	cleanup_fd int fd = open(FILE_NAME, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd_read_full(fd, text, sizeof(text) - 1, &len);
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	bool is_negative = *text == '-';
	r = num_parse_u64(text + is_negative, SCORE_MAX, &n);
	*ret = is_negative ? -(int)n : (int)n;
	return r;
}

int oom_score_raise(int more)
{
	int score = 0;
	int r = read_score(&score);
	return r < 0 ? r : oom_score_set(MIN(score + more, SCORE_MAX));
}
