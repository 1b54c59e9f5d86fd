/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/backend/vsock_device.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"
#include "lib/os/unix.h"
#include "stage1-kvm/backend/route.h"

/* Descriptors of husk-vsock. */
#define VHOST_FD  3
#define LISTEN_FD 4

#define FILES_MAX 2048 /* open files: what it takes for all its streams */

/* The CID that husk-vsock tells the guest. Every guest has its own device, so all can have one. */
#define GUEST_CID 3

static int make_argv(struct strv *argv)
{
	int r = strv_add(argv, "husk-vsock");
	if (r == 0)
		r = strv_addf(argv, "--vhost-fd=%d", VHOST_FD);
	if (r == 0)
		r = strv_addf(argv, "--listen-fd=%d", LISTEN_FD);
	return r < 0 ? r : strv_addf(argv, "--guest-cid=%d", GUEST_CID);
}

int vsock_device_start(struct process *p, struct loop *loop, const struct backend_input *in,
		       int vhost, process_end_fn on_end, void *ctx, struct err *e)
{
	char program[PATH_MAX];
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, 8);
	if (path_from_self("husk-vsock", program, sizeof(program)) < 0)
		return err_set(e, -ENOENT,
			       "husk-vsock is not beside stage1's run (reinstall husk)");
	cleanup_fd int listener = unix_listen(ROUTE_FILE_SOCKET, 0600);
	if (listener < 0)
		return err_sys(e, listener, "vsock: cannot listen on \"%s\" in the pod directory",
			       ROUTE_FILE_SOCKET);
	int r = make_argv(&argv);
	struct spawn_plan plan = { .program = program,
				   .argv = argv.v,
				   .change_ids = in->unprivileged_ids,
				   .uid = in->uid,
				   .gid = in->uid };
	spawn_plan_limit(&plan, RLIMIT_NOFILE, FILES_MAX);
	spawn_plan_limit(&plan, RLIMIT_FSIZE, 0);
	spawn_plan_fd(&plan, vhost, VHOST_FD);
	spawn_plan_fd(&plan, listener, LISTEN_FD);
	if (r == 0)
		r = process_start(p, loop, &plan, on_end, ctx);
	return r < 0 ? err_sys(e, r, "vsock: cannot start \"%s\"", program) : 0;
}

int vsock_device_of_kernel(int pod_fd, int device, uint32_t cid, struct err *e)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u\n", cid);
	cleanup_fd int fd = fcntl(device, F_DUPFD_CLOEXEC, 0);
	int r = fd < 0 ? -errno : file_replace_at(pod_fd, ROUTE_FILE_CID, text, (size_t)len, 0640);
	return r < 0 ? err_sys(e, r, "vsock: \"%s\" in the pod directory", ROUTE_FILE_CID)
		     : TAKE_FD(fd);
}

void vsock_device_forget(int pod_fd)
{
	unlinkat(pod_fd, ROUTE_FILE_SOCKET, 0);
	unlinkat(pod_fd, ROUTE_FILE_CID, 0);
}
