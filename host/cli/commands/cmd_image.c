/* SPDX-License-Identifier: Apache-2.0 */
/* husk image: the commands about the image store. */
#include "host/cli/cli.h"

static const struct command *const members[] = {
	&cmd_image_cat_manifest, &cmd_image_export, &cmd_image_extract,
	&cmd_image_fetch,        &cmd_image_gc,     &cmd_image_list,
	&cmd_image_render,       &cmd_image_rm,     &cmd_image_verify,
};

const struct command cmd_image = {
	.name = "image",
	.subs = members,
	.n_subs = ARRAY_SIZE(members),
	.usage = "COMMAND",
	.summary = "list, verify, export and remove images of the store",
	.description =
		"An image of the store is named by what it was fetched as, or by its ID or the\n"
		"beginning of that.",
};
