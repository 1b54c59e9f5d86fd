/* SPDX-License-Identifier: Apache-2.0 */
#include "host/manifest/compose.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "images/images.h"
#include "lib/os/names.h"
#include "lib/wire/stage1.h"
#include "lib/wire/words.h"

void app_options_init(struct app_options *o)
{
	memset(o, 0, sizeof(*o));
	isolators_init(&o->isolators);
	pod_tags_init(&o->tags);
	strv_init(&o->groups, AGENT_GROUPS_MAX);
	strv_init(&o->pre_start, AGENT_EXEC_MAX);
	strv_init(&o->post_stop, AGENT_EXEC_MAX);
	strv_init(&o->env, AGENT_ENV_MAX);
	strv_init(&o->args, AGENT_EXEC_MAX);
}

void app_options_deinit(struct app_options *o)
{
	if (!o)
		return;
	isolators_deinit(&o->isolators);
	pod_ports_deinit(&o->ports);
	volume_mounts_deinit(&o->points);
	volume_mounts_deinit(&o->mounts);
	volumes_deinit(&o->volumes);
	pod_tags_deinit(&o->tags);
	strv_deinit(&o->groups);
	strv_deinit(&o->pre_start);
	strv_deinit(&o->post_stop);
	strv_deinit(&o->env);
	strv_deinit(&o->args);
}

void pod_env_init(struct pod_env *env)
{
	strv_init(&env->inherited, AGENT_ENV_MAX);
	strv_init(&env->file, AGENT_ENV_MAX);
	strv_init(&env->set, AGENT_ENV_MAX);
}

void pod_env_deinit(struct pod_env *env)
{
	strv_deinit(&env->inherited);
	strv_deinit(&env->file);
	strv_deinit(&env->set);
}

int compose_app_name(const char *image_name, char out[AGENT_NAME_MAX + 1])
{
	const char *slash = strrchr(image_name, '/');
	const char *from = slash ? slash + 1 : image_name;
	size_t n = 0;
	bool foreign = false; /* letters that app names do not have */
	for (; *from && *from != ':' && *from != '@' && n < AGENT_NAME_MAX; from++) {
		unsigned char c = (unsigned char)*from;
		foreign |= c >= 0x80;
		if (c < 0x80 && isalnum(c))
			out[n++] = (char)tolower(c);
		else if (n > 0 && out[n - 1] != '-')
			out[n++] = '-';
	}
	while (n > 0 && out[n - 1] == '-')
		n--;
	out[n] = '\0';
	if (n == 0 && foreign)
		return str_copy(out, AGENT_NAME_MAX + 1, "app");
	return n > 0 ? 0 : -EINVAL;
}

void compose_volume_name(const char *path, char out[AGENT_VOLUME_NAME_MAX + 1])
{
	size_t n = (size_t)snprintf(out, AGENT_VOLUME_NAME_MAX + 1, "volume");
	for (; *path && n < AGENT_VOLUME_NAME_MAX; path++) {
		unsigned char c = (unsigned char)*path;
		if (c < 0x80 && isalnum(c))
			out[n++] = (char)tolower(c);
		else if (out[n - 1] != '-')
			out[n++] = '-';
	}
	while (out[n - 1] == '-')
		n--;
	out[n] = '\0';
}

/*
 * Copies a text that goes into the manifest, a JSON text: it must be UTF-8. @what names its origin
 * in the error.
 */
static int copy_text(char *dst, size_t size, const char *src, const char *what, struct err *e)
{
	if (!str_is_utf8(src))
		return err_set(e, -EINVAL, "%s is not UTF-8 text", what);
	if (str_copy(dst, size, src) < 0)
		return err_set(e, -ENAMETOOLONG, "%s is longer than %zu bytes", what, size - 1);
	return 0;
}

