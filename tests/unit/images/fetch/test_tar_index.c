/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/tar_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fixture.h"
#include "tests/unit/images/render/layers.h"

/* Appends the table of @tar to @t. */
static int scan(struct blob *tar, struct buf *t, struct err *e)
{
	CLEANUP(span_deinit) struct span span;
	*e = ERR_INIT;
	buf_init(t, TAR_INDEX_MAX);
	layers_span(tar->data, tar->len, &span);
	return tar_index_scan(&span, t, e);
}

#define TAR_BLOCK_SIZE ((size_t)512)

#define LINES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void check_content(const struct blob *tar, const struct buf *t, const char *name,
			  const char *want)
{
	uint64_t offset, size;
	if (!want) {
		assert_int_equal(tar_index_find(t, tar->len, name, &offset, &size), -ENOENT);
		return;
	}
	if (tar_index_find(t, tar->len, name, &offset, &size) < 0)
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
		cleanup_buf struct buf t;
		struct err e;
		layers_make(LINES("d a", "f ./index.json text=first", "f a/b text=ab",
				  "f index.json text=second", "l a/rel to=b", "l up to=a/../a/b",
				  "l c/up to=../a/b", "h hard to=a/b", "l two to=up", "f e",
				  "p fifo", line),
			    formats[i], &tar);
		assert_int_equal(scan(&tar, &t, &e), 0);
		check_content(&tar, &t, "index.json", "first");
		check_content(&tar, &t, "./a/b", "ab");
		check_content(&tar, &t, "a/rel", "ab");
		check_content(&tar, &t, "c/up", "ab");
		check_content(&tar, &t, "hard", "ab");
		check_content(&tar, &t, "e", "");
		check_content(&tar, &t, deep, "deep");
		check_content(&tar, &t, "a", NULL);
		check_content(&tar, &t, "two", NULL);
		check_content(&tar, &t, "fifo", NULL);
		check_content(&tar, &t, "", NULL);
	}
}

/* Cut at every block: a failure, or all members that are whole. */
static void test_truncation(void **state)
{
	(void)state;
	cleanup_blob struct blob tar = { NULL, 0 };
	layers_make(LINES("f a text=1", "f b text=2 zeros=2000", "f %c3%a4 text=3"), "pax", &tar);
	size_t len = tar.len, n_cut_off = 0;
	for (tar.len = 0; tar.len <= len; tar.len += 256) {
		cleanup_buf struct buf t;
		struct err e;
		int r = scan(&tar, &t, &e);
		n_cut_off += strstr(e.text, "cut off") != NULL;
		assert_int_equal(r < 0, e.text[0] != '\0');
		assert_true(r == 0 || r == -EBADMSG || (r == -EINVAL && tar.len <= 1536));
	}
	tar.len = len;
	assert_true(n_cut_off > 1);
}

static void check_damaged(struct blob *tar, int code, const char *want)
{
	cleanup_buf struct buf t;
	struct err e;
	assert_int_equal(scan(tar, &t, &e), code);
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
}

static void test_damage(void **state)
{
	(void)state;
	cleanup_blob struct blob tar = { NULL, 0 };
	layers_make(LINES("f a text=1", "f b text=2"), "ustar", &tar);
	set_size(&tar, "77777777777\0");
	check_damaged(&tar, -EBADMSG, "cut off");
	set_size(&tar, "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff");
	check_damaged(&tar, -EINVAL, "");
	set_size(&tar, "00000000001\0");
	tar.data[2 * TAR_BLOCK_SIZE] ^= 1;
	check_damaged(&tar, -EBADMSG, "damaged tar, header 2");
	tar.data[0] ^= 1;
	check_damaged(&tar, -EINVAL, "neither an OCI layout nor a docker archive");
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

/* Names: the limit, and one more, which is passed over. */
static void test_limits(void **state)
{
	(void)state;
	for (size_t extra = 0; extra < 2; extra++) {
		char name[TAR_INDEX_NAME_MAX + 2], line[TAR_INDEX_NAME_MAX + 32];
		memset(name, 'n', sizeof(name));
		name[TAR_INDEX_NAME_MAX + extra] = '\0';
		snprintf(line, sizeof(line), "f %s text=1", name);
		cleanup_blob struct blob tar = { NULL, 0 };
		cleanup_buf struct buf t;
		struct err e;
		layers_make(LINES(line), "pax", &tar);
		assert_int_equal(scan(&tar, &t, &e), 0);
		check_content(&tar, &t, name, extra == 0 ? "1" : NULL);
	}
}

/* What a child that has been taken over may report leads nowhere outside. */
static void test_forged(void **state)
{
	(void)state;
#define TABLE(text)                \
	{                          \
		text, sizeof(text) \
	}
	static const struct {
		const char *text;
		size_t len;
	} tables[] = {
		TABLE("0\0b\0a\0"),
		TABLE("a\0"
		      "1\0a\0"),
		TABLE("9223372036854775807\0"
		      "1\0a\0"),
		TABLE("0\0"
		      "11\0a\0"),
		TABLE("0\0"
		      "1\0a"),
		TABLE(""),
		TABLE("\0\0a\0"),
		TABLE("1\0"
		      "1\0a\0a\0"),
		TABLE("1\0"
		      "1\0a\0b\0"),
	};
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		cleanup_buf struct buf t;
		uint64_t offset, size;
		buf_init(&t, TAR_INDEX_MAX);
		assert_int_equal(buf_append(&t, tables[i].text, tables[i].len), 0);
		assert_int_equal(tar_index_find(&t, 10, "a", &offset, &size), -ENOENT);
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
	struct buf t;
	struct err e;
	tar.len -= TAR_BLOCK_SIZE;
	assert_int_equal(scan(&tar, &t, &e), 0);
	buf_deinit(&t);
	tar.len += TAR_BLOCK_SIZE;
	check_damaged(&tar, -E2BIG, "more than 65536 tar headers");
	put_member(tar.data + TAR_INDEX_ENTRIES_MAX * TAR_BLOCK_SIZE, '0', "x", "", 0);
	check_damaged(&tar, -E2BIG, "more than 16384 members");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_formats), fixture_test(test_truncation),
		fixture_test(test_damage),  fixture_test(test_limits),
		fixture_test(test_counts),  fixture_test(test_forged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
