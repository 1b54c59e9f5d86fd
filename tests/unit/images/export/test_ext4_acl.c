/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/ext4_acl.h"

#include <errno.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/macros.h"
#include "tests/support/fixture.h"

/* The size that the list @disk, in hexadecimal digits, gets with room for @max, which is @want. */
static int convert(const char *disk, size_t max, const char *want)
{
	unsigned char from[256], to[256];
	char got[2 * sizeof(to) + 1];
	size_t size = strlen(disk) / 2;
	assert_int_equal(hex_decode(disk, from, size), 0);
	int r = ext4_acl_convert(from, size, to, max);
	if (r >= 0 && want) {
		hex_encode(to, (size_t)r, got);
		assert_string_equal(got, want);
	}
	return r;
}

/* As setfacl(1) makes it: user::rw, user:5:r, group::r, mask::r, other::-, group:70000:r. */
static const char disk[] = "01000000"
			   "01000600"
			   "0200040005000000"
			   "04000400"
			   "0800040070110100"
			   "10000400"
			   "20000000";
static const char attribute[] = "02000000"
				"01000600ffffffff"
				"0200040005000000"
				"04000400ffffffff"
				"0800040070110100"
				"10000400ffffffff"
				"20000000ffffffff";

static void test_list(void **state)
{
	(void)state;
	const int size = (int)strlen(attribute) / 2;
	assert_int_equal(convert(disk, (size_t)size, attribute), size);
	assert_int_equal(convert(disk, (size_t)size - 1, NULL), -E2BIG);
	assert_int_equal(convert("01000000", 4, "02000000"), 4);
	assert_int_equal(convert("01000000", 3, NULL), -E2BIG);
}

static void test_bad(void **state)
{
	static const char *const bad[] = {
		"",
		"010000",
		"02000000",   /* the other form */
		"0100000001", /* a part of an entry */
		"01000000010006",
		"0100000002000400", /* no number, or a part of it */
		"0100000002000400050000",
		"0100000003000400", /* no tag */
		"010000000100060040000000",
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(convert(bad[i], 256, NULL), -EBADMSG);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(ext4_acl_is("system.posix_acl_access"));
	assert_true(ext4_acl_is("system.posix_acl_default"));
	assert_false(ext4_acl_is("system.posix_acl"));
	assert_false(ext4_acl_is("user.posix_acl_access"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_list),
		fixture_test(test_bad),
		fixture_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
