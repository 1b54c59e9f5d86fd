/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/backend/shares.h"

#include <errno.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/os/unix.h"
#include "stage1/volumes/host_volume.h"

#define HELPER      "husk-virtiofs"
#define LISTEN_FD   3
#define FILE_SOCKET "virtiofs.sock" /* of the pod directory; it is there for a moment */
#define PROGRAM     "virtiofsd"

/* Where packages put virtiofsd, which is not in anybody's PATH; the last one is QEMU's old one. */
#define PROGRAM_DIRS "/usr/libexec:/usr/lib:/usr/local/libexec:/usr/bin:/usr/lib/qemu"

/* Of husk-virtiofs: itself, four words, volumes. */
#define ARGS_MAX (5 + (size_t)AGENT_VOLUME_SLOTS)

int shares_find(const char *given, char ret[PATH_MAX], struct err *e)
{
	int r = path_find_program(given ? given : PROGRAM, PROGRAM_DIRS, ret, PATH_MAX);
	if (r < 0 && given)
		return err_sys(e, r, "--virtiofsd=%s", given);
	return r < 0 ? err_set(e, r,
			       "volumes of kind=host need virtiofsd, which is not there (install "
			       "virtiofsd, or qemu-system-common of Debian 12)")
		     : 0;
}

/* The guest keeps nothing of what it has read if one of the volumes asks for that. */
static const char *cache_mode(const struct pod_manifest *m)
{
	for (size_t i = 0; i < m->volumes.n; i++)
		if (m->volumes.v[i].no_cache)
			return "none";
	return "auto";
}

static int make_argv(const struct shares_input *in, struct strv *argv)
{
	int r = strv_add(argv, HELPER);
	if (r == 0)
		r = strv_add(argv, in->virtiofsd);
	if (r == 0)
		r = strv_add(argv, cache_mode(in->manifest));
	if (r == 0)
		r = strv_addf(argv, "%u", in->base);
	if (r == 0)
		r = strv_addf(argv, "%u", in->files);
	return r == 0 ? host_volumes_args(in->manifest, "", argv) : r;
}

/* A socket that listens, and a connection to it, which waits there. */
static int make_channel(int *ret_listen, int *ret_vmm)
{
	cleanup_fd int listener = unix_listen(FILE_SOCKET, 0600);
	if (listener < 0)
		return listener;
	cleanup_fd int vmm = unix_connect(FILE_SOCKET);
	unlink(FILE_SOCKET);
	if (vmm < 0)
		return vmm;
	*ret_listen = TAKE_FD(listener);
	*ret_vmm = TAKE_FD(vmm);
	return 0;
}

int shares_start(struct process *p, struct loop *loop, const struct shares_input *in, int *ret,
		 process_end_fn on_end, void *ctx, struct err *e)
{
	char program[PATH_MAX];
	int listen_fd = -EBADF, vmm_fd = -EBADF;
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, ARGS_MAX);
	if (path_from_self(HELPER, program, sizeof(program)) < 0)
		return err_set(e, -ENOENT,
			       HELPER " is not beside stage1's run (install husk again)");
	int r = make_channel(&listen_fd, &vmm_fd);
	if (r < 0)
		return err_sys(
			e, r, "volumes: cannot listen on \"" FILE_SOCKET "\" in the pod directory");
	cleanup_fd int listener = listen_fd, vmm = vmm_fd;
	r = make_argv(in, &argv);
	struct spawn_plan plan = { .program = program, .argv = argv.v };
	if (r == 0)
		r = spawn_plan_fd(&plan, listener, LISTEN_FD);
	if (r == 0)
		r = process_start(p, loop, &plan, on_end, ctx);
	if (r < 0)
		return err_sys(e, r, "volumes: cannot start \"%s\"", program);
	*ret = TAKE_FD(vmm);
	return 0;
}
