/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One domain of libvirt: created, its disks plugged and unplugged, its life told to the driver as
 * messages of stage1-kvm/vmm/libvirt/message.h.
 *
 * Theory of operation. libvirt's calls block, and its events come in a thread of their own, which
 * lives until the process does. The domain belongs to our connection: a daemon destroys it when the
 * connection ends, however we end. Messages are sent in one system call each, from both threads.
 */
#ifndef STAGE1_KVM_LIBVIRT_DOMAIN_H
#define STAGE1_KVM_LIBVIRT_DOMAIN_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "stage1-kvm/plan/vm.h"

struct domain;

/* What the process has to undo wherever it ends; called from either thread. NULL: nothing. */
typedef void (*domain_undo_fn)(void);

/*
 * Connects to libvirt at @uri. @socket, borrowed, is where messages go; when its other end is
 * closed the process ends, whatever it waits for. 0 or -errno with @e, which has libvirt's own
 * words and the remedy.
 */
int domain_connect(const char *uri, int socket, domain_undo_fn undo, struct domain **ret,
		   struct err *e);

/*
 * The user under whom QEMU will run, as far as libvirt tells; else -1. For a daemon only: it asks
 * about all programs.
 */
uid_t domain_user(struct domain *d);

/*
 * Creates and starts it, with the @n_nics network devices @nics. 0 or -errno with @e. @embedded:
 * there is no daemon.
 */
int domain_create(struct domain *d, const char *xml, bool embedded, const struct vm_nic *nics,
		  size_t n_nics, struct err *e);

/*
 * Attaches or detaches the disk @xml. Of a failure *ret_left says whether a part of it may be
 * there. 0 or -errno with @e.
 */
int domain_attach(struct domain *d, const char *xml, bool *ret_left, struct err *e);
int domain_detach(struct domain *d, const char *xml, bool *ret_left, struct err *e);

/* Undoes, sends the last message, with @text, and ends the process. */
_Noreturn void domain_report_end(int socket, domain_undo_fn undo, const char *text);

#endif
