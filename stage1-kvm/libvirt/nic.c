/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/libvirt/nic.h"

#include <errno.h>
#include <libvirt/libvirt-qemu.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/str.h"
#include "lib/wire/net.h"
#include "stage1-kvm/vmm/libvirt/domain_xml.h"
#include "stage1-kvm/vmm/libvirt/message.h"

#define COMMAND_MAX ((size_t)1024) /* bytes of a command; the longest names 8 descriptors */

/* Executes the command @text of QMP, with the descriptor @fd unless that is negative. */
static int command(virDomainPtr d, const char *text, int fd, struct err *e)
{
	char *reply = NULL;
	int r = virDomainQemuMonitorCommandWithFiles(d, text, fd >= 0 ? 1 : 0, fd >= 0 ? &fd : NULL,
						     NULL, NULL, &reply, 0);
	cleanup_free char *owned = reply;
	if (r < 0) {
		char why[ERR_TEXT_MAX];
		str_copy_text(why, sizeof(why), virGetLastErrorMessage());
		return err_set(e, -EIO, "libvirt: network device: %s", why);
	}
	const char *error = owned ? strstr(owned, "\"desc\":") : NULL;
	return error ? err_set(e, -EIO, "libvirt: network device: QEMU: %.200s", error) : 0;
}

/* Names of descriptors of QEMU: "tap0q1", "vhost0q1". */
static int pass_fd(virDomainPtr d, const char *kind, int i, int queue, int fd, struct err *e)
{
	char text[128];
	snprintf(text, sizeof(text),
		 "{\"execute\":\"getfd\",\"arguments\":{\"fdname\":\"%s%dq%d\"}}", kind, i, queue);
	return command(d, text, fd, e);
}

static int pass_fds(virDomainPtr d, const struct vm_nic *nic, int i, struct err *e)
{
	int r = 0;
	for (int q = 0; r == 0 && q < (int)nic->n_queues; q++) {
		r = pass_fd(d, "tap", i, q, HELPER_FD_TAP(i, q), e);
		if (r == 0 && nic->vhost)
			r = pass_fd(d, "vhost", i, q, HELPER_FD_VHOST(i, q), e);
	}
	return r;
}

/* ",\"KEY\":\"KIND0q0:KIND0q1\"" */
static int put_fds(struct buf *b, const char *key, const char *kind, int i, size_t n)
{
	int r = buf_printf(b, ",\"%s\":\"", key);
	for (size_t q = 0; r == 0 && q < n; q++)
		r = buf_printf(b, "%s%s%dq%zu", q ? ":" : "", kind, i, q);
	return r == 0 ? buf_puts(b, "\"") : r;
}

static int add_stream(virDomainPtr d, int i, struct err *e)
{
	char text[256];
	snprintf(text, sizeof(text),
		 "{\"execute\":\"netdev_add\",\"arguments\":{\"type\":\"stream\",\"id\":\"net%d\","
		 "\"server\":false,\"addr\":{\"type\":\"fd\",\"str\":\"tap%dq0\"}}}",
		 i, i);
	return command(d, text, -EBADF, e);
}

static int add_tap(virDomainPtr d, const struct vm_nic *nic, int i, struct err *e)
{
	cleanup_buf struct buf b;
	buf_init(&b, COMMAND_MAX);
	int r = buf_printf(&b,
			   "{\"execute\":\"netdev_add\",\"arguments\":{\"type\":\"tap\","
			   "\"id\":\"net%d\",\"vhost\":%s",
			   i, nic->vhost ? "true" : "false");
	if (r == 0)
		r = put_fds(&b, "fds", "tap", i, nic->n_queues);
	if (r == 0 && nic->vhost)
		r = put_fds(&b, "vhostfds", "vhost", i, nic->n_queues);
	if (r == 0)
		r = buf_puts(&b, "}}");
	cleanup_free char *text = r == 0 ? buf_take_string(&b) : NULL;
	return text ? command(d, text, -EBADF, e) : err_sys(e, -ENOMEM, "libvirt: network device");
}

int nic_add(virDomainPtr d, const struct vm_nic *nic, int i, struct err *e)
{
	char mac[NET_MAC_TEXT_MAX + 1], text[512];
	int r = pass_fds(d, nic, i, e);
	if (r == 0)
		r = nic->stream ? add_stream(d, i, e) : add_tap(d, nic, i, e);
	if (r < 0)
		return r;
	net_mac_format(nic->mac, mac);
	snprintf(text, sizeof(text),
		 "{\"execute\":\"device_add\",\"arguments\":{\"driver\":\"virtio-net-pci\","
		 "\"id\":\"nic%d\",\"bus\":\"" DOMAIN_NIC_PORT "\",\"netdev\":\"net%d\","
		 "\"mac\":\"%s\",\"host_mtu\":%u,\"mq\":%s,\"vectors\":%zu,\"romfile\":\"\"}}",
		 i, i, i, mac, nic->mtu, nic->n_queues > 1 ? "true" : "false",
		 2 * nic->n_queues + 2);
	return command(d, text, -EBADF, e);
}
