/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/result.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/json.h"
#include "stage1/net/cni/document.h"

#define INTERFACES_MAX 32 /* of a result: a bridge, both ends of a pair, for each of 8 and more */
#define ROUTES_MAX     NET_ROUTES_MAX
#define SANDBOX_MAX    4095 /* bytes: a path, PATH_MAX */

void cni_result_deinit(struct cni_result *res)
{
	if (!res)
		return;
	json_object_put(res->doc);
	res->doc = NULL;
	net_dns_deinit(&res->dns);
}

static int bad(struct err *e, const char *field, const char *what)
{
	return err_set(e, -EBADMSG, "\"%s\" %s", field, what);
}

/* A list of at most @max objects; *ret is NULL and *ret_n 0 if there is none. */
static int get_list(struct json_object *doc, const char *key, size_t max, struct json_object **ret,
		    size_t *ret_n, struct err *e)
{
	*ret = json_member(doc, key);
	*ret_n = 0;
	if (!*ret)
		return 0;
	if (!json_object_is_type(*ret, json_type_array) || json_object_array_length(*ret) > max)
		return err_set(e, -EBADMSG, "\"%s\" is not a list of at most %zu", key, max);
	*ret_n = json_object_array_length(*ret);
	for (size_t i = 0; i < *ret_n; i++)
		if (!json_object_is_type(json_object_array_get_idx(*ret, i), json_type_object))
			return bad(e, key, "has a member that is not an object");
	return 0;
}

/* The index of the pod's interface in "interfaces", with its MAC; -1 if it is not listed. */
static int read_interfaces(struct json_object *doc, const char *if_name, struct cni_result *res,
			   size_t *ret_n, int64_t *ret_index, struct err *e)
{
	struct json_object *list;
	int r = get_list(doc, "interfaces", INTERFACES_MAX, &list, ret_n, e);
	*ret_index = -1;
	for (size_t i = 0; r == 0 && i < *ret_n; i++) {
		struct json_object *obj = json_object_array_get_idx(list, i);
		const char *name = "", *mac = "", *sandbox = "";
		if (json_get_str(obj, "name", NET_NAME_MAX, &name) < 0)
			return bad(e, "interfaces", "has one without a name");
		if (json_get_str(obj, "mac", NET_MAC_TEXT_MAX, &mac) == -EBADMSG ||
		    (*mac && !str_is_printable(mac, NET_MAC_TEXT_MAX)))
			return bad(e, "interfaces.mac", "is not an address");
		if (json_get_str(obj, "sandbox", SANDBOX_MAX, &sandbox) == -EBADMSG)
			return bad(e, "interfaces.sandbox", "is not a path");
		if (!*sandbox || strcmp(name, if_name) != 0)
			continue;
		*ret_index = (int64_t)i;
		r = str_copy(res->mac, sizeof(res->mac), mac);
	}
	return r;
}

/* Plugins have to say the length, too. */
static bool is_prefix(const char *s)
{
	struct net_prefix p;
	return strchr(s, '/') && net_prefix_parse(s, &p) == 0;
}

static int read_ip(struct json_object *obj, size_t n_interfaces, int64_t index,
		   struct cni_result *res, struct err *e)
{
	const char *address = "", *gateway = "";
	struct net_ip ip;
	int64_t interface = index;
	int r = json_get_int(obj, "interface", 0, (int64_t)n_interfaces - 1, &interface);
	if (r == -EBADMSG)
		return bad(e, "ips.interface", "is not one of \"interfaces\"");
	if (json_get_str(obj, "address", NET_PREFIX_TEXT_MAX, &address) < 0 || !is_prefix(address))
		return bad(e, "ips.address", "is not an address with a length");
	if (json_get_str(obj, "gateway", NET_IP_TEXT_MAX, &gateway) == -EBADMSG ||
	    (*gateway && net_ip_parse(gateway, &ip) < 0))
		return bad(e, "ips.gateway", "is not an address");
	if (r == 0 && interface != index)
		return 0;
	return str_copy(res->ips[res->n_ips++], sizeof(res->ips[0]), address);
}

