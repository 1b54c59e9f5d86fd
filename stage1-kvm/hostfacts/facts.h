/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about this host and this installation: where QEMU and the guest kernel are, whether KVM
 * and the kernel's vsock are usable. Collected once per start, then planned with.
 */
#ifndef STAGE1_KVM_HOSTFACTS_FACTS_H
#define STAGE1_KVM_HOSTFACTS_FACTS_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "stage1-kvm/hostfacts/probe.h"
#include "stage1-kvm/plan/plan.h"

#define FACTS_REASON_MAX PROBE_REASON_MAX /* of the same kind */

/* Environment variable that names QEMU, after the option and before PATH. */
#define FACTS_ENV_QEMU "HUSK_QEMU"

#define FACTS_QEMU_PROGRAM "qemu-system-x86_64"

/* A guest kernel with its initramfs. */
struct facts_kernel {
	enum plan_kernel flavour;
	char vmlinux[PATH_MAX];
	char initramfs[PATH_MAX];
};

struct facts_vsock {
	bool usable;
	int fd;                            /* owned; the device with @cid claimed, or -EBADF */
	uint32_t cid;                      /* 0: none is claimed */
	char reason[FACTS_REASON_MAX + 1]; /* one line: what was seen */
	const char *remedy;                /* what a person can do about it; "" if usable */
};

/* What the user of stage1 may name; NULL members: not named. */
struct facts_options {
	const char *qemu;   /* --qemu */
	const char *kernel; /* --kernel: "small", "packaged" or a directory */
	const char
		*kernels; /* where the directories small and packaged are; NULL: ../../kernel from
				the program (build/lib/husk/stage1-kvm/bin -> build/lib/husk/kernel) */
};

struct facts {
	char qemu[PATH_MAX];
	struct facts_kernel kernel;
	struct probe_result kvm; /* all zero with verdict PROBE_ABSENT if TCG was asked for */
	bool kvm_has_gid;        /* kvm_gid is the group that may open /dev/kvm */
	gid_t kvm_gid;
	struct facts_vsock vhost_vsock; /* with a CID, unless PLAN_VSOCK_USER was asked for */
	unsigned cpus;                  /* processors that are online; 0: unknown */
	uint64_t memory_mib, swap_mib;  /* of the machine; 0: unknown, none */
	uint32_t tsc_khz;               /* the host's time stamp counter; 0: unknown */
	unsigned files; /* that a process of the caller's can have open, at most PLAN_FILES_MAX */
};

#define FACTS_INIT ((struct facts){ .kvm.verdict = PROBE_ABSENT, .vhost_vsock.fd = -EBADF })

/*
 * Collects everything a start needs. @accel PLAN_ACCEL_TCG skips the KVM probe, @vsock
 * PLAN_VSOCK_USER the claim on /dev/vhost-vsock. 0 (facts_deinit()); -ENOENT with @e naming the
 * path that is missing and how to get it; -errno.
 */
int facts_collect(const struct facts_options *opts, enum plan_accel accel, enum plan_vsock vsock,
		  struct facts *ret, struct err *e);

/* Gives the CID back. Harmless on FACTS_INIT. */
void facts_deinit(struct facts *f);

/* The facts as the plan wants them. Borrows the reasons from @f. */
void facts_to_plan(const struct facts *f, struct plan_host *ret);

/* QEMU alone: the option, else $HUSK_QEMU, else PATH. 0, or -ENOENT/-ENAMETOOLONG with @e. */
int facts_find_qemu(const char *option, char ret[PATH_MAX], struct err *e);

/*
 * The kernel alone: what --kernel says, else the small one if it is there, else the packaged one. A
 * --kernel with a slash is a directory that holds vmlinux and initramfs; it counts as packaged if
 * its last component begins with that word. Errors as facts_collect().
 */
int facts_find_kernel(const struct facts_options *opts, struct facts_kernel *ret, struct err *e);

/* A remedy: some words and, where it is not too long for them, a path. */
#define FACTS_REMEDY_MAX 400

/*
 * How to get a kernel that --kernel=@kind would find: a command that works where this program is,
 * in a build tree as in an installation. Cut to FACTS_REMEDY_MAX - 1 bytes.
 */
void facts_kernel_remedy(const char *kind, char ret[FACTS_REMEDY_MAX]);

/*
 * Looks at @device (VHOST_VSOCK_DEVICE) by claiming a CID on it, since a device that opens need not
 * be one. The claim is the caller's: fd_close(ret->fd).
 */
void facts_vhost_vsock(const char *device, struct facts_vsock *ret);

#endif
