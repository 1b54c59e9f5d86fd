/* SPDX-License-Identifier: Apache-2.0 */
#include "images/render/layer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/layers.h"

#define LINES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void cleanup_layer(struct layer **l)
{
	layer_free(*l);
}

/* Reads all entries and contents. The last return value. */
static int read_all(struct layer *l, size_t *ret_entries, struct err *e)
{
	struct layer_entry entry;
	int r;
	*ret_entries = 0;
	while ((r = layer_next(l, &entry, e)) == 0) {
		const void *data;
		size_t len;
		uint64_t offset, end = 0;
		++*ret_entries;
		if (entry.hardlink)
			continue;
		while ((r = layer_data(l, &data, &len, &offset, e)) == 0) {
			assert_true(offset >= end);
			end = offset + len;
		}
		if (r < 0)
			break;
	}
	return r;
}

static int read_tar(const struct blob *tar, size_t *ret_entries, struct err *e)
{
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	CLEANUP(cleanup_layer) struct layer *l = NULL;
	layers_span(tar->data, tar->len, &span);
	*ret_entries = 0;
	int r = layer_new(&span, LAYER_OCI, UINT64_MAX, &l, e);
	return r < 0 ? r : read_all(l, ret_entries, e);
}

static int read_lines(const char *const *lines, size_t *ret_entries, struct err *e)
{
	cleanup_blob struct blob tar = { NULL, 0 };
	layers_make(lines, "pax", &tar);
	return read_tar(&tar, ret_entries, e);
}

static void test_entry(void **state)
{
	(void)state;
	cleanup_blob struct blob tar = { NULL, 0 };
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	CLEANUP(cleanup_layer) struct layer *l = NULL;
	struct layer_entry entry;
	struct err e = ERR_INIT;
	layers_make(LINES("f ../a%ff mode=4711 uid=3000000000 gid=7 mtime=9 text=hello x:user.k=v",
			  "h b to=/x"),
		    "pax", &tar);
	layers_span(tar.data, tar.len, &span);
	assert_int_equal(layer_new(&span, LAYER_OCI, UINT64_MAX, &l, &e), 0);
	assert_int_equal(layer_next(l, &entry, &e), 0);
	assert_string_equal(entry.path, "../a\xff");
	assert_int_equal(entry.number, 0);
	assert_int_equal(entry.mode, S_IFREG | 04711);
	assert_true(entry.uid == 3000000000 && entry.gid == 7);
	assert_int_equal(entry.mtime, 9);
	assert_int_equal(entry.size, 5);
	assert_int_equal(entry.n_xattrs, 1);
	assert_string_equal(entry.xattrs[0].name, "user.k");
	assert_null(entry.hardlink);
	const void *data;
	size_t len;
	uint64_t offset;
	assert_int_equal(layer_data(l, &data, &len, &offset, &e), 0);
	assert_true(len == 5 && offset == 0);
	assert_memory_equal(data, "hello", 5);
	assert_int_equal(layer_data(l, &data, &len, &offset, &e), LAYER_END);
	assert_int_equal(layer_next(l, &entry, &e), 0);
	assert_string_equal(entry.hardlink, "/x");
	assert_int_equal(entry.n_xattrs, 0);
	assert_int_equal(layer_next(l, &entry, &e), LAYER_END);
}

static void test_verify(void **state)
{
	(void)state;
	cleanup_blob struct blob tar = { NULL, 0 };
	cleanup_blob struct blob gz = { NULL, 0 };
	layers_make(LINES("f a text=1", "f b zeros=100000"), "pax", &tar);
	tar.data = realloc(tar.data, tar.len + 1000);
	assert_non_null(tar.data);
	memset(tar.data + tar.len, 'g', 1000); /* behind the end of the archive, still hashed */
	tar.len += 1000;
	layers_compress(&tar, "gzip", &gz);
	struct digest blob, diff_id, wrong;
	digest_of(gz.data, gz.len, &blob);
	digest_of(tar.data, tar.len, &diff_id);
	digest_of("", 0, &wrong);
	for (int i = 0; i < 4; i++) {
		CLEANUP(span_deinit) struct span span = SPAN_INIT;
		CLEANUP(cleanup_layer) struct layer *l = NULL;
		struct err e = ERR_INIT;
		size_t entries;
		layers_span(gz.data, gz.len, &span);
		assert_int_equal(layer_new(&span, LAYER_OCI, UINT64_MAX, &l, &e), 0);
		assert_int_equal(read_all(l, &entries, &e), LAYER_END);
		assert_int_equal(entries, 2);
		int r = layer_verify(l,
				     i == 0   ? NULL
				     : i == 1 ? &wrong
					      : &blob,
				     i == 2 ? &wrong : &diff_id, &e);
		assert_int_equal(r, i == 1 || i == 2 ? -EBADMSG : 0);
		if (i == 1)
			assert_string_equal(strndupa(e.text, 15), "digest mismatch");
		if (i == 2)
			assert_string_equal(strndupa(e.text, 16), "diff_id mismatch");
		assert_int_equal(layer_bytes(l), tar.len);
	}
}

