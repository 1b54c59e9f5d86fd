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
	if (isolators_unconfined(i) && o->own_vsock)
		return 0;
	int r = o->no_seccomp ? appfilter_compile_off(&program, e)
			      : appfilter_compile(i, c->capabilities, &program, e);
	if (r < 0)
		return r;
	free(c->seccomp);
	c->seccomp = program;
	return 0;
}

/* Its paths, and whether it may have what it asks for where root is root of the host. */
static int confine_paths(const struct pod_app *app, const struct confine_options *o,
			 struct agent_confinement *c, struct err *e)
{
	bool open = isolators_open_paths(&app->isolators);
	if (open && o->shares_users)
		return err_set(
			e, -EPERM,
			"app \"%s\": without protected paths the host's kernel is open to its "
			"root (leave --userns=host away)",
			app->name);
	c->open_paths = o->open_paths || open;
	return o->shares_users ? wishes_check(app, e) : 0;
}

int confine_app(const struct pod_app *app, const struct confine_options *o,
		struct agent_confinement *c, struct err *e)
{
	int r = confine_paths(app, o, c, e);
	if (r < 0)
		return r;
	r = choose_capabilities(&app->isolators, o, &c->capabilities, e);
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
			       1U << ISOLATOR_SECCOMP_RETAIN | 1U << ISOLATOR_SECCOMP_REMOVE |
			       1U << ISOLATOR_SECCOMP_PROFILE;
	return (a->given & named) == (b->given & named) && same_list(&a->caps, &b->caps) &&
	       same_list(&a->seccomp, &b->seccomp) &&
	       strcmp(a->seccomp_errno, b->seccomp_errno) == 0 &&
	       (!a->profile || strcmp(a->profile, b->profile) == 0);
}

/* confine_app() for one with the policy of another, which is @from. */
static int confine_likewise(const struct pod_app *app, const struct confine_options *o,
			    const struct agent_confinement *from, struct agent_confinement *to,
			    struct err *e)
{
	int r = confine_paths(app, o, to, e);
	if (r < 0)
		return r;
	char *program = from->seccomp ? strdup(from->seccomp) : NULL;
	if (from->seccomp && !program)
		return err_sys(e, -ENOMEM, "app \"%s\"", app->name);
	free(to->seccomp);
	to->seccomp = program;
	to->capabilities = from->capabilities;
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
		else
			r = confine_likewise(&pod->apps[i], o, &apps[k].confinement,
					     &apps[i].confinement, e);
	}
	return r;
}
