/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report.h"

#include <errno.h>
#include <string.h>

#include "lib/base/json.h"
#include "tests/support/cmocka.h"
#include "tests/support/golden.h"
#include "tests/unit/bench/example.h"

static struct results results;

static void test_json(void **state)
{
	cleanup_buf struct buf out;
	cleanup_json struct json_object *read = NULL;
	(void)state;
	buf_init(&out, REPORT_MAX);
	example_make(&results);
	assert_int_equal(report_json(&results, &out), 0);
	golden_check("bench/results.json", buf_data(&out), buf_len(&out));
	assert_int_equal(json_parse(buf_data(&out), buf_len(&out), &read), 0);
}

static void test_csv(void **state)
{
	cleanup_buf struct buf out;
	(void)state;
	buf_init(&out, REPORT_MAX);
	example_make(&results);
	assert_int_equal(report_csv(&results, &out), 0);
	golden_check("bench/results.csv", buf_data(&out), buf_len(&out));
}

static void test_html(void **state)
{
	static char svg[] = "<svg>drawn</svg>";
	char *plots[RESULTS_ROWS_MAX] = { svg };
	cleanup_buf struct buf out;
	(void)state;
	buf_init(&out, REPORT_MAX);
	example_make(&results);
	assert_int_equal(report_html(&results, plots, &out), 0);
	golden_check("bench/index.html", buf_data(&out), buf_len(&out));
	cleanup_free char *text = buf_take_string(&out);
	assert_null(strstr(text, "<script"));
	assert_non_null(
		strstr(text, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;"));
	assert_non_null(strstr(text, "<svg>drawn</svg>"));
	assert_null(strstr(text, "http")); /* it needs nothing from elsewhere */
}

/* What says that a run was cut short, and that there is no gnuplot. */
static void test_partial(void **state)
{
	cleanup_buf struct buf out;
	(void)state;
	buf_init(&out, REPORT_MAX);
	example_make(&results);
	results.partial = true;
	assert_int_equal(report_html(&results, NULL, &out), 0);
	assert_int_equal(report_json(&results, &out), 0);
	assert_int_equal(report_csv(&results, &out), 0);
	cleanup_free char *text = buf_take_string(&out);
	assert_non_null(strstr(text, "<b>Partial:</b>"));
	assert_non_null(strstr(text, "gnuplot-nox"));
	assert_non_null(strstr(text, "\"partial\": true"));
	assert_non_null(strstr(text, ",yes,"));
	assert_null(strstr(text, ",no,"));
}

/* The bound of a report is an error like any other. */
static void test_too_long(void **state)
{
	(void)state;
	example_make(&results);
	for (size_t max = 0; max < 3000; max += 100) {
		cleanup_buf struct buf out;
		buf_init(&out, max);
		assert_int_equal(report_html(&results, NULL, &out), -EMSGSIZE);
	}
	cleanup_buf struct buf out;
	buf_init(&out, 100);
	assert_int_equal(report_csv(&results, &out), -EMSGSIZE);
	assert_int_equal(report_json(&results, &out), -EMSGSIZE);
}

static void test_number(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = { { 0, "0" },           { 0.0123, "0.012" },  { 1.2345, "1.23" },
		      { 12.345, "12.3" },   { 99.96, "100" },     { 123.4, "123" },
		      { 9994, "9994" },     { 9996, "10.0 k" },   { 123456, "123 k" },
		      { 999600, "1.00 M" }, { 1309802, "1.31 M" } };
	char text[64];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		report_number(cases[i].value, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),     cmocka_unit_test(test_csv),
		cmocka_unit_test(test_html),     cmocka_unit_test(test_partial),
		cmocka_unit_test(test_too_long), cmocka_unit_test(test_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
