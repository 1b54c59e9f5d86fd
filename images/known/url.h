/* SPDX-License-Identifier: Apache-2.0 */
/* Images behind http and https URLs: what is known of them. */
#ifndef IMAGES_KNOWN_URL_H
#define IMAGES_KNOWN_URL_H

#include <stdbool.h>

#include "images/fetch/common/options.h"
#include "images/fetch/http/http_head.h"
#include "images/known/found.h"
#include "images/store/store.h"

/*
 * A file at a URL that is being looked for. The members but @found are this module's and
 * fetch/url.c's.
 */
struct url {
	struct store *store;
	const char *url;
	const char *signature_url; /* NULL: beside it */
	const struct fetch_request *request;
	struct fetch_options options; /* with credentials */
	struct ref known;             /* what the URL stood for */
	bool is_known;                /* and that image is in the store */
	int signature;                /* if it came before the image, else -EBADF */
	int body;                     /* what was downloaded, or -EBADF */
	char hint[HTTP_URL_MAX + 1];
	struct found found;
};

#define URL_INIT ((struct url){ .signature = -EBADF, .body = -EBADF })

/* Frees what it owns. Accepts URL_INIT. */
void url_deinit(struct url *u);

/*
 * Looks whether it is known what @url stands for: then u->found is FOUND_KNOWN. With PULL_UPDATE it
 * is not known any more once the time that the server gave is over. The detached signature of an
 * appc image is at @signature_url; NULL: at @url with ".asc" behind its path. Fills @u, which
 * borrows the others. 0 or -errno with @e.
 */
int url_look(struct url *u, struct store *s, const char *url, const char *signature_url,
	     const struct fetch_request *q, struct err *e);

/* Looks again what the URL stood for, and whether that is what is wanted now: u->is_known. */
void url_look_up(struct url *u);

/* What is known is what was found, in the way that @where says. */
void url_use_known(struct url *u, enum found_where where);

/* True for what has no TLS. */
bool url_is_plain(const char *url);

/* True if the options accept bytes from whoever is on the way. */
bool url_is_exposed(const struct url *u);

#endif
