/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the import of the URL has a file "download", and beside it what the server
 * said about the version that is in there, written before its first byte. So whoever comes next,
 * after an error or a crash, can ask for the rest of the same version. The body may be anything; it
 * is read as a file.
 */
#include "images/fetch/url.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/appc/appc.h"
#include "images/fetch/http/http.h"
#include "images/store/catalog.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

#define BODY_FILE "download"
#define META_FILE "download.json" /* a struct ref: what is in BODY_FILE */

#define SIGNATURE_LATER INT_MAX /* no descriptor */

#define ACCEPT "application/octet-stream, */*"

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
	const struct url *u = ctx;
	struct ref meta;
	cleanup_buf struct buf text;
	buf_init(&text, REF_JSON_MAX);
	int r = ref_init(&meta, u->url);
	digest_of("", 0, &meta.image); /* nothing yet */
	set_validator(&meta, v);
	meta.unverified = url_is_exposed(u);
	if (r == 0)
		r = ref_format(&meta, &text);
	if (r == 0)
		r = file_replace_at(import_dirfd(u->found.import), META_FILE, buf_data(&text),
				    buf_len(&text), 0600);
	return r < 0 ? err_sys(e, r, "cannot write to %s/tmp", store_path(u->store)) : 0;
}

/*
 * What an earlier download left in @fd. Nothing of unknown version is kept, nor what anybody may
 * have sent if this download is not for that.
 */
static uint64_t find_rest(const struct url *u, int fd, struct http_validator *v)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	struct ref meta;
	struct stat st;
	if (fstat(fd, &st) == 0 && st.st_size > 0 &&
	    file_read_at(import_dirfd(u->found.import), META_FILE, REF_JSON_MAX, &text, &len) ==
		    0 &&
	    ref_parse(text, len, &meta) == 0 && (!meta.unverified || url_is_exposed(u))) {
		get_validator(&meta, v);
		return (uint64_t)st.st_size;
	}
	return 0;
}

/* Gets the body. */
static int get_body(struct url *u, struct http_result *ret, struct err *e)
{
	int fd = u->body;
	struct http_validator have;
	http_validator_init(&have);
	uint64_t rest = find_rest(u, fd, &have);
	if (rest == 0 && u->is_known)
		get_validator(&u->known, &have);
	const struct http_request q = {
		.url = u->url,
		.accept = ACCEPT,
		.have = rest > 0 || u->is_known ? &have : NULL,
		.resume_at = rest,
		.size_max = store_bytes_max(u->store),
		.fd = fd,
		.begin = note_begin,
		.ctx = u,
	};
	fetch_note(&u->options, "remote fetching from URL \"%s\"", u->url);
	fetch_note(&u->options, "fetching image from %s", u->url);
	int r = http_get(&q, &u->options, ret, e);
	struct stat st;
	if (r < 0 && r != -ENOSPC && r != -EDQUOT && r != -EFBIG && fstat(fd, &st) == 0 &&
	    st.st_size > 0)
		import_keep(u->found.import);
	if (r == 0 && ret->status == 202)
		return err_set(e, -EAGAIN, "the server has it later (try again)");
	return r;
}

