/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. DATA/stage1 belongs to the owner of the data directory. A directory ID in it
 * is complete and on the disk: it was filled under a hidden name and renamed. It never changes.
 *
 * Two kinds of flock(2): that of DATA/stage1 is held shared while an ID is looked up, exclusively
 * while one is made or removed, so it is made once. That of ID is held shared by who is about to
 * start a pod with it, from the look-up until its pod names it (pod_stage1_write()) and the exec
 * closes the descriptor; whoever removes it takes it exclusively first, and only then asks which
 * pods name it. So it is gone before the look-up, or there as long as the pod is.
 *
 * What is interrupted leaves a hidden name: half of what was to come or to go. The next sweep
 * removes it.
 */
#include "host/cli/stage1_image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/cli/data_dir.h"
#include "host/cli/image_app.h"
#include "host/cli/images.h"
#include "host/cli/pods.h"
#include "host/launch/trusted.h"
#include "host/pod/pod_stage1.h"
#include "images/images.h"
#include "lib/data/datadir.h"
#include "lib/data/temp_name.h"
#include "lib/os/fd.h"
#include "lib/os/lock.h"
#include "lib/os/rmtree.h"

#define STAGE1_DIR  "stage1" /* of the data directory */
#define STAGE1_WHAT STAGE1_DIR " of the data directory"

/*
 * Opens DATA/stage1. The descriptor; -ENOENT without @e if it is missing and not @create; -errno,
 * @e.
 */
static int open_dir(const struct cli *c, bool create, struct err *e)
{
	struct datadir d;
	cleanup_fd int data_fd = cli_open_data_dir(c, false, e);
	if (data_fd < 0)
		return data_fd;
	int r = datadir_read(data_fd, &d);
	if (r < 0)
		return err_sys(e, r, "cannot open the data directory");
	cleanup_fd int fd =
		datadir_open(&d, data_fd, STAGE1_DIR, STAGE1_WHAT, create, DATADIR_GROUP_READS, e);
	r = fd < 0 ? fd : datadir_sync(&d, data_fd, "the data directory", e);
	return r < 0 ? r : TAKE_FD(fd);
}

/*
 * True if a group shares the data directory: its members decide what names, URLs and files stand
 * for in the store, which is good enough for what a virtual machine runs, not for what we execute.
 */
static bool is_shared(const struct cli *c)
{
	struct datadir d;
	cleanup_fd int data_fd = cli_open_data_dir(c, false, NULL);
	return data_fd >= 0 && datadir_read(data_fd, &d) == 0 && d.shared;
}

