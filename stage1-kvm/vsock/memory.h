/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest memory as the VMM shares it: up to eight mapped regions, and the translation of guest
 * addresses into pieces of our own address space.
 *
 * Nothing outside of the regions can be reached through these functions, whatever address and
 * length a guest or a VMM names. A region is mapped only up to the size that its file has at that
 * moment. The VMM's memory files are normally sealed against shrinking; for one that is not, a VMM
 * that truncates it gets this process killed by SIGBUS (see confine.h), which is the same end as
 * any other protocol violation of the VMM. System calls on such a page fail with EFAULT instead.
 */
#ifndef STAGE1_KVM_VSOCK_MEMORY_H
#define STAGE1_KVM_VSOCK_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "lib/base/err.h"

/* The limit of the protocol without VHOST_USER_PROTOCOL_F_CONFIGURE_MEM_SLOTS. */
#define GUEST_MEMORY_REGIONS_MAX 8

/* One region as in VHOST_USER_SET_MEM_TABLE. */
struct guest_region {
	uint64_t guest_addr;  /* guest-physical address of the first byte */
	uint64_t size;        /* bytes */
	uint64_t user_addr;   /* the same byte in the VMM's address space; rings use these */
	uint64_t file_offset; /* the same byte in the file */
};

struct guest_memory {
	size_t n;
	struct guest_region region[GUEST_MEMORY_REGIONS_MAX];
	char *host[GUEST_MEMORY_REGIONS_MAX]; /* owned mappings */
};

#define GUEST_MEMORY_INIT ((struct guest_memory){ 0 })

/* Unmaps everything. Accepts NULL. */
void guest_memory_deinit(struct guest_memory *m);

#define cleanup_guest_memory CLEANUP(guest_memory_deinit)

/*
 * Maps one more region of the file @fd, which is not consumed. Refused: an empty region, one that
 * wraps around, an offset that is not a multiple of the page size, a descriptor that is not a
 * regular file, a region beyond the end of that file (all -EINVAL), more than
 * GUEST_MEMORY_REGIONS_MAX (-E2BIG). Fills @e. 0 or -errno.
 */
int guest_memory_add(struct guest_memory *m, const struct guest_region *region, int fd,
		     struct err *e);

/*
 * Describes the guest-physical range [@addr, @addr + @len) in @iov, which has room for @max
 * entries; a range over adjacent regions takes several. *ret_n is the number of entries. -EFAULT
 * if a byte of it is in no region, -E2BIG if @max is too small. Where regions overlap, the first
 * one counts.
 */
int guest_memory_iov(const struct guest_memory *m, uint64_t addr, uint64_t len, struct iovec *iov,
		     size_t max, size_t *ret_n);

/* The guest-physical range as one piece inside one region, or NULL. */
void *guest_memory_at(const struct guest_memory *m, uint64_t addr, uint64_t len);

/* The range at the VMM's address @addr as one piece inside one region, or NULL. */
void *guest_memory_at_user(const struct guest_memory *m, uint64_t addr, uint64_t len);

#endif
