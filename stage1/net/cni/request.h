/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plugin gets: a document on its standard input and variables of its environment (CNI
 * specification 1.0.0, section 2 and "Deriving execution configuration"). Pure.
 */
#ifndef STAGE1_NET_CNI_REQUEST_H
#define STAGE1_NET_CNI_REQUEST_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/wire/net_names.h"
#include "lib/wire/pod_ports.h"
#include "stage1/net/cni/attachment.h"

/* Of a request: a plugin, the result before it, and what was computed for both. */
#define CNI_REQUEST_MAX ((size_t)256 * 1024)
#define CNI_ENV_MAX     8 /* variables: those of the specification, and PATH */

/*
 * The values of all capabilities that we know (CNI conventions): portMappings and dns as given,
 * each may be NULL; ips and mac from IP= and MAC= in @args, which plugins check; bandwidth from
 * INGRESS_RATE= and EGRESS_RATE= there, bits per second as lib/base/quantity.h has them. 0 and
 * *ret, which is the caller's and NULL if there are none; -EINVAL (a rate), -ENOMEM, with @e.
 */
int cni_request_runtime(const struct pod_ports *ports, const struct net_dns *dns, const char *args,
			struct json_object **ret, struct err *e);

/*
 * Appends the document for plugin @i of @a: its own members, name and version of the network, of
 * runtimeConfig what its capabilities name, and @a's result as prevResult if there is one and
 * @with_result. 0; -EINVAL beyond JSON's depth; errors as buf_append().
 */
int cni_request_document(const struct cni_attachment *a, size_t i, bool with_result,
			 struct buf *out);

/*
 * Adds the variables: @command is ADD, DEL or CHECK, @netns a path, or empty if the namespace is
 * gone. 0, -E2BIG, -ENOMEM.
 */
int cni_request_env(const struct cni_attachment *a, const char *command, const char *container,
		    const char *netns, const struct strv *dirs, struct strv *env);

#endif
