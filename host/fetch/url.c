/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the import of the URL has a file "download", and beside it what the server said about
 * the version that is in there, written before its first byte. So whoever comes next, after an error or a
 * crash, can ask for the rest of the same version. The body may be anything; it is read as a file.
 */
#include "host/fetch/url.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/fetch/http.h"
#include "host/store/catalog.h"
#include "host/store/find.h"
#include "host/store/import.h"
#include "host/trust/keystore.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

#define BODY_FILE "download"
#define META_FILE "download.json" /* a struct ref: what is in BODY_FILE */

#define SIGNATURE_LATER INT_MAX /* no descriptor */

#define ACCEPT "application/octet-stream, */*"

/* One call of url_fetch(). */
struct download {
	struct store *store;
	const char *url;
	const char *signature_url; /* NULL: beside it */
	const struct fetch_request *request;
	struct fetch_options options; /* with credentials */
	struct ref memo;              /* what the URL stands for */
	struct ref known;             /* what it stood for */
	bool is_known;                /* and that image is in the store */
	struct import *im;
	int signature; /* if it came before the image, else -EBADF */
	struct fetched *ret;
};

static void download_deinit(struct download *d)
{
	fd_close(d->signature);
}

static bool is_plain(const char *url)
{
	return str_starts(url, "http://");
}

/* True if the options accept bytes from whoever is on the way. */
static bool is_exposed(const struct download *d)
{
	return d->options.insecure_tls || d->options.insecure_http;
}

/* True if the image of the store is one that has a signature. */
static bool can_be_signed(const struct download *d, const struct digest *id)
{
	CLEANUP(record_deinit) struct record record;
	record_init(&record);
	return catalog_get(d->store, id, &record, NULL) == 0 && record.kind == IMAGE_ACI;
}

/* True if what was fetched may be used with the options of now. */
static bool is_accepted(const struct download *d)
{
	if (!d->known.unverified || d->options.insecure_image)
		return true;
	return is_exposed(d) && !is_plain(d->url) && !can_be_signed(d, &d->known.image);
}

/* Looks what the URL stood for, and whether that is what is wanted now. */
static void look_up(struct download *d)
{
	const struct acname *want = d->request->expected;
	d->is_known = catalog_get_ref(d->store, d->url, &d->known) == 0 &&
		      catalog_has_image(d->store, &d->known.image) && is_accepted(d) &&
		      (!want || find_is_appc(d->store, &d->known.image, want, "", false)) &&
		      (!d->request->signature || d->request->policy == PULL_NEVER);
}

static int use_known(struct download *d)
{
	d->ret->id = d->known.image;
	str_copy(d->ret->name, sizeof(d->ret->name), d->known.name);
	return 0;
}

static void set_validator(struct ref *r, const struct http_validator *v)
{
	str_copy(r->etag, sizeof(r->etag), v->etag);
	str_copy(r->last_modified, sizeof(r->last_modified), v->last_modified);
	r->max_age_s = v->no_store || v->no_cache || v->max_age < 0 ? 0 : v->max_age;
}

static void get_validator(const struct ref *r, struct http_validator *v)
{
	http_validator_init(v);
	if (str_copy(v->etag, sizeof(v->etag), r->etag) < 0 ||
	    str_copy(v->last_modified, sizeof(v->last_modified), r->last_modified) < 0)
		http_validator_init(v);
}

/* http_request.begin: what comes now is this version. */
static int note_begin(void *ctx, const struct http_validator *v, struct err *e)
{
	const struct download *d = ctx;
	struct ref meta;
	cleanup_buf struct buf text;
	buf_init(&text, REF_JSON_MAX);
	int r = ref_init(&meta, d->url);
	digest_of("", 0, &meta.image); /* nothing yet */
	set_validator(&meta, v);
	meta.unverified = is_exposed(d);
	if (r == 0)
		r = ref_format(&meta, &text);
	if (r == 0)
		r = file_replace_at(import_dirfd(d->im), META_FILE, buf_data(&text), buf_len(&text),
				    0600);
	return r < 0 ? err_sys(e, r, "cannot write to %s/tmp", store_path(d->store)) : 0;
}

/*
 * What an earlier download left in @fd. Nothing of unknown version is kept, nor what anybody may have sent if
 * this download is not for that.
 */
