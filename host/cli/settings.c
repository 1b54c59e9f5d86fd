/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/stage1_choice.h"
#include "host/config/load.h"
#include "host/config/location.h"
#include "host/launch/trusted.h"
#include "host/pod/pod_stage1.h"
#include "lib/os/path.h"

#define SYSTEM_CONFIG "/usr/lib/husk"
#define LOCAL_CONFIG  "/etc/husk"

static void settings_warn(const void *ctx, const char *text)
{
	cli_message(ctx, "%s", text);
}

/* The directory @chosen by a flag must be there, the @usual one need not. */
static struct config_source source(const char *chosen, const char *usual)
{
	return (struct config_source){ .dir = chosen ? chosen : usual, .optional = !chosen };
}

int cli_config(const struct cli *c, unsigned parts, const struct config **ret, struct err *e)
{
	const struct config_source sources[] = {
		source(c->system_config, SYSTEM_CONFIG),
		source(c->local_config, LOCAL_CONFIG),
		source(c->user_config, ""),
	};
	const struct config_warn to_stderr = { .fn = settings_warn, .debug = c->debug, .ctx = c };
	int r = config_load(c->config, sources, ARRAY_SIZE(sources), parts, &to_stderr, e);
	if (r == 0)
		*ret = c->config;
	return r;
}

int cli_open_keystore(const struct cli *c, struct keystore **ret, struct err *e)
{
	return keystore_open(source(c->system_config, SYSTEM_CONFIG).dir,
			     source(c->local_config, LOCAL_CONFIG).dir, ret, e);
}

/*
 * True if that directory is what flags, configuration or installation name today: so it is trusted.
 */
static bool is_named(const struct cli *c, const char *dir)
{
	char space[PATH_MAX], full[PATH_MAX];
	const struct config *config = NULL;
	const char *named = c->stage1;
	if (!named && (cli_config(c, CONFIG_STAGE1, &config, NULL) < 0 || !config))
		return false;
	if (config && config->stage1_location) {
		if (location_path(config->stage1_location, space) != 0)
			return false;
		named = space;
	}
	if (!named)
		return path_from_self(STAGE1_DEFAULT_DIR, full, sizeof(full)) == 0 &&
		       strcmp(full, dir) == 0;
	return realpath(named, full) && strcmp(full, dir) == 0;
}

int cli_pod_stage1(struct cli *c, const struct pod *p, struct stage1 *ret, struct err *e)
{
	struct err why = ERR_INIT;
	int r = pod_stage1_open(p, ret, &why);
	if (r == POD_STAGE1_NONE)
		return stage1_choose(c, NULL, PULL_NEVER, ret, e);
	if (r == 0 && trusted_stage1(ret, geteuid(), &why) < 0 && !is_named(c, ret->dir))
		r = why.code;
	if (r == 0)
		return 0;
	if (c->stage1)
		return stage1_open(c->stage1, ret, e);
	return err_set(e, why.code, "the stage1 of the pod: %s (name one with --stage1=DIR)",
		       why.text);
}
