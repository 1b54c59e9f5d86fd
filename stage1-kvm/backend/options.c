/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/backend/options.h"

#include <errno.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/quantity.h"
#include "lib/wire/isolators.h"
#include "stage1-kvm/backend/scratch.h"
#include "stage1-kvm/vmm/libvirt/libvirt.h"
#include "stage1-kvm/vmm/libvirt/uri.h"
#include "stage1-kvm/vmm/qemu/qemu.h"

#define MIB(n) ((uint64_t)(n) << 20)

enum {
	OPT_ACCEL,
	OPT_MACHINE,
	OPT_VSOCK,
	OPT_KERNEL,
	OPT_QEMU,
	OPT_VMM,
	OPT_LIBVIRT_URI,
	OPT_MEMORY,
	OPT_CPUS,
	OPT_APPS_MEMORY,
	OPT_APPS_CPU,
	OPT_SCRATCH_SIZE,
	OPT_VIRTIOFSD,
	OPT_VOLUME_IDS,
	OPT_HOT_VOLUMES,
	OPT_COUNT_,
};

const char *const kvm_option_names[] = { [OPT_ACCEL] = "accel",
					 [OPT_MACHINE] = "machine",
					 [OPT_VSOCK] = "vsock",
					 [OPT_KERNEL] = "kernel",
					 [OPT_QEMU] = "qemu",
					 [OPT_MEMORY] = "memory",
					 [OPT_VMM] = "vmm",
					 [OPT_LIBVIRT_URI] = "libvirt-uri",
					 [OPT_CPUS] = "cpus",
					 [OPT_APPS_MEMORY] = "apps-memory",
					 [OPT_APPS_CPU] = "apps-cpu",
					 [OPT_SCRATCH_SIZE] = "scratch-size",
					 [OPT_VIRTIOFSD] = "virtiofsd",
					 [OPT_VOLUME_IDS] = "volume-ids",
					 [OPT_HOT_VOLUMES] = "hot-volumes",
					 [OPT_COUNT_] = NULL };

void kvm_options_init(struct kvm_options *o)
{
	*o = (struct kvm_options){ .scratch_size = SCRATCH_SIZE_DEFAULT, .driver = &qemu_driver };
}

static int choice(const char *name, const char *text, int r, struct err *e)
{
	return r < 0 ? err_set(e, r, "--%s=%s: no such choice (see husk run --help)", name, text)
		     : 0;
}

static int out_of_range(const char *name, const char *text, const char *range, struct err *e)
{
	return err_set(e, -EINVAL, "--%s=%s is not a %s", name, text, range);
}

static int take_driver(struct kvm_options *o, const char *value)
{
	if (strcmp(value, "qemu") == 0)
		o->driver = &qemu_driver;
	else if (strcmp(value, "libvirt") == 0)
		o->driver = &libvirt_driver;
	else
		return -EINVAL;
	return 0;
}

static int take_libvirt_uri(struct kvm_options *o, const char *value, struct err *e)
{
	o->libvirt_uri = value;
	return libvirt_uri_is_known(value)
		       ? 0
		       : err_set(e, -EINVAL,
				 "--libvirt-uri=%s: no libvirt that husk starts VMs with (give "
				 "qemu:///system, qemu:///session or qemu:///embed)",
				 value);
}

static int take_volume_ids(struct kvm_options *o, const char *value)
{
	o->volumes_as_host = strcmp(value, "host") == 0;
	return o->volumes_as_host || strcmp(value, "mapped") == 0 ? 0 : -EINVAL;
}

static int take_hot_volumes(struct kvm_options *o, const char *value)
{
	o->hot_volumes = strcmp(value, "always") == 0;
	return o->hot_volumes || strcmp(value, "auto") == 0 ? 0 : -EINVAL;
}

static int take_apps_memory(struct kvm_options *o, const char *value)
{
	return size_parse(value, 1, MIB(VM_MEMORY_MAX - PLAN_MEMORY_OVERHEAD), &o->apps_memory);
}

static int take_apps_cpu(struct kvm_options *o, const char *value)
{
	int r = quantity_parse(value, &o->apps_cpu_millis);
	bool is_in =
		o->apps_cpu_millis >= ISOLATOR_CPU_MIN && o->apps_cpu_millis <= ISOLATOR_CPU_MAX;
	return r == 0 && is_in ? 0 : -EINVAL;
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
	case OPT_VMM:
		return choice(name, value, take_driver(o, value), e);
	case OPT_LIBVIRT_URI:
		return take_libvirt_uri(o, value, e);
	case OPT_KERNEL:
		o->kernel = value;
		return 0;
	case OPT_QEMU:
		o->qemu = value;
		return 0;
	case OPT_VIRTIOFSD:
		o->virtiofsd = value;
		return 0;
	case OPT_VOLUME_IDS:
		return choice(name, value, take_volume_ids(o, value), e);
	case OPT_HOT_VOLUMES:
		return choice(name, value, take_hot_volumes(o, value), e);
	case OPT_MEMORY:
		return size_parse(value, MIB(VM_MEMORY_MIN), MIB(VM_MEMORY_MAX), &o->memory) < 0
			       ? out_of_range(name, value, "size from 64Mi to 1Ti", e)
			       : 0;
	case OPT_CPUS:
		return num_parse_u64(value, VM_CPUS_MAX, &o->cpus) < 0 || o->cpus == 0
			       ? out_of_range(name, value, "number from 1 to 64", e)
			       : 0;
	case OPT_APPS_MEMORY:
		return take_apps_memory(o, value) < 0
			       ? out_of_range(name, value, "size from 1 to 1048448Mi", e)
			       : 0;
	case OPT_APPS_CPU:
		return take_apps_cpu(o, value) < 0
			       ? out_of_range(name, value, "number of processors from 10m to 1024",
					      e)
			       : 0;
	case OPT_SCRATCH_SIZE:
		return size_parse(value, SCRATCH_SIZE_MIN, SCRATCH_SIZE_MAX, &o->scratch_size) < 0
			       ? out_of_range(name, value, "size from 32Mi to 1Ti", e)
			       : 0;
	default:
		return err_set(e, -EINVAL, "--%s: no such option of a VM", name);
	}
}
