/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which stage1 a pod was made with: the file stage1.json of its directory. Whatever flags and
 * configuration say later, the pod's own one understands what it has left there.
 *
 * Who may write the pod directory decides what is in the file, so what it names is executed only if
 * trusted_stage1() holds.
 */
#ifndef HOST_POD_POD_STAGE1_H
#define HOST_POD_POD_STAGE1_H

#include <limits.h>
#include <stddef.h>

#include "host/launch/stage1.h"
#include "host/pod/pod.h"
#include "lib/base/err.h"

/* Largest file: a path of which every byte is escaped, and some words. */
#define POD_STAGE1_MAX ((size_t)32 * 1024)

/* Return code beside -errno. POD_STAGE1_NONE: the pod does not say, as one of an older husk. */
enum {
	POD_STAGE1_NONE = 1,
};

struct pod_stage1 {
	char dir[PATH_MAX];               /* absolute */
	char image[STAGE1_IMAGE_MAX + 1]; /* ID; "": it came as a directory */
	enum stage1_abi abi;
	int64_t version;                  /* of the interface */
	char flavor[STAGE1_NAME_MAX + 1]; /* what the pod is made of, in a word; or "" */
};

/* Reads @len bytes of such a file. Pure. 0, or -EBADMSG or -ENOMEM and @e. */
int pod_stage1_parse(const char *text, size_t len, struct pod_stage1 *ret, struct err *e);

/* Writes the file for @s into the pod @p, before its manifest. 0 or -errno and @e. */
int pod_stage1_write(const struct pod *p, const struct stage1 *s, struct err *e);

/* Reads it. 0, POD_STAGE1_NONE, or -errno and @e. */
int pod_stage1_read(const struct pod *p, struct pod_stage1 *ret, struct err *e);

/*
 * Opens the stage1 that the pod names. Whether it may be executed is not looked at. 0,
 * POD_STAGE1_NONE, or -errno and @e, also if it speaks another interface now.
 */
int pod_stage1_open(const struct pod *p, struct stage1 *ret, struct err *e);

#endif
