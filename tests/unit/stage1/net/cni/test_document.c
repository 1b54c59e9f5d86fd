/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/document.h"

#include <errno.h>
#include <string.h>

#include "lib/base/json.h"
#include "tests/support/fixture.h"

static char text[CNI_DOCUMENT_MAX + 2];

static int parse(size_t len)
{
	cleanup_json struct json_object *doc = NULL;
	struct err e = ERR_INIT;
	int r = cni_document_parse(text, len, &doc, &e);
	assert_int_equal(r < 0, e.text[0] != '\0');
	return r;
}

/* {"a":{"a":...{}}}, so many objects one in the other. */
static size_t nest(size_t depth)
{
	size_t len = 0;
	for (size_t i = 0; i + 1 < depth; i++, len += 5)
		memcpy(text + len, "{\"a\":", 5);
	memset(text + len, '{', 1);
	memset(text + len + 1, '}', depth);
	return len + 1 + depth;
}

static void test_depth(void **state)
{
	(void)state;
	assert_int_equal(parse(nest(CNI_DEPTH_MAX)), 0);
	assert_int_equal(parse(nest(CNI_DEPTH_MAX + 1)), -EBADMSG);
}

/* {"a":[{},{},...]} of so many containers. */
static size_t widen(size_t n)
{
	size_t len = 6;
	memcpy(text, "{\"a\":[", 6);
	for (size_t i = 2; i < n; i++, len += 3)
		memcpy(text + len, "{},", 3);
	memcpy(text + len - 1, "]}", 2);
	return len + 1;
}

static void test_containers(void **state)
{
	(void)state;
	assert_int_equal(parse(widen(CNI_CONTAINERS_MAX)), 0);
	assert_int_equal(parse(widen(CNI_CONTAINERS_MAX + 1)), -EBADMSG);
}

/* {"a":"..."} of so many bytes; those that are escaped count as they are written. */
static size_t stretch(size_t len, char c)
{
	memset(text, c, len);
	memcpy(text, "{\"a\":\"", 6);
	memcpy(text + len - 2, "\"}", 2);
	return len;
}

static void test_size(void **state)
{
	(void)state;
	assert_int_equal(parse(stretch(CNI_DOCUMENT_MAX, 'x')), 0);
	assert_int_equal(parse(stretch(CNI_DOCUMENT_MAX + 1, 'x')), -EBADMSG);
	assert_int_equal(parse(stretch(1000, '\x01')), -EBADMSG);
}

static void test_kinds(void **state)
{
	(void)state;
	memcpy(text, "{\"a\":1.5}", 9);
	assert_int_equal(parse(9), -EBADMSG);
	memcpy(text, "[{}]", 4);
	assert_int_equal(parse(4), -EBADMSG);
	memcpy(text, "{\"a\":null}", 10);
	assert_int_equal(parse(10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_depth),
		fixture_test(test_containers),
		fixture_test(test_size),
		fixture_test(test_kinds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
