/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/backend/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/lock.h"
#include "lib/os/path.h"
#include "lib/os/spawn.h"
#include "stage1/pod/podfiles.h"

/* Of what this makes: another one asks for new templates. */
#define TEMPLATE_VERSION "4"
#define TOOLS_PATH       "/usr/sbin:/sbin:/usr/bin:/bin"

/*
 * No journal: the disk is written by one VM only and thrown away with the pod; an export after a
 * crash refuses what does not fit together. No checksums of metadata: the first allocation would
 * compute those of 32 bitmaps. Inode tables and the rest stay unwritten until the guest needs them.
 */
#define MKFS_FEATURES \
	"^has_journal,^metadata_csum,^resize_inode,sparse_super2,uninit_bg,extents,64bit"
#define MKFS_EXTENDED "lazy_itable_init=1,nodiscard,num_backup_sb=0"

#define MKFS "mkfs.ext4"

static const char *const mkfs_words[] = {
	MKFS, "-q", "-F", "-m", "0", "-O", MKFS_FEATURES, "-E", MKFS_EXTENDED, "/proc/self/fd/3"
};

static int find_mkfs(char ret[PATH_MAX])
{
	return path_find_program(MKFS, TOOLS_PATH, ret, PATH_MAX);
}

/* Makes the file system on the disk @fd. */
static int run_mkfs(int fd, struct err *e)
{
	char program[PATH_MAX];
	if (find_mkfs(program) < 0)
		return err_set(e, -ENOENT,
			       "scratch disk: " MKFS " not found (install the package "
			       "e2fsprogs)");
	cleanup_strv struct strv argv;
	strv_init(&argv, ARRAY_SIZE(mkfs_words));
	for (size_t i = 0; i < ARRAY_SIZE(mkfs_words); i++)
		if (strv_add(&argv, mkfs_words[i]) < 0)
			return err_sys(e, -ENOMEM, "scratch disk");
	struct spawn_plan plan = { .program = program, .argv = argv.v, .die_with_parent = true };
	spawn_plan_fd(&plan, fd, 3);
	pid_t pid;
	int status;
	int r = spawn(&plan, &pid, NULL);
	if (r == 0)
		r = spawn_wait(pid, &status);
	if (r < 0)
		return err_sys(e, r, "scratch disk: cannot run %s", program);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(
			e, -EIO,
			"scratch disk: %s failed (is the file system of the data directory full?)",
			program);
	return 0;
}

bool scratch_can_be_made(void)
{
	char program[PATH_MAX];
	return find_mkfs(program) == 0;
}

/*
 * Makes the template; it gets its name when it is complete, so a maker that is killed leaves none.
 */
static int make_template(int cache, const char *name, uint64_t size, struct err *e)
{
	char self[sizeof("/proc/self/fd/") + 11];
	cleanup_fd int fd = openat(cache, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return err_sys(e, -errno, "scratch disk: template");
	int r = run_mkfs(fd, e);
	if (r < 0)
		return r;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fsync(fd) < 0 || linkat(AT_FDCWD, self, cache, name, AT_SYMLINK_FOLLOW) < 0)
		return err_sys(e, -errno, "scratch disk: template");
	return 0;
}

/* Opens the template, making it if this is the first pod of the host. */
static int open_template(const char *cache_dir, uint64_t size, struct err *e)
{
	cleanup_fd int cache = path_make_dirs(cache_dir, 0750);
	if (cache < 0)
		return err_sys(e, cache, "directory \"%s\"", cache_dir);
	char name[64];
	snprintf(name, sizeof(name), "scratch-%ju.v" TEMPLATE_VERSION ".ext4", (uintmax_t)size);
	int fd = openat(cache, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0)
		return fd;
	int r = lock_exclusive(cache); /* one maker at a time; the others find it made */
	if (r < 0)
		return err_sys(e, r, "directory \"%s\": cannot lock", cache_dir);
	fd = openat(cache, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0)
		return fd;
	r = make_template(cache, name, size, e);
	if (r < 0)
		return r;
	fd = openat(cache, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_sys(e, -errno, "scratch disk: template") : fd;
}

int scratch_create(int pod_fd, const char *cache_dir, uint64_t size, struct err *e)
{
	cleanup_fd int template = open_template(cache_dir, size, e);
	if (template <0)
		return template;
	cleanup_fd int fd =
		openat(pod_fd, POD_FILE_SCRATCH, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : file_copy_sparse(template, fd);
	if (r < 0) {
		if (fd >= 0)
			unlinkat(pod_fd, POD_FILE_SCRATCH, 0);
		return err_sys(e, r, "scratch disk: cannot create it in the pod directory");
	}
	return TAKE_FD(fd);
}
