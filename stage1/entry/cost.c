/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/entry/cost.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "stage1/pod/helpers.h"

#define STAT_LEN_MAX   ((size_t)4096) /* /proc/PID/stat: 52 numbers and a name */
#define ROLLUP_LEN_MAX ((size_t)8192) /* smaps_rollup: some 25 lines */

#define USEC_PER_S 1000000
#define TICKS_MAX  (INT64_MAX / 2 / USEC_PER_S) /* two of them fit as microseconds */

/* The file @name of process @pid. Owned by the caller; NULL if it cannot be read. */
static char *read_file(const char *proc, pid_t pid, const char *name, size_t max)
{
	char path[PATH_MAX];
	size_t len;
	char *text = NULL;
	int n = snprintf(path, sizeof(path), "%s/%d/%s", proc, (int)pid, name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return NULL;
	return file_read_path(path, max, &text, &len) < 0 ? NULL : text;
}

/* The next of the words in *@at, as a number up to @max. 0 or -EBADMSG. */
static int next_number(char **at, uint64_t max, uint64_t *ret)
{
	const char *word = strsep(at, " \n");
	return word && num_parse_u64(word, max, ret) == 0 ? 0 : -EBADMSG;
}

/*
 * Behind the name, which may hold anything, come the state, 10 others, utime and stime.
 */
int cost_of_stat(const char *text, int64_t *ret_ticks)
{
	const char *name_end = strrchr(text, ')');
	cleanup_free char *copy = name_end ? strdup(name_end + 1) : NULL;
	uint64_t user, system;
	char *at = copy;
	if (!copy)
		return name_end ? -ENOMEM : -EBADMSG;
	for (int i = 0; i < 12; i++) /* the first is in front of the state's space */
		strsep(&at, " ");
	if (next_number(&at, TICKS_MAX, &user) < 0 || next_number(&at, TICKS_MAX, &system) < 0)
		return -EBADMSG;
	*ret_ticks = (int64_t)(user + system);
	return 0;
}

/* The value of "KEY:   N kB" in @text, in bytes; -1 if there is none. */
static int64_t kilobytes(const char *text, const char *key)
{
	const char *line = strstr(text, key);
	const char *number = line ? line + strlen(key) : "";
	number += strspn(number, " \t");
	cleanup_free char *digits = strndup(number, strspn(number, "0123456789"));
	uint64_t n;
	return digits && num_parse_u64(digits, INT64_MAX / 1024, &n) == 0 ? (int64_t)n * 1024 : -1;
}

/*
 * The rollup walks all page tables, but it alone knows shares; it is only for who may trace the
 * process.
 */
static void read_memory(const char *proc, struct cost *c)
{
	cleanup_free char *rollup = read_file(proc, c->pid, "smaps_rollup", ROLLUP_LEN_MAX);
	cleanup_free char *status = NULL;
	if (rollup) {
		c->rss_bytes = kilobytes(rollup, "\nRss:");
		c->pss_bytes = kilobytes(rollup, "\nPss:");
	}
	if (c->rss_bytes >= 0)
		return;
	status = read_file(proc, c->pid, "status", ROLLUP_LEN_MAX);
	c->rss_bytes = status ? kilobytes(status, "\nVmRSS:") : -1;
}

/* 0, -ESRCH, -EBADMSG, -ENOMEM. */
static int read_process(const char *proc, pid_t pid, struct cost *ret)
{
	cleanup_free char *stat = read_file(proc, pid, "stat", STAT_LEN_MAX);
	struct cost c = { .pid = pid, .rss_bytes = -1, .pss_bytes = -1 };
	int64_t ticks;
	int r = stat ? cost_of_stat(stat, &ticks) : -ESRCH;
	if (r < 0)
		return r;
	c.cpu_usec = ticks * (USEC_PER_S / sysconf(_SC_CLK_TCK));
	read_memory(proc, &c);
	if (c.rss_bytes < 0) /* a zombie has none */
		return -ESRCH;
	*ret = c;
	return 0;
}

static bool has_helper(const struct pod_cost *cost, const char *name)
{
	for (size_t i = 0; i < cost->n_helpers; i++)
		if (strcmp(cost->helper_names[i], name) == 0)
			return true;
	return false;
}

static void read_helper(const char *proc, pid_t pid, const char *(*name_of)(const char *comm),
			struct pod_cost *ret)
{
	cleanup_free char *comm = read_file(proc, pid, "comm", STAT_LEN_MAX);
	if (!comm || ret->n_helpers == COST_HELPERS_MAX)
		return;
	comm[strcspn(comm, "\n")] = '\0';
	const char *name = name_of(comm);
	if (has_helper(ret, name) || read_process(proc, pid, &ret->helpers[ret->n_helpers]) < 0)
		return;
	ret->helper_names[ret->n_helpers++] = name;
}

int cost_read(const char *proc, pid_t pid, const char *(*name_of)(const char *comm),
	      struct pod_cost *ret)
{
	pid_t helpers[POD_HELPERS_MAX];
	struct pod_cost cost = { 0 };
	int r = read_process(proc, pid, &cost.supervisor);
	if (r < 0)
		return r;
	size_t n = pod_helpers(proc, pid, helpers);
	for (size_t i = 0; i < n; i++)
		read_helper(proc, helpers[i], name_of, &cost);
	*ret = cost;
	return 0;
}
