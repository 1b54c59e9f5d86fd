/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vmm/qemu/argv.h"

#include <errno.h>
#include <stdio.h>

const char *const argv_devices[] = { "scsi-hd",
				     "virtio-scsi-device",
				     "virtio-scsi-pci",
				     "vhost-user-vsock-device",
				     "vhost-user-vsock-pci",
				     "virtio-net-device",
				     "virtio-net-pci",
				     "vhost-user-fs-device",
				     "vhost-user-fs-pci",
				     "virtio-balloon-device",
				     "virtio-balloon-pci",
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

/* Volumes of the host (vhost-user; virtio 1.2, 5.11). */
static int add_shares(struct strv *argv, const struct vm *vm)
{
	if (!vm->shares)
		return 0;
	int r = ADD_OPT(argv, "-chardev", "socket,id=shares0-back,fd=%d", ARGV_FD_SHARES);
	if (r < 0)
		return r;
	return ADD_OPT(argv, "-device",
		       "vhost-user-fs-%s,id=shares0,chardev=shares0-back,tag=" AGENT_HOST_TAG
		       ",queue-size=%d",
		       bus_suffix(vm), ARGV_SHARES_QUEUE);
}

/*
 * What the guest has free goes back to the host some seconds later (virtio 1.2, 5.5.6.8). Nobody
 * inflates it. A machine whose slots are taken does without.
 */
static int add_balloon(struct strv *argv, const struct vm *vm)
{
	return vm_count_devices(vm) < VM_MICROVM_SLOTS || vm->machine == VM_MACHINE_Q35
		       ? ADD_OPT(argv, "-device", "virtio-balloon-%s,free-page-reporting=on",
				 bus_suffix(vm))
		       : 0;
}

static const char *on_off(bool value)
{
	return value ? "on" : "off";
}

static const char *discard_mode(const struct vm_disk *d)
{
	return d->discard ? "unmap" : "ignore";
}

/* The open file or device, which is the disk or has it in it. */
static int add_file(struct strv *argv, const struct vm_disk *d, int fd)
{
	int r = ADD_OPT(argv, "-add-fd", "fd=%d,set=%d", fd, d->lun);
	if (r < 0)
		return r;
	return ADD_OPT(argv, "-blockdev",
		       "driver=%s,node-name=%s%d,filename=/dev/fdset/%d,read-only=%s,discard=%s%s",
		       d->is_device ? "host_device" : "file",
		       d->format == VM_FORMAT_RAW ? "disk" : "file", d->lun, d->lun,
		       on_off(d->read_only), discard_mode(d),
		       d->disposable ? ",cache.no-flush=on" : "");
}

/* No file behind it, whatever its header says by the time that it is read. */
static int add_qcow2(struct strv *argv, const struct vm_disk *d)
{
	return ADD_OPT(argv, "-blockdev",
		       "{\"driver\":\"qcow2\",\"node-name\":\"disk%d\",\"file\":\"file%d\","
		       "\"backing\":null,\"read-only\":%s,\"discard\":\"%s\"}",
		       d->lun, d->lun, d->read_only ? "true" : "false", discard_mode(d));
}

/*
 * A host without room is an I/O error in the guest: by default QEMU would stop the whole machine,
 * and whoever writes would stop the others.
 */
static int add_disk(struct strv *argv, const struct vm_disk *d, int fd)
{
	int r = add_file(argv, d, fd);
	if (r == 0 && d->format == VM_FORMAT_QCOW2)
		r = add_qcow2(argv, d);
	if (r < 0)
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

/* "FIRST:SECOND:..." in @out, of 32 bytes: numbers of @n descriptors. */
static const char *list_fds(int first, size_t n, char *out)
{
	int len = 0;
	for (size_t i = 0; i < n; i++)
		len += snprintf(out + len, 32 - (size_t)len, "%s%d", i ? ":" : "", first + (int)i);
	return out;
}

static int add_netdev(struct strv *argv, const struct vm_nic *nic, int i)
{
	char queues[32], vhosts[32];
	if (nic->stream)
		return ADD_OPT(argv, "-netdev",
			       "stream,id=net%d,server=off,addr.type=fd,addr.str=%d", i,
			       ARGV_FD_TAP(i, 0));
	list_fds(ARGV_FD_TAP(i, 0), nic->n_queues, queues);
	list_fds(ARGV_FD_VHOST(i, 0), nic->n_queues, vhosts);
	return ADD_OPT(argv, "-netdev", "tap,id=net%d,fds=%s,vhost=%s%s%s", i, queues,
		       nic->vhost ? "on" : "off", nic->vhost ? ",vhostfds=" : "",
		       nic->vhost ? vhosts : "");
}

/*
 * One with queues for each processor has an interrupt for each ring, where it has several at all.
 */
static int add_nic(struct strv *argv, const struct vm *vm, int i)
{
	const struct vm_nic *nic = &vm->nics[i];
	bool is_pci = vm->machine == VM_MACHINE_Q35;
	char mac[NET_MAC_TEXT_MAX + 1], vectors[32] = "";
	int r = add_netdev(argv, nic, i);
	if (r < 0)
		return r;
	net_mac_format(nic->mac, mac);
	if (is_pci && nic->n_queues > 1)
		snprintf(vectors, sizeof(vectors), ",vectors=%zu", 2 * nic->n_queues + 2);
	return ADD_OPT(argv, "-device",
		       "virtio-net-%s,id=nic%d,netdev=net%d,mac=%s,host_mtu=%u%s%s%s",
		       bus_suffix(vm), i, i, mac, nic->mtu, nic->n_queues > 1 ? ",mq=on" : "",
		       vectors, is_pci ? ",romfile=" : "");
}

static int add_nics(struct strv *argv, const struct vm *vm)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < vm->n_nics; i++)
		r = add_nic(argv, vm, (int)i);
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
	    (r = add_disks(argv, vm)) < 0 || (r = add_shares(argv, vm)) < 0 ||
	    (r = add_nics(argv, vm)) < 0 || (r = add_balloon(argv, vm)) < 0)
		return err_sys(e, r, "QEMU command line");
	return 0;
}
