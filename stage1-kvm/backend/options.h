/* SPDX-License-Identifier: Apache-2.0 */
/* What a user may say of a pod that is a VM: options that only this flavor has. */
#ifndef STAGE1_KVM_BACKEND_OPTIONS_H
#define STAGE1_KVM_BACKEND_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "stage1-kvm/plan/plan.h"
#include "stage1-kvm/vmm/vmm.h"

struct kvm_options {
	enum plan_accel accel;
	enum plan_machine machine;
	enum plan_vsock vsock;
	const char *kernel, *qemu, *virtiofsd; /* as given, or NULL */
	bool volumes_as_host;                  /* who serves them has the ids of the host */
	bool hot_volumes; /* of the host come with apps, so they are served in any case */
	const struct vmm_driver *driver;
	const char *libvirt_uri; /* NULL: the one for who we are */
	uint64_t memory;         /* bytes, in the bounds of vm.h, as are the next; 0: not given */
	uint64_t cpus;
	uint64_t apps_memory; /* bytes that the apps are to have at least */
	int64_t apps_cpu_millis;
	uint64_t scratch_size; /* bytes, in the bounds of scratch.h */
};

/* What counts where nothing is said. */
void kvm_options_init(struct kvm_options *o);

/* Names of the options, without dashes; ends with NULL. */
extern const char *const kvm_option_names[];

/*
 * Takes option @name, one of the names above; @value is borrowed. -EINVAL with @e naming the option
 * and what it may be.
 */
int kvm_options_take(struct kvm_options *o, const char *name, const char *value, struct err *e);

#endif
