/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libvirts that a pod may be a domain of
 * (https://libvirt.org/drvqemu.html#connections-to-qemu-driver).
 */
#ifndef STAGE1_KVM_VMM_LIBVIRT_URI_H
#define STAGE1_KVM_VMM_LIBVIRT_URI_H

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define LIBVIRT_URI_SYSTEM  "qemu:///system"  /* of the host's daemon */
#define LIBVIRT_URI_SESSION "qemu:///session" /* of the user's own daemon */
#define LIBVIRT_URI_EMBED   "qemu:///embed"   /* without a daemon, for each pod one */

static inline bool libvirt_uri_is_known(const char *uri)
{
	return strcmp(uri, LIBVIRT_URI_SYSTEM) == 0 || strcmp(uri, LIBVIRT_URI_SESSION) == 0 ||
	       strcmp(uri, LIBVIRT_URI_EMBED) == 0;
}

/* The one that a person would take: the host's for root, else the user's own. */
static inline const char *libvirt_default_uri(void)
{
	return geteuid() == 0 ? LIBVIRT_URI_SYSTEM : LIBVIRT_URI_SESSION;
}

#endif
