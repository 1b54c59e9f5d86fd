/* SPDX-License-Identifier: Apache-2.0 */
/* The way to the agent of a pod of namespaces: the socket on which it listens. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/lock.h"
#include "lib/os/rmtree.h"
#include "lib/os/unix.h"
#include "lib/os/userns.h"
#include "stage1-ns/backend/files.h"
#include "stage1-ns/message.h"
#include "stage1-ns/pod/pod.h"
#include "stage1/backend.h"
#include "stage1/pod/pod_cgroup.h"
#include "stage1/pod/pod_limits.h"
#include "stage1/pod/podfiles.h"
#include "stage1/volumes/hot_volumes.h"

#define END_WAIT_NS (10 * NS_PER_SEC) /* for what is left of a killed pod, which is ending */
#define END_POLL_NS (5 * NS_PER_MS)

/* There is one port. A socket of which nobody has accepted yet is connected all the same. */
static int connect_agent(unsigned port, uint32_t *ret_events)
{
	(void)port;
	*ret_events = EPOLLOUT;
	cleanup_fd int fd = unix_connect(NS_FILE_SOCKET);
	int r = fd < 0 ? fd : fd_set_nonblock(fd, true);
	return r < 0 ? r : TAKE_FD(fd);
}

static int finish(int fd)
{
	(void)fd;
	return 0;
}

const struct agent_route flavor_route = { .connect = connect_agent, .finish = finish };

const struct volume_keeper flavor_volume_keeper = {
	.process = "husk-agent",
	.dir = NS_VOLUME_DIR "/" AGENT_HOST_APPS,
	.ids_fd = HOT_VOLUMES_OWN_IDS,
	.otherwise = "this pod has no agent",
	.without_ids = "--userns=host",
};

const char *flavor_helper_name(const char *comm)
{
	return strcmp(comm, "husk-ns") == 0 ? "keeper" : "agent";
}

/* Nobody's pod may have all processes that the host can have. */
int flavor_update(const char *uuid, unsigned changed, const struct cgroup_limits *l, struct err *e)
{
	struct cgroup_limits to = *l;
	if (to.pids_max == 0)
		to.pids_max = POD_TASKS;
	return pod_limits_update(uuid, POD_LIMITS_OF_PROGRAMS, changed, &to, e);
}

/* Without whoever holds it, no process of the pod lives. */
static int await_end(void)
{
	int64_t end = clock_monotonic_ns() + END_WAIT_NS;
	cleanup_fd int fd = open(NS_FILE_LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	int r;
	while ((r = lock_try_exclusive(fd)) == LOCK_TAKEN && clock_monotonic_ns() < end)
		nanosleep(&(struct timespec){ .tv_nsec = END_POLL_NS }, NULL);
	return r == LOCK_TAKEN ? -ETIMEDOUT : r;
}

static int remove_scratch(void *ctx)
{
	(void)ctx;
	return rmtree(AT_FDCWD, POD_FILE_SCRATCH);
}

/* Who is not root cannot remove what belongs to his subordinate ids, but in their namespace. */
int flavor_clean_up(const char *uuid, const char *cgroup_parent, bool stays, struct err *e)
{
	int r = pod_cgroup_kill(uuid, cgroup_parent, e);
	if (r < 0)
		return r;
	r = await_end();
	if (r < 0)
		return err_sys(e, r, "processes of the pod do not end");
	r = pod_cgroup_remove(uuid, cgroup_parent, e);
	if (r < 0)
		return r;
	if (stays || geteuid() == 0 || access(POD_FILE_SCRATCH, F_OK) < 0)
		return 0;
	r = userns_call(remove_scratch, NULL, e);
	return r < 0 ? err_context(e, "\"" POD_FILE_SCRATCH "\"") : 0;
}
