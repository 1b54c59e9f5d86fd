/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A download is a row of attempts. Each begins at the URL of the request, follows redirections, and
 * ends with a verdict over the response, made from its header before any byte of the body is taken:
 *
 *	body      200 or a 206 that fits: the bytes go to the file, from d->offset on
 *	nothing   202, 304: there is no body to take
 *	redirect  3xx: the same attempt goes on elsewhere
 *	restart   the piece does not fit what the file has: the next attempt asks for everything
 *	retry     429, 5xx: the next attempt asks the same, after a pause
 *	refuse    anything else
 *
 * The file always holds the first d->offset bytes of the version d->version, and nothing behind
 * them. It is emptied when a 200 arrives, not before, so that what it has survives a server that is
 * ill. A connection that breaks leads to the next attempt if bytes have come that were never there
 * before.
 */
#include "images/fetch/http/http.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"

enum verdict {
	VERDICT_NONE, /* no response yet */
	VERDICT_BODY,
	VERDICT_NOTHING,
	VERDICT_REDIRECT,
	VERDICT_RESTART,
	VERDICT_RETRY,
	VERDICT_REFUSE,
};

const struct http_pace http_pace_default = {
	.connect_ms = 30 * 1000,
	.slow_bytes = 1024,
	.slow_s = 60,
	.pause_ms = 1000,
};

struct download {
	const struct http_request *q;
	const struct fetch_options *o;
	struct err *e; /* of the last attempt; none of the caller's business if the next succeeds */
	const struct http_pace *pace;
	struct http_client *client;

	/* What the file has. */
	struct http_validator version;
	uint64_t offset;
	uint64_t best; /* the largest offset that there ever was */
	bool total_known;
	uint64_t total;
	bool resumed;
	bool probed; /* with HEAD, for what the first answer did not say */

	/* The attempt under way. */
	char url[HTTP_URL_MAX + 1];
	struct http_origin first, origin; /* of the request and of @url */
	const struct auth *auth;          /* that was sent to @origin */
	bool ranged;                      /* a Range was sent */
	enum verdict verdict;
	int status;
	int64_t retry_after;
	uint64_t piece_start, piece_end; /* offsets; the end is UINT64_MAX if unknown */
	char location[HTTP_URL_MAX + 1];

	unsigned n_resumes, n_restarts, n_retries;
	struct fetch_meter meter;
	bool telling;                   /* there was a body */
	char shown[HTTP_SHOWN_MAX + 1]; /* the URL of the request, for people */
};

static void on_tick(void *ctx)
{
	struct download *d = ctx;
	if (d->verdict != VERDICT_BODY)
		return;
	d->telling = true;
	d->meter.state.total = d->total_known ? d->total : 0;
	fetch_meter_update(&d->meter, d->offset);
}

/* Tells the end, if there was a body to tell of. */
static void tell_end(struct download *d, bool failed)
{
	if (!d->telling)
		return;
	d->meter.state.failed = failed;
	fetch_meter_end(&d->meter);
}

static int too_large(struct download *d)
{
	return err_set(d->e, -EFBIG, "larger than %" PRIu64 " bytes, the most that is accepted",
		       d->q->size_max);
}

/* Makes the file hold its first @size bytes only. */
static int cut_file(struct download *d, uint64_t size)
{
	if (ftruncate(d->q->fd, (off_t)size) < 0)
		return err_sys(d->e, -errno, "cannot cut the file that is downloaded to");
	d->offset = size;
	return 0;
}

/* A 200: everything from the first byte on. */
static int begin_whole(struct download *d, const struct http_head *h)
{
	if (!d->q->cut && h->has_length && h->length > d->q->size_max)
		return too_large(d);
	int r = cut_file(d, 0);
	if (r < 0)
		return r;
	d->version = h->validator;
	d->total_known = h->has_length;
	d->total = h->length;
	d->resumed = false;
	d->piece_start = 0;
	d->piece_end = h->has_length ? h->length : UINT64_MAX;
	d->verdict = VERDICT_BODY;
	on_tick(d);
	return d->q->begin ? d->q->begin(d->q->ctx, &d->version, d->e) : 0;
}

