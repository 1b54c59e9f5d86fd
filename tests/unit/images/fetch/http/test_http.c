/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/http/http.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/fetch/server.h"

#define CYCLE 251 /* of the bytes that the server sends */

static struct server server;
static const struct http_pace quick = {
	.connect_ms = 10000,
	.slow_bytes = 1000,
	.slow_s = 2,
	.pause_ms = 1,
};

/* One download and what came of it. */
struct get {
	int fd;
	char url[HTTP_URL_MAX + 64];
	struct http_request q;
	struct fetch_options o;
	struct http_result result;
	struct err e;
	struct http_validator begun; /* what the last begin was told */
	unsigned n_begun;
	unsigned n_told, n_ended, n_failed;
	uint64_t done, total;
	char notes[8192];
};

static int hear_begin(void *ctx, const struct http_validator *v, struct err *e)
{
	struct get *g = ctx;
	(void)e;
	g->begun = *v;
	g->n_begun++;
	return 0;
}

static void hear_progress(void *ctx, const struct fetch_progress *p)
{
	struct get *g = ctx;
	assert_null(strchr(p->what, '?') && !strstr(p->what, "?...") ? p->what : NULL);
	g->n_told++;
	g->n_ended += p->ended;
	g->n_failed += p->failed;
	g->done = p->done;
	g->total = p->total;
}

static void hear_note(void *ctx, const char *text)
{
	struct get *g = ctx;
	size_t n = strlen(g->notes);
	snprintf(g->notes + n, sizeof(g->notes) - n, "%s\n", text);
}

