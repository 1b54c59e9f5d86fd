/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order of writing: the manifest comes last and is always synced, so a directory that has one is
 * complete; of a durable pod the directories are synced, too, from the leaves up, before the caller
 * renames the pod into the next phase.
 */
#include "host/pod/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/pod/pod_stage1.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"
#include "lib/wire/stage1.h"

#define DIR_MODE      0750
#define FILE_MODE     0640
#define MANIFEST_MODE 0600 /* environments have secrets in them */

/* Makes and opens a directory. The descriptor or -errno. */
static int make_dir(int dirfd, const char *name)
{
	if (mkdirat(dirfd, name, DIR_MODE) < 0)
		return -errno;
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int sync_dir(bool durable, int fd, const char *what, struct err *e)
{
	if (!durable)
		return 0;
	return fsync(fd) < 0 ? err_sys(e, -errno, "cannot sync \"%s\" of the pod", what) : 0;
}

static int make_app(bool durable, int apps_fd, const char *name, const struct image *image,
		    struct err *e)
{
	cleanup_fd int fd = make_dir(apps_fd, name);
	if (fd < 0)
		return err_sys(e, fd, "cannot make \"" POD_DIR_APPS "/%s\" of the pod", name);
	int r = image_link_rootfs(image, fd, POD_FILE_ROOTFS, e);
	/* A link and no file: small, and written at once. */
	if (r == 0 && symlinkat(image->id, fd, POD_LINK_IMAGE) < 0)
		r = err_sys(e, -errno,
			    "cannot make \"" POD_DIR_APPS "/%s/" POD_LINK_IMAGE "\" of the pod",
			    name);
	return r < 0 ? r : sync_dir(durable, fd, POD_DIR_APPS, e);
}

static int make_apps(const struct pod *p, const struct pod_manifest *m, struct image *const *images,
		     struct err *e)
{
	cleanup_fd int fd = make_dir(p->fd, POD_DIR_APPS);
	if (fd < 0)
		return err_sys(e, fd, "cannot make \"" POD_DIR_APPS "\" of the pod");
	for (size_t i = 0; i < m->n_apps; i++) {
		int r = make_app(p->durable, fd, m->apps[i].name, images[i], e);
		if (r < 0)
			return r;
	}
	return sync_dir(p->durable, fd, POD_DIR_APPS, e);
}

int pod_prepare_app(const struct pod *p, const char *name, const struct image *image, struct err *e)
{
	cleanup_fd int fd = path_open_beneath(p->fd, POD_DIR_APPS, O_RDONLY | O_DIRECTORY, 0);
	return fd < 0 ? err_sys(e, fd, "cannot open \"" POD_DIR_APPS "\" of the pod")
		      : make_app(p->durable, fd, name, image, e);
}

static int write_manifest(int pod_fd, const struct pod_manifest *m, struct err *e)
{
	cleanup_free char *text = NULL;
	int r = pod_manifest_format(m, &text);
	if (r == 0)
		r = file_write_at(pod_fd, POD_FILE_MANIFEST, text, strlen(text), MANIFEST_MODE);
	return r < 0 ? err_sys(e, r, "cannot write the pod manifest") : 0;
}

int pod_prepare(const struct pod *p, const struct pod_manifest *m, struct image *const *images,
		const struct stage1 *stage1, struct err *e)
{
	int r = make_apps(p, m, images, e);
	if (r < 0)
		return r;
	cleanup_fd int status_fd = make_dir(p->fd, POD_DIR_STATUS);
	if (status_fd < 0)
		return err_sys(e, status_fd, "cannot make \"" POD_DIR_STATUS "\" of the pod");
	r = file_touch_at(p->fd, POD_FILE_CREATED, FILE_MODE);
	if (r < 0)
		return err_sys(e, r, "cannot write \"" POD_FILE_CREATED "\" of the pod");
	r = pod_stage1_write(p, stage1, e);
	if (r == 0)
		r = write_manifest(p->fd, m, e);
	return r < 0 ? r : sync_dir(p->durable, p->fd, ".", e);
}

int pod_replace_manifest(const struct pod *p, const struct pod_manifest *m, struct err *e)
{
	return write_manifest(p->fd, m, e);
}