/* Gets the detached signature, a small file. The descriptor, SIGNATURE_LATER, or -errno with @e. */
static int ask_signature(struct url *u, struct err *e)
{
	char beside[HTTP_URL_MAX + sizeof(".asc")];
	struct http_result result;
	cleanup_fd int fd = memfd_create("signature", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(e, -errno, "cannot make a file in memory");
	size_t path = strcspn(u->url, "?#");
	if (!u->signature_url)
		snprintf(beside, sizeof(beside), "%.*s.asc%s", (int)path, u->url, u->url + path);
	const struct http_request q = {
		.url = u->signature_url ? u->signature_url : beside,
		.size_max = APPC_SIGNATURE_MAX,
		.fd = fd,
	};
	int r = http_get(&q, &u->options, &result, e);
	if (r < 0)
		return err_context(e, "error downloading the signature file");
	return result.status == 202 ? SIGNATURE_LATER : TAKE_FD(fd);
}

/* True if what comes must be an appc image, and so signed. */
static bool is_appc_url(const struct url *u)
{
	char path[HTTP_URL_MAX + 1];
	str_copy(path, sizeof(path), u->url);
	path[strcspn(path, "?#")] = '\0';
	return u->request->expected || str_ends(path, ".aci");
}

/*
 * An image without a signature need not come at all. A server may want to make the signature
 * meanwhile.
 */
static int get_signature_first(struct url *u, struct err *e)
{
	if (u->is_known || u->options.insecure_image || u->request->signature || !is_appc_url(u))
		return 0;
	int fd = ask_signature(u, e);
	if (fd == SIGNATURE_LATER)
		fetch_note(&u->options, "server requested deferring the signature download");
	else if (fd >= 0)
		u->signature = fd;
	return MIN(fd, 0);
}

/* The signature, once the image is there. */
static int get_signature(void *ctx, struct err *e)
{
	struct url *u = ctx;
	if (u->signature >= 0)
		return TAKE_FD(u->signature);
	int fd = ask_signature(u, e);
	if (fd == SIGNATURE_LATER)
		return err_set(e, -EAGAIN,
			       "error downloading the signature file: the server has it later (try "
			       "again)");
	return fd;
}

/* What an image is called that came from @url: that, without scheme and query. */
static void make_hint(const char *url, char out[HTTP_URL_MAX + 1])
{
	const char *rest = strstr(url, "://");
	str_copy(out, HTTP_URL_MAX + 1, rest ? rest + strlen("://") : url);
	out[strcspn(out, "?#")] = '\0';
}

/* The body is the file, whatever is in it. */
static void use_body(struct url *u)
{
	struct found *f = &u->found;
	f->where = FOUND_FILE;
	f->file.type = REFERENCE_ANY;
	snprintf(f->file.path, sizeof(f->file.path), "/proc/self/fd/%d", u->body);
	make_hint(u->url, u->hint);
	f->hint = u->hint;
	f->tampered = url_is_plain(u->url);
	f->exposed = url_is_exposed(u);
	f->signature = get_signature;
	f->ctx = u;
}

/* What is known is still what there is, as @v says, which may be silent about the version. */
static void use_current(struct url *u, const struct http_validator *v)
{
	struct ref *memo = &u->found.memo;
	fetch_note(&u->options, "using image from local store for url %s", u->url);
	url_use_known(u, FOUND_CURRENT);
	str_copy(memo->name, sizeof(memo->name), u->known.name);
	memo->unverified = u->known.unverified;
	if (!*v->etag && !*v->last_modified) {
		str_copy(memo->etag, sizeof(memo->etag), u->known.etag);
		str_copy(memo->last_modified, sizeof(memo->last_modified), u->known.last_modified);
	}
}

static int url_download(struct url *u, struct err *e)
{
	struct http_result result = { .status = 0 };
	u->body = openat(import_dirfd(u->found.import), BODY_FILE,
			 O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (u->body < 0)
		return err_sys(e, -errno, "cannot write to %s/tmp", store_path(u->store));
	int r = get_signature_first(u, e);
	if (r == 0)
		r = get_body(u, &result, e);
	if (r < 0)
		return r;
	set_validator(&u->found.memo, &result.validator);
	if (result.not_modified)
		use_current(u, &result.validator);
	else
		use_body(u);
	return 0;
}

int url_get(struct url *u, bool nested, struct err *e)
{
	struct import **im = &u->found.import;
	int64_t start = clock_realtime_ns();
	int r = fetch_load_credentials(&u->options, e);
	if (r == 0)
		r = nested ? import_begin_nested(u->store, u->url, im, e)
			   : import_begin(u->store, u->url, im, e);
	if (r < 0)
		return r;
	url_look_up(u);
	if (!u->is_known || u->known.fetched_ns < start)
		return url_download(u, e);
	url_use_known(u, FOUND_KNOWN); /* somebody else did it meanwhile */
	return 0;
}
