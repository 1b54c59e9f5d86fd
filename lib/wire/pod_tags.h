/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What users and orchestrators write on pods and apps for themselves: annotations and labels, which
 * mean nothing to husk. Members "userAnnotations" and "userLabels" of an appc pod manifest and of
 * its apps.
 */
#ifndef LIB_WIRE_POD_TAGS_H
#define LIB_WIRE_POD_TAGS_H

#include <json-c/json_object.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

#define POD_TAGS_MAX      64 /* annotations, and labels, of a pod or app; Kubernetes writes about ten */
#define POD_TAG_NAME_MAX  255  /* bytes; Kubernetes allows a prefix of 253, a slash and 63 */
#define POD_TAG_VALUE_MAX 4096 /* bytes */

/*
 * Lists of "NAME=VALUE", each name once. A name has no "=". The notes are members of the appc list
 * "annotations", which husk has some in, too (lib/wire/pod_manifest.h).
 */
struct pod_tags {
	struct strv annotations, labels, notes;
};

/* All lists empty. */
void pod_tags_init(struct pod_tags *t);

/* Frees them. Accepts NULL. */
void pod_tags_deinit(struct pod_tags *t);

/* Adds copies of all of @from. 0, -E2BIG, -ENOMEM. */
int pod_tags_copy(struct pod_tags *t, const struct pod_tags *from);

/*
 * Adds "NAME=VALUE" to @list, which is one of the three. 0; -EINVAL (no such form, too long, not
 * UTF-8), -EEXIST, -E2BIG, -ENOMEM, with @e.
 */
int pod_tags_add(struct strv *list, const char *text, struct err *e);

/* Adds the members to @obj, unless they would be empty; the notes are for others. 0 or -ENOMEM. */
int pod_tags_write(const struct pod_tags *t, struct json_object *obj);

/* Adds what the members of @obj say, without the notes. 0; -EBADMSG, -E2BIG, -ENOMEM with @e. */
int pod_tags_read(struct json_object *obj, struct pod_tags *t, struct err *e);

#endif