static uint64_t find_rest(const struct download *d, int fd, struct http_validator *v)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	struct ref meta;
	struct stat st;
	if (fstat(fd, &st) == 0 && st.st_size > 0 &&
	    file_read_at(import_dirfd(d->im), META_FILE, REF_JSON_MAX, &text, &len) == 0 &&
	    ref_parse(text, len, &meta) == 0 && (!meta.unverified || is_exposed(d))) {
		get_validator(&meta, v);
		return (uint64_t)st.st_size;
	}
	return 0;
}

/* Gets the body into @fd. */
static int get_body(struct download *d, int fd, struct http_result *ret, struct err *e)
{
	struct http_validator have;
	http_validator_init(&have);
	uint64_t rest = find_rest(d, fd, &have);
	if (rest == 0 && d->is_known)
		get_validator(&d->known, &have);
	const struct http_request q = {
		.url = d->url,
		.accept = ACCEPT,
		.have = rest > 0 || d->is_known ? &have : NULL,
		.resume_at = rest,
		.size_max = store_bytes_max(d->store),
		.fd = fd,
		.begin = note_begin,
		.ctx = d,
	};
	fetch_note(&d->options, "remote fetching from URL \"%s\"", d->url);
	fetch_note(&d->options, "fetching image from %s", d->url);
	int r = http_get(&q, &d->options, ret, e);
	struct stat st;
	if (r < 0 && r != -ENOSPC && r != -EDQUOT && r != -EFBIG && fstat(fd, &st) == 0 &&
	    st.st_size > 0)
		import_keep(d->im);
	if (r == 0 && ret->status == 202)
		return err_set(e, -EAGAIN, "the server has it later (try again)");
	return r;
}

/* Gets the detached signature, a small file. The descriptor, SIGNATURE_LATER, or -errno with @e. */
static int ask_signature(struct download *d, struct err *e)
{
	char beside[HTTP_URL_MAX + sizeof(".asc")];
	struct http_result result;
	cleanup_fd int fd = memfd_create("signature", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(e, -errno, "cannot make a file in memory");
	size_t path = strcspn(d->url, "?#");
	if (!d->signature_url)
		snprintf(beside, sizeof(beside), "%.*s.asc%s", (int)path, d->url, d->url + path);
	const struct http_request q = {
		.url = d->signature_url ? d->signature_url : beside,
		.size_max = TRUST_SIGNATURE_MAX,
		.fd = fd,
	};
	int r = http_get(&q, &d->options, &result, e);
	if (r < 0)
		return err_context(e, "error downloading the signature file");
	return result.status == 202 ? SIGNATURE_LATER : TAKE_FD(fd);
}

/* True if what comes must be an appc image, and so signed. */
static bool is_appc_url(const struct download *d)
{
	char path[HTTP_URL_MAX + 1];
	str_copy(path, sizeof(path), d->url);
	path[strcspn(path, "?#")] = '\0';
	return d->request->expected || str_ends(path, ".aci");
}

/*
 * An image without a signature need not come at all. A server may want to make the signature
 * meanwhile.
 */
static int get_signature_first(struct download *d, struct err *e)
{
	if (d->is_known || d->options.insecure_image || d->request->signature || !is_appc_url(d))
		return 0;
	int fd = ask_signature(d, e);
	if (fd == SIGNATURE_LATER)
		fetch_note(&d->options, "server requested deferring the signature download");
	else if (fd >= 0)
		d->signature = fd;
	return MIN(fd, 0);
}

/* The signature, once the image is there. */
static int get_signature(void *ctx, struct err *e)
{
	struct download *d = ctx;
	if (d->signature >= 0)
		return TAKE_FD(d->signature);
	int fd = ask_signature(d, e);
	if (fd == SIGNATURE_LATER)
		return err_set(e, -EAGAIN,
			       "error downloading the signature file: the server has it later (try "
			       "again)");
	return fd;
}

/* The signature that the user gave, else the one at the server. */
static int open_signature(void *ctx, struct err *e)
{
	const struct download *d = ctx;
	const char *path = d->request->signature;
	if (!path)
		return get_signature(ctx, e);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, -errno, "error opening signature file \"%s\"", path) : fd;
}

/* What an image is called that came from @url: that, without scheme and query. */
static void make_hint(const char *url, char out[HTTP_URL_MAX + 1])
{
	const char *rest = strstr(url, "://");
	str_copy(out, HTTP_URL_MAX + 1, rest ? rest + strlen("://") : url);
	out[strcspn(out, "?#")] = '\0';
}

