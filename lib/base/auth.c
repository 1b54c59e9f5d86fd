/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/auth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct auth_form auth_forms[AUTH_TYPES] = {
	[AUTH_BASIC] = {
		.name = "basic",
		.credentials = { { "user", offsetof(struct auth, user), false },
				 { "password", offsetof(struct auth, password), false } },
		.n = 2,
	},
	[AUTH_OAUTH] = {
		.name = "oauth",
		.credentials = { { "token", offsetof(struct auth, token), false } },
		.n = 1,
	},
	[AUTH_AWS] = {
		.name = "aws",
		.credentials = {
			{ "accessKeyID", offsetof(struct auth, access_key_id), false },
			{ "secretAccessKey", offsetof(struct auth, secret_access_key), false },
			{ "awsRegion", offsetof(struct auth, aws_region), true } },
		.n = 3,
	},
};

char **auth_value(struct auth *a, const struct auth_credential *c)
{
	return (char **)((char *)a + c->offset);
}

void auth_deinit(struct auth *a)
{
	free(a->host);
	free(a->user);
	free(a->password);
	free(a->token);
	free(a->access_key_id);
	free(a->secret_access_key);
	free(a->aws_region);
	memset(a, 0, sizeof(*a));
}

void auths_deinit(struct auths *list)
{
	for (size_t i = 0; i < list->n; i++)
		auth_deinit(&list->v[i]);
	free(list->v);
	memset(list, 0, sizeof(*list));
}

struct auth *auths_find(const struct auths *list, const char *host)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i].host, host) == 0)
			return &list->v[i];
	return NULL;
}

int auths_add(struct auths *list, struct auth *a)
{
	if (auths_find(list, a->host))
		return AUTHS_TWICE;
	if (list->n >= AUTHS_MAX)
		return AUTHS_FULL;
	struct auth *v = reallocarray(list->v, list->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	list->v = v;
	v[list->n++] = *a;
	memset(a, 0, sizeof(*a));
	return 0;
}

int auths_merge(struct auths *list, struct auths *from)
{
	for (size_t i = 0; i < from->n; i++) {
		struct auth *a = &from->v[i], *old = auths_find(list, a->host);
		struct auth swap = *a;
		int r = 0;
		if (old) {
			*a = *old;
			*old = swap;
		} else if ((r = auths_add(list, &swap)) == 0) {
			memset(a, 0, sizeof(*a));
		}
		if (r != 0)
			return r;
	}
	return 0;
}
