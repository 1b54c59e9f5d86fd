/* SPDX-License-Identifier: Apache-2.0 */
/* The table of contents of an image archive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "images/fetch/tar_index.h"
#include "lib/os/fd.h"

#define TAR_BLOCK_SIZE ((size_t)512)

/* Makes the checksum of every block that looks like a header right. */
static void fix_checksums(uint8_t *data, size_t size)
{
	for (size_t at = 0; at + TAR_BLOCK_SIZE <= size; at += TAR_BLOCK_SIZE) {
		uint8_t *h = data + at;
		unsigned int sum = 8 * ' ';
		if (memcmp(h + 257, "ustar", 5) != 0)
			continue;
		for (size_t i = 0; i < TAR_BLOCK_SIZE; i++)
			sum += i >= 148 && i < 156 ? 0 : h[i];
		for (size_t i = 0; i < 6; i++)
			h[148 + i] = (uint8_t)('0' + (sum >> (15 - 3 * i) & 7));
		h[154] = '\0';
		h[155] = ' ';
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "manifest.json", "index.json", "a/layer.tar", "", "b",
					     "blobs/sha256/x" };
	uint8_t *copy = malloc(size + 1);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	fix_checksums(copy, size);
	CLEANUP(span_deinit)
	struct span tar = { .fd = memfd_create("tar", MFD_CLOEXEC), .size = size };
	if (fd_write_all(tar.fd, copy, size) < 0)
		abort();
	cleanup_buf struct buf index;
	buf_init(&index, TAR_INDEX_MAX);
	struct err e = ERR_INIT;
	if (tar_index_scan(&tar, &index, &e) == 0) {
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			uint64_t offset, len;
			if (tar_index_find(&index, size, names[i], &offset, &len) == 0 &&
			    (offset > size || len > size - offset))
				abort();
		}
	} else if (e.code >= 0 || e.text[0] == '\0') {
		abort();
	}
	free(copy);
	return 0;
}
