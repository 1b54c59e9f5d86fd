/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes entrypoint of a stage1 whose apps write into a directory of the host
 * (docs/protocol-stage1.md): what those of the ended pod in the working directory have written, as
 * an ext4 image on standard output. The readers of stage0 know that, and no file that an app has
 * made is looked at there.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/macros.h"
#include "lib/base/str.h"
#include "lib/base/uuid.h"
#include "lib/os/userns.h"
#include "lib/wire/agent.h"
#include "lib/wire/stage1.h"
#include "stage1/pod/mkfs.h"
#include "stage1/pod/podfiles.h"

/* Of the image, which is sparse; readers take no more inodes than this (EXT4_INODES_MAX). */
#define IMAGE_MIN  ((uint64_t)1 << 30)
#define IMAGE_MAX  ((uint64_t)1 << 39)
#define INODES_MIN ((uint64_t)1 << 16)
#define INODES_MAX ((uint64_t)1 << 25)

/* Where nobody counts files, and blocks may be compressed ones (Btrfs). */
#define IMAGE_UNKNOWN  ((uint64_t)1 << 37)
#define INODES_UNKNOWN ((uint64_t)1 << 23)

static uint64_t between(uint64_t n, uint64_t min, uint64_t max)
{
	return MIN(MAX(n, min), max);
}

/*
 * No app has written more than is on its file system, and as much again is for what blocks of
 * another size, and holes, take. A file that is larger than all that makes mkfs fail.
 */
static int make_image(void *ctx)
{
	struct err *e = ctx;
	struct statvfs fs;
	if (statvfs(POD_FILE_SCRATCH, &fs) < 0)
		return err_sys(e, -errno, "\"" POD_FILE_SCRATCH "\"");
	bool knows = fs.f_files > 0;
	uint64_t used = (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize;
	uint64_t files = (uint64_t)(fs.f_files - fs.f_ffree);
	uint64_t size = between(2 * used, knows ? IMAGE_MIN : IMAGE_UNKNOWN, IMAGE_MAX) &
			~(uint64_t)0xfffff;
	if (ftruncate(STDOUT_FILENO, (off_t)size) < 0)
		return err_sys(e, -errno, "output");
	return mkfs_ext4(STDOUT_FILENO, POD_FILE_SCRATCH,
			 between(2 * files, knows ? INODES_MIN : INODES_UNKNOWN, INODES_MAX),
			 "changes", e);
}

/* As root of a user namespace, in a process of its own, which says what is wrong in @e. */
static int make_image_inside(struct err *e)
{
	struct err *said = mmap(NULL, sizeof(*said), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (said == MAP_FAILED)
		return err_sys(e, -errno, "memory");
	*said = ERR_INIT;
	int r = userns_call(make_image, said, e);
	if (r < 0 && said->code < 0)
		*e = *said;
	munmap(said, sizeof(*said));
	return r;
}

static int write_changes(const char *app, struct err *e)
{
	char upper[AGENT_NAME_MAX + sizeof(POD_FILE_SCRATCH "//upper")];
	struct stat st;
	if (!agent_name_is_valid(app))
		return err_set(e, -EINVAL, "\"%.80s\" is no name of an app", app);
	snprintf(upper, sizeof(upper), POD_FILE_SCRATCH "/%s/upper", app);
	if (lstat(upper, &st) < 0)
		return err_set(e, -errno,
			       "there is no directory \"%s\" with changes (the app never started, "
			       "or it was deleted)",
			       upper);
	return geteuid() == 0 ? make_image(e) : make_image_inside(e);
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	if (argc != 3 || !str_starts(argv[1], "--app=") || !uuid_is_valid(argv[2])) {
		fprintf(stderr, "stage1: changes: usage: changes --app=NAME UUID\n");
		return EXIT_HUSK_FAILURE;
	}
	if (write_changes(argv[1] + strlen("--app="), &e) == 0)
		return 0;
	fprintf(stderr, "stage1: changes: %s\n", e.text);
	return EXIT_HUSK_FAILURE;
}
