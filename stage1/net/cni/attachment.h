/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's attachment to one network: what is chosen before, and what is known after. Pure. */
#ifndef STAGE1_NET_CNI_ATTACHMENT_H
#define STAGE1_NET_CNI_ATTACHMENT_H

#include "lib/base/str.h"
#include "lib/wire/net.h"
#include "stage1/net/cni/config.h"

#define CNI_ARGS_MAX NET_INFO_TEXT_MAX /* bytes of the arguments of a network */

struct cni_attachment {
	struct cni_config config;       /* owned */
	char if_name[NET_NAME_MAX + 1]; /* in the pod: "eth0" */
	char args[CNI_ARGS_MAX + 1];    /* "K=V;K2=V2", or empty */
	struct strv
		paths; /* of the plugins that are run, in their order; empty before they are found */
	struct json_object *runtime; /* owned: values of capabilities; NULL: none */
	struct json_object *result;  /* owned: what the last plugin that was run said; NULL: none */
};

struct cni_attachments {
	struct cni_attachment v[NET_INTERFACES_MAX]; /* in the order in which they are made */
	size_t n;
};

/* An empty attachment, and what frees one. */
void cni_attachment_init(struct cni_attachment *a);
void cni_attachment_deinit(struct cni_attachment *a);

/* Frees all; empty and usable afterwards. Accepts NULL. */
void cni_attachments_deinit(struct cni_attachments *list);

/*
 * True for "K=V;K2=V2" as CNI_ARGS has it (section 2 of the specification): keys of letters and
 * digits and "_", values of printable bytes but ';'. At most CNI_ARGS_MAX bytes.
 */
bool cni_args_are_valid(const char *args);

/* The value of @key in valid @args, copied to @out of @size bytes. False: none, or too long. */
bool cni_args_get(const char *args, const char *key, char *out, size_t size);

#endif
