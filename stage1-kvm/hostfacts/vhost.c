/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/hostfacts/vhost.h"

#include <errno.h>
#include <linux/vhost.h>
#include <sys/ioctl.h>

#include "stage1-kvm/plan/vm.h"

int vhost_claim_cid(int fd, uint32_t first, uint32_t *ret)
{
	const uint64_t n_cids = (uint64_t)VM_CID_MAX - VM_CID_MIN + 1;
	for (uint64_t i = 0; i < VHOST_CLAIM_TRIES_MAX; i++) {
		__u64 cid = VM_CID_MIN + ((uint64_t)first + i) % n_cids;
		if (ioctl(fd, VHOST_VSOCK_SET_GUEST_CID, &cid) == 0) {
			*ret = (uint32_t)cid;
			return 0;
		}
		if (errno != EADDRINUSE)
			return -errno;
	}
	return -EADDRINUSE;
}
