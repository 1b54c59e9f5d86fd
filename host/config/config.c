/* SPDX-License-Identifier: Apache-2.0 */
#include "host/config/config.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/macros.h"

const struct config_auth_form config_auth_forms[CONFIG_AUTH_TYPES] = {
	[CONFIG_BASIC] = {
		.name = "basic",
		.credentials = { { "user", offsetof(struct config_auth, user), false },
				 { "password", offsetof(struct config_auth, password), false } },
		.n = 2,
	},
	[CONFIG_OAUTH] = {
		.name = "oauth",
		.credentials = { { "token", offsetof(struct config_auth, token), false } },
		.n = 1,
	},
	[CONFIG_AWS] = {
		.name = "aws",
		.credentials = {
			{ "accessKeyID", offsetof(struct config_auth, access_key_id), false },
			{ "secretAccessKey", offsetof(struct config_auth, secret_access_key), false },
			{ "awsRegion", offsetof(struct config_auth, aws_region), true } },
		.n = 3,
	},
};

char **config_auth_value(struct config_auth *a, const struct config_credential *c)
{
	return (char **)((char *)a + c->offset);
}

void config_auth_deinit(struct config_auth *a)
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

static void auths_deinit(struct config_auths *list)
{
	for (size_t i = 0; i < list->n; i++)
		config_auth_deinit(&list->v[i]);
	free(list->v);
	memset(list, 0, sizeof(*list));
}

void config_init(struct config *c)
{
	memset(c, 0, sizeof(*c));
	strv_init(&c->stage1_options, CONFIG_OPTIONS_MAX);
	strv_init(&c->cni_plugins, CONFIG_CNI_PLUGINS_MAX);
}

void config_deinit(struct config *c)
{
	config_drop(c, CONFIG_ALL);
}

static void drop_string(char **s)
{
	free(*s);
	*s = NULL;
}

void config_drop(struct config *c, unsigned parts)
{
	if (parts & CONFIG_AUTH) {
		auths_deinit(&c->auth);
		auths_deinit(&c->docker_auth);
	}
	if (parts & CONFIG_PATHS) {
		drop_string(&c->data);
		drop_string(&c->stage1_images);
		strv_deinit(&c->cni_plugins);
		strv_init(&c->cni_plugins, CONFIG_CNI_PLUGINS_MAX);
	}
	if (parts & CONFIG_STAGE1) {
		drop_string(&c->stage1_name);
		drop_string(&c->stage1_version);
		drop_string(&c->stage1_location);
		strv_deinit(&c->stage1_options);
		strv_init(&c->stage1_options, CONFIG_OPTIONS_MAX);
	}
	if (parts & CONFIG_IMAGES) {
		drop_string(&c->images_compression);
		drop_string(&c->images_max_bytes);
	}
	c->parts &= ~parts;
}

struct config_auth *config_auths_find(const struct config_auths *list, const char *host)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i].host, host) == 0)
			return &list->v[i];
	return NULL;
}

int config_auths_add(struct config_auths *list, struct config_auth *a)
{
	if (config_auths_find(list, a->host))
		return CONFIG_E_TWICE;
	if (list->n >= CONFIG_HOSTS_MAX)
		return CONFIG_E_FULL;
	struct config_auth *v = reallocarray(list->v, list->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	list->v = v;
	v[list->n++] = *a;
	memset(a, 0, sizeof(*a));
	return 0;
}

static int merge_auths(struct config_auths *list, struct config_auths *from)
{
	for (size_t i = 0; i < from->n; i++) {
		struct config_auth *a = &from->v[i], *old = config_auths_find(list, a->host);
		struct config_auth swap = *a;
		int r = 0;
		if (old) {
			*a = *old;
			*old = swap;
		} else if ((r = config_auths_add(list, &swap)) == 0) {
			memset(a, 0, sizeof(*a));
		}
		if (r != 0)
			return r;
	}
	return 0;
}

/* Moves *@from to *@to if there is one. */
static void merge_string(char **to, char **from)
{
	if (!*from)
		return;
	free(*to);
	*to = TAKE_PTR(*from);
}

/* Moves @from to @to if it has members. */
static void merge_list(struct strv *to, struct strv *from)
{
	struct strv swap = *to;
	if (from->n == 0)
		return;
	*to = *from;
	*from = swap;
}

int config_merge(struct config *c, struct config *layer)
{
	merge_string(&c->data, &layer->data);
	merge_string(&c->stage1_images, &layer->stage1_images);
	merge_list(&c->cni_plugins, &layer->cni_plugins);
	merge_string(&c->stage1_name, &layer->stage1_name);
	merge_string(&c->stage1_version, &layer->stage1_version);
	merge_string(&c->stage1_location, &layer->stage1_location);
	merge_string(&c->images_compression, &layer->images_compression);
	merge_string(&c->images_max_bytes, &layer->images_max_bytes);
	int r = strv_extend(&c->stage1_options, &layer->stage1_options); /* the last one wins */
	if (r == 0)
		r = merge_auths(&c->auth, &layer->auth);
	return r == 0 ? merge_auths(&c->docker_auth, &layer->docker_auth) : r;
}
