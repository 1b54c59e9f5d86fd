/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/disks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/wire/agent.h"
#include "lib/wire/stage1.h"

bool pod_is_final(const struct pod *p)
{
	enum pod_state state = pod_state_of(p->phase, p->locked);
	return state == POD_STATE_EXITED || state == POD_STATE_EXITED_GARBAGE;
}

/* Opens a regular file of the pod read-only. The descriptor or -errno. */
static int open_file(const struct pod *p, const char *path)
{
	struct stat st;
	cleanup_fd int fd = path_open_beneath(p->fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd >= 0 && fstat(fd, &st) < 0)
		return -errno;
	if (fd >= 0 && !S_ISREG(st.st_mode))
		return -EINVAL;
	return TAKE_FD(fd);
}

/* The file with what apps have changed. */
static int open_disk(const struct pod *p, const struct stage1 *s, struct err *e)
{
	int fd = open_file(p, s->changes_file);
	if (fd == -ENOENT)
		return err_set(e, fd,
			       "there is no file \"%s\" with changes (the pod never started, or it "
			       "was deleted)",
			       s->changes_file);
	return fd < 0 ? err_sys(e, fd, "cannot open the file \"%s\" with changes", s->changes_file)
		      : fd;
}

/* The directory that @app has changed, whoever may look into it. */
static int open_upper(const struct pod *p, const struct stage1 *s, const char *app, struct err *e)
{
	char path[STAGE1_CHANGES_MAX + AGENT_NAME_MAX + sizeof("//upper")];
	snprintf(path, sizeof(path), "%s/%s/upper", s->changes_dir, app);
	int fd = path_open_beneath(p->fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd == -ENOENT)
		return err_set(e, fd,
			       "there is no directory \"%s\" with changes (the app never started, "
			       "or it was deleted)",
			       path);
	return fd < 0 ? err_sys(e, fd, "cannot open the directory \"%s\" with changes", path) : fd;
}

int pod_open_disks(const struct pod *p, const struct stage1 *s, const char *app,
		   struct pod_disks *ret, struct err *e)
{
	char path[AGENT_NAME_MAX + sizeof(POD_DIR_APPS "//" POD_FILE_ROOTFS)];
	snprintf(path, sizeof(path), POD_DIR_APPS "/%s/" POD_FILE_ROOTFS, app);
	cleanup_fd int image = open_file(p, path);
	if (image < 0)
		return err_sys(e, image, "cannot open the image of app \"%s\"", app);
	if (!s->changes_file[0] && !s->changes_dir[0])
		return err_set(e, -EOPNOTSUPP,
			       "its stage1 \"%s\" does not say where changes of apps are", s->dir);
	struct pod_disks d = POD_DISKS_INIT;
	int r = s->changes_dir[0] ? (d.upper = open_upper(p, s, app, e))
				  : (d.changes = open_disk(p, s, e));
	if (r < 0)
		return r;
	d.image = TAKE_FD(image);
	*ret = d;
	return 0;
}
