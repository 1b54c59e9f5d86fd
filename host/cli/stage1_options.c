/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/stage1_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/settings.h"
#include "host/cli/stage1_choice.h"

int stage1_options_take(void *opts, const char *name, size_t len, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	int r = strv_addf(&o->request.stage1_options, "--%.*s=%s", (int)len, name, value);
	return r < 0 ? err_sys(e, r, "--%.*s: at most %d options of the stage1", (int)len, name,
			       RUN_STAGE1_OPTIONS_MAX)
		     : 0;
}

/* The declared options as flags, for help and for suggestions. */
static struct flag_set make_flags(const struct stage1 *s, struct flag flags[STAGE1_OPTIONS_MAX])
{
	for (size_t i = 0; i < s->n_options; i++)
		flags[i] = (struct flag){ .name = s->options[i].name,
					  .arg = s->options[i].arg,
					  .help = s->options[i].help };
	return (struct flag_set){ .flags = flags, .n = s->n_options };
}

/* @option is "--name=value". */
static int check_declared(const struct cli *c, const struct stage1 *s, const char *option,
			  struct err *e)
{
	struct flag flags[STAGE1_OPTIONS_MAX];
	const struct flag_set sets[] = {
		command_flags(c->cmd, NULL),
		make_flags(s, flags),
		cli_global_flags(NULL),
	};
	const char *name = option + 2;
	size_t len = strcspn(name, "=");
	if (stage1_find_option(s, name, len))
		return 0;
	if (!flag_find(sets, ARRAY_SIZE(sets), name, len, NULL))
		return flag_unknown(sets, ARRAY_SIZE(sets), option, e);
	err_set(e, -EINVAL, "--%.*s must follow an image", (int)len, name);
	return FLAG_BAD;
}

/* What the stage1 says of the options that the user gave: it looks at the host, too. */
static int ask_stage1(const struct stage1 *s, const struct strv *options, struct err *e)
{
	int code = 0;
	if (options->n == 0 || !s->check[0])
		return 0;
	int r = stage1_ask(s->check, -EBADF, options, &code, e);
	return r == 0 && code != 0 ? -EINVAL : r; /* it has said why */
}

/* The user's win. Others than those that @s declares are for other stage1s. */
int stage1_options_add_configured(const struct cli *c, const struct stage1 *s, struct strv *options,
				  struct err *e)
{
	const struct config *config = NULL;
	cleanup_strv struct strv all;
	strv_init(&all, options->max);
	int r = cli_config(c, CONFIG_STAGE1, &config, e);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < config->stage1_options.n; i++) {
		const char *option = config->stage1_options.v[i];
		if (stage1_find_option(s, option, strcspn(option, "=")))
			r = strv_addf(&all, "--%s", option);
	}
	if (r == 0)
		r = strv_extend(&all, options);
	if (r < 0)
		return err_sys(e, r, "options of the stage1: at most %zu", options->max);
	strv_deinit(options);
	*options = all;
	strv_init(&all, 0);
	return 0;
}

/* All options of the pod, and volumes that not every stage1 or host can give. */
static int ask_for_volumes(const struct stage1 *s, const struct run_request *q, struct err *e)
{
	bool host = volumes_have(&q->volumes, VOLUME_HOST);
	bool block = volumes_have(&q->volumes, VOLUME_BLOCK);
	cleanup_strv struct strv all;
	strv_init(&all, q->stage1_options.max + 2);
	int r = strv_extend(&all, &q->stage1_options);
	if (r == 0 && host)
		r = strv_add(&all, "--host-volumes");
	if (r == 0 && block)
		r = strv_add(&all, "--block-volumes");
	if (r < 0)
		return err_sys(e, r, "options of the stage1");
	return ask_stage1(s, &all, e);
}

int stage1_options_check(struct cli *c, struct run_opts *o, const struct stage1 *s, struct err *e)
{
	struct strv *options = &o->request.stage1_options;
	int r = 0;
	for (size_t i = 0; r == 0 && i < options->n; i++)
		r = check_declared(c, s, options->v[i], e);
	bool has_sources = volumes_have(&o->request.volumes, VOLUME_HOST) ||
			   volumes_have(&o->request.volumes, VOLUME_BLOCK);
	if (r == 0 && !has_sources)
		r = ask_stage1(s, options, e);
	if (r == 0)
		r = stage1_options_add_configured(c, s, options, e);
	return r == 0 && has_sources ? ask_for_volumes(s, &o->request, e) : r;
}

struct flag_set stage1_options_flags(struct cli *c, struct stage1 *space,
				     struct flag flags[STAGE1_OPTIONS_MAX])
{
	return stage1_choose(c, NULL, PULL_NEVER, space, NULL) == 0 ? make_flags(space, flags)
								    : (struct flag_set){ 0 };
}
