/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: libext2fs reaches the disk through an I/O manager of our own, which knows
 * pread(2) on one descriptor and nothing else: no path, no write, no cache. It counts what is read:
 * libext2fs follows blocks of extents and indirect blocks wherever they lead, so EXT4_READS_MAX is
 * what ends a circle. The superblock is checked before libext2fs sees it, because the sizes of its
 * tables come from there.
 */
#include "images/export/ext4_int.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/hex.h"
#include "lib/os/fd.h"

/*
 * What mkfs.ext4 may have been told by stage1 (MKFS_FEATURES of stage1/pod/mkfs.c) and
 * its own configuration. Others change what blocks mean.
 */
#define INCOMPAT_KNOWN                                                    \
	(EXT2_FEATURE_INCOMPAT_FILETYPE | EXT3_FEATURE_INCOMPAT_EXTENTS | \
	 EXT4_FEATURE_INCOMPAT_64BIT | EXT4_FEATURE_INCOMPAT_FLEX_BG |    \
	 EXT4_FEATURE_INCOMPAT_CSUM_SEED)
#define RO_COMPAT_REFUSED (EXT4_FEATURE_RO_COMPAT_BIGALLOC)

#define BLOCK_SIZE_LOG_MAX 6 /* 64 KiB */

/* What a small disk can need: a block has 16 inodes of 256 bytes, each read a few times. */
#define READS_PER_BLOCK 256
#define READS_FIRST     1024

int ext4_read_at(struct ext4 *d, uint64_t offset, void *mem, size_t len)
{
	if (offset > d->size || len > d->size - offset)
		return -ENODATA;
	size_t got;
	int r = fd_read_at(d->fd, mem, len, offset, &got);
	return r == 0 && got < len ? -ENODATA : r;
}

static errcode_t io_read(io_channel channel, unsigned long long block, int count, void *mem)
{
	struct ext4 *d = channel->private_data;
	uint64_t size = (uint64_t)channel->block_size, offset;
	/* A negative count is one of bytes. */
	size_t len = count < 0 ? 0 - (size_t)count : (size_t)count * size;
	if (__builtin_mul_overflow(block, size, &offset))
		return EXT2_ET_SHORT_READ;
	d->reads += count < 0 ? 1 : (uint64_t)count;
	if (d->reads > MIN(EXT4_READS_MAX, READS_FIRST + READS_PER_BLOCK * (d->size / size)))
		return EXT2_ET_CANCEL_REQUESTED;
	int r = ext4_read_at(d, offset, mem, len);
	if (r < 0 && r != -ENODATA && !d->error)
		d->error = r;
	return r == 0 ? 0 : EXT2_ET_SHORT_READ;
}

static errcode_t io_read_32(io_channel channel, unsigned long block, int count, void *mem)
{
	return io_read(channel, block, count, mem);
}

static errcode_t io_write(io_channel channel, unsigned long long block, int count, const void *mem)
{
	(void)channel;
	(void)block;
	(void)count;
	(void)mem;
	return EXT2_ET_RO_FILSYS;
}

static errcode_t io_write_32(io_channel channel, unsigned long block, int count, const void *mem)
{
	return io_write(channel, block, count, mem);
}

static errcode_t io_set_block_size(io_channel channel, int size)
{
	channel->block_size = size;
	return 0;
}

static errcode_t io_flush(io_channel channel)
{
	(void)channel;
	return 0;
}

static errcode_t io_close(io_channel channel)
{
	if (--channel->refcount > 0)
		return 0;
	free(channel->name);
	free(channel);
	return 0;
}

static errcode_t io_open(const char *name, int flags, io_channel *ret);

static struct struct_io_manager manager = {
	.magic = EXT2_ET_MAGIC_IO_MANAGER,
	.name = "descriptor",
	.open = io_open,
	.close = io_close,
	.set_blksize = io_set_block_size,
	.read_blk = io_read_32,
	.read_blk64 = io_read,
	.write_blk = io_write_32,
	.write_blk64 = io_write,
	.flush = io_flush,
};

/* @name is the struct ext4's address, as ext4_open() wrote it: libext2fs passes nothing else on. */
static errcode_t io_open(const char *name, int flags, io_channel *ret)
{
	struct ext4 *d;
	io_channel channel = calloc(1, sizeof(*channel));
	if (!channel || (flags & IO_FLAG_RW) ||
	    hex_decode(name, (unsigned char *)&d, sizeof(d)) < 0) {
		free(channel);
		return EXT2_ET_NO_MEMORY;
	}
	channel->name = strdup(name);
	if (!channel->name) {
		free(channel);
		return EXT2_ET_NO_MEMORY;
	}
	channel->magic = EXT2_ET_MAGIC_IO_CHANNEL;
	channel->manager = &manager;
	channel->block_size = 1024;
	channel->refcount = 1;
	channel->private_data = d;
	*ret = channel;
	return 0;
}

