/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/supervise/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/num.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/notify.h"
#include "lib/os/sandbox.h"
#include "lib/os/userns.h"
#include "lib/os/volume_source.h"
#include "lib/wire/stage1.h"
#include "stage1/apps/confine.h"
#include "stage1/apps/pod_plan.h"
#include "stage1/net/netns.h"
#include "stage1/pod/cgroup_parent.h"
#include "stage1/pod/pod_cgroup.h"
#include "stage1/pod/podfiles.h"
#include "stage1/pod/timeline.h"
#include "stage1/supervise/network.h"
#include "stage1/supervise/options.h"
#include "stage1/supervise/supervisor.h"

struct run {
	const struct backend *backend;
	struct backend_pod *pod; /* owned */
	struct backend_input input;
	struct options options;
	struct network_choice choice;
	struct network network;
	int joined;       /* somebody else's namespace, for a pod in it */
	int netns_socket; /* where the backend sends the pod's, to be connected */
	struct timeline timeline;
	int lock_fd; /* with the pod's lock; for husk-net, and else never used */
	int pod_fd;
	struct pod_manifest manifest;
	struct pod_plan plan;
	int images[AGENT_APPS_MAX];
	int blocks[VOLUMES_MAX]; /* files of volumes, by their number; -EBADF: none */
	char *notify;            /* owned */
	char secret[AGENT_SECRET_LEN + 1];
	char hostname[AGENT_HOSTNAME_MAX + 1];
};

static void run_init(struct run *run, const struct backend *backend)
{
	memset(run, 0, sizeof(*run));
	run->backend = backend;
	run->lock_fd = run->pod_fd = run->joined = run->netns_socket = -EBADF;
	options_init(&run->options);
	network_init(&run->network);
	for (size_t i = 0; i < AGENT_APPS_MAX; i++)
		run->images[i] = -EBADF;
	for (size_t i = 0; i < VOLUMES_MAX; i++)
		run->blocks[i] = -EBADF;
}

static void run_deinit(struct run *run)
{
	run->backend->free(run->pod);
	pod_manifest_deinit(&run->manifest);
	pod_plan_deinit(&run->plan);
	free(run->notify);
	for (size_t i = 0; i < AGENT_APPS_MAX; i++)
		fd_close(run->images[i]);
	for (size_t i = 0; i < VOLUMES_MAX; i++)
		fd_close(run->blocks[i]);
	fd_close(run->pod_fd);
	fd_close(run->joined);
	fd_close(run->netns_socket);
	network_deinit(&run->network);
	options_deinit(&run->options);
}

/*
 * The lock descriptor stays open for our life and goes to no child. Anything else that we inherited
 * by accident is closed.
 */
static int take_lock_fd(struct run *run, struct err *e)
{
	const char *text = getenv(STAGE1_ENV_LOCK_FD);
	uint64_t n;
	if (!text || num_parse_u64(text, INT_MAX, &n) < 0 || fcntl((int)n, F_GETFD) < 0)
		return err_set(e, -EINVAL,
			       "%s does not name the pod's lock (start pods with husk run)",
			       STAGE1_ENV_LOCK_FD);
	int fd = (int)n;
	int r = fd_set_cloexec(fd, true);
	if (r == 0)
		r = fd_close_others(&fd, 1);
	run->lock_fd = fd;
	return r < 0 ? err_sys(e, r, "descriptors") : 0;
}

/* The service manager is ours to tell: no process of the pod gets to know of it. */
static int take_notify_socket(struct run *run, struct err *e)
{
	const char *name = getenv(NOTIFY_ENV);
	if (!name)
		return 0;
	run->notify = strdup(name);
	if (!run->notify || unsetenv(NOTIFY_ENV) < 0)
		return err_sys(e, -ENOMEM, NOTIFY_ENV);
	return 0;
}

static int open_images(struct run *run, struct err *e)
{
	for (size_t i = 0; i < run->manifest.n_apps; i++) {
		run->images[i] = podfiles_open_rootfs(run->pod_fd, run->manifest.apps[i].name, e);
		if (run->images[i] < 0)
			return run->images[i];
	}
	return 0;
}

static int open_blocks(struct run *run, struct err *e)
{
	const struct pod_manifest *m = &run->manifest;
	for (size_t i = 0; i < m->volumes.n; i++) {
		const struct volume *v = &m->volumes.v[i];
		if (v->kind != VOLUME_BLOCK || !pod_manifest_uses_volume(m, v))
			continue;
		run->blocks[i] = volume_source_open(v->source, pod_manifest_only_reads_volume(m, v),
						    v->format == VOLUME_QCOW2, e);
		if (run->blocks[i] < 0)
			return err_context(e, "volume \"%s\"", v->name);
	}
	return 0;
}

