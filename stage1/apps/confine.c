/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "lib/os/names.h"
#include "stage1/apps/appfilter.h"
#include "stage1/apps/wishes.h"

#define ALL_CAPABILITIES ((INT64_C(1) << (CAP_LAST_CAP + 1)) - 1)

static int find_capabilities(const struct strv *names, int64_t *ret, struct err *e)
{
	int64_t set = 0;
	for (size_t i = 0; i < names->n; i++) {
		int number = names_capability(names->v[i]);
		if (number < 0)
			return err_set(e, number, "there is no capability \"%s\"", names->v[i]);
		set |= INT64_C(1) << number;
	}
	*ret = set;
	return 0;
}

static int choose_capabilities(const struct isolators *i, const struct confine_options *o,
			       int64_t *ret, struct err *e)
{
	int64_t named = 0;
	int r = find_capabilities(&i->caps, &named, e);
	if (r < 0)
		return r;
	if (o->all_capabilities)
		*ret = ALL_CAPABILITIES;
	else if (isolators_has(i, ISOLATOR_CAPS_RETAIN))
		*ret = named;
	else
		*ret = AGENT_CAPABILITIES_DEFAULT & ~named;
	return 0;
}

static int choose_filter(const struct isolators *i, const struct confine_options *o,
			 struct agent_confinement *c, struct err *e)
{
	char *program = NULL;
	int r = o->no_seccomp ? appfilter_compile_off(&program, e)
			      : appfilter_compile(i, c->capabilities, &program, e);
	if (r < 0)
		return r;
	free(c->seccomp);
	c->seccomp = program;
	return 0;
}

static int check_wishes(const struct pod_app *app, const struct confine_options *o, struct err *e)
{
	return o->shares_users ? wishes_check(app, e) : 0;
}

int confine_app(const struct pod_app *app, const struct confine_options *o,
		struct agent_confinement *c, struct err *e)
{
	int r = check_wishes(app, o, e);
	if (r < 0)
		return r;
	r = choose_capabilities(&app->isolators, o, &c->capabilities, e);
	c->open_paths = o->open_paths;
	if (r == 0)
		r = choose_filter(&app->isolators, o, c, e);
	return r < 0 ? err_context(e, "app \"%s\"", app->name) : 0;
}

static bool same_list(const struct strv *a, const struct strv *b)
{
	for (size_t i = 0; i < a->n && i < b->n; i++)
		if (strcmp(a->v[i], b->v[i]) != 0)
			return false;
	return a->n == b->n;
}

/* True if the two are compiled to the same; who wished for it may be somebody else. */
static bool same_policy(const struct isolators *a, const struct isolators *b)
{
	const unsigned named = 1U << ISOLATOR_CAPS_RETAIN | 1U << ISOLATOR_CAPS_REMOVE |
			       1U << ISOLATOR_SECCOMP_RETAIN | 1U << ISOLATOR_SECCOMP_REMOVE;
	return (a->given & named) == (b->given & named) && same_list(&a->caps, &b->caps) &&
	       same_list(&a->seccomp, &b->seccomp) &&
	       strcmp(a->seccomp_errno, b->seccomp_errno) == 0;
}

static int copy_confinement(const struct agent_confinement *from, struct agent_confinement *to)
{
	char *program = strdup(from->seccomp);
	if (!program)
		return -ENOMEM;
	free(to->seccomp);
	to->seccomp = program;
	to->capabilities = from->capabilities;
	to->open_paths = from->open_paths;
	return 0;
}

int confine_apps(const struct pod_manifest *pod, const struct confine_options *o,
		 struct agent_app_add *apps, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < pod->n_apps; i++) {
		size_t k = 0;
		while (k < i && !same_policy(&pod->apps[k].isolators, &pod->apps[i].isolators))
			k++;
		if (k == i)
			r = confine_app(&pod->apps[i], o, &apps[i].confinement, e);
		else if ((r = check_wishes(&pod->apps[i], o, e)) == 0 &&
			 (r = copy_confinement(&apps[k].confinement, &apps[i].confinement)) < 0)
			err_sys(e, r, "app \"%s\"", pod->apps[i].name);
	}
	return r;
}
