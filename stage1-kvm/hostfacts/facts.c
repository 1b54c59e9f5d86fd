/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/hostfacts/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/os/random.h"
#include "stage1-kvm/hostfacts/tsc.h"
#include "stage1-kvm/hostfacts/vhost.h"

#define KVM_DEVICE "/dev/kvm"

/* From the program's directory, lib/husk/stage1-kvm/bin of a build tree or an installation. */
#define HUSK_FROM_SELF    "../.."
#define KERNELS_FROM_SELF HUSK_FROM_SELF "/kernel"
#define KERNEL_GETTER     "kernel-config/get" /* a script; from lib/husk */

int facts_find_qemu(const char *option, char ret[PATH_MAX], struct err *e)
{
	const char *name = option;
	const char *path = getenv("PATH");
	int r;

	if (!name)
		name = getenv(FACTS_ENV_QEMU);
	if (!name || name[0] == '\0')
		name = FACTS_QEMU_PROGRAM;
	r = path_find_program(name, path ? path : "", ret, PATH_MAX);
	if (r < 0)
		return err_set(
			e, r,
			"QEMU: no program \"%s\"%s: apt-get install qemu-system-x86, or name "
			"it with --qemu or $" FACTS_ENV_QEMU,
			name, strchr(name, '/') ? "" : " in PATH");
	return 0;
}

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int facts_join(char out[PATH_MAX], const char *dir, const char *name)
{
	int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* The script that gets kernels. Its path is not resolved: in a build tree it lies behind a link. */
static bool find_getter(char ret[PATH_MAX])
{
	char husk[PATH_MAX];

	return path_from_self(HUSK_FROM_SELF, husk, sizeof(husk)) == 0 &&
	       facts_join(ret, husk, KERNEL_GETTER) == 0 && is_file(ret);
}

void facts_kernel_remedy(const char *kind, char ret[FACTS_REMEDY_MAX])
{
	char getter[PATH_MAX];
	int n = -1;

	if (strcmp(kind, "small") != 0 && strcmp(kind, "packaged") != 0) {
		snprintf(ret, FACTS_REMEDY_MAX,
			 "give --kernel=small, --kernel=packaged or a directory with vmlinux and "
			 "initramfs");
		return;
	}
	if (find_getter(getter))
		n = snprintf(ret, FACTS_REMEDY_MAX, "run %s %s", getter, kind);
	if (n < 0 || n >= FACTS_REMEDY_MAX) /* there is none, or its path leaves no room */
		snprintf(ret, FACTS_REMEDY_MAX,
			 "run " KERNEL_GETTER " %s in husk's directory lib/husk; install husk "
			 "again if it is not there",
			 kind);
}

/* The kernel in @dir; @name is what the user knows it by. */
static int look_into(const char *dir, const char *name, struct facts_kernel *ret, struct err *e)
{
	char remedy[FACTS_REMEDY_MAX];
	int r;

	if ((r = facts_join(ret->vmlinux, dir, "vmlinux")) < 0 ||
	    (r = facts_join(ret->initramfs, dir, "initramfs")) < 0)
		return err_sys(e, r, "guest kernel \"%s\"", name);
	if (is_file(ret->vmlinux) && is_file(ret->initramfs))
		return 0;
	facts_kernel_remedy(name, remedy);
	return err_set(e, -ENOENT, "guest kernel \"%s\": no file \"%s\": %s", name,
		       is_file(ret->vmlinux) ? ret->initramfs : ret->vmlinux, remedy);
}

/* A kernel of the installation: a directory @name below @kernels. */
static int look_for(const char *kernels, const char *name, enum plan_kernel flavour,
		    struct facts_kernel *ret, struct err *e)
{
	char dir[PATH_MAX];
	int r = facts_join(dir, kernels, name);

	if (r < 0)
		return err_sys(e, r, "guest kernel \"%s\"", name);
	ret->flavour = flavour;
	return look_into(dir, name, ret, e);
}

/* Where the kernels of this installation are. */
static int kernels_dir(const struct facts_options *opts, char ret[PATH_MAX], struct err *e)
{
	char remedy[FACTS_REMEDY_MAX];
	int r;

	if (opts->kernels)
		return str_copy(ret, PATH_MAX, opts->kernels);
	r = path_from_self(KERNELS_FROM_SELF, ret, PATH_MAX);
	if (r == 0)
		return 0;
	facts_kernel_remedy("packaged", remedy);
	return err_set(e, r,
		       "guest kernel: no directory " KERNELS_FROM_SELF
		       " beside stage1's program: %s",
		       remedy);
}

/* A directory that the user named. Its last component says which kind it is. */
static int look_at_dir(const char *dir, struct facts_kernel *ret, struct err *e)
{
	const char *base = strrchr(dir, '/');

	ret->flavour = str_starts(base ? base + 1 : dir, "packaged") ? PLAN_KERNEL_PACKAGED
								     : PLAN_KERNEL_SMALL;
	return look_into(dir, dir, ret, e);
}

static int find_kernel(const struct facts_options *opts, struct facts_kernel *k, struct err *e)
{
	const char *want = opts->kernel;
	char kernels[PATH_MAX], remedy[FACTS_REMEDY_MAX];
	int r;

	if (want && strchr(want, '/'))
		return look_at_dir(want, k, e);
	r = kernels_dir(opts, kernels, e);
	if (r < 0)
		return r;
	if (!want) {
		if (look_for(kernels, "small", PLAN_KERNEL_SMALL, k, NULL) == 0)
			return 0;
		return look_for(kernels, "packaged", PLAN_KERNEL_PACKAGED, k, e);
	}
	if (strcmp(want, "small") == 0)
		return look_for(kernels, want, PLAN_KERNEL_SMALL, k, e);
	if (strcmp(want, "packaged") == 0)
		return look_for(kernels, want, PLAN_KERNEL_PACKAGED, k, e);
	facts_kernel_remedy(want, remedy);
	return err_set(e, -ENOENT, "guest kernel \"%s\": no such kind: %s", want, remedy);
}

int facts_find_kernel(const struct facts_options *opts, struct facts_kernel *ret, struct err *e)
{
	struct facts_kernel k;
	int r = find_kernel(opts, &k, e);

	if (r == 0)
		*ret = k;
	return r;
}

/* The device with a CID claimed on it, or -errno. */
static int claim_vhost_vsock(const char *device, uint32_t *ret_cid)
{
	uint32_t first;
	cleanup_fd int fd = open(device, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = random_bytes(&first, sizeof(first)); /* so that two of us rarely try the same */
	if (r == 0)
		r = vhost_claim_cid(fd, first, ret_cid);
	return r < 0 ? r : TAKE_FD(fd);
}

void facts_vhost_vsock(const char *device, struct facts_vsock *ret)
{
	*ret = (struct facts_vsock){ .remedy = "" };
	ret->fd = claim_vhost_vsock(device, &ret->cid);
	ret->usable = ret->fd >= 0;
	if (ret->usable) {
		snprintf(ret->reason, sizeof(ret->reason), "%s gives out CIDs", device);
	} else if (ret->fd == -EACCES || ret->fd == -EPERM) {
		snprintf(ret->reason, sizeof(ret->reason), "%s may not be opened", device);
		ret->remedy = "join the group that owns it";
	} else {
		snprintf(ret->reason, sizeof(ret->reason), "%s: %s", device, strerror(-ret->fd));
		ret->remedy = "modprobe vhost_vsock, if the host's kernel has it";
	}
}

void facts_deinit(struct facts *f)
{
	f->vhost_vsock.fd = fd_close(f->vhost_vsock.fd);
}

/* The group through which an unprivileged QEMU can open /dev/kvm. */
static void find_kvm_group(struct facts *f)
{
	const mode_t rw = S_IRGRP | S_IWGRP;
	struct stat st;

	f->kvm_has_gid = stat(KVM_DEVICE, &st) == 0 && (st.st_mode & rw) == rw;
	if (f->kvm_has_gid)
		f->kvm_gid = st.st_gid;
}

static void find_memory(struct facts *f)
{
	struct sysinfo info;

	if (sysinfo(&info) < 0)
		return;
	f->memory_mib = (uint64_t)info.totalram * info.mem_unit >> 20;
	f->swap_mib = (uint64_t)info.totalswap * info.mem_unit >> 20;
}

/* What a helper could be given; only to try says whether that is more than it would inherit. */
static void find_files(struct facts *f)
{
	struct rlimit had, raised = { .rlim_max = PLAN_FILES_MAX };
	getrlimit(RLIMIT_NOFILE, &had);
	f->files = (unsigned)MIN(had.rlim_max, (rlim_t)PLAN_FILES_MAX);
	raised.rlim_cur = had.rlim_cur;
	if (f->files == PLAN_FILES_MAX || setrlimit(RLIMIT_NOFILE, &raised) < 0)
		return;
	f->files = PLAN_FILES_MAX;
	setrlimit(RLIMIT_NOFILE, &had);
}

int facts_collect(const struct facts_options *opts, enum plan_accel accel, enum plan_vsock vsock,
		  struct facts *ret, struct err *e)
{
	struct tsc_reading begin = tsc_begin(); /* so that the measurement has begun */
	struct facts f = FACTS_INIT;
	int r;

	if ((r = facts_find_qemu(opts->qemu, f.qemu, e)) < 0 ||
	    (r = facts_find_kernel(opts, &f.kernel, e)) < 0)
		return r;
	if (accel != PLAN_ACCEL_TCG)
		probe_kvm(KVM_DEVICE, false, &f.kvm);
	if (f.kvm.verdict == PROBE_USABLE)
		find_kvm_group(&f);
	if (vsock != PLAN_VSOCK_USER)
		facts_vhost_vsock(VHOST_VSOCK_DEVICE, &f.vhost_vsock);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	f.cpus = cpus > 0 ? (unsigned)cpus : 0;
	find_memory(&f);
	find_files(&f);
	if (f.kvm.verdict != PROBE_USABLE) /* last, since it may have to wait */
		f.tsc_khz = tsc_measure_khz(&begin);
	*ret = f;
	return 0;
}

void facts_to_plan(const struct facts *f, struct plan_host *ret)
{
	*ret = (struct plan_host){
		.kvm_usable = f->kvm.verdict == PROBE_USABLE,
		.kvm_reason = f->kvm.reason,
		.vhost_vsock_usable = f->vhost_vsock.usable,
		.vhost_vsock_reason = f->vhost_vsock.reason,
		.guest_cid = f->vhost_vsock.cid,
		.kernel = f->kernel.flavour,
		.cpus = f->cpus,
		.memory_mib = f->memory_mib,
		.swap_mib = f->swap_mib,
		.tsc_khz = f->tsc_khz,
		.files = f->files,
	};
}
