/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP request and its answer, over libcurl: no redirections, no second attempt. http.h makes
 * downloads of them.
 *
 * What arrives is handed to three functions of the caller. Each of the first two may end the
 * transfer: with HTTP_TRANSFER_STOPPED because it has seen enough, or with a negative errno and the
 * caller's own struct err.
 */
#ifndef IMAGES_FETCH_HTTP_HTTP_TRANSFER_H
#define IMAGES_FETCH_HTTP_HTTP_TRANSFER_H

#include <stddef.h>
#include <stdint.h>

#include "images/fetch/http/http_head.h"
#include "images/fetch/http/http_url.h"
#include "lib/base/err.h"

/*
 * Most bytes of header of one answer, interim ones and trailers included; browsers stop at 256 KiB.
 */
#define HTTP_HEADERS_MAX ((size_t)128 * 1024)
/* Most fields of our own in a request: Accept, Range, If-Range or both conditions. */
#define HTTP_FIELDS_MAX ((size_t)8)

/*
 * HTTP_TRANSFER_STOPPED: a function of the caller stopped it. HTTP_TRANSFER_BROKEN: the connection
 * ended too early. HTTP_TRANSFER_SLOW: too few bytes came. The last two fill @e, too.
 */
enum {
	HTTP_TRANSFER_STOPPED = 1,
	HTTP_TRANSFER_BROKEN,
	HTTP_TRANSFER_SLOW,
};

/* How patient we are. */
struct http_pace {
	uint32_t connect_ms; /* until the connection stands */
	uint32_t slow_bytes; /* per second; fewer than this ... */
	uint32_t slow_s;     /* ... for so many seconds are too few */
	uint32_t pause_ms;   /* before the first repetition after an error of the server */
};

struct http_transfer {
	const char *url;
	struct http_origin origin; /* of @url */
	const struct auth *auth;   /* credentials for it, or NULL */
	bool insecure_tls;         /* do not verify the certificate */
	const struct http_pace *pace;
	const char *const *fields; /* "Name: value", NULL-terminated, at most HTTP_FIELDS_MAX */
	bool head_only;            /* HEAD instead of GET */

	/* The header of the final response is complete. Interim responses are not told. */
	int (*on_head)(void *ctx, const struct http_head *h);
	/* Bytes of the body. */
	int (*on_body)(void *ctx, const void *data, size_t len);
	/* Time passes: called while waiting, at least once a second. */
	void (*on_tick)(void *ctx);
	void *ctx;
};

/* A connection that several transfers may use, one after another. */
struct http_client;

/*
 * Prepares libcurl, once per process, which must still have only one thread. 0 and *ret, or -errno
 * and @e.
 */
int http_client_new(struct http_client **ret, struct err *e);

/* Closes its connections and ends its threads. Accepts NULL. */
void http_client_free(struct http_client *c);

/*
 * Makes the transfer. 0 when the answer arrived as a whole, a HTTP_TRANSFER_ constant, or -errno:
 * of a function of the caller (@e untouched), else with @e, which does not name the URL. The
 * resolver's thread, if there was one, has ended.
 */
int http_client_transfer(struct http_client *c, const struct http_transfer *t, struct err *e);

#endif
