/* SPDX-License-Identifier: Apache-2.0 */
#include "host/config/config.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/macros.h"

void config_init(struct config *c)
{
	memset(c, 0, sizeof(*c));
	strv_init(&c->stage1_options, CONFIG_OPTIONS_MAX);
	strv_init(&c->stage1_annotations, CONFIG_ANNOTATIONS_MAX);
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
		drop_string(&c->stage1_roots);
		strv_deinit(&c->stage1_options);
		strv_init(&c->stage1_options, CONFIG_OPTIONS_MAX);
		strv_deinit(&c->stage1_annotations);
		strv_init(&c->stage1_annotations, CONFIG_ANNOTATIONS_MAX);
	}
	if (parts & CONFIG_IMAGES) {
		drop_string(&c->images_compression);
		drop_string(&c->images_max_bytes);
	}
	c->parts &= ~parts;
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
	merge_list(&c->stage1_annotations, &layer->stage1_annotations);
	merge_string(&c->stage1_roots, &layer->stage1_roots);
	merge_string(&c->images_compression, &layer->images_compression);
	merge_string(&c->images_max_bytes, &layer->images_max_bytes);
	int r = strv_extend(&c->stage1_options, &layer->stage1_options); /* the last one wins */
	if (r == 0)
		r = auths_merge(&c->auth, &layer->auth);
	return r == 0 ? auths_merge(&c->docker_auth, &layer->docker_auth) : r;
}
