/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/tar_head.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SIZE_OCTAL_MAX ((UINT64_C(1) << 33) - 1) /* eleven octal digits */

/* Where the fields are. */
enum {
	AT_MODE = 100,
	AT_UID = 108,
	AT_GID = 116,
	AT_SIZE = 124,
	AT_MTIME = 136,
	AT_CHECKSUM = 148,
	AT_TYPE = 156,
	AT_MAGIC = 257,
	SIZE_LEN = 12,
};

static void tar_head_put(unsigned char *head, size_t at, const char *text)
{
	memcpy(head + at, text, strlen(text));
}

static void put_size(unsigned char *head, uint64_t size)
{
	char text[24];
	if (size <= SIZE_OCTAL_MAX) {
		snprintf(text, sizeof(text), "%011llo", (unsigned long long)size);
		tar_head_put(head, AT_SIZE, text);
		return;
	}
	head[AT_SIZE] = 0x80;
	for (size_t i = SIZE_LEN - 1; size > 0; i--, size >>= 8)
		head[AT_SIZE + i] = (unsigned char)size;
}

int tar_head_fill(unsigned char head[TAR_HEAD_SIZE], const char *name, uint64_t size)
{
	unsigned int sum = 0;
	char text[16];
	if (strlen(name) > TAR_HEAD_NAME_MAX)
		return -ENAMETOOLONG;
	memset(head, 0, TAR_HEAD_SIZE);
	tar_head_put(head, 0, name);
	tar_head_put(head, AT_MODE, "0000644");
	tar_head_put(head, AT_UID, "0000000");
	tar_head_put(head, AT_GID, "0000000");
	tar_head_put(head, AT_MTIME, "00000000000");
	tar_head_put(head, AT_CHECKSUM, "        ");
	head[AT_TYPE] = '0';
	memcpy(head + AT_MAGIC, "ustar\00000", 8);
	put_size(head, size);
	for (size_t i = 0; i < TAR_HEAD_SIZE; i++)
		sum += head[i];
	snprintf(text, sizeof(text), "%06o", sum);
	memcpy(head + AT_CHECKSUM, text, 7);
	return 0;
}
