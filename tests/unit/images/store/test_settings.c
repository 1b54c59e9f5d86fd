/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/settings.h"

#include <errno.h>
#include <string.h>

#include "images/render/render.h"
#include "tests/support/fixture.h"

static void test_defaults(void **state)
{
	(void)state;
	struct store_settings s;
	store_settings_init(&s);
	assert_int_equal(s.bytes_max, RENDER_BYTES_MAX);
	assert_int_equal(s.compression, RENDER_PLAIN);
	assert_int_equal(s.level, 0);
}

static void test_bytes_max(void **state)
{
	static const struct {
		const char *text;
		uint64_t want;
	} good[] = { { "1", 1 },
		     { "100000", 100000 },
		     { "200Ki", 204800 },
		     { "1.5k", 1500 },
		     { "1024Ti", STORE_BYTES_LIMIT } };
	static const char *const bad[] = { "", "lots", "-1", "1025Ti", "1.5GB", "12 G" };
	(void)state;
	struct store_settings s;
	store_settings_init(&s);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(store_settings_bytes_max(&s, "X", good[i].text, NULL), 0);
		assert_int_equal(s.bytes_max, good[i].want);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err e = ERR_INIT;
		assert_int_equal(store_settings_bytes_max(&s, "X", bad[i], &e), -EINVAL);
		assert_non_null(strstr(e.text, "\" is not a size of at most 1024Ti (give bytes"));
		assert_memory_equal(e.text, "X=\"", 3);
		assert_int_equal(s.bytes_max, STORE_BYTES_LIMIT);
	}
}

static void test_compression(void **state)
{
	static const struct {
		const char *text;
		enum render_compression want;
		int level;
	} good[] = { { "plain", RENDER_PLAIN, 0 },
		     { "lz4", RENDER_LZ4, 0 },
		     { "zstd", RENDER_ZSTD, 0 },
		     { "zstd:1", RENDER_ZSTD, 1 },
		     { "zstd:19", RENDER_ZSTD, 19 } };
	static const char *const bad[] = { "",       "gzip",    "lz4:1",  "zstd:",
					   "zstd:0", "zstd:20", "plain ", "zstd:x" };
	(void)state;
	struct store_settings s;
	store_settings_init(&s);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(store_settings_compression(&s, "X", good[i].text, NULL), 0);
		assert_int_equal(s.compression, good[i].want);
		assert_int_equal(s.level, good[i].level);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err e = ERR_INIT;
		assert_int_equal(store_settings_compression(&s, "X", bad[i], &e), -EINVAL);
		assert_non_null(strstr(e.text, "(give plain, lz4, zstd, or zstd:LEVEL"));
		assert_int_equal(s.compression, RENDER_ZSTD);
		assert_int_equal(s.level, 19);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_bytes_max),
		cmocka_unit_test(test_compression),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
