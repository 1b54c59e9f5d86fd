/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/mkfs.h"

#include <errno.h>
#include <limits.h>
#include <sys/wait.h>

#include "lib/base/macros.h"
#include "lib/base/str.h"
#include "lib/os/path.h"
#include "lib/os/spawn.h"

/*
 * No journal: the disk is written by one pod only and thrown away with it; an export after a crash
 * refuses what does not fit together. No checksums of metadata: the first allocation would compute
 * those of 32 bitmaps. Inode tables and the rest stay unwritten until somebody needs them.
 */
#define MKFS_FEATURES \
	"^has_journal,^metadata_csum,^resize_inode,sparse_super2,uninit_bg,extents,64bit"
#define MKFS_EXTENDED "lazy_itable_init=1,nodiscard,num_backup_sb=0"

#define MKFS       "mkfs.ext4"
#define TOOLS_PATH "/usr/sbin:/sbin:/usr/bin:/bin"
#define DISK_FD    3

static const char *const mkfs_words[] = { MKFS, "-q",          "-F", "-m",         "0",
					  "-O", MKFS_FEATURES, "-E", MKFS_EXTENDED };

static int find_mkfs(char ret[PATH_MAX])
{
	return path_find_program(MKFS, TOOLS_PATH, ret, PATH_MAX);
}

bool mkfs_is_there(void)
{
	char program[PATH_MAX];
	return find_mkfs(program) == 0;
}

static int mkfs_argv(struct strv *argv)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(mkfs_words); i++)
		r = strv_add(argv, mkfs_words[i]);
	return r == 0 ? strv_addf(argv, "/proc/self/fd/%d", DISK_FD) : r;
}

int mkfs_ext4(int fd, const char *what, struct err *e)
{
	char program[PATH_MAX];
	if (find_mkfs(program) < 0)
		return err_set(e, -ENOENT, "%s: " MKFS " not found (install the package e2fsprogs)",
			       what);
	cleanup_strv struct strv argv;
	strv_init(&argv, ARRAY_SIZE(mkfs_words) + 1);
	int r = mkfs_argv(&argv);
	struct spawn_plan plan = { .program = program, .argv = argv.v, .die_with_parent = true };
	pid_t pid;
	int status = 0;
	if (r == 0)
		r = spawn_plan_fd(&plan, fd, DISK_FD);
	if (r == 0)
		r = spawn(&plan, &pid, NULL);
	if (r == 0)
		r = spawn_wait(pid, &status);
	if (r < 0)
		return err_sys(e, r, "%s: cannot run %s", what, program);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(e, -EIO,
			       "%s: %s failed (is the file system of the data directory full?)",
			       what, program);
	return 0;
}
