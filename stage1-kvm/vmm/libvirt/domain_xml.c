/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vmm/libvirt/domain_xml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/wire/agent.h"

/* What QEMU's options take for a comma within a value. */
#define COMMA ','

/*
 * Appends @text as the content of an element or of an attribute in single quotes. Control
 * characters and what is no UTF-8 have no place in XML 1.0 (2.2); spaces other than ' ' would be
 * changed by whoever reads an attribute (3.3.3).
 */
static int put_text(struct buf *b, const char *text, bool double_commas)
{
	if (!str_is_utf8(text))
		return -EINVAL;
	int r = 0;
	for (const char *p = text; r == 0 && *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return -EINVAL;
		if (*p == '&')
			r = buf_puts(b, "&amp;");
		else if (*p == '<')
			r = buf_puts(b, "&lt;");
		else if (*p == '>')
			r = buf_puts(b, "&gt;");
		else if (*p == '\'')
			r = buf_puts(b, "&apos;");
		else if (*p == '"')
			r = buf_puts(b, "&quot;");
		else
			r = buf_append(b, p, 1);
		if (r == 0 && double_commas && *p == COMMA)
			r = buf_append(b, p, 1);
	}
	return r;
}

/* @before, @text, @after. */
static int put(struct buf *b, const char *before, const char *text, const char *after)
{
	int r = buf_puts(b, before);
	if (r == 0)
		r = put_text(b, text, false);
	return r < 0 ? r : buf_puts(b, after);
}

/* The path of @file in the directory of the domain. */
static int put_path(struct buf *b, const char *before, const struct domain_names *n,
		    const char *file, const char *after)
{
	int r = put(b, before, n->dir, "/");
	return r < 0 ? r : put(b, "", file, after);
}

static int put_identity(struct buf *b, const struct domain_names *n)
{
	int r = n->pod ? put(b, "  <name>", n->pod, "</name>\n")
		       : put(b, "  <name>husk-", n->uuid, "</name>\n");
	if (r == 0)
		r = put(b, "  <uuid>", n->uuid, "</uuid>\n");
	if (r == 0)
		r = put(b, "  <metadata><husk:pod xmlns:husk='urn:husk:pod' uuid='", n->uuid, "'");
	if (r == 0 && n->pod)
		r = put(b, " name='", n->pod, "'");
	return r < 0 ? r : buf_puts(b, "/></metadata>\n");
}

static int put_memory(struct buf *b, const struct vm *vm)
{
	return buf_printf(b,
			  "  <memory unit='MiB'>%u</memory>\n"
			  "  <vcpu>%u</vcpu>\n"
			  "  <memoryBacking><source type='memfd'/><access mode='shared'/>"
			  "</memoryBacking>\n",
			  vm->memory_mib, vm->cpus);
}

static int put_boot(struct buf *b, const struct vm *vm, const struct domain_names *n)
{
	int r = put_path(b, "  <sysinfo type='fwcfg'><entry name='" AGENT_SECRET_FW_CFG "' file='",
			 n, DOMAIN_FILE_SECRET, "'/></sysinfo>\n");
	if (r == 0)
		r = put_path(b,
			     "  <os>\n"
			     "    <type arch='x86_64' machine='q35'>hvm</type>\n"
			     "    <kernel>",
			     n, DOMAIN_FILE_KERNEL, "</kernel>\n");
	if (r == 0)
		r = put_path(b, "    <initrd>", n, DOMAIN_FILE_INITRD, "</initrd>\n");
	return r < 0 ? r : put(b, "    <cmdline>", vm->append, "</cmdline>\n  </os>\n");
}

/*
 * The processor of the guest, as the QEMU driver has it: no nesting, and no fast byte strings where
 * they are emulated. Every end of the guest is that of the domain.
 */
static int put_machine(struct buf *b, const struct vm *vm)
{
	static const char tcg[] = "  <cpu mode='maximum'>"
				  "<feature policy='disable' name='svm'/>"
				  "<feature policy='disable' name='erms'/></cpu>\n";
	static const char kvm[] = "  <cpu mode='host-passthrough'>"
				  "<feature policy='disable' name='vmx'/>"
				  "<feature policy='disable' name='svm'/></cpu>\n";
	int r = buf_puts(b, "  <features><acpi/><apic/><vmport state='off'/><smm state='off'/>"
			    "</features>\n");
	if (r == 0)
		r = buf_puts(b, vm->accel == VM_ACCEL_KVM ? kvm : tcg);
	return r < 0 ? r
		     : buf_puts(b,
				"  <clock offset='utc'><timer name='hpet' present='no'/></clock>\n"
				"  <on_poweroff>destroy</on_poweroff>\n"
				"  <on_reboot>destroy</on_reboot>\n"
				"  <on_crash>destroy</on_crash>\n"
				"  <pm><suspend-to-mem enabled='no'/>"
				"<suspend-to-disk enabled='no'/></pm>\n");
}

/* A name for libvirt; the guest finds its disks by LUN. sda, ..., sdz, sdaa, ... */
static void target_name(int lun, char ret[8])
{
	char letters[4];
	size_t n = 0, len = 2;
	for (int i = lun + 1; i > 0; i = (i - 1) / 26)
		letters[n++] = (char)('a' + (i - 1) % 26);
	memcpy(ret, "sd", 2);
	while (n > 0)
		ret[len++] = letters[--n];
	ret[len] = '\0';
}

/*
 * A read-only one may be in use by many: its owner must not become who runs QEMU. A host without
 * room is an error in the guest, as with the QEMU driver.
 */
