/* SPDX-License-Identifier: Apache-2.0 */
/* husk version */
#include "host/cli/cli.h"
#include "host/render/render.h"
#include "lib/wire/agent.h"
#include "lib/wire/stage1.h"

static int version(struct cli *c, char *const *args)
{
	cleanup_strv struct strv operands;
	int status;
	strv_init(&operands, CLI_ARGS_MAX);
	if (!cli_parse(c, NULL, args, &operands, &status))
		return status;
	printf("husk Version: %s\n", HUSK_VERSION);
	printf("stage1 Interface: %d\n", STAGE1_INTERFACE_VERSION);
	printf("Agent Protocol: %d to %d\n", AGENT_VERSION_MIN, AGENT_VERSION_MAX);
	printf("Store Version: %d\n", RENDER_VERSION);
	return 0;
}

const struct command cmd_version = {
	.name = "version",
	.usage = "",
	.summary = "print the versions of husk and of what it speaks",
	.description =
		"Prints the version of husk, of the interface to stage1, of the protocol between\n"
		"host and guest, and of the image store.",
	.run = version,
};
