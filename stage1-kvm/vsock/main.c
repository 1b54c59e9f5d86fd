/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk-vsock: the vhost-user-vsock device of one pod.
 *
 *   husk-vsock --vhost-fd=N --listen-fd=M --guest-cid=C [--ready-fd=R]
 *
 *   N  a connected unix stream socket whose other end is the VMM's character device, or one that
 *      listens, to which the VMM connects
 *   M  a listening unix stream socket on which host programs connect
 *   C  the guest's context identifier, 3 or more
 *   R  gets one byte ("\n") and is closed once the device is ready and confined
 *
 * A host program sends "CONNECT <port>\n" and gets "OK <our port>\n" when the guest has accepted;
 * from then on the socket is the stream. If the guest has no listener, or the line is wrong, the
 * socket is closed. While the guest is not up the program waits: it has its own time limit. A
 * stream that the guest resets ends like one that it closes; what is sent over it has to mark its
 * own end.
 *
 * Exit status: 0 when the VMM has closed N; 1 after an error, with one line on stderr; 2 for wrong
 * arguments.
 */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/num.h"
#include "lib/os/fd.h"
#include "lib/os/loop.h"
#include "stage1-kvm/vsock/confine.h"
#include "stage1-kvm/vsock/device.h"
#include "stage1-kvm/vsock/session.h"
#include "stage1-kvm/vsock/stream.h"

/* Inherited descriptors have small numbers; this is far beyond any and fits into an int. */
#define FD_NUMBER_MAX 65535

/* Descriptors other than streams: stdio, loop, sockets, queues, and a memory table in transit. */
#define FDS_RESERVED 64

/* Larger allocations, which are backlogs, go back to the kernel as soon as they are freed. */
#define HEAP_CHUNK_MAX (32 << 10)

#define GUEST_CID_MIN 3
#define GUEST_CID_MAX (UINT32_MAX - 1) /* beyond it is VMADDR_CID_ANY */

struct arguments {
	int vhost_fd;
	int listen_fd;
	int ready_fd;
	uint64_t guest_cid;
};

static int parse_fd(const char *name, const char *text, int *ret, struct err *e)
{
	uint64_t v;
	if (num_parse_u64(text, FD_NUMBER_MAX, &v) < 0 || v <= STDERR_FILENO)
		return err_set(e, -EINVAL, "--%s=%s: not a descriptor above 2", name, text);
	*ret = (int)v;
	return 0;
}

static int parse_option(int option, const char *text, struct arguments *a, struct err *e)
{
	switch (option) {
	case 'v':
		return parse_fd("vhost-fd", text, &a->vhost_fd, e);
	case 'l':
		return parse_fd("listen-fd", text, &a->listen_fd, e);
	case 'r':
		return parse_fd("ready-fd", text, &a->ready_fd, e);
	case 'c':
		if (num_parse_u64(text, GUEST_CID_MAX, &a->guest_cid) == 0 &&
		    a->guest_cid >= GUEST_CID_MIN)
			return 0;
		return err_set(e, -EINVAL, "--guest-cid=%s: not a number from %d to %u", text,
			       GUEST_CID_MIN, GUEST_CID_MAX);
	default:
		return err_set(e, -EINVAL, "unknown option or missing value");
	}
}

static int parse_arguments(int argc, char **argv, struct arguments *ret, struct err *e)
{
	static const struct option options[] = {
		{ "vhost-fd", required_argument, NULL, 'v' },
		{ "listen-fd", required_argument, NULL, 'l' },
		{ "ready-fd", required_argument, NULL, 'r' },
		{ "guest-cid", required_argument, NULL, 'c' },
		{ 0 },
	};
	struct arguments a = { .vhost_fd = -EBADF, .listen_fd = -EBADF, .ready_fd = -EBADF };
	int option;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		int r = parse_option(option, optarg, &a, e);
		if (r < 0)
			return r;
	}
	if (optind != argc || a.vhost_fd < 0 || a.listen_fd < 0 || a.guest_cid == 0)
		return err_set(e, -EINVAL,
			       "usage: husk-vsock --vhost-fd=N --listen-fd=M --guest-cid=C "
			       "[--ready-fd=R]");
	*ret = a;
	return 0;
}

/*
 * Waits for the VMM to connect if the vhost-user socket listens. Only its first connection counts.
 */
