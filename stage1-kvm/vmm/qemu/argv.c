/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vmm/qemu/argv.h"

#include <errno.h>

const char *const argv_devices[] = { "scsi-hd",
				     "virtio-scsi-device",
				     "virtio-scsi-pci",
				     "vhost-user-vsock-device",
				     "vhost-user-vsock-pci",
				     NULL };

const char *const argv_devices_kernel_vsock[] = { "vhost-vsock-device", "vhost-vsock-pci", NULL };

/* NULL-terminated list of arguments. */
static int add_all(struct strv *argv, const char *const *args)
{
	for (; *args; args++) {
		int r = strv_add(argv, *args);
		if (r < 0)
			return r;
	}
	return 0;
}

/* "-option", then its value as formatted text. */
#define ADD_OPT(argv, option, ...)                          \
	({                                                  \
		int r_ = strv_add(argv, option);            \
		r_ < 0 ? r_ : strv_addf(argv, __VA_ARGS__); \
	})

/*
 * No configuration file, no default device, no display; a reset ends it; no system call it does not
 * need.
 */
static int add_frame(struct strv *argv)
{
	static const char *const args[] = {
		"qemu-system-x86_64",
		"-no-user-config",
		"-nodefaults",
		"-no-reboot",
		"-display",
		"none",
		"-sandbox",
		"on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		NULL
	};

	return add_all(argv, args);
}

/*
 * The fewest devices with which Linux boots and powers off. A machine without a real-time clock
 * lets the kernel wait a second for one. The interrupt timer and controller of old PCs are left out
 * where the guest has the local APIC's; q35 does not calibrate reliably without. qboot is 20 ms
 * (microvm) to 50 ms (q35) faster than SeaBIOS and takes the kernel without an option ROM.
 */
static const char *machine_options(const struct vm *vm)
{
	switch (vm->machine) {
	case VM_MACHINE_MICROVM:
		return "microvm,acpi=on,pcie=off,usb=off,rtc=on,pit=off,pic=off,isa-serial=on,"
		       "ioapic2=off,x-option-roms=off,auto-kernel-cmdline=off";
	case VM_MACHINE_Q35:
		return "q35,acpi=on,usb=off,sata=off,smbus=off,smm=off,vmport=off,hpet=off,"
		       "i8042=off,graphics=off";
	}
	return NULL;
}

static int add_machine(struct strv *argv, const struct vm *vm)
{
	int r;

	if ((r = ADD_OPT(argv, "-machine", "%s,memory-backend=ram0", machine_options(vm))) < 0 ||
	    (r = ADD_OPT(argv, "-bios", "qboot.rom")) < 0 ||
	    (r = ADD_OPT(argv, "-object", "memory-backend-memfd,id=ram0,size=%uM,share=on",
			 vm->memory_mib)) < 0 ||
	    (r = ADD_OPT(argv, "-m", "%uM", vm->memory_mib)) < 0 ||
	    (r = ADD_OPT(argv, "-smp", "%u", vm->cpus)) < 0)
		return r;
	if (vm->machine == VM_MACHINE_MICROVM)
		return ADD_OPT(argv, "-global", "virtio-mmio.force-legacy=false");
	return 0;
}

/*
 * The processor of the guest. No nesting: pods start no machines, and nested virtualization is much
 * code of the host's kernel, or QEMU's, to attack. The emulated one is without fast byte strings,
 * which are slow; then the guest clears pages by words.
 */
static int add_accel(struct strv *argv, const struct vm *vm)
{
	static const char *const tcg[] = { "-accel", "tcg,thread=multi", "-cpu", "max,-erms,-svm",
					   NULL };
	static const char *const kvm[] = { "-accel", "kvm", "-cpu", "host,-vmx,-svm", NULL };

	return add_all(argv, vm->accel == VM_ACCEL_KVM ? kvm : tcg);
}