/*
 * What somebody has made for the pod, and with it what the pod's root cannot set there. Our own is
 * the host's: that is refused when it is connected.
 */
static int join_netns(struct run *run, struct err *e)
{
	int fd = netns_open(run->options.network.netns, e);
	if (fd < 0)
		return fd;
	run->joined = fd;
	return netns_is_own(fd) ? 0 : netns_take_sysctls(fd, &run->manifest.sysctls, e);
}

static int prepare_backend(struct run *run, struct err *e)
{
	run->input = (struct backend_input){ .pod_fd = run->pod_fd,
					     .uuid = run->options.uuid,
					     .cgroup_parent = run->options.cgroup_parent,
					     .manifest = &run->manifest,
					     .cache_dir = run->options.cache_dir,
					     .secret = run->secret,
					     .debug = run->options.debug,
					     .unprivileged_ids = geteuid() == 0,
					     .uid = userns_single_id(run->options.uuid),
					     .net = BACKEND_NET_NONE,
					     .blocks = run->blocks,
					     .open_paths = run->options.disable_paths };
	int r = 0;
	if (run->backend->in_netns && run->options.network.netns)
		r = join_netns(run, e);
	if (r == 0)
		r = podfiles_write_cgroup_parent(run->pod_fd, run->options.cgroup_parent, e);
	if (r == 0 && cgroup_parent_is_own(run->options.cgroup_parent))
		r = pod_cgroup_supervise(run->options.uuid, run->options.cgroup_parent, e);
	if (r < 0)
		return r;
	run->input.net.is_host = run->choice.kind == NETWORK_HOST;
	run->input.net.joined = run->joined;
	return run->backend->prepare(run->pod, &run->input, &run->plan.setup, e);
}

/*
 * A pod with interfaces of its own starts when they are there. One in a namespace makes that first,
 * and waits until it is connected; the supervisor hears of that when the agent is up.
 */
static int connect_pod(struct run *run, struct err *e)
{
	const struct backend *backend = run->backend;
	struct backend_net *net = &run->input.net;
	const struct network_input in = {
		.options = &run->options.network,
		.names = &run->options.names,
		.kind = run->choice.kind,
		.uuid = run->options.uuid,
		.lock_fd = run->lock_fd,
		.n_queues = backend->in_netns ? 0 : backend->queues(run->pod),
		.netns_comes = backend->in_netns && !run->options.network.netns,
		.debug = run->options.debug,
	};
	if (run->choice.kind == NETWORK_NONE || run->choice.kind == NETWORK_HOST)
		return 0;
	int r = network_start(&run->network, &in, &run->netns_socket, e);
	if (r == 0 && (!backend->in_netns || run->options.network.netns)) {
		r = network_receive(&run->network, e);
		timeline_reach(&run->timeline, MARK_NETWORK);
	}
	net->socket = run->netns_socket;
	net->net = backend->in_netns ? NULL : run->network.net;
	net->taps = run->network.taps;
	return r;
}

static void warn_if_none(const struct run *run)
{
	if (run->choice.is_default && run->choice.kind == NETWORK_NONE && geteuid() == 0 &&
	    !network_is_off(&run->options.network))
		fprintf(stderr,
			"stage1: warning: the pod has no network, as there are no CNI "
			"plugins (install containernetworking-plugins, or say --net=none)\n");
}

static int run_prepare(struct run *run, struct err *e)
{
	run->pod_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run->pod_fd < 0)
		return err_sys(e, -errno, "pod directory");
	int r = network_choose(&run->options.network, run->backend, geteuid() == 0, &run->choice,
			       e);
	if (r == 0)
		r = podfiles_read_manifest(run->pod_fd, &run->manifest, e);
	if (r == 0 && run->backend->in_netns)
		r = sysctls_check_shared(&run->manifest.sysctls, run->choice.kind == NETWORK_HOST,
					 e);
	if (r == 0)
		r = podfiles_write_pid(run->pod_fd, e);
	if (r == 0)
		r = podfiles_make_secret(run->pod_fd, run->secret, e);
	if (r == 0)
		r = pod_plan_make(&run->manifest, &run->plan, e);
	if (r == 0)
		r = prepare_backend(run, e);
	if (r == 0)
		r = open_images(run, e);
	if (r == 0)
		r = open_blocks(run, e);
	timeline_reach(&run->timeline, MARK_PLANNED);
	if (r == 0)
		r = connect_pod(run, e);
	if (r < 0)
		return r;
	warn_if_none(run);
	if (run->options.hostname)
		r = str_copy(run->hostname, sizeof(run->hostname), run->options.hostname);
	else
		snprintf(run->hostname, sizeof(run->hostname), "husk-%s", run->options.uuid);
	return r < 0 ? err_sys(e, r, "--hostname") : 0;
}

/*
 * From here on the pod talks to us. Of root's capabilities only that is kept by which another
 * user's process can be killed, as helpers are; somebody else has none, and stays visible to his
 * other processes.
 */
