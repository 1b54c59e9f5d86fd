/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk-virtiofs: becomes the virtiofsd that serves the volumes of one pod. virtiofsd is somebody
 * else's program and talks to the guest; what it can do is settled here, before it runs: it sees
 * the volumes and nothing else, has no privileges but for their files, and leaves no file that
 * gives others some. Descriptor 3 is a socket that listens, with the VMM's connection waiting.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/wire/agent.h"
#include "stage1-kvm/virtiofs/isolate.h"
#include "stage1-kvm/virtiofs/modes.h"
#include "stage1-kvm/virtiofs/shares.h"
#include "stage1/volumes/hot_volumes.h"

/* Where the supervisor puts the socket (backend/shares.c). */
#define LISTEN_OPTION "--fd=3"

#define BASE_MAX 0x7fff0000 /* behind it are still 65536 ids */

struct job {
	const char *program, *cache;
	uint32_t base;
	rlim_t files; /* one for each that the guest remembers, and those that it uses */
	struct host_volume volumes[AGENT_VOLUME_SLOTS];
	size_t n;
};

/*
 * Words that QEMU's virtiofsd and the one that came after it have in common, but one: the former,
 * which comes in a directory of QEMU's, says too much otherwise.
 */
static int become_virtiofsd(const char *program, const char *cache, struct err *e)
{
	char options[128];
	const char *const argv[] = { "virtiofsd", LISTEN_OPTION, "--rlimit-nofile=0",
				     "-o",        options,       NULL };
	static char *const no_environment[] = { NULL };
	snprintf(options, sizeof(options),
		 "source=" SHARES_DIR ",sandbox=namespace,announce_submounts,cache=%s%s", cache,
		 strstr(program, "/qemu/") ? ",log_level=err" : "");
	syscall(SYS_execve, program, argv, no_environment); /* execve(3) wants words to write to */
	return err_sys(e, -errno, "virtiofsd: cannot execute \"%s\"", program);
}

/* Of root: whose ids are those of virtiofsd in its user namespace; else -EBADF. */
static int make_ids(uint32_t base, int *ret, struct err *e)
{
	*ret = -EBADF;
	if (geteuid() != 0)
		return isolate_become_root(e);
	*ret = isolate_make_ids(base, e);
	return *ret < 0 ? *ret : 0;
}

/* For this process and who joins it later; -EBADF for @ids: they are as anywhere. */
static int mount_volumes(const struct job *j, int ids, struct err *e)
{
	if (ids >= 0 && dup3(ids, HOT_VOLUMES_IDS_FD, O_CLOEXEC) < 0)
		return err_sys(e, -errno, "volumes");
	int r = isolate_mounts(e);
	return r == 0 ? shares_mount(j->volumes, j->n, ids, e) : r;
}

static int serve_volumes(const struct job *j, struct err *e)
{
	const struct rlimit files = { j->files, j->files };
	umask(0); /* modes are the guest's to choose */
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_sys(e, -errno, "virtiofsd: %ju open files", (uintmax_t)j->files);
	int fd, r = make_ids(j->base, &fd, e);
	cleanup_fd int ids = fd;
	if (r == 0)
		r = mount_volumes(j, j->base > 0 ? ids : -EBADF, e);
	if (r == 0)
		r = isolate_processes(SHARES_DIR, e);
	if (r == 0)
		r = isolate_privileges(ids, e);
	if (r < 0)
		return r;
	/* Who is not root cannot leave his groups, without which virtiofsd would not serve. */
	r = modes_forbid_set_ids(ids < 0);
	if (r < 0)
		return err_sys(e, r, "virtiofsd: system call filter");
	return become_virtiofsd(j->program, j->cache, e);
}

/* 0 or -EINVAL. */
static int parse_args(int argc, char **argv, struct job *ret)
{
	uint64_t base, files;
	int n = argc - 5;
	if (n < 0 || n > AGENT_VOLUME_SLOTS || num_parse_u64(argv[3], BASE_MAX, &base) < 0 ||
	    num_parse_u64(argv[4], UINT32_MAX, &files) < 0)
		return -EINVAL;
	*ret = (struct job){ .program = argv[1],
			     .cache = argv[2],
			     .base = (uint32_t)base,
			     .files = files,
			     .n = (size_t)n };
	for (int i = 0; i < n; i++)
		if (host_volume_parse(argv[5 + i], &ret->volumes[i]) < 0)
			return -EINVAL;
	return 0;
}

/*
 * PROGRAM CACHE BASE FILES VOLUME... (stage1/volumes/host_volume.h). Of root, BASE is where
 * virtiofsd's ids begin on the host (isolate.h), or 0. FILES is what it can have open.
 */
int main(int argc, char **argv)
{
	struct job j;
	struct err e = ERR_INIT;
	if (parse_args(argc, argv, &j) < 0) {
		fprintf(stderr, "husk-virtiofs: is started by husk\n");
		return 2;
	}
	serve_volumes(&j, &e);
	fprintf(stderr, "%s\n", e.text);
	return 1;
}
