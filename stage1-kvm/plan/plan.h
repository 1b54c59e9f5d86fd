/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pod manifest + options + facts about the host -> virtual machine.
 *
 * Pure: no descriptor, path, clock or environment. All the choices of a start are made here, so
 * that they can be tested without one.
 */
#ifndef STAGE1_KVM_PLAN_PLAN_H
#define STAGE1_KVM_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/wire/agent.h"
#include "lib/wire/pod_manifest.h"
#include "stage1-kvm/plan/vm.h"

#define PLAN_MEMORY_DEFAULT 512 /* MiB */
#define PLAN_CPUS_DEFAULT   1

/* MiB of a VM beside what its apps may use: kernel, agent, page tables, caches. */
#define PLAN_MEMORY_OVERHEAD 128

/* Files that virtiofsd has open, where the host lets it: a large tree has as many. */
#define PLAN_FILES_MAX 1000000

/*
 * LUN of the scratch disk: the last, so that apps (LUN = position in the pod, later ones the next
 * free) never collide with it.
 */
#define PLAN_SCRATCH_LUN AGENT_SCRATCH_LUN

enum plan_accel {
	PLAN_ACCEL_AUTO, /* KVM if it is really usable, else TCG */
	PLAN_ACCEL_TCG,
	PLAN_ACCEL_KVM,
};

enum plan_machine {
	PLAN_MACHINE_AUTO, /* microvm, if the VMM has it */
	PLAN_MACHINE_MICROVM,
	PLAN_MACHINE_Q35,
};

enum plan_vsock {
	PLAN_VSOCK_AUTO, /* kernel if the host has it: one process less; else user */
	PLAN_VSOCK_USER,
	PLAN_VSOCK_KERNEL,
};

/* What the guest kernel can do without; decides its command line. */
enum plan_kernel {
	PLAN_KERNEL_SMALL,    /* ours: everything built in */
	PLAN_KERNEL_PACKAGED, /* the distribution's: drivers are modules in the initramfs */
};

/* What the user asked for. All zero is a sound default. */
struct plan_options {
	enum plan_accel accel;
	enum plan_machine machine;
	enum plan_vsock vsock;
	unsigned memory_mib; /* 0: what the apps' limits add up to, at least PLAN_MEMORY_DEFAULT */
	unsigned cpus;       /* 0: likewise, PLAN_CPUS_DEFAULT, and at most the host's */
	int64_t apps_memory; /* bytes that apps are to have, later ones, too, at least; or 0 */
	int64_t apps_cpu_millis; /* likewise, thousandths of a processor */
	bool only_q35;           /* the VMM has no other machine */
	bool debug;              /* a talkative guest kernel */
	bool no_scratch;         /* writable layers live in guest memory */
	bool hot_volumes;        /* apps that come later may bring volumes of the host */
};

/* What the host has; stage1-kvm/hostfacts/facts.h finds out. The reasons are for messages. */
struct plan_host {
	bool kvm_usable;
	const char *kvm_reason; /* why not; borrowed; may be NULL */
	bool vhost_vsock_usable;
	const char *vhost_vsock_reason; /* likewise */
	uint32_t guest_cid;             /* for the kernel's vsock: a CID that is free */
	unsigned cpus;                  /* its processors; 0: unknown */
	uint64_t memory_mib, swap_mib;  /* its memory and swap space; 0: unknown, none */
	uint32_t tsc_khz;               /* the host's time stamp counter, for TCG; 0: unknown */
	unsigned files;                 /* that a helper can have open, at most PLAN_FILES_MAX */
	enum plan_kernel kernel;
};

/*
 * Fills *ret: disk i is the root of app i; then the scratch disk, if any; then those of volumes,
 * whose LUN is AGENT_VOLUME_LUN and their number in the manifest. 0; -EINVAL if an option
 * is out of its range, -EOPNOTSUPP if what was asked for is not usable here. @e says which and what
 * to do.
 */
int plan_make(const struct pod_manifest *pod, const struct plan_options *opts,
	      const struct plan_host *host, struct vm *ret, struct err *e);

/*
 * Whether @vm, which runs, can give the app @app what it is limited to, with that of the others of
 * @pod: a limit beyond that would be none. Where @opts say the size of the VM, they may promise it
 * to each app. 0; -ENOSPC with the numbers in @e.
 */
int plan_fits(const struct vm *vm, const struct pod_manifest *pod, const struct pod_app *app,
	      const struct plan_options *opts, const struct plan_host *host, struct err *e);

/*
 * Names on the command line: "auto", "tcg", "kvm"; "auto", "microvm", "q35"; "auto", "user",
 * "kernel". 0 or -EINVAL.
 */
int plan_accel_parse(const char *s, enum plan_accel *ret);
int plan_machine_parse(const char *s, enum plan_machine *ret);
int plan_vsock_parse(const char *s, enum plan_vsock *ret);

#endif
