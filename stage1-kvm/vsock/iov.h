/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scattered memory: copying to and from, and cutting, lists of struct iovec.
 */
#ifndef STAGE1_KVM_VSOCK_IOV_H
#define STAGE1_KVM_VSOCK_IOV_H

#include <stddef.h>
#include <sys/uio.h>

/* Copies the first @len bytes of the list to @dst; fewer if the list is shorter. How many. */
size_t iov_to_mem(const struct iovec *iov, size_t n, void *dst, size_t len);

/* Copies @len bytes to the beginning of the list; fewer if the list is shorter. How many. */
size_t iov_from_mem(const struct iovec *iov, size_t n, const void *src, size_t len);

/*
 * Describes the bytes [@skip, @skip + @take) of the list in @out, which has room for @n entries.
 * Stops at the end of the list. How many entries were written.
 */
size_t iov_slice(const struct iovec *iov, size_t n, size_t skip, size_t take, struct iovec *out);

#endif
