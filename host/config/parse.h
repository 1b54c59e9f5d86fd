/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One configuration file. Pure: text in, a layer of the configuration out. Every file is an object
 * with "rktVersion", "rktKind" and, depending on the kind:
 *
 *	auth        "domains": [...], "type": "basic"|"oauth"|"aws", "credentials": {...}
 *	dockerAuth  "registries": [...], "credentials": {"user", "password"}
 *	paths       "data", "stage1-images": absolute paths
 *	stage1      "name" and "version", "location" (location.h), "options": an object of strings,
 *	            "annotations": names of options, "container-roots": "live"|"packed"
 *	images      "compression", "maxBytes": strings, for the image store
 *
 * As with rkt an empty string and null are the same as nothing, and unknown members are ignored.
 */
#ifndef HOST_CONFIG_PARSE_H
#define HOST_CONFIG_PARSE_H

#include <stddef.h>

#include "host/config/config.h"
#include "lib/base/err.h"

/* The name of the directory for the part @part (a CONFIG_ constant), e.g. "auth.d". */
const char *config_part_dir(unsigned part);

/*
 * Adds what the file with the @len bytes of @text says to @layer. It must be of a kind that belongs
 * to the part @part, and must not say what @layer says already. 0, or -errno and @e with cause and
 * remedy but without the file's name; @layer then has a part of it. Messages never hold
 * credentials.
 */
int config_parse(const char *text, size_t len, unsigned part, struct config *layer, struct err *e);

#endif
