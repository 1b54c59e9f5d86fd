/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that use images share. */
#ifndef HOST_CLI_IMAGES_H
#define HOST_CLI_IMAGES_H

#include "host/cli/cli.h"
#include "host/cli/format/progress.h"
#include "images/images.h"

#define CLI_IMAGE_ID_LEN 39 /* "sha256-" and 32 hex digits: what fetch prints without --full */

/*
 * How images are kept: what the configuration (images.d) and the environment say, the latter first.
 * 0, or -errno and @e.
 */
int cli_image_settings(const struct cli *c, struct store_settings *ret, struct err *e);

/*
 * Opens the image store of the data directory, which is made if it is missing. 0, or -errno and @e.
 */
int cli_open_store(const struct cli *c, struct store **ret, struct err *e);

/* Who is told how far fetching is. */
enum cli_audience {
	CLI_NOBODY,
	CLI_TERMINAL, /* if stderr is one */
	CLI_ANYBODY,
};

/*
 * How images are fetched: what --insecure-options and --debug say, with the configuration's
 * credentials and keys. @p is initialised; it shows on stderr how far it is, and must live as long
 * as the options.
 */
struct fetch_options cli_fetch_options(struct cli *c, struct progress *p,
				       enum cli_audience audience);

/* What --pull-policy takes, its help, and its setter, of an enum pull_policy at the offset. */
#define PULL_POLICIES "never|new|update"
#define PULL_POLICY_HELP(default_)                                            \
	"use only images of the store, fetch what is not there, or look for " \
	"newer ones (default " default_ ")"
int cli_set_pull_policy(void *opts, const struct flag *f, const char *value, struct err *e);

/* Finds and opens the image that the user named, without its rendered file. 0, or -errno and @e. */
int cli_open_image(struct store *s, const char *name, struct image **ret, struct err *e);

/* The same with its rendered file, which is made if there is none. */
int cli_open_rendered_image(struct store *s, const char *name, struct image **ret, struct err *e);

#endif
