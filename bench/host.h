/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel of the host says about the machine and about processes. */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/results.h"
#include "lib/base/err.h"

/*
 * Processes looked at: the largest process ID that Linux gives has 22 bits, machines with that many
 * have fewer.
 */
#define HOST_PROCESSES_MAX ((size_t)1 << 16)

/* What a family of processes, one and all its descendants, has. */
struct family {
	uint64_t pss_kib;   /* memory, what is shared divided by who shares it */
	uint64_t guest_kib; /* resident part of the memory of guests of QEMU; 0: there are none */
	uint64_t ticks;     /* processor time used, in clock ticks */
	unsigned processes;
};

/* Adds the facts about the machine: processor, memory, system, kernel, load. */
void host_add_facts(struct results *r);

/*
 * Adds up what the families of the @n processes have now, and those of all processes that have
 * @mark in their command lines, as helpers have that descend from nobody. Those that end meanwhile
 * do not count.
 * With @with_memory memory is looked at, too, which takes the kernel longer. 0 or -errno with @e.
 */
int host_count_families(const pid_t *heads, size_t n, const char *mark, bool with_memory,
			struct family *ret, struct err *e);

/* Has the kernel forget what it keeps in memory of the files below @dir, as far as it may. */
void host_drop_cache(const char *dir);

#endif
