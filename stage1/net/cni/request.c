/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/request.h"

#include <errno.h>
#include <json-c/linkhash.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/quantity.h"

/* Where plugins look for iptables, sysctl and the like; nothing of the user's environment. */
#define PLUGIN_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Bits per second, as Kubernetes takes them but for its petabit; bits. */
#define RATE_MIN  UINT64_C(1000)
#define RATE_MAX  UINT64_C(1000000000000)
#define BURST_MIN UINT64_C(1048576)

static struct json_object *port_json(const struct pod_port *port)
{
	cleanup_json struct json_object *obj =
		json_make("hostPort", json_object_new_int64(port->host_port), "containerPort",
			  json_object_new_int64(port->port), "protocol",
			  json_object_new_string(port_protocol_name(port->protocol)), NULL);
	if (!obj || (port->host_ip[0] && json_put_str(obj, "hostIP", port->host_ip) < 0))
		return NULL;
	return TAKE_PTR(obj);
}

static int put_ports(struct json_object *runtime, const struct pod_ports *ports)
{
	cleanup_json struct json_object *list = json_object_new_array();
	if (!ports || ports->n == 0)
		return 0;
	for (size_t i = 0; i < ports->n; i++)
		if (json_append(list, port_json(&ports->v[i])) < 0)
			return -ENOMEM;
	return json_put(runtime, "portMappings", TAKE_PTR(list));
}

/* The convention has other names for the lists than results have. */
static int put_dns(struct json_object *runtime, const struct net_dns *dns)
{
	if (!dns || net_dns_is_empty(dns))
		return 0;
	return json_put(runtime, "dns",
			json_make("servers", json_list_strv(&dns->nameservers), "searches",
				  json_list_strv(&dns->search), "options",
				  json_list_strv(&dns->options), NULL));
}

static struct json_object *list_of(const char *text)
{
	cleanup_json struct json_object *list = json_object_new_array();
	return json_append(list, json_object_new_string(text)) < 0 ? NULL : TAKE_PTR(list);
}

static int put_addresses(struct json_object *runtime, const char *args)
{
	char value[CNI_ARGS_MAX + 1];
	int r = 0;
	if (cni_args_get(args, "IP", value, sizeof(value)) && *value)
		r = json_put(runtime, "ips", list_of(value));
	if (r == 0 && cni_args_get(args, "MAC", value, sizeof(value)) && *value)
		r = json_put_str(runtime, "mac", value);
	return r;
}

/*
 * One direction. The burst is what a tenth of a second takes, but no less than the kernel hands
 * over at once (64 KiB), twice.
 */
static int put_rate(struct json_object *bandwidth, const char *args, const char *key,
		    const char *rate_member, const char *burst_member, struct err *e)
{
	char value[CNI_ARGS_MAX + 1];
	uint64_t rate = 0;
	if (!cni_args_get(args, key, value, sizeof(value)) || !*value)
		return 0;
	if (size_parse(value, RATE_MIN, RATE_MAX, &rate) < 0)
		return err_set(e, -EINVAL, "%s=%.64s: bits per second are 1k to 1T, such as %s=10M",
			       key, value, key);
	int r = json_put(bandwidth, rate_member, json_object_new_int64((int64_t)rate));
	return r < 0 ? r
		     : json_put(bandwidth, burst_member,
				json_object_new_int64((int64_t)MAX(rate / 10, BURST_MIN)));
}

static int put_bandwidth(struct json_object *runtime, const char *args, struct err *e)
{
	cleanup_json struct json_object *bandwidth = json_object_new_object();
	if (!bandwidth)
		return -ENOMEM;
	int r = put_rate(bandwidth, args, "INGRESS_RATE", "ingressRate", "ingressBurst", e);
	if (r == 0)
		r = put_rate(bandwidth, args, "EGRESS_RATE", "egressRate", "egressBurst", e);
	if (r < 0 || json_object_object_length(bandwidth) == 0)
		return r;
	return json_put(runtime, "bandwidth", TAKE_PTR(bandwidth));
}

int cni_request_runtime(const struct pod_ports *ports, const struct net_dns *dns, const char *args,
			struct json_object **ret, struct err *e)
{
	cleanup_json struct json_object *runtime = json_object_new_object();
	int r = runtime ? put_ports(runtime, ports) : -ENOMEM;
	if (r == 0)
		r = put_dns(runtime, dns);
	if (r == 0)
		r = put_addresses(runtime, args);
	if (r == 0)
		r = put_bandwidth(runtime, args, e);
	if (r < 0)
		return r == -EINVAL ? r : err_sys(e, r, "capability arguments");
	*ret = json_object_object_length(runtime) > 0 ? TAKE_PTR(runtime) : NULL;
	return 0;
}

