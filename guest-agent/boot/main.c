/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk-agent: PID 1 of a pod's guest, or, with --no-init, of a PID namespace, beside which whoever
 * starts it makes a mount, UTS, IPC and network namespace for it.
 *
 * PID 1 must not die: its end is a kernel panic. So nothing after the listener is up ends the
 * program but pod.shutdown; what goes wrong is a reply or a log line.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "guest-agent/app/cgroup.h"
#include "guest-agent/app/confine.h"
#include "guest-agent/app/rootfs.h"
#include "guest-agent/boot/boot.h"
#include "guest-agent/log.h"
#include "guest-agent/serve/server.h"
#include "lib/base/hex.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

struct options {
	bool no_init;
	int listen_fd, secret_fd;
	const char *run_dir, *disk_dir, *cgroup_dir; /* the last may be NULL */
};

struct reaper {
	struct server *server;
	struct loop_watch watch;
	int fd;
};

static const char usage[] =
	"usage: husk-agent                (PID 1 of a virtual machine)\n"
	"       husk-agent --no-init --listen-fd=N --secret-fd=N --run-dir=DIR --disk-dir=DIR\n"
	"                  [--cgroup-dir=DIR]\n"
	"       husk-agent --version\n";

static int parse_fd(const char *s, int *ret)
{
	uint64_t n;
	int r = num_parse_u64(s, INT32_MAX, &n);
	if (r == 0)
		*ret = (int)n;
	return r;
}

/* Exits after --help, --version and mistakes: only an ordinary process gets arguments. */
static void parse_options(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
		{ "no-init", no_argument, NULL, 'n' },
		{ "listen-fd", required_argument, NULL, 'l' },
		{ "secret-fd", required_argument, NULL, 's' },
		{ "run-dir", required_argument, NULL, 'r' },
		{ "disk-dir", required_argument, NULL, 'd' },
		{ "cgroup-dir", required_argument, NULL, 'c' },
		{ "version", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	*o = (struct options){ .listen_fd = -EBADF, .secret_fd = -EBADF };
	for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
		int r = 0;
		if (c == 'n')
			o->no_init = true;
		else if (c == 'l')
			r = parse_fd(optarg, &o->listen_fd);
		else if (c == 's')
			r = parse_fd(optarg, &o->secret_fd);
		else if (c == 'r')
			o->run_dir = optarg;
		else if (c == 'd')
			o->disk_dir = optarg;
		else if (c == 'c')
			o->cgroup_dir = optarg;
		else if (c == 'v' || c == 'h')
			exit(puts(c == 'v' ? "husk-agent " HUSK_VERSION : usage) < 0);
		else
			r = -EINVAL;
		if (r == 0)
			continue;
		fputs(usage, stderr);
		exit(2);
	}
}

static int64_t boot_time_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

static int prepare_init(struct server_config *config, char *secret, struct err *e)
{
	int r = boot_mount(e);
	if (r == 0)
		r = boot_read_secret(secret, e);
	if (r < 0)
		return r;
	config->listen_fd = boot_listen(e);
	config->is_vsock = true;
	config->pod.is_init = true;
	config->pod.rootfs.run_dir = "";
	config->pod.cgroup_dir.path = "/cgroup";
	/*
	 * The pod's own, for whoever compares: all kernels give their first one the same number,
	 * the host's, too. The kernel may have none.
	 */
	if (unshare(CLONE_NEWIPC) < 0)
		log_info("no IPC namespace of the pod's own: errno %d", errno);
	return config->listen_fd < 0 ? config->listen_fd : 0;
}

static int read_secret(int fd, char *secret, struct err *e)
{
	size_t len = 0;
	int r = fd_read_full(fd, secret, AGENT_SECRET_LEN, &len);
	secret[len] = '\0';
	if (r < 0 || !hex_is_valid(secret, AGENT_SECRET_LEN))
		return err_set(e, -EBADMSG, "--secret-fd: not %d hexadecimal digits",
			       AGENT_SECRET_LEN);
	return 0;
}

static int make_apps_dir(const char *run_dir, struct err *e)
{
	char apps[ROOTFS_RUN_DIR_MAX + sizeof("/apps")];
	snprintf(apps, sizeof(apps), "%s/apps", run_dir);
	if (mkdir(apps, 0755) < 0 && errno != EEXIST)
		return err_sys(e, -errno, "%s", apps);
	return 0;
}

