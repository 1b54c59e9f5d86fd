/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writes-disk DEVICE: tries every way that Linux and SCSI have to change a disk, and prints the
 * name of each that the disk accepted. What the guest's kernel thinks of the disk it changes
 * first. Part of tests/system/volumes-block.sh, where it is an app of a VM's root.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <scsi/sg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/base/macros.h"

#define SECTOR      512ul /* bytes, of all disks of a VM */
#define BLOCK       4096
#define LIMIT_MS    10000
#define SECTORS     (BLOCK / SECTOR)
#define GOOD_STATUS 0

static char block[BLOCK] __attribute__((aligned(BLOCK)));

/* SCSI Block Commands 4 and Primary Commands 5: each writes @block, or nothing, over the start. */
static const struct scsi {
	const char *name;
	uint8_t cdb[16];
	size_t cdb_len, data_len;
} commands[] = {
	{ "WRITE(6)", { 0x0a, 0, 0, 0, SECTORS }, 6, BLOCK },
	{ "WRITE(10)", { 0x2a, [8] = SECTORS }, 10, BLOCK },
	{ "WRITE(12)", { 0xaa, [9] = SECTORS }, 12, BLOCK },
	{ "WRITE(16)", { 0x8a, [13] = SECTORS }, 16, BLOCK },
	{ "WRITE AND VERIFY(10)", { 0x2e, [8] = SECTORS }, 10, BLOCK },
	{ "WRITE AND VERIFY(16)", { 0x8e, [13] = SECTORS }, 16, BLOCK },
	{ "WRITE SAME(10)", { 0x41, [8] = SECTORS }, 10, SECTOR },
	{ "WRITE SAME(16)", { 0x93, [13] = SECTORS }, 16, SECTOR },
	{ "WRITE SAME(16), unmapping", { 0x93, 0x08, [13] = SECTORS }, 16, SECTOR },
	{ "COMPARE AND WRITE", { 0x89, [13] = 1 }, 16, 2 * SECTOR },
	{ "UNMAP", { 0x42, [8] = 24 }, 10, 24 },
	{ "FORMAT UNIT", { 0x04 }, 6, 0 },
	{ "SANITIZE", { 0x48, 0x03 }, 10, 0 },
	{ "WRITE LONG(10)", { 0x3f, [8] = 1 }, 10, SECTOR },
	{ "WRITE BUFFER", { 0x3b, 0x02, [7] = SECTOR >> 8 }, 10, SECTOR },
};

/* The parameters of UNMAP: one range of blocks, from 0. */
static void fill_unmap(void)
{
	static const uint8_t list[24] = { [1] = 22, [3] = 16, [19] = SECTORS };
	memcpy(block, list, sizeof(list));
}

static bool scsi_accepts(int disk, const struct scsi *c)
{
	uint8_t cdb[16], sense[64];
	struct sg_io_hdr io = { .interface_id = 'S',
				.dxfer_direction = c->data_len ? SG_DXFER_TO_DEV : SG_DXFER_NONE,
				.cmd_len = (unsigned char)c->cdb_len,
				.mx_sb_len = sizeof(sense),
				.dxfer_len = (unsigned)c->data_len,
				.dxferp = block,
				.cmdp = cdb,
				.sbp = sense,
				.timeout = LIMIT_MS };
	memcpy(cdb, c->cdb, sizeof(cdb));
	memset(block, 0xa5, sizeof(block));
	if (c->cdb[0] == 0x42)
		fill_unmap();
	return ioctl(disk, SG_IO, &io) == 0 && io.status == GOOD_STATUS && io.host_status == 0;
}

static bool does_write(int disk)
{
	memset(block, 0xa5, sizeof(block));
	return pwrite(disk, block, sizeof(block), 0) > 0 && fsync(disk) == 0;
}

static bool does_discard(int disk)
{
	uint64_t range[2] = { 0, BLOCK };
	return ioctl(disk, BLKDISCARD, range) == 0;
}

static bool does_zero(int disk)
{
	uint64_t range[2] = { 0, BLOCK };
	return ioctl(disk, BLKZEROOUT, range) == 0;
}

static bool does_punch(int disk)
{
	return fallocate(disk, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BLOCK) == 0;
}

static const struct {
	const char *name;
	bool (*does)(int disk);
} calls[] = { { "write", does_write },
	      { "BLKDISCARD", does_discard },
	      { "BLKZEROOUT", does_zero },
	      { "punching a hole", does_punch } };

int main(int argc, char **argv)
{
	int no = 0;
	int reader = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	if (reader < 0) {
		fprintf(stderr, "writes-disk: %s\n", argc == 2 ? strerror(errno) : "DEVICE?");
		return 2;
	}
	if (ioctl(reader, BLKROSET, &no) < 0)
		fprintf(stderr, "writes-disk: BLKROSET: %s\n", strerror(errno));
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (scsi_accepts(reader, &commands[i]))
			printf("%s\n", commands[i].name);
	int writer = open(argv[1], O_RDWR | O_DIRECT | O_CLOEXEC);
	for (size_t i = 0; writer >= 0 && i < ARRAY_SIZE(calls); i++)
		if (calls[i].does(writer))
			printf("%s\n", calls[i].name);
	fprintf(stderr, "writes-disk: tried %zu commands, %zu calls\n", ARRAY_SIZE(commands),
		writer >= 0 ? ARRAY_SIZE(calls) : (size_t)0);
	return 0;
}
