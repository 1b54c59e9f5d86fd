/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod costs the host: processor time and memory of its supervisor and of its children, QEMU and
 * husk-vsock, as proc(5) has them.
 */
#ifndef STAGE1_KVM_RUN_COST_H
#define STAGE1_KVM_RUN_COST_H

#include <stdint.h>
#include <sys/types.h>

struct cost {
	pid_t pid;         /* 0: there is no such process, and all else means nothing */
	int64_t cpu_usec;  /* of all its threads, in steps of a clock tick */
	int64_t rss_bytes; /* resident, of the VM with what it has of the guest's memory */
	int64_t pss_bytes; /* the same with its share of what is shared; -1: not known */
};

struct pod_cost {
	struct cost supervisor, vmm, vsock; /* vsock is none where the kernel has that device */
};

/*
 * Reads it of the supervisor @pid and its children below @proc, which is "/proc". A child that
 * ends meanwhile is none. 0, or -errno if the supervisor itself cannot be read.
 */
int cost_read(const char *proc, pid_t pid, struct pod_cost *ret);

/*
 * The parent and the processor time in clock ticks out of the text of /proc/PID/stat. 0, or -EBADMSG.
 */
int cost_of_stat(const char *text, pid_t *ret_parent, int64_t *ret_ticks);

#endif
