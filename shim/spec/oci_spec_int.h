/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of parts of a specification share. */
#ifndef SHIM_SPEC_OCI_SPEC_INT_H
#define SHIM_SPEC_OCI_SPEC_INT_H

#include <json-c/json_object.h>

#include "lib/base/err.h"
#include "shim/spec/oci_spec.h"

/* A member of the wrong kind: -EBADMSG and @e. */
int spec_wrong(const char *member, const char *what, struct err *e);

/* 0 if the member may be taken as absent or was read, which @r says; -errno and @e. */
int spec_optional(int r, const char *member, const char *what, struct err *e);

/*
 * Reads the list @key of @from, which may be missing, into @ret: as many members as fit there, of
 * at most @text_max bytes each. As spec_optional(), and -E2BIG.
 */
int spec_take_list(struct json_object *from, const char *key, const char *member, size_t text_max,
		   struct strv *ret, struct err *e);

/*
 * Reads "mounts" into the volumes and mounts of the app of @s, of which the annotations have been
 * read. As oci_spec_parse().
 */
int spec_take_mounts(struct json_object *list, struct oci_spec *s, struct err *e);

/*
 * Reads what of "linux" keeps an app from things: the profile of system calls, paths that are
 * masked or read-only, devices. As oci_spec_parse().
 */
int spec_take_protection(struct json_object *linux_, struct isolators *i, struct err *e);

#define SPEC_CPU_PERIOD INT64_C(100000) /* microseconds: the kernel's */

/* What a quota in each period, of the same unit, is of a processor, in thousandths. */
int64_t spec_millis_of(int64_t quota, int64_t period);

/* Reads where the container belongs. As oci_annotations_parse(). */
int spec_take_annotations(struct json_object *annotations, struct oci_spec *s, struct err *e);

/*
 * Reads what the machine of a pod is to be like, @s being one by what spec_take_annotations() has
 * read: the sum of limits, and wishes. As oci_spec_parse().
 */
int spec_take_machine(struct json_object *annotations, struct oci_spec *s, struct err *e);

#endif
