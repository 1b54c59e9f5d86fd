/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks, DNS and addresses as JSON and text: what is accepted is within its limits, and the same
 * when it is written and read again. net_ip_parse net_prefix_parse net_mac_parse
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/wire/net.h"
#include "lib/wire/net_names.h"

static struct net net, again;

static void try_net(struct json_object *body)
{
	cleanup_json struct json_object *back = NULL, *twice = NULL;
	if (net_decode(body, &net) < 0)
		return;
	if (net.n_interfaces > NET_INTERFACES_MAX || net_encode(&net, &back) < 0 ||
	    net_decode(back, &again) < 0 || net_encode(&again, &twice) < 0 ||
	    !json_object_equal(back, twice))
		abort();
}

static void try_dns(struct json_object *body)
{
	CLEANUP(net_dns_deinit) struct net_dns dns;
	cleanup_json struct json_object *back = NULL;
	cleanup_buf struct buf text;
	buf_init(&text, NET_RESOLV_CONF_MAX);
	net_dns_init(&dns);
	if (net_dns_decode(body, &dns) == 0 &&
	    (net_dns_encode(&dns, &back) < 0 || net_dns_format(&dns, &text) < 0))
		abort();
}

static void try_texts(const uint8_t *data, size_t size)
{
	unsigned char mac[NET_MAC_LEN];
	char text[64], back[NET_PREFIX_TEXT_MAX + 1];
	struct net_prefix p, q;
	if (size >= sizeof(text))
		return;
	memcpy(text, data, size);
	text[size] = '\0';
	net_mac_parse(text, mac);
	if (net_prefix_parse(text, &p) < 0)
		return;
	net_prefix_format(&p, back);
	if (net_prefix_parse(back, &q) < 0 || q.len != p.len || q.ip.family != p.ip.family)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_json struct json_object *body = NULL;
	try_texts(data, size);
	if (json_parse((const char *)data, size, &body) < 0)
		return 0;
	try_net(body);
	try_dns(body);
	return 0;
}
