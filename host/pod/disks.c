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

int pod_open_disks(const struct pod *p, const struct stage1 *s, const char *app, int *ret_image,
		   int *ret_changes, struct err *e)
{
	char path[AGENT_NAME_MAX + sizeof(POD_DIR_APPS "//" POD_FILE_ROOTFS)];
	snprintf(path, sizeof(path), POD_DIR_APPS "/%s/" POD_FILE_ROOTFS, app);
	cleanup_fd int image = open_file(p, path);
	if (image < 0)
		return err_sys(e, image, "cannot open the image of app \"%s\"", app);
	if (!s->changes[0])
		return err_set(e, -EOPNOTSUPP,
			       "its stage1 \"%s\" does not say where changes of apps are", s->dir);
	int changes = open_file(p, s->changes);
	if (changes == -ENOENT)
		return err_set(e, -ENOENT,
			       "there is no file \"%s\" with changes (the pod never started, or it "
			       "was deleted)",
			       s->changes);
	if (changes < 0)
		return err_sys(e, changes, "cannot open the file \"%s\" with changes", s->changes);
	*ret_image = TAKE_FD(image);
	*ret_changes = changes;
	return 0;
}
