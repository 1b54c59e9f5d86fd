/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/podfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"
#include "lib/os/random.h"
#include "lib/wire/stage1.h"

#define STATUS_MODE 0640

int podfiles_read_manifest(int pod_fd, struct pod_manifest *ret, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len;
	int r = file_read_at(pod_fd, POD_FILE_MANIFEST, POD_MANIFEST_SIZE_MAX, &text, &len);
	if (r < 0)
		return err_sys(e, r, "pod manifest: cannot read it");
	return pod_manifest_parse(text, len, ret, e);
}

int podfiles_write_pid(int pod_fd, struct err *e)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d\n", getpid());
	int r = file_replace_at(pod_fd, POD_FILE_PID, text, (size_t)len, 0640);
	return r < 0 ? err_sys(e, r, "pod directory: cannot write \"%s\"", POD_FILE_PID) : 0;
}

int podfiles_make_secret(int pod_fd, char ret[AGENT_SECRET_LEN + 1], struct err *e)
{
	unsigned char bytes[AGENT_SECRET_LEN / 2];
	int r = random_bytes(bytes, sizeof(bytes));
	if (r == 0) {
		hex_encode(bytes, sizeof(bytes), ret);
		r = file_replace_at(pod_fd, POD_FILE_SECRET, ret, AGENT_SECRET_LEN, 0600);
	}
	return r < 0 ? err_sys(e, r, "pod directory: cannot write \"%s\"", POD_FILE_SECRET) : 0;
}

int podfiles_read_secret(int pod_fd, char ret[AGENT_SECRET_LEN + 1], struct err *e)
{
	cleanup_free char *text = NULL;
	int r = file_read_at(pod_fd, POD_FILE_SECRET, AGENT_SECRET_LEN, &text, NULL);
	if (r == 0 && !hex_is_valid(text, AGENT_SECRET_LEN))
		r = -EBADMSG;
	if (r < 0)
		return err_sys(e, r, "pod directory: cannot read \"%s\"", POD_FILE_SECRET);
	memcpy(ret, text, AGENT_SECRET_LEN + 1);
	return 0;
}

int podfiles_write_cgroup_parent(int pod_fd, const char *parent, struct err *e)
{
	int r = *parent ? file_replace_at(pod_fd, POD_FILE_CGROUP_PARENT, parent, strlen(parent),
					  0640)
			: 0;
	return r < 0 ? err_sys(e, r, "pod directory: cannot write \"%s\"", POD_FILE_CGROUP_PARENT)
		     : 0;
}

int podfiles_read_cgroup_parent(int pod_fd, char ret[CGROUP_PATH_MAX], struct err *e)
{
	cleanup_free char *text = NULL;
	int r = file_read_at(pod_fd, POD_FILE_CGROUP_PARENT, CGROUP_PATH_MAX - 1, &text, NULL);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, r, "pod directory: cannot read \"%s\"", POD_FILE_CGROUP_PARENT);
	return str_copy(ret, CGROUP_PATH_MAX, r == 0 ? text : "");
}