static int drop_privileges(struct err *e)
{
	static const int kept[] = { CAP_KILL };
	int r = geteuid() == 0 ? sandbox_keep_capabilities(kept, ARRAY_SIZE(kept)) : 0;
	return r < 0 ? err_sys(e, r, "supervisor: cannot give up capabilities") : 0;
}

/* Starts the pod and supervises it to its end. */
static int supervise(struct run *run, struct loop *loop, int *ret_status, struct err *e)
{
	const struct confine_options confine = {
		.all_capabilities = run->options.disable_capabilities,
		.no_seccomp = run->options.disable_seccomp,
		.open_paths = run->options.disable_paths,
		.shares_users = run->backend->shares_users && run->backend->shares_users(run->pod),
		.own_vsock = run->backend->own_vsock && run->backend->own_vsock(run->pod),
	};
	const struct supervisor_input input = { .plan = &run->plan,
						.backend = run->backend,
						.pod = run->pod,
						.confine = confine,
						.hostname = run->hostname,
						.sysctls = &run->manifest.sysctls,
						.secret = run->secret,
						.pod_fd = run->pod_fd,
						.notify = run->notify,
						.network = &run->network,
						.names = &run->options.names,
						.is_host_net = run->input.net.is_host,
						.interactive = run->options.interactive &&
							       isatty(STDIN_FILENO),
						.detach = run->options.detach,
						.boot_timeout_s = run->options.boot_timeout };
	CLEANUP(supervisor_freep) struct supervisor *s = NULL;
	int r = supervisor_new(&input, loop, &run->timeline, &s, e);
	if (r == 0)
		r = run->backend->start(run->pod, loop, run->images, &supervisor_backend_events, s,
					e);
	if (r < 0)
		return r;
	timeline_reach(&run->timeline, MARK_SPAWNED);
	network_close_taps(&run->network);
	for (size_t i = 0; i < VOLUMES_MAX; i++)
		fd_replace(&run->blocks[i], -EBADF);
	fd_replace(&run->netns_socket, -EBADF);
	/* The pod boots meanwhile; names that are wrong were refused by stage0. */
	r = confine_apps(&run->manifest, &confine, run->plan.apps, e);
	if (r == 0)
		r = drop_privileges(e);
	return r < 0 ? r : supervisor_run(s, ret_status, e);
}

static int run_to_end(struct run *run, int argc, char **argv, int *ret_status, struct err *e)
{
	struct loop loop;
	run->pod = run->backend->create();
	if (!run->pod)
		return err_sys(e, -ENOMEM, "pod");
	int r = options_parse(argc, argv, run->backend, run->pod, &run->options, e);
	if (r == 0 && !run->options.uuid)
		r = err_set(e, -EINVAL, "the last argument must be the UUID of the pod");
	if (r < 0)
		return r;
	int64_t now = clock_monotonic_ns();
	timeline_init(&run->timeline, run->options.start_ns ? (int64_t)run->options.start_ns : now);
	timeline_reach(&run->timeline, MARK_STAGE1);
	r = fd_fill_stdio();
	if (r == 0 &&
	    signal(SIGXFSZ, SIG_IGN) == SIG_ERR) /* a file that is too large is an error */
		r = -errno;
	if (r < 0)
		return err_sys(e, r, "descriptors");
	r = take_lock_fd(run, e);
	if (r == 0)
		r = take_notify_socket(run, e);
	if (r == 0)
		r = run_prepare(run, e);
	if (r < 0)
		return r;
	r = loop_init(&loop);
	if (r < 0)
		return err_sys(e, r, "event loop");
	r = supervise(run, &loop, ret_status, e);
	run->backend->free(run->pod); /* its watches are on the loop */
	run->pod = NULL;
	loop_deinit(&loop);
	return r;
}

/* What is left of it is not the pod's failure; gc takes care of it. */
static void disconnect_pod(struct run *run)
{
	struct err e = ERR_INIT;
	fd_replace(&run->netns_socket, -EBADF); /* husk-net may wait there for a pod that is none */
	if (network_end(&run->network, &e) < 0)
		fprintf(stderr, "stage1: warning: %s\n", e.text);
}

int run_pod(const struct backend *backend, int argc, char **argv)
{
	struct err e = ERR_INIT;
	int status = 0;
	struct run run;
	run_init(&run, backend);
	int r = run_to_end(&run, argc, argv, &status, &e);
	if (r < 0) /* now: plugins may take their time */
		fprintf(stderr, "stage1: %s\n", e.text);
	disconnect_pod(&run);
	if (run.options.debug && r == 0)
		timeline_print(&run.timeline, stderr);
	run_deinit(&run);
	return r < 0 ? EXIT_HUSK_FAILURE : status;
}
