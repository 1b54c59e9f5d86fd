/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: skopeo knows the protocols, credentials, certificates and signatures; it is
 * told a name with a digest and a directory, and everything that it brings is measured against the
 * manifest that was looked at before. Looking is `inspect --raw`, whose output is hashed here.
 * Copying is `copy`, which renames each blob to its place when it is complete and skips blobs that
 * are in place, so an attempt that fails leaves the complete ones for the next. (skopeo 1.9 asks
 * for a blob from its beginning always, never for a range.)
 *
 * While it runs, the sizes of the files say how far it is, whether it is more than there should be,
 * and whether anything moves at all.
 */
#include "images/fetch/registry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "images/fetch/registry_layout.h"
#include "images/fetch/resolve.h"
#include "images/fetch/skopeo.h"
#include "images/fetch/skopeo_args.h"
#include "images/fetch/skopeo_failure.h"
#include "images/spec/oci.h"
#include "lib/os/clock.h"

#define LOOK_LIMIT_MS \
	120000 /* for 4 MiB at most; skopeo itself waits for busy servers, some 30 s */
#define STALL_LIMIT_MS 60000 /* without a byte; servers check and hash for seconds, not minutes */
#define FIRST_WAIT_MS  1000  /* before the second attempt; doubled before each other one */
#define SLACK_BYTES    ((uint64_t)1024 * 1024) /* skopeo's buffers; what is counted twice by chance */
#define FILE_FLOOR_BYTES \
	((uint64_t)64 * 1024 * 1024) /* skopeo's own database of blobs is a file, too */

void registry_manifest_deinit(struct registry_manifest *m)
{
	free(m->text);
	*m = REGISTRY_MANIFEST_INIT;
}

/* One command of skopeo about one image. */
struct command {
	const struct registry_name *n;
	const struct fetch_options *o;
	struct strv args;
	struct buf auth;
	bool has_auth;
};

static void command_deinit(struct command *c)
{
	if (buf_len(&c->auth) > 0)
		explicit_bzero(c->auth.mem, c->auth.alloc);
	buf_deinit(&c->auth);
	strv_deinit(&c->args);
}

/* Finds the credentials. */
static int command_init(struct command *c, const struct registry_name *n,
			const struct fetch_options *o, struct err *e)
{
	const struct auth *auth = skopeo_auth_find(o->docker_auth, n);
	*c = (struct command){ .n = n, .o = o, .has_auth = auth != NULL };
	strv_init(&c->args, SKOPEO_ARGS_MAX);
	buf_init(&c->auth, SKOPEO_AUTH_MAX);
	return auth ? skopeo_auth_json(auth, n, &c->auth, e) : 0;
}

/* Tells whoever debugs what is run; there is no secret in it. */
static void note_command(const struct command *c)
{
	char line[ERR_TEXT_MAX] = "";
	size_t len = 0;
	for (size_t i = 0; i < c->args.n && len < sizeof(line); i++) {
		int n = snprintf(line + len, sizeof(line) - len, "%s%s", i > 0 ? " " : "",
				 c->args.v[i]);
		len += n > 0 ? (size_t)n : 0;
	}
	fetch_note(c->o, "running %s", line);
}

/* Runs the command. 0, SKOPEO_E_AGAIN with @e filled, -errno with @e. */
static int run_command(const struct command *c, struct skopeo_run *run, struct buf *out,
		       struct err *e)
{
	cleanup_buf struct buf log;
	buf_init(&log, SKOPEO_LOG_MAX);
	run->args = &c->args;
	run->auth = c->has_auth ? &c->auth : NULL;
	note_command(c);
	int r = skopeo_run(run, out, &log, e);
	if (r == SKOPEO_E_FAILED)
		return skopeo_failure(buf_data(&log), buf_len(&log), c->n, e);
	if (r != SKOPEO_E_STALLED)
		return r;
	err_set(e, -ETIMEDOUT, "registry \"%s\" has sent nothing for %lld seconds (try again)",
		c->n->registry, (long long)run->stall_ms / 1000);
	return SKOPEO_E_AGAIN;
}