static int find_app_name(const struct app_options *o, const char *image_name, struct pod_app *app,
			 struct err *e)
{
	if (!o->name) {
		if (compose_app_name(image_name, app->name) < 0)
			return err_set(e, -EINVAL,
				       "image \"%s\" gives no app name (use --name=NAME)",
				       image_name);
		return 0;
	}
	if (!agent_name_is_valid(o->name))
		return err_set(
			e, -EINVAL,
			"--name: \"%.80s\" is not an app name (1 to %d of a-z, 0-9 and dashes "
			"inside)",
			o->name, AGENT_NAME_MAX);
	return str_copy(app->name, sizeof(app->name), o->name);
}

/* The file status/NAME-created must never be the exit code of an app called NAME-created. */
static int set_name(const struct app_options *o, const char *image_name, struct pod_app *app,
		    struct err *e)
{
	static const char *const reserved[] = {
		POD_STATUS_CREATED_SUFFIX,
		POD_STATUS_STARTED_SUFFIX,
		POD_STATUS_STOPPING_SUFFIX,
		POD_STATUS_DELETING_SUFFIX,
		"-oom", /* that it ran out of memory */
		POD_STATUS_REASON_SUFFIX,
	};
	int r = find_app_name(o, image_name, app, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
		if (str_ends(app->name, reserved[i]))
			return err_set(
				e, -EINVAL,
				"app name \"%s\": the ending %s is reserved (use --name=NAME)",
				app->name, reserved[i]);
	return 0;
}

static int add_args(struct strv *exec, const struct strv *args, const char *image, struct err *e)
{
	for (size_t i = 0; i < args->n; i++) {
		if (!str_is_utf8(args->v[i]))
			return err_set(e, -EINVAL,
				       "image \"%s\": argument %zu of its command is not UTF-8 "
				       "text",
				       image, i + 1);
		int r = strv_add(exec, args->v[i]);
		if (r < 0)
			return err_sys(e, r, "image \"%s\": command of at most %d arguments", image,
				       AGENT_EXEC_MAX);
	}
	return 0;
}

static int set_exec(const struct app_options *o, const struct image_config *config,
		    struct pod_app *app, struct err *e)
{
	const struct strv *rest = o->args.n > 0 || o->exec ? &o->args : &config->cmd;
	int r = 0;
	if (o->exec && (!*o->exec || !str_is_utf8(o->exec)))
		return err_set(e, -EINVAL, "--exec: the program is empty or not UTF-8 text");
	if (o->exec)
		r = strv_add(&app->exec, o->exec);
	else
		r = add_args(&app->exec, &config->entrypoint, o->image, e);
	app->n_entrypoint = app->exec.n;
	if (r == 0)
		r = add_args(&app->exec, rest, o->image, e);
	if (r == 0 && app->exec.n == 0)
		return err_set(e, -ENOEXEC,
			       "image \"%s\" has no command and none is given (use --exec=PROGRAM, "
			       "or -- PROGRAM ARGS behind the image)",
			       o->image);
	if (o->instead_of_image) /* one list, in which nothing says what is meant to be replaced */
		app->n_entrypoint = app->exec.n;
	return r;
}

/* Sets each of @vars in @env. Members of an image that are not variables are left out. */
static int add_env(struct strv *env, const struct strv *vars, const char *image, struct err *e)
{
	for (size_t i = 0; i < vars->n; i++) {
		const char *var = vars->v[i];
		size_t len = strcspn(var, "=");
		if (len == 0 || var[len] != '=')
			continue;
		if (!str_is_utf8(var))
			return err_set(e, -EINVAL,
				       "image \"%s\": variable \"%.40s\" is not UTF-8 text", image,
				       var);
		cleanup_free char *name = strndup(var, len);
		int r = name ? strv_env_set(env, name, var + len + 1) : -ENOMEM;
		if (r < 0)
			return err_sys(e, r, "image \"%s\": environment of at most %d variables",
				       image, AGENT_ENV_MAX);
	}
	return 0;
}

/* Who the app runs as: --user and --group, each in place of one of USER[:GROUP] of the image. */
static int set_user(const struct app_options *o, const struct image_config *config,
		    struct pod_app *app, struct err *e)
{
	char user[AGENT_USER_MAX + 1] = "";
	int r = copy_text(user, sizeof(user), config->user, "the image's user", e);
	if (r < 0)
		return r;
	char *colon = strchr(user, ':');
	const char *group = colon ? colon + 1 : "";
	if (colon)
		*colon = '\0';
	if (o->user && o->user[0] != '/' && strchr(o->user, ':'))
		group = ""; /* it says one itself */
	if (o->group)
		group = o->group;
	r = copy_text(app->user, sizeof(app->user), o->user ? o->user : user, "--user", e);
	return r < 0 ? r : copy_text(app->group, sizeof(app->group), group, "--group", e);
}

static int set_cwd(const struct app_options *o, const struct image_config *config,
		   struct pod_app *app, struct err *e)
{
	if (o->working_dir && o->working_dir[0] != '/')
		return err_set(e, -EINVAL, "--working-dir: \"%s\" is not an absolute path",
			       o->working_dir);
	app->cwd_is_there = o->working_dir && !o->makes_working_dir &&
			    strcmp(o->working_dir, config->working_dir) != 0;
	if (o->working_dir)
		return copy_text(app->cwd, sizeof(app->cwd), o->working_dir, "--working-dir", e);
	if (config->working_dir[0] == '/')
		return copy_text(app->cwd, sizeof(app->cwd), config->working_dir,
				 "the image's working directory", e);
	app->cwd[0] = '/';
	return copy_text(app->cwd + 1, sizeof(app->cwd) - 1, config->working_dir,
			 "the image's working directory", e);
}

static int set_env(const struct app_options *o, const struct image_config *config,
		   const struct pod_env *env, struct pod_app *app, struct err *e)
{
	const struct strv *const weakest_first[] = { &env->inherited, &config->env, &env->file,
						     &env->set, &o->env };
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(weakest_first); i++)
		r = add_env(&app->env, weakest_first[i], o->image, e);
	return r;
}

