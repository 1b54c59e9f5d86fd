/* SPDX-License-Identifier: Apache-2.0 */
/* husk image cat-manifest */
#include <errno.h>

#include "host/cli/cli.h"
#include "host/cli/format/show.h"
#include "host/cli/image_app.h"
#include "host/cli/images.h"
#include "images/images.h"

/* Indented, a manifest grows; how much depends on how many short lists it has. */
#define OUTPUT_MAX (8 * DESCRIBE_MAX)

struct cat_opts {
	bool pretty;
};

static const struct cat_opts defaults = { .pretty = true };

static const struct flag flags[] = {
	FLAG_SWITCH("pretty-print", struct cat_opts, pretty,
		    "indent the manifest, the default; =false prints it on one line"),
};

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
	r = show_manifest(buf_data(&text), buf_len(&text), pretty, &out);
	if (r < 0)
		return err_sys(e, r, "image \"%s\": cannot print the manifest", name);
	cli_print(&out);
	return 0;
}

static int image_cat_manifest_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct cat_opts *o = opts;
	if (operands->n != 1)
		return err_set(e, CLI_MISUSE, "exactly one IMAGE is needed");
	return print_manifest(c, operands->v[0], o->pretty, e);
}

const struct command cmd_image_cat_manifest = {
	.name = "cat-manifest",
	.path = "image cat-manifest",
	.usage = "[OPTIONS] IMAGE",
	.summary = "print an image's manifest",
	.description =
		"An appc image manifest, made from its configuration if the image came as another kind.",
	COMMAND_FLAGS(flags, struct cat_opts),
	.defaults = &defaults,
	.run = image_cat_manifest_run,
};
