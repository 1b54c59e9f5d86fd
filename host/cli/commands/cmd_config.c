/* SPDX-License-Identifier: Apache-2.0 */
/* husk config */
#include "host/cli/settings.h"
#include "host/config/print.h"
#include "lib/base/buf.h"

struct config_opts {
	bool pretty;
};

static const struct config_opts defaults = { .pretty = true };

static const struct flag flags[] = {
	FLAG_SWITCH("pretty-print", struct config_opts, pretty,
		    "indent the output, the default; =false prints it on one line"),
};

static int config_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct config_opts *o = opts;
	const struct config *config = NULL;
	cleanup_buf struct buf out;
	(void)operands;
	buf_init(&out, CONFIG_OUTPUT_MAX);
	int r = cli_config(c, CONFIG_ALL, &config, e);
	if (r < 0)
		return r;
	r = config_print(config, o->pretty, &out);
	if (r < 0)
		return err_sys(e, r, "cannot print the configuration");
	cli_print(&out);
	return 0;
}

const struct command cmd_config = {
	.name = "config",
	.usage = "[OPTIONS]",
	.summary = "print the configuration",
	.description =
		"Reads the configuration directories and prints what they say together, in JSON:\n"
		"an entry for each host with credentials, then the paths and the stage1. Credentials\n"
		"are printed, too.",
	COMMAND_FLAGS(flags, struct config_opts),
	.defaults = &defaults,
	.run = config_run,
};
