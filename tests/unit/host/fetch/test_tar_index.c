/* SPDX-License-Identifier: Apache-2.0 */
#include "host/fetch/tar_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/host/render/layers.h"

static int read_blob(void *ctx, void *mem, size_t size, uint64_t offset)
{
	const struct blob *b = ctx;
	assert_true(offset <= b->len && size <= b->len - offset);
	memcpy(mem, b->data + offset, size);
	return 0;
}

static void cleanup_index(struct tar_index **t)
{
	tar_index_free(*t);
}

#define LINES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void check_content(const struct blob *tar, const struct tar_index *t, const char *name,
			  const char *want)
{
	uint64_t offset, size;
	if (!want) {
		assert_int_equal(tar_index_find(t, name, &offset, &size), -ENOENT);
		return;
	}
	if (tar_index_find(t, name, &offset, &size) < 0)
		fail_msg("%s is missing", name);
	assert_int_equal(size, strlen(want));
	assert_memory_equal(tar->data + offset, want, size);
}

/* The same members in every format that libarchive writes. */
static void test_formats(void **state)
{
	(void)state;
	static const char *const formats[] = { "ustar", "pax", "gnutar" };
	char deep[200], line[256];
	memset(deep, 'd', 150);
	memcpy(deep + 90, "/x", 3);
	snprintf(line, sizeof(line), "f %s text=deep", deep);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		cleanup_blob struct blob tar = { NULL, 0 };
		CLEANUP(cleanup_index) struct tar_index *t = NULL;
		struct err e = ERR_INIT;
		layers_make(LINES("d a", "f ./index.json text=first", "f a/b text=ab",
				  "f index.json text=second", "l a/rel to=b", "l up to=a/../a/b",
				  "l c/up to=../a/b", "h hard to=a/b", "l two to=up", "f e",
				  "p fifo", line),
			    formats[i], &tar);
		assert_int_equal(tar_index_new(read_blob, &tar, tar.len, &t, &e), 0);
		check_content(&tar, t, "index.json", "first");
		check_content(&tar, t, "./a/b", "ab");
		check_content(&tar, t, "a/rel", "ab");
		check_content(&tar, t, "c/up", "ab");
		check_content(&tar, t, "hard", "ab");
		check_content(&tar, t, "e", "");
		check_content(&tar, t, deep, "deep");
		check_content(&tar, t, "a", NULL);
		check_content(&tar, t, "two", NULL);
		check_content(&tar, t, "fifo", NULL);
		check_content(&tar, t, "", NULL);
	}
}

/* Cut at every block: a failure, or all members that are whole. */
static void test_truncation(void **state)
{
	(void)state;
	cleanup_blob struct blob tar = { NULL, 0 };
	layers_make(LINES("f a text=1", "f b text=2 zeros=2000", "f %c3%a4 text=3"), "pax", &tar);
	for (size_t len = 0; len <= tar.len; len += 256) {
		CLEANUP(cleanup_index) struct tar_index *t = NULL;
		struct err e = ERR_INIT;
		int r = tar_index_new(read_blob, &tar, len, &t, &e);
		assert_true(r == 0 || (r == -EBADMSG && strstr(e.text, "cut off")));
		if (len == 1536)
			assert_int_equal(r, -EBADMSG);
	}
}

static void check_damaged(struct blob *tar, const char *want)
{
	struct tar_index *t = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(tar_index_new(read_blob, tar, tar->len, &t, &e), -EBADMSG);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, e.text);
}

/* Gives the first header this size field and the right checksum. */
static void set_size(struct blob *tar, const char field[12])
{
	memcpy(tar->data + 124, field, 12);
	unsigned int sum = 8 * ' ';
	for (size_t i = 0; i < TAR_BLOCK_SIZE; i++)
		sum += i >= 148 && i < 156 ? 0U : tar->data[i];
	char text[16];
	snprintf(text, sizeof(text), "%06o", sum);
	memcpy(tar->data + 148, text, 7);
	assert_true(tar_is_header(tar->data));
}

