/* SPDX-License-Identifier: Apache-2.0 */
/* husk image cat-manifest */
#include <errno.h>

#include "host/cli/cli.h"
#include "host/cli/image_app.h"
#include "host/cli/images.h"
#include "host/export/describe.h"
#include "lib/base/json.h"

/* Indented, a manifest grows; how much depends on how many short lists it has. */
#define OUTPUT_MAX (8 * DESCRIBE_MAX)

struct cat_opts {
	bool not_pretty;
};

static int set_pretty(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct cat_opts *o = opts;
	(void)f;
	(void)e;
	o->not_pretty = value[0] == 'f';
	return 0;
}

static const struct flag flags[] = {
	{ .name = "pretty-print",
	  .set = set_pretty,
	  .help = "indent the manifest, the default; =false prints it on one line" },
};

/* Writes it anew in any case: the image's own may hold anything between its words. */
static int format(const struct buf *text, bool pretty, struct buf *out)
{
	cleanup_json struct json_object *o = NULL;
	int r = json_parse(buf_data(text), buf_len(text), &o);
	return r < 0 ? r : json_write(o, pretty, out);
}

static int print_manifest(struct cli *c, const char *name, bool pretty, struct err *e)
{
	cleanup_store struct store *s = NULL;
	cleanup_image struct image *image = NULL;
	cleanup_buf struct buf text;
	cleanup_buf struct buf out;
	buf_init(&text, DESCRIBE_MAX);
	buf_init(&out, OUTPUT_MAX);
	int r = cli_open_store(c, &s, e);
	if (r == 0)
		r = cli_open_image(s, name, &image, e);
	if (r == 0)
		r = image_describe(image, &text, e);
	if (r < 0)
		return r;
	r = format(&text, pretty, &out);
	if (r < 0)
		return err_sys(e, r, "image \"%s\": cannot print the manifest", name);
	printf("%.*s\n", (int)buf_len(&out), buf_data(&out));
	return 0;
}

static int run(struct cli *c, char *const *args)
{
	struct cat_opts o = { 0 };
	cleanup_strv struct strv operands;
	struct err e = ERR_INIT;
	int status;
	strv_init(&operands, CLI_ARGS_MAX);
	if (!cli_parse(c, &o, args, &operands, &status))
		return status;
	if (operands.n != 1) {
		err_set(&e, -EINVAL, "exactly one IMAGE is needed");
		return cli_usage_error(c, &e);
	}
	return print_manifest(c, operands.v[0], !o.not_pretty, &e) < 0 ? cli_fail(c, &e) : 0;
}

const struct command cmd_image_cat_manifest = {
	.name = "cat-manifest",
	.path = "image cat-manifest",
	.usage = "[OPTIONS] IMAGE",
	.summary = "print an image's manifest",
	.description =
		"An appc image manifest, made from its configuration if the image came as another kind.",
	.flags = flags,
	.n_flags = ARRAY_SIZE(flags),
	.run = run,
};
