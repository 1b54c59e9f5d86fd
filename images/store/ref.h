/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reference stands for: refs/HEX.json, HEX the SHA-256 of the reference's text.
 *
 * References are written in one canonical way, so that one thing has one file:
 *
 *   name:NAME                  the image that was last imported under that name
 *   docker://HOST/PATH:TAG     an image of a registry
 *   file:PATH                  a file or directory: absolute, with type and name as they were given
 *   https://...                a URL
 *   tree:FORMAT:STAMP          a directory, wherever it is mounted
 *
 * A reference may be stale (its image is gone) or lost at any time: it saves work, nothing depends
 * on it.
 */
#ifndef IMAGES_STORE_REF_H
#define IMAGES_STORE_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/spec/config.h"
#include "images/spec/digest.h"
#include "lib/base/buf.h"

#define REF_TEXT_MAX      ((size_t)8192)  /* a URL, or a path of PATH_MAX and a name */
#define REF_VALIDATOR_MAX ((size_t)1024)  /* an ETag or a date, as a server sends it */
#define REF_STAMP_MAX     ((size_t)127)   /* five numbers of 20 digits and what separates them */
#define REF_JSON_MAX      ((size_t)65536) /* all of that with six bytes for each, as JSON may take */

struct ref {
	char text[REF_TEXT_MAX + 1];
	struct digest image;              /* its id */
	struct digest source;             /* what the registry calls it; unset if unknown */
	int64_t fetched_ns;               /* since the epoch; of URLs and registries, else 0 */
	int64_t max_age_s;                /* how long a URL's content is fresh; 0: ask each time */
	char etag[REF_VALIDATOR_MAX + 1]; /* of a URL, or "" */
	char last_modified[REF_VALIDATOR_MAX + 1]; /* likewise */
	char stamp[REF_STAMP_MAX + 1];             /* of a file or tree, or "": see ref_stamp() */
	char name[IMAGE_NAME_MAX + 1];             /* what the image is called there, or "" */
	bool unverified; /* it should have been signed, and nobody looked: asks for another look */
};

/* An empty reference for @text. 0, -ENAMETOOLONG. */
int ref_init(struct ref *r, const char *text);

/* Appends the reference's file text to @out. 0 or -errno. */
int ref_format(const struct ref *r, struct buf *out);

/* Reads a reference's file text. 0, -EBADMSG, -ENOMEM. */
int ref_parse(const char *text, size_t len, struct ref *ret);

/*
 * What tells that the open file @fd has not changed: device, inode, size and both times. Nobody
 * without privileges can set the time of the last change of an inode; but two changes in one tick
 * of the clock leave one time, so a file that changed within the second before @now_ns has the
 * stamp "". 0 or -errno.
 */
int ref_stamp(int fd, int64_t now_ns, char out[REF_STAMP_MAX + 1]);

#endif
