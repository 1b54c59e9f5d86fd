/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/name.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/lock.h"
#include "lib/wire/stage1.h"

#define FILE_MODE 0640

/* Of those who hold names against others. */
#define PHASES_HOLDING (1U << POD_PREPARE | 1U << POD_PREPARED | 1U << POD_RUN)

bool pod_name_is_valid(const char *name)
{
	size_t n = strlen(name);
	if (n == 0 || n > POD_NAME_MAX || name[0] == '-' || name[n - 1] == '-')
		return false;
	for (const char *s = name; *s; s++)
		if ((*s < 'a' || *s > 'z') && (*s < '0' || *s > '9') && *s != '-')
			return false;
	return !uuid_is_valid(name);
}

void pod_name_read(int pod_fd, char ret[POD_NAME_MAX + 1])
{
	cleanup_free char *text = NULL;
	ret[0] = '\0';
	if (pod_fd < 0 || file_read_at(pod_fd, POD_FILE_NAME, POD_NAME_MAX + 1, &text, NULL) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (pod_name_is_valid(text))
		str_copy(ret, POD_NAME_MAX + 1, text);
}

/* Waits for a lock that others hold for a moment. The descriptor that holds it, or -errno. */
static int lock_names(const struct pods *ps)
{
	int64_t deadline = clock_monotonic_ns() + POD_LOCK_WAIT_MS * NS_PER_MS;
	/* A description of its own: the lock goes with the descriptor. */
	cleanup_fd int fd =
		openat(pods_phase_fd(ps, POD_PREPARE), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (;;) {
		int r = lock_try_exclusive(fd);
		if (r != LOCK_TAKEN)
			return r < 0 ? r : TAKE_FD(fd);
		if (clock_monotonic_ns() >= deadline)
			return -EBUSY;
		nanosleep(&(struct timespec){ .tv_nsec = NS_PER_MS }, NULL);
	}
}

/*
 * True if the pod in @phase is named so; one whose preparation was given up has no name any more.
 */
static bool has_name(struct pods *ps, enum pod_phase phase, const char *uuid, const char *name)
{
	char its[POD_NAME_MAX + 1];
	cleanup_fd int fd = openat(pods_phase_fd(ps, phase), uuid,
				   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	pod_name_read(fd, its);
	if (strcmp(its, name) != 0)
		return false;
	if (phase != POD_PREPARE || lock_try_shared(fd) == LOCK_TAKEN)
		return true;
	/* Nobody prepares it: it moved on while we looked, or somebody died. */
	return faccessat(pods_phase_fd(ps, phase), uuid, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

/* The number of pods in @phases that are named so, and the last of them. Or -errno and @e. */
static int count(struct pods *ps, unsigned int phases, const char *name, struct uuid *ret,
		 struct err *e)
{
	CLEANUP(pod_list_deinit) struct pod_list l = POD_LIST_INIT;
	int r = pods_list(ps, phases, POD_LIST_MAX, &l, e), n = 0;
	if (r < 0)
		return r;
	/* In the order in which pods move, so that none is missed. */
	for (size_t i = 0; i < l.n; i++)
		for (enum pod_phase phase = 0; phase < POD_PHASE_COUNT_; phase++) {
			if (!(phases & 1U << phase) || pods_phase_fd(ps, phase) < 0 ||
			    !has_name(ps, phase, l.uuids[i].text, name))
				continue;
			*ret = l.uuids[i];
			n++;
			break;
		}
	return n;
}

int pod_name_check(struct pods *ps, const char *name, struct err *e)
{
	struct uuid holder;
	int n = count(ps, PHASES_HOLDING, name, &holder, e);
	if (n > 0)
		return err_set(e, -EEXIST,
			       "name \"%s\" is that of pod \"%s\" (choose another, or husk rm %s)",
			       name, holder.text, name);
	return n;
}

int pod_name_take(struct pods *ps, const struct pod *p, const char *name, struct err *e)
{
	cleanup_fd int lock = lock_names(ps);
	if (lock < 0)
		return err_sys(e, lock, "cannot lock the names of pods");
	int r = pod_name_check(ps, name, e);
	if (r < 0)
		return r;
	r = file_write_at(p->fd, POD_FILE_NAME, name, strlen(name), FILE_MODE);
	return r < 0 ? err_sys(e, r, "cannot write \"" POD_FILE_NAME "\" of the pod") : 0;
}

int pod_name_find(struct pods *ps, const char *name, struct uuid *ret, struct err *e)
{
	if (!pod_name_is_valid(name))
		return POD_GONE;
	int n = count(ps, PHASES_HOLDING, name, ret, e);
	if (n == 0)
		n = count(ps, 1U << POD_EXITED_GARBAGE, name, ret, e);
	if (n > 1)
		return err_set(e, -EEXIST, "%d pods that have ended are named \"%s\" (use a UUID)",
			       n, name);
	return n < 0 ? n : n == 0 ? POD_GONE : 0;
}
