/* SPDX-License-Identifier: Apache-2.0 */
/* What an administrator may choose about images, from the text that he writes. */
#ifndef IMAGES_STORE_SETTINGS_H
#define IMAGES_STORE_SETTINGS_H

#include <stdint.h>

#include "images/render/squash.h"
#include "lib/base/err.h"

/* Most that may be chosen for the bytes of an image: 1 PiB. */
#define STORE_BYTES_LIMIT (UINT64_C(1) << 50)

struct store_settings {
	uint64_t bytes_max; /* that an image may unpack to */
	enum render_compression compression;
	int level; /* of zstd; 0 is its default */
};

/* The defaults: RENDER_BYTES_MAX, plain. */
void store_settings_init(struct store_settings *s);

/*
 * Sets the bytes from @text like "128G". @origin says where it is from, e.g. the name of a
 * variable: it begins the error. 0, or -EINVAL with @e, and @s is as before.
 */
int store_settings_bytes_max(struct store_settings *s, const char *origin, const char *text,
			     struct err *e);

/*
 * Sets the compression from "plain", "lz4", "zstd" or "zstd:LEVEL". As store_settings_bytes_max().
 */
int store_settings_compression(struct store_settings *s, const char *origin, const char *text,
			       struct err *e);

#endif
