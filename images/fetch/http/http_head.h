/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the header of an HTTP response says, as far as downloads need it (RFC 9110, 9111). Pure.
 *
 * The fields are the server's: what is not understood counts as not said, what is too long, too.
 */
#ifndef IMAGES_FETCH_HTTP_HTTP_HEAD_H
#define IMAGES_FETCH_HTTP_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest URL; those that clouds sign for downloads have 1 to 4 KiB. */
#define HTTP_URL_MAX ((size_t)8191)
/* Longest ETag that is kept; usual ones are a hash in quotes. */
#define HTTP_ETAG_MAX ((size_t)255)
/* Longest Last-Modified that is kept; "Sun, 06 Nov 1994 08:49:37 GMT" and room. */
#define HTTP_DATE_MAX ((size_t)63)
/* Longest time in a header, in seconds: RFC 9111, 1.2.2, lets larger ones count as 2^31. */
#define HTTP_SECONDS_MAX INT64_C(2147483648)

/* What a cache keeps beside a body. One of zeros but max_age -1 says nothing. */
struct http_validator {
	char etag[HTTP_ETAG_MAX + 1];          /* as sent, with its quotes and its W/; or "" */
	char last_modified[HTTP_DATE_MAX + 1]; /* as sent; or "" */
	int64_t max_age;                       /* seconds; -1: not said */
	bool no_store;                         /* not to be kept */
	bool no_cache;                         /* to be asked about each time */
};

/* A Content-Range: bytes @first to @last, inclusive, of @total. */
struct http_range {
	bool given; /* there is one, and it is understood */
	bool known; /* @total is known */
	uint64_t first, last, total;
};

struct http_head {
	int status;                      /* that of the final response */
	bool has_length;                 /* there was a Content-Length */
	uint64_t length;                 /* bytes */
	struct http_range range;         /* of a 206 */
	int64_t retry_after;             /* seconds; -1: not said, or said as a date */
	struct http_validator validator; /* ETag, Last-Modified, Cache-Control */
	char location[HTTP_URL_MAX + 1]; /* as sent, perhaps relative; or "" */
};

/* Says nothing, asks for nothing. */
void http_validator_init(struct http_validator *v);

/*
 * True if @v tells two versions of a body apart well enough to put pieces together: a strong ETag,
 * or a Last-Modified (RFC 9110, 13.1.5).
 */
bool http_validator_fits_ranges(const struct http_validator *v);

/* The value of If-Range for @v, borrowed from it; NULL unless http_validator_fits_ranges(). */
const char *http_validator_if_range(const struct http_validator *v);

/* False if @a and @b both name a version and it is not the same one. */
bool http_validator_may_equal(const struct http_validator *a, const struct http_validator *b);

/* A header of which nothing was read yet. */
void http_head_init(struct http_head *h);

/* Takes in the value @text of the field @field. Of several of one name the last one counts. */
void http_head_take(struct http_head *h, const char *field, const char *text);

#endif
