/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/extract.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/export/image.h"
#include "images/export/interrupt.h"
#include "images/export/place.h"
#include "images/render/confine.h"
#include "lib/os/fd.h"

#define MANIFEST_MODE 0600
#define ROOTFS_MODE   0700 /* until the image's own is set */

/* What the child does. */
struct task {
	int image;
	int dir;
	struct unpack_user user;
};

static int unpack_child(void *ctx, struct buf *result, struct err *e)
{
	const struct task *task = ctx;
	CLEANUP(image_fs_freep) struct image_fs *s = NULL;
	CLEANUP(tree_freep) struct tree *t = NULL;
	struct content_reader readers[CONTENT_COUNT_] = { 0 };
	struct unpack_report report;
	int r = image_fs_open(task->image, &s, e);
	if (r == 0)
		r = image_fs_tree(s, &t, e);
	if (r < 0)
		return r;
	readers[CONTENT_IMAGE] = image_fs_reader(s);
	r = unpack_tree(task->dir, t, readers, &task->user, &report, e);
	return r == 0 ? buf_append(result, &report, sizeof(report)) : r;
}

static int unpack_confined(struct task *task, int cancel_fd, struct unpack_report *ret,
			   struct err *e)
{
	cleanup_buf struct buf result;
	buf_init(&result, CONFINE_RESULT_MAX);
	int r = confine_run_in("extracting", task->dir, cancel_fd, unpack_child, task, &task->image,
			       1, &result, e);
	if (r < 0)
		return r;
	if (buf_len(&result) != sizeof(*ret))
		return err_set(e, -EPROTO, "extracting: the helper process reported nonsense");
	memcpy(ret, buf_data(&result), sizeof(*ret));
	return 0;
}

static int write_manifest(int dir, const struct buf *text, struct err *e)
{
	cleanup_fd int fd =
		openat(dir, "manifest", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       MANIFEST_MODE);
	if (fd < 0)
		return err_sys(e, -errno, "cannot create the manifest");
	int r = fchmod(fd, MANIFEST_MODE) < 0 ? -errno : 0;
	if (r == 0)
		r = fd_write_all(fd, buf_data(text), buf_len(text));
	return r < 0 ? err_sys(e, r, "cannot write the manifest") : 0;
}

/* Makes DIR/rootfs. The descriptor, or -errno with @e. */
static int make_rootfs(int dir, struct err *e)
{
	if (mkdirat(dir, "rootfs", ROOTFS_MODE) < 0)
		return err_sys(e, -errno, "cannot create the directory rootfs");
	int fd = openat(dir, "rootfs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(e, -errno, "cannot open the directory rootfs") : fd;
}

/* Fills the new directory. */
static int fill(const struct extract_job *job, const struct place *place, int cancel_fd,
		struct unpack_report *ret, struct err *e)
{
	cleanup_fd int rootfs = -EBADF;
	struct task task = { job->image, place->fd, { geteuid(), getegid() } };
	if (job->manifest) {
		rootfs = make_rootfs(place->fd, e);
		int r = rootfs < 0 ? rootfs : write_manifest(place->fd, job->manifest, e);
		if (r < 0)
			return r;
		task.dir = rootfs;
	}
	return unpack_confined(&task, cancel_fd, ret, e);
}

int extract_image(const struct extract_job *job, struct unpack_report *ret, struct err *e)
{
	/* In this order: the directory is gone when the signals may come. */
	CLEANUP(interrupt_release) struct interrupt interrupt = INTERRUPT_INIT;
	CLEANUP(place_deinit) struct place place = PLACE_INIT;
	int r = interrupt_hold(&interrupt);
	if (r < 0)
		return err_sys(e, r, "cannot put off signals");
	r = place_open(job->dir, job->overwrite, &place, e);
	if (r < 0)
		return r;
	r = fill(job, &place, interrupt.fd, ret, e);
	if (r < 0)
		return err_context(e, "cannot write output directory \"%s\"", place.name);
	return place_publish(&place, e);
}
