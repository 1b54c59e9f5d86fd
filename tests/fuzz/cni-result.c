/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin prints: a result, in each version, or an error. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "stage1/net/cni/document.h"
#include "stage1/net/cni/result.h"

static void check(bool property)
{
	if (!property)
		abort();
}

static void fuzz_result(const char *text, size_t len, const char *version)
{
	CLEANUP(cni_result_deinit) struct cni_result res = { .n_ips = 0 };
	CLEANUP(cni_result_deinit) struct cni_result again = { .n_ips = 0 };
	struct err e = ERR_INIT;
	struct net_prefix prefix;
	if (cni_result_parse(text, len, version, "eth0", &res, &e) < 0) {
		check(e.text[0]);
		return;
	}
	check(res.doc && res.n_ips <= NET_ADDRESSES_MAX && res.dns.search.n <= NET_DNS_LIST_MAX);
	for (size_t i = 0; i < res.n_ips; i++)
		check(net_prefix_parse(res.ips[i], &prefix) == 0);
	check(cni_result_read(res.doc, version, "eth0", &again, &e) == 0);
	check(again.n_ips == res.n_ips);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	char message[CNI_MESSAGE_MAX];
	cleanup_json struct json_object *doc = NULL;
	fuzz_result(text, size, "0.3.1");
	fuzz_result(text, size, "0.4.0");
	fuzz_result(text, size, "1.0.0");
	if (cni_document_parse(text, size, &doc, NULL) == 0)
		check(cni_document_check(doc, NULL) == 0);
	if (cni_error_parse(text, size, message) == 0) {
		check(message[0] && str_is_utf8(message));
		for (const char *s = message; *s; s++)
			check(str_steering_len(s) == 0);
	}
	return 0;
}
