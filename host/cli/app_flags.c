/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/app_flags.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/manifest/volumes.h"
#include "host/pod/name.h"
#include "images/images.h"

/* The app that a per-app flag is for, NULL and @e in front of the first image. */
static struct app_options *app_of(struct run_opts *o, const struct flag *f, struct err *e)
{
	if (!o->app)
		err_set(e, -EINVAL, "--%s must follow an image", f->name);
	return o->app;
}

static int twice(const struct flag *f, struct err *e)
{
	return err_set(e, -EINVAL, "--%s specified multiple times for the same image", f->name);
}

int app_flag_text(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct app_options *app = app_of(opts, f, e);
	if (!app)
		return -EINVAL;
	const char **slot = (const char **)(void *)((char *)app + f->offset);
	if (*slot)
		return twice(f, e);
	*slot = value;
	return 0;
}

int app_flag_add_variable(struct strv *env, const struct flag *f, const char *value, struct err *e)
{
	size_t len = strcspn(value, "=");
	if (len == 0 || value[len] != '=')
		return err_set(e, -EINVAL, "--%s: \"%.80s\" is not of the form NAME=VALUE", f->name,
			       value);
	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], value, len + 1) == 0)
			return err_set(e, -EINVAL, "--%s: variable \"%.*s\" is already set",
				       f->name, (int)MIN(len, (size_t)80), value);
	int r = strv_add(env, value);
	return r < 0 ? err_sys(e, r, "--%s: at most %zu variables", f->name, env->max) : 0;
}

int app_flag_env(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct app_options *app = app_of(opts, f, e);
	return app ? app_flag_add_variable(&app->env, f, value, e) : -EINVAL;
}

int app_flag_groups(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct app_options *app = app_of(opts, f, e);
	if (!app)
		return -EINVAL;
	if (app->groups.n > 0)
		return twice(f, e);
	for (;;) {
		size_t len = strcspn(value, ",");
		cleanup_free char *piece = strndup(value, len);
		int r = piece ? pod_app_add_group(&app->groups, piece, e)
			      : err_sys(e, -ENOMEM, "\"%.80s\"", value);
		if (r < 0)
			return err_context(e, "--%s", f->name);
		if (value[len] == '\0')
			return 0;
		value += len + 1;
	}
}

int app_flag_switch(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct app_options *app = app_of(opts, f, e);
	return app ? flag_set_bool(app, f, value, e) : -EINVAL;
}

int app_flag_isolator(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	enum isolator which = (enum isolator)f->offset;
	if (!o->app && o->other) /* a limit of the whole pod, if the stage1 has one of that name */
		return o->other(o, f->name, strlen(f->name), value, e);
	struct app_options *app = app_of(o, f, e);
	if (!app)
		return -EINVAL;
	if (isolators_has(&app->isolators, which) && which != ISOLATOR_RLIMITS)
		return twice(f, e);
	if ((which == ISOLATOR_CAPS_REMOVE &&
	     isolators_has(&app->isolators, ISOLATOR_CAPS_RETAIN)) ||
	    (which == ISOLATOR_CAPS_RETAIN && isolators_has(&app->isolators, ISOLATOR_CAPS_REMOVE)))
		return err_set(e, -EINVAL,
			       "--caps-retain and --caps-remove exclude each other for the same "
			       "image");
	int r = isolators_set(&app->isolators, which, value, e);
	return r < 0 ? err_context(e, "--%s", f->name) : 0;
}

int app_flag_seccomp(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct app_options *app = app_of(opts, f, e);
	if (!app)
		return -EINVAL;
	if (isolators_has(&app->isolators, ISOLATOR_SECCOMP_RETAIN) ||
	    isolators_has(&app->isolators, ISOLATOR_SECCOMP_REMOVE))
		return twice(f, e);
	int r = isolators_set_seccomp(&app->isolators, value, e);
	return r < 0 ? err_context(e, "--%s", f->name) : 0;
}

int app_flag_stream(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct app_options *app = app_of(opts, f, e);
	char annotation[32];
	if (!app)
		return -EINVAL;
	snprintf(annotation, sizeof(annotation), "husk/%s", f->name);
	if (stream_modes_set(&app->streams, annotation, value) == 0)
		return 0;
	return err_set(e, -EINVAL, "--%s: \"%.80s\" is not one of %s", f->name, value, f->arg);
}

/* An appc annotation has an AC identifier for its name, which is not one of husk's own. */
static int check_note(const char *text, struct err *e)
{
	char name[POD_TAG_NAME_MAX + 1] = "";
	size_t len = strcspn(text, "=");
	snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name)), text);
	if (str_starts(name, POD_ANN_PREFIX))
		return err_set(e, -EINVAL, "\"%.80s\" is husk's own, as all that begins with %s",
			       name, POD_ANN_PREFIX);
	if (len > POD_TAG_NAME_MAX || !acname_is_identifier(name, POD_TAG_NAME_MAX))
		return err_set(
			e, -EINVAL,
			"\"%.80s\" is not a name of an annotation (lower case letters, digits and "
			"any of -._~/ between them)",
			name);
	return 0;
}

static int add_tag(struct pod_tags *tags, const struct flag *f, const char *value, struct err *e)
{
	struct strv *list = (struct strv *)(void *)((char *)tags + f->offset);
	int r = list == &tags->notes ? check_note(value, e) : 0;
	if (r == 0)
		r = pod_tags_add(list, value, e);
	return r < 0 ? err_context(e, "--%s", f->name) : 0;
}

int app_flag_tag(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct app_options *app = app_of(opts, f, e);
	return app ? add_tag(&app->tags, f, value, e) : -EINVAL;
}

int pod_or_app_flag_name(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	if (o->app) {
		if (o->app->name)
			return twice(f, e);
		o->app->name = value;
		return 0;
	}
	if (o->request.name)
		return err_set(e, -EINVAL, "--%s: the pod has the name \"%s\" already", f->name,
			       o->request.name);
	if (!pod_name_is_valid(value))
		return err_set(
			e, -EINVAL,
			"--%s: \"%.80s\" is not a name of a pod (1 to %d of a-z, 0-9 and '-', not at "
			"the ends, and no UUID)",
			f->name, value, POD_NAME_MAX);
	o->request.name = value;
	return 0;
}

int pod_or_app_flag_tag(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	return add_tag(o->app ? &o->app->tags : &o->request.tags, f, value, e);
}

int app_flag_volume(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct app_options *app = app_of(opts, f, e);
	return app ? volumes_add_both(&app->volumes, &app->mounts, value, e) : -EINVAL;
}

/* Of rkt's app add the image comes behind its flags, too: there is only one. */
int pod_or_app_flag_mount(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	(void)f;
	return volumes_add_mount(o->app ? &o->app->mounts : &o->request.mounts, value, e);
}
