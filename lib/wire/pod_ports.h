/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports: those that an app says it listens on, and those of the host that lead into the pod.
 * Members "ports" of the app sections of an appc manifest, and of a pod manifest (appc spec 0.8.11,
 * "Image Manifest Schema" and "Pod Manifest Schema").
 */
#ifndef LIB_WIRE_POD_PORTS_H
#define LIB_WIRE_POD_PORTS_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/wire/agent.h"

/*
 * Ports of an app, and of a pod: each of a pod becomes rules of the host's packet filter. Compose
 * files have about ten.
 */
#define POD_PORTS_MAX     ((size_t)256)
#define POD_PORT_NAME_MAX AGENT_NAME_MAX /* an AC name, too */
#define POD_PORT_IP_MAX   45             /* INET6_ADDRSTRLEN without the NUL */

enum port_protocol {
	PORT_TCP,
	PORT_UDP,
	PORT_SCTP,
	PORT_PROTOCOL_COUNT_,
};

/* In the list of an app the host has no part. */
struct pod_port {
	char name[POD_PORT_NAME_MAX + 1];
	enum port_protocol protocol;
	uint16_t port;                     /* in the pod; 0: an app's that has the name */
	uint16_t count;                    /* of an app: so many from there on, at least 1 */
	uint16_t host_port;                /* 1 to 65535 */
	char host_ip[POD_PORT_IP_MAX + 1]; /* as inet_ntop(3) writes it; "": all of the host's */
};

/* In the order in which they were added. All zero: none. */
struct pod_ports {
	struct pod_port *v; /* owned */
	size_t n;           /* up to POD_PORTS_MAX */
};

/* Frees the list, which is empty then. Accepts NULL. */
void pod_ports_deinit(struct pod_ports *p);

/* Adds a copy of one, or of all of @from. 0, -E2BIG at POD_PORTS_MAX, -ENOMEM. */
int pod_ports_add(struct pod_ports *p, const struct pod_port *port);
int pod_ports_copy(struct pod_ports *p, const struct pod_ports *from);

/* "tcp", "udp", "sctp". 0 or -EINVAL. */
int port_protocol_parse(const char *s, enum port_protocol *ret);
const char *port_protocol_name(enum port_protocol protocol);

/* "1" to "65535". 0 or -EINVAL. */
int port_number_parse(const char *s, uint16_t *ret);

/*
 * "80/tcp", or "80", which means the same, as the port of an app called "80-tcp": how OCI images
 * have their ports, and how docker2aci called them. 0 or -EINVAL.
 */
int pod_port_parse(const char *s, struct pod_port *ret);

/* An address, IPv4 or IPv6, into ret->host_ip. 0 or -EINVAL. */
int pod_port_set_ip(struct pod_port *ret, const char *s);

/*
 * Whether a port of the host leads to two places, of those whose protocol is known: -EEXIST and @e,
 * in the words of rkt.
 */
int pod_ports_check(const struct pod_ports *p, struct err *e);

/* Adds the member "ports" of an app section to @run, unless it would be empty. 0 or -ENOMEM. */
int app_ports_write(const struct pod_ports *p, struct json_object *run);

/* Adds what it says. 0; -EBADMSG, -E2BIG, -ENOMEM with @e. */
int app_ports_read(struct json_object *run, struct pod_ports *p, struct err *e);

/*
 * The same of the member "ports" of a pod manifest: a port of the host, and in "podPort" where it
 * leads to; without that, to the port of an app with the name.
 */
int pod_ports_write(const struct pod_ports *p, struct json_object *pod);
int pod_ports_read(struct json_object *pod, struct pod_ports *p, struct err *e);

#endif