static void test_damage(void **state)
{
	(void)state;
	cleanup_blob struct blob tar = { NULL, 0 };
	layers_make(LINES("f a text=1"), "ustar", &tar);
	set_size(&tar, "00000000001\0");
	struct tar_index *t = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(tar_index_new(read_blob, &tar, tar.len, &t, &e), 0);
	tar_index_free(t);
	set_size(&tar, "77777777777\0");
	check_damaged(&tar, "cut off");
	set_size(&tar, "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff");
	check_damaged(&tar, "cut off");
	set_size(&tar, "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
	check_damaged(&tar, "damaged");
	set_size(&tar, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
	check_damaged(&tar, "damaged");
	set_size(&tar, "1x000000000\0");
	check_damaged(&tar, "damaged");
	tar.data[0] ^= 1;
	check_damaged(&tar, "at byte 0");
}

/* A header of the given type in front of @content, padded. */
static size_t put_member(unsigned char *out, char type, const char *name, const char *content,
			 size_t len)
{
	memset(out, 0, TAR_BLOCK_SIZE);
	memcpy(out, name, strlen(name) + 1);
	out[156] = (unsigned char)type;
	memcpy(out + 257, "ustar\00000", 9); /* with its NUL, which is the owner's name */
	char field[16];
	snprintf(field, sizeof(field), "%011o", (unsigned int)len);
	struct blob b = { out, TAR_BLOCK_SIZE };
	set_size(&b, field);
	size_t padded = (len + TAR_BLOCK_SIZE - 1) / TAR_BLOCK_SIZE * TAR_BLOCK_SIZE;
	memset(out + TAR_BLOCK_SIZE, 0, padded);
	memcpy(out + TAR_BLOCK_SIZE, content, len);
	return TAR_BLOCK_SIZE + padded;
}

static void check_pax(const char *records, size_t len, int want)
{
	static unsigned char mem[4 * TAR_BLOCK_SIZE + 2 * TAR_INDEX_PAX_MAX];
	size_t n = put_member(mem, 'x', "pax", records, len);
	n += put_member(mem + n, '0', "file", "1", 1);
	struct blob tar = { mem, n };
	CLEANUP(cleanup_index) struct tar_index *t = NULL;
	struct err e = ERR_INIT;
	if (tar_index_new(read_blob, &tar, tar.len, &t, &e) != want)
		fail_msg("%.100s", records);
}

static void test_pax_records(void **state)
{
	(void)state;
	static const struct {
		const char *records;
		int want;
	} cases[] = {
		{ "", 0 },
		{ "8 path=a\n", -EBADMSG },
		{ "9 path=a\n", 0 },
		{ "11 path=a\n", -EBADMSG },
		{ "9 path=a", -EBADMSG },
		{ "x path=a\n", -EBADMSG },
		{ "9path=a\n", -EBADMSG },
		{ "7 path\n", -EBADMSG },
		{ "3 \n", -EBADMSG },
		{ "99999999 path=a\n", -EBADMSG },
		{ "9 size=1\n", 0 },
		{ "9 size=x\n", -EBADMSG },
		{ "28 size=9223372036854775808\n", -EBADMSG },
		{ "27 size=9223372036854775807", -EBADMSG },
		{ "22 GNU.sparse.major=1\n", -EBADMSG },
		{ "9 path=a\n9 size=1\n13 mtime=1.5\n", 0 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_pax(cases[i].records, strlen(cases[i].records), cases[i].want);
}

static void test_limits(void **state)
{
	(void)state;
	/* One pax record as long as the limit, and a header of one byte more. */
	static const char head[] = "65536 comment=";
	static char record[TAR_INDEX_PAX_MAX + 2];
	memset(record, 'c', sizeof(record));
	for (size_t i = 0; head[i]; i++)
		record[i] = head[i];
	record[TAR_INDEX_PAX_MAX - 1] = '\n';
	check_pax(record, TAR_INDEX_PAX_MAX, 0);
	check_pax(record, TAR_INDEX_PAX_MAX + 1, -E2BIG);
	/* Names: the limit, and one more, which is passed over. */
	for (size_t extra = 0; extra < 2; extra++) {
		char name[TAR_INDEX_NAME_MAX + 2], line[TAR_INDEX_NAME_MAX + 32];
		memset(name, 'n', sizeof(name));
		name[TAR_INDEX_NAME_MAX + extra] = '\0';
		snprintf(line, sizeof(line), "f %s text=1", name);
		cleanup_blob struct blob tar = { NULL, 0 };
		CLEANUP(cleanup_index) struct tar_index *t = NULL;
		struct err e = ERR_INIT;
		layers_make(LINES(line), "pax", &tar);
		assert_int_equal(tar_index_new(read_blob, &tar, tar.len, &t, &e), 0);
		check_content(&tar, t, name, extra == 0 ? "1" : NULL);
	}
}

static void test_counts(void **state)
{
	(void)state;
	cleanup_blob struct blob tar = { NULL, 0 };
	tar.len = (TAR_INDEX_HEADERS_MAX + 1) * TAR_BLOCK_SIZE;
	tar.data = malloc(tar.len + TAR_BLOCK_SIZE);
	assert_non_null(tar.data);
	for (size_t i = 0; i <= TAR_INDEX_HEADERS_MAX; i++)
		put_member(tar.data + i * TAR_BLOCK_SIZE, i < TAR_INDEX_ENTRIES_MAX ? '0' : '5',
			   "x", "", 0);
	struct tar_index *t = NULL;
	struct err e = ERR_INIT;
	tar.len -= TAR_BLOCK_SIZE;
	assert_int_equal(tar_index_new(read_blob, &tar, tar.len, &t, &e), 0);
	tar_index_free(t);
	tar.len += TAR_BLOCK_SIZE;
	assert_int_equal(tar_index_new(read_blob, &tar, tar.len, &t, &e), -E2BIG);
	assert_non_null(strstr(e.text, "more than 65536 tar headers"));
	put_member(tar.data + TAR_INDEX_ENTRIES_MAX * TAR_BLOCK_SIZE, '0', "x", "", 0);
	assert_int_equal(tar_index_new(read_blob, &tar, tar.len, &t, &e), -E2BIG);
	assert_non_null(strstr(e.text, "more than 16384 members"));
}

static int index_blob(void *ctx)
{
	struct blob *tar = ctx;
	CLEANUP(cleanup_index) struct tar_index *t = NULL;
	struct err e = ERR_INIT;
	return tar_index_new(read_blob, tar, tar->len, &t, &e);
}

static void test_allocation_failures(void **state)
{
	(void)state;
	cleanup_blob struct blob tar = { NULL, 0 };
	layers_make(LINES("f a text=1", "l b to=a", "f %c3%a4 text=3"), "pax", &tar);
	for_each_failing_alloc(index_blob, &tar);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_formats),
		fixture_test(test_truncation),
		fixture_test(test_damage),
		fixture_test(test_pax_records),
		fixture_test(test_limits),
		fixture_test(test_counts),
		fixture_test(test_allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
