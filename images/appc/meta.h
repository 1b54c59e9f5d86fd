/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The <meta> tags of an HTML document. Pure, without memory of its own.
 *
 * This is a scanner, not a parser: it knows what a tag, a comment and a quoted value are (WHATWG
 * HTML, 13.2.5) and that some elements have no tags inside, which is what it takes to find tags
 * that are really there. It accepts any bytes.
 */
#ifndef IMAGES_APPC_META_H
#define IMAGES_APPC_META_H

#include <stdbool.h>
#include <stddef.h>

/* Longest name of a <meta> tag that is handed out; "ac-discovery-pubkeys" has 20 bytes. */
#define META_NAME_MAX ((size_t)63)
/*
 * Longest content: an image's name, a blank and a template as long as a URL (HTTP_URL_MAX),
 * rounded.
 */
#define META_CONTENT_MAX ((size_t)8703)

struct meta_tag {
	char name[META_NAME_MAX + 1]; /* in lower case */
	char content[META_CONTENT_MAX + 1];
};

/* A place in a document. */
struct meta_scan {
	const char *at, *end; /* what was not looked at yet; borrowed */
};

/*
 * Finds the next <meta> tag that has both name and content, neither longer than allowed nor with a
 * NUL in it. Character references are replaced where they stand for ASCII. False if there is none.
 */
bool meta_next(struct meta_scan *s, struct meta_tag *ret);

#endif
