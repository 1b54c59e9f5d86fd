/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/disks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "host/launch/abi.h"
#include "lib/base/str.h"
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

static int reopen_read_only(int fd)
{
	char self[sizeof("/proc/self/fd/") + 11];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	int r = open(self, O_RDONLY | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

/* What the stage1 makes is in a file without a name in the pod's directory. */
static int make_changes(const struct pod *p, const struct stage1 *s, const char *app, struct err *e)
{
	cleanup_strv struct strv args;
	int code = 0;
	strv_init(&args, ABI_ARGS_MAX);
	cleanup_fd int fd = openat(p->fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, -errno, "cannot make a file in its directory");
	int r = abi_changes_args(p->uuid.text, app, &args);
	if (r < 0)
		return err_sys(e, r, "changes");
	r = stage1_ask_for(s->changes, p->fd, &args, fd, &code, e);
	if (r < 0 || code != 0)
		return r < 0 ? r : e->code;
	int made = reopen_read_only(fd);
	return made < 0 ? err_sys(e, made, "the file with its changes") : made;
}

/* The file with what apps have changed. */
static int open_changes(const struct pod *p, const struct stage1 *s, const char *app, struct err *e)
{
	if (s->changes[0])
		return make_changes(p, s, app, e);
	if (!s->changes_file[0])
		return err_set(e, -EOPNOTSUPP,
			       "its stage1 \"%s\" does not say where changes of apps are", s->dir);
	int fd = open_file(p, s->changes_file);
	if (fd == -ENOENT)
		return err_set(e, fd,
			       "there is no file \"%s\" with changes (the pod never started, or it "
			       "was deleted)",
			       s->changes_file);
	return fd < 0 ? err_sys(e, fd, "cannot open the file \"%s\" with changes", s->changes_file)
		      : fd;
}

int pod_open_disks(const struct pod *p, const struct stage1 *s, const char *app, int *ret_image,
		   int *ret_changes, struct err *e)
{
	char path[AGENT_NAME_MAX + sizeof(POD_DIR_APPS "//" POD_FILE_ROOTFS)];
	snprintf(path, sizeof(path), POD_DIR_APPS "/%s/" POD_FILE_ROOTFS, app);
	cleanup_fd int image = open_file(p, path);
	if (image < 0)
		return err_sys(e, image, "cannot open the image of app \"%s\"", app);
	int changes = open_changes(p, s, app, e);
	if (changes < 0)
		return changes;
	*ret_image = TAKE_FD(image);
	*ret_changes = changes;
	return 0;
}