/* A name that the kernel does not know is wrong now, not when the VM runs. */
int compose_check_isolators(const struct isolators *i, struct err *e)
{
	for (size_t k = 0; k < i->caps.n; k++)
		if (names_capability(i->caps.v[k]) < 0)
			return err_set(e, -EINVAL, "there is no capability \"%s\"", i->caps.v[k]);
	for (size_t k = 0; k < i->seccomp.n; k++) {
		const char *name = i->seccomp.v[k];
		if (name[0] != '@' && names_syscall(name) == -EINVAL)
			return err_set(e, -EINVAL, "there is no system call \"%s\"", name);
	}
	return 0;
}

/* An image has one wish of that kind. */
static int merge_wishes(const struct image_config *config, struct isolators *to)
{
	CLEANUP(isolators_deinit) struct isolators wishes;
	isolators_init(&wishes);
	wishes.stop_signal = config->stop_signal;
	wishes.given = config->stop_signal ? 1U << ISOLATOR_STOP_SIGNAL : 0;
	return isolators_merge(to, &wishes);
}

static int set_confinement(const struct app_options *o, const struct image_config *config,
			   struct pod_app *app, struct err *e)
{
	int r = compose_check_isolators(&o->isolators, e);
	if (r < 0)
		return err_context(e, "app \"%s\"", app->name);
	app->read_only_root = o->read_only_root;
	app->streams = o->streams;
	if (!stream_modes_are_valid(&o->streams))
		return err_set(
			e, -EINVAL,
			"image \"%s\": a terminal is all of stdin, stdout and stderr (give tty for "
			"all three, or for one of them only)",
			o->image);
	r = strv_extend(&app->groups, &o->groups);
	if (r == 0)
		r = strv_extend(&app->pre_start, &o->pre_start);
	if (r == 0)
		r = strv_extend(&app->post_stop, &o->post_stop);
	if (r == 0)
		r = pod_tags_copy(&app->tags, &o->tags);
	if (r == 0)
		r = isolators_copy(&app->isolators, &o->isolators);
	if (r == 0)
		r = merge_wishes(config, &app->isolators);
	return r < 0 ? err_sys(e, r, "app \"%s\"", app->name) : 0;
}

