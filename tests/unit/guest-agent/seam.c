/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/guest-agent/seam.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "guest-agent/app/launch.h"
#include "guest-agent/app/pidns.h"
#include "guest-agent/app/rootfs.h"
#include "guest-agent/app/volumes.h"
#include "guest-agent/pod/job.h"
#include "guest-agent/pod/machine.h"
#include "guest-agent/pod/ports.h"
#include "lib/os/fd.h"

struct seam seam;

void seam_reset(void)
{
	memset(&seam, 0, sizeof(seam));
	seam.last_pid = 100;
}

static pid_t start(bool is_job)
{
	if (seam.no_fork || seam.n_children == SEAM_CHILDREN_MAX)
		return -1;
	size_t i = seam.n_children++;
	memset(&seam.children[i], 0, sizeof(seam.children[i]));
	seam.children[i].pid = ++seam.last_pid;
	seam.children[i].is_job = is_job;
	return seam.last_pid;
}

size_t seam_count(bool jobs)
{
	size_t n = 0;
	for (size_t i = 0; i < seam.n_children; i++)
		n += seam.children[i].is_job == jobs && !seam.children[i].ended;
	return n;
}

static bool end_first(bool job, int status, int fault)
{
	for (size_t i = 0; i < seam.n_children; i++) {
		if (seam.children[i].is_job != job || seam.children[i].ended)
			continue;
		seam.children[i].ended = true;
		seam.children[i].status = status;
		seam.children[i].fault = fault;
		return true;
	}
	return false;
}

bool seam_end_job(int fault)
{
	return end_first(true, 0, fault);
}

bool seam_end_app(int status)
{
	return end_first(false, status, 0);
}

int machine_reap(pid_t *ret_pid, int *ret_status)
{
	for (size_t i = 0; i < seam.n_children; i++) {
		if (!seam.children[i].ended)
			continue;
		*ret_pid = seam.children[i].pid;
		*ret_status = seam.children[i].status;
		seam.reaped = seam.children[i];
		seam.children[i] = seam.children[--seam.n_children];
		return 0;
	}
	for (size_t i = 0; i < seam.n_inits; i++) {
		if (!seam.inits[i].ended)
			continue;
		*ret_pid = seam.inits[i].pid;
		*ret_status = SIGKILL;
		seam.inits[i] = seam.inits[--seam.n_inits];
		return 0;
	}
	return seam.n_children + seam.n_inits > 0 ? -EAGAIN : -ECHILD;
}

int machine_signal(pid_t pid, int sig)
{
	for (size_t i = 0; i < seam.n_children; i++)
		if (seam.children[i].pid == pid) {
			seam.children[i].signal = sig;
			return 0;
		}
	for (size_t i = 0; i < seam.n_inits; i++)
		if (seam.inits[i].pid == pid) {
			seam.inits[i].ended |= sig == SIGKILL;
			return 0;
		}
	return -ESRCH;
}

void machine_kill_all(void)
{
	seam.kills++;
	for (size_t i = 0; i < seam.n_inits; i++)
		seam.inits[i].ended = true;
	for (size_t i = 0; i < seam.n_children; i++) {
		if (seam.children[i].ended)
			continue;
		seam.children[i].ended = true;
		seam.children[i].status = SIGKILL;
		seam.children[i].fault = AGENT_E_INTERNAL;
	}
}

int machine_configure_net(const struct net *net, struct err *e)
{
	seam.nets++;
	return seam.fail_net
		       ? err_set(e, -ENODEV, "interface \"%s\": gone", net->interfaces[0].name)
		       : 0;
}

int machine_set_hostname(const char *name)
{
	(void)name;
	seam.hostnames++;
	return 0;
}

int machine_set_sysctls(const struct strv *list, struct err *e)
{
	seam.sysctls += list->n;
	return seam.fail_sysctl ? err_set(e, -ENOENT, "sysctl \"%s\": none", list->v[0]) : 0;
}

int machine_set_clock(int64_t ns)
{
	seam.clock_ns = ns;
	return 0;
}

int machine_loopback_up(void)
{
	return 0;
}

bool machine_has_default(pid_t pid, int sig)
{
	(void)pid;
	(void)sig;
	return false;
}

int machine_open_low_ports(void)
{
	seam.low_ports++;
	return 0;
}

int job_start(struct job *job, job_fn fn, const void *arg, struct fault *f)
{
	(void)fn;
	return job_start_data(job, NULL, arg, 0, f);
}

int job_start_data(struct job *job, job_data_fn fn, const void *arg, size_t size, struct fault *f)
{
	(void)fn;
	(void)arg;
	(void)size;
	pid_t pid = start(true);
	if (pid < 0)
		return fault_set(f, AGENT_E_INTERNAL, "no process");
	*job = (struct job){ .pid = pid, .result_fd = -EBADF };
	return 0;
}

void job_finish(struct job *job, struct fault *ret)
{
	ret->code = 0;
	if (seam.reaped.fault)
		fault_set(ret, (enum agent_error)seam.reaped.fault, "played");
	job_deinit(job);
}

/* Whatever the result is about, its bytes are all 1. */
void job_finish_data(struct job *job, void *data, size_t size, struct fault *ret)
{
	job_finish(job, ret);
	if (ret->code == 0)
		memset(data, 1, size);
}

void job_deinit(struct job *job)
{
	*job = JOB_INIT;
}

