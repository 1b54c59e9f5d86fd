/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of system calls for the filters of apps. A list is a text of names with blanks between
 * them.
 */
#ifndef STAGE1_APPS_APPFILTER_SETS_H
#define STAGE1_APPS_APPFILTER_SETS_H

#include <stddef.h>

/* What every app may call that has the default filter. */
extern const char appfilter_default[];

/* What it may call besides if it has a capability. */
struct appfilter_grant {
	int capability;
	const char *calls;
};
extern const struct appfilter_grant appfilter_grants[];
extern const size_t appfilter_n_grants;

/*
 * The list that @wildcard of isolators_wildcards (lib/wire/isolators.h) stands for; NULL for those
 * that are more than a list: of appc.io, and the whitelists of docker and rkt.
 */
const char *appfilter_set(const char *wildcard);

#endif