/* What the image and the manifest say it listens on. */
static int set_ports(const struct app_options *o, const struct image_config *config,
		     struct pod_app *app, struct err *e)
{
	int r = pod_ports_copy(&app->ports, &o->ports);
	for (size_t i = 0; r == 0 && i < config->ports.n; i++) {
		struct pod_port port;
		r = pod_port_parse(config->ports.v[i], &port);
		if (r == 0)
			r = pod_ports_add(&app->ports, &port);
	}
	return r < 0 ? err_sys(e, r, "ports of app \"%s\"", app->name) : 0;
}

/* The volumes of the manifest and the command line, and what the image asks for. */
static int set_volumes(const struct app_options *o, const struct image_config *config,
		       struct pod_app *app, struct err *e)
{
	int r = volume_mounts_copy(&app->points, &o->points);
	if (r == 0)
		r = volume_mounts_copy(&app->mounts, &o->mounts);
	if (r == 0)
		r = volumes_copy(&app->volumes, &o->volumes);
	for (size_t i = 0; r == 0 && i < config->volumes.n; i++) {
		char name[AGENT_VOLUME_NAME_MAX + 1];
		compose_volume_name(config->volumes.v[i], name);
		r = volume_points_add(&app->points, name, config->volumes.v[i], false);
		/* Where there can be none there is none: an image has nobody to answer. */
		if (r == -EINVAL || r == -EPERM || r == -EEXIST || r == -E2BIG)
			r = 0;
	}
	return r < 0 ? err_sys(e, r, "volumes of app \"%s\"", app->name) : 0;
}

/* appc knows SHA-512 only; what another image has is noted beside it. */
static int set_image_id(const char *id, struct pod_app *app, struct err *e)
{
	static const char prefix[] = "sha256-";
	struct digest digest;
	if (!str_starts(id, prefix) || digest_from_hex(id + sizeof(prefix) - 1, &digest) < 0)
		return copy_text(app->image_id, sizeof(app->image_id), id, "image ID", e);
	digest_appc_id(&digest, app->image_id);
	snprintf(app->image_digest, sizeof(app->image_digest), "sha256:%s", digest.hex);
	return 0;
}

/* What the kernel in the pod would refuse, or the pod's agent, is refused here. */
static int check_words(const struct pod_app *app, const char *image, struct err *e)
{
	const struct strv *const lists[] = { &app->exec, &app->env, &app->pre_start,
					     &app->post_stop };
	int r = words_check(&app->exec, &app->env, e);
	if (r == 0)
		r = words_check(&app->pre_start, &app->env, e);
	if (r == 0)
		r = words_check(&app->post_stop, &app->env, e);
	if (r == 0)
		r = words_check_message(lists, ARRAY_SIZE(lists), e);
	return r < 0 ? err_context(e, "image \"%s\"", image) : 0;
}

int compose_app(const struct app_options *o, const char *image_name, const char *image_id,
		const struct image_config *config, const struct pod_env *env, struct pod_app *ret,
		struct err *e)
{
	static const struct image_config nothing = { .working_dir = "", .user = "" };
	int r = copy_text(ret->image_name, sizeof(ret->image_name), image_name, "image name", e);
	if (o->instead_of_image)
		config = &nothing;
	if (r == 0)
		r = set_image_id(image_id, ret, e);
	if (r == 0)
		r = set_name(o, image_name, ret, e);
	if (r == 0)
		r = set_exec(o, config, ret, e);
	if (r == 0)
		r = set_env(o, config, env, ret, e);
	if (r == 0)
		r = set_user(o, config, ret, e);
	if (r == 0)
		r = set_cwd(o, config, ret, e);
	if (r == 0)
		r = set_ports(o, config, ret, e);
	if (r == 0)
		r = set_volumes(o, config, ret, e);
	if (r == 0)
		r = set_confinement(o, config, ret, e);
	return r < 0 ? r : check_words(ret, o->image, e);
}