/* A damaged download is told as such, not as what the damage led to. */
static void test_explain(void **state)
{
	(void)state;
	cleanup_blob struct blob tar = { NULL, 0 };
	layers_make(LINES("f a text=1", "f b text=2"), "ustar", &tar);
	struct digest blob;
	digest_of(tar.data, tar.len, &blob);
	for (int damaged = 0; damaged < 2; damaged++) {
		CLEANUP(span_deinit) struct span span = SPAN_INIT;
		struct err e = ERR_INIT;
		layers_span(tar.data, tar.len, &span);
		err_set(&e, -EBADMSG, "cause");
		layer_explain(&span, &blob, &e);
		assert_int_equal(strstr(e.text, "digest mismatch") != NULL, damaged);
		tar.data[1024] ^= 1;
	}
}

static void test_truncation(void **state)
{
	(void)state;
	cleanup_blob struct blob tar = { NULL, 0 };
	layers_make(LINES("d d", "f %c3%a4 text=1 x:user.k=v zeros=3000", "f s hole=8192 text=2",
			  "l l to=x", "h h to=s", "c c dev=1,2"),
		    "pax", &tar);
	struct err e = ERR_INIT;
	size_t all, entries, len = tar.len;
	assert_int_equal(read_tar(&tar, &all, &e), LAYER_END);
	assert_int_equal(all, 6);
	for (tar.len = 0; tar.len < len; tar.len += 512) {
		int r = read_tar(&tar, &entries, &e);
		assert_true(r < 0 || r == LAYER_END);
		assert_true(entries <= all);
		if (r < 0)
			assert_true(e.text[0] != '\0');
	}
	tar.len = 0;
	assert_int_equal(read_tar(&tar, &entries, &e), LAYER_END); /* no change at all */
	assert_int_equal(entries, 0);
	tar.len = 100;
	assert_int_equal(read_tar(&tar, &entries, &e), -EBADMSG);
	tar.len = len;
	/* The end of the archive as it must be, without one, and with something behind it. */
	tar.len = len - 1024;
	assert_int_equal(read_tar(&tar, &entries, &e), LAYER_END);
	assert_int_equal(entries, all);
	tar.len = len;
}

static void test_xattr_limits(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	size_t n;
	struct buf line;
	buf_init(&line, 1 << 20);
	assert_int_equal(buf_puts(&line, "f a"), 0);
	for (size_t i = 0; i < LAYER_XATTRS_MAX; i++)
		assert_int_equal(buf_printf(&line, " x:user.%zu=v x:other.%zu=dropped", i, i), 0);
	for (int beyond = 0; beyond < 2; beyond++) {
		cleanup_free char *text = strndup(buf_data(&line), buf_len(&line));
		assert_int_equal(read_lines(LINES(text), &n, &e), beyond ? -E2BIG : LAYER_END);
		assert_int_equal(buf_puts(&line, " x:user.one-more=v"), 0);
	}
	buf_deinit(&line);
	assert_non_null(strstr(e.text, "more than 64 extended attributes"));
	/* Names. */
	for (size_t extra = 0; extra < 2; extra++) {
		char name[LAYER_XATTR_NAME_MAX + 2] = "", text[LAYER_XATTR_NAME_MAX + 64];
		memset(name, 'n', LAYER_XATTR_NAME_MAX - strlen("user.") + extra);
		snprintf(text, sizeof(text), "f a x:user.%s=v", name);
		assert_int_equal(read_lines(LINES(text), &n, &e), extra ? -E2BIG : LAYER_END);
	}
}

/* A pax header with one attribute of @len bytes, in front of an empty file. */
static void make_xattr_tar(size_t len, struct blob *ret)
{
	cleanup_blob struct blob tar = { NULL, 0 };
	static const char key[] = " SCHILY.xattr.user.k=";
	size_t record = 5 + sizeof(key) - 1 + len + 1;
	size_t padded = (record + 511) / 512 * 512;
	layers_make(LINES("f x", "f a"), "ustar", &tar);
	ret->len = tar.len + padded;
	ret->data = calloc(ret->len, 1);
	assert_non_null(ret->data);
	memcpy(ret->data, tar.data, 512);
	char digits[32];
	snprintf(digits, sizeof(digits), "%011o", (unsigned int)record);
	memcpy(ret->data + 124, digits, 12);
	ret->data[156] = 'x';
	unsigned int sum = 8 * ' ';
	for (size_t i = 0; i < 512; i++)
		sum += i >= 148 && i < 156 ? 0U : ret->data[i];
	snprintf(digits, sizeof(digits), "%06o", sum);
	memcpy(ret->data + 148, digits, 7);
	snprintf(digits, sizeof(digits), "%05zu", record);
	memcpy(ret->data + 512, digits, 5);
	memcpy(ret->data + 517, key, sizeof(key) - 1);
	memset(ret->data + 517 + sizeof(key) - 1, 'v', len);
	ret->data[512 + record - 1] = '\n';
	memcpy(ret->data + 512 + padded, tar.data + 512, tar.len - 512);
}

static void test_xattr_size(void **state)
{
	(void)state;
	for (size_t extra = 0; extra < 2; extra++) {
		cleanup_blob struct blob tar = { NULL, 0 };
		struct err e = ERR_INIT;
		size_t n;
		make_xattr_tar(LAYER_XATTR_VALUE_MAX + extra, &tar);
		int r = read_tar(&tar, &n, &e);
		if (r != (extra ? -E2BIG : LAYER_END))
			fail_msg("%d %s", r, e.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_entry),        fixture_test(test_verify),
		fixture_test(test_explain),      fixture_test(test_truncation),
		fixture_test(test_xattr_limits), fixture_test(test_xattr_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
