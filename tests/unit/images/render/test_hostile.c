/* SPDX-License-Identifier: Apache-2.0 */
/* check-style allows mirror: this is about all modules of the directory together. */
/*
 * Tars that no sane program makes: each is refused with an error that names the cause, or gives the
 * harmless tree that is written here. What a limit of one module is about is tested there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/render/confine.h"
#include "images/render/render.h"
#include "lib/base/buf.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/layers.h"
#include "tests/unit/images/render/listing.h"

#define BLOCK   ((size_t)512)
#define TAR_MAX ((size_t)256 * 1024 * 1024)
#define ROOT    "d 0755 0:0 0 2 /\n"

/* A header as it is, with a right checksum. What is NULL or 0 is filled in. */
struct raw {
	char type;
	const char *name;
	const char *data; /* behind the header, padded */
	size_t len;       /* strlen(data) if 0 */
	const char *link;
	const char *size;    /* the field, 12 bytes */
	const char *uid;     /* the field, 8 bytes */
	bool v7;             /* no magic */
	const char *records; /* of a pax header, instead of @data: "KEY=VALUE|KEY=VALUE" */
	size_t records_len;  /* strlen(records) if 0 */
	const char *map;     /* of a sparse member: a block in front of @data */
};

static void put_checksum(unsigned char *h)
{
	unsigned int sum = 8 * ' ';
	char text[8];
	for (size_t i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? 0U : h[i];
	snprintf(text, sizeof(text), "%06o", sum);
	memcpy(h + 148, text, 7);
	h[155] = ' ';
}

static void fill_header(const struct raw *r, size_t len, unsigned char *h)
{
	char text[16];
	memset(h, 0, BLOCK);
	memcpy(h, r->name, strnlen(r->name, 100));
	memcpy(h + 100, "0000644", 8);
	memcpy(h + 108, r->uid ? r->uid : "0000000", 8);
	memcpy(h + 116, "0000000", 8);
	snprintf(text, sizeof(text), "%011zo", len);
	memcpy(h + 124, r->size ? r->size : text, 12);
	memcpy(h + 136, "00000000000", 12);
	h[156] = (unsigned char)r->type;
	if (r->link)
		memcpy(h + 157, r->link, strnlen(r->link, 100));
	if (!r->v7)
		memcpy(h + 257, "ustar\00000", 8);
	put_checksum(h);
}

static void put_zeros(struct buf *tar, size_t len)
{
	char *where;
	assert_int_equal(buf_reserve(tar, len, &where), 0);
	memset(where, 0, len);
	buf_commit(tar, len);
}

static void put_raw(struct buf *tar, const struct raw *r);

/* A pax record begins with its own length. */
static void put_record(struct buf *out, const char *text, size_t len)
{
	size_t total = len + 3;
	while (total != (size_t)snprintf(NULL, 0, "%zu", total) + len + 2)
		total++;
	assert_int_equal(buf_printf(out, "%zu ", total), 0);
	assert_int_equal(buf_append(out, text, len), 0);
	assert_int_equal(buf_puts(out, "\n"), 0);
}

static void put_pax(struct buf *tar, const struct raw *r)
{
	cleanup_buf struct buf text;
	buf_init(&text, TAR_MAX);
	const char *p = r->records, *end = p + (r->records_len ? r->records_len : strlen(p));
	while (p < end) {
		const char *bar = memchr(p, '|', (size_t)(end - p));
		bar = bar ? bar : end;
		put_record(&text, p, (size_t)(bar - p));
		p = bar + 1;
	}
	const struct raw plain = {
		.type = r->type, .name = "pax", .data = buf_data(&text), .len = buf_len(&text)
	};
	put_raw(tar, &plain);
}

static void put_raw(struct buf *tar, const struct raw *r)
{
	if (r->records) {
		put_pax(tar, r);
		return;
	}
	unsigned char h[BLOCK];
	size_t len = r->len > 0 || !r->data ? r->len : strlen(r->data);
	fill_header(r, len + (r->map ? BLOCK : 0), h);
	assert_int_equal(buf_append(tar, h, sizeof(h)), 0);
	if (r->map) {
		assert_int_equal(buf_puts(tar, r->map), 0);
		put_zeros(tar, BLOCK - strlen(r->map));
	}
	if (r->data)
		assert_int_equal(buf_append(tar, r->data, len), 0);
	if (r->data)
		put_zeros(tar, (BLOCK - len % BLOCK) % BLOCK);
}

static void job_init(struct render_job *job, struct render_layer *layer, int out)
{
	*job = (struct render_job){ .layers = layer, .n_layers = 1, .out = out, .where = "DIR" };
	job->bytes_max = RENDER_BYTES_MAX;
}

/* Renders; yields the listing, which the caller frees, or the text of the error after an "!". */
static char *render_bytes(const void *data, size_t len, uint64_t bytes_max)
{
	cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
	struct render_layer layer = { .span = SPAN_INIT };
	struct render_job job;
	struct err e = ERR_INIT;
	job_init(&job, &layer, out);
	job.bytes_max = bytes_max;
	layers_span(data, len, &layer.span);
	digest_of(data, len, &layer.diff_id);
	int r = render_here(&job, NULL, &e);
	span_deinit(&layer.span);
	if (r == 0)
		return listing_of(out);
	assert_true(e.code == r && r < 0);
	char *text = NULL;
	assert_true(asprintf(&text, "!%s", e.text) > 0);
	return text;
}

/* @want begins with "!" if the error must contain the rest of it. */
static void check_bytes(const void *data, size_t len, const char *want)
{
	cleanup_free char *got = render_bytes(data, len, RENDER_BYTES_MAX);
	if (want[0] != '!')
		assert_string_equal(got, want);
	else if (got[0] != '!' || !strstr(got, want + 1))
		fail_msg("\"%s\" instead of \"%s\"", got, want);
}

static void check(const struct raw *entries, size_t n, const char *want)
{
	struct buf tar;
	buf_init(&tar, TAR_MAX);
	for (size_t i = 0; i < n; i++)
		put_raw(&tar, &entries[i]);
	put_zeros(&tar, 2 * BLOCK);
	check_bytes(buf_data(&tar), buf_len(&tar), want);
	buf_deinit(&tar);
}

#define SPARSE_1_0 "GNU.sparse.major=1|GNU.sparse.minor=0|GNU.sparse.name=s|"
#define TOO_LARGE  "!the files of the image have more than 68719476736 bytes"

#define RAW(...)         ((const struct raw[]){ __VA_ARGS__ })
#define CHECK(want, ...) check(RAW(__VA_ARGS__), ARRAY_SIZE(RAW(__VA_ARGS__)), want)
#define PAX(text)                            \
	{                                    \
		.type = 'x', .records = text \
	}
#define PAX_N(text)                                                           \
	{                                                                     \
		.type = 'x', .records = text, .records_len = sizeof(text) - 1 \
	}
#define BAD_PAX(text)                                    \
	{                                                \
		.type = 'x', .name = "pax", .data = text \
	}
#define GLOBAL(text)                         \
	{                                    \
		.type = 'g', .records = text \
	}
#define SPARSE_FILE(m, text)                                     \
	{                                                        \
		.type = '0', .name = "a", .map = m, .data = text \
	}
#define FILE_OF(n, text)                             \
	{                                            \
		.type = '0', .name = n, .data = text \
	}

static void test_types(void **state)
{
	(void)state;
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", { .type = '7', .name = "a", .data = "1" });
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", { .type = 'Z', .name = "a", .data = "1" });
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", { .type = 'V', .name = "volume" }, FILE_OF("a", "1"));
	CHECK("!entry \"rest\" has an unknown type", { .type = 'M', .name = "rest", .data = "1" });
	CHECK("d 0755 0:0 0 3 /\n"
	      "d 0644 0:0 0 2 dump\n",
	      { .type = 'D', .name = "dump", .data = "Ya" });
	CHECK(ROOT "f 0644 0:0 0 1 n =1\n", { .type = 'N', .name = "n", .data = "1" });
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", { .type = '\0', .name = "a", .data = "1" });
	CHECK(ROOT "p 0644 0:0 0 1 a\n", { .type = '6', .name = "a" });
	CHECK("!entry \"a\": the target of the symbolic link is empty or longer than 4095 bytes",
	      { .type = '2', .name = "a" });
	CHECK("!entry \"a\" has an unknown type", { .type = '1', .name = "a" });
	CHECK("!entry 0 has no name", { .type = '0', .name = "" });
	CHECK("!damaged tar: Damaged tar archive", { .type = '5', .name = "d", .data = "content" },
	      FILE_OF("a", "1"));
	CHECK("!damaged tar: Damaged tar archive", { .type = '3', .name = "c", .data = "content" },
	      FILE_OF("a", "1"));
	CHECK("!entry 0 has no name", { .type = 'L', .name = "././@LongLink", .data = "" },
	      FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 x =1\n",
	      { .type = 'L', .name = "././@LongLink", .data = "x\0y", .len = 3 },
	      FILE_OF("a", "1"));
	CHECK("!damaged tar: Damaged tar archive",
	      { .type = 'L', .name = "././@LongLink", .data = "x" });
	CHECK(ROOT "l 0777 0:0 0 1 a ->b\n", { .type = 'K', .name = "././@LongLink", .data = "b" },
	      { .type = '2', .name = "a", .link = "c" });
}

static void test_v7(void **state)
{
	(void)state;
	CHECK("d 0755 0:0 0 3 /\n"
	      "f 0644 0:0 0 2 a =1\n"
	      "d 0644 0:0 0 2 d\n"
	      "f 0644 0:0 0 2 h =1\n"
	      "l 0777 0:0 0 1 l ->a\n",
	      { .type = '\0', .name = "a", .data = "1", .v7 = true },
	      { .type = '\0', .name = "d/", .v7 = true },
	      { .type = '1', .name = "h", .link = "a", .v7 = true },
	      { .type = '2', .name = "l", .link = "a", .v7 = true });
}

static void test_pax(void **state)
{
	(void)state;
	CHECK("!damaged tar: Tar size attribute is negative", PAX("size=-1"), FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 a =123\n", PAX("size=3"),
	      { .type = '0', .name = "a", .data = "123", .size = "00000000000" });
	CHECK("!damaged tar: Damaged tar archive", PAX("size=0"), FILE_OF("a", "1"),
	      FILE_OF("b", "2"));
	CHECK("!damaged tar: Tar size attribute overflow", PAX("size=9223372036854775807"),
	      FILE_OF("a", "1"));
	CHECK(TOO_LARGE, PAX("size=9223372036854775000"), FILE_OF("a", "1"));
	CHECK("!damaged tar: Tar size attribute overflow", PAX("size=99999999999999999999"),
	      FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 b =1\n", PAX_N("path=b\0c"), FILE_OF("a", "1"));
	CHECK("!damaged tar: Damaged tar archive", PAX("path=../"), FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 b =1\n", PAX("path=../b"), FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", PAX("path="), FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 cc =1\n", PAX("path=bb|path=cc"), FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 cc =1\n", PAX("path=bb"), PAX("path=cc"), FILE_OF("a", "1"));
	CHECK("!damaged tar: Damaged tar archive", PAX("path=bb"));
	CHECK("!entry \"a\": owner out of range", PAX("uid=99999999999999"), FILE_OF("a", "1"));
	CHECK("!entry \"a\": owner out of range", PAX("uid=-1"), FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", PAX("mtime=-99999999999999999999"), FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 4294967295 1 a =1\n", PAX("mtime=99999999999999999999.5"),
	      FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", PAX("linkpath=bb"), FILE_OF("a", "1"));
	CHECK(ROOT "l 0777 0:0 0 1 a ->/etc/passwd\n", PAX("linkpath=/etc/passwd"),
	      { .type = '2', .name = "a", .link = "x" });
	CHECK("!entry \"a\": hard link to \"/etc/passwd\", which does not exist",
	      PAX("linkpath=/etc/passwd"), { .type = '1', .name = "a", .link = "x" });
	CHECK(ROOT "f 0644 0:0 0 1 a =1 security.a=v user.b= user.c=d=e\n",
	      PAX("SCHILY.xattr.security.a=v|SCHILY.xattr.user.b=|SCHILY.xattr.user.c=d=e"),
	      FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 a =1 security.a=w\n",
	      PAX("SCHILY.xattr.security.a=v|SCHILY.xattr.security.a=w"), FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 a =1 user.a= user.b=a\n",
	      PAX("LIBARCHIVE.xattr.user.a=!!!!|LIBARCHIVE.xattr.user.b=YQ=="), FILE_OF("a", "1"));
	CHECK("!entry \"c\": no such device number",
	      PAX("SCHILY.dev=1|SCHILY.devmajor=99999999999|SCHILY.devminor=1"),
	      { .type = '3', .name = "c" });
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n"
		   "f 0644 0:0 0 1 c =1\n",
	      GLOBAL("path=bb"), FILE_OF("a", "1"), FILE_OF("c", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", GLOBAL("uid=123"), FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", GLOBAL("size=30"), FILE_OF("a", "1"));
	CHECK(ROOT, GLOBAL("comment=x"), GLOBAL("comment=y"));
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", BAD_PAX("0 path=b\n"), FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", BAD_PAX("9 path=bb\n"), FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", BAD_PAX("999999999999999999999 path=b\n"),
	      FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", BAD_PAX("x path=b\n"), FILE_OF("a", "1"));
	CHECK(ROOT "f 0644 0:0 0 1 a =1\n", BAD_PAX("7 path\n"), FILE_OF("a", "1"));
}

static void test_numbers(void **state)
{
	(void)state;
	CHECK("!damaged tar: Tar entry has negative size",
	      { .type = '0',
		.name = "a",
		.size = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" });
	CHECK("!damaged tar: Tar entry size overflow",
	      { .type = '0', .name = "a", .size = "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff" });
	CHECK("!damaged tar: Tar entry size overflow",
	      { .type = '0',
		.name = "a",
		.size = "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" });
	CHECK("!entry \"a\": damaged tar: Truncated tar archive",
	      { .type = '0', .name = "a", .size = "77777777777" });
	CHECK("!damaged tar: Unrecognized archive format",
	      { .type = '0', .name = "a", .size = "hello world" });
	CHECK(ROOT "f 0644 4294967294:0 0 1 a size=0\n",
	      { .type = '0', .name = "a", .uid = "\x80\0\0\0\xff\xff\xff\xfe" });
	CHECK("!entry \"a\": owner out of range",
	      { .type = '0', .name = "a", .uid = "\x80\0\0\0\xff\xff\xff\xff" });
	CHECK("!entry \"a\": owner out of range",
	      { .type = '0', .name = "a", .uid = "\xff\xff\xff\xff\xff\xff\xff\xff" });
}

/* The members of the old GNU form have the map in their header. */
static void put_old_sparse(struct buf *tar, const char *offset, const char *len, const char *real)
{
	unsigned char h[BLOCK];
	const struct raw r = { .type = 'S', .name = "s" };
	fill_header(&r, 3, h);
	memcpy(h + 257, "ustar  ", 8);
	memcpy(h + 386, offset, 12);
	memcpy(h + 398, len, 12);
	memcpy(h + 483, real, 12);
	put_checksum(h);
	assert_int_equal(buf_append(tar, h, sizeof(h)), 0);
	assert_int_equal(buf_puts(tar, "abc"), 0);
	put_zeros(tar, BLOCK - 3);
}

static void test_old_sparse(void **state)
{
	(void)state;
	static const struct {
		const char *offset, *len, *real, *want;
	} cases[] = {
		{ "00000000005", "00000000003", "00000000012",
		  ROOT "f 0644 0:0 0 1 s =%00%00%00%00%00abc%00%00\n" },
		{ "00000000005", "00000000003", "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",
		  TOO_LARGE },
		{ "00000000005", "00000000003", "\x80\0\0\0\0\0\1\0\0\0\0\0", TOO_LARGE },
		{ "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", "00000000003", "00000000012",
		  "!damaged tar: Malformed sparse map data" },
		{ "00000000005", "77777777777", "00000000012",
		  ROOT "f 0644 0:0 0 1 s =%00%00%00%00%00abc%00%00\n" },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "00000000003", "00000000012",
		  "!damaged tar: Malformed sparse map data" },
		{ "00000000005", "00000000003", "00000000002",
		  "!entry \"s\": a file is longer than its header says" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf tar;
		buf_init(&tar, TAR_MAX);
		put_old_sparse(&tar, cases[i].offset, cases[i].len, cases[i].real);
		put_zeros(&tar, 2 * BLOCK);
		check_bytes(buf_data(&tar), buf_len(&tar), cases[i].want);
		buf_deinit(&tar);
	}
}

/* A sparse member of a million parts: memory is short before the map ends, and that is all. */
static void test_sparse_map_bomb(void **state)
{
	(void)state;
	if (!CONFINE_HAS_MEMORY_LIMIT)
		return;
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
	struct render_layer layer;
	struct render_job job;
	struct err e = ERR_INIT;
	struct buf tar, map;
	buf_init(&tar, TAR_MAX);
	buf_init(&map, TAR_MAX);
	const size_t n = 1500000;
	assert_int_equal(buf_printf(&map, "%zu\n", n), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&map, "%zu\n0\n", i), 0);
	put_raw(&tar, &RAW(PAX(SPARSE_1_0 "GNU.sparse.realsize=9999999"))[0]);
	put_raw(&tar,
		&(struct raw){
			.type = '0', .name = "a", .data = buf_data(&map), .len = buf_len(&map) });
	buf_deinit(&map);
	layers_span(buf_data(&tar), buf_len(&tar), &span);
	buf_deinit(&tar);
	job_init(&job, &layer, out);
	layer = (struct render_layer){ .span = span };
	assert_int_equal(span_digest(&span, &layer.diff_id), 0);
	int r = render_confined(&job, NULL, &e);
	if (r != -ENOMEM)
		fail_msg("%d %s", r, e.text);
	assert_non_null(strstr(e.text, "out of memory while reading the tar"));
}

static void test_pax_sparse(void **state)
{
	(void)state;
	static const char *const huge = "9223372036854775807\n";
	(void)huge;
	CHECK(ROOT "f 0644 0:0 0 1 s =abc%00%00%00%00%00%00%00\n",
	      PAX(SPARSE_1_0 "GNU.sparse.realsize=10"), SPARSE_FILE("1\n0\n3\n", "abc"));
	CHECK(TOO_LARGE, PAX(SPARSE_1_0 "GNU.sparse.realsize=9223372036854775807"),
	      SPARSE_FILE("0\n", ""));
	CHECK(TOO_LARGE, PAX(SPARSE_1_0 "GNU.sparse.realsize=1099511627776"),
	      SPARSE_FILE("0\n", ""));
	CHECK(ROOT "f 0644 0:0 0 1 s size=0\n", PAX(SPARSE_1_0 "GNU.sparse.realsize=-1"),
	      SPARSE_FILE("0\n", ""));
	CHECK("!damaged tar: Malformed sparse map data", PAX(SPARSE_1_0 "GNU.sparse.realsize=10"),
	      SPARSE_FILE("1\n9223372036854775807\n9223372036854775807\n", ""));
	CHECK("!damaged tar: Line too long", PAX(SPARSE_1_0 "GNU.sparse.realsize=10"),
	      SPARSE_FILE("999999999\n", ""));
	CHECK("!entry \"s\": damaged tar: the parts of a sparse file overlap",
	      PAX(SPARSE_1_0 "GNU.sparse.realsize=10"), SPARSE_FILE("2\n5\n3\n0\n3\n", "abcdef"));
	CHECK("!entry \"s\": a file is longer than its header says",
	      PAX(SPARSE_1_0 "GNU.sparse.realsize=10"), SPARSE_FILE("2\n0\n3\n20\n3\n", "abcdef"));
	CHECK("!damaged tar: a header makes no sense", PAX(SPARSE_1_0 "GNU.sparse.realsize=10"),
	      SPARSE_FILE("x\n", ""));
	CHECK(TOO_LARGE, PAX("GNU.sparse.size=1152921504606846976|GNU.sparse.numblocks=0"),
	      FILE_OF("a", ""));
	CHECK("!entry \"a\": damaged tar: the parts of a sparse file overlap",
	      PAX("GNU.sparse.size=100|GNU.sparse.map=5,3,1,1"), FILE_OF("a", "1234"));
	CHECK(ROOT "f 0644 0:0 0 1 a size=100\n", PAX("GNU.sparse.size=100|GNU.sparse.map=1,1,5,3"),
	      FILE_OF("a", "1234"));
	CHECK(ROOT "f 0644 0:0 0 1 a size=100\n",
	      PAX("GNU.sparse.size=100|GNU.sparse.map=5,3,99999999999999999999,1"),
	      FILE_OF("a", "1234"));
	CHECK(ROOT "f 0644 0:0 0 1 a size=100\n", PAX("GNU.sparse.size=100|GNU.sparse.map=-5,3"),
	      FILE_OF("a", "1234"));
}

/* Two end markers end it; what is behind them is hashed, not read. */
static void test_end(void **state)
{
	(void)state;
	struct buf tar;
	buf_init(&tar, TAR_MAX);
	put_raw(&tar, &RAW(FILE_OF("a", "1"))[0]);
	put_zeros(&tar, BLOCK);
	put_raw(&tar, &RAW(FILE_OF("b", "1"))[0]);
	check_bytes(buf_data(&tar), buf_len(&tar), ROOT "f 0644 0:0 0 1 a =1\n");
	put_zeros(&tar, 2 * BLOCK);
	put_raw(&tar, &RAW(FILE_OF("c", "1"))[0]);
	check_bytes(buf_data(&tar), buf_len(&tar), ROOT "f 0644 0:0 0 1 a =1\n");
	put_zeros(&tar, 4 * BLOCK);
	assert_int_equal(buf_puts(&tar, "garbage"), 0);
	check_bytes(buf_data(&tar), buf_len(&tar), ROOT "f 0644 0:0 0 1 a =1\n");
	buf_deinit(&tar);
	check_bytes("garbage", 7, "!damaged tar: ");
	static const char zeros[10 * BLOCK];
	check_bytes(zeros, 2 * BLOCK, ROOT);
	check_bytes(zeros, sizeof(zeros), ROOT);
	check_bytes(zeros, BLOCK, ROOT);
}

/*
 * A changeset of nothing is one without a change, however it is compressed; less than a tar is not.
 */
static void test_nothing(void **state)
{
	static const char *const filters[] = { "gzip", "zstd" };
	struct blob nothing = { NULL, 0 };
	(void)state;
	check_bytes("", 0, ROOT);
	check_bytes("\0", 1, "!damaged tar: ");
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		CLEANUP(span_deinit) struct span span = SPAN_INIT;
		cleanup_blob struct blob packed = { NULL, 0 };
		cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
		struct render_layer layer;
		struct render_job job;
		struct err e = ERR_INIT;
		layers_compress(&nothing, filters[i], &packed);
		layers_span(packed.data, packed.len, &span);
		job_init(&job, &layer, out);
		layer = (struct render_layer){ .span = span };
		digest_of("", 0, &layer.diff_id);
		if (render_here(&job, NULL, &e) < 0)
			fail_msg("%s", e.text);
		cleanup_free char *got = listing_of(out);
		assert_string_equal(got, ROOT);
		layer.kind = LAYER_PLAIN; /* a root file system is not nothing */
		assert_int_equal(render_here(&job, NULL, &e), -EBADMSG);
		layer.kind = LAYER_OCI;
		/* Cut within what says that it is nothing; libarchive ignores gzip's trailer. */
		for (size_t at = 7; at < packed.len - (i == 0 ? 8 : 0); at++) {
			layer.span.size = at;
			assert_int_equal(render_here(&job, NULL, &e), -EBADMSG);
		}
	}
}

/* Little that becomes much, by decompression. */
static void test_bombs(void **state)
{
	(void)state;
	static const char *const filters[] = { "gzip", "zstd" };
	const uint64_t max = 1 << 20;
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		cleanup_blob struct blob tar = { NULL, 0 };
		cleanup_blob struct blob bomb = { NULL, 0 };
		layers_make((const char *const[]){ "f a zeros=12000000", NULL }, "ustar", &tar);
		layers_compress(&tar, filters[i], &bomb);
		assert_true(bomb.len < 20000);
		cleanup_free char *got = render_bytes(bomb.data, bomb.len, max);
		assert_non_null(strstr(got, "more than 1048576 bytes (if that is intended, raise "
					    "HUSK_IMAGE_BYTES_MAX)"));
	}
}

/* As many entries as a layer may have, and one more; all of one name, so the tree stays small. */
static void test_entry_limit(void **state)
{
	(void)state;
	enum {
		PER_MEMBER = 4096
	};
	cleanup_blob struct blob member = { NULL, 0 };
	struct blob tar = { calloc(PER_MEMBER, BLOCK), PER_MEMBER * BLOCK };
	assert_non_null(tar.data);
	const struct raw r = { .type = '0', .name = "a" };
	for (size_t i = 0; i < PER_MEMBER; i++)
		fill_header(&r, 0, tar.data + i * BLOCK);
	layers_compress(&tar, "gzip", &member);
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	layers_span(member.data, member.len, &span);
	struct hasher h;
	hasher_init(&h);
	for (size_t i = 0; i < LAYER_ENTRIES_MAX / PER_MEMBER; i++) {
		hasher_update(&h, tar.data, tar.len);
		if (i > 0)
			assert_int_equal(fd_write_all(span.fd, member.data, member.len), 0);
	}
	for (int beyond = 0; beyond < 2; beyond++) {
		cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
		struct render_layer layer;
		struct render_job job;
		struct err e = ERR_INIT;
		struct hasher copy = h;
		span.size = (uint64_t)lseek(span.fd, 0, SEEK_END);
		job_init(&job, &layer, out);
		layer = (struct render_layer){ .span = span };
		hasher_finish(&copy, &layer.diff_id);
		int x = render_here(&job, NULL, &e);
		if (x != (beyond ? -E2BIG : 0))
			fail_msg("%d %s", x, e.text);
		if (beyond)
			assert_non_null(strstr(e.text, "more than 1048576 entries"));
		assert_int_equal(fd_write_all(span.fd, member.data, member.len), 0);
	}
	blob_deinit(&tar);
}

/* Links of a hundred bytes with targets as long: 192,000 of them fill the tree. */
static void write_links(int fd, size_t n, struct digest *ret)
{
	unsigned char h[BLOCK];
	struct hasher hash;
	char name[101], target[101];
	memset(target, 't', sizeof(target));
	target[100] = '\0';
	hasher_init(&hash);
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%094zu", i);
		const struct raw r = { .type = '2', .name = name, .link = target };
		fill_header(&r, 0, h);
		hasher_update(&hash, h, sizeof(h));
		assert_int_equal(fd_write_all(fd, h, sizeof(h)), 0);
	}
	hasher_finish(&hash, ret);
}

/* Rendering needs at most 64 MiB, whether the image is just small enough or too large. */
static void test_peak_memory(void **state)
{
	(void)state;
	static const size_t counts[] = { 190000, 210000 };
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		CLEANUP(span_deinit) struct span span = SPAN_INIT;
		cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
		struct render_layer layer;
		struct render_job job;
		struct err e = ERR_INIT;
		layers_span("", 0, &span);
		struct digest diff_id;
		write_links(span.fd, counts[i], &diff_id);
		span.size = counts[i] * BLOCK;
		job_init(&job, &layer, out);
		layer = (struct render_layer){ .span = span, .diff_id = diff_id };
		int r = render_confined(&job, NULL, &e);
		if (r != (i == 0 ? 0 : -E2BIG))
			fail_msg("%d %s", r, e.text);
		if (i > 0)
			assert_non_null(strstr(e.text, "need more than 47 MiB of memory"));
		struct rusage use;
		assert_int_equal(getrusage(RUSAGE_CHILDREN, &use), 0);
		if (CONFINE_HAS_MEMORY_LIMIT)
			assert_in_range(use.ru_maxrss, 1, 64 * 1024);
	}
}

