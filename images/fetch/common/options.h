/* SPDX-License-Identifier: Apache-2.0 */
/* What the user allows and wants to hear while images are fetched. */
#ifndef IMAGES_FETCH_COMMON_OPTIONS_H
#define IMAGES_FETCH_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "images/appc/trust/key.h"
#include "lib/base/auth.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

struct acname;

/* How far one transfer or conversion is. */
struct fetch_progress {
	const char *what; /* for people: a URL, a layer; borrowed for the call */
	uint64_t done;    /* bytes */
	uint64_t total;   /* bytes; 0 while unknown */
	bool ended;       /* nothing more comes of @what */
	bool failed;      /* it ended before it was complete */
};

/* All members may be zero. Everything is borrowed and must outlive the fetch. */
struct fetch_options {
	bool insecure_image; /* accept unsigned and wrongly signed images */
	bool insecure_tls;   /* do not verify the certificates of servers */
	bool insecure_http;  /* accept connections without TLS where the user did not write http: */
	bool insecure_pubkey;            /* for public keys both, whatever the two above say */
	const struct auths *auth;        /* credentials by host, for http; NULL: none */
	const struct auths *docker_auth; /* credentials by registry; NULL: none */
	/*
	 * Reads the credentials when a fetch turns out to need some; NULL: auth and docker_auth are
	 * all. 0, or -errno with @e.
	 */
	int (*credentials)(void *config_ctx, const struct auths **ret_http,
			   const struct auths **ret_docker, struct err *e);
	void *config_ctx;
	struct trust_dirs keys; /* that signatures are checked with */
	/* Called at most some ten times a second; NULL: nobody listens. */
	void (*progress)(void *ctx, const struct fetch_progress *p);
	void (*note)(void *ctx, const char *text); /* one line for people who debug; or NULL */
	void *ctx;
};

/* What to do about what is in the store already. */
enum pull_policy {
	PULL_NEVER,  /* use only that */
	PULL_NEW,    /* use that, else fetch */
	PULL_UPDATE, /* ask whether there is something newer */
	PULL_POLICIES,
};

/* Reads "never", "new" or "update". 0, or -EINVAL and @e. */
int pull_policy_parse(const char *text, enum pull_policy *ret, struct err *e);

/* One image that is wanted. */
struct fetch_request {
	const char *reference; /* images/known/reference.h has the forms */
	bool is_name;          /* it is a name or an ID, whatever files there are */
	const char
		*signature; /* file with the detached signature of an appc image; NULL: beside it */
	const struct acname
		*expected;       /* what must be an appc image, and called so; NULL: anything */
	enum pull_policy policy; /* files and directories are read in any case, as they are here */
	/*
	 * Of a directory: yields what is the same for equal trees only, wherever they are mounted,
	 * at most REF_STAMP_MAX bytes; false if that cannot be told. Asked again when the tree has
	 * been read, it must say the same of it to be believed. NULL: it cannot be told.
	 */
	bool (*identify)(void *identity_ctx, char *ret);
	void *identity_ctx;
	bool fetch_only; /* whoever may not render images gets it without its rendered file */
	struct fetch_options options;
};

/*
 * Calls o->credentials, if there is such a function, and fills in what it says. 0 or -errno with
 * @e.
 */
int fetch_load_credentials(struct fetch_options *o, struct err *e);

/* Tells o->progress, if there is one. */
void fetch_tell(const struct fetch_options *o, const struct fetch_progress *p);

/* Tells of one transfer, ten times a second at most. */
struct fetch_meter {
	const struct fetch_options *options;
	struct fetch_progress state;
	int64_t told_ns;
};

/* Starts with nothing of @total bytes done (0: unknown). @what is borrowed. */
void fetch_meter_begin(struct fetch_meter *m, const struct fetch_options *o, const char *what,
		       uint64_t total);

/* @done bytes are done; tells if it is time to. */
void fetch_meter_update(struct fetch_meter *m, uint64_t done);

/* The same for who hands over the bytes: @len more are done. @meter is a struct fetch_meter. */
void fetch_meter_add(void *meter, const void *data, size_t len);

/* Tells that it has ended well; after a failure an error follows, and nothing is told. */
void fetch_meter_end(struct fetch_meter *m);

/* Tells o->note, if there is one, "image: " and at most ERR_TEXT_MAX bytes in all. */
void fetch_note(const struct fetch_options *o, const char *fmt, ...) PRINTF_FORMAT(2, 3);

#endif