/* Reads the body, whatever it is. */
static int import_body(struct download *d, int fd, struct err *e)
{
	char hint[HTTP_URL_MAX + 1];
	struct reference ref = { .type = REFERENCE_ANY };
	make_hint(d->url, hint);
	snprintf(ref.path, sizeof(ref.path), "/proc/self/fd/%d", fd);
	const struct local_file file = {
		.import = d->im,
		.hint = hint,
		.signature = open_signature,
		.ctx = d,
		.tampered = is_plain(d->url),
	};
	int r = local_import(d->store, &ref, &file, d->request, d->ret, &d->memo.unverified, e);
	if (r == 0 && is_exposed(d) && !can_be_signed(d, &d->ret->id))
		d->memo.unverified = true; /* nothing but TLS could vouch for it */
	return r;
}

static int download(struct download *d, struct err *e)
{
	struct http_result result;
	cleanup_fd int fd = openat(import_dirfd(d->im), BODY_FILE,
				   O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, -errno, "cannot write to %s/tmp", store_path(d->store));
	int r = get_signature_first(d, e);
	if (r == 0)
		r = get_body(d, fd, &result, e);
	if (r < 0)
		return r;
	set_validator(&d->memo, &result.validator);
	if (!result.not_modified)
		return import_body(d, fd, e);
	fetch_note(&d->options, "using image from local store for url %s", d->url);
	d->memo.unverified = d->known.unverified;
	if (!*result.validator.etag && !*result.validator.last_modified) {
		str_copy(d->memo.etag, sizeof(d->memo.etag), d->known.etag);
		str_copy(d->memo.last_modified, sizeof(d->memo.last_modified),
			 d->known.last_modified);
	}
	return use_known(d);
}

/* True if what is known need not be asked about. */
static bool is_fresh(const struct download *d, int64_t now_ns)
{
	if (!d->is_known)
		return false;
	return d->request->policy != PULL_UPDATE ||
	       (d->known.fetched_ns <= now_ns &&
		(now_ns - d->known.fetched_ns) / NS_PER_SEC < d->known.max_age_s);
}

/* The image that a dependency is for is being imported by us, too: see import_begin_nested(). */
static int begin_import(const struct download *d, struct import **ret, struct err *e)
{
	return d->request->depth > 0 ? import_begin_nested(d->store, d->url, ret, e)
				     : import_begin(d->store, d->url, ret, e);
}

static int update(struct download *d, struct err *e)
{
	int64_t start = clock_realtime_ns();
	cleanup_import struct import *im = NULL;
	int r = fetch_load_credentials(&d->options, e);
	if (r == 0)
		r = begin_import(d, &im, e);
	if (r < 0)
		return r;
	d->im = im;
	look_up(d);
	if (d->is_known && d->known.fetched_ns >= start) /* somebody else did it meanwhile */
		return use_known(d);
	r = download(d, e);
	if (r < 0)
		return r;
	d->memo.image = d->ret->id;
	d->memo.fetched_ns = clock_realtime_ns();
	str_copy(d->memo.name, sizeof(d->memo.name), d->ret->name);
	return catalog_refer(d->store, &d->memo, e);
}

int url_fetch(struct store *s, const char *url, const char *signature_url,
	      const struct fetch_request *q, struct fetched *ret, struct err *e)
{
	const struct fetch_chain chain = { url, q->chain };
	struct fetch_request request = *q;
	CLEANUP(download_deinit)
	struct download d = {
		.signature = -EBADF,
		.store = s,
		.url = url,
		.signature_url = signature_url,
		.request = &request,
		.options = q->options,
		.ret = ret,
	};
	if (strlen(url) > HTTP_URL_MAX || ref_init(&d.memo, url) < 0)
		return err_set(e, -ENAMETOOLONG, "the URL has more than %zu bytes", HTTP_URL_MAX);
	look_up(&d);
	if (is_fresh(&d, clock_realtime_ns())) {
		if (q->policy == PULL_UPDATE)
			fetch_note(&q->options, "image for %s isn't expired, not fetching.", url);
		fetch_note(&q->options, "using image from local store for url %s", url);
		return use_known(&d);
	}
	if (q->policy == PULL_NEVER)
		return err_set(e, -ENOENT,
			       "it is not in the local store (husk fetch, or another "
			       "--pull-policy than never, brings it there)");
	/* The import of one of these is ours, and begun: we would wait for ourselves. */
	for (const struct fetch_chain *c = q->chain; c; c = c->above)
		if (strcmp(c->url, url) == 0)
			return err_set(e, -ELOOP, "the image depends on itself");
	request.chain = &chain;
	return update(&d, e);
}
