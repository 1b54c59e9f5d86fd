/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-ns/pod/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "lib/base/macros.h"

/* What apps have by default, and what the agent mounts, changes users, signals and limits with. */
static const int kept[] = {
	CAP_AUDIT_WRITE, CAP_CHOWN,        CAP_DAC_OVERRIDE, CAP_FOWNER,
	CAP_FSETID,      CAP_IPC_LOCK,     CAP_IPC_OWNER,    CAP_KILL,
	CAP_LEASE,       CAP_MKNOD,        CAP_NET_ADMIN,    CAP_NET_BIND_SERVICE,
	CAP_NET_RAW,     CAP_SETFCAP,      CAP_SETGID,       CAP_SETPCAP,
	CAP_SETUID,      CAP_SYS_ADMIN,    CAP_SYS_CHROOT,   CAP_SYS_NICE,
	CAP_SYS_PTRACE,  CAP_SYS_RESOURCE,
};

static bool is_kept(int cap)
{
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (kept[i] == cap)
			return true;
	return false;
}

int caps_bound(void)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		if (!is_kept(cap) && prctl(PR_CAPBSET_DROP, cap) < 0)
			return -errno;
	return 0;
}
