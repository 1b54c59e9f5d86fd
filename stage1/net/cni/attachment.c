/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/attachment.h"

#include <string.h>

void cni_attachment_init(struct cni_attachment *a)
{
	*a = (struct cni_attachment){ .if_name = "" };
	strv_init(&a->paths, CNI_PLUGINS_MAX);
}

void cni_attachment_deinit(struct cni_attachment *a)
{
	if (!a)
		return;
	cni_config_deinit(&a->config);
	strv_deinit(&a->paths);
	json_object_put(a->runtime);
	json_object_put(a->result);
	cni_attachment_init(a);
}

void cni_attachments_deinit(struct cni_attachments *list)
{
	for (; list && list->n > 0; list->n--)
		cni_attachment_deinit(&list->v[list->n - 1]);
}

static size_t key_len(const char *s)
{
	return strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
}

bool cni_args_are_valid(const char *args)
{
	if (!str_is_printable(args, CNI_ARGS_MAX))
		return false;
	for (const char *at = args;; at++) {
		size_t len = key_len(at);
		if (len == 0 || at[len] != '=')
			return false;
		at += len + 1;
		at += strcspn(at, ";");
		if (!*at)
			return true;
	}
}

bool cni_args_get(const char *args, const char *key, char *out, size_t size)
{
	size_t n = strlen(key);
	for (const char *at = args; at; at = strchr(at, ';')) {
		at += *at == ';';
		if (strncmp(at, key, n) != 0 || at[n] != '=')
			continue;
		size_t len = strcspn(at + n + 1, ";");
		if (len >= size)
			return false;
		memcpy(out, at + n + 1, len);
		out[len] = '\0';
		return true;
	}
	return false;
}
