/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/net_info.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"

/* The list, its members and their lists of addresses; more is nothing that we wrote. */
#define CONTAINERS_MAX (1 + 2 * NET_INTERFACES_MAX)

/* The members that are texts. */
static const struct {
	const char *key;
	size_t offset, size;
} fields[] = {
#define FIELD(key, member)                                                                        \
	{                                                                                         \
		key, offsetof(struct net_info, member), sizeof(((struct net_info *)NULL)->member) \
	}
	FIELD("netName", net_name),
	FIELD("netConf", net_conf),
	FIELD("pluginPath", plugin_path),
	FIELD("ifName", if_name),
	FIELD("ip", ip),
	FIELD("args", args),
	FIELD("mask", mask),
	FIELD("mac", mac),
#undef FIELD
};

static bool text_is_clean(const char *s)
{
	if (!str_is_utf8(s))
		return false;
	for (; *s; s++)
		if (str_steering_len(s) > 0)
			return false;
	return true;
}

static bool is_address(const char *s)
{
	unsigned char bytes[16];
	return inet_pton(AF_INET, s, bytes) == 1 || inet_pton(AF_INET6, s, bytes) == 1;
}

/* True if @s is an address, a slash and a length that such an address has. */
static bool is_prefix(const char *s)
{
	char address[NET_IP_TEXT_MAX + 1];
	uint64_t len;
	size_t n = strcspn(s, "/");
	if (n >= sizeof(address) || s[n] != '/')
		return false;
	memcpy(address, s, n);
	address[n] = '\0';
	return is_address(address) &&
	       num_parse_u64(s + n + 1, strchr(address, ':') ? 128 : 32, &len) == 0;
}

/* What is written and what was read are held to the same rules. */
static bool is_valid(const struct net_info *info)
{
	if (!info->net_name[0] || !info->if_name[0] || (info->ip[0] && !is_address(info->ip)) ||
	    (info->mask[0] && !is_address(info->mask)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!text_is_clean((const char *)info + fields[i].offset))
			return false;
	for (size_t i = 0; i < info->n_ips; i++)
		if (!is_prefix(info->ips[i]))
			return false;
	return true;
}

static struct json_object *format_ips(const struct net_info *info)
{
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < info->n_ips; i++)
		if (json_append(list, json_object_new_string(info->ips[i])) < 0)
			return NULL;
	return TAKE_PTR(list);
}

static struct json_object *format_one(const struct net_info *info)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fields); i++)
		r = json_put_str(obj, fields[i].key, (const char *)info + fields[i].offset);
	if (r == 0)
		r = json_put(obj, "ips", format_ips(info));
	return r < 0 ? NULL : TAKE_PTR(obj);
}

int net_info_format(const struct net_info_list *list, struct buf *out)
{
	cleanup_json struct json_object *doc = json_object_new_array();
	for (size_t i = 0; i < list->n; i++) {
		if (!is_valid(&list->nets[i]))
			return -EINVAL;
		if (json_append(doc, format_one(&list->nets[i])) < 0)
			return -ENOMEM;
	}
	if (!doc)
		return -ENOMEM;
	int r = json_write(doc, false, out);
	return r < 0 ? r : buf_puts(out, "\n");
}

static int parse_ips(struct json_object *obj, struct net_info *info)
{
	struct json_object *list = json_member(obj, "ips");
	if (!list)
		return 0;
	if (!json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) > NET_ADDRESSES_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *text = json_object_array_get_idx(list, i);
		if (!json_object_is_type(text, json_type_string) ||
		    str_copy(info->ips[i], sizeof(info->ips[i]), json_object_get_string(text)) < 0)
			return -EBADMSG;
		info->n_ips++;
	}
	return 0;
}

static int parse_one(struct json_object *obj, struct net_info *info)
{
	if (!json_object_is_type(obj, json_type_object))
		return -EBADMSG;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const char *s = "";
		int r = json_get_str(obj, fields[i].key, fields[i].size - 1, &s);
		if (r == -EBADMSG ||
		    str_copy((char *)info + fields[i].offset, fields[i].size, s) < 0)
			return -EBADMSG;
	}
	int r = parse_ips(obj, info);
	return r == 0 && !is_valid(info) ? -EBADMSG : r;
}

int net_info_parse(const char *text, size_t len, struct net_info_list *ret)
{
	cleanup_json struct json_object *doc = NULL;
	if (len > NET_INFO_FILE_MAX || json_count_containers(text, len) > CONTAINERS_MAX)
		return -EBADMSG;
	int r = json_parse(text, len, &doc);
	if (r < 0)
		return r;
	if (!json_object_is_type(doc, json_type_array) ||
	    json_object_array_length(doc) > NET_INTERFACES_MAX)
		return -EBADMSG;
	cleanup_free struct net_info_list *list = calloc(1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < json_object_array_length(doc); i++) {
		r = parse_one(json_object_array_get_idx(doc, i), &list->nets[i]);
		if (r < 0)
			return r;
		list->n++;
	}
	*ret = *list;
	return 0;
}