/* Opens the extracted image @id with a shared lock on it. The descriptor or -errno. */
static int lock_image(int dir_fd, const char *id)
{
	cleanup_fd int fd = openat(dir_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : lock_shared(fd);
	return r < 0 ? r : TAKE_FD(fd);
}

static int stage1_image_extract(const struct store *s, const struct image *image, struct err *e)
{
	char path[PATH_MAX];
	cleanup_buf struct buf manifest;
	struct unpack_report report;
	buf_init(&manifest, DESCRIBE_MAX);
	int n = snprintf(path, sizeof(path), "%s/" STAGE1_DIR "/%s", store_path(s), image->id);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_sys(e, -ENAMETOOLONG, "data directory");
	int r = image_describe(image, &manifest, e);
	if (r < 0)
		return r;
	const struct extract_job job = {
		.image = image->rootfs,
		.manifest = &manifest,
		.dir = path,
	};
	return extract_image(&job, &report, e);
}

/*
 * Extracts the image unless somebody did it while we waited. The descriptor with its lock, or
 * -errno.
 */
static int extract_once(int dir_fd, const struct store *s, const struct image *image, struct err *e)
{
	const char *id = image->id;
	int r = lock_exclusive(dir_fd);
	if (r < 0)
		return err_sys(e, r, "cannot lock " STAGE1_WHAT);
	int fd = lock_image(dir_fd, id);
	if (fd >= 0)
		return fd;
	r = stage1_image_extract(s, image, e);
	if (r < 0)
		return r;
	fd = lock_image(dir_fd, id);
	return fd < 0 ? err_sys(e, fd, "\"" STAGE1_DIR "/%s\" of the data directory", id) : fd;
}

/*
 * The lock of the extracted image, which is extracted if need be: a descriptor, or -errno and @e.
 */
static int hold(const struct cli *c, const struct store *s, const struct image *image,
		struct err *e)
{
	cleanup_fd int dir_fd = open_dir(c, true, e);
	if (dir_fd < 0)
		return dir_fd;
	int r = lock_shared(dir_fd);
	if (r < 0)
		return err_sys(e, r, "cannot lock " STAGE1_WHAT);
	int fd = lock_image(dir_fd, image->id);
	return fd >= 0 ? fd : extract_once(dir_fd, s, image, e);
}

/* Others may have written what is in an image: that it can be executed at all is looked at, too. */
static int open_extracted(struct cli *c, const struct store *s, const struct image *image,
			  struct stage1 *ret, struct err *e)
{
	char path[PATH_MAX];
	cleanup_fd int lock = hold(c, s, image, e);
	if (lock < 0)
		return lock;
	int n = snprintf(path, sizeof(path), "%s/" STAGE1_DIR "/%s", store_path(s), image->id);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_sys(e, -ENAMETOOLONG, "data directory");
	int r = stage1_open(path, ret, e);
	if (r == 0)
		r = trusted_stage1(ret, geteuid(), e);
	if (r == 0 && (r = str_copy(ret->image, sizeof(ret->image), image->id)) < 0)
		err_sys(e, r, "its ID");
	if (r < 0)
		return r;
	fd_replace(&c->stage1_lock, TAKE_FD(lock));
	return 0;
}

int stage1_image_open(struct cli *c, const char *reference, bool is_name, enum pull_policy policy,
		      struct stage1 *ret, struct err *e)
{
	cleanup_store struct store *s = NULL;
	cleanup_image struct image *image = NULL;
	struct progress progress;
	if (is_shared(c))
		return err_set(
			e, -EPERM,
			"stage1 image \"%s\": a group shares the data directory and could put "
			"another in its place (husk image extract it elsewhere, and use "
			"--stage1=DIR)",
			reference);
	const struct fetch_request q = {
		.reference = reference,
		.is_name = is_name,
		.policy = policy,
		.options = cli_fetch_options(c, &progress, CLI_TERMINAL),
	};
	int r = cli_open_store(c, &s, e);
	if (r == 0)
		r = fetch_image(s, &q, &image, e);
	progress_clear(&progress);
	if (r != 0)
		return r;
	r = open_extracted(c, s, image, ret, e);
	return r < 0 ? err_context(e, "stage1 image \"%s\"", reference) : 0;
}

int stage1_image_find(struct cli *c, const char *name, struct stage1 *ret, struct err *e)
{
	cleanup_store struct store *s = NULL;
	cleanup_image struct image *image = NULL;
	struct digest id;
	struct progress progress;
	if (is_shared(c))
		return STAGE1_IMAGE_NONE;
	int r = cli_open_store(c, &s, e);
	if (r < 0)
		return r;
	if (find_name(s, name, &id, NULL) < 0)
		return STAGE1_IMAGE_NONE;
	r = image_open(s, &id, &image, e);
	if (r == STORE_MISSING)
		return STAGE1_IMAGE_NONE;
	const struct fetch_options o = cli_fetch_options(c, &progress, CLI_TERMINAL);
	if (r == 0) {
		fetch_note(&o, "using image from local store for image name %s", name);
		r = open_extracted(c, s, image, ret, e);
	}
	return r < 0 ? err_context(e, "stage1 image \"%s\"", name) : 0;
}

/* ---- removal ---- */

/* Whether a pod names the image @id: 1, 0, or -errno and @e. */
static int is_named(const struct cli *c, const char *id, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	CLEANUP(pod_list_deinit) struct pod_list list = POD_LIST_INIT;
	int r = cli_open_pods(c, false, &ps, e);
	if (r == 0)
		r = pods_list(ps, POD_PHASES_VISIBLE, POD_LIST_MAX, &list, e);
	for (size_t i = 0; r == 0 && i < list.n; i++) {
		cleanup_pod struct pod p = POD_INIT;
		struct pod_stage1 named;
		struct err ignored = ERR_INIT; /* a pod that cannot be read cannot be used either */
		if (pod_open(ps, list.uuids[i].text, &p, &ignored) == 0 &&
		    pod_stage1_read(&p, &named, &ignored) == 0 && strcmp(named.image, id) == 0)
			r = 1;
	}
	return r;
}

/* Removes DIR/@id, by way of a hidden name, so that nobody ever finds half of it. 0 or -errno. */
static int remove_image(int dir_fd, const char *id)
{
	char hidden[TEMP_NAME_LEN + 1];
	int r = temp_name_make(hidden);
	if (r == 0 && renameat(dir_fd, id, dir_fd, hidden) < 0)
		r = -errno;
	return r == 0 ? rmtree(dir_fd, hidden) : r;
}

/* Looks at one name of the directory, whose lock is ours. */
static int sweep_name(const struct cli *c, const struct store *s, int dir_fd, const char *name,
		      struct err *e)
{
	struct digest id;
	int r = 0;
	if (str_starts(name, TEMP_NAME_PREFIX)) {
		r = rmtree(dir_fd, name);
	} else if (find_id(s, name, &id, NULL) < 0) {
		cleanup_fd int fd =
			openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || lock_try_exclusive(fd) != 0)
			return 0;
		r = is_named(c, name, e);
		if (r != 0)
			return MIN(r, 0);
		r = remove_image(dir_fd, name);
	}
	return r < 0 ? err_sys(e, r, "cannot remove %s/" STAGE1_DIR "/%s", store_path(s), name) : 0;
}

int stage1_image_sweep(const struct cli *c, const struct store *s, struct err *e)
{
	if (!store_may_render(s))
		return 0;
	cleanup_fd int dir_fd = open_dir(c, false, e);
	if (dir_fd < 0)
		return dir_fd == -ENOENT ? 0 : dir_fd;
	int r = lock_exclusive(dir_fd);
	cleanup_dir DIR *dir = fd_list_dir(dir_fd);
	if (r < 0 || !dir)
		return err_sys(e, r < 0 ? r : -errno, "cannot look through " STAGE1_WHAT);
	for (const struct dirent *de; r == 0 && (de = readdir(dir));)
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			r = sweep_name(c, s, dir_fd, de->d_name, e);
	return r;
}
