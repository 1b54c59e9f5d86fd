/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/run/scratch.h"

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
#include "lib/wire/agent.h"
#include "lib/wire/stage1.h"

/* Of what this makes: another one asks for new templates. */
#define TEMPLATE_VERSION "3"
#define TOOLS_PATH       "/usr/sbin:/sbin:/usr/bin:/bin"

/*
 * No journal: the disk is written by one VM only and thrown away with the pod; an export after a
 * crash refuses what does not fit together. No checksums of metadata: the first allocation would compute those of 32
 * bitmaps. Inode tables and the rest stay unwritten until the guest needs them.
 */
#define MKFS_FEATURES \
	"^has_journal,^metadata_csum,^resize_inode,sparse_super2,uninit_bg,extents,64bit"
#define MKFS_EXTENDED "lazy_itable_init=1,nodiscard,num_backup_sb=0"

static const char *const mkfs_words[] = {
	"mkfs.ext4", "-q",          "-F", "-m",          "0",
	"-O",        MKFS_FEATURES, "-E", MKFS_EXTENDED, "/proc/self/fd/3"
};

/*
 * The directories that overlayfs needs for the first app, so that the guest does not make them. The time tells "husk
 * export" that nobody has changed "upper" yet. debugfs does not fail when it could not write, hence the check behind it,
 * which sees all of that but the time.
 */
static const char *const debugfs_words[] = { "debugfs", "-w", "-f", "/proc/self/fd/4",
					     "/proc/self/fd/3" };
static const char debugfs_script[] = "mkdir " AGENT_SCRATCH_FIRST "\n"
				     "mkdir " AGENT_SCRATCH_FIRST "/upper\n"
				     "sif " AGENT_SCRATCH_FIRST "/upper ctime @0\n"
				     "mkdir " AGENT_SCRATCH_FIRST "/work\n"
				     "mkdir " AGENT_SCRATCH_FIRST "/work/work\n";

static const char *const e2fsck_words[] = { "e2fsck", "-fn", "/proc/self/fd/3" };

static int find_tool(const char *name, char ret[PATH_MAX])
{
	return path_find_program(name, TOOLS_PATH, ret, PATH_MAX);
}

/* Runs the program of e2fsprogs @words[0] with the disk as descriptor 3 and, unless negative, @script as 4. */
static int run_tool(const char *const words[], size_t n_words, int fd, int script, struct err *e)
{
	char program[PATH_MAX];
	if (find_tool(words[0], program) < 0)
		return err_set(e, -ENOENT,
			       "scratch disk: %s not found (install the package e2fsprogs)",
			       words[0]);
	cleanup_strv struct strv argv;
	strv_init(&argv, n_words);
	for (size_t i = 0; i < n_words; i++)
		if (strv_add(&argv, words[i]) < 0)
			return err_sys(e, -ENOMEM, "scratch disk");
	struct spawn_plan plan = { .program = program, .argv = argv.v, .die_with_parent = true };
	spawn_plan_fd(&plan, fd, 3);
	if (script >= 0)
		spawn_plan_fd(&plan, script, 4);
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

static int add_first(int fd, struct err *e)
{
	cleanup_fd int script = memfd_create("debugfs-script", MFD_CLOEXEC);
	int r = script < 0 ? -errno : fd_write_all(script, debugfs_script, strlen(debugfs_script));
	if (r == 0 && lseek(script, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(e, r, "scratch disk");
	r = run_tool(debugfs_words, ARRAY_SIZE(debugfs_words), fd, script, e);
	return r < 0 ? r : run_tool(e2fsck_words, ARRAY_SIZE(e2fsck_words), fd, -EBADF, e);
}

const char *scratch_missing_tool(void)
{
	const char *const tools[] = { mkfs_words[0], debugfs_words[0], e2fsck_words[0] };
	char program[PATH_MAX];
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
		if (find_tool(tools[i], program) < 0)
			return tools[i];
	return NULL;
}

/* Makes the template; it gets its name when it is complete, so a maker that is killed leaves none. */
static int make_template(int cache, const char *name, uint64_t size, struct err *e)
{
	char self[sizeof("/proc/self/fd/") + 11];
	cleanup_fd int fd = openat(cache, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return err_sys(e, -errno, "scratch disk: template");
	int r = run_tool(mkfs_words, ARRAY_SIZE(mkfs_words), fd, -EBADF, e);
	if (r == 0)
		r = add_first(fd, e);
	if (r < 0)
		return r;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fsync(fd) < 0 || linkat(AT_FDCWD, self, cache, name, AT_SYMLINK_FOLLOW) < 0)
		return err_sys(e, -errno, "scratch disk: template");
	return 0;
}

static void delete_old_templates(int cache, uint64_t size)
{
	static const char *const versions[] = { "", ".v2" };
	char name[64];
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		snprintf(name, sizeof(name), "scratch-%ju%s.ext4", (uintmax_t)size, versions[i]);
		unlinkat(cache, name, 0);
	}
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
	delete_old_templates(cache, size);
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
