/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/libvirt/domain.h"

#include <errno.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "stage1-kvm/libvirt/nic.h"
#include "stage1-kvm/vmm/libvirt/message.h"

struct domain {
	virConnectPtr connection;
	virDomainPtr handle;
	char uuid[VIR_UUID_STRING_BUFLEN];
	int socket;
	domain_undo_fn undo;
	atomic_bool runs; /* it was created: from now on its events count */
};

static void send_message(int socket, uint32_t kind, const char *text)
{
	struct message m = { .kind = kind, .lun = -1 };
	str_copy_text(m.text, sizeof(m.text), text);
	send(socket, &m, sizeof(m), MSG_NOSIGNAL);
}

_Noreturn void domain_report_end(int socket, domain_undo_fn undo, const char *text)
{
	if (undo)
		undo();
	send_message(socket, MESSAGE_ENDED, text);
	_exit(0);
}

/* ---- errors ---- */

/* libvirt would print them. */
static void ignore_error(void *ctx, virErrorPtr error)
{
	(void)ctx;
	(void)error;
}

/* What can be done about it, or "". */
static const char *remedy_of(const virError *error)
{
	if (!error)
		return "";
	switch (error->code) { /* NOLINT(clang-diagnostic-switch-enum): of a hundred */
	case VIR_ERR_AUTH_UNAVAILABLE:
	case VIR_ERR_AUTH_CANCELLED:
	case VIR_ERR_AUTH_FAILED:
		return " (may this user manage the host's VMs?)";
	case VIR_ERR_SYSTEM_ERROR:
	case VIR_ERR_NO_CONNECT:
		return " (is libvirtd or virtqemud installed and running?)";
	case VIR_ERR_DOM_EXIST:
	case VIR_ERR_OPERATION_FAILED:
		return " (is there a domain of that name?)";
	default:
		return "";
	}
}

static int libvirt_failed(struct err *e, const char *what, bool with_remedy)
{
	const virError *error = virGetLastError();
	char text[MESSAGE_TEXT_MAX + 1];
	str_copy_text(text, sizeof(text), virGetLastErrorMessage());
	return err_set(e, -EIO, "libvirt: %s: %s%s", what, text,
		       with_remedy ? remedy_of(error) : "");
}

/* ---- events ---- */

static bool is_ours(const struct domain *d, virDomainPtr other)
{
	char uuid[VIR_UUID_STRING_BUFLEN];
	return atomic_load(&d->runs) && virDomainGetUUIDString(other, uuid) == 0 &&
	       strcmp(uuid, d->uuid) == 0;
}

static const char *how_it_stopped(int detail)
{
	switch ((virDomainEventStoppedDetailType)detail) {
	case VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN:
		return "the guest has shut down";
	case VIR_DOMAIN_EVENT_STOPPED_DESTROYED:
		return "the domain was destroyed, as virsh destroy does";
	case VIR_DOMAIN_EVENT_STOPPED_CRASHED:
	case VIR_DOMAIN_EVENT_STOPPED_FAILED: /* it has hung up */
		return "QEMU has crashed or was killed";
	case VIR_DOMAIN_EVENT_STOPPED_SAVED:
		return "the domain was saved, as virsh save does";
	case VIR_DOMAIN_EVENT_STOPPED_MIGRATED:
		return "the domain was migrated";
	case VIR_DOMAIN_EVENT_STOPPED_FROM_SNAPSHOT:
	default:
		return "libvirt has stopped the domain";
	}
}

static int on_lifecycle(virConnectPtr connection, virDomainPtr domain, int event, int detail,
			void *ctx)
{
	(void)connection;
	struct domain *d = ctx;
	if (!is_ours(d, domain))
		return 0;
	if (event == VIR_DOMAIN_EVENT_STOPPED)
		domain_report_end(d->socket, d->undo, how_it_stopped(detail));
	else if (event == VIR_DOMAIN_EVENT_SUSPENDED && detail == VIR_DOMAIN_EVENT_SUSPENDED_PAUSED)
		send_message(d->socket, MESSAGE_SUSPENDED, "");
	else if (event == VIR_DOMAIN_EVENT_RESUMED)
		send_message(d->socket, MESSAGE_RESUMED, "");
	return 0;
}

static void on_io_error(virConnectPtr connection, virDomainPtr domain, const char *path,
			const char *alias, int action, void *ctx)
{
	(void)connection;
	(void)path;
	(void)alias;
	(void)action;
	struct domain *d = ctx;
	if (is_ours(d, domain))
		send_message(d->socket, MESSAGE_DISK_ERROR, "");
}

static void on_close(virConnectPtr connection, int reason, void *ctx)
{
	(void)connection;
	(void)reason;
	struct domain *d = ctx;
	domain_report_end(d->socket, d->undo, "libvirt's daemon has ended or was restarted");
}

/*
 * The supervisor is gone, or wants us to go. libvirt's call that the other thread is in may last.
 */
static void on_hang_up(int watch, int fd, int events, void *ctx)
{
	(void)watch;
	(void)fd;
	(void)events;
	struct domain *d = ctx;
	domain_report_end(d->socket, d->undo, "the pod was given up while libvirt started it");
}