/* True if the piece that @h announces continues what the file has. */
static bool piece_fits(const struct download *d, const struct http_head *h)
{
	const struct http_range *range = &h->range;
	return range->given && range->first == d->offset &&
	       (!h->has_length || h->length == range->last - range->first + 1) &&
	       (!range->known || !d->total_known || range->total == d->total) &&
	       http_validator_may_equal(&d->version, &h->validator);
}

/* A 206: some bytes of what there is. */
static int begin_piece(struct download *d, const struct http_head *h)
{
	if (!d->ranged)
		return 0;
	d->verdict = VERDICT_RESTART;
	if (!piece_fits(d, h))
		return 0;
	if (h->range.known ? h->range.total > d->q->size_max : h->range.last >= d->q->size_max)
		return too_large(d);
	int r = cut_file(d, d->offset);
	if (r < 0)
		return r;
	if (h->range.known) {
		d->total_known = true;
		d->total = h->range.total;
	}
	if (h->validator.max_age >= 0)
		d->version.max_age = h->validator.max_age;
	d->version.no_store = h->validator.no_store;
	d->version.no_cache = h->validator.no_cache;
	d->piece_start = d->offset;
	d->piece_end = h->range.last + 1;
	d->verdict = VERDICT_BODY;
	return 0;
}

/* True for a download that asks whether something changed. */
static bool is_conditional(const struct download *d)
{
	return d->q->have && d->q->resume_at == 0;
}

/* What a response without a body that is wanted means. */
static enum verdict verdict_on(const struct download *d, int status)
{
	if (status == 202 || (status == 304 && is_conditional(d)))
		return VERDICT_NOTHING;
	if (status == 416 && d->ranged)
		return VERDICT_RESTART;
	if (status == 429 || (status >= 500 && status != 501 && status != 505))
		return VERDICT_RETRY;
	if (status == 301 || status == 302 || status == 303 || status == 307 || status == 308)
		return VERDICT_REDIRECT;
	return VERDICT_REFUSE;
}

static int on_head(void *ctx, const struct http_head *h)
{
	struct download *d = ctx;
	int r = 0;
	d->status = h->status;
	d->retry_after = h->retry_after;
	d->verdict = verdict_on(d, h->status);
	if (h->status == 200)
		r = begin_whole(d, h);
	else if (h->status == 206)
		r = begin_piece(d, h);
	else if (d->verdict == VERDICT_REDIRECT)
		memcpy(d->location, h->location, sizeof(d->location));
	else if (d->verdict == VERDICT_NOTHING)
		d->version = h->validator;
	return r < 0 || d->verdict == VERDICT_BODY ? r : HTTP_TRANSFER_STOPPED;
}

static int on_body(void *ctx, const void *data, size_t len)
{
	struct download *d = ctx;
	bool enough = d->q->cut && len >= d->q->size_max - d->offset;
	if (enough)
		len = (size_t)(d->q->size_max - d->offset);
	if (len > d->q->size_max - d->offset)
		return too_large(d);
	if (len > d->piece_end - d->offset)
		return err_set(d->e, -EPROTO,
			       "the server sends more bytes than it announced (try again later)");
	int r = fd_write_at(d->q->fd, data, len, d->offset);
	if (r < 0)
		return err_sys(d->e, r, "cannot write what is downloaded");
	d->offset += len;
	on_tick(d);
	return enough ? HTTP_TRANSFER_STOPPED : 0;
}

/* The header fields of a request. */
static int make_fields(struct download *d, struct strv *fields)
{
	const struct http_validator *have = d->q->have;
	const char *if_range = http_validator_if_range(&d->version);
	d->ranged = d->offset > 0 && if_range && !d->q->cut;
	int r = strv_add(fields, "Accept-Encoding: identity");
	if (r == 0 && d->q->accept)
		r = strv_addf(fields, "Accept: %s", d->q->accept);
	if (r == 0 && d->ranged)
		r = strv_addf(fields, "Range: bytes=%" PRIu64 "-", d->offset);
	if (r == 0 && d->ranged)
		r = strv_addf(fields, "If-Range: %s", if_range);
	/* Of a version that came meanwhile, not of what the caller has, there is a piece. */
	if (r < 0 || !is_conditional(d) || d->offset > 0)
		return r;
	if (have->etag[0])
		r = strv_addf(fields, "If-None-Match: %s", have->etag);
	else if (have->last_modified[0])
		r = strv_addf(fields, "If-Modified-Since: %s", have->last_modified);
	return r;
}

