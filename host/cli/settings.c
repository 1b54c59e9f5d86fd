/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/settings.h"

#include "host/config/load.h"

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

void cli_config_dirs(const struct cli *c, const char *ret[CLI_CONFIG_DIRS])
{
	ret[0] = source(c->system_config, SYSTEM_CONFIG).dir;
	ret[1] = source(c->local_config, LOCAL_CONFIG).dir;
	ret[2] = source(c->user_config, "").dir;
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

struct trust_dirs cli_trust_dirs(const struct cli *c)
{
	return (struct trust_dirs){
		.system = source(c->system_config, SYSTEM_CONFIG).dir,
		.local = source(c->local_config, LOCAL_CONFIG).dir,
	};
}
