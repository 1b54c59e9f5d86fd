/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/os/clock.h"
#include "lib/wire/stage1.h"

static bool is_over(const struct pod *p)
{
	switch (pod_state_of(p->phase, p->locked)) {
	case POD_STATE_EMBRYO:
	case POD_STATE_PREPARING:
	case POD_STATE_PREPARED:
	case POD_STATE_RUNNING:
		return false;
	case POD_STATE_ABORTED_PREPARE:
	case POD_STATE_EXITED:
	case POD_STATE_EXITED_DELETING:
	case POD_STATE_EXITED_GARBAGE:
	case POD_STATE_DELETING:
	case POD_STATE_GARBAGE:
	case POD_STATE_COUNT_:
		break;
	}
	return true;
}

bool pod_is_ready(const struct pod *p)
{
	struct stat st;
	return fstatat(p->fd, POD_FILE_READY, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int pod_need_running(const struct pod *p, struct err *e)
{
	if (pod_state_of(p->phase, p->locked) == POD_STATE_RUNNING)
		return 0;
	return err_set(e, -EINVAL, "pod \"%s\" isn't currently running", p->uuid.text);
}

/* Waits a moment and looks at the pod again. */
static int look_again(struct pods *ps, struct pod *p, int64_t deadline_ns, struct err *e)
{
	struct uuid uuid = p->uuid;
	if (clock_monotonic_ns() >= deadline_ns)
		return err_set(e, -ETIMEDOUT, "context deadline exceeded");
	nanosleep(&(struct timespec){ .tv_nsec = POD_WAIT_POLL_MS * NS_PER_MS }, NULL);
	pod_deinit(p);
	int r = pod_open(ps, uuid.text, p, e);
	if (r <= 0)
		return r;
	p->uuid = uuid;
	return err_set(e, -ENOENT, "pod \"%s\" was removed meanwhile", uuid.text);
}

int pod_wait_finished(struct pods *ps, struct pod *p, int64_t deadline_ns, struct err *e)
{
	int r = 0;
	while (r == 0 && !is_over(p))
		r = look_again(ps, p, deadline_ns, e);
	return r < 0 ? err_context(e, "error waiting for pod to finish") : 0;
}

int pod_wait_ready(struct pods *ps, struct pod *p, int64_t deadline_ns, struct err *e)
{
	int r = 0;
	while (r == 0 && !pod_is_ready(p) && !is_over(p))
		r = look_again(ps, p, deadline_ns, e);
	if (r == 0 && !pod_is_ready(p))
		r = err_set(e, -EINVAL, "pod \"%s\" ended before it was ready", p->uuid.text);
	return r < 0 ? err_context(e, "error waiting for pod readiness") : 0;
}