/*
 * The credentials for d->origin. Without TLS they go to the server that the user named, not to one
 * that somebody on the way might have redirected us to.
 */
static const struct auth *choose_auth(const struct download *d)
{
	if (!d->origin.tls && !d->o->insecure_http && !http_origin_equal(&d->origin, &d->first))
		return NULL;
	return http_origin_auth(d->o->auth, &d->origin);
}

/* A request to d->url with @fields, which it borrows as it does @d. */
static struct http_transfer transfer_of(struct download *d, const struct strv *fields,
					int (*on_answer)(void *ctx, const struct http_head *h))
{
	return (struct http_transfer){
		.url = d->url,
		.origin = d->origin,
		.auth = d->auth,
		.insecure_tls = d->o->insecure_tls,
		.pace = d->pace,
		.fields = (const char *const *)fields->v,
		.on_head = on_answer,
		.on_body = on_body,
		.on_tick = on_tick,
		.ctx = d,
	};
}

/* One request to d->url. Results as http_client_transfer(). */
static int http_exchange(struct download *d)
{
	cleanup_strv struct strv fields;
	strv_init(&fields, HTTP_FIELDS_MAX);
	if (make_fields(d, &fields) < 0)
		return err_set(d->e, -ENOMEM, "out of memory");
	d->auth = choose_auth(d);
	d->verdict = VERDICT_NONE;
	d->status = 0;
	const struct http_transfer t = transfer_of(d, &fields, on_head);
	return http_client_transfer(d->client, &t, d->e);
}

/* Goes where the response leads. */
static int redirect(struct download *d)
{
	char next[HTTP_URL_MAX + 1], shown[HTTP_SHOWN_MAX + 1];
	struct http_origin origin = { 0 };
	if (!d->location[0])
		return err_set(d->e, -EPROTO, "the server redirects (status %d) to nowhere",
			       d->status);
	int r = http_url_follow(d->url, d->location, next, d->e);
	if (r == 0)
		r = http_url_origin(next, &origin, d->e);
	if (r < 0)
		return err_context(d->e, "redirection");
	http_url_show(next, shown);
	if (d->origin.tls && !origin.tls && !d->o->insecure_http)
		return err_set(d->e, -EACCES,
			       "the server redirects to \"%s\", which has no TLS "
			       "(--insecure-options=http accepts that)",
			       shown);
	fetch_note(d->o, "redirected to %s", shown);
	memcpy(d->url, next, sizeof(next));
	d->origin = origin;
	return 0;
}

/* Asks from the URL of the request on. Results as http_client_transfer(). */
static int http_attempt(struct download *d)
{
	memcpy(d->url, d->q->url, strlen(d->q->url) + 1);
	d->origin = d->first;
	for (int n = 0;; n++) {
		int r = http_exchange(d);
		if (r != HTTP_TRANSFER_STOPPED || d->verdict != VERDICT_REDIRECT)
			return r;
		if (n == HTTP_REDIRECTS_MAX)
			return err_set(d->e, -ELOOP, "more than %d redirections",
				       HTTP_REDIRECTS_MAX);
		r = redirect(d);
		if (r < 0)
			return r;
	}
}

static int refuse_credentials(struct download *d)
{
	if (d->auth)
		return err_set(d->e, -EACCES,
			       "bad HTTP status code: %d (the server refuses the credentials for "
			       "\"%s\": correct them in auth.d)",
			       d->status, d->auth->host);
	return err_set(
		d->e, -EACCES,
		"bad HTTP status code: %d (the server wants credentials: put those for \"%s%s%s\" into "
		"auth.d)",
		d->status, d->origin.host, d->origin.default_port ? "" : ":",
		d->origin.default_port ? "" : d->origin.port);
}

