/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports of the host that lead into a pod: from what the user says to what the manifest has. Pure.
 */
#ifndef HOST_MANIFEST_PORTS_H
#define HOST_MANIFEST_PORTS_H

#include "lib/base/err.h"
#include "lib/wire/pod_manifest.h"

/*
 * Adds "NAME:[HOSTIP:]HOSTPORT", the port of an app that has the name, or
 * "PORT/PROTOCOL:[HOSTIP:]HOSTPORT", which no app needs to know of. An IPv6 address may be in
 * brackets. 0; -EINVAL, -E2BIG, -ENOMEM with @e.
 */
int ports_add(struct pod_ports *ports, const char *text, struct err *e);

/*
 * The same where there are no apps yet: no names, but rkt's form
 * "NAME:PROTOCOL:PORT:HOSTIP:HOSTPORT", whose name is only one.
 */
int ports_add_direct(struct pod_ports *ports, const char *text, struct err *e);

/*
 * Adds copies of @wishes to the ports of @m, those by name as the ports of its apps. 0; -ENOENT,
 * -EEXIST (in more than one app; a port of the host twice), -E2BIG, -ENOMEM with @e.
 */
int ports_resolve(const struct pod_ports *wishes, struct pod_manifest *m, struct err *e);

#endif
