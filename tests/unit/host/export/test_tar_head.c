/* SPDX-License-Identifier: Apache-2.0 */
#include "host/export/tar_head.h"

#include <errno.h>
#include <string.h>

#include "host/fetch/tar_index.h"
#include "tests/support/fixture.h"

struct archive_mem {
	unsigned char head[TAR_HEAD_SIZE];
	uint64_t size;
};

static int read_mem(void *ctx, void *mem, size_t size, uint64_t offset)
{
	const struct archive_mem *a = ctx;
	memset(mem, 0, size);
	if (offset < sizeof(a->head))
		memcpy(mem, a->head + offset,
		       size < sizeof(a->head) - offset ? size : sizeof(a->head) - (size_t)offset);
	return 0;
}

/* The image store's own reader sees what was written, on both sides of eleven octal digits. */
static void test_read_back(void **state)
{
	static const uint64_t sizes[] = {
		0, 1, 511, 512, UINT64_C(0x1ffffffff), UINT64_C(0x200000000), UINT64_C(1) << 40
	};
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct archive_mem a;
		struct err e = ERR_INIT;
		cleanup_buf struct buf index;
		uint64_t offset, size;
		assert_int_equal(tar_head_fill(a.head, "blobs/x", sizes[i]), 0);
		buf_init(&index, TAR_INDEX_MAX);
		uint64_t all = TAR_HEAD_SIZE + sizes[i] + tar_head_padding(sizes[i]) + TAR_END_SIZE;
		assert_int_equal(tar_index_scan(read_mem, &a, all, &index, &e), 0);
		assert_int_equal(tar_index_find(&index, all, "blobs/x", &offset, &size), 0);
		assert_int_equal(offset, TAR_HEAD_SIZE);
		assert_int_equal(size, sizes[i]);
	}
}

static void test_name(void **state)
{
	unsigned char head[TAR_HEAD_SIZE];
	char name[TAR_HEAD_NAME_MAX + 2];
	(void)state;
	memset(name, 'n', sizeof(name));
	name[TAR_HEAD_NAME_MAX] = '\0';
	assert_int_equal(tar_head_fill(head, name, 0), 0);
	name[TAR_HEAD_NAME_MAX] = 'n';
	name[TAR_HEAD_NAME_MAX + 1] = '\0';
	assert_int_equal(tar_head_fill(head, name, 0), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_read_back),
		fixture_test(test_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
