/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks as files configure them, and as a user asks for them ("--net=" in front). What is
 * accepted is within its limits, and the same when it is written and read again.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "stage1/net/cni/choose.h"
#include "stage1/net/cni/request.h"

#define NET_FLAG "--net="

static void check(bool property)
{
	if (!property)
		abort();
}

static void fuzz_choice(const char *text, size_t len)
{
	CLEANUP(cni_choice_deinit) struct cni_choice c = { .v = NULL };
	CLEANUP(cni_networks_deinit) struct cni_networks nets = { .v = NULL };
	static struct cni_attachments list;
	cleanup_strv struct strv values;
	struct err e = ERR_INIT;
	cleanup_free char *s = strndup(text, len);
	strv_init(&values, 1);
	check(s && strv_add(&values, s) == 0 && cni_networks_add_built_in(&nets) == 0);
	if (cni_choice_parse(&values, &c, &e) < 0) {
		check(e.text[0]);
		return;
	}
	check(c.n > 0 && c.n <= CNI_WANTED_MAX);
	for (size_t i = 0; i < c.n; i++)
		check(cni_name_is_valid(c.v[i].name) &&
		      (!c.v[i].args[0] || cni_args_are_valid(c.v[i].args)));
	if (cni_choose(&c, &nets, &list, &e) == 0)
		check(list.n > 0 && list.n <= NET_INTERFACES_MAX);
	cni_attachments_deinit(&list);
}

static void fuzz_config(const char *text, size_t len)
{
	CLEANUP(cni_config_deinit) struct cni_config c;
	CLEANUP(cni_config_deinit) struct cni_config again = { .name = "" };
	CLEANUP(cni_attachment_deinit) struct cni_attachment a;
	cleanup_buf struct buf out;
	struct err e = ERR_INIT;
	cni_attachment_init(&a);
	buf_init(&out, CNI_REQUEST_MAX);
	if (cni_config_parse(text, len, &c, &e) < 0) {
		check(e.text[0] && !c.plugins && (!c.name[0] || cni_name_is_valid(c.name)));
		return;
	}
	size_t n = cni_config_plugins(&c);
	check(cni_name_is_valid(c.name) && n > 0 && n <= CNI_PLUGINS_MAX);
	cleanup_json struct json_object *doc = cni_config_write(&c);
	check(doc && cni_config_read(doc, &again, &e) == 0);
	check(strcmp(again.version, c.version) == 0 && cni_config_plugins(&again) == n);
	cni_config_share(&c, &a.config);
	check(cni_request_runtime(NULL, NULL, "IP=10.0.0.1;MAC=x", &a.runtime, &e) == 0);
	for (size_t i = 0; i < n; i++) {
		check(!strchr(cni_config_type(&c, i), '/') &&
		      cni_request_document(&a, i, true, &out) == 0);
		buf_consume(&out, buf_len(&out));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const size_t flag = strlen(NET_FLAG);
	if (size > flag && memcmp(text, NET_FLAG, flag) == 0)
		fuzz_choice(text + flag, size - flag);
	else
		fuzz_config(text, size);
	return 0;
}
