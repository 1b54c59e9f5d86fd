/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Downloads over http and https into a file, that survive broken connections and distrust servers.
 *
 * What a server may do is bounded: the size of the body by the caller, the header and the URLs by
 * HTTP_HEADERS_MAX and HTTP_URL_MAX, redirections, repetitions and new starts by the constants
 * below, the time by a lowest speed. Redirections lead to http and https alone, from https to http
 * only with insecure_http; credentials go to the host that they are configured for and to no other.
 */
#ifndef IMAGES_FETCH_HTTP_HTTP_H
#define IMAGES_FETCH_HTTP_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "images/fetch/common/options.h"
#include "images/fetch/http/http_head.h"
#include "images/fetch/http/http_transfer.h"
#include "images/module/module.h"
#include "lib/base/err.h"

/* Most redirections in a row; browsers follow 20, rkt followed 10. */
#define HTTP_REDIRECTS_MAX 10
/* Most times that a broken connection is made again: one break per 100 MiB of a large image. */
#define HTTP_RESUMES_MAX 20
/* Most times that a body is begun anew because its pieces do not belong together. */
#define HTTP_RESTARTS_MAX 2
/* Most repetitions after an error of the server that may pass, with pauses that double. */
#define HTTP_RETRIES_MAX 3
/*
 * Longest pause, in milliseconds, that a server may ask for in Retry-After; more is an error at
 * once.
 */
#define HTTP_PAUSE_MAX 10000

/* The usual patience. */
extern const struct http_pace http_pace_default;

struct http_request {
	const char *url;    /* http or https; a plain http: one is the caller's decision */
	const char *accept; /* media types, or NULL */
	/*
	 * What the caller has: with @resume_at 0 a whole body, that is asked for only if it
	 * changed; else the version of which the first @resume_at bytes are in @fd already. NULL:
	 * nothing.
	 */
	const struct http_validator *have;
	uint64_t resume_at; /* bytes */
	uint64_t size_max;  /* bytes; a larger body is an error */
	bool cut;           /* a larger one is cut there instead; without @resume_at */
	int fd;             /* regular file, not O_APPEND; written from offset 0 on */
	/*
	 * Called when a body begins that replaces what is in @fd, which is empty then, so that the
	 * caller can keep what a later resumption needs, should this process be killed; or NULL. 0
	 * or -errno with @e.
	 */
	int (*begin)(void *ctx, const struct http_validator *v, struct err *e);
	void *ctx;
	const struct http_pace *pace; /* NULL: http_pace_default */
};

struct http_result {
	int status;        /* of the last response: 200, 202, 206 or 304 */
	bool not_modified; /* *have is current; @fd is untouched */
	bool resumed;      /* the bytes that were in @fd before are part of the body */
	struct http_validator validator;
	char final_url[HTTP_URL_MAX + 1]; /* behind redirections */
	uint64_t size;                    /* of the body in @fd, bytes */
};

/*
 * Downloads. Credentials are those of o->auth; o->credentials is not called. 0 and *ret: the body
 * is in the file as a whole (status 200, 206), or it did not change (304, only with q->have), or
 * the server has it later (202: nothing was written). -errno and @e, which names URL, cause and
 * remedy, else; then the file may hold the beginning of a body, to be continued with q->resume_at
 * and what q->begin was told. Errors of writing keep their errno (-ENOSPC). No thread is left when
 * it returns.
 */
int http_get(const struct http_request *q, const struct fetch_options *o, struct http_result *ret,
	     struct err *e);

/* The same, where libcurl is linked: in the module that http_get() loads. */
int http_get_here(const struct http_request *q, const struct fetch_options *o,
		  struct http_result *ret, struct err *e);

/* The table of that module. */
struct http_module {
	struct module module;
	__typeof__(http_get) *get;
};

extern const struct http_module http_module;

#endif
