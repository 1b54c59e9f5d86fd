/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plugin prints: the result of ADD, or an error (CNI specification 1.0.0, section 5). Pure.
 */
#ifndef STAGE1_NET_CNI_RESULT_H
#define STAGE1_NET_CNI_RESULT_H

#include "lib/base/err.h"
#include "lib/wire/net.h"
#include "lib/wire/net_names.h"

#define CNI_MESSAGE_MAX 512 /* bytes of an error's text: half of what one of ours has room for */

/* What counts of a result for an interface of the pod. Addresses as inet_pton(3) takes them. */
struct cni_result {
	struct json_object *doc; /* owned: all of it */
	char ips[NET_ADDRESSES_MAX][NET_PREFIX_TEXT_MAX + 1];
	size_t n_ips;
	char mac[NET_MAC_TEXT_MAX + 1]; /* or empty */
	struct net_dns dns;
};

/* Frees it. Accepts NULL. */
void cni_result_deinit(struct cni_result *res);

/*
 * Reads a result of ADD in @version for the interface @if_name: 0.3.1 and 0.4.0, where "ips" have a
 * "version", and 1.0.0. A result without cniVersion gets it. Addresses count that name the
 * interface, or none. 0 and the caller's *ret; -EBADMSG, -ENOMEM, with @e, which names the field.
 */
int cni_result_parse(const char *text, size_t len, const char *version, const char *if_name,
		     struct cni_result *ret, struct err *e);

/* The same of a document that was parsed already, which stays the caller's. */
int cni_result_read(struct json_object *doc, const char *version, const char *if_name,
		    struct cni_result *ret, struct err *e);

/*
 * Reads an error, {code, msg, details}, into one printable line. 0; -EBADMSG if it is none, or has
 * no text; -ENOMEM.
 */
int cni_error_parse(const char *text, size_t len, char ret[CNI_MESSAGE_MAX]);

#endif
