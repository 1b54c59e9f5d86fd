/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network: the configuration of its plugins, from a file of one configuration or of a list (CNI
 * specification 1.0.0, section 1). Pure.
 *
 * Versions: a file that has none, or one before 0.3.1, is run as 0.3.1. Configurations mean the
 * same there; what those versions lack is results with interfaces, and chains of plugins.
 */
#ifndef STAGE1_NET_CNI_CONFIG_H
#define STAGE1_NET_CNI_CONFIG_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/wire/net_info.h"

#define CNI_NAME_MAX    NET_INFO_NAME_MAX /* bytes of a network's name */
#define CNI_PLUGINS_MAX 16  /* of a network; the longest chains that people publish have 5 */
#define CNI_TYPE_MAX    255 /* NAME_MAX: a plugin's type is the name of its file */

struct cni_config {
	char name[CNI_NAME_MAX + 1];
	const char *version;         /* that plugins are asked in: "0.3.1", "0.4.0" or "1.0.0" */
	bool disable_check;          /* CHECK is not to be used */
	struct json_object *plugins; /* owned: a list of objects, each with a valid "type" */
	char path[NET_INFO_TEXT_MAX + 1]; /* where it was read; empty: built in */
};

/* Gives up what @c owns. Accepts NULL and a zeroed one. */
void cni_config_deinit(struct cni_config *c);

/* Makes *ret another one with the same content. */
void cni_config_share(const struct cni_config *c, struct cni_config *ret);

/* As a file must name a network: a letter or digit, then those and "_.-"; at most CNI_NAME_MAX. */
bool cni_name_is_valid(const char *s);

/*
 * Reads a configuration or a list of them: it is a list if it has "plugins". Its path is empty. 0
 * and the caller's *ret; -EBADMSG, -ENOMEM, with @e, which says of "it" what is wrong. Then *ret is
 * zeroed but for the name, if that could be read.
 */
int cni_config_parse(const char *text, size_t len, struct cni_config *ret, struct err *e);

/* The same of a document that was parsed already, which stays the caller's. */
int cni_config_read(struct json_object *doc, struct cni_config *ret, struct err *e);

/* The list that cni_config_read() makes @c of again, owned by the caller; NULL: out of memory. */
struct json_object *cni_config_write(const struct cni_config *c);

/* How many plugins there are, and of the one at @i, which is one of them: object, type. */
size_t cni_config_plugins(const struct cni_config *c);
struct json_object *cni_config_plugin(const struct cni_config *c, size_t i); /* borrowed */
const char *cni_config_type(const struct cni_config *c, size_t i);           /* borrowed */

/* Whether a plugin has another one, "dhcp", give addresses. */
bool cni_config_has_dhcp(const struct cni_config *c);

/* Whether plugins get to know what was before on DEL, and whether there is CHECK (0.4.0). */
bool cni_config_has_check(const struct cni_config *c);

#endif
