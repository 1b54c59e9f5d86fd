/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor entrypoints of stage1s say about the host, or a pod (docs/protocol-stage1.md). */
#ifndef STAGE1_ENTRY_DOCTOR_H
#define STAGE1_ENTRY_DOCTOR_H

#include <json-c/json_object.h>
#include <stdbool.h>

#define DOCTOR_TEXT_MAX 511 /* bytes of a value, detail or remedy; longer ones are cut */

struct doctor {
	struct json_object *checks; /* owned array; NULL: memory is short */
	int error;                  /* the first failure to record a check */
	bool can_run;
};

struct doctor_check {
	const char *name;
	bool ok;
	bool needed;                         /* without it no pod can run */
	const char *value, *detail, *remedy; /* NULL means "" */
};

/* For doctor_finish(). */
void doctor_init(struct doctor *d);

/* Records @c. What is no UTF-8 in its texts becomes '?'. */
void doctor_add(struct doctor *d, const struct doctor_check *c);

/* Records whether mkfs.ext4 is there. */
void doctor_add_mkfs(struct doctor *d);

/* Records whether @who ("apps") can have limits on the host. */
void doctor_add_cgroups(struct doctor *d, const char *who);

/* Records who runs pods here, and as whom they run if that is root. */
void doctor_add_user(struct doctor *d, const char *if_root);

/*
 * The whole entrypoint where it is asked about the pod in the working directory: whether @argv is
 * "--uuid=UUID" alone, and then the exit code in *ret.
 */
bool doctor_asked_of_pod(int argc, char **argv, int *ret);

/* Prints what was recorded, and frees it. The exit code of the entrypoint. */
int doctor_finish(struct doctor *d);

#endif
