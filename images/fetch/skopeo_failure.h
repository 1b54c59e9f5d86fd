/* SPDX-License-Identifier: Apache-2.0 */
/* What skopeo(1) says when it fails, as an error that tells a person what to do. Pure. */
#ifndef IMAGES_FETCH_SKOPEO_FAILURE_H
#define IMAGES_FETCH_SKOPEO_FAILURE_H

#include <stddef.h>

#include "images/spec/registry_name.h"
#include "lib/base/err.h"

/*
 * Longest piece of skopeo's own words that is shown: they may quote a server, and one line is
 * enough.
 */
#define SKOPEO_QUOTE_MAX ((size_t)300)

/* SKOPEO_E_AGAIN: the network or the server had a bad moment; the same may well succeed later. */
enum {
	SKOPEO_E_AGAIN = 1,
};

/*
 * Finds out from @log, @len bytes of skopeo's standard error output, why it failed. Servers have a
 * part in that text, so nothing but the error's wording follows from it. @e, which must not be
 * NULL, is always filled: with what is wrong with the registry @n->registry and what to do, on one
 * line; the caller puts the image's name in front. Returns a negative errno value, or
 * SKOPEO_E_AGAIN with such a value in e->code.
 */
int skopeo_failure(const char *log, size_t len, const struct registry_name *n, struct err *e);

#endif
