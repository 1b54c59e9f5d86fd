/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"

#define GOLDEN_MAX ((size_t)64 * 1024)

static void golden_write(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

void golden_check(const char *name, const char *text, size_t len)
{
	char path[4096];
	static char expected[GOLDEN_MAX];
	const char *source = getenv("HUSK_SOURCE_DIR");
	assert_non_null(source);
	snprintf(path, sizeof(path), "%s/tests/golden/%s", source, name);
	if (getenv("HUSK_GOLDEN_UPDATE"))
		golden_write(path, text, len);
	FILE *f = fopen(path, "re");
	if (!f)
		fail_msg("%s: missing", path);
	size_t n = fread(expected, 1, sizeof(expected), f);
	fclose(f);
	if (n != len || memcmp(expected, text, len) != 0)
		fail_msg("%s differs; now it is:\n%.*s", path, (int)len, text);
}
