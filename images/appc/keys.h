/* SPDX-License-Identifier: Apache-2.0 */
/* Public keys of who signs images, from where they are published. */
#ifndef IMAGES_APPC_KEYS_H
#define IMAGES_APPC_KEYS_H

#include <stddef.h>

#include "images/fetch/common/options.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

/*
 * Asks the site that the name of images @prefix begins with where their keys are (discovery.h), and
 * adds the URLs to @ret. That there are no credentials because nothing is configured is no error.
 * 0 or -errno with @e.
 */
int appc_find_keys(const char *prefix, const struct fetch_options *o, struct strv *ret,
		   struct err *e);

/*
 * Downloads the key at @url, at most TRUST_KEY_MAX bytes. *ret is the caller's. 0 or -errno with
 * @e.
 */
int appc_download_key(const char *url, const struct fetch_options *o, char **ret, size_t *ret_len,
		      struct err *e);

#endif
