/* SPDX-License-Identifier: Apache-2.0 */
#include "host/manifest/ports.h"

#include <errno.h>
#include <string.h>

#include "lib/base/str.h"

#define INSTEAD "give PORT/PROTOCOL:HOSTPORT"

/* Longest text: a name, a protocol, two ports, an address in brackets, colons. */
#define PORT_TEXT_MAX (POD_PORT_NAME_MAX + POD_PORT_IP_MAX + 24)

/* "[HOSTIP:]HOSTPORT", which may be changed. 0 or -EINVAL. */
static int parse_host(char *text, struct pod_port *port)
{
	char *colon = strrchr(text, ':'), *ip = text;
	if (port_number_parse(colon ? colon + 1 : text, &port->host_port) < 0)
		return -EINVAL;
	if (!colon)
		return 0;
	*colon = '\0';
	if (*ip == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		ip++;
	}
	return pod_port_set_ip(port, ip);
}

/* What is in front of that. 0 or -EINVAL. */
static int parse_inside(const char *text, struct pod_port *port)
{
	if (strchr(text, '/'))
		return pod_port_parse(text, port);
	if (!agent_name_is_valid(text))
		return -EINVAL;
	*port = (struct pod_port){ .count = 1 };
	return str_copy(port->name, sizeof(port->name), text);
}

static int parse_port(const char *text, struct pod_port *port)
{
	char copy[PORT_TEXT_MAX + 1];
	if (str_copy(copy, sizeof(copy), text) < 0)
		return -EINVAL;
	char *colon = strchr(copy, ':');
	if (!colon)
		return -EINVAL;
	*colon = '\0';
	int r = parse_inside(copy, port);
	return r < 0 ? r : parse_host(colon + 1, port);
}

static int add_port(struct pod_ports *ports, const struct pod_port *port, struct err *e)
{
	int r = pod_ports_add(ports, port);
	return r < 0 ? err_sys(e, r, "--port: at most %zu", POD_PORTS_MAX) : 0;
}

int ports_add(struct pod_ports *ports, const char *text, struct err *e)
{
	struct pod_port port;
	if (parse_port(text, &port) < 0)
		return err_set(e, -EINVAL,
			       "--port: \"%.80s\" is not of the form NAME:[HOSTIP:]HOSTPORT or "
			       "PORT/PROTOCOL:[HOSTIP:]HOSTPORT",
			       text);
	return add_port(ports, &port, e);
}

/* "NAME:PROTOCOL:PORT:HOSTIP:HOSTPORT", as rkt's app sandbox has it. */
static int parse_direct(const char *text, struct pod_port *port)
{
	char copy[PORT_TEXT_MAX + 1];
	char *rest = copy;
	if (str_copy(copy, sizeof(copy), text) < 0)
		return -EINVAL;
	const char *name = strsep(&rest, ":");
	const char *protocol = rest ? strsep(&rest, ":") : "";
	const char *number = rest ? strsep(&rest, ":") : "";
	if (strchr(name, '/') || parse_inside(name, port) < 0 ||
	    port_protocol_parse(protocol, &port->protocol) < 0 ||
	    port_number_parse(number, &port->port) < 0 || !rest || !strchr(rest, ':'))
		return -EINVAL;
	return parse_host(rest, port);
}

int ports_add_direct(struct pod_ports *ports, const char *text, struct err *e)
{
	struct pod_port port;
	if (parse_direct(text, &port) < 0 && (parse_port(text, &port) < 0 || port.port == 0))
		return err_set(e, -EINVAL,
			       "--port: \"%.80s\" is not of the form "
			       "PORT/PROTOCOL:[HOSTIP:]HOSTPORT or "
			       "NAME:PROTOCOL:PORT:HOSTIP:HOSTPORT",
			       text);
	return add_port(ports, &port, e);
}

/* Fills what the app knows of the port that is called so. */
static int find_port(const struct pod_manifest *m, struct pod_port *port, struct err *e)
{
	const struct pod_port *found = NULL;
	for (size_t i = 0; i < m->n_apps; i++)
		for (size_t k = 0; k < m->apps[i].ports.n; k++) {
			const struct pod_port *p = &m->apps[i].ports.v[k];
			if (strcmp(p->name, port->name) != 0)
				continue;
			if (found)
				return err_set(e, -EEXIST,
					       "port name \"%s\" defined multiple apps (" INSTEAD
					       ")",
					       port->name);
			found = p;
		}
	if (!found)
		return err_set(e, -ENOENT,
			       "port name \"%s\" could not be found in any apps (" INSTEAD ")",
			       port->name);
	port->protocol = found->protocol;
	port->port = found->port;
	return 0;
}

int ports_resolve(const struct pod_ports *wishes, struct pod_manifest *m, struct err *e)
{
	for (size_t i = 0; i < wishes->n; i++) {
		struct pod_port port = wishes->v[i];
		int r = port.port == 0 ? find_port(m, &port, e) : 0;
		if (r < 0)
			return r;
		r = pod_ports_add(&m->ports, &port);
		if (r < 0)
			return err_sys(e, r, "ports of the pod");
	}
	return pod_ports_check(&m->ports, e);
}