static int accept_vmm(struct arguments *a, struct err *e)
{
	int listens = 0;
	socklen_t len = sizeof(listens);
	if (getsockopt(a->vhost_fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0)
		return err_set(e, -EINVAL, "--vhost-fd=%d: not a socket", a->vhost_fd);
	if (!listens)
		return 0;
	int r = fd_set_nonblock(a->vhost_fd, false);
	int fd = r < 0 ? r : accept4(a->vhost_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return err_sys(e, r < 0 ? r : -errno, "--vhost-fd=%d", a->vhost_fd);
	fd_replace(&a->vhost_fd, fd);
	return 0;
}

/* Both sockets are somebody else's work: check that they are what we take them for. */
static int check_sockets(const struct arguments *a, struct err *e)
{
	int listens = 0;
	socklen_t len = sizeof(listens);
	if (getsockopt(a->listen_fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0 || !listens)
		return err_set(e, -EINVAL, "--listen-fd=%d: not a listening socket", a->listen_fd);
	int r = fd_set_nonblock(a->listen_fd, true);
	return r < 0 ? err_sys(e, r, "--listen-fd=%d", a->listen_fd) : 0;
}

/* How many streams the limit of descriptors leaves room for, after raising it as far as needed. */
static size_t find_stream_limit(void)
{
	struct rlimit limit;
	const rlim_t want = STREAMS_MAX + FDS_RESERVED;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	if (limit.rlim_cur < want) {
		limit.rlim_cur = MIN(want, limit.rlim_max);
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	return limit.rlim_cur <= FDS_RESERVED ? 0 : MIN(limit.rlim_cur, want) - FDS_RESERVED;
}

static int tidy_process(const struct arguments *a, struct err *e)
{
	const int keep[] = { a->vhost_fd, a->listen_fd, a->ready_fd };
	int r = fd_fill_stdio();
	if (r == 0)
		r = fd_close_others(keep, ARRAY_SIZE(keep));
	if (r == 0)
		r = confine_catch_bus_error();
	if (r < 0)
		return err_sys(e, r, "cannot tidy up descriptors");
	mallopt(M_MMAP_THRESHOLD, HEAP_CHUNK_MAX);
	signal(SIGPIPE, SIG_IGN); /* the reader of stderr may go away */
	return 0;
}

/* Tells the supervisor; if that is gone, the VMM is about to go as well. */
static void report_ready(int fd)
{
	if (fd < 0)
		return;
	ssize_t n = write(fd, "\n", 1);
	(void)n;
	fd_close(fd);
}

static int vsock_serve(struct loop *loop, struct device *d, const struct session *s, struct err *e)
{
	while (!loop->quit) {
		int r = loop_turn(loop);
		if (r == 0 && !loop->quit)
			r = device_pump(d);
		if (r < 0)
			return err_sys(e, r, "device");
	}
	return session_error(s, e);
}

static void cleanup_device(struct device **d)
{
	device_free(*d);
}

static void cleanup_session(struct session **s)
{
	session_free(*s);
}

static void print_report(const char *text)
{
	fprintf(stderr, "husk-vsock: %s\n", text);
}

static int vsock_run(const struct arguments *a, struct err *e)
{
	struct device_config config = { .listen_fd = a->listen_fd,
					.guest_cid = a->guest_cid,
					.max_streams = find_stream_limit(),
					.report = print_report };
	struct loop loop;
	int r = loop_init(&loop);
	if (r < 0)
		return err_sys(e, r, "event loop");
	if (config.max_streams == 0)
		return err_set(e, -EMFILE, "limit of open files: raise it beyond %d", FDS_RESERVED);
	CLEANUP(cleanup_device) struct device *d = NULL;
	CLEANUP(cleanup_session) struct session *s = NULL;
	r = device_new(&loop, &config, &d);
	if (r == 0)
		r = session_new(&loop, a->vhost_fd, a->guest_cid, d, &s);
	if (r < 0)
		return err_sys(e, r, "device");
	r = confine_process(e);
	if (r < 0)
		return r;
	report_ready(a->ready_fd);
	return vsock_serve(&loop, d, s, e);
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	struct arguments a = { 0 };
	bool wrong_use = parse_arguments(argc, argv, &a, &e) < 0;
	int r = wrong_use ? e.code : tidy_process(&a, &e);
	if (r == 0)
		r = check_sockets(&a, &e);
	if (r == 0)
		r = accept_vmm(&a, &e);
	if (r == 0)
		r = vsock_run(&a, &e);
	if (r == 0)
		return 0;
	print_report(e.text);
	return wrong_use ? 2 : 1;
}
