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
#include "lib/os/file.h"

#define STAT_LEN_MAX     ((size_t)4096)  /* /proc/PID/stat: 52 numbers and a name */
#define ROLLUP_LEN_MAX   ((size_t)8192)  /* smaps_rollup: some 25 lines */
#define CHILDREN_LEN_MAX ((size_t)65536) /* a supervisor has two; nobody has ten thousand */
#define PROC_NAME_MAX    32              /* task/PID/children */

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
 * Behind the name, which may hold anything, come the state, the parent, 9 others, utime and stime.
 */
int cost_of_stat(const char *text, pid_t *ret_parent, int64_t *ret_ticks)
{
	const char *name_end = strrchr(text, ')');
	cleanup_free char *copy = name_end ? strdup(name_end + 1) : NULL;
	uint64_t parent, user, system;
	char *at = copy;
	if (!copy)
		return name_end ? -ENOMEM : -EBADMSG;
	strsep(&at, " ");
	strsep(&at, " ");
	if (next_number(&at, INT_MAX, &parent) < 0)
		return -EBADMSG;
	for (int i = 0; i < 9; i++)
		strsep(&at, " ");
	if (next_number(&at, TICKS_MAX, &user) < 0 || next_number(&at, TICKS_MAX, &system) < 0)
		return -EBADMSG;
	*ret_parent = (pid_t)parent;
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

/* Process @pid, which must be a child of @parent unless that is 0. 0, -ESRCH, -EBADMSG, -ENOMEM. */
static int read_process(const char *proc, pid_t pid, pid_t parent, struct cost *ret)
{
	cleanup_free char *stat = read_file(proc, pid, "stat", STAT_LEN_MAX);
	struct cost c = { .pid = pid, .rss_bytes = -1, .pss_bytes = -1 };
	pid_t its_parent;
	int64_t ticks;
	int r = stat ? cost_of_stat(stat, &its_parent, &ticks) : -ESRCH;
	if (r < 0)
		return r;
	if (parent != 0 && its_parent != parent)
		return -ESRCH;
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

static void read_child(const char *proc, pid_t parent, pid_t pid,
		       const char *(*name_of)(const char *comm), struct pod_cost *ret)
{
	cleanup_free char *comm = read_file(proc, pid, "comm", STAT_LEN_MAX);
	if (!comm || ret->n_helpers == COST_HELPERS_MAX)
		return;
	comm[strcspn(comm, "\n")] = '\0';
	const char *name = name_of(comm);
	if (has_helper(ret, name) ||
	    read_process(proc, pid, parent, &ret->helpers[ret->n_helpers]) < 0)
		return;
	ret->helper_names[ret->n_helpers++] = name;
}

int cost_read(const char *proc, pid_t pid, const char *(*name_of)(const char *comm),
	      struct pod_cost *ret)
{
	char name[PROC_NAME_MAX];
	struct pod_cost cost = { 0 };
	int r = read_process(proc, pid, 0, &cost.supervisor);
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "task/%d/children", (int)pid);
	cleanup_free char *children = read_file(proc, pid, name, CHILDREN_LEN_MAX);
	char *at = children;
	for (uint64_t child; at && next_number(&at, INT_MAX, &child) == 0;)
		read_child(proc, pid, (pid_t)child, name_of, &cost);
	*ret = cost;
	return 0;
}
