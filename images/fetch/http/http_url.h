/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs of downloads: which server one means, where a redirection leads, which credentials belong to
 * it, how people see it. Pure. The syntax is libcurl's (RFC 3986), the same that later opens the
 * connection, so that both agree on what is the host.
 */
#ifndef IMAGES_FETCH_HTTP_HTTP_URL_H
#define IMAGES_FETCH_HTTP_HTTP_URL_H

#include <stdbool.h>

#include "images/fetch/http/http_head.h"
#include "lib/base/auth.h"
#include "lib/base/err.h"

/* Longest URL as people see it; longer ones lose their end. Two fit into one message. */
#define HTTP_SHOWN_MAX ((size_t)300)
/* Longest name or address of a server: DNS names have 253 bytes. */
#define HTTP_HOST_MAX ((size_t)255)
/* Longest name of a region of AWS; "ap-southeast-2" and room. */
#define HTTP_REGION_MAX ((size_t)63)

/* Who is asked: what credentials are bound to. */
struct http_origin {
	bool tls;
	bool default_port;            /* 443 with TLS, 80 without */
	char host[HTTP_HOST_MAX + 1]; /* in lower case; IPv6 addresses in brackets */
	char port[6];
};

/*
 * @url for people: without user and password, the query replaced by "...", since both may be
 * secrets. Any text will do.
 */
void http_url_show(const char *url, char out[HTTP_SHOWN_MAX + 1]);

/*
 * The server that @url means. 0, or -EINVAL and @e (which does not name the URL) if it is not a URL
 * of scheme http or https or longer than HTTP_URL_MAX.
 */
int http_url_origin(const char *url, struct http_origin *ret, struct err *e);

/* True if both are the same scheme, host and port. */
bool http_origin_equal(const struct http_origin *a, const struct http_origin *b);

/*
 * The credentials for @origin: those of "host:port", of "host" only if the port is the default one.
 * NULL if there are none. @list may be NULL.
 */
const struct auth *http_origin_auth(const struct auths *list, const struct http_origin *origin);

/*
 * Where @location, absolute or relative, leads from @base. A user and a password in it are dropped:
 * a server does not choose as whom we come to another. 0, or -errno and @e (bad, or neither http
 * nor https, -EPROTO).
 */
int http_url_follow(const char *base, const char *location, char ret[HTTP_URL_MAX + 1],
		    struct err *e);

/*
 * The region of AWS that the host of S3 @host is in, as rkt guesses it: from names like
 * "s3-REGION.amazonaws.com" and "BUCKET.s3.REGION.amazonaws.com", else "us-east-1".
 */
void http_aws_region(const char *host, char ret[HTTP_REGION_MAX + 1]);

#endif
