/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/cli.h"

#include <errno.h>
#include <stdarg.h>

#include "lib/wire/stage1.h"

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
