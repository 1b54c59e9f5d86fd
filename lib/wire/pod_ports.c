/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/pod_ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"

#define MEMBER       "ports"
#define PROTOCOL_MAX ((size_t)4) /* "sctp" */

void pod_ports_deinit(struct pod_ports *p)
{
	if (!p)
		return;
	free(p->v);
	*p = (struct pod_ports){ 0 };
}

int pod_ports_add(struct pod_ports *p, const struct pod_port *port)
{
	if (p->n >= POD_PORTS_MAX)
		return -E2BIG;
	if (!GROW(p->v, p->n))
		return -ENOMEM;
	p->v[p->n++] = *port;
	return 0;
}

int pod_ports_copy(struct pod_ports *p, const struct pod_ports *from)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < from->n; i++)
		r = pod_ports_add(p, &from->v[i]);
	return r;
}

static const char *const protocols[PORT_PROTOCOL_COUNT_] = {
	[PORT_TCP] = "tcp",
	[PORT_UDP] = "udp",
	[PORT_SCTP] = "sctp",
};

int port_protocol_parse(const char *s, enum port_protocol *ret)
{
	for (int i = 0; i < PORT_PROTOCOL_COUNT_; i++) {
		if (strcmp(s, protocols[i]) != 0)
			continue;
		*ret = (enum port_protocol)i;
		return 0;
	}
	return -EINVAL;
}

const char *port_protocol_name(enum port_protocol protocol)
{
	return protocols[protocol];
}

int port_number_parse(const char *s, uint16_t *ret)
{
	uint64_t n;
	if (num_parse_u64(s, UINT16_MAX, &n) < 0 || n == 0)
		return -EINVAL;
	*ret = (uint16_t)n;
	return 0;
}

int pod_port_parse(const char *s, struct pod_port *ret)
{
	char number[8]; /* "65535", and a digit too much */
	struct pod_port port = { .protocol = PORT_TCP, .count = 1 };
	size_t len = strcspn(s, "/");
	if (len >= sizeof(number) ||
	    (s[len] && port_protocol_parse(s + len + 1, &port.protocol) < 0))
		return -EINVAL;
	memcpy(number, s, len);
	number[len] = '\0';
	if (port_number_parse(number, &port.port) < 0)
		return -EINVAL;
	snprintf(port.name, sizeof(port.name), "%u-%s", port.port, protocols[port.protocol]);
	*ret = port;
	return 0;
}

int pod_port_set_ip(struct pod_port *ret, const char *s)
{
	struct in6_addr bytes; /* room for both */
	int family = strchr(s, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(family, s, &bytes) != 1 ||
	    !inet_ntop(family, &bytes, ret->host_ip, sizeof(ret->host_ip)))
		return -EINVAL;
	return 0;
}

/* True if an address stands for all, as far as its family goes. */
static bool is_any(const char *ip)
{
	return !*ip || strcmp(ip, "0.0.0.0") == 0 || strcmp(ip, "::") == 0;
}

/* True if a packet can be for both. */
static bool ips_meet(const char *a, const char *b)
{
	if (!*a || !*b || strcmp(a, b) == 0)
		return true;
	return !strchr(a, ':') == !strchr(b, ':') && (is_any(a) || is_any(b));
}

int pod_ports_check(const struct pod_ports *p, struct err *e)
{
	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < i; k++) {
			const struct pod_port *a = &p->v[i], *b = &p->v[k];
			if (a->port > 0 && b->port > 0 && a->protocol == b->protocol &&
			    a->host_port == b->host_port && ips_meet(a->host_ip, b->host_ip))
				return err_set(e, -EEXIST,
					       "port %s-%s:%u already mapped to pod port %u",
					       protocols[a->protocol],
					       a->host_ip[0] ? a->host_ip : "0.0.0.0", a->host_port,
					       b->port);
		}
	return 0;
}

/* A new object with what an app says of the port; NULL if memory is short. */
static struct json_object *make_app_port(const struct pod_port *port)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	if (json_put_str(obj, "name", port->name) < 0 ||
	    json_put_str(obj, "protocol", protocols[port->protocol]) < 0 ||
	    json_put_int(obj, "port", port->port) < 0 ||
	    (port->count > 1 && json_put_int(obj, "count", port->count) < 0))
		return NULL;
	return TAKE_PTR(obj);
}

static struct json_object *make_pod_port(const struct pod_port *port)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	if (json_put_str(obj, "name", port->name) < 0 ||
	    json_put_int(obj, "hostPort", port->host_port) < 0 ||
	    (port->host_ip[0] && json_put_str(obj, "hostIP", port->host_ip) < 0) ||
	    (port->port > 0 && json_put(obj, "podPort", make_app_port(port)) < 0))
		return NULL;
	return TAKE_PTR(obj);
}