static int start_process(struct launched *ret, struct fault *f)
{
	pid_t pid = start(false);
	if (pid < 0)
		return fault_set(f, AGENT_E_INTERNAL, "no process");
	*ret = LAUNCHED_INIT;
	ret->pid = pid;
	ret->hear_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	seam.children[seam.n_children - 1].hear_fd = ret->hear_fd;
	return 0;
}

int pidns_new(const char *empty_dir, pid_t *ret)
{
	(void)empty_dir;
	if (seam.no_fork || seam.n_inits == SEAM_CHILDREN_MAX)
		return -EAGAIN;
	*ret = 10000 + ++seam.last_init;
	seam.inits[seam.n_inits++] = (struct seam_init){ .pid = *ret };
	return 0;
}

int launch(const struct launch *l, struct launched *ret, struct fault *f)
{
	(void)l;
	return start_process(ret, f);
}

/* Has nothing to say until the test ends it. */
int launch_exec(const struct launch_exec *l, struct launched *ret, struct fault *f)
{
	(void)l;
	int r = start_process(ret, f);
	if (r == 0)
		seam.children[seam.n_children - 1].mounted =
			seam.children[seam.n_children - 1].released = true;
	return r;
}

/* Whom nobody hears any more has nothing to say. */
void launched_deinit(struct launched *p)
{
	for (size_t i = 0; i < seam.n_children; i++)
		if (seam.children[i].pid == p->pid)
			seam.children[i].mounted = true;
	fd_close(p->hear_fd);
	*p = LAUNCHED_INIT;
}

bool seam_mount_app(int fault)
{
	for (size_t i = 0; i < seam.n_children; i++) {
		if (seam.children[i].is_job || seam.children[i].ended || seam.children[i].mounted)
			continue;
		seam.children[i].mounted = true;
		seam.children[i].fault = fault;
		return eventfd_write(seam.children[i].hear_fd, 1) == 0;
	}
	return false;
}

static struct seam_child *find_child(pid_t pid)
{
	for (size_t i = 0; i < seam.n_children; i++)
		if (seam.children[i].pid == pid)
			return &seam.children[i];
	return &seam.reaped;
}

/*
 * After seam_mount_app() its fault; before it nothing, or nothing any more if the process was
 * reaped.
 */
int launch_hear(const struct launched *p, struct fault *ret)
{
	const struct seam_child *child = find_child(p->pid);
	eventfd_t n;
	if (eventfd_read(p->hear_fd, &n) < 0)
		return child == &seam.reaped ? -EPIPE : -EAGAIN;
	ret->code = 0;
	if (child->fault)
		fault_set(ret, (enum agent_error)child->fault, "played");
	return 0;
}

bool launch_has_executed(const struct launched *p)
{
	return find_child(p->pid)->released && !seam.slow_exec;
}

void seam_execute(void)
{
	seam.slow_exec = false;
	for (size_t i = 0; i < seam.n_children; i++)
		if (!seam.children[i].is_job && seam.children[i].released)
			eventfd_write(seam.children[i].hear_fd, 1);
}

int launch_release(const struct launched *p)
{
	struct seam_child *child = find_child(p->pid);
	if (seam.deaf && !child->mounted)
		return -EPIPE;
	child->released = true;
	return 0;
}

/* A process that waits takes note at once. */
void launch_abandon(struct launched *p)
{
	struct seam_child *child = find_child(p->pid);
	if (child != &seam.reaped && !child->released)
		child->status = 203 << 8, child->ended = true;
}

const char *rootfs_empty_path(const struct rootfs_config *c, char *ret)
{
	(void)c;
	ret[0] = '\0';
	return ret;
}

int rootfs_mount_scratch(const struct rootfs_config *c, int64_t lun, struct fault *f)
{
	(void)c;
	(void)lun;
	(void)f;
	return 0;
}

void rootfs_unmount_root(const struct rootfs_config *c, const char *app)
{
	(void)c;
	(void)app;
}

int rootfs_remove_app(const struct rootfs_config *c, const char *app, int64_t lun, struct fault *f)
{
	(void)c;
	(void)app;
	(void)lun;
	(void)f;
	return 0;
}

void volumes_look_anew(const struct rootfs_config *c, const char *app)
{
	(void)c;
	(void)app;
}

void volumes_seal(const struct rootfs_config *c)
{
	(void)c;
}

int rootfs_seal_scratch(const struct rootfs_config *c)
{
	(void)c;
	return -EOPNOTSUPP;
}

int rootfs_unmount_scratch(const struct rootfs_config *c, struct fault *f)
{
	(void)c;
	(void)f;
	return 0;
}

/* What listens on this machine is nobody's business here. */
struct ports *ports_new(struct loop *loop)
{
	return (struct ports *)loop;
}

void ports_free(struct ports *p)
{
	(void)p;
}

int ports_connect(struct ports *p, int64_t port, int *ret_fd, struct fault *f)
{
	(void)p;
	if (port == SEAM_CLOSED_PORT)
		return fault_set(f, AGENT_E_STATE, "port %d of the pod: refused", (int)port);
	*ret_fd = eventfd(0, EFD_CLOEXEC);
	return 0;
}

int ports_attach(struct ports *p, int fd, int sock, struct fault *f)
{
	(void)p;
	(void)f;
	fd_close(fd);
	fd_close(sock);
	return 0;
}
