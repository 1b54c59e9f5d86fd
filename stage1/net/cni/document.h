/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON of CNI: configurations of people, results of plugins. Bounded so that whatever was read
 * can be kept in one file (stage1/net/cni/state.h), written there and read again. Pure.
 */
#ifndef STAGE1_NET_CNI_DOCUMENT_H
#define STAGE1_NET_CNI_DOCUMENT_H

#include <json-c/json_object.h>
#include <stddef.h>

#include "lib/base/err.h"

#define CNI_DOCUMENT_MAX   ((size_t)64 * 1024) /* bytes of a configuration or result; usual: 1 KiB */
#define CNI_CONTAINERS_MAX 2048 /* objects and lists: a result of 16 addresses has 100 at most */
#define CNI_DEPTH_MAX      16   /* levels: JSON_DEPTH_MAX without those of the file around it */

/*
 * Checks what is to be kept: an object of at most CNI_DEPTH_MAX levels, no floating-point numbers,
 * which husk does not write, and at most CNI_DOCUMENT_MAX bytes when written. 0; -EBADMSG and @e.
 * -ENOMEM.
 */
int cni_document_check(struct json_object *doc, struct err *e);

/*
 * Reads an object within all the limits. 0 and the caller's *ret; -EBADMSG, -ENOMEM, with @e.
 */
int cni_document_parse(const char *text, size_t len, struct json_object **ret, struct err *e);

#endif
