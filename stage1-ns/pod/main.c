/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk-ns: makes the namespaces of one pod, mounts its images, and keeps the privileges for that
 * away from the supervisor, which talks to the pod. This process talks to the supervisor alone
 * (stage1-ns/message.h). It ends with the agent, and ends it when the supervisor is gone.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/num.h"
#include "lib/base/uuid.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "lib/wire/agent.h"
#include "stage1-ns/message.h"
#include "stage1-ns/pod/pod.h"

struct options {
	struct pod_input pod;
	uint64_t images;
};

static int parse_net(const char *s, enum pod_net *ret)
{
	static const char *const names[] = {
		[POD_NET_HOST] = "host", [POD_NET_JOIN] = "join", [POD_NET_CONNECT] = "connect"
	};
	for (size_t i = POD_NET_HOST; i < ARRAY_SIZE(names); i++) {
		if (strcmp(s, names[i]) != 0)
			continue;
		*ret = (enum pod_net)i;
		return 0;
	}
	return -EINVAL;
}

static int add_volume(const char *text, struct pod_input *in)
{
	return in->n_volumes < AGENT_VOLUME_SLOTS
		       ? host_volume_parse(text, &in->volumes[in->n_volumes++])
		       : -E2BIG;
}

static int take_number(const char *text, int64_t *ret)
{
	uint64_t n = 0;
	int r = num_parse_u64(text, INT64_MAX, &n);
	*ret = (int64_t)n;
	return r;
}

static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
		{ "uuid", required_argument, NULL, 'u' },
		{ "images", required_argument, NULL, 'i' },
		{ "scratch", no_argument, NULL, 's' },
		{ "userns", no_argument, NULL, 'n' },
		{ "net", required_argument, NULL, 't' },
		{ "memory", required_argument, NULL, 'm' },
		{ "cpu-millis", required_argument, NULL, 'c' },
		{ "pids", required_argument, NULL, 'p' },
		{ "volume", required_argument, NULL, 'v' },
		{ "cgroup-parent", required_argument, NULL, 'g' },
		{ 0 },
	};
	int r = 0;
	for (int c; r == 0 && (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
		if (c == 'u')
			o->pod.uuid = optarg;
		else if (c == 'i')
			r = num_parse_u64(optarg, AGENT_APPS_MAX, &o->images);
		else if (c == 's')
			o->pod.with_scratch = true;
		else if (c == 'g')
			o->pod.cgroup_parent = optarg;
		else if (c == 'n')
			o->pod.with_userns = true;
		else if (c == 't')
			r = parse_net(optarg, &o->pod.net);
		else if (c == 'm')
			r = take_number(optarg, &o->pod.limits.memory_max);
		else if (c == 'c')
			r = take_number(optarg, &o->pod.limits.cpu_millis);
		else if (c == 'p')
			r = take_number(optarg, &o->pod.limits.pids_max);
		else if (c == 'v')
			r = add_volume(optarg, &o->pod);
		else
			r = -EINVAL;
	}
	return r < 0 || !o->pod.uuid || !uuid_is_valid(o->pod.uuid) ? -EINVAL : 0;
}

/* ---- messages ---- */

static void tell(enum message_kind kind, int slot, const char *text, int fd)
{
	struct message m = { .kind = kind, .slot = slot };
	size_t sent;
	snprintf(m.text, sizeof(m.text), "%s", text);
	/* A supervisor that is gone shows as the end of the socket. */
	unix_send_fds(HELPER_FD_SOCKET, &m, sizeof(m), &fd, fd < 0 ? 0 : 1, &sent);
}

static void obey(struct pod *p, const struct message *m, int fd)
{
	struct err e = ERR_INIT;
	int r = -EINVAL;
	if (m->slot < 0 || m->slot >= AGENT_APPS_MAX)
		err_set(&e, r, "slot %d: there is none", m->slot);
	else if (m->kind == MESSAGE_PLUG && fd >= 0)
		r = pod_plug(p, m->slot, fd, &e);
	else if (m->kind == MESSAGE_UNPLUG)
		r = pod_unplug(p, m->slot, &e);
	else
		err_set(&e, r, "message %u: not understood", m->kind);
	tell(MESSAGE_DONE, m->slot, r < 0 ? e.text : "", -EBADF);
}

/* False when the supervisor is gone, or has said the last. */
static bool take_message(struct pod *p)
{
	struct message m;
	int fds[UNIX_FDS_MAX];
	size_t len = 0, n = 0;
	int r = unix_recv_fds(HELPER_FD_SOCKET, &m, sizeof(m), fds, &len, &n);
	if (r < 0 || len != sizeof(m))
		return r == -EINTR;
	obey(p, &m, n > 0 ? fds[0] : -EBADF);
	for (size_t i = 0; i < n; i++)
		fd_close(fds[i]);
	return true;
}

/* Until the agent has ended, or has to. */
static void serve(struct pod *p)
{
	struct pollfd fds[] = { { .fd = HELPER_FD_SOCKET, .events = POLLIN },
				{ .fd = p->agent_fd, .events = POLLIN } };
	for (;;) {
		int n = poll(fds, 2, -1);
		if (n < 0 && errno == EINTR) /* what was seen last says nothing */
			continue;
		if (n < 0 || fds[1].revents || (fds[0].revents && !take_message(p)))
			return;
	}
}

/* ---- life ---- */

static int start_pod(struct pod *p, const struct options *o, struct err *e)
{
	int r = pod_create(p, &o->pod, e);
	for (int i = 0; r == 0 && i < (int)o->images; i++) {
		r = pod_plug(p, i, HELPER_FD_IMAGE0 + i, e);
		fd_close(HELPER_FD_IMAGE0 + i);
	}
	if (r == 0)
		r = pod_start(p, e);
	if (r == 0)
		tell(MESSAGE_UP, 0, "", p->agent_fd);
	return r;
}

/* The last that the supervisor hears, as the first line of our errors. */
static void say_end(int r, const struct err *e, int status, bool was_short)
{
	if (r < 0)
		fprintf(stderr, "%s\n", e->text);
	else if (WIFSIGNALED(status))
		fprintf(stderr, "husk-agent: killed by signal %d%s\n", WTERMSIG(status),
			was_short ? ", and the memory of the pod was short (give it more with "
				    "--memory)"
				  : "");
	else
		fprintf(stderr, "husk-agent: exit code %d\n", WEXITSTATUS(status));
}

static int run(const struct options *o)
{
	struct err e = ERR_INIT;
	struct pod pod = POD_INIT;
	int status = -1;
	for (int fd = HELPER_FD_SOCKET; fd < HELPER_FD_IMAGE0 + (int)o->images; fd++)
		fd_set_cloexec(fd, true);
	int r = start_pod(&pod, o, &e);
	if (r == 0)
		serve(&pod);
	pod_end(&pod, &status);
	say_end(r, &e, status, pod.was_short);
	pod_forget_mounts(&pod);
	return r < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct options o = { .pod.cgroup_parent = "" };
	if (parse_options(argc, argv, &o) < 0) {
		fprintf(stderr, "husk-ns: is started by husk\n");
		return 2;
	}
	return run(&o);
}
