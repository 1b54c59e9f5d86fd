/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/names.h"

#include <errno.h>
#include <seccomp.h>
#include <string.h>
#include <sys/capability.h>

#include "lib/base/macros.h"

/*
 * System calls that are younger than the libseccomp of Debian 12 (2.5.4, Linux 5.17). From this
 * number on they have the same one on all architectures.
 */
static const struct {
	const char *name;
	int number;
} young[] = {
	{ "cachestat", 451 },         { "fchmodat2", 452 },        { "map_shadow_stack", 453 },
	{ "futex_wake", 454 },        { "futex_wait", 455 },       { "futex_requeue", 456 },
	{ "statmount", 457 },         { "listmount", 458 },        { "lsm_get_self_attr", 459 },
	{ "lsm_set_self_attr", 460 }, { "lsm_list_modules", 461 }, { "mseal", 462 },
	{ "setxattrat", 463 },        { "getxattrat", 464 },       { "listxattrat", 465 },
	{ "removexattrat", 466 },
};

int names_capability(const char *name)
{
	cap_value_t value;
	/* libcap also takes plain numbers, and what follows a name. */
	if (name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")] || cap_from_name(name, &value) < 0)
		return -EINVAL;
	return value;
}

int names_syscall(const char *name)
{
	int number = seccomp_syscall_resolve_name(name);
	if (number >= 0)
		return number;
	for (size_t i = 0; i < ARRAY_SIZE(young); i++)
		if (strcmp(young[i].name, name) == 0)
			return young[i].number;
	/* Other negative numbers are libseccomp's for calls of other architectures. */
	return number == __NR_SCMP_ERROR ? -EINVAL : -ENOENT;
}
