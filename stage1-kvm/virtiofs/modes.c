/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/virtiofs/modes.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/base/macros.h"

/* Newer than the headers of this age. */
#define NR_SETXATTRAT 463
#define NR_FCHMODAT2  452

#define TMPFILE (O_TMPFILE & ~O_DIRECTORY) /* the bit that makes a file */

/* Calls with a mode, which is argument @mode. */
static const struct {
	int nr;
	unsigned mode;
} mode_calls[] = {
	{ SYS_chmod, 1 }, { SYS_fchmod, 1 }, { SYS_fchmodat, 2 }, { NR_FCHMODAT2, 2 },
	{ SYS_creat, 1 }, { SYS_mknod, 1 },  { SYS_mknodat, 2 },
};

/* Calls with flags, which tell whether there is a mode behind them. */
static const struct {
	int nr;
	unsigned flags;
} open_calls[] = { { SYS_open, 1 }, { SYS_openat, 2 } };

static const int attribute_calls[] = { SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, NR_SETXATTRAT };

/* They take what is looked at here from memory. */
static const int unseen_calls[] = { SYS_openat2, SYS_io_uring_setup };

static const uint64_t bits[] = { S_ISUID, S_ISGID };

static int forbid_modes(scmp_filter_ctx filter, uint64_t bit)
{
	static const uint64_t makes[] = { O_CREAT, TMPFILE };
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(mode_calls); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), mode_calls[i].nr, 1,
				     SCMP_CMP64(mode_calls[i].mode, SCMP_CMP_MASKED_EQ, bit, bit));
	for (size_t i = 0; i < ARRAY_SIZE(open_calls); i++)
		for (size_t k = 0; r == 0 && k < ARRAY_SIZE(makes); k++)
			r = seccomp_rule_add(
				filter, SCMP_ACT_ERRNO(EPERM), open_calls[i].nr, 2,
				SCMP_CMP64(open_calls[i].flags, SCMP_CMP_MASKED_EQ, makes[k],
					   makes[k]),
				SCMP_CMP64(open_calls[i].flags + 1, SCMP_CMP_MASKED_EQ, bit, bit));
	return r;
}

static int forbid_calls(scmp_filter_ctx filter, const int *calls, size_t n, uint32_t action)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = seccomp_rule_add(filter, action, calls[i], 0);
	return r;
}

static int add_rules(scmp_filter_ctx filter, bool keeps_groups)
{
	int r = keeps_groups ? seccomp_rule_add(filter, SCMP_ACT_ERRNO(0), SYS_setgroups, 0) : 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(bits); i++)
		r = forbid_modes(filter, bits[i]);
	if (r == 0)
		r = forbid_calls(filter, attribute_calls, ARRAY_SIZE(attribute_calls),
				 SCMP_ACT_ERRNO(EOPNOTSUPP));
	return r == 0 ? forbid_calls(filter, unseen_calls, ARRAY_SIZE(unseen_calls),
				     SCMP_ACT_ERRNO(ENOSYS))
		      : r;
}

int modes_forbid_set_ids(bool keeps_groups)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	if (!filter)
		return -ENOMEM;
	int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r == 0)
		r = add_rules(filter, keeps_groups);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}
