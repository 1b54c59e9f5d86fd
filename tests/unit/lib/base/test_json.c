/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/json.h"

#include <errno.h>
#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static int parse(const char *text, struct json_object **ret)
{
	return json_parse(text, strlen(text), ret);
}

static void test_parse_accepts(void **state)
{
	(void)state;
	static const char *const good[] = {
		"{}",
		"[]",
		"\"x\"",
		"true",
		"{\"a\":[1,2,{}]} \r\n\t",
		" {}",
		"1",
		"12345",
		"-7",
		"1.5",
		"7 ",
		"\"\xc3\xa4\"",
		"{\"\":1}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		cleanup_json struct json_object *obj = NULL;
		if (parse(good[i], &obj) != 0 || !obj)
			fail_msg("refused: %s", good[i]);
	}
}

static void test_parse_refuses(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",         " ",       "{",       "{}x",      "{} {}", "[1,]",      "{\"a\":1,}",
		"// x\n{}", "/* */{}", "{'a':1}", "\"\xff\"", "nul",   "null",      "tru",
		"\"a",      "[",       "01",      "+1",       "NaN",   "{\"a\" 1}", "1 2",
		"\"\xc3\"", "{}\v",    "12x",     "--1",      "1e",    "{a:1}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct json_object *obj = NULL;
		if (parse(bad[i], &obj) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
		assert_null(obj);
	}
}

static void test_parse_embedded_nul(void **state)
{
	(void)state;
	struct json_object *obj = NULL;
	assert_int_equal(json_parse("{}\0", 3, &obj), -EBADMSG);
	assert_int_equal(json_parse("12\0", 3, &obj), -EBADMSG);
	assert_int_equal(json_parse("1\0002", 3, &obj), -EBADMSG);
	assert_int_equal(json_parse("\0{}", 3, &obj), -EBADMSG);
	assert_int_equal(json_parse("{\0}", 3, &obj), -EBADMSG);
	assert_null(obj);
}

/* Only the given length is read: there is no NUL behind it. */
static void test_parse_length(void **state)
{
	(void)state;
	cleanup_json struct json_object *obj = NULL;
	assert_int_equal(json_parse("{}x", 2, &obj), 0);
	json_object_put(TAKE_PTR(obj));
	assert_int_equal(json_parse("123", 2, &obj), 0);
	assert_int_equal(json_object_get_int(obj), 12);
}

static void make_nested(char *text, size_t depth)
{
	memset(text, '[', depth);
	memset(text + depth, ']', depth);
	text[2 * depth] = '\0';
}

static void test_parse_depth(void **state)
{
	(void)state;
	char text[200];
	cleanup_json struct json_object *obj = NULL;
	make_nested(text, JSON_DEPTH_MAX);
	assert_int_equal(parse(text, &obj), 0);
	json_object_put(TAKE_PTR(obj));
	make_nested(text, JSON_DEPTH_MAX + 1);
	assert_int_equal(parse(text, &obj), -EBADMSG);
	assert_null(obj);
}

static void test_get_str(void **state)
{
	(void)state;
	cleanup_json struct json_object *obj = NULL;
	assert_int_equal(parse("{\"s\":\"abc\",\"n\":1,\"z\":\"a\\u0000b\",\"x\":null}", &obj), 0);
	const char *s = "unset";
	assert_int_equal(json_get_str(obj, "s", 2, &s), -EBADMSG);
	assert_int_equal(json_get_str(obj, "n", 9, &s), -EBADMSG);
	assert_int_equal(json_get_str(obj, "z", 9, &s), -EBADMSG);
	assert_int_equal(json_get_str(obj, "x", 9, &s), -ENOENT);
	assert_int_equal(json_get_str(obj, "y", 9, &s), -ENOENT);
	assert_int_equal(json_get_str(NULL, "y", 9, &s), -ENOENT);
	assert_string_equal(s, "unset");
	assert_int_equal(json_get_str(obj, "s", 3, &s), 0);
	assert_string_equal(s, "abc");
}

static void test_get_int(void **state)
{
	(void)state;
	cleanup_json struct json_object *obj = NULL;
	assert_int_equal(parse("{\"n\":5,\"f\":5.0,\"s\":\"5\",\"big\":9223372036854775808,"
			       "\"huge\":99999999999999999999999,\"max\":9223372036854775807,"
			       "\"min\":-9223372036854775807,\"under\":-9223372036854775809}",
			       &obj),
			 0);
	int64_t n = 4711;
	assert_int_equal(json_get_int(obj, "n", 6, 9, &n), -EBADMSG);
	assert_int_equal(json_get_int(obj, "n", 0, 4, &n), -EBADMSG);
	assert_int_equal(json_get_int(obj, "f", 0, 9, &n), -EBADMSG);
	assert_int_equal(json_get_int(obj, "s", 0, 9, &n), -EBADMSG);
	assert_int_equal(json_get_int(obj, "big", 0, INT64_MAX, &n), -EBADMSG);
	assert_int_equal(json_get_int(obj, "huge", 0, INT64_MAX, &n), -EBADMSG);
	assert_int_equal(json_get_int(obj, "under", INT64_MIN, 0, &n), -EBADMSG);
	assert_int_equal(json_get_int(obj, "none", 0, 9, &n), -ENOENT);
	assert_int_equal(n, 4711);
	assert_int_equal(json_get_int(obj, "n", 5, 5, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(json_get_int(obj, "max", 0, INT64_MAX, &n), 0);
	assert_true(n == INT64_MAX);
	assert_int_equal(json_get_int(obj, "min", INT64_MIN, 0, &n), 0);
	assert_true(n == -INT64_MAX);
}

static void test_get_bool(void **state)
{
	(void)state;
	cleanup_json struct json_object *obj = NULL;
	assert_int_equal(parse("{\"t\":true,\"n\":1}", &obj), 0);
	bool b = false;
	assert_int_equal(json_get_bool(obj, "n", &b), -EBADMSG);
	assert_int_equal(json_get_bool(obj, "x", &b), -ENOENT);
	assert_false(b);
	assert_int_equal(json_get_bool(obj, "t", &b), 0);
	assert_true(b);
}

static void test_get_strv(void **state)
{
	(void)state;
	cleanup_json struct json_object *obj = NULL;
	assert_int_equal(parse("{\"l\":[\"a\",\"bc\"],\"n\":[1],\"x\":[null],\"o\":{}}", &obj), 0);
	cleanup_strv struct strv sv;
	strv_init(&sv, 3);
	assert_int_equal(json_get_strv(obj, "l", 1, &sv), -EBADMSG);
	strv_deinit(&sv);
	assert_int_equal(json_get_strv(obj, "n", 9, &sv), -EBADMSG);
	assert_int_equal(json_get_strv(obj, "x", 9, &sv), -EBADMSG);
	assert_int_equal(json_get_strv(obj, "o", 9, &sv), -EBADMSG);
	assert_int_equal(json_get_strv(obj, "none", 9, &sv), -ENOENT);
	assert_int_equal(sv.n, 0);
	assert_int_equal(json_get_strv(obj, "l", 2, &sv), 0);
	assert_int_equal(json_get_strv(obj, "l", 2, &sv), -E2BIG);
	assert_int_equal(sv.n, 2);
	assert_string_equal(sv.v[1], "bc");
}

static void test_member(void **state)
{
	(void)state;
	cleanup_json struct json_object *list = NULL;
	assert_int_equal(parse("[1]", &list), 0);
	assert_null(json_member(NULL, "a"));
	assert_null(json_member(list, "a"));
}

static void test_put_takes_ownership(void **state)
{
	(void)state;
	long before = fault_live_allocs();
	assert_int_equal(json_put(NULL, "a", json_object_new_string("x")), -ENOMEM);
	assert_int_equal(fault_live_allocs(), before);
	cleanup_json struct json_object *obj = json_object_new_object();
	assert_int_equal(json_put(obj, "a", NULL), -ENOMEM);
	assert_null(json_member(obj, "a"));
}

static int build(struct json_object **ret)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	cleanup_strv struct strv sv;
	strv_init(&sv, 2);
	int r = strv_add(&sv, "x");
	if (r == 0)
		r = json_put_str(obj, "s", "a\"\n\x01");
	if (r == 0)
		r = json_put_int(obj, "i", INT64_MIN);
	if (r == 0)
		r = json_put_bool(obj, "b", true);
	if (r == 0)
		r = json_put_strv(obj, "l", &sv);
	if (r == 0)
		*ret = TAKE_PTR(obj);
	return r;
}

static void test_build(void **state)
{
	(void)state;
	cleanup_json struct json_object *obj = NULL;
	assert_int_equal(build(&obj), 0);
	assert_string_equal(
		json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN),
		"{\"s\":\"a\\\"\\n\\u0001\",\"i\":-9223372036854775808,\"b\":true,\"l\":[\"x\"]}");
}

static void assert_written(const char *text, const char *plain, const char *pretty)
{
	cleanup_json struct json_object *obj = NULL;
	cleanup_buf struct buf out;
	buf_init(&out, 10000);
	assert_int_equal(parse(text, &obj), 0);
	assert_int_equal(json_write(obj, false, &out), 0);
	cleanup_free char *line = buf_take_string(&out);
	assert_string_equal(line, plain);
	assert_int_equal(json_write(obj, true, &out), 0);
	cleanup_free char *lines = buf_take_string(&out);
	assert_string_equal(lines, pretty);
}

/* The length that is told before is that which is written, whatever has to be escaped. */
static void test_text_len(void **state)
{
	static const char *const texts[] = { "",           "plain",      "\"\\",
					     "\b\t\n\f\r", "\1\x1f\x7f", "gr\xc3\xbc\xc3\x9f/" };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cleanup_json struct json_object *obj = json_object_new_string(texts[i]);
		cleanup_buf struct buf out;
		buf_init(&out, 100);
		assert_int_equal(json_write(obj, false, &out), 0);
		assert_int_equal(json_text_len(texts[i]), buf_len(&out));
	}
}

/* All at once; a value that could not be made spoils the whole, and nothing is leaked. */
static void test_make(void **state)
{
	CLEANUP(strv_deinit) struct strv sv;
	cleanup_buf struct buf out;
	(void)state;
	strv_init(&sv, 4);
	buf_init(&out, 1024);
	assert_int_equal(strv_add(&sv, "x"), 0);
	cleanup_json struct json_object *obj =
		json_make("n", json_object_new_int64(1), "l", json_list_strv(&sv), NULL);
	assert_non_null(obj);
	assert_int_equal(json_append(json_member(obj, "l"), json_object_new_int64(2)), 0);
	assert_int_equal(json_append(json_member(obj, "l"), NULL), -ENOMEM);
	assert_int_equal(json_append(NULL, json_object_new_int64(2)), -ENOMEM);
	assert_int_equal(json_write(obj, false, &out), 0);
	cleanup_free char *text = buf_take_string(&out);
	assert_string_equal(text, "{\"n\":1,\"l\":[\"x\",2]}");
	assert_null(json_make("a", NULL, "b", json_object_new_int64(1), NULL));
}

static void test_write(void **state)
{
	(void)state;
	assert_written("{}", "{}", "{}");
	assert_written("[ ]", "[]", "[]");
	assert_written(
		"[1, {\"a\" : [null, true, false]}, \"x\"]", "[1,{\"a\":[null,true,false]},\"x\"]",
		"[\n  1,\n  {\n    \"a\":[\n      null,\n      true,\n      false\n    ]\n  },\n"
		"  \"x\"\n]");
	assert_written(
		"[-9223372036854775808,9223372036854775807,18446744073709551615,0,-1]",
		"[-9223372036854775808,9223372036854775807,18446744073709551615,0,-1]",
		"[\n  -9223372036854775808,\n  9223372036854775807,\n  18446744073709551615,\n"
		"  0,\n  -1\n]");
	static const char all[] = "\"\\b\\t\\n\\f\\r\\\"\\\\/\\u0000\\u0001\\u001f\x7f\xc3\xa4\"";
	assert_written(all, all, all);
	assert_written("\"a\\n\\nb\\n\"", "\"a\\n\\nb\\n\"", "\"a\\n\\nb\\n\"");
	assert_written("{\"k\\n\":\"\"}", "{\"k\\n\":\"\"}", "{\n  \"k\\n\":\"\"\n}");
}

static void test_write_limits(void **state)
{
	(void)state;
	char text[200];
	cleanup_json struct json_object *deep = NULL, *number = NULL;
	cleanup_buf struct buf out, small;
	buf_init(&out, 1000);
	make_nested(text, JSON_DEPTH_MAX);
	assert_int_equal(parse(text, &deep), 0);
	assert_int_equal(json_write(deep, false, &out), 0);
	assert_int_equal(buf_len(&out), 2 * JSON_DEPTH_MAX);
	buf_init(&small, 2 * JSON_DEPTH_MAX - 1);
	assert_int_equal(json_write(deep, false, &small), -EMSGSIZE);
	for (int i = 0; i < 2; i++) {
		struct json_object *outer = json_object_new_array();
		json_object_array_add(outer, TAKE_PTR(deep));
		deep = outer;
	}
	assert_int_equal(json_write(deep, false, &out), -EINVAL);
	assert_int_equal(parse("1.5", &number), 0);
	assert_int_equal(json_write(number, false, &out), -EINVAL);
	buf_deinit(&out);
	assert_int_equal(json_write(NULL, false, &out), 0);
	assert_memory_equal(buf_data(&out), "null", 4);
}

/* Strings that are not UTF-8 cannot be sent. */
static void test_build_refuses_other_encodings(void **state)
{
	(void)state;
	cleanup_json struct json_object *obj = json_object_new_object();
	cleanup_strv struct strv sv;
	strv_init(&sv, 2);
	assert_int_equal(strv_add(&sv, "\xe4"), 0);
	assert_int_equal(json_put_str(obj, "s", "\xe4"), -EILSEQ);
	assert_int_equal(json_put_strv(obj, "l", &sv), -EILSEQ);
	assert_int_equal(json_object_object_length(obj), 0);
}

static int build_and_check(void *ctx)
{
	(void)ctx;
	cleanup_json struct json_object *obj = NULL;
	int r = build(&obj);
	if (r < 0)
		return r;
	cleanup_buf struct buf out;
	buf_init(&out, 1000);
	r = json_write(obj, true, &out);
	if (r < 0)
		return r;
	const char *s;
	return json_get_str(obj, "s", 9, &s) == 0 && strcmp(s, "a\"\n\x01") == 0 ? 0 : 1;
}

/* Longer than the inline storage of a string in json-c. */
#define LONG_STRING "this is a string of sixty-four characters or even more than that"

static int parse_and_read(void *ctx)
{
	const char *text = ctx;
	cleanup_json struct json_object *obj = NULL;
	cleanup_strv struct strv sv;
	strv_init(&sv, 40);
	int r = parse(text, &obj);
	if (r == 0)
		r = json_get_strv(obj, "l", 100, &sv);
	if (r < 0)
		return r;
	return sv.n == 2 && strcmp(sv.v[1], LONG_STRING) == 0 ? 0 : 1;
}

static void test_short_of_memory(void **state)
{
	(void)state;
	for_each_failing_alloc_lenient(build_and_check, NULL);
	char text[] = "{\"l\":[\"a\",\"" LONG_STRING "\"],\"b\":{\"c\":1}}";
	for_each_failing_alloc_lenient(parse_and_read, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_parse_accepts),
		fixture_test(test_parse_refuses),
		fixture_test(test_parse_embedded_nul),
		fixture_test(test_parse_length),
		fixture_test(test_parse_depth),
		fixture_test(test_get_str),
		fixture_test(test_get_int),
		fixture_test(test_get_bool),
		fixture_test(test_get_strv),
		fixture_test(test_member),
		fixture_test(test_put_takes_ownership),
		fixture_test(test_build),
		fixture_test(test_text_len),
		fixture_test(test_make),
		fixture_test(test_write),
		fixture_test(test_write_limits),
		fixture_test(test_build_refuses_other_encodings),
		fixture_test(test_short_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
