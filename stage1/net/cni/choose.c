/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/choose.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"

#define MISSING_MAX ((size_t)512) /* bytes of names in an error: half of its text */

void cni_choice_deinit(struct cni_choice *c)
{
	if (!c)
		return;
	free(c->v);
	*c = (struct cni_choice){ .v = NULL };
}

static const struct cni_wanted *find_wanted(const struct cni_choice *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->v[i].name, name) == 0)
			return &c->v[i];
	return NULL;
}

static bool is_all(const char *name)
{
	return strcmp(name, "all") == 0;
}

/* As rkt says it, whose arguments had no colons: "a:b:c" has the arguments [b c]. */
static int refuse_args(const char *name, const char *args, struct err *e)
{
	char shown[CNI_ARGS_MAX + 1];
	str_copy_text(shown, sizeof(shown), args);
	for (char *at = shown; *at; at++)
		if (*at == ':')
			*at = ' ';
	return err_set(e, -EINVAL, "network \"%s\" provided with invalid arguments: [%s]", name,
		       shown);
}

/* Takes one "NAME[:ARGS]". */
static int take_one(struct cni_choice *c, const char *text, struct err *e)
{
	struct cni_wanted w = { .name = "" };
	char one[sizeof(w.name) + sizeof(w.args) + 1];
	if (str_copy(one, sizeof(one), text) < 0)
		return err_set(e, -EINVAL,
			       "network \"%.64s...\": its name or arguments are too long", text);
	char *args = strchr(one, ':');
	if (args)
		*args++ = '\0';
	if (!*one)
		return err_set(e, -EINVAL, "netname must not be empty");
	if (!cni_name_is_valid(one))
		return err_set(e, -EINVAL,
			       "netname \"%.64s\" is not one of letters, digits and \"_.-\"", one);
	if (find_wanted(c, one))
		return err_set(e, -EINVAL, "found duplicate netname \"%s\"", one);
	if (args && is_all(one))
		return err_set(e, -EINVAL, "arguments are not supported by special netname \"%s\"",
			       one);
	if (args && *args && !cni_args_are_valid(args))
		return refuse_args(one, args, e);
	if (c->n == CNI_WANTED_MAX)
		return err_set(e, -E2BIG, "at most %d networks can be named", CNI_WANTED_MAX);
	if (!GROW(c->v, c->n))
		return err_set(e, -ENOMEM, "out of memory");
	str_copy(w.name, sizeof(w.name), one);
	str_copy(w.args, sizeof(w.args), args ? args : "");
	c->v[c->n++] = w;
	return 0;
}

int cni_choice_parse(const struct strv *values, struct cni_choice *ret, struct err *e)
{
	CLEANUP(cni_choice_deinit) struct cni_choice c = { .v = NULL };
	int r = 0;
	for (size_t i = 0; r == 0 && i < values->n; i++)
		r = take_one(&c, values->v[i], e);
	if (r < 0)
		return r;
	*ret = c;
	c = (struct cni_choice){ .v = NULL };
	return 0;
}

/* Whether all names are networks that can be used. */
static int check_wanted(const struct cni_choice *c, const struct cni_networks *nets, struct err *e)
{
	cleanup_buf struct buf missing;
	buf_init(&missing, MISSING_MAX);
	for (size_t i = 0; i < c->n; i++) {
		const struct cni_network *net = NULL;
		if (is_all(c->v[i].name))
			continue;
		int r = cni_networks_find(nets, c->v[i].name, &net, e);
		if (r < 0)
			return r;
		/* What does not fit is not said. */
		if (!net)
			(void)buf_printf(&missing, "%s%s", buf_len(&missing) > 0 ? ", " : "",
					 c->v[i].name);
	}
	if (buf_len(&missing) == 0)
		return 0;
	return err_set(e, -ENOENT, "networks not found: %.*s", (int)buf_len(&missing),
		       buf_data(&missing));
}

/* Whether @net, which was not asked for by its name, belongs to "all". */
static bool is_in_all(const struct cni_networks *nets, const struct cni_network *net)
{
	if (net->layer > 0)
		return true;
	for (size_t i = 0; i < nets->n; i++)
		if (nets->v[i].layer > 0 &&
		    (strcmp(nets->v[i].config.name, CNI_NET_DEFAULT) == 0 ||
		     strcmp(nets->v[i].config.name, CNI_NET_RESTRICTED) == 0))
			return false;
	return strcmp(net->config.name, CNI_NET_DEFAULT) == 0;
}

static int attach(const struct cni_network *net, const char *args, struct cni_attachments *list,
		  struct err *e)
{
	if (net->broken)
		return err_set(e, -EBADMSG, "%s", net->broken);
	if (list->n == NET_INTERFACES_MAX)
		return err_set(e, -E2BIG, "a pod can be attached to at most %d networks",
			       NET_INTERFACES_MAX);
	struct cni_attachment *a = &list->v[list->n];
	cni_attachment_init(a);
	cni_config_share(&net->config, &a->config);
	snprintf(a->if_name, sizeof(a->if_name), "eth%zu", list->n);
	list->n++;
	return str_copy(a->args, sizeof(a->args), args);
}

int cni_choose(const struct cni_choice *c, const struct cni_networks *nets,
	       struct cni_attachments *ret, struct err *e)
{
	bool all = find_wanted(c, "all");
	ret->n = 0;
	int r = check_wanted(c, nets, e);
	for (size_t i = 0; r == 0 && i < nets->n; i++) {
		const struct cni_network *net = &nets->v[i];
		const struct cni_wanted *w = find_wanted(c, net->config.name);
		if (w || (all && is_in_all(nets, net)))
			r = attach(net, w ? w->args : "", ret, e);
	}
	if (r < 0)
		cni_attachments_deinit(ret);
	return r;
}
