/* SPDX-License-Identifier: Apache-2.0 */
/* Images of the store by what people call them. */
#ifndef IMAGES_STORE_FIND_H
#define IMAGES_STORE_FIND_H

#include <stdbool.h>

#include "images/spec/acname.h"
#include "images/spec/digest.h"
#include "images/store/store.h"
#include "lib/base/err.h"

#define FIND_PREFIX_MIN ((size_t)2) /* hex digits of a hash that must be given, as in rkt */

/*
 * The image whose hash begins with @text: "sha256-" and FIND_PREFIX_MIN to 64 hex digits, or
 * "sha512-" and up to 128 for the key of an appc image, or up to 64 for what digest_appc_id() says
 * of another. 0, or -errno with @e: -EINVAL "image ID too short", -ENOENT "no image IDs found",
 * -EEXIST "ambiguous image ID: ...".
 */
int find_id(const struct store *s, const char *text, struct digest *ret, struct err *e);

/*
 * The image that was imported last under the name @text; or that is called that, or came from a
 * registry, in another spelling ("debian", "docker://debian" and "docker.io/library/debian:latest"
 * are one name); or the newest appc image of that name with these labels. 0, or -errno with @e:
 * -ENOENT; -EEXIST if these are several images.
 */
int find_name(const struct store *s, const char *text, struct digest *ret, struct err *e);

/*
 * Of the appc images with that name and at least these labels, whose key begins with the hex digits
 * @key, "" for any, and whose signature was checked, if @verified, the one that was imported last:
 * what an image may depend on. 0, or -ENOENT with @e. And whether @id is such an image.
 */
int find_appc(const struct store *s, const struct acname *want, const char *key, bool verified,
	      struct digest *ret, struct err *e);
bool find_is_appc(const struct store *s, const struct digest *id, const struct acname *want,
		  const char *key, bool verified);

/* What people type: a hash if @text begins with "sha256-" or "sha512-", else a name. As above. */
int find_image(const struct store *s, const char *text, struct digest *ret, struct err *e);

#endif