int ext4_damaged(struct err *e, const char *what, uint32_t ino)
{
	static const char hint[] = "its guest left it inconsistent; e2fsck -n tells more";
	if (ino == 0)
		return err_set(e, -EBADMSG, "the scratch disk is damaged: %s (%s)", what, hint);
	return err_set(e, -EBADMSG, "the scratch disk is damaged: inode %u %s (%s)", ino, what,
		       hint);
}

int ext4_fail(const struct ext4 *d, errcode_t code, uint32_t ino, struct err *e)
{
	char text[256];
	if (d->error)
		return err_sys(e, d->error, "the scratch disk cannot be read");
	if (code == EXT2_ET_NO_MEMORY || code == ENOMEM)
		return err_set(e, -ENOMEM, "out of memory");
	if (code == EXT2_ET_CANCEL_REQUESTED)
		return ext4_damaged(
			e, "it has too many blocks of metadata, or they lead in circles", 0);
	initialize_ext2_error_table();
	snprintf(text, sizeof(text), "%scannot be read: %s", ino == 0 ? "it " : "",
		 error_message(code));
	return ext4_damaged(e, text, ino);
}

/* Values of the superblock are little-endian. */
static int check_geometry(const struct ext4 *d, const struct ext2_super_block *s, struct err *e)
{
	uint32_t log = ext2fs_le32_to_cpu(s->s_log_block_size);
	uint64_t blocks = ext2fs_le32_to_cpu(s->s_blocks_count);
	if (ext2fs_le32_to_cpu(s->s_feature_incompat) & EXT4_FEATURE_INCOMPAT_64BIT)
		blocks |= (uint64_t)ext2fs_le32_to_cpu(s->s_blocks_count_hi) << 32;
	if (log > BLOCK_SIZE_LOG_MAX)
		return ext4_damaged(e, "no such block size", 0);
	uint64_t block_size = UINT64_C(1024) << log;
	if (blocks > d->size / block_size)
		return ext4_damaged(e, "the file is shorter than its file system", 0);
	if (ext2fs_le32_to_cpu(s->s_blocks_per_group) != 8 * block_size)
		return ext4_damaged(e, "no such block groups", 0);
	if (ext2fs_le32_to_cpu(s->s_inodes_count) > EXT4_INODES_MAX)
		return ext4_damaged(e, "it has too many inodes", 0);
	return 0;
}

static int check_superblock(struct ext4 *d, struct err *e)
{
	struct ext2_super_block s;
	_Static_assert(sizeof(s) == SUPERBLOCK_SIZE, "superblock");
	int r = ext4_read_at(d, SUPERBLOCK_OFFSET, &s, sizeof(s));
	if (r == -ENODATA)
		return ext4_damaged(e, "the file is too short for a file system", 0);
	if (r < 0)
		return err_sys(e, r, "the scratch disk cannot be read");
	if (ext2fs_le16_to_cpu(s.s_magic) != EXT2_SUPER_MAGIC)
		return ext4_damaged(e, "there is no ext4 file system on it", 0);
	uint32_t incompat = ext2fs_le32_to_cpu(s.s_feature_incompat) & ~(uint32_t)INCOMPAT_KNOWN;
	uint32_t ro = ext2fs_le32_to_cpu(s.s_feature_ro_compat) & (uint32_t)RO_COMPAT_REFUSED;
	if (incompat || ro)
		return err_set(e, -EBADMSG,
			       "the scratch disk has features that husk did not give it "
			       "(incompat %#x, ro_compat %#x)",
			       incompat, ro);
	return check_geometry(d, &s, e);
}

int ext4_open(int fd, struct ext4 **ret, struct err *e)
{
	struct stat st;
	char name[2 * sizeof(void *) + 1];
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "the scratch disk");
	CLEANUP(ext4_freep) struct ext4 *d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(e, -ENOMEM, "out of memory");
	d->fd = fd;
	d->size = (uint64_t)st.st_size;
	d->bytes_left = d->size;
	int r = check_superblock(d, e);
	if (r < 0)
		return r;
	hex_encode((const unsigned char *)&d, sizeof(d), name);
	errcode_t code = ext2fs_open2(name, NULL, EXT2_FLAG_64BITS, 0, 0, &manager, &d->fs);
	if (code != 0) {
		d->fs = NULL;
		return ext4_fail(d, code, 0, e);
	}
	*ret = TAKE_PTR(d);
	return 0;
}

void ext4_free(struct ext4 *d)
{
	if (!d)
		return;
	if (d->fs)
		ext2fs_free(d->fs);
	free(d);
}

bool ext4_is_clean(const struct ext4 *d)
{
	return (d->fs->super->s_state & (EXT2_VALID_FS | EXT2_ERROR_FS)) == EXT2_VALID_FS;
}
