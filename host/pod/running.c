/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/running.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>

#include "host/pod/wait.h"
#include "lib/os/clock.h"
#include "lib/os/lock.h"

#define POLL_NS INT64_C(10000000)

/* stage1 gives apps and guest half a minute each; then the VM is killed, which ends the pod. */
#define STOP_WAIT_NS (120 * NS_PER_SEC)

/* What is in front of the command: one for each variable and group, and some ten. */
#define ENTER_OPTIONS_MAX (AGENT_ENV_MAX + AGENT_GROUPS_MAX + 16)

/* ---- stop ---- */

int pod_may_stop(const struct pod *p, struct err *e)
{
	enum pod_state state = pod_state_of(p->phase, p->locked);
	if (pod_state_is_after_run(state))
		return POD_STOPPED;
	if (state != POD_STATE_RUNNING)
		return err_set(e, -EINVAL, "pod \"%s\" is not running", p->uuid.text);
	return 0;
}

/* Waits until nobody holds the pod's lock: then it has ended. */
static int wait_unlocked(const struct pod *p, struct err *e)
{
	int64_t deadline = clock_monotonic_ns() + STOP_WAIT_NS;
	int r;
	while ((r = lock_probe(p->fd)) == LOCK_TAKEN && clock_monotonic_ns() < deadline)
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
	if (r == LOCK_TAKEN)
		return err_set(e, -ETIMEDOUT, "pod \"%s\" did not end within %lld s (use --force)",
			       p->uuid.text, (long long)(STOP_WAIT_NS / NS_PER_SEC));
	return r < 0 ? err_sys(e, r, "pod \"%s\"", p->uuid.text) : 0;
}

int pod_stop(const struct pod *p, const struct stage1 *s, bool force, bool debug, struct err *e)
{
	cleanup_strv struct strv args;
	strv_init(&args, ABI_ARGS_MAX);
	int r = pod_may_stop(p, e);
	if (r != 0)
		return r;
	if (!s->stop[0])
		return err_set(e, -EOPNOTSUPP, "stage1 \"%s\" cannot stop pods", s->dir);
	r = abi_stop_args(s, p->uuid.text, debug, force, &args);
	if (r < 0)
		return err_sys(e, r, "arguments of stage1");
	r = stage1_call(s->stop, p->fd, &args, e);
	return r < 0 ? r : wait_unlocked(p, e);
}

/* ---- enter and attach ---- */

int pod_wait_apps(struct pods *ps, struct pod *p, const struct stage1 *s, struct err *e)
{
	return s->abi == STAGE1_ABI_HUSK ? pod_wait_ready(ps, p, INT64_MAX, e) : 0;
}

int pod_read_running(struct pods *ps, const struct pod *p, struct pod_info *ret, struct err *e)
{
	if (pod_info_read(ps, p, ret) == 0)
		return 0;
	return err_set(e, -ENOENT, "pod \"%s\" isn't currently running", p->uuid.text);
}

int pod_enter_wait(struct pods *ps, struct pod *p, const struct stage1 *s, struct pod_info *ret,
		   struct err *e)
{
	int r = pod_need_running(p, e);
	if (r < 0)
		return r;
	r = pod_wait_apps(ps, p, s, e);
	if (r < 0 && p->fd >= 0 && p->locked)
		return r;
	r = pod_need_running(
		p, e); /* it may have ended, which says more than that it was waited for */
	return r < 0 ? r : pod_read_running(ps, p, ret, e);
}

int pod_enter(const struct pod *p, const struct stage1 *s, const struct abi_enter *q,
	      size_t max_words, struct err *e)
{
	cleanup_strv struct strv args;
	strv_init(&args, ENTER_OPTIONS_MAX + max_words);
	int r = abi_enter_args(s, q, &args, e);
	return r < 0 ? r : stage1_exec_enter(s, p->fd, q->control_fd, &args, e);
}

int pod_attach(const struct pod *p, const struct stage1 *s, const struct abi_attach *q,
	       struct err *e)
{
	cleanup_strv struct strv args;
	strv_init(&args, ABI_ATTACH_ARGS_MAX);
	int r = abi_attach_args(q, &args);
	return r < 0 ? err_sys(e, r, "arguments of stage1")
		     : stage1_exec_attach(s, p->fd, q->control_fd, &args, e);
}

/* ---- stats ---- */

int pod_stats(const struct pod *p, const struct stage1 *s, struct abi_stats q, struct buf *out,
	      struct err *e)
{
	cleanup_strv struct strv args;
	int status = 0;
	strv_init(&args, ABI_ARGS_MAX);
	if (!s->stats[0])
		return err_set(e, -EOPNOTSUPP, "stage1 \"%s\" does not support stats", s->dir);
	q.uuid = p->uuid.text;
	int r = abi_stats_args(&q, &args);
	if (r < 0)
		return err_sys(e, r, "arguments of stage1");
	r = stage1_query_pod(s->stats, p->fd, &args, q.host, out, &status, e);
	if (r < 0)
		return r;
	if (WIFSIGNALED(status))
		return err_set(e, -EIO, "\"%s\" was killed by signal %d", s->stats,
			       WTERMSIG(status));
	return WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/* ---- doctor ---- */

int pod_doctor(const struct pod *p, const struct stage1 *s, struct buf *out, bool *ret_ok,
	       struct err *e)
{
	cleanup_strv struct strv args;
	int status = 0;
	strv_init(&args, 1);
	if (!s->doctor[0])
		return err_set(e, -EOPNOTSUPP, "stage1 \"%s\" has no doctor", s->dir);
	int r = strv_addf(&args, "--uuid=%s", p->uuid.text);
	if (r < 0)
		return err_sys(e, r, "arguments of stage1");
	r = stage1_query_pod(s->doctor, p->fd, &args, false, out, &status, e);
	*ret_ok = r == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return r;
}