/* With the largest window of zstd, which is used to its end, 128 MiB more. */
static void test_peak_memory_of_zstd(void **state)
{
	enum {
		LINKS = 190000,
		ZEROS = 800, /* blocks of 128 KiB */
	};
	CLEANUP(span_deinit) struct span tar = SPAN_INIT;
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
	struct render_layer layer;
	struct render_job job;
	struct err e = ERR_INIT;
	struct digest digest;
	struct rusage use;
	(void)state;
	layers_span("", 0, &tar);
	layers_span("", 0, &span);
	write_links(tar.fd, LINKS, &digest);
	tar.size = (uint64_t)LINKS * BLOCK + ((uint64_t)ZEROS << 17);
	struct blob links = { mmap(NULL, LINKS * BLOCK, PROT_READ, MAP_SHARED, tar.fd, 0),
			      LINKS * BLOCK };
	assert_true(links.data != MAP_FAILED);
	layers_frame(span.fd, &links, ZEROS, 0x88);
	munmap(links.data, links.len);
	span.size = (uint64_t)lseek(span.fd, 0, SEEK_END);
	assert_int_equal(ftruncate(tar.fd, (off_t)tar.size), 0);
	job_init(&job, &layer, out);
	layer = (struct render_layer){ .span = span };
	assert_int_equal(span_digest(&tar, &layer.diff_id), 0);
	if (render_confined(&job, NULL, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(getrusage(RUSAGE_CHILDREN, &use), 0);
	if (CONFINE_HAS_MEMORY_LIMIT)
		assert_in_range(use.ru_maxrss, 128 * 1024, 192 * 1024);
}

/* Headers of megabytes are refused before they are in memory. */
static void test_huge_headers(void **state)
{
	(void)state;
	const size_t len = (size_t)2 << 20;
	char *text = malloc(len + 1);
	assert_non_null(text);
	memset(text, 'n', len);
	text[len] = '\0';
	memcpy(text, "comment=", 8);
	CHECK("!damaged tar: Special header too large", PAX(text), FILE_OF("a", "1"));
	CHECK("!damaged tar: Special header too large", GLOBAL(text), FILE_OF("a", "1"));
	CHECK("!damaged tar: Special header too large",
	      { .type = 'L', .name = "././@LongLink", .data = text }, FILE_OF("a", "1"));
	free(text);
}

/* Attributes that fit into the tree, but not into the writer beside it: an error, no crash. */
static void test_xattrs_need_memory(void **state)
{
	(void)state;
	if (!CONFINE_HAS_MEMORY_LIMIT)
		return;
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
	struct render_layer layer;
	struct render_job job;
	struct err e = ERR_INIT;
	static char record[60000] = "SCHILY.xattr.user.x=";
	memset(record + 20, 'v', sizeof(record) - 21);
	layers_span("", 0, &span);
	for (int i = 0; i < 700; i++) {
		char name[16];
		struct buf tar;
		buf_init(&tar, TAR_MAX);
		memcpy(record + 20, &(const int){ i + 0x41414141 }, sizeof(i));
		snprintf(name, sizeof(name), "%d", i);
		put_raw(&tar, &RAW(PAX(record))[0]);
		put_raw(&tar, &(struct raw){ .type = '0', .name = name });
		assert_int_equal(fd_write_all(span.fd, buf_data(&tar), buf_len(&tar)), 0);
		span.size += buf_len(&tar);
		buf_deinit(&tar);
	}
	job_init(&job, &layer, out);
	layer = (struct render_layer){ .span = span };
	assert_int_equal(span_digest(&span, &layer.diff_id), 0);
	assert_int_equal(render_confined(&job, NULL, &e), -ENOMEM);
	assert_non_null(strstr(e.text, "out of memory (the image has very many files"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(
			test_peak_memory), /* these first: children inherit the memory of others */
		fixture_test(test_peak_memory_of_zstd),
		fixture_test(test_xattrs_need_memory),
		fixture_test(test_types),
		fixture_test(test_v7),
		fixture_test(test_pax),
		fixture_test(test_numbers),
		fixture_test(test_old_sparse),
		fixture_test(test_sparse_map_bomb),
		fixture_test(test_pax_sparse),
		fixture_test(test_end),
		fixture_test(test_nothing),
		fixture_test(test_bombs),
		fixture_test(test_entry_limit),
		fixture_test(test_huge_headers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
