/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/tar_head.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "images/fetch/tar_index.h"
#include "tests/support/fixture.h"

/* The image store's own reader sees what was written, on both sides of eleven octal digits. */
static void test_read_back(void **state)
{
	static const uint64_t sizes[] = {
		0, 1, 511, 512, UINT64_C(0x1ffffffff), UINT64_C(0x200000000), UINT64_C(1) << 40
	};
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		unsigned char head[TAR_HEAD_SIZE];
		struct err e = ERR_INIT;
		cleanup_buf struct buf index;
		uint64_t offset, size;
		assert_int_equal(tar_head_fill(head, "blobs/x", sizes[i]), 0);
		buf_init(&index, TAR_INDEX_MAX);
		uint64_t all = TAR_HEAD_SIZE + sizes[i] + tar_head_padding(sizes[i]) + TAR_END_SIZE;
		CLEANUP(span_deinit)
		struct span tar = { .fd = memfd_create("tar", MFD_CLOEXEC), .size = all };
		assert_int_equal(pwrite(tar.fd, head, sizeof(head), 0), sizeof(head));
		assert_int_equal(ftruncate(tar.fd, (off_t)all), 0); /* the content is a hole */
		assert_int_equal(tar_index_scan(&tar, &index, &e), 0);
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
