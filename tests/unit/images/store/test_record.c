/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void make_record(struct record *r)
{
	record_init(r);
	digest_of("id", 2, &r->id);
	digest_of("chain", 5, &r->chain);
	r->kind = IMAGE_ROOTFS;
	r->size = 12345;
	r->imported_ns = 1700000000123456789;
	assert_int_equal(record_add_name(r, "one"), 0);
	assert_int_equal(record_add_name(r, "example.com/two:\xc3\xa4"), 0);
}

static void test_round_trip(void **state)
{
	CLEANUP(record_deinit) struct record r;
	CLEANUP(record_deinit) struct record back;
	CLEANUP(buf_deinit) struct buf text;
	(void)state;
	make_record(&r);
	record_init(&back);
	buf_init(&text, RECORD_JSON_MAX);
	assert_int_equal(record_format(&r, &text), 0);
	assert_int_equal(record_parse(buf_data(&text), buf_len(&text), &back), 0);
	assert_true(digest_equal(&r.id, &back.id));
	assert_true(digest_equal(&r.chain, &back.chain));
	assert_int_equal(back.kind, IMAGE_ROOTFS);
	assert_int_equal(back.size, 12345);
	assert_int_equal(back.imported_ns, r.imported_ns);
	assert_int_equal(back.names.n, 2);
	assert_string_equal(record_name(&back), "example.com/two:\xc3\xa4");
}

/* What only appc images have. */
static void test_aci(void **state)
{
	CLEANUP(record_deinit) struct record r;
	(void)state;
	make_record(&r);
	r.kind = IMAGE_ACI;
	memset(r.key, 'a', RECORD_KEY_LEN);
	assert_int_equal(record_set_below(&r, &r.chain, 1), 0);
	for (int unverified = 0; unverified < 2; unverified++) {
		CLEANUP(record_deinit) struct record back;
		CLEANUP(buf_deinit) struct buf text;
		record_init(&back);
		buf_init(&text, RECORD_JSON_MAX);
		r.unverified = unverified;
		assert_int_equal(record_format(&r, &text), 0);
		assert_int_equal(record_parse(buf_data(&text), buf_len(&text), &back), 0);
		assert_string_equal(back.key, r.key);
		assert_int_equal(back.n_below, 1);
		assert_int_equal(back.unverified, unverified);
	}
}

/* An appc image is called by half of its key, any other by its digest. */
static void test_id_text(void **state)
{
	CLEANUP(record_deinit) struct record r;
	char text[IMAGE_ID_LEN + 1];
	(void)state;
	make_record(&r);
	record_id_text(&r, text);
	assert_int_equal(strncmp(text, "sha256-", strlen("sha256-")), 0);
	assert_string_equal(text + strlen("sha256-"), r.id.hex);
	memset(r.key, 'a', DIGEST_HEX_LEN);
	memset(r.key + DIGEST_HEX_LEN, 'b', RECORD_KEY_LEN - DIGEST_HEX_LEN);
	r.kind = IMAGE_ACI;
	record_id_text(&r, text);
	assert_int_equal(strlen(text), IMAGE_ID_LEN);
	assert_int_equal(strspn(text + strlen("sha512-"), "a"), DIGEST_HEX_LEN);
}

