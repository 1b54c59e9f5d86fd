/* SPDX-License-Identifier: Apache-2.0 */
#include "images/render/span.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "tests/support/cmocka.h"
#include "tests/support/fixture.h"

static struct span make_span(const char *text, uint64_t offset, uint64_t size)
{
	int fd = memfd_create("span", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return (struct span){ .fd = fd, .offset = offset, .size = size };
}

static void test_read_within(void **state)
{
	(void)state;
	CLEANUP(span_deinit) struct span span = make_span("0123456789", 2, 7);
	char mem[8] = "";
	assert_int_equal(span_read(&span, mem, 7, 0), 0);
	assert_string_equal(mem, "2345678");
	assert_int_equal(span_read(&span, mem, 2, 5), 0);
	assert_memory_equal(mem, "78", 2);
	assert_int_equal(span_read(&span, mem, 0, 7), 0);
}

/* A span ends where it says, whatever follows in the file. */
static void test_read_beyond(void **state)
{
	(void)state;
	CLEANUP(span_deinit) struct span span = make_span("0123456789", 2, 7);
	char mem[8];
	assert_int_equal(span_read(&span, mem, 3, 5), -ENODATA);
	assert_int_equal(span_read(&span, mem, 0, 8), -ENODATA);
	assert_int_equal(span_read(&span, mem, 1, UINT64_MAX), -ENODATA);
	assert_int_equal(span_read(&span, mem, SIZE_MAX, 1), -ENODATA);
}

static void test_read_truncated(void **state)
{
	(void)state;
	CLEANUP(span_deinit) struct span span = make_span("0123456789", 2, 7);
	char mem[8];
	assert_int_equal(ftruncate(span.fd, 8), 0);
	assert_int_equal(span_read(&span, mem, 6, 0), 0);
	assert_int_equal(span_read(&span, mem, 7, 0), -ENODATA);
}

static void test_deinit(void **state)
{
	(void)state;
	struct span span = make_span("", 0, 0);
	int fd = span.fd;
	span_deinit(&span);
	assert_int_equal(span.fd, -EBADF);
	assert_int_equal(close(fd), -1);
	span_deinit(&span);
	span_deinit(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_read_within),
		fixture_test(test_read_beyond),
		fixture_test(test_read_truncated),
		fixture_test(test_deinit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
