#include "lib/os/sandbox.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/os/fd.h"

#define CAPABILITY_NUMBER_MAX 63 /* two 32-bit words in struct __user_cap_data_struct */

static int empty_bounding_set(void)
{
	for (int cap = 0; cap <= CAPABILITY_NUMBER_MAX; cap++) {
		int held = prctl(PR_CAPBSET_READ, cap);
		if (held < 0)
			return 0; /* beyond the last capability of this kernel */
		/* A process without CAP_SETPCAP keeps its bounding set; no_new_privs makes it moot. */
		if (held && prctl(PR_CAPBSET_DROP, cap) < 0 && errno != EPERM)
			return -errno;
	}
	return 0;
}

int sandbox_drop_capabilities(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return -errno;
	int r = empty_bounding_set();
	if (r < 0)
		return r;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
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

int sandbox_no_files(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 1)
		return abi < 0 && errno != ENOSYS && errno != EOPNOTSUPP ? -errno : 0;
	struct landlock_ruleset_attr attr = { .handled_access_fs = landlock_file_rights(abi) };
	cleanup_fd int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (fd < 0)
		return -errno;
	return syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
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