static void get_init(struct get *g, void **state)
{
	memset(g, 0, sizeof(*g));
	g->fd = openat(fixture_dir(state), "body", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(g->fd >= 0);
	g->q = (struct http_request){
		.size_max = 64 * 1024 * 1024,
		.fd = g->fd,
		.begin = hear_begin,
		.ctx = g,
		.pace = &quick,
	};
	g->o = (struct fetch_options){ .progress = hear_progress, .note = hear_note, .ctx = g };
}

static void get_deinit(struct get *g)
{
	fd_close(g->fd);
}

static int run_url(struct get *g, const char *url)
{
	snprintf(g->url, sizeof(g->url), "%s", url);
	g->q.url = g->url;
	g->e = ERR_INIT;
	g->n_begun = g->n_told = g->n_ended = g->n_failed = 0;
	g->notes[0] = '\0';
	int r = http_get(&g->q, &g->o, &g->result, &g->e);
	assert_int_equal(g->e.code, r);
	assert_int_equal(r < 0, g->e.text[0] != '\0');
	assert_int_equal(g->n_failed, r < 0 && g->n_told > 0 ? 1 : 0);
	return r;
}

/* Downloads PATH of the server without TLS. */
static int run(struct get *g, const char *path)
{
	char url[HTTP_URL_MAX + 64];
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/%s", server.http, path);
	return run_url(g, url);
}

static int run_tls(struct get *g, unsigned port, const char *path)
{
	char url[HTTP_URL_MAX + 64];
	snprintf(url, sizeof(url), "https://localhost:%u/%s", port, path);
	return run_url(g, url);
}

/* The file has @size bytes of version @v, whatever its offset. */
static void assert_body(struct get *g, size_t size, unsigned v)
{
	static unsigned char mem[8 * 1024 * 1024];
	struct stat st;
	assert_int_equal(fstat(g->fd, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_true(size <= sizeof(mem));
	assert_int_equal(pread(g->fd, mem, size, 0), size);
	for (size_t i = 0; i < size; i++)
		if (mem[i] != (i + v) % CYCLE)
			fail_msg("byte %zu is %d", i, mem[i]);
}

/* The file as text. */
static const char *text_of(struct get *g)
{
	static char text[4096];
	ssize_t n = pread(g->fd, text, sizeof(text) - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

static void assert_error(struct get *g, const char *path, const char *text)
{
	assert_true(run(g, path) < 0);
	if (!strstr(g->e.text, text))
		fail_msg("\"%s\" is not in \"%s\"", text, g->e.text);
}

/* Fills the file with @size bytes of version @v. */
static void put_body(struct get *g, size_t size, unsigned v)
{
	unsigned char mem[1024];
	assert_true(size <= sizeof(mem));
	for (size_t i = 0; i < size; i++)
		mem[i] = (unsigned char)((i + v) % CYCLE);
	assert_int_equal(pwrite(g->fd, mem, size, 0), size);
}

static unsigned threads(void)
{
	unsigned n = 0;
	DIR *dir = opendir("/proc/self/task");
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void test_whole(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	put_body(&g, 10, 7);
	assert_int_equal(run(&g, "file/whole?size=3000000&etag=\"a\"&lm=yesterday&"
				 "cc=max-age%3D60"),
			 0);
	assert_body(&g, 3000000, 0);
	assert_int_equal(g.result.status, 200);
	assert_int_equal(g.result.size, 3000000);
	assert_false(g.result.resumed);
	assert_false(g.result.not_modified);
	assert_string_equal(g.result.validator.etag, "\"a\"");
	assert_string_equal(g.result.validator.last_modified, "yesterday");
	assert_int_equal(g.result.validator.max_age, 60);
	assert_string_equal(g.result.final_url, g.q.url);
	assert_int_equal(g.n_begun, 1);
	assert_string_equal(g.begun.etag, "\"a\"");
	assert_int_equal(g.n_ended, 1);
	assert_int_equal(g.done, 3000000);
	assert_int_equal(g.total, 3000000);
	assert_int_equal(server_count(&server, "file/whole", "Accept-Encoding=identity"), 1);
	assert_int_equal(server_count(&server, "file/whole", "Range"), 0);
	assert_int_equal(server_count(&server, "file/whole", "User-Agent=husk/"), 1);
}

static void test_empty_and_unknown_length(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	assert_int_equal(run(&g, "file/empty?size=0"), 0);
	assert_body(&g, 0, 0);
	g.q.accept = "application/aci";
	assert_int_equal(run(&g, "file/chunked?size=200000&chunked=&etag=\"a\""), 0);
	assert_body(&g, 200000, 0);
	assert_string_equal(g.result.validator.etag, "\"a\""); /* not the trailer's */
	assert_int_equal(g.total, 0);
	assert_int_equal(server_count(&server, "file/chunked", "Accept=application/aci"), 1);
	assert_int_equal(run(&g, "file/nolength?size=200000&nolength="), 0);
	assert_body(&g, 200000, 0);
}

static void test_not_modified(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	struct http_validator have = { .etag = "\"a\"", .last_modified = "then", .max_age = -1 };
	put_body(&g, 10, 7);
	g.q.have = &have;
	assert_int_equal(run(&g, "file/same?etag=\"a\"&cc=max-age%3D5"), 0);
	assert_int_equal(g.result.status, 304);
	assert_true(g.result.not_modified);
	assert_int_equal(g.result.validator.max_age, 5);
	assert_int_equal(g.n_begun + g.n_told, 0);
	assert_body(&g, 10, 7);
	assert_int_equal(run(&g, "file/other?etag=\"b\""), 0);
	assert_false(g.result.not_modified);
	assert_string_equal(g.result.validator.etag, "\"b\"");
	assert_body(&g, 1000, 0);
	have.etag[0] = '\0';
	assert_int_equal(run(&g, "file/date?lm=then"), 0);
	assert_true(g.result.not_modified);
	/* Nobody asked. */
	g.q.have = NULL;
	assert_error(&g, "status/304/x", "bad HTTP status code: 304");
}

static void test_resume(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	struct http_validator have = { .etag = "\"a\"", .max_age = -1 };
	g.q.have = &have;
	g.q.resume_at = 400;
	put_body(&g, 500, 0); /* 100 bytes more than we vouch for */
	assert_int_equal(run(&g, "file/resume?etag=\"a\""), 0);
	assert_int_equal(g.result.status, 206);
	assert_true(g.result.resumed);
	assert_int_equal(g.result.size, 1000);
	assert_string_equal(g.result.validator.etag, "\"a\"");
	assert_int_equal(g.n_begun, 0);
	assert_body(&g, 1000, 0);
	assert_int_equal(server_count(&server, "file/resume", "Range=bytes=400- | If-Range=\"a\""),
			 1);
	assert_int_equal(server_count(&server, "file/resume", "If-None-Match"), 0);
	/* By date. */
	have = (struct http_validator){ .etag = "W/\"a\"", .last_modified = "then", .max_age = -1 };
	g.q.resume_at = 999;
	assert_int_equal(run(&g, "file/resume-date?etag=W/\"a\"&lm=then"), 0);
	assert_true(g.result.resumed);
	assert_body(&g, 1000, 0);
	assert_int_equal(server_count(&server, "resume-date", "If-Range=then"), 1);
}

static void test_resume_starts_over(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	struct http_validator have = { .etag = "\"old\"", .max_age = -1 };
	g.q.have = &have;
	g.q.resume_at = 500;
	static const char *const paths[] = {
		"file/over1?etag=\"a\"",                                   /* it changed */
		"file/over2?etag=\"old\"&norange=",                        /* no ranges here */
		"file/over3?etag=\"old\"&times=1&cr=bytes%20499-999/1000", /* lies */
		"file/over4?etag=\"old\"&times=1&cr=bytes%20500-1099/1100",
		"file/over5?etag=\"old\"&times=1&cr=pages%20500-999/1000",
		"file/over6?etag=\"old\"&times=1&cr=bytes%20500-1999/1000",
		"file/over7?etag=\"old\"&times=1&etag206=\"new\"",
		"file/over8?etag=\"old\"&code416=",
		"file/over9?etag=\"old\"&size=500", /* it was all there: 416 */
	};
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		assert_int_equal(ftruncate(g.fd, 0), 0);
		put_body(&g, 500, 9);
		assert_int_equal(run(&g, paths[i]), 0);
		assert_false(g.result.resumed);
		assert_int_equal(g.n_begun, 1);
		assert_body(&g, strstr(paths[i], "size=500") ? 500 : 1000, 0);
	}
	/* What cannot be compared is not continued. */
	have = (struct http_validator){ .etag = "W/\"a\"", .max_age = -1 };
	assert_int_equal(run(&g, "file/over10?etag=W/\"a\""), 0);
	assert_int_equal(server_count(&server, "file/over10", "Range="), 0);
	assert_body(&g, 1000, 0);
}

static void test_unasked_part(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	assert_error(&g, "status/206/x", "a part that nobody asked for");
}

static void test_broken_connection(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	assert_int_equal(run(&g, "file/break?size=500000&etag=\"a\"&break=100000&times=4"), 0);
	assert_body(&g, 500000, 0);
	assert_int_equal(server_count(&server, "file/break", "Range="), 4);
	assert_int_equal(g.n_begun, 1);
	assert_false(g.result.resumed);
	assert_non_null(strstr(g.notes, "going on at byte 400000"));
	/* The same without a length at first. */
	assert_int_equal(run(&g, "file/cbreak?size=50000&chunked=&etag=\"a\"&break=20000&times=2"),
			 0);
	assert_body(&g, 50000, 0);
	/* The file changes between the pieces. */
	assert_int_equal(run(&g, "file/change?size=5000&etag=\"a\"&break=2000&times=1&change=2"),
			 0);
	assert_body(&g, 5000, 1);
	assert_int_equal(g.n_begun, 2);
	assert_string_equal(g.result.validator.etag, "\"ax\"");
	/* Its size changes, says a piece. */
	assert_int_equal(run(&g, "file/total?size=5000&etag=\"a\"&break=2000&times=2&"
				 "cr=bytes%202000-4999/6000"),
			 0);
	assert_body(&g, 5000, 0);
	assert_int_equal(g.n_begun, 2);
	/* A server that gives small pieces. */
	assert_int_equal(run(&g, "file/pieces?size=5000&etag=\"a\"&break=1000&times=1&piece=1000"),
			 0);
	assert_body(&g, 5000, 0);
	assert_int_equal(server_count(&server, "file/pieces", "Range="), 4);
}

/*
 * What a disk or a network file system may do at any time: take some bytes only, or be interrupted.
 */
static bool odd_writes;
static size_t n_odd_writes;

/* check-style allows prototype: libc's own, instead of which this program has it */
ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
	if (odd_writes && ++n_odd_writes % 3 == 0) {
		errno = EINTR;
		return -1;
	}
	if (odd_writes && len > 7)
		len = 7;
	return syscall(SYS_pwrite64, fd, data, len, offset);
}

static void test_odd_writes(void **state)
{
	CLEANUP(get_deinit) struct get g;
	char url[HTTP_URL_MAX];
	get_init(&g, state);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/file/odd?size=5000", server.http);
	g.q.url = url;
	odd_writes = true;
	int r = http_get_here(&g.q, &g.o, &g.result,
			      &g.e); /* not the module, whose pwrite() is libc's */
	odd_writes = false;
	assert_int_equal(r, 0);
	assert_true(n_odd_writes > 5000 / 7);
	assert_body(&g, 5000, 0);
}

static void test_broken_for_good(void **state)
{
	CLEANUP(get_deinit) struct get g;
	char text[64];
	get_init(&g, state);
	/* Without a version to continue there is one attempt. */
	assert_error(&g, "file/bad1?size=5000&break=2000", "the connection broke");
	assert_int_equal(server_count(&server, "GET | /file/bad1", ""), 1);
	assert_null(strstr(g.e.text, "continues"));
	/* As often as allowed, each time with some bytes more. */
	assert_error(&g, "file/bad2?size=5000&etag=\"a\"&break=10",
		     "; 210 bytes are there: a repeated fetch continues");
	assert_int_equal(server_count(&server, "file/bad2", ""), 1 + HTTP_RESUMES_MAX);
	assert_body(&g, 210, 0);
	/* No progress. */
	assert_error(&g, "file/bad3?size=5000&etag=\"a\"&break=0", "the connection broke");
	assert_int_equal(server_count(&server, "file/bad3", ""), 1);
	assert_error(&g,
		     "file/bad4?size=5000&etag=\"a\"&break=70&norange=", "the connection broke");
	assert_int_equal(server_count(&server, "file/bad4", ""), 2 + HTTP_RETRIES_MAX);
	snprintf(text, sizeof(text), "\"http://127.0.0.1:%u/silent\": ", server.http);
	assert_error(&g, "silent", text);
}

/* What GET does not say about the version, HEAD may; once, and only if it is as long. */
static void test_resume_by_head(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	assert_int_equal(run(&g, "file/head?size=5000&break=1000&times=1&headetag=\"h\""), 0);
	assert_body(&g, 5000, 0);
	assert_int_equal(server_count(&server, "HEAD | /file/head", ""), 1);
	assert_int_equal(server_count(&server, "file/head", "If-Range=\"h\""), 1);
	assert_string_equal(g.result.validator.etag, "\"h\"");
	assert_int_equal(g.n_begun, 2); /* the version was noted when it was known */
	assert_error(&g, "file/longer?size=5000&break=1000&headetag=\"h\"&headcl=5001",
		     "the connection broke");
	assert_int_equal(server_count(&server, "file/longer", ""), 2);
	assert_error(&g, "file/weak?size=5000&break=1000&headetag=W/\"h\"", "the connection broke");
	assert_error(&g, "file/none?size=5000&break=1000", "the connection broke");
	assert_int_equal(server_count(&server, "HEAD | /file/none", ""), 1);
	/* Whoever says it at once is not asked. */
	assert_int_equal(
		run(&g, "file/said?size=5000&break=1000&times=1&etag=\"a\"&headetag=\"h\""), 0);
	assert_int_equal(server_count(&server, "HEAD | /file/said", ""), 0);
}

static void test_resumes_limit(void **state)
{
	CLEANUP(get_deinit) struct get g;
	char path[128];
	get_init(&g, state);
	snprintf(path, sizeof(path), "file/limit?size=5000&etag=\"a\"&break=10&times=%d",
		 HTTP_RESUMES_MAX);
	assert_int_equal(run(&g, path), 0);
	assert_body(&g, 5000, 0);
}

static void test_restarts_limit(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	/* Each time a whole body that breaks, then a piece of something else. */
	assert_error(&g, "file/patch?size=5000&etag=\"a\"&break=500&etag206=\"b\"",
		     "do not belong together");
	assert_int_equal(server_count(&server, "file/patch", ""), 2 * (HTTP_RESTARTS_MAX + 1));
}

static void test_liars(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	assert_error(&g, "file/short?size=1000&cl=2000", "the connection broke");
	/* What comes behind the announced end is not part of the body. */
	assert_int_equal(run(&g, "file/long?size=1000&more=500"), 0);
	assert_body(&g, 1000, 0);
	struct http_validator have = { .etag = "\"a\"", .max_age = -1 };
	assert_int_equal(run(&g, "file/part?size=500"), 0);
	g.q.have = &have;
	g.q.resume_at = 500;
	assert_error(&g, "file/long2?size=1000&etag=\"a\"&chunked=&more=500",
		     "more bytes than it announced");
	g.q.have = NULL;
	g.q.resume_at = 0;
	char path[64];
	snprintf(path, sizeof(path), "header?size=%zu", HTTP_HEADERS_MAX);
	assert_int_equal(run(&g, path), 0);
	snprintf(path, sizeof(path), "header?size=%zu", HTTP_HEADERS_MAX + 1);
	assert_error(&g, path, "bytes of header");
	assert_error(&g, "headers", "bytes of header");
	assert_error(&g, "interim", "bytes of header");
	assert_error(&g, "garbage", "is not HTTP");
}

static void test_size_max(void **state)
{
	CLEANUP(get_deinit) struct get g;
	struct stat st;
	get_init(&g, state);
	g.q.size_max = 100000;
	assert_int_equal(run(&g, "file/fits?size=100000"), 0);
	assert_int_equal(run(&g, "file/fits?size=100000&chunked="), 0);
	assert_int_equal(run(&g, "file/large?size=100001"), -EFBIG);
	assert_int_equal(g.n_begun, 0);
	assert_int_equal(run(&g, "file/large?size=100001&chunked=&etag=\"a\""), -EFBIG);
	assert_non_null(strstr(g.e.text, "larger than 100000 bytes"));
	assert_null(strstr(g.e.text, "continues"));
	assert_int_equal(run(&g, "endless"), -EFBIG);
	assert_int_equal(fstat(g.fd, &st), 0);
	assert_true(st.st_size <= 100000);
	struct http_validator have = { .etag = "\"a\"", .max_age = -1 };
	g.q.have = &have;
	g.q.resume_at = 100;
	assert_int_equal(run(&g, "file/large?size=100001&etag=\"a\""), -EFBIG);
	g.q.size_max = 0;
	g.q.have = NULL;
	assert_int_equal(run(&g, "file/nothing?size=0&chunked="), 0);
	assert_int_equal(run(&g, "file/nothing?size=1"), -EFBIG);
}

static void test_cut(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	g.q.size_max = 1000;
	g.q.cut = true;
	for (size_t size = 999; size <= 1001; size++) {
		char path[64];
		snprintf(path, sizeof(path), "file/cut?size=%zu", size);
		assert_int_equal(run(&g, path), 0);
		assert_body(&g, MIN(size, (size_t)1000), 0);
		snprintf(path, sizeof(path), "file/cut?chunked=&size=%zu", size);
		assert_int_equal(run(&g, path), 0);
		assert_body(&g, MIN(size, (size_t)1000), 0);
	}
	assert_int_equal(run(&g, "endless"), 0);
	assert_body(&g, 1000, 0);
	/* What breaks before that begins anew. */
	assert_int_equal(run(&g, "file/cut-break?size=2000&etag=\"a\"&break=500&times=1"), 0);
	assert_body(&g, 1000, 0);
}

static void test_slow(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	assert_error(&g, "drip?etag=\"a\"", "less than 1000 bytes a second for 2 seconds");
	assert_int_equal(server_count(&server, "/drip", "Range="), 0);
	assert_error(&g, "hang", "less than 1000 bytes a second for 2 seconds");
	assert_int_equal(g.e.code, -ETIMEDOUT);
}

static void test_status(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	put_body(&g, 10, 7);
	assert_int_equal(run(&g, "status/202/x"), 0);
	assert_int_equal(g.result.status, 202);
	assert_int_equal(g.result.size, 0);
	assert_error(&g, "status/404/x", "bad HTTP status code: 404 (not found on the server)");
	assert_int_equal(g.e.code, -ENOENT);
	assert_error(&g, "status/401/x?secret=1", "put those for \"127.0.0.1:");
	assert_null(strstr(g.e.text, "secret"));
	assert_non_null(strstr(g.e.text, "auth.d"));
	assert_error(&g, "status/403/x",
		     "bad HTTP status code: 403 (the server wants credentials: put those");
	assert_error(&g, "status/418/x", "bad HTTP status code: 418");
	assert_error(&g, "status/204/x", "bad HTTP status code: 204");
	assert_error(&g, "status/416/x", "bad HTTP status code: 416");
	assert_int_equal(server_count(&server, "status/4", ""), 5);
	assert_body(&g, 10, 7);
}

static void test_server_errors(void **state)
{
	CLEANUP(get_deinit) struct get g;
	char path[64];
	get_init(&g, state);
	snprintf(path, sizeof(path), "status/503/y?times=%d", HTTP_RETRIES_MAX);
	assert_int_equal(run(&g, path), 0);
	assert_body(&g, 1000, 0);
	snprintf(path, sizeof(path), "status/500/y?times=%d", HTTP_RETRIES_MAX + 1);
	assert_error(&g, path, "bad HTTP status code: 500 (try again later)");
	assert_int_equal(server_count(&server, "status/500/y", ""), 1 + HTTP_RETRIES_MAX);
	/* Who asks for more patience than we have gets none. */
	assert_error(&g, "status/429/y?after=11", "bad HTTP status code: 429");
	assert_int_equal(server_count(&server, "status/429/y", ""), 1);
	assert_int_equal(run(&g, "status/429/z?after=1&times=1"), 0);
	/* What the file has survives a server that is ill. */
	struct http_validator have = { .etag = "\"a\"", .max_age = -1 };
	g.q.have = &have;
	g.q.resume_at = 500;
	assert_error(&g, "status/502/y?etag=\"a\"", "500 bytes are there: a repeated fetch");
	assert_int_equal(run(&g, "status/502/z?etag=\"a\"&times=1"), 0);
	assert_true(g.result.resumed);
	assert_body(&g, 1000, 0);
}

static void test_redirects(void **state)
{
	CLEANUP(get_deinit) struct get g;
	char path[256], want[256];
	get_init(&g, state);
	snprintf(path, sizeof(path), "redirect/%d?size=77", HTTP_REDIRECTS_MAX);
	assert_int_equal(run(&g, path), 0);
	assert_body(&g, 77, 0);
	snprintf(want, sizeof(want), "http://127.0.0.1:%u/redirect/0?size=77", server.http);
	assert_string_equal(g.result.final_url, want);
	snprintf(path, sizeof(path), "redirect/%d", HTTP_REDIRECTS_MAX + 1);
	assert_error(&g, path, "more than 10 redirections");
	assert_error(&g, "status/302/x", "redirects (status 302) to nowhere");
	static const char *const places[] = { "file:///etc/passwd", "FTP://127.0.0.1/x",
					      "gopher://127.0.0.1/x", "scp://127.0.0.1/x" };
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "to?url=%s", places[i]);
		assert_error(&g, path, "is not http or https");
	}
	assert_error(&g, "to?url=http://", "redirects to something that is not a URL");
	assert_error(&g, "to?url=http://127.0.0.1:1/x%3Ftoken%3D5",
		     "redirected to \"http://127.0.0.1:1/x?...\": connection refused");
	assert_null(strstr(g.e.text, "token"));
}

static void test_redirect_and_tls(void **state)
{
	CLEANUP(get_deinit) struct get g;
	char path[256];
	get_init(&g, state);
	setenv("SSL_CERT_FILE", server.ca, 1);
	snprintf(path, sizeof(path), "to?url=https://localhost:%u/file/up", server.tls);
	assert_int_equal(run(&g, path), 0);
	assert_body(&g, 1000, 0);
	snprintf(path, sizeof(path), "to?url=http://127.0.0.1:%u/file/down", server.http);
	assert_true(run_tls(&g, server.tls, path) < 0);
	assert_non_null(
		strstr(g.e.text, "which has no TLS (--insecure-options=http accepts that)"));
	g.o.insecure_tls = true;
	assert_true(run_tls(&g, server.tls, path) < 0);
	assert_int_equal(server_count(&server, "GET | /file/down", ""), 0);
	g.o.insecure_http = true;
	assert_int_equal(run_tls(&g, server.tls, path), 0);
	assert_body(&g, 1000, 0);
	unsetenv("SSL_CERT_FILE");
}

static void test_tls(void **state)
{
	CLEANUP(get_deinit) struct get g;
	const unsigned bad[] = { server.expired, server.other, server.self };
	get_init(&g, state);
	assert_true(run_tls(&g, server.tls, "file/tls") < 0);
	assert_non_null(strstr(g.e.text, "TLS: "));
	assert_non_null(strstr(g.e.text, "SSL_CERT_FILE"));
	setenv("SSL_CERT_FILE", server.ca, 1);
	assert_int_equal(run_tls(&g, server.tls, "file/tls?size=200000"), 0);
	assert_body(&g, 200000, 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		g.o.insecure_tls = false;
		assert_int_equal(run_tls(&g, bad[i], "file/bad-tls"), -EACCES);
		assert_non_null(strstr(g.e.text, "TLS: "));
		g.o.insecure_tls = true;
		assert_int_equal(run_tls(&g, bad[i], "file/accepted"), 0);
	}
	assert_int_equal(server_count(&server, "bad-tls", ""), 0);
	g.o.insecure_tls = false;
	/* Somebody on the way ends the connection: without a length only TLS can tell. */
	assert_true(run_tls(&g, server.tls, "file/cut-off?nolength=&size=5000&break=500") < 0);
	assert_non_null(strstr(g.e.text, "the connection broke"));
	assert_int_equal(run_tls(&g, server.tls,
				 "file/tls-break?size=500000&etag=\"a\"&"
				 "break=100000&times=2"),
			 0);
	assert_body(&g, 500000, 0);
	assert_true(run_tls(&g, server.http, "file/x") < 0);
	assert_non_null(strstr(g.e.text, "does the server speak TLS"));
	setenv("SSL_CERT_FILE", "/nonexistent", 1);
	assert_true(run_tls(&g, server.tls, "file/tls") < 0);
	assert_non_null(strstr(g.e.text, "TLS: "));
	unsetenv("SSL_CERT_FILE");
}

/* Credentials of one host. */
static void set_auth(struct get *g, struct auths *list, struct auth *a)
{
	*list = (struct auths){ .v = a, .n = 1 };
	g->o.auth = list;
}

static void test_basic_and_bearer(void **state)
{
	CLEANUP(get_deinit) struct get g;
	char host[32];
	struct auths list;
	struct auth a = { .host = host, .type = AUTH_BASIC };
	get_init(&g, state);
	set_auth(&g, &list, &a);
	snprintf(host, sizeof(host), "127.0.0.1:%u", server.http);
	a.user = (char[]){ "me" };
	a.password = (char[]){ "p:w" };
	assert_int_equal(run(&g, "auth"), 0);
	assert_string_equal(text_of(&g), "Basic bWU6cDp3");
	assert_error(
		&g, "auth?want=x",
		"bad HTTP status code: 401 (the server refuses the credentials for \"127.0.0.1:");
	a.type = AUTH_OAUTH;
	a.token = (char[]){ "tok" };
	assert_int_equal(run(&g, "auth"), 0);
	assert_string_equal(text_of(&g), "Bearer tok");
	/* The port is part of it, unless it is the usual one. */
	snprintf(host, sizeof(host), "127.0.0.1");
	assert_error(&g, "auth", "bad HTTP status code: 401 (the server wants credentials");
}

/* Credentials go to their own host, also behind redirections, and to no other. */
static void test_credentials_stay(void **state)
{
	CLEANUP(get_deinit) struct get g;
	char host[32], path[256];
	struct auths list;
	struct auth a = { .host = host, .type = AUTH_BASIC };
	get_init(&g, state);
	set_auth(&g, &list, &a);
	a.user = (char[]){ "me" };
	a.password = (char[]){ "pw" };
	snprintf(host, sizeof(host), "127.0.0.1:%u", server.http);
	snprintf(path, sizeof(path), "to?url=http://localhost:%u/echo", server.http);
	assert_int_equal(run(&g, path), 0);
	assert_null(strstr(text_of(&g), "Authorization"));
	assert_int_equal(run(&g, "to?url=/auth"), 0);
	assert_non_null(strstr(text_of(&g), "Basic"));
	/* A redirection brings no user along. */
	snprintf(path, sizeof(path), "to?url=http://x:y@localhost:%u/echo", server.http);
	assert_int_equal(run(&g, path), 0);
	assert_null(strstr(text_of(&g), "Authorization"));
	/* To whom credentials belong, but without TLS and not named by the user. */
	snprintf(host, sizeof(host), "localhost:%u", server.http);
	snprintf(path, sizeof(path), "to?url=http://localhost:%u/echo", server.http);
	assert_int_equal(run(&g, path), 0);
	assert_null(strstr(text_of(&g), "Authorization"));
	g.o.insecure_http = true;
	assert_int_equal(run(&g, path), 0);
	assert_non_null(strstr(text_of(&g), "Authorization: Basic"));
	/* From one with TLS to another with TLS. */
	setenv("SSL_CERT_FILE", server.ca, 1);
	g.o.insecure_http = false;
	snprintf(host, sizeof(host), "127.0.0.1:%u", server.tls);
	snprintf(path, sizeof(path), "to?url=https://127.0.0.1:%u/auth", server.tls);
	assert_int_equal(run_tls(&g, server.tls, path), 0);
	assert_non_null(strstr(text_of(&g), "Basic"));
	unsetenv("SSL_CERT_FILE");
}

static void test_aws(void **state)
{
	CLEANUP(get_deinit) struct get g;
	char host[32];
	struct auths list;
	struct auth a = { .host = host, .type = AUTH_AWS };
	get_init(&g, state);
	set_auth(&g, &list, &a);
	snprintf(host, sizeof(host), "127.0.0.1:%u", server.http);
	a.access_key_id = (char[]){ "AKID" };
	a.secret_access_key = (char[]){ "aws-secret" };
	assert_int_equal(run(&g, "aws/bucket/image.aci"), 0);
	assert_int_equal(memcmp(text_of(&g), "AKID/20", 7), 0);
	assert_non_null(strstr(text_of(&g), "/us-east-1/s3/aws4_request"));
	a.aws_region = (char[]){ "eu-west-3" };
	assert_int_equal(run(&g, "aws/bucket/image.aci"), 0);
	assert_non_null(strstr(text_of(&g), "/eu-west-3/s3/aws4_request"));
	/* A signature covers conditions, too. */
	struct http_validator have = { .etag = "\"a\"", .max_age = -1 };
	g.q.have = &have;
	g.q.resume_at = 10;
	assert_int_equal(run(&g, "aws/bucket/image.aci"), 0);
	assert_int_equal(server_count(&server, "/aws/", "If-Range"), 1);
	g.q.have = NULL;
	a.secret_access_key = (char[]){ "wrong" };
	assert_error(&g, "aws/bucket/image.aci", "refuses the credentials");
	char region[HTTP_REGION_MAX + 2];
	memset(region, 'r', sizeof(region));
	region[HTTP_REGION_MAX + 1] = '\0';
	a.aws_region = region;
	assert_error(&g, "aws/bucket/image.aci", "cannot prepare the request");
}

static void test_bad_urls(void **state)
{
	CLEANUP(get_deinit) struct get g;
	static char url[HTTP_URL_MAX + 2];
	get_init(&g, state);
	assert_int_equal(run_url(&g, "example.com/x"), -EINVAL);
	assert_non_null(strstr(g.e.text, "not a URL (write it as https://HOST/PATH)"));
	assert_int_equal(run_url(&g, "file:///etc/passwd"), -EINVAL);
	assert_int_equal(run_url(&g, "ftp://user:secret@127.0.0.1/x?y"), -EINVAL);
	assert_string_equal(g.e.text,
			    "\"ftp://127.0.0.1/x?...\": scheme \"ftp\" is not http or https");
	assert_int_equal(run_url(&g, ""), -EINVAL);
	int n = snprintf(url, sizeof(url), "http://127.0.0.1:%u/file/long?etag=", server.http);
	memset(url + n, 'x', sizeof(url) - 1 - (size_t)n);
	assert_int_equal(run_url(&g, url), -EINVAL);
	assert_non_null(strstr(g.e.text, "URL of more than 8191 bytes"));
	url[HTTP_URL_MAX] = '\0';
	assert_int_equal(run_url(&g, url), 0);
}

static void test_no_connection(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	assert_true(run_url(&g, "http://127.0.0.1:1/x") < 0);
	assert_non_null(strstr(g.e.text, "connection refused"));
	assert_true(run_url(&g, "http://no-such-host.invalid/x") < 0);
	assert_non_null(strstr(g.e.text, "host \"no-such-host.invalid\" not found"));
	assert_int_equal(threads(), 1);
}

static void test_proxy(void **state)
{
	CLEANUP(get_deinit) struct get g;
	char proxy[64];
	get_init(&g, state);
	snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%u", server.http);
	setenv("http_proxy", proxy, 1);
	setenv("https_proxy", proxy, 1);
	setenv("SSL_CERT_FILE", server.ca, 1);
	server_page(&server, "www.example.com", "a", "a page");
	assert_int_equal(run_url(&g, "http://www.example.com/a"), 0);
	assert_string_equal(text_of(&g), "a page");
	assert_int_equal(run_url(&g, "https://www.example.com/a"), 0);
	assert_string_equal(text_of(&g), "a page");
	assert_true(run_url(&g, "https://nowhere.example.com/a") < 0);
	unsetenv("http_proxy");
	unsetenv("https_proxy");
	unsetenv("SSL_CERT_FILE");
}

static void test_ipv6(void **state)
{
	CLEANUP(get_deinit) struct get g;
	char url[64];
	get_init(&g, state);
	if (server.http6 == 0) {
		print_message("no IPv6 here\n");
		skip();
	}
	snprintf(url, sizeof(url), "http://[::1]:%u/file/six", server.http6);
	assert_int_equal(run_url(&g, url), 0);
	assert_body(&g, 1000, 0);
}

/* A file that cannot grow beyond a size is a disk that is full. */
static void test_write_error(void **state)
{
	CLEANUP(get_deinit) struct get g;
	struct rlimit old, small;
	get_init(&g, state);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_IGN);
	small = (struct rlimit){ 100000, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	int r = run(&g, "file/full?size=1000000&etag=\"a\"");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(r, -EFBIG);
	assert_non_null(strstr(g.e.text, "cannot write what is downloaded: File too large"));
	struct get full = g;
	full.fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	full.q.fd = full.fd;
	assert_int_equal(run(&full, "file/full"), -EINVAL);
	fd_close(full.fd);
}

static int refuse_to_begin(void *ctx, const struct http_validator *v, struct err *e)
{
	(void)ctx;
	(void)v;
	return err_set(e, -ENOSPC, "no");
}

static void test_begin_fails(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	g.q.begin = refuse_to_begin;
	assert_int_equal(run(&g, "file/begin"), -ENOSPC);
	assert_non_null(strstr(g.e.text, ": no"));
}

static void test_threads(void **state)
{
	CLEANUP(get_deinit) struct get g;
	char url[64];
	get_init(&g, state);
	snprintf(url, sizeof(url), "http://localhost:%u/file/thread", server.http);
	assert_int_equal(threads(), 1);
	assert_int_equal(run_url(&g, url), 0);
	assert_int_equal(threads(), 1);
}

static void test_error_is_optional(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	g.q.url = "http://127.0.0.1:1/x";
	assert_true(http_get(&g.q, &g.o, &g.result, NULL) < 0);
}

static void test_pace_of_progress(void **state)
{
	CLEANUP(get_deinit) struct get g;
	get_init(&g, state);
	int64_t start = clock_monotonic_ns();
	assert_int_equal(run(&g, "file/much?size=8000000"), 0);
	int64_t tenths = (clock_monotonic_ns() - start) / (100 * NS_PER_MS);
	assert_true(g.n_told <= tenths + 3);
}

static int get_without_memory(void *ctx)
{
	struct get *g = ctx;
	return http_get(&g->q, &g->o, &g->result, &g->e);
}

static void test_memory_failure(void **state)
{
	CLEANUP(get_deinit) struct get g;
	char url[64];
	get_init(&g, state);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/file/memory", server.http);
	assert_int_equal(run_url(&g, url), 0);
	for_each_failing_alloc_lenient(get_without_memory, &g);
}

static int start(void **state)
{
	(void)state;
	unsetenv("SSL_CERT_FILE");
	unsetenv("SSL_CERT_DIR");
	setenv("no_proxy", "localhost,127.0.0.1,::1", 1);
	return server_start(&server);
}

static int stop(void **state)
{
	(void)state;
	return server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_whole),
		fixture_test(test_empty_and_unknown_length),
		fixture_test(test_not_modified),
		fixture_test(test_resume),
		fixture_test(test_resume_starts_over),
		fixture_test(test_unasked_part),
		fixture_test(test_broken_connection),
		fixture_test(test_odd_writes),
		fixture_test(test_broken_for_good),
		fixture_test(test_resume_by_head),
		fixture_test(test_resumes_limit),
		fixture_test(test_restarts_limit),
		fixture_test(test_liars),
		fixture_test(test_size_max),
		fixture_test(test_cut),
		fixture_test(test_slow),
		fixture_test(test_status),
		fixture_test(test_server_errors),
		fixture_test(test_redirects),
		fixture_test(test_redirect_and_tls),
		fixture_test(test_tls),
		fixture_test(test_basic_and_bearer),
		fixture_test(test_credentials_stay),
		fixture_test(test_aws),
		fixture_test(test_bad_urls),
		fixture_test(test_no_connection),
		fixture_test(test_proxy),
		fixture_test(test_ipv6),
		fixture_test(test_write_error),
		fixture_test(test_begin_fails),
		fixture_test(test_threads),
		fixture_test(test_error_is_optional),
		fixture_test(test_pace_of_progress),
		fixture_test(test_memory_failure),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