/* Reads what @digest is, or @n if that is NULL, verified: text, length and digest of @m. */
static int inspect(const struct registry_name *n, const struct digest *digest,
		   const struct fetch_options *o, struct registry_manifest *m, struct err *e)
{
	struct skopeo_run run = { .dir_fd = -EBADF, .stall_ms = LOOK_LIMIT_MS };
	CLEANUP(command_deinit) struct command c;
	cleanup_buf struct buf out;
	buf_init(&out, OCI_JSON_MAX);
	int r = command_init(&c, n, o, e);
	if (r < 0)
		return r;
	r = skopeo_inspect_args(n, digest, o, c.has_auth, &c.args);
	if (r < 0)
		return err_sys(e, r, "arguments of skopeo");
	r = run_command(&c, &run, &out, e);
	if (r != 0)
		return e->code;
	free(TAKE_PTR(m->text));
	m->len = buf_len(&out);
	m->text = buf_take_string(&out);
	if (!m->text)
		return err_set(e, -ENOMEM, "out of memory");
	digest_of(m->text, m->len, &m->manifest);
	if (digest && !digest_equal(digest, &m->manifest))
		return err_set(e, -EBADMSG,
			       "registry \"%s\" answers with sha256:%.12s... when it is asked for "
			       "sha256:%.12s... (the image over there is damaged or forged)",
			       n->registry, m->manifest.hex, digest->hex);
	return 0;
}

/*
 * If @text is an index, 1 and *ret is which of its manifests is for this machine. If it is a
 * manifest that husk can take, 0.
 */
static int registry_choose(const char *text, size_t len, struct digest *ret, struct err *e)
{
	CLEANUP(oci_index_deinit) struct oci_index index = OCI_INDEX_INIT;
	CLEANUP(oci_manifest_deinit) struct oci_manifest manifest = OCI_MANIFEST_INIT;
	struct err not_index = ERR_INIT, not_manifest = ERR_INIT;
	const struct oci_descriptor *chosen = NULL;
	bool is_index = oci_index_parse(text, len, &index, &not_index) == 0;
	bool is_manifest = oci_manifest_parse(text, len, &manifest, &not_manifest) == 0;
	if (is_index && is_manifest)
		return err_set(e, -EBADMSG,
			       "what the registry has is index and manifest at once "
			       "(do not use this image)");
	if (is_manifest)
		return 0;
	/* An index that is bad by what it lists has the better message of the two. */
	if (!is_index)
		return err_set(e, not_manifest.code, "%s",
			       not_index.code == -E2BIG || not_index.code == -EOPNOTSUPP
				       ? not_index.text
				       : not_manifest.text);
	int r = resolve_choose(&index, "", &oci_host_platform, &chosen, e);
	if (r < 0 || !chosen)
		return r;
	*ret = chosen->digest;
	return 1;
}

static int look(const struct registry_name *n, const struct fetch_options *o,
		struct registry_manifest *m, struct err *e)
{
	struct digest next = n->digest;
	for (int level = 0; level <= RESOLVE_NESTING_MAX; level++) {
		int r = inspect(n, *next.hex ? &next : NULL, o, m, e);
		if (r < 0)
			return r;
		if (level == 0)
			m->source = m->manifest;
		r = registry_choose(m->text, m->len, &next, e);
		if (r <= 0)
			return r;
	}
	return err_set(e, -EBADMSG, "image indexes are nested more than %d deep",
		       RESOLVE_NESTING_MAX);
}

int registry_look(const struct registry_name *n, const struct fetch_options *o,
		  struct registry_manifest *ret, struct err *e)
{
	CLEANUP(registry_manifest_deinit) struct registry_manifest m = REGISTRY_MANIFEST_INIT;
	struct err own = ERR_INIT;
	e = e ? e : &own;
	int r = look(n, o, &m, e);
	if (r < 0)
		return r;
	*ret = m;
	m = REGISTRY_MANIFEST_INIT;
	return 0;
}

/* A copy under way. */
struct copy {
	const struct registry_name *n;
	const struct fetch_options *o;
	const char *what; /* for progress */
	int layout_fd;
	struct registry_blobs blobs;
	struct registry_sizes before; /* at the start of all */
	struct registry_sizes now;
	uint64_t told; /* progress never goes back, although an attempt may */
};

static uint64_t missing(const struct copy *c)
{
	return c->blobs.bytes - c->before.complete;
}

static void registry_tell(struct copy *c, bool ended)
{
	uint64_t done = c->now.complete - MIN(c->now.complete, c->before.complete) + c->now.partial;
	c->told = MAX(c->told, MIN(done, missing(c)));
	fetch_tell(c->o,
		   &(struct fetch_progress){
			   .what = c->what, .done = c->told, .total = missing(c), .ended = ended });
}