static int read_ips(struct json_object *doc, const char *if_name, struct cni_result *res,
		    struct err *e)
{
	struct json_object *list;
	size_t n = 0, n_interfaces = 0;
	int64_t index = -1;
	int r = read_interfaces(doc, if_name, res, &n_interfaces, &index, e);
	if (r == 0)
		r = get_list(doc, "ips", NET_ADDRESSES_MAX, &list, &n, e);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = read_ip(json_object_array_get_idx(list, i), n_interfaces, index, res, e);
	return r;
}

static int check_routes(struct json_object *doc, struct err *e)
{
	struct json_object *list;
	size_t n = 0;
	int r = get_list(doc, "routes", ROUTES_MAX, &list, &n, e);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct json_object *obj = json_object_array_get_idx(list, i);
		const char *dst = "", *gw = "";
		struct net_ip ip;
		if (json_get_str(obj, "dst", NET_PREFIX_TEXT_MAX, &dst) < 0 || !is_prefix(dst))
			return bad(e, "routes.dst", "is not an address with a length");
		if (json_get_str(obj, "gw", NET_IP_TEXT_MAX, &gw) == -EBADMSG ||
		    (*gw && net_ip_parse(gw, &ip) < 0))
			return bad(e, "routes.gw", "is not an address");
	}
	return r;
}

/* A later plugin reads the result as one of the version that it is asked in. */
static int check_version(struct json_object *doc, const char *version, struct err *e)
{
	const char *text = "";
	int r = json_get_str(doc, "cniVersion", NET_IP_TEXT_MAX, &text);
	if (r == -ENOENT)
		return json_put_str(doc, "cniVersion", version);
	if (r < 0 || strcmp(text, version) != 0)
		return err_set(e, -EBADMSG, "\"cniVersion\" is not %s, in which it was asked",
			       version);
	return 0;
}

static int read_dns(struct json_object *obj, struct net_dns *dns, struct err *e)
{
	int r = obj ? net_dns_decode(obj, dns) : 0;
	return r < 0 ? err_sys(e, r, "\"dns\" has a member that is too long, or no address or word")
		     : 0;
}

int cni_result_read(struct json_object *doc, const char *version, const char *if_name,
		    struct cni_result *ret, struct err *e)
{
	CLEANUP(cni_result_deinit) struct cni_result res = { .n_ips = 0 };
	net_dns_init(&res.dns);
	int r = check_version(doc, version, e);
	if (r == 0)
		r = read_ips(doc, if_name, &res, e);
	if (r == 0)
		r = check_routes(doc, e);
	if (r == 0)
		r = read_dns(json_member(doc, "dns"), &res.dns, e);
	if (r < 0)
		return r;
	res.doc = json_object_get(doc);
	*ret = res;
	res.doc = NULL;
	net_dns_init(&res.dns);
	return 0;
}

int cni_result_parse(const char *text, size_t len, const char *version, const char *if_name,
		     struct cni_result *ret, struct err *e)
{
	cleanup_json struct json_object *doc = NULL;
	int r = cni_document_parse(text, len, &doc, e);
	return r < 0 ? r : cni_result_read(doc, version, if_name, ret, e);
}

int cni_error_parse(const char *text, size_t len, char ret[CNI_MESSAGE_MAX])
{
	cleanup_json struct json_object *doc = NULL;
	const char *msg = "", *details = "";
	char line[2 * CNI_MESSAGE_MAX];
	int r = cni_document_parse(text, len, &doc, NULL);
	if (r < 0)
		return r;
	if (json_get_str(doc, "msg", CNI_DOCUMENT_MAX, &msg) == -EBADMSG ||
	    json_get_str(doc, "details", CNI_DOCUMENT_MAX, &details) == -EBADMSG ||
	    (!*msg && !*details))
		return -EBADMSG;
	snprintf(line, sizeof(line), "%.*s%s%.*s", CNI_MESSAGE_MAX / 2, msg,
		 *msg && *details ? "; " : "", CNI_MESSAGE_MAX / 2, details);
	str_make_printable(line);
	str_copy_text(ret, CNI_MESSAGE_MAX, line);
	return 0;
}