static int put_disk(struct buf *b, const struct vm_disk *d, const struct domain_names *n)
{
	char file[32], target[8];
	snprintf(file, sizeof(file), DOMAIN_FILE_DISK, d->lun);
	target_name(d->lun, target);
	int r = buf_printf(b,
			   "    <disk type='file' device='disk'>\n"
			   "      <driver name='qemu' type='raw' cache='%s' error_policy='report' "
			   "discard='%s'/>\n",
			   d->disposable ? "unsafe" : "writeback", d->discard ? "unmap" : "ignore");
	if (r == 0)
		r = put_path(b, "      <source file='", n, file,
			     d->read_only && n->labels
				     ? "'><seclabel model='dac' relabel='no'/></source>\n"
				     : "'/>\n");
	return r < 0 ? r
		     : buf_printf(b,
				  "      <target dev='%s' bus='scsi'/>\n%s"
				  "      <address type='drive' controller='0' bus='0' target='0' "
				  "unit='%d'/>\n"
				  "    </disk>\n",
				  target, d->read_only ? "      <readonly/>\n" : "", d->lun);
}

static int put_devices(struct buf *b, const struct vm *vm, const struct domain_names *n)
{
	int r = put(b, "  <devices>\n    <emulator>", n->emulator, "</emulator>\n");
	if (r == 0)
		r = buf_puts(b, "    <controller type='usb' model='none'/>\n"
				"    <controller type='scsi' index='0' model='virtio-scsi'/>\n"
				"    <memballoon model='none'/>\n");
	if (r == 0)
		r = put_path(b, "    <serial type='unix'><source mode='connect' path='", n,
			     DOMAIN_FILE_CONSOLE, "'/><target port='0'/></serial>\n");
	if (r == 0 && vm->vsock == VM_VSOCK_KERNEL)
		r = buf_printf(b,
			       "    <vsock model='virtio'><cid auto='no' address='%u'/></vsock>\n",
			       vm->guest_cid);
	for (size_t i = 0; r == 0 && i < vm->n_disks; i++)
		r = put_disk(b, &vm->disks[i], n);
	return r < 0 ? r : buf_puts(b, "  </devices>\n");
}

/* libvirt has no element for a vhost-user device that is a vsock. */
static int put_vsock(struct buf *b, const struct domain_names *n)
{
	int r = buf_puts(b, "    <qemu:arg value='-chardev'/>\n"
			    "    <qemu:arg value='socket,id=vsock0-back,path=");
	if (r == 0)
		r = put_text(b, n->dir, true);
	return r < 0 ? r
		     : buf_puts(b, "/" DOMAIN_FILE_VSOCK "'/>\n"
				   "    <qemu:arg value='-device'/>\n"
				   "    <qemu:arg value='vhost-user-vsock-pci,id=vsock0,"
				   "chardev=vsock0-back,bus=pcie.0,addr=0x10'/>\n");
}

/* Slots of the root bus behind that of the vsock device; libvirt gives out those from 0x1 on. */
static int put_nic_ports(struct buf *b, const struct vm *vm)
{
	int r = 0;
	for (int i = 0; r == 0 && i < (int)vm->n_nics; i++)
		r = buf_printf(b,
			       "    <qemu:arg value='-device'/>\n"
			       "    <qemu:arg value='pcie-root-port,id=" DOMAIN_NIC_PORT
			       ",bus=pcie.0,chassis=%d,addr=0x%x'/>\n",
			       i, 100 + i, 0x11 + i);
	return r;
}

static int put_commandline(struct buf *b, const struct vm *vm, const struct domain_names *n)
{
	if (vm->vsock != VM_VSOCK_USER && vm->n_nics == 0)
		return 0;
	int r = buf_puts(b, "  <qemu:commandline>\n");
	if (r == 0 && vm->vsock == VM_VSOCK_USER)
		r = put_vsock(b, n);
	if (r == 0)
		r = put_nic_ports(b, vm);
	return r == 0 ? buf_puts(b, "  </qemu:commandline>\n") : r;
}

static int put_domain(struct buf *b, const struct vm *vm, const struct domain_names *n)
{
	int r = buf_printf(b,
			   "<domain type='%s' "
			   "xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n",
			   vm->accel == VM_ACCEL_KVM ? "kvm" : "qemu");
	if (r < 0 || (r = put_identity(b, n)) < 0 || (r = put_memory(b, vm)) < 0 ||
	    (r = put_boot(b, vm, n)) < 0 || (r = put_machine(b, vm)) < 0 ||
	    (r = put_devices(b, vm, n)) < 0)
		return r;
	r = put_commandline(b, vm, n);
	return r < 0 ? r : buf_puts(b, "</domain>\n");
}

static int xml_failed(int r, const struct domain_names *n, struct err *e)
{
	if (r != -EINVAL)
		return err_sys(e, r, "libvirt: domain");
	return err_set(e, r,
		       "libvirt: a path has characters that XML cannot have: \"%s\" or \"%s\" "
		       "(move it)",
		       n->dir, n->emulator);
}

int domain_xml(const struct vm *vm, const struct domain_names *names, struct buf *out,
	       struct err *e)
{
	int r = vm_check(vm, e);
	if (r < 0)
		return r;
	if (vm->machine != VM_MACHINE_Q35)
		return err_set(e, -EINVAL, "libvirt: it has no machine but q35");
	r = put_domain(out, vm, names);
	return r < 0 ? xml_failed(r, names, e) : 0;
}

int domain_disk_xml(const struct vm_disk *disk, const struct domain_names *names, struct buf *out,
		    struct err *e)
{
	int r = put_disk(out, disk, names);
	return r < 0 ? xml_failed(r, names, e) : 0;
}