static void *run_events(void *ctx)
{
	while (virEventRunDefaultImpl() == 0)
		;
	return ctx;
}

static int start_events(struct err *e)
{
	pthread_t thread;
	virSetErrorFunc(NULL, ignore_error);
	if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0)
		return libvirt_failed(e, "cannot begin", false);
	int r = -pthread_create(&thread, NULL, run_events, NULL);
	return r < 0 ? err_sys(e, r, "libvirt: thread") : 0;
}

static int watch_events(struct domain *d, struct err *e)
{
	if (virConnectDomainEventRegisterAny(d->connection, NULL, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
					     VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle), d,
					     NULL) < 0 ||
	    virConnectDomainEventRegisterAny(d->connection, NULL, VIR_DOMAIN_EVENT_ID_IO_ERROR,
					     VIR_DOMAIN_EVENT_CALLBACK(on_io_error), d, NULL) < 0)
		return libvirt_failed(e, "no events", false);
	if (d->socket >= 0 &&
	    virEventAddHandle(d->socket, VIR_EVENT_HANDLE_HANGUP, on_hang_up, d, NULL) < 0)
		return libvirt_failed(e, "no events", false);
	/* Without a daemon there is no connection that could end. */
	virConnectRegisterCloseCallback(d->connection, on_close, d, NULL);
	return 0;
}

/* ---- calls ---- */

int domain_connect(const char *uri, int socket, domain_undo_fn undo, struct domain **ret,
		   struct err *e)
{
	cleanup_free struct domain *d = calloc(1, sizeof(*d));
	if (!d)
		return err_sys(e, -ENOMEM, "libvirt");
	d->socket = socket;
	d->undo = undo;
	int r = start_events(e);
	if (r < 0)
		return r;
	d->connection = virConnectOpen(uri);
	if (!d->connection)
		return libvirt_failed(e, uri, true);
	r = watch_events(d, e);
	if (r < 0) {
		virConnectClose(d->connection);
		return r;
	}
	*ret = TAKE_PTR(d);
	return 0;
}

/* The number that @text begins with. -1 if there is none. */
static uint32_t parse_id(const char *text)
{
	uint64_t id = 0;
	char digits[16];
	size_t n = strspn(text, "0123456789");
	if (n == 0 || n >= sizeof(digits))
		return UINT32_MAX;
	memcpy(digits, text, n);
	digits[n] = '\0';
	return num_parse_u64(digits, UINT32_MAX - 1, &id) < 0 ? UINT32_MAX : (uint32_t)id;
}

/*
 * Capabilities have, once for each kind of machine, the label "+UID:+GID" of the driver "dac"
 * (https://libvirt.org/formatcaps.html).
 */
uid_t domain_user(struct domain *d)
{
	static const char model[] = "<model>dac</model>", base[] = "<baselabel type='qemu'>+";
	cleanup_free char *caps = virConnectGetCapabilities(d->connection);
	const char *at = caps ? strstr(caps, model) : NULL;
	at = at ? strstr(at, base) : NULL;
	return at ? parse_id(at + sizeof(base) - 1) : UINT32_MAX;
}

static int add_nics(struct domain *d, const struct vm_nic *nics, size_t n, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = nic_add(d->handle, &nics[i], (int)i, e);
	if (r == 0 && n > 0 && virDomainResume(d->handle) < 0)
		r = libvirt_failed(e, "cannot start the domain", false);
	return r;
}

int domain_create(struct domain *d, const char *xml, bool embedded, const struct vm_nic *nics,
		  size_t n_nics, struct err *e)
{
	unsigned flags = embedded ? 0 : VIR_DOMAIN_START_AUTODESTROY;
	flags |= n_nics > 0 ? VIR_DOMAIN_START_PAUSED : 0;
	d->handle = virDomainCreateXML(d->connection, xml, flags);
	if (!d->handle)
		return libvirt_failed(e, "cannot create the domain", true);
	if (virDomainGetUUIDString(d->handle, d->uuid) < 0)
		return libvirt_failed(e, "domain", false);
	int r = add_nics(d, nics, n_nics, e);
	if (r < 0) {
		virDomainDestroy(d->handle);
		return r;
	}
	atomic_store(&d->runs, true);
	/* What ended before its events counted. */
	return virDomainIsActive(d->handle) == 1
		       ? 0
		       : err_set(e, -EIO, "libvirt: the domain has ended at once");
}

int domain_attach(struct domain *d, const char *xml, bool *ret_left, struct err *e)
{
	*ret_left = false; /* libvirt takes back what it did */
	return virDomainAttachDeviceFlags(d->handle, xml, VIR_DOMAIN_AFFECT_LIVE) < 0
		       ? libvirt_failed(e, "cannot attach the disk", false)
		       : 0;
}

int domain_detach(struct domain *d, const char *xml, bool *ret_left, struct err *e)
{
	*ret_left = true;
	return virDomainDetachDeviceFlags(d->handle, xml, VIR_DOMAIN_AFFECT_LIVE) < 0
		       ? libvirt_failed(e, "cannot detach the disk", false)
		       : 0;
}
