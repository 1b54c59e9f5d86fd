/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/sandbox.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/os/fd.h"

#define CAPABILITY_NUMBER_MAX 63 /* two 32-bit words in struct __user_cap_data_struct */

static bool is_kept(const int *kept, size_t n, int cap)
{
	for (size_t i = 0; i < n; i++)
		if (kept[i] == cap)
			return true;
	return false;
}

static int shrink_bounding_set(const int *kept, size_t n)
{
	for (int cap = 0; cap <= CAPABILITY_NUMBER_MAX; cap++) {
		int held = prctl(PR_CAPBSET_READ, cap);
		if (held < 0)
			return 0; /* beyond the last capability of this kernel */
		/*
		 * A process without CAP_SETPCAP keeps its bounding set; no_new_privs makes it moot.
		 */
		if (held && !is_kept(kept, n, cap) && prctl(PR_CAPBSET_DROP, cap) < 0 &&
		    errno != EPERM)
			return -errno;
	}
	return 0;
}

/* Takes all capabilities away but those of @kept that the process has. */
static int shrink_capabilities(const int *kept, size_t n)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct now[2] = { { 0 } };
	struct __user_cap_data_struct then[2] = { { 0 } };
	if (syscall(SYS_capget, &header, now) < 0)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		uint32_t bit = UINT32_C(1) << kept[i] % 32;
		then[kept[i] / 32].permitted |= now[kept[i] / 32].permitted & bit;
		then[kept[i] / 32].effective |= now[kept[i] / 32].permitted & bit;
	}
	return syscall(SYS_capset, &header, then) < 0 ? -errno : 0;
}

int sandbox_keep_capabilities(const int *kept, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (kept[i] < 0 || kept[i] > CAPABILITY_NUMBER_MAX)
			return -EINVAL;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return -errno;
	int r = shrink_bounding_set(kept, n);
	if (r < 0)
		return r;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	return shrink_capabilities(kept, n);
}

int sandbox_drop_bounding_set(void)
{
	return shrink_bounding_set(NULL, 0);
}

int sandbox_keep_bounding_set(const int *kept, size_t n)
{
	return shrink_bounding_set(kept, n);
}

int sandbox_drop_capabilities(void)
{
	return sandbox_keep_capabilities(NULL, 0);
}

/*
 * All file-system rights that version @abi of Landlock (Documentation/userspace-api/landlock.rst)
 * knows: 13 in the first; then REFER, TRUNCATE, in 4 none, IOCTL_DEV were added.
 */
static uint64_t landlock_file_rights(long abi)
{
	static const unsigned char rights[] = { 0, 13, 14, 15, 15, 16 };
	return (UINT64_C(1) << rights[MIN(abi, (long)ARRAY_SIZE(rights) - 1)]) - 1;
}

/* The version of Landlock that the kernel has; 0: none. Or -errno. */
static long landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 0)
		return errno != ENOSYS && errno != EOPNOTSUPP ? -errno : 0;
	return abi;
}

/* Forbids whatever version @abi can, but @rights below @dir_fd if that is a descriptor. */
static int landlock_restrict(long abi, int dir_fd, uint64_t rights)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = landlock_file_rights(abi) };
	struct landlock_path_beneath_attr beneath = {
		.allowed_access = rights & attr.handled_access_fs,
		.parent_fd = dir_fd,
	};
	cleanup_fd int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (fd < 0)
		return -errno;
	if (dir_fd >= 0 &&
	    syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) < 0)
		return -errno;
	return syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
}

int sandbox_no_files(void)
{
	long abi = landlock_abi();
	if (abi < 1)
		return (int)abi;
	return landlock_restrict(abi, -EBADF, 0);
}

/* LANDLOCK_ACCESS_FS_TRUNCATE, for files that were opened; newer than the headers of Linux 6.1. */
#define ACCESS_TRUNCATE (UINT64_C(1) << 14)

int sandbox_only_below(int dir_fd)
{
	static const uint64_t rights = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
				       LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
				       LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_FIFO |
				       LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM |
				       LANDLOCK_ACCESS_FS_REFER | ACCESS_TRUNCATE;
	long abi = landlock_abi();
	if (abi < 2)
		return abi < 0 ? (int)abi : 0;
	return landlock_restrict(abi, dir_fd, rights);
}

int sandbox_only_read(int dir_fd)
{
	long abi = landlock_abi();
	if (abi < 1)
		return (int)abi;
	return landlock_restrict(abi, dir_fd,
				 LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR);
}

static void cleanup_filter(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}

static int allow_syscall(scmp_filter_ctx ctx, int nr)
{
	if (nr != SYS_mmap && nr != SYS_mprotect)
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
	return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
				SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
}

int sandbox_seccomp(const int *allowed, size_t n)
{
	CLEANUP(cleanup_filter) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	if (!ctx)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int r = allow_syscall(ctx, allowed[i]);
		if (r < 0)
			return r;
	}
	return seccomp_load(ctx);
}