/* For skopeo_run(). */
static int copy_tick(void *ctx, uint64_t *ret_progress, struct err *e)
{
	struct copy *c = ctx;
	int r = registry_layout_measure(c->layout_fd, &c->blobs, &c->now, e);
	if (r < 0)
		return r;
	if (c->now.complete + c->now.partial > c->blobs.bytes + SLACK_BYTES)
		return err_set(e, -EFBIG,
			       "registry \"%s\" sends more than the %llu bytes that the manifest "
			       "says (do not use this image)",
			       c->n->registry, (unsigned long long)c->blobs.bytes);
	registry_tell(c, false);
	*ret_progress = c->now.complete + c->now.partial;
	return 0;
}

/* Lists and bounds what is to come, and makes the directory ready. */
static int copy_begin(struct copy *c, const struct registry_manifest *m, uint64_t bytes_max,
		      struct err *e)
{
	CLEANUP(oci_manifest_deinit) struct oci_manifest manifest = OCI_MANIFEST_INIT;
	int r = oci_manifest_parse(m->text, m->len, &manifest, e);
	if (r == 0)
		r = registry_blobs_list(&manifest, &c->blobs, e);
	if (r < 0)
		return r;
	if (c->blobs.bytes + m->len > bytes_max)
		return err_set(e, -EFBIG, "it has %llu bytes, more than the %llu allowed",
			       (unsigned long long)(c->blobs.bytes + m->len),
			       (unsigned long long)bytes_max);
	r = registry_layout_begin(c->layout_fd, &c->blobs, &m->manifest, e);
	if (r == 0)
		r = registry_layout_measure(c->layout_fd, &c->blobs, &c->before, e);
	c->now = c->before;
	return r;
}

/* One run of skopeo. Returns as run_command(). */
static int registry_attempt(struct copy *c, const struct command *command, struct err *e)
{
	struct skopeo_run run = { .dir_fd = c->layout_fd,
				  .file_max =
					  MAX(c->before.largest + SLACK_BYTES, FILE_FLOOR_BYTES),
				  .stall_ms = STALL_LIMIT_MS,
				  .tick = copy_tick,
				  .ctx = c };
	cleanup_buf struct buf out;
	buf_init(&out, SKOPEO_LOG_MAX); /* with --quiet it prints nothing */
	int r = run_command(command, &run, &out, e);
	if (r == 0)
		return 0;
	int swept = registry_layout_sweep(c->layout_fd, NULL);
	return swept < 0 && r > 0 ? swept : r;
}

static void wait_ms(int64_t ms)
{
	struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_PER_MS };
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

/* Attempts until it succeeds, or until REGISTRY_ATTEMPTS_MAX in a row brought no blob. */
static int copy_blobs(struct copy *c, const struct command *command, struct err *e)
{
	size_t n_complete = c->before.n_complete;
	int64_t wait = FIRST_WAIT_MS;
	for (int failed = 0;;) {
		int r = registry_attempt(c, command, e);
		if (r <= 0)
			return r;
		if (c->now.n_complete > n_complete) {
			failed = 0;
			wait = FIRST_WAIT_MS;
		}
		n_complete = c->now.n_complete;
		if (++failed >= REGISTRY_ATTEMPTS_MAX)
			return e->code;
		fetch_note(c->o, "%s; trying again in %lld s", e->text, (long long)wait / 1000);
		wait_ms(wait);
		wait *= 2;
	}
}

static int copy(struct copy *c, const struct registry_manifest *m, uint64_t bytes_max,
		struct err *e)
{
	CLEANUP(command_deinit) struct command command;
	int r = command_init(&command, c->n, c->o, e);
	if (r < 0)
		return r;
	r = skopeo_copy_args(c->n, &m->manifest, c->o, command.has_auth, &command.args);
	if (r < 0)
		return err_sys(e, r, "arguments of skopeo");
	r = copy_begin(c, m, bytes_max, e);
	if (r < 0)
		return r;
	r = copy_blobs(c, &command, e);
	registry_tell(c, true);
	return r < 0 ? r : registry_layout_check(c->layout_fd, &c->blobs, e);
}

int registry_copy(const struct registry_name *n, const struct registry_manifest *m, int layout_fd,
		  const struct fetch_options *o, uint64_t bytes_max, struct err *e)
{
	char what[REGISTRY_TEXT_MAX + 1];
	struct copy c = { .n = n, .o = o, .what = what, .layout_fd = layout_fd };
	struct err own = ERR_INIT;
	e = e ? e : &own;
	registry_name_text(n, what);
	return copy(&c, m, bytes_max, e);
}
