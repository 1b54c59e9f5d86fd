/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to a port of the guest's vsock: husk-vsock's unix socket, which takes "CONNECT PORT\n"
 * and answers "OK PORT\n", as the hybrid vsock of other VMMs does, or AF_VSOCK of the host's
 * kernel.
 */
#include "stage1-kvm/backend/route.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "lib/base/num.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/unix.h"
#include "stage1-kvm/vmm/libvirt/domain_dir.h"
#include "stage1/backend.h"
#include "stage1/pod/pod_cgroup.h"
#include "stage1/pod/pod_limits.h"
#include "stage1/volumes/hot_volumes.h"

#define CID_TEXT_MAX 16 /* ten digits and a newline */

/*
 * Takes the answer line, and not one byte more: what follows it is the stream. Yields 0, -EAGAIN
 * while the line is incomplete, or -errno.
 */
static int take_answer(int fd)
{
	char line[ROUTE_LINE_MAX];
	ssize_t n = recv(fd, line, sizeof(line), MSG_PEEK | MSG_DONTWAIT);
	if (n < 0)
		return errno == ECONNRESET ? -ECONNREFUSED : -errno;
	if (n == 0)
		return -ECONNREFUSED;
	char *end = memchr(line, '\n', (size_t)n);
	if (!end)
		return (size_t)n == sizeof(line) ? -EPROTO : -EAGAIN;
	size_t len = (size_t)(end - line) + 1;
	if (recv(fd, line, len, MSG_DONTWAIT) != (ssize_t)len)
		return -EPROTO;
	return memcmp(line, "OK ", 3) == 0 ? 0 : -EPROTO;
}

/* What became of the kernel's connection. */
static int take_result(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	return error == ECONNRESET ? -ECONNREFUSED : -error; /* how a vsock refuses */
}

static int route_finish(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0)
		return -errno;
	return domain == AF_UNIX ? take_answer(fd) : take_result(fd);
}

static int connect_kernel(uint32_t cid, unsigned port)
{
	struct sockaddr_vm addr = { .svm_family = AF_VSOCK, .svm_cid = cid, .svm_port = port };
	const struct timeval limit = { .tv_sec = ROUTE_TIMEOUT_S };
	cleanup_fd int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &limit, sizeof(limit)) < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 && errno != EINPROGRESS)
		return errno == ENODEV ? -ECONNREFUSED : -errno; /* nobody has the CID (yet) */
	return TAKE_FD(fd);
}

/* The guest's CID, which only a pod on the kernel's device has. 0, -ENOENT or -errno. */
static int read_cid(uint32_t *ret)
{
	cleanup_free char *text = NULL;
	uint64_t cid;
	int r = file_read_at(AT_FDCWD, ROUTE_FILE_CID, CID_TEXT_MAX, &text, NULL);
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	r = num_parse_u64(text, UINT32_MAX, &cid);
	if (r == 0)
		*ret = (uint32_t)cid;
	return r;
}

static int connect_device(unsigned port)
{
	char line[ROUTE_LINE_MAX];
	cleanup_fd int fd = unix_connect(ROUTE_FILE_SOCKET);
	if (fd < 0)
		return fd;
	int len = snprintf(line, sizeof(line), "CONNECT %u\n", port);
	int r = fd_write_all(fd, line, (size_t)len);
	if (r == 0)
		r = fd_set_nonblock(fd, true);
	return r < 0 ? r : TAKE_FD(fd);
}

static int connect_port(unsigned port, uint32_t *ret_events)
{
	uint32_t cid = 0;
	int fd = connect_device(port);
	*ret_events = EPOLLIN;
	if (fd != -ENOENT)
		return fd;
	int r = read_cid(&cid);
	*ret_events = EPOLLOUT;
	return r < 0 ? r : connect_kernel(cid, port);
}

const struct agent_route flavor_route = { .connect = connect_port, .finish = route_finish };

/* Of its memory and processes the guest's kernel is the master. */
int flavor_update(const char *uuid, unsigned changed, const struct cgroup_limits *l, struct err *e)
{
	if (changed & 1U << ISOLATOR_MEMORY)
		return err_set(
			e, -EOPNOTSUPP,
			"--memory: a VM keeps the size that it was started with (start a pod "
			"with --memory=SIZE, or limit an app with --app)");
	if (changed & 1U << ISOLATOR_PIDS)
		return err_set(
			e, -EOPNOTSUPP,
			"--pids-limit: processes of a VM are no processes of this host (limit "
			"an app with --app)");
	return pod_limits_update(uuid, POD_LIMITS_OF_MACHINE, changed, l, e);
}

int flavor_clean_up(const char *uuid, const char *cgroup_parent, bool stays, struct err *e)
{
	(void)stays;
	int r = pod_cgroup_kill(uuid, cgroup_parent, e);
	if (r == 0)
		r = pod_cgroup_remove(uuid, cgroup_parent, e);
	if (r < 0)
		return r;
	r = domain_dir_remove_left(uuid);
	return r < 0 ? err_sys(e, r, "\"" DOMAIN_DIR_ROOT "/%s\"", uuid) : 0;
}

const struct volume_keeper flavor_volume_keeper = {
	.process = "husk-virtiofs",
	.dir = "/" AGENT_HOST_APPS,
	.ids_fd = HOT_VOLUMES_IDS_FD,
	.otherwise = "this pod has nobody who serves volumes of the host (start one with "
		     "--hot-volumes=always)",
	.without_ids = "--volume-ids=host",
};

const char *flavor_helper_name(const char *comm)
{
	return strcmp(comm, "husk-vsock") == 0      ? "vsock"
	       : strcmp(comm, "virtiofsd") == 0     ? "volumes"
	       : strcmp(comm, "husk-virtiofs") == 0 ? "volumes"
	       : strcmp(comm, "husk-libvirt") == 0  ? "libvirt"
						    : "vmm";
}
