/* SPDX-License-Identifier: Apache-2.0 */
/* husk version */
#include "host/cli/cli.h"
#include "host/cli/show.h"
#include "host/render/render.h"
#include "lib/base/json.h"
#include "lib/wire/agent.h"
#include "lib/wire/stage1.h"

struct version_opts {
	const char *format;
};

static const struct flag flags[] = {
	FLAG_STRING("format", "json|json-pretty", struct version_opts, format,
		    "print JSON instead of lines"),
};

static int print_json(enum show_format format)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	cleanup_buf struct buf out;
	buf_init(&out, SHOW_OUTPUT_MAX);
	if (json_put_str(obj, "version", HUSK_VERSION) < 0 ||
	    json_put_int(obj, "stage1_interface", STAGE1_INTERFACE_VERSION) < 0 ||
	    json_put_int(obj, "agent_protocol_min", AGENT_VERSION_MIN) < 0 ||
	    json_put_int(obj, "agent_protocol_max", AGENT_VERSION_MAX) < 0 ||
	    json_put_int(obj, "store_version", RENDER_VERSION) < 0)
		return -ENOMEM;
	int r = show_json(obj, format, &out);
	cli_print(&out);
	return r;
}

static int version(struct cli *c, char *const *args)
{
	struct version_opts o = { NULL };
	cleanup_strv struct strv operands;
	struct err e = ERR_INIT;
	enum show_format format = SHOW_TEXT;
	int status;
	strv_init(&operands, CLI_ARGS_MAX);
	if (!cli_parse(c, &o, args, &operands, &status))
		return status;
	if (show_format_of(o.format, &format, &e) < 0)
		return cli_usage_error(c, &e);
	if (format != SHOW_TEXT) {
		int r = print_json(format);
		if (r < 0)
			err_sys(&e, r, "cannot print the versions");
		return r < 0 ? cli_fail(c, &e) : 0;
	}
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
	.flags = flags,
	.n_flags = ARRAY_SIZE(flags),
	.run = version,
};
