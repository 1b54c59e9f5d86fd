/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/wishes.h"

#include <errno.h>

#include "lib/os/names.h"
#include "stage1/apps/appfilter.h"

static int refuse(const struct pod_app *app, const char *what, const char *option, struct err *e)
{
	return err_set(e, -EPERM,
		       "app \"%s\": its image asks for %s, and root of the pod is root of the host "
		       "(leave --userns=host away, or say %s for the app)",
		       app->name, what, option);
}

static int check_capabilities(const struct pod_app *app, struct err *e)
{
	const struct strv *names = &app->isolators.caps;
	if (!isolators_is_wish(&app->isolators, ISOLATOR_CAPS_RETAIN))
		return 0;
	for (size_t i = 0; i < names->n; i++) {
		int number = names_capability(names->v[i]);
		if (number < 0)
			return err_set(e, number, "app \"%s\": there is no capability \"%s\"",
				       app->name, names->v[i]);
		if (!((AGENT_CAPABILITIES_DEFAULT >> number) & 1))
			return refuse(app, names->v[i], "--caps-retain", e);
	}
	return 0;
}

static int check_filter(const struct pod_app *app, struct err *e)
{
	const struct isolators *i = &app->isolators;
	const char *name = NULL;
	if (!isolators_is_wish(i, ISOLATOR_SECCOMP_RETAIN) &&
	    !isolators_is_wish(i, ISOLATOR_SECCOMP_REMOVE))
		return 0;
	int r = appfilter_find_wider(i, &name, e);
	if (r < 0)
		return err_context(e, "app \"%s\"", app->name);
	return name ? refuse(app, name, "--seccomp", e) : 0;
}

int wishes_check(const struct pod_app *app, struct err *e)
{
	const struct isolators *i = &app->isolators;
	int r = check_capabilities(app, e);
	if (r == 0)
		r = check_filter(app, e);
	if (r == 0 && isolators_is_wish(i, ISOLATOR_OOM_SCORE_ADJ) && i->oom_score_adj < 0)
		r = refuse(app, isolators_name(ISOLATOR_OOM_SCORE_ADJ), "--oom-score-adj", e);
	if (r == 0 && isolators_is_wish(i, ISOLATOR_RLIMITS))
		r = refuse(app, isolators_name(ISOLATOR_RLIMITS), "--rlimit", e);
	return r;
}
