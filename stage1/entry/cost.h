/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod costs the host: processor time and memory of its supervisor and of its helpers, as
 * proc(5) has them.
 */
#ifndef STAGE1_ENTRY_COST_H
#define STAGE1_ENTRY_COST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define COST_HELPERS_MAX 8 /* a VM has two or three; virtiofsd and passt would be four */

struct cost {
	pid_t pid;
	int64_t cpu_usec;  /* of all its threads, in steps of a clock tick */
	int64_t rss_bytes; /* resident; of a VM with what it has of its memory */
	int64_t pss_bytes; /* the same with its share of what is shared; -1: not known */
};

struct pod_cost {
	struct cost supervisor;
	struct cost helpers[COST_HELPERS_MAX];
	const char *helper_names[COST_HELPERS_MAX]; /* as the flavor calls them, each once */
	size_t n_helpers;
};

/*
 * Reads it of the supervisor @pid and the processes that it has pidfds of, below @proc, which is
 * "/proc"; @name_of says what such a helper is called (flavor_helper_name()). One that ends
 * meanwhile is none, nor is a second of one name. 0, or -errno if the supervisor itself cannot be
 * read.
 */
int cost_read(const char *proc, pid_t pid, const char *(*name_of)(const char *comm),
	      struct pod_cost *ret);

/*
 * The processor time in clock ticks out of the text of /proc/PID/stat. 0, or -EBADMSG.
 */
int cost_of_stat(const char *text, int64_t *ret_ticks);

#endif