int podfiles_pass_secret(const char *secret)
{
	cleanup_fd int fd = memfd_create("husk-secret", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = fd_write_at(fd, secret, strlen(secret), 0);
	return r < 0 ? r : TAKE_FD(fd);
}

int podfiles_open_rootfs(int pod_fd, const char *app, struct err *e)
{
	char name[sizeof(POD_DIR_APPS) + AGENT_NAME_MAX + sizeof(POD_FILE_ROOTFS) + 2];
	snprintf(name, sizeof(name), "%s/%s/%s", POD_DIR_APPS, app, POD_FILE_ROOTFS);
	int fd = path_open_beneath(pod_fd, name, O_RDONLY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(e, fd, "app \"%s\": its image \"%s\"", app, name);
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		fd_close(fd);
		return err_set(e, -EINVAL, "app \"%s\": \"%s\" is not a regular file", app, name);
	}
	return fd;
}

static int status_name(const char *app, const char *suffix, char *out, size_t size)
{
	int n = snprintf(out, size, "%s%s", app, suffix);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int open_status_dir(int pod_fd)
{
	return path_open_beneath(pod_fd, POD_DIR_STATUS, O_DIRECTORY | O_RDONLY, 0);
}

static int podfiles_touch(int pod_fd, const char *app, const char *suffix)
{
	char name[NAME_MAX + 1];
	int r = status_name(app, suffix, name, sizeof(name));
	cleanup_fd int dir = open_status_dir(pod_fd);
	if (r < 0 || dir < 0)
		return r < 0 ? r : dir;
	return file_touch_at(dir, name, 0640);
}

static int podfiles_forget(int status_dir, const char *app, const char *suffix)
{
	char name[NAME_MAX + 1];
	int r = status_name(app, suffix, name, sizeof(name));
	if (r == 0 && unlinkat(status_dir, name, 0) < 0 && errno != ENOENT)
		r = -errno;
	return r;
}

int podfiles_note_created(int pod_fd, const char *app)
{
	return podfiles_touch(pod_fd, app, POD_STATUS_CREATED_SUFFIX);
}

int podfiles_note_stopping(int pod_fd, const char *app)
{
	return podfiles_touch(pod_fd, app, POD_STATUS_STOPPING_SUFFIX);
}

int podfiles_note_oom(int pod_fd, const char *app)
{
	return podfiles_touch(pod_fd, app, POD_STATUS_OOM_SUFFIX);
}

/*
 * Takes the status @app has back and keeps its space, or takes space for one: a file with something
 * in it, of which the name and the content change when the app ends. Neither needs another block.
 */
static int reserve_status(int dir, const char *app, const char *reserve)
{
	static const char space[] = "reserved\n";
	struct stat st;
	if (renameat(dir, app, dir, reserve) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	cleanup_fd int fd =
		openat(dir, reserve, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, STATUS_MODE);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return st.st_size > 0 ? 0 : fd_write_all(fd, space, sizeof(space) - 1);
}

/*
 * Writes the status into the space that was reserved. 0, or -errno: it has to be written elsewhere.
 */
static int use_reserve(int dir, const char *app, const char *reserve, const char *text, size_t len)
{
	cleanup_fd int fd = openat(dir, reserve, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd_write_all(fd, text, len);
	if (r == 0 && (ftruncate(fd, (off_t)len) < 0 || fsync(fd) < 0 ||
		       renameat(dir, reserve, dir, app) < 0))
		r = -errno;
	return r;
}

static int reserve_name(const char *app, char out[NAME_MAX + 1])
{
	int n = snprintf(out, NAME_MAX + 1, POD_STATUS_RESERVED, app);
	return n < 0 || n > NAME_MAX ? -ENAMETOOLONG : 0;
}

int podfiles_note_started(int pod_fd, const char *app)
{
	char reserve[NAME_MAX + 1];
	cleanup_fd int dir = open_status_dir(pod_fd);
	if (dir < 0)
		return dir;
	int r = podfiles_forget(dir, app, POD_STATUS_STOPPING_SUFFIX);
	int gone = podfiles_forget(dir, app, POD_STATUS_OOM_SUFFIX);
	if (gone == 0)
		gone = podfiles_forget(dir, app, POD_STATUS_REASON_SUFFIX);
	if (gone == 0)
		gone = reserve_name(app, reserve);
	if (gone < 0)
		return gone;
	int reserved = reserve_status(dir, app, reserve);
	int touched = podfiles_touch(pod_fd, app, POD_STATUS_STARTED_SUFFIX);
	return r < 0 ? r : MIN(reserved, touched);
}

int podfiles_note_suspended(int pod_fd, bool is)
{
	if (is)
		return file_touch_at(pod_fd, POD_FILE_SUSPENDED, 0640);
	return unlinkat(pod_fd, POD_FILE_SUSPENDED, 0) < 0 ? -errno : 0;
}

int podfiles_note_ready(int pod_fd)
{
	return file_touch_at(pod_fd, POD_FILE_READY, 0640);
}

int podfiles_note_reason(int pod_fd, const char *app, int signal, const char *message)
{
	char name[NAME_MAX + 1], text[AGENT_TEXT_MAX + 16];
	if (signal == 0 && !*message)
		return 0;
	int len = snprintf(text, sizeof(text), "%d\n%s\n", signal, message);
	if (len < 0 || (size_t)len >= sizeof(text))
		return -EMSGSIZE;
	int r = status_name(app, POD_STATUS_REASON_SUFFIX, name, sizeof(name));
	cleanup_fd int dir = open_status_dir(pod_fd);
	if (r < 0 || dir < 0)
		return r < 0 ? r : dir;
	return file_replace_at(dir, name, text, (size_t)len, 0640);
}

int podfiles_note_exited(int pod_fd, const char *app, int status)
{
	char text[16], reserve[NAME_MAX + 1];
	int len = snprintf(text, sizeof(text), "%d\n", status);
	cleanup_fd int dir = open_status_dir(pod_fd);
	if (dir < 0)
		return dir;
	int r = reserve_name(app, reserve);
	if (r == 0)
		r = use_reserve(dir, app, reserve, text, (size_t)len);
	if (r < 0)
		r = file_write_at(dir, app, text, (size_t)len, STATUS_MODE);
	int forgotten = podfiles_forget(
		dir, app,
		POD_STATUS_STOPPING_SUFFIX); /* also if the disk is full: it is no longer true */
	return r < 0 ? r : forgotten;
}
