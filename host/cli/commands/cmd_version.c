/* SPDX-License-Identifier: Apache-2.0 */
/* husk version */
#include "host/cli/cli.h"
#include "host/cli/format/show.h"
#include "images/images.h"
#include "lib/base/json.h"
#include "lib/wire/agent.h"
#include "lib/wire/stage1.h"

#define PROBLEM "cannot print the versions"

struct version_opts {
	enum show_format format;
};

static const struct flag flags[] = {
	FLAG_FORMAT(struct version_opts, "print JSON instead of lines"),
};

static int print_json(enum show_format format, struct err *e)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	cleanup_buf struct buf out;
	buf_init(&out, SHOW_OUTPUT_MAX);
	if (json_put_str(obj, "version", HUSK_VERSION) < 0 ||
	    json_put_int(obj, "stage1_interface", STAGE1_INTERFACE_VERSION) < 0 ||
	    json_put_int(obj, "agent_protocol_min", AGENT_VERSION_MIN) < 0 ||
	    json_put_int(obj, "agent_protocol_max", AGENT_VERSION_MAX) < 0 ||
	    json_put_int(obj, "store_version", RENDER_VERSION) < 0)
		return err_sys(e, -ENOMEM, PROBLEM);
	int r = show_json(obj, format, &out);
	cli_print(&out);
	return r < 0 ? err_sys(e, r, PROBLEM) : 0;
}

static int version_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct version_opts *o = opts;
	(void)c;
	(void)operands;
	if (o->format != SHOW_TEXT)
		return print_json(o->format, e);
	printf("husk Version: %s\n", HUSK_VERSION);
	printf("stage1 Interface: %d\n", STAGE1_INTERFACE_VERSION);
	printf("Agent Protocol: %d to %d\n", AGENT_VERSION_MIN, AGENT_VERSION_MAX);
	printf("Store Version: %d\n", RENDER_VERSION);
	return 0;
}

const struct command cmd_version = {
	.name = "version",
	.usage = "[OPTIONS]",
	.summary = "print the versions of husk and of what it speaks",
	.description =
		"Prints the version of husk, of the interface to stage1, of the protocol between\n"
		"host and guest, and of the image store.",
	COMMAND_FLAGS(flags, struct version_opts),
	.run = version_run,
};