/* The newest name is the last; at the limit the oldest goes. */
static void test_names(void **state)
{
	CLEANUP(record_deinit) struct record r;
	char name[IMAGE_NAME_MAX + 2];
	(void)state;
	record_init(&r);
	assert_string_equal(record_name(&r), "");
	assert_int_equal(record_add_name(&r, ""), -EINVAL);
	assert_int_equal(record_add_name(&r, "a\nb"), -EINVAL);
	assert_int_equal(record_add_name(&r, "a\xff"), -EINVAL);
	assert_int_equal(record_add_name(&r, "a\xe2\x80\xae"), -EINVAL);
	memset(name, 'n', sizeof(name));
	name[IMAGE_NAME_MAX + 1] = '\0';
	assert_int_equal(record_add_name(&r, name), -EINVAL);
	name[IMAGE_NAME_MAX] = '\0';
	assert_int_equal(record_add_name(&r, name), 0);
	for (size_t i = 1; i < RECORD_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "name-%zu", i);
		assert_int_equal(record_add_name(&r, name), 0);
	}
	assert_int_equal(r.names.n, RECORD_NAMES_MAX);
	assert_int_equal(record_add_name(&r, "name-1"), 0); /* again: nothing goes */
	assert_int_equal(r.names.n, RECORD_NAMES_MAX);
	assert_string_equal(record_name(&r), "name-1");
	assert_int_equal(record_add_name(&r, "one more"), 0);
	assert_int_equal(r.names.n, RECORD_NAMES_MAX);
	assert_string_equal(r.names.v[0], "name-2");
	/* A name that is a member of the list itself. */
	assert_int_equal(record_add_name(&r, r.names.v[0]), 0);
	assert_string_equal(record_name(&r), "name-2");
	assert_true(record_remove_name(&r, "name-2"));
	assert_false(record_remove_name(&r, "name-2"));
	assert_string_equal(record_name(&r), "one more");
}

/* The longest record there can be fits. */
static void test_largest(void **state)
{
	CLEANUP(record_deinit) struct record r;
	CLEANUP(record_deinit) struct record back;
	CLEANUP(buf_deinit) struct buf text;
	char name[IMAGE_NAME_MAX + 1];
	(void)state;
	make_record(&r);
	record_init(&back);
	buf_init(&text, RECORD_JSON_MAX);
	r.size = INT64_MAX;
	for (size_t i = 0; i < RECORD_NAMES_MAX; i++) {
		memset(name, '"', sizeof(name));
		name[IMAGE_NAME_MAX] = '\0';
		name[0] = (char)('!' + i);
		assert_int_equal(record_add_name(&r, name), 0);
	}
	assert_int_equal(record_format(&r, &text), 0);
	assert_int_equal(record_parse(buf_data(&text), buf_len(&text), &back), 0);
	assert_int_equal(back.names.n, r.names.n);
}

static void test_damaged(void **state)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{}",
		"{\"version\":2}",
		"{\"version\":1,\"size\":-1}",
		"{\"version\":1,\"size\":1,\"imported\":1,\"id\":\"x\"}",
	};
	CLEANUP(record_deinit) struct record r;
	CLEANUP(buf_deinit) struct buf text;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP(record_deinit) struct record bad;
		record_init(&bad);
		assert_int_equal(record_parse(texts[i], strlen(texts[i]), &bad), -EBADMSG);
	}
	make_record(&r);
	buf_init(&text, RECORD_JSON_MAX);
	assert_int_equal(record_format(&r, &text), 0);
	/* Each word that is another breaks it. */
	static const char *const words[] = { "rootfs", "one", "imported", "chain" };
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		CLEANUP(record_deinit) struct record bad;
		char *at = memmem(buf_data(&text), buf_len(&text), words[i], strlen(words[i]));
		assert_non_null(at);
		char old = *at;
		*at = '\x01';
		record_init(&bad);
		assert_int_equal(record_parse(buf_data(&text), buf_len(&text), &bad), -EBADMSG);
		*at = old;
	}
}

static int parse_again(void *ctx)
{
	const struct buf *text = ctx;
	CLEANUP(record_deinit) struct record r;
	record_init(&r);
	return record_parse(buf_data(text), buf_len(text), &r);
}

static int format_again(void *ctx)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, RECORD_JSON_MAX);
	return record_format(ctx, &text);
}

static void test_out_of_memory(void **state)
{
	CLEANUP(record_deinit) struct record r;
	CLEANUP(buf_deinit) struct buf text;
	(void)state;
	make_record(&r);
	buf_init(&text, RECORD_JSON_MAX);
	assert_int_equal(record_format(&r, &text), 0);
	for_each_failing_alloc(parse_again, &text);
	for_each_failing_alloc(format_again, &r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_round_trip),    fixture_test(test_names),
		fixture_test(test_aci),           fixture_test(test_id_text),
		fixture_test(test_largest),       fixture_test(test_damaged),
		fixture_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