static int prepare_child(const struct options *o, struct server_config *config, char *secret,
			 struct err *e)
{
	if (o->listen_fd < 0 || o->secret_fd < 0 || !o->run_dir || !o->disk_dir)
		return err_set(e, -EINVAL, "an option is missing (see --help)");
	if (getpid() != 1)
		return err_set(e, -EPERM, "not PID 1: start it in a PID namespace of its own");
	if (strlen(o->run_dir) > ROOTFS_RUN_DIR_MAX || strpbrk(o->run_dir, ",:\\"))
		return err_set(e, -EINVAL, "--run-dir: longer than %d bytes, or with ',' or ':'",
			       ROOTFS_RUN_DIR_MAX);
	umask(022);
	prctl(PR_SET_NAME, "husk-agent"); /* of one executed by its descriptor it may be a number */
	int r = fd_fill_stdio();
	if (r == 0)
		r = fd_set_nonblock(o->listen_fd, true);
	if (r == 0)
		r = fd_set_cloexec(o->listen_fd, true);
	if (r < 0)
		return err_sys(e, r, "--listen-fd");
	r = read_secret(o->secret_fd, secret, e);
	fd_close(o->secret_fd);
	config->listen_fd = o->listen_fd;
	config->pod.rootfs.run_dir = o->run_dir;
	config->pod.rootfs.disk_dir = o->disk_dir;
	if (r == 0)
		r = make_apps_dir(o->run_dir, e);
	if (r == 0 && o->cgroup_dir)
		r = cgroup_adopt(o->cgroup_dir, &config->pod.cgroup_dir, e);
	return r;
}

static int mount_shm(const struct server_config *config, struct err *e)
{
	struct fault f = { 0 };
	return rootfs_mount_shm(&config->pod.rootfs, &f) == 0 ? 0 : err_set(e, -EIO, "%s", f.text);
}

static void on_signal(void *ctx, uint32_t events)
{
	struct reaper *r = ctx;
	struct signalfd_siginfo info;
	(void)events;
	while (read(r->fd, &info, sizeof(info)) > 0)
		; /* several children may share one signal, so ask for all of them */
	pod_reap(server_pod(r->server));
}

/*
 * All signals are blocked, so that none can end the agent; SIGCHLD is read. SIGPIPE would be sent
 * synchronously, but is as blocked as the others.
 */
static int watch_children(struct loop *loop, struct reaper *r)
{
	sigset_t all, child;
	sigfillset(&all);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	r->fd = loop_signal_fd(&child);
	if (r->fd < 0)
		return r->fd;
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &all, NULL) < 0)
		return -errno;
	return loop_watch_add(loop, &r->watch, r->fd, EPOLLIN, on_signal, r);
}

#define NOFILE_SOFT 4096 /* the agent's own: eight for each command, and its connections */

static int boot_serve(const struct server_config *config, struct err *e)
{
	struct loop loop;
	struct reaper reaper = { .fd = -EBADF };
	prctl(PR_SET_DUMPABLE, 0); /* apps must not look into this process, whatever they are */
	/*
	 * Of the kernel's 1024, a hundred commands with their streams need more; apps get them,
	 * too.
	 */
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ NOFILE_SOFT, CONFINE_NOFILE_HARD });
	int r = loop_init(&loop);
	if (r == 0)
		r = watch_children(&loop, &reaper);
	if (r == 0)
		reaper.server = server_new(&loop, config);
	if (r < 0 || !reaper.server)
		return err_sys(e, r < 0 ? r : -ENOMEM, "cannot start to serve");
	if (config->pod.is_init) {
		log_info("listening, %lld us after the start",
			 (long long)(boot_time_ns() - config->init_ns) / 1000);
		pod_prepare(server_pod(reaper.server));
	}
	while (loop_run(&loop) < 0)
		log_error("event loop: failed");
	server_free(reaper.server);
	loop_watch_remove(&reaper.watch);
	fd_close(reaper.fd);
	loop_deinit(&loop);
	return 0;
}

int main(int argc, char **argv)
{
	struct server_config config = { .listen_fd = -EBADF, .init_ns = boot_time_ns() };
	struct options options = { 0 };
	struct err e = ERR_INIT;
	char secret[AGENT_SECRET_LEN + 1];
	/* What the kernel does not know of its command line becomes arguments of init. */
	bool is_init = getpid() == 1 && (argc < 2 || !str_starts(argv[1], "--"));
	if (!is_init)
		parse_options(argc, argv, &options);
	if (!is_init && !options.no_init) {
		fputs(usage, stderr);
		return 2;
	}
	config.secret = secret;
	int r = is_init ? prepare_init(&config, secret, &e)
			: prepare_child(&options, &config, secret, &e);
	if (r == 0)
		r = mount_shm(&config, &e);
	if (r == 0)
		r = boot_serve(&config, &e);
	if (r < 0)
		log_error("%s", e.text);
	if (is_init)
		boot_power_off();
	return r < 0 ? 1 : 0;
}