/* What QEMU reads by path. Not /dev/fd: that is a link which minimal systems do not have. */
static int add_boot(struct strv *argv, const struct vm *vm)
{
	int r;

	if ((r = ADD_OPT(argv, "-kernel", "/proc/self/fd/%d", ARGV_FD_KERNEL)) < 0 ||
	    (r = ADD_OPT(argv, "-initrd", "/proc/self/fd/%d", ARGV_FD_INITRD)) < 0 ||
	    (r = ADD_OPT(argv, "-append", "%s", vm->append)) < 0)
		return r;
	return ADD_OPT(argv, "-fw_cfg", "name=" AGENT_SECRET_FW_CFG ",file=/proc/self/fd/%d",
		       ARGV_FD_SECRET);
}

static int add_channels(struct strv *argv)
{
	int r;

	if ((r = ADD_OPT(argv, "-chardev", "socket,id=console0,fd=%d", ARGV_FD_CONSOLE)) < 0 ||
	    (r = ADD_OPT(argv, "-serial", "chardev:console0")) < 0 ||
	    (r = ADD_OPT(argv, "-chardev", "socket,id=qmp0,fd=%d", ARGV_FD_QMP)) < 0)
		return r;
	return ADD_OPT(argv, "-mon", "chardev=qmp0,mode=control,pretty=off");
}

/* The virtio bus of the machine, as the suffix of a device's name. */
static const char *bus_suffix(const struct vm *vm)
{
	return vm->machine == VM_MACHINE_Q35 ? "pci" : "device";
}

static int add_vsock(struct strv *argv, const struct vm *vm)
{
	int r;

	if (vm->vsock == VM_VSOCK_KERNEL)
		return ADD_OPT(argv, "-device",
			       "vhost-vsock-%s,id=" ARGV_ID_VSOCK ",guest-cid=%u,vhostfd=%d",
			       bus_suffix(vm), vm->guest_cid, ARGV_FD_VSOCK);
	r = ADD_OPT(argv, "-chardev", "socket,id=vsock0-back,fd=%d", ARGV_FD_VSOCK);
	if (r < 0)
		return r;
	return ADD_OPT(argv, "-device",
		       "vhost-user-vsock-%s,id=" ARGV_ID_VSOCK ",chardev=vsock0-back",
		       bus_suffix(vm));
}

/*
 * A host without room is an I/O error in the guest: by default QEMU would stop the whole machine,
 * and whoever writes would stop the others.
 */
static int add_disk(struct strv *argv, const struct vm_disk *d, int fd)
{
	int r;

	if ((r = ADD_OPT(argv, "-add-fd", "fd=%d,set=%d", fd, d->lun)) < 0 ||
	    (r = ADD_OPT(
		     argv, "-blockdev",
		     "driver=file,node-name=disk%d,filename=/dev/fdset/%d,read-only=%s,discard=%s%s",
		     d->lun, d->lun, d->read_only ? "on" : "off", d->discard ? "unmap" : "ignore",
		     d->disposable ? ",cache.no-flush=on" : "")) < 0)
		return r;
	return ADD_OPT(argv, "-device",
		       "scsi-hd,id=disk%d,bus=" ARGV_ID_SCSI ".0,scsi-id=0,lun=%d,drive=disk%d%s%s",
		       d->lun, d->lun, d->lun, d->read_only ? "" : ",werror=report",
		       d->disposable ? ",write-cache=off" : "");
}

static int add_disks(struct strv *argv, const struct vm *vm)
{
	int r = ADD_OPT(argv, "-device", "virtio-scsi-%s,id=" ARGV_ID_SCSI, bus_suffix(vm));

	for (size_t i = 0; r == 0 && i < vm->n_disks; i++)
		r = add_disk(argv, &vm->disks[i], ARGV_FD_DISK0 + (int)i);
	return r;
}

int argv_build(const struct vm *vm, struct strv *argv, struct err *e)
{
	int r = vm_check(vm, e);

	if (r < 0)
		return r;
	if ((r = add_frame(argv)) < 0 || (r = add_machine(argv, vm)) < 0 ||
	    (r = add_accel(argv, vm)) < 0 || (r = add_boot(argv, vm)) < 0 ||
	    (r = add_channels(argv)) < 0 || (r = add_vsock(argv, vm)) < 0 ||
	    (r = add_disks(argv, vm)) < 0)
		return err_sys(e, r, "QEMU command line");
	return 0;
}
