/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/cli.h"

#include <errno.h>
#include <stdarg.h>

#include "host/cli/flags/insecure.h"
#include "lib/wire/stage1.h"

static int set_insecure(void *opts, const struct flag *f, const char *value, struct err *e)
{
	unsigned *bits = (unsigned *)(void *)((char *)opts + f->offset);
	return insecure_options(value, bits, e) < 0 ? err_context(e, "--%s", f->name) : 0;
}

static const struct flag global_flags[] = {
	FLAG_SWITCH("debug", struct cli, debug, "print more about what is done"),
	FLAG_STRING("dir", "DIR", struct cli, dir,
		    "data directory (default /var/lib/husk, for users ~/.local/share/husk)"),
	{ .name = "help",
	  .letter = 'h',
	  .set = flag_set_bool,
	  .offset = offsetof(struct cli, help),
	  .help = "print this help" },
	FLAG_AT("insecure-options", "OPTIONS", set_insecure, struct cli, insecure,
		"protections to give up: capabilities, seccomp, all-run, ..."),
	FLAG_STRING("local-config", "DIR", struct cli, local_config,
		    "configuration of this host (default /etc/husk)"),
	FLAG_STRING("stage1", "NAME|DIR", struct cli, stage1,
		    "what new pods are made of: a stage1 beside husk, or its directory"),
	FLAG_STRING("system-config", "DIR", struct cli, system_config,
		    "configuration of the distribution (default /usr/lib/husk)"),
	FLAG_STRING("user-config", "DIR", struct cli, user_config,
		    "configuration of the user (default none)"),
};

struct flag_set cli_global_flags(struct cli *c)
{
	return (struct flag_set){ .flags = global_flags, .n = ARRAY_SIZE(global_flags), .opts = c };
}

struct flag_set command_flags(const struct command *cmd, void *opts)
{
	return (struct flag_set){ .flags = cmd->flags,
				  .n = cmd->n_flags,
				  .only = cmd->only,
				  .opts = opts,
				  .other = cmd->other };
}

const char *command_path(const struct command *cmd)
{
	return cmd->path ? cmd->path : cmd->name;
}

int cli_usage_error(const struct cli *c, const struct err *e)
{
	fprintf(stderr, "Error: %s; see husk help %s\n", e->text, command_path(c->cmd));
	return EXIT_HUSK_FAILURE;
}

int cli_fail(const struct cli *c, const struct err *e)
{
	fprintf(stderr, "%s: %s\n", c->cmd->name, e->text);
	return EXIT_HUSK_FAILURE;
}

void cli_print(const struct buf *text)
{
	if (buf_len(text) > 0)
		fwrite(buf_data(text), 1, buf_len(text), stdout);
}

void cli_message(const struct cli *c, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	struct err e = ERR_INIT; /* makes the text printable */
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(&e, -EINVAL, "%s", text);
	cli_fail(c, &e);
}
