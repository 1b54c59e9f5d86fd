/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scratch disk of a guest: opened, walked, every file mapped and a bit of it read. The input is
 * a list of blocks of a disk that is otherwise zeros: a block number, 16 bits little endian, and
 * the block's 1024 bytes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "images/export/ext4.h"
#include "lib/base/macros.h"
#include "lib/os/fd.h"

#define BLOCK       ((size_t)1024)
#define BLOCKS      1024
#define RECORD_SIZE (2 + BLOCK)

static int make_disk(const uint8_t *data, size_t size)
{
	int fd = memfd_create("disk", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, BLOCKS * BLOCK) < 0)
		abort();
	for (; size >= RECORD_SIZE; data += RECORD_SIZE, size -= RECORD_SIZE) {
		off_t block = (data[0] | data[1] << 8) % BLOCKS;
		if (pwrite(fd, data + 2, BLOCK, block * (off_t)BLOCK) < 0)
			abort();
	}
	return fd;
}

static void read_file(const struct content_reader *r, const struct tree_inode *inode)
{
	CLEANUP(content_map_deinit) struct content_map map = CONTENT_MAP_INIT;
	struct err e = ERR_INIT;
	char mem[64];
	if (r->map(r->ctx, inode, &map, &e) < 0) {
		if (e.text[0] == '\0')
			abort();
		return;
	}
	for (size_t i = 0; i < map.n; i++) {
		const struct content_piece *p = &map.v[i];
		if (p->len == 0 || p->offset + p->len > tree_size(inode))
			abort();
		r->read(r->ctx, p, 0, mem, (size_t)MIN(p->len, sizeof(mem)), &e);
	}
}

static void read_files(const struct content_reader *r, const struct tree_node *dir)
{
	for (const struct tree_node *n = tree_children(dir); n; n = tree_next(n)) {
		if (strchr(n->name, '/') || !n->name[0])
			abort();
		if (S_ISDIR(tree_inode_of(n)->mode))
			read_files(r, n);
		else if (S_ISREG(tree_inode_of(n)->mode))
			read_file(r, tree_inode_of(n));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_INIT;
	struct ext4 *disk = NULL;
	struct ext4_changes changes = { 0 };
	cleanup_fd int fd = make_disk(data, size);
	int r = ext4_open(fd, &disk, &e);
	if (r == 0)
		r = ext4_tree(disk, "app", &changes, &e);
	if (r == 0) {
		const struct content_reader reader = ext4_reader(disk);
		read_files(&reader, tree_root(changes.tree));
	} else if (r > 0 || e.text[0] == '\0') {
		abort();
	}
	tree_free(changes.tree);
	ext4_free(disk);
	return 0;
}