static int write_list(const struct pod_ports *p, struct json_object *obj,
		      struct json_object *(*make)(const struct pod_port *port))
{
	if (p->n == 0)
		return 0;
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < p->n; i++)
		if (json_append(list, make(&p->v[i])) < 0)
			return -ENOMEM;
	return json_put(obj, MEMBER, TAKE_PTR(list));
}

int app_ports_write(const struct pod_ports *p, struct json_object *run)
{
	return write_list(p, run, make_app_port);
}

int pod_ports_write(const struct pod_ports *p, struct json_object *pod)
{
	return write_list(p, pod, make_pod_port);
}

/* The number in the member @key. */
static int read_number(struct json_object *obj, const char *key, uint16_t *ret, struct err *e)
{
	int64_t n;
	if (json_get_int(obj, key, 1, UINT16_MAX, &n) < 0)
		return err_set(e, -EBADMSG, "\"%s\" is not a number from 1 to %d", key, UINT16_MAX);
	*ret = (uint16_t)n;
	return 0;
}

/* How many they are; 0 is what appc's tools write where nothing was said. */
static int read_count(struct json_object *obj, struct pod_port *port, struct err *e)
{
	int64_t n = 1, max = UINT16_MAX + 1 - port->port;
	int r = json_get_int(obj, "count", 0, max, &n);
	if (r < 0 && r != -ENOENT)
		return err_set(e, -EBADMSG, "\"count\" is not a number from 1 to %d", (int)max);
	port->count = (uint16_t)MAX(n, 1);
	return 0;
}

static int read_name(struct json_object *obj, struct pod_port *port, struct err *e)
{
	const char *name;
	if (json_get_str(obj, "name", POD_PORT_NAME_MAX, &name) < 0 || !agent_name_is_valid(name))
		return err_set(e, -EBADMSG,
			       "\"name\" is not a name of a port (1 to %d of a-z, 0-9 "
			       "and dashes inside)",
			       POD_PORT_NAME_MAX);
	return str_copy(port->name, sizeof(port->name), name);
}

static int read_app_port(struct json_object *obj, struct pod_port *port, struct err *e)
{
	const char *protocol;
	int r = read_name(obj, port, e);
	if (r < 0)
		return r;
	if (json_get_str(obj, "protocol", PROTOCOL_MAX, &protocol) < 0 ||
	    port_protocol_parse(protocol, &port->protocol) < 0)
		return err_set(e, -EBADMSG, "\"protocol\" is not tcp, udp or sctp");
	r = read_number(obj, "port", &port->port, e);
	return r < 0 ? r : read_count(obj, port, e);
}

static int read_host_ip(struct json_object *obj, struct pod_port *port, struct err *e)
{
	const char *ip = "";
	int r = json_get_str(obj, "hostIP", POD_PORT_IP_MAX, &ip);
	if ((r < 0 && r != -ENOENT) || (*ip && pod_port_set_ip(port, ip) < 0))
		return err_set(e, -EBADMSG, "\"hostIP\" is not an address");
	return 0;
}

static int read_pod_port(struct json_object *obj, struct pod_port *port, struct err *e)
{
	struct json_object *inside = json_member(obj, "podPort");
	int r = inside ? read_app_port(inside, port, e) : 0;
	if (r < 0)
		return err_context(e, "\"podPort\"");
	r = read_name(obj, port, e);
	if (r == 0)
		r = read_number(obj, "hostPort", &port->host_port, e);
	return r < 0 ? r : read_host_ip(obj, port, e);
}

static int read_list(struct json_object *obj, struct pod_ports *p,
		     int (*read)(struct json_object *obj, struct pod_port *port, struct err *e),
		     struct err *e)
{
	struct json_object *list = json_member(obj, MEMBER);
	if (!list)
		return 0;
	if (!json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) > POD_PORTS_MAX)
		return err_set(e, -EBADMSG, "\"" MEMBER "\" is not a list of at most %zu ports",
			       POD_PORTS_MAX);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct pod_port port = { .count = 1 };
		int r = read(json_object_array_get_idx(list, i), &port, e);
		if (r < 0)
			return err_context(e, "\"" MEMBER "\" member %zu", i);
		r = pod_ports_add(p, &port);
		if (r < 0)
			return err_sys(e, r, "\"" MEMBER "\"");
	}
	return 0;
}

int app_ports_read(struct json_object *run, struct pod_ports *p, struct err *e)
{
	return read_list(run, p, read_app_port, e);
}

int pod_ports_read(struct json_object *pod, struct pod_ports *p, struct err *e)
{
	return read_list(pod, p, read_pod_port, e);
}