/* What of @runtime the plugin says that it is capable of; NULL in *ret if that is nothing. */
static int filter_runtime(struct json_object *plugin, struct json_object *runtime,
			  struct json_object **ret)
{
	cleanup_json struct json_object *obj = NULL;
	struct json_object *capabilities = json_member(plugin, "capabilities");
	*ret = NULL;
	if (!runtime || !capabilities)
		return 0;
	json_object_object_foreach(runtime, key, value)
	{
		bool capable = false;
		if (json_get_bool(capabilities, key, &capable) < 0 || !capable)
			continue;
		if (!obj && !(obj = json_object_new_object()))
			return -ENOMEM;
		/* The key is one of @runtime, which may be gone first: copied. */
		if (json_object_object_add(obj, key, json_object_get(value)) < 0) {
			json_object_put(value);
			return -ENOMEM;
		}
	}
	*ret = TAKE_PTR(obj);
	return 0;
}

/* A copy of the plugin's members, without those that only the runtime reads. */
static struct json_object *copy_members(struct json_object *plugin)
{
	cleanup_json struct json_object *doc = json_object_new_object();
	if (!doc)
		return NULL;
	json_object_object_foreach(plugin, key, value)
	{
		if (strcmp(key, "capabilities") == 0)
			continue;
		if (json_object_object_add(doc, key, json_object_get(value)) < 0) {
			json_object_put(value);
			return NULL;
		}
	}
	return TAKE_PTR(doc);
}

int cni_request_document(const struct cni_attachment *a, size_t i, bool with_result,
			 struct buf *out)
{
	struct json_object *plugin = cni_config_plugin(&a->config, i);
	cleanup_json struct json_object *doc = copy_members(plugin);
	cleanup_json struct json_object *runtime = NULL;
	int r = doc ? filter_runtime(plugin, a->runtime, &runtime) : -ENOMEM;
	if (r == 0)
		r = json_put_str(doc, "name", a->config.name);
	if (r == 0)
		r = json_put_str(doc, "cniVersion", a->config.version);
	if (r == 0 && runtime)
		r = json_put(doc, "runtimeConfig", TAKE_PTR(runtime));
	if (r == 0 && with_result && a->result)
		r = json_put(doc, "prevResult", json_object_get(a->result));
	return r < 0 ? r : json_write(doc, false, out);
}

/* All directories with a colon between them. */
static int add_path(const struct strv *dirs, struct strv *env)
{
	cleanup_buf struct buf path;
	buf_init(&path, CNI_REQUEST_MAX);
	int r = buf_puts(&path, "CNI_PATH=");
	for (size_t i = 0; r == 0 && i < dirs->n; i++)
		r = buf_printf(&path, "%s%s", i > 0 ? ":" : "", dirs->v[i]);
	cleanup_free char *text = r == 0 ? buf_take_string(&path) : NULL;
	return text ? strv_add(env, text) : -ENOMEM;
}

/*
 * Plugins refuse arguments that they do not know, also those that another plugin of the network is
 * meant to read, unless IgnoreUnknown is among them.
 */
static int add_args(const char *args, struct strv *env)
{
	char value[8];
	bool decided = !*args || cni_args_get(args, "IgnoreUnknown", value, sizeof(value));
	return strv_addf(env, "CNI_ARGS=%s%s", decided ? "" : "IgnoreUnknown=1;", args);
}

int cni_request_env(const struct cni_attachment *a, const char *command, const char *container,
		    const char *netns, const struct strv *dirs, struct strv *env)
{
	int r = strv_add(env, PLUGIN_PATH);
	if (r == 0)
		r = strv_addf(env, "CNI_COMMAND=%s", command);
	if (r == 0)
		r = strv_addf(env, "CNI_CONTAINERID=%s", container);
	if (r == 0)
		r = strv_addf(env, "CNI_NETNS=%s", netns);
	if (r == 0)
		r = strv_addf(env, "CNI_IFNAME=%s", a->if_name);
	if (r == 0)
		r = add_args(a->args, env);
	return r < 0 ? r : add_path(dirs, env);
}