/* The error for a status that leads nowhere. */
static int http_refuse(struct download *d)
{
	switch (d->status) {
	case 401:
	case 403:
		return refuse_credentials(d);
	case 404:
	case 410:
		return err_set(d->e, -ENOENT, "bad HTTP status code: %d (not found on the server)",
			       d->status);
	case 407:
		return err_set(
			d->e, -EACCES,
			"bad HTTP status code: 407 (the proxy wants credentials: put them into "
			"the proxy variables)");
	case 206:
		return err_set(d->e, -EPROTO, "the server sends a part that nobody asked for");
	default:
		return err_set(d->e, -EPROTO, "bad HTTP status code: %d%s", d->status,
			       d->status >= 500 || d->status == 429 ? " (try again later)" : "");
	}
}

/* Waits before the next attempt, or says why there is none. */
static int retry(struct download *d)
{
	uint64_t pause = (uint64_t)d->pace->pause_ms << d->n_retries;
	if (d->retry_after > 0)
		pause = MAX(pause, (uint64_t)d->retry_after * 1000);
	if (d->n_retries == HTTP_RETRIES_MAX || (d->retry_after > 0 && pause > HTTP_PAUSE_MAX))
		return http_refuse(d);
	d->n_retries++;
	fetch_note(d->o, "%s: status %d, next attempt in %" PRIu64 " ms", d->shown, d->status,
		   pause);
	(void)poll(NULL, 0, (int)MIN(pause, (uint64_t)HTTP_PAUSE_MAX));
	return 0;
}

static int restart(struct download *d)
{
	if (d->n_restarts == HTTP_RESTARTS_MAX)
		return err_set(d->e, -EPROTO,
			       "the server's pieces do not belong together (try again later)");
	d->n_restarts++;
	d->total_known = false;
	fetch_note(d->o, "%s: status %d does not continue what is there, starting over", d->shown,
		   d->status);
	return cut_file(d, 0);
}

static int on_probed(void *ctx, const struct http_head *h)
{
	struct download *d = ctx;
	if (h->status == 200 && h->has_length && d->total_known && h->length == d->total)
		d->version = h->validator;
	return HTTP_TRANSFER_STOPPED;
}

/*
 * Some servers say what version they send only when asked with HEAD. A body of the same length is
 * taken for the same; that it is, the image's digest or signature shows in the end. True if the
 * version is known then.
 */
static bool probe(struct download *d)
{
	cleanup_strv struct strv fields;
	struct err ignored = ERR_INIT;
	if (d->probed)
		return false;
	d->probed = true;
	strv_init(&fields, HTTP_FIELDS_MAX);
	if (strv_add(&fields, "Accept-Encoding: identity") < 0)
		return false;
	struct http_transfer t = transfer_of(d, &fields, on_probed);
	t.head_only = true;
	http_client_transfer(d->client, &t, &ignored);
	return http_validator_fits_ranges(&d->version) &&
	       (!d->q->begin || d->q->begin(d->q->ctx, &d->version, &ignored) == 0);
}

/*
 * After a connection that broke (@r is HTTP_TRANSFER_BROKEN) or slept (HTTP_TRANSFER_SLOW), which
 * d->e tells: 0 if the next attempt may do better.
 */
static int repair(struct download *d, int r)
{
	bool more = d->offset > d->best;
	uint64_t slow = (uint64_t)d->pace->slow_bytes * d->pace->slow_s;
	d->best = MAX(d->best, d->offset);
	if (d->offset == 0 || (!http_validator_fits_ranges(&d->version) && !probe(d)))
		return d->e->code;
	if (r == HTTP_TRANSFER_SLOW && d->offset - d->piece_start < slow)
		return d->e->code;
	if (!more) {
		d->retry_after = -1;
		if (d->n_retries == HTTP_RETRIES_MAX)
			return d->e->code;
		return retry(d);
	}
	if (d->n_resumes == HTTP_RESUMES_MAX)
		return d->e->code;
	d->n_resumes++;
	fetch_note(d->o, "%s: %s; going on at byte %" PRIu64, d->shown, d->e->text, d->offset);
	return 0;
}

