/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/http/http_head.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

/* Takes the fields of @text, each ended by "\n". */
static void read_fields(struct http_head *h, const char *text)
{
	http_head_init(h);
	while (*text) {
		size_t name = strcspn(text, ":"), len = strcspn(text, "\n");
		cleanup_free char *field = strndup(text, name);
		cleanup_free char *value = strndup(text + name + 1, len - name - 1);
		assert_true(field && value);
		http_head_take(h, field, value);
		text += len + 1;
	}
}

static void test_everything(void **state)
{
	(void)state;
	struct http_head h;
	read_fields(&h, "content-length:  12 \n"
			"Content-Range: bytes 5-16/100\n"
			"ETAG: \"a b\"\n"
			"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\n"
			"Cache-Control: public, Max-Age=\"60\" , no-cache\n"
			"Retry-After: 7\n"
			"Location:\t/x\n");
	assert_true(h.has_length);
	assert_int_equal(h.length, 12);
	assert_true(h.range.given && h.range.known);
	assert_int_equal(h.range.first, 5);
	assert_int_equal(h.range.last, 16);
	assert_int_equal(h.range.total, 100);
	assert_string_equal(h.validator.etag, "\"a b\"");
	assert_string_equal(h.validator.last_modified, "Sun, 06 Nov 1994 08:49:37 GMT");
	assert_int_equal(h.validator.max_age, 60);
	assert_true(h.validator.no_cache);
	assert_false(h.validator.no_store);
	assert_int_equal(h.retry_after, 7);
	assert_string_equal(h.location, "/x");
}

static void test_nothing(void **state)
{
	(void)state;
	struct http_head h;
	read_fields(&h, "X: y\n");
	assert_false(h.has_length || h.range.given);
	assert_int_equal(h.retry_after, -1);
	assert_int_equal(h.validator.max_age, -1);
	assert_string_equal(h.validator.etag, "");
	assert_string_equal(h.location, "");
}

static void test_ranges(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"bytes */100",
		"bytes 5-4/100",
		"bytes 5-100/100",
		"bytes 5-9",
		"bytes -9/100",
		"bytes 5-/100",
		"pages 5-9/100",
		"bytes 5-9/x",
		"bytes 5-9/100/1",
		"5-9/100",
		"bytes +5-9/100",
		"bytes 5-18446744073709551616/*",
		"",
	};
	char line[128];
	struct http_head h;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(line, sizeof(line), "Content-Range: %s\n", bad[i]);
		read_fields(&h, line);
		assert_false(h.range.given);
	}
	read_fields(&h, "Content-Range: bytes 0-18446744073709551614/18446744073709551615\n");
	assert_true(h.range.given);
	read_fields(&h, "Content-Range: bytes 5-9/*\n");
	assert_true(h.range.given && !h.range.known);
	/* Of several that differ the last one counts; what it says is checked against the body. */
	read_fields(&h, "Content-Range: bytes 5-9/10\nContent-Range: bytes 1-9/10\n");
	assert_int_equal(h.range.first, 1);
}

static int64_t max_age(const char *value)
{
	char line[128];
	struct http_head h;
	snprintf(line, sizeof(line), "Cache-Control: %s\n", value);
	read_fields(&h, line);
	return h.validator.max_age;
}

static void test_cache_control(void **state)
{
	(void)state;
	struct http_head h;
	assert_int_equal(max_age("max-age=0"), 0);
	assert_int_equal(max_age("MAX-AGE = 5"), 5);
	assert_int_equal(max_age("s-maxage=5"), -1);
	assert_int_equal(max_age("max-age=2147483648"), HTTP_SECONDS_MAX);
	assert_int_equal(max_age("max-age=2147483649"), HTTP_SECONDS_MAX);
	assert_int_equal(max_age("max-age=999999999999999999999999"), HTTP_SECONDS_MAX);
	assert_int_equal(max_age("max-age=-1"), 0);
	assert_int_equal(max_age("max-age"), 0);
	assert_int_equal(max_age("max-age=x"), 0);
	assert_int_equal(max_age("max-age=60, max-age=5"), 5);
	assert_int_equal(max_age(",,=,"), -1);
	read_fields(&h, "Cache-Control: No-Store\nCache-Control: no-cache=\"Set-Cookie, X\"\n");
	assert_true(h.validator.no_store && h.validator.no_cache);
}

/* At the limits, and one beyond them. */
static void test_limits(void **state)
{
	(void)state;
	static char value[HTTP_URL_MAX + 2];
	struct http_head h;
	const struct {
		const char *name;
		size_t max;
		const char *value;
	} fields[] = {
		{ "Location", HTTP_URL_MAX, h.location },
		{ "ETag", HTTP_ETAG_MAX, h.validator.etag },
		{ "Last-Modified", HTTP_DATE_MAX, h.validator.last_modified },
	};
	memset(value, 'x', sizeof(value));
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		for (size_t more = 0; more < 2; more++) {
			value[fields[i].max + more] = '\0';
			http_head_init(&h);
			http_head_take(&h, fields[i].name, value);
			value[fields[i].max + more] = 'x';
			assert_int_equal(strlen(fields[i].value), more ? 0 : fields[i].max);
		}
	memcpy(value + 1023 - 10, ",max-age=50", 12);
	value[1023] = '\0';
	http_head_init(&h);
	http_head_take(&h, "Cache-Control", value);
	assert_int_equal(h.validator.max_age, 5);
	value[1023] = '0';
	http_head_init(&h);
	http_head_take(&h, "Cache-Control", value);
	assert_int_equal(h.validator.max_age, -1);
	read_fields(&h, "Content-Length: 18446744073709551615\n");
	assert_true(h.has_length && h.length == UINT64_MAX);
	read_fields(&h, "Content-Length: 18446744073709551616\n");
	assert_false(h.has_length);
}

static void test_hostile_values(void **state)
{
	(void)state;
	struct http_head h;
	http_head_init(&h);
	http_head_take(&h, "ETag", "\"\377\"");
	http_head_take(&h, "Last-Modified", "\033[2J");
	assert_string_equal(h.validator.etag, "");
	assert_string_equal(h.validator.last_modified, "");
}

static void test_validators(void **state)
{
	(void)state;
	const struct http_validator none = { .max_age = -1 }, strong = { .etag = "\"a\"" },
				    other = { .etag = "\"b\"", .last_modified = "1" },
				    weak = { .etag = "W/\"a\"" },
				    dated = { .etag = "W/\"a\"", .last_modified = "1" },
				    later = { .last_modified = "2" };
	assert_false(http_validator_fits_ranges(&none));
	assert_false(http_validator_fits_ranges(&weak));
	assert_string_equal(http_validator_if_range(&strong), "\"a\"");
	assert_string_equal(http_validator_if_range(&other), "\"b\"");
	assert_string_equal(http_validator_if_range(&dated), "1");
	assert_true(http_validator_may_equal(&strong, &strong));
	assert_true(http_validator_may_equal(&strong, &none));
	assert_false(http_validator_may_equal(&strong, &other));
	assert_false(http_validator_may_equal(&other, &later));
	assert_true(http_validator_may_equal(&strong, &later));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_everything), fixture_test(test_nothing),
		fixture_test(test_ranges),     fixture_test(test_cache_control),
		fixture_test(test_limits),     fixture_test(test_hostile_values),
		fixture_test(test_validators),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
