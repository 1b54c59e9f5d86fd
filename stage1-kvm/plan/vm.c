/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/plan/vm.h"

#include <errno.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/str.h"

static int check_range(const char *what, unsigned value, unsigned min, unsigned max, struct err *e)
{
	if (value < min || value > max)
		return err_set(e, -EINVAL, "%s %u: out of range (give %u to %u)", what, value, min,
			       max);
	return 0;
}

static int check_disks(const struct vm *vm, struct err *e)
{
	bool luns[AGENT_LUN_MAX + 1] = { false };

	if (vm->n_disks > VM_DISKS_MAX)
		return err_set(e, -EINVAL, "%zu disks: too many (at most %d)", vm->n_disks,
			       VM_DISKS_MAX);
	for (size_t i = 0; i < vm->n_disks; i++) {
		const struct vm_disk *d = &vm->disks[i];
		if (d->lun < 0 || d->lun > AGENT_LUN_MAX)
			return err_set(e, -EINVAL, "LUN %d: out of range (plan 0 to %d)", d->lun,
				       AGENT_LUN_MAX);
		if (luns[d->lun])
			return err_set(e, -EINVAL, "LUN %d: used twice (plan another)", d->lun);
		luns[d->lun] = true;
	}
	return 0;
}

static int check_nics(const struct vm *vm, struct err *e)
{
	int r = check_range("number of network devices", (unsigned)vm->n_nics, 0,
			    NET_INTERFACES_MAX, e);
	for (size_t i = 0; r == 0 && i < vm->n_nics; i++) {
		r = check_range("number of queues", (unsigned)vm->nics[i].n_queues, 1,
				VM_QUEUES_MAX, e);
		if (r == 0)
			r = check_range("MTU", vm->nics[i].mtu, NET_MTU_MIN, NET_MTU_MAX, e);
	}
	return r;
}

static int check_append(const struct vm *vm, struct err *e)
{
	if (!memchr(vm->append, '\0', sizeof(vm->append)) ||
	    !str_is_printable(vm->append, VM_APPEND_MAX))
		return err_set(e, -EINVAL,
			       "kernel command line: empty, or not all printable ASCII "
			       "(plan 1 to %d characters)",
			       VM_APPEND_MAX);
	return 0;
}

static int check_kinds(const struct vm *vm, struct err *e)
{
	if (!vm_accel_name(vm->accel) || !vm_machine_name(vm->machine) || !vm_vsock_name(vm->vsock))
		return err_set(e, -EINVAL, "machine: unknown kind (accel %d, machine %d, vsock %d)",
			       (int)vm->accel, (int)vm->machine, (int)vm->vsock);
	if (vm->vsock == VM_VSOCK_KERNEL)
		return check_range("guest CID", vm->guest_cid, VM_CID_MIN, VM_CID_MAX, e);
	return 0;
}

int vm_check(const struct vm *vm, struct err *e)
{
	int r;

	if ((r = check_kinds(vm, e)) < 0 ||
	    (r = check_range("memory in MiB", vm->memory_mib, VM_MEMORY_MIN, VM_MEMORY_MAX, e)) <
		    0 ||
	    (r = check_range("number of processors", vm->cpus, 1, VM_CPUS_MAX, e)) < 0 ||
	    (r = check_append(vm, e)) < 0)
		return r;
	r = check_nics(vm, e);
	return r == 0 ? check_disks(vm, e) : r;
}

const char *vm_accel_name(enum vm_accel accel)
{
	switch (accel) {
	case VM_ACCEL_TCG:
		return "tcg";
	case VM_ACCEL_KVM:
		return "kvm";
	}
	return NULL;
}

const char *vm_machine_name(enum vm_machine machine)
{
	switch (machine) {
	case VM_MACHINE_MICROVM:
		return "microvm";
	case VM_MACHINE_Q35:
		return "q35";
	}
	return NULL;
}

const char *vm_vsock_name(enum vm_vsock vsock)
{
	switch (vsock) {
	case VM_VSOCK_USER:
		return "user";
	case VM_VSOCK_KERNEL:
		return "kernel";
	}
	return NULL;
}

size_t vm_count_devices(const struct vm *vm)
{
	const size_t always = 2; /* SCSI, vsock */
	return always + vm->shares + vm->n_nics;
}

int vm_check_devices(const struct vm *vm, struct err *e)
{
	size_t n = vm_count_devices(vm);
	if (vm->machine != VM_MACHINE_MICROVM || n <= VM_MICROVM_SLOTS)
		return 0;
	return err_set(e, -E2BIG,
		       "the machine microvm has room for %zu network interfaces%s (give "
		       "--machine=q35)",
		       VM_MICROVM_SLOTS - (n - vm->n_nics),
		       vm->shares ? " beside volumes of the host" : "");
}

bool vm_has_volume_disks(const struct vm *vm)
{
	for (size_t i = 0; i < vm->n_disks; i++)
		if (vm->disks[i].lun >= AGENT_VOLUME_LUN && vm->disks[i].lun < AGENT_SCRATCH_LUN)
			return true;
	return false;
}
