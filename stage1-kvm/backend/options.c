/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/backend/options.h"

#include <errno.h>
#include <string.h>

#include "lib/base/num.h"
#include "stage1-kvm/backend/scratch.h"

#define MIB(n) ((uint64_t)(n) << 20)

enum {
	OPT_ACCEL,
	OPT_MACHINE,
	OPT_VSOCK,
	OPT_KERNEL,
	OPT_QEMU,
	OPT_MEMORY,
	OPT_CPUS,
	OPT_SCRATCH_SIZE,
	OPT_COUNT_,
};

const char *const kvm_option_names[] = { [OPT_ACCEL] = "accel", [OPT_MACHINE] = "machine",
					 [OPT_VSOCK] = "vsock", [OPT_KERNEL] = "kernel",
					 [OPT_QEMU] = "qemu",   [OPT_MEMORY] = "memory",
					 [OPT_CPUS] = "cpus",   [OPT_SCRATCH_SIZE] = "scratch-size",
					 [OPT_COUNT_] = NULL };

void kvm_options_init(struct kvm_options *o)
{
	*o = (struct kvm_options){ .scratch_size = SCRATCH_SIZE_DEFAULT };
}

static int choice(const char *name, const char *text, int r, struct err *e)
{
	return r < 0 ? err_set(e, r, "--%s=%s: no such choice (see husk run --help)", name, text)
		     : 0;
}

static int number(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
		  struct err *e)
{
	uint64_t n;
	if (num_parse_size(text, max, &n) < 0 || n < min)
		return err_set(e, -EINVAL, "--%s=%s is not a number from %ju to %ju", name, text,
			       (uintmax_t)min, (uintmax_t)max);
	*ret = n;
	return 0;
}

/* A template is made for each size: whole MiB are enough of them. */
static int scratch_size(const char *name, const char *text, uint64_t *ret, struct err *e)
{
	int r = number(name, text, SCRATCH_SIZE_MIN, SCRATCH_SIZE_MAX, ret, e);
	*ret &= ~(MIB(1) - 1);
	return r;
}

int kvm_options_take(struct kvm_options *o, const char *name, const char *value, struct err *e)
{
	int i = 0;
	while (i < OPT_COUNT_ && strcmp(name, kvm_option_names[i]) != 0)
		i++;
	switch (i) {
	case OPT_ACCEL:
		return choice(name, value, plan_accel_parse(value, &o->accel), e);
	case OPT_MACHINE:
		return choice(name, value, plan_machine_parse(value, &o->machine), e);
	case OPT_VSOCK:
		return choice(name, value, plan_vsock_parse(value, &o->vsock), e);
	case OPT_KERNEL:
		o->kernel = value;
		return 0;
	case OPT_QEMU:
		o->qemu = value;
		return 0;
	case OPT_MEMORY:
		return number(name, value, MIB(VM_MEMORY_MIN), MIB(VM_MEMORY_MAX), &o->memory, e);
	case OPT_CPUS:
		return number(name, value, 1, VM_CPUS_MAX, &o->cpus, e);
	case OPT_SCRATCH_SIZE:
		return scratch_size(name, value, &o->scratch_size, e);
	default:
		return err_set(e, -EINVAL, "--%s: no such option of a VM", name);
	}
}
