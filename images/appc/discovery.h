/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an image of a name like example.com/app is: appc discovery (appc spec 0.8, "App Container
 * Image Discovery"). A page of the site that the name begins with has templates of URLs in its
 * <meta> tags.
 *
 * What a page says is pure: discovery_parse(). discovery_find() asks for the pages.
 */
#ifndef IMAGES_APPC_DISCOVERY_H
#define IMAGES_APPC_DISCOVERY_H

#include "images/fetch/common/options.h"
#include "images/fetch/http/http_head.h"
#include "images/spec/acname.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

/* Bytes of a page that are looked at: <meta> tags stand in its head. */
#define DISCOVERY_PAGE_MAX ((size_t)512 * 1024)
/* Most URLs of each kind; real pages have one to three. More are not looked at. */
#define DISCOVERY_URLS_MAX ((size_t)16)
/*
 * Most pages that are asked for: the name, its parents, the host; real names have two to four
 * parts.
 */
#define DISCOVERY_STEPS_MAX ((size_t)16)

/* What is wanted. A page without it leads on to the page above it. */
enum discovery_wanted {
	DISCOVERY_IMAGES,
	DISCOVERY_KEYS,
};

/* What a page says, in its order. */
struct discovery {
	struct strv images;     /* URLs of images */
	struct strv signatures; /* of images: the one of images.v[i] is signatures.v[i] */
	struct strv keys;       /* URLs of public keys */
};

/* Nothing found. Allocates nothing. */
void discovery_init(struct discovery *d);

/* Frees what was found. */
void discovery_deinit(struct discovery *d);

/*
 * Fills in a template: {name}, {ext} and the labels of @n, as they are but for bytes that have a
 * meaning in URLs, which become %XX. 0; -ENOENT if the template wants a label that @n has not,
 * -ENAMETOOLONG if the result is longer than HTTP_URL_MAX.
 */
int discovery_render(const char *template, const struct acname *n, const char *ext,
		     char ret[HTTP_URL_MAX + 1]);

/*
 * Adds to @ret what the page @html of @len bytes says about @n, which has all labels. Of what has
 * no TLS only with @insecure_http; templates that cannot be filled in, that have no {ext}, and URLs
 * of other schemes are passed over. 0 or -ENOMEM.
 */
int discovery_parse(const char *html, size_t len, const struct acname *n, bool insecure_http,
		    struct discovery *ret);

/*
 * Looks for @wanted: at https://NAME?ac-discovery=1, then at the parents of NAME up to its host,
 * each also without TLS if o->insecure_http. Labels that @n has not are taken from this machine
 * (os, arch), the version is "latest". 0 with something wanted in @ret, which is initialised and
 * empty, or -errno and @e: discovery failed for "NAME", and what was wrong with the first of these
 * pages. The others are o->note's.
 */
int discovery_find(const struct acname *n, enum discovery_wanted wanted,
		   const struct fetch_options *o, struct discovery *ret, struct err *e);

#endif