/* True if the response ended before everything was there. */
static bool is_short(const struct download *d)
{
	return (d->total_known && d->offset < d->total) ||
	       (d->piece_end != UINT64_MAX && d->offset < d->piece_end);
}

/* What attempt()'s result @r means: *ret_again or the end. 0 or -errno. */
static int http_judge(struct download *d, int r, bool *ret_again)
{
	*ret_again = true;
	if (r == 0 && d->verdict == VERDICT_BODY && is_short(d)) {
		err_set(d->e, -ECONNRESET, "the server sends fewer bytes than it announced");
		r = HTTP_TRANSFER_BROKEN;
	}
	if (r == HTTP_TRANSFER_BROKEN || r == HTTP_TRANSFER_SLOW)
		return repair(d, r);
	if (r < 0)
		return r;
	switch (d->verdict) {
	case VERDICT_RESTART:
		return restart(d);
	case VERDICT_RETRY:
		return retry(d);
	case VERDICT_BODY:
	case VERDICT_NOTHING:
		*ret_again = false;
		return 0;
	case VERDICT_NONE:
	case VERDICT_REDIRECT:
	case VERDICT_REFUSE:
		break;
	}
	return http_refuse(d);
}

/* Checks the request and prepares @d for its first attempt. */
static int http_prepare(struct download *d)
{
	const struct http_request *q = d->q;
	struct stat st;
	int r = http_url_origin(q->url, &d->first, d->e);
	if (r < 0)
		return r;
	if (fstat(q->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(d->e, -EINVAL, "cannot download into what is not a regular file");
	http_validator_init(&d->version);
	if (q->have && q->resume_at > 0 && http_validator_fits_ranges(q->have)) {
		d->version = *q->have;
		d->offset = MIN(q->resume_at, (uint64_t)st.st_size);
		d->resumed = d->offset > 0;
	}
	if (d->offset > q->size_max)
		return too_large(d);
	d->best = d->offset;
	return http_client_new(&d->client, d->e);
}

static int http_download(struct download *d)
{
	bool again = true;
	int r = http_prepare(d);
	while (r == 0 && again)
		r = http_judge(d, http_attempt(d), &again);
	return r;
}

/* Names the URLs in front of the error, and behind it what is left to be continued. */
static int finish_error(struct download *d, int r)
{
	char shown[HTTP_SHOWN_MAX + 1];
	tell_end(d, true);
	if (d->q->begin && d->offset > 0 && r != -EFBIG &&
	    http_validator_fits_ranges(&d->version)) {
		struct err plain = *d->e;
		err_set(d->e, r, "%s; %" PRIu64 " bytes are there: a repeated fetch continues",
			plain.text, d->offset);
	}
	http_url_show(d->url, shown);
	if (d->url[0] && strcmp(d->url, d->q->url) != 0)
		err_context(d->e, "redirected to \"%s\"", shown);
	err_context(d->e, "\"%s\"", d->shown);
	return r;
}

int http_get_here(const struct http_request *q, const struct fetch_options *o,
		  struct http_result *ret, struct err *e)
{
	struct err own = ERR_INIT;
	struct download d = {
		.q = q,
		.o = o,
		.e = &own,
		.pace = q->pace ? q->pace : &http_pace_default,
	};
	http_url_show(q->url, d.shown);
	fetch_meter_begin(&d.meter, o, d.shown, 0);
	int r = http_download(&d);
	http_client_free(d.client);
	if (r < 0) {
		r = finish_error(&d, r);
		if (e)
			*e = own;
		return r;
	}
	tell_end(&d, false);
	ret->status = d.status;
	ret->not_modified = d.status == 304;
	ret->resumed = d.resumed && d.verdict == VERDICT_BODY;
	ret->validator = d.version;
	memcpy(ret->final_url, d.url, sizeof(d.url));
	ret->size = d.verdict == VERDICT_BODY ? d.offset : 0;
	return 0;
}

const struct http_module http_module = {
	.module = { .version = HUSK_VERSION },
	.get = http_get_here,
};
