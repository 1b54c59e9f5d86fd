/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users and groups of an image, from the text of its own /etc/passwd and /etc/group (passwd(5),
 * group(5)). The caller brings the texts, which are hostile. Pure, but for which ids there are at
 * all (idmap.h).
 */
#ifndef GUEST_AGENT_APP_IDS_H
#define GUEST_AGENT_APP_IDS_H

#include <stddef.h>
#include <sys/types.h>

#include "guest-agent/fault.h"
#include "lib/wire/agent.h"

#define IDS_FILE_MAX   ((size_t)1024 * 1024) /* passwd or group: some 20,000 ordinary lines */
#define IDS_GROUPS_MAX 256                   /* supplementary groups of one user */
#define IDS_VALUE_MAX  4294967294U           /* 2^32 - 1 means "no change" to setresuid(2) */

struct ids {
	uid_t uid;
	gid_t gid;
	char name[AGENT_USER_MAX + 1]; /* that passwd has for the user; "": none */
	char home[AGENT_PATH_MAX + 1]; /* likewise */
	size_t n_groups;               /* supplementary groups, the primary one not among them */
	gid_t groups[IDS_GROUPS_MAX];
};

struct ids_source {
	const char *passwd; /* NULL if the image has none */
	size_t passwd_len;
	const char *group; /* NULL if the image has none */
	size_t group_len;
	/* Owner of the absolute path @path in the image. 0 or -errno. */
	int (*owner)(void *ctx, const char *path, uid_t *ret_uid, gid_t *ret_gid);
	void *ctx;
};

/*
 * Resolves @user ("" is 0) and @group ("" is the user's primary group, or 0 if passwd does not know
 * the user). Each is a number, a name, or an absolute path, which stands for the owner of that
 * file; "user:group" in @user is taken apart if @group is empty. Supplementary groups are those
 * that list the user's name, unless a group is said. 0, or FAULT_SET with AGENT_E_USER, also where
 * an id is none of this user namespace.
 */
int ids_resolve(const struct ids_source *src, const char *user, const char *group, struct ids *ret,
		struct fault *f);

#endif
