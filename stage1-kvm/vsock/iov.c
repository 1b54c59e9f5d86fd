/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vsock/iov.h"

#include <string.h>

#include "lib/base/macros.h"

size_t iov_to_mem(const struct iovec *iov, size_t n, void *dst, size_t len)
{
	size_t done = 0;
	for (size_t i = 0; i < n && done < len; i++) {
		size_t part = MIN(iov[i].iov_len, len - done);
		memcpy((char *)dst + done, iov[i].iov_base, part);
		done += part;
	}
	return done;
}

size_t iov_from_mem(const struct iovec *iov, size_t n, const void *src, size_t len)
{
	size_t done = 0;
	for (size_t i = 0; i < n && done < len; i++) {
		size_t part = MIN(iov[i].iov_len, len - done);
		memcpy(iov[i].iov_base, (const char *)src + done, part);
		done += part;
	}
	return done;
}

size_t iov_slice(const struct iovec *iov, size_t n, size_t skip, size_t take, struct iovec *out)
{
	size_t n_out = 0;
	for (size_t i = 0; i < n && take > 0; i++) {
		if (skip >= iov[i].iov_len) {
			skip -= iov[i].iov_len;
			continue;
		}
		size_t part = MIN(iov[i].iov_len - skip, take);
		out[n_out].iov_base = (char *)iov[i].iov_base + skip;
		out[n_out].iov_len = part;
		n_out++;
		take -= part;
		skip = 0;
	}
	return n_out;
}
