/* SPDX-License-Identifier: Apache-2.0 */
/* husk fetch */
#include <errno.h>

#include "host/cli/cli.h"
#include "host/cli/images.h"
#include "images/images.h"

struct fetch_opts {
	enum pull_policy policy;
	const char *signature;
	bool full;
	bool store_only;
	bool no_store;
};

static const struct flag flags[] = {
	FLAG_SWITCH("full", struct fetch_opts, full, "print whole image IDs"),
	FLAG_SWITCH("no-store", struct fetch_opts, no_store, "the same as --pull-policy=update"),
	FLAG_AT("pull-policy", PULL_POLICIES, cli_set_pull_policy, struct fetch_opts, policy,
		PULL_POLICY_HELP("update")),
	FLAG_STRING("signature", "FILE", struct fetch_opts, signature,
		    "the detached signature of an appc image (default: beside it)"),
	FLAG_SWITCH("store-only", struct fetch_opts, store_only, "the same as --pull-policy=never"),
};

static int fetch_one(struct cli *c, struct store *s, const char *reference,
		     const struct fetch_opts *o, struct err *e)
{
	cleanup_image struct image *image = NULL;
	struct progress progress;
	const struct fetch_request q = {
		.reference = reference,
		.signature = o->signature,
		.policy = o->policy,
		.fetch_only = true,
		.options = cli_fetch_options(c, &progress, CLI_ANYBODY),
	};
	int r = fetch_image(s, &q, &image, e);
	progress_clear(&progress);
	if (r < 0)
		return r;
	int len = (int)(o->full ? IMAGE_ID_LEN : CLI_IMAGE_ID_LEN);
	printf("%.*s\n", len, image->id);
	fflush(stdout);
	return 0;
}

static const struct fetch_opts defaults = { .policy = PULL_UPDATE };

static int fetch_check(struct fetch_opts *o, const struct strv *references, struct err *e)
{
	if (o->store_only && o->no_store)
		return err_set(e, CLI_MISUSE, "both --store-only and --no-store specified");
	if (references->n == 0)
		return err_set(e, CLI_MISUSE, "must provide at least one image");
	if (o->signature && references->n > 1)
		return err_set(
			e, CLI_MISUSE,
			"--signature is of one image, but there are several (fetch them one by one)");
	if (o->store_only)
		o->policy = PULL_NEVER;
	if (o->no_store)
		o->policy = PULL_UPDATE;
	return 0;
}

static int fetch_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	cleanup_store struct store *s = NULL;
	int r = fetch_check(opts, operands, e);
	if (r == 0)
		r = cli_open_store(c, &s, e);
	for (size_t i = 0; r == 0 && i < operands->n; i++)
		r = fetch_one(c, s, operands->v[i], opts, e);
	return r;
}

const struct command cmd_fetch = {
	.name = "fetch",
	.usage = "[OPTIONS] IMAGE...",
	.summary = "bring images into the store",
	.description =
		"Fetches, verifies and renders the images and prints the ID of each. An IMAGE is one of\n"
		"\n"
		"  PATH[:NAME]                   an OCI layout, an OCI or docker archive, an ACI\n"
		"  oci:, oci-archive:, docker-archive:PATH[:NAME]   the same, as skopeo has them\n"
		"  rootfs:PATH                   a root file system: a directory or a tar\n"
		"  docker://NAME                 an image of a registry\n"
		"  http://..., https://...       a file that is one of the above, or an appc image\n"
		"  HOST/NAME[:VERSION]           an appc image, found by discovery\n"
		"  NAME, sha256-HEX, sha512-HEX  an image of the store\n"
		"\n"
		"Digests are always verified. An appc image must have a signature of a trusted key (see\n"
		"husk trust), unless --insecure-options=image says that it need not.",
	.defaults = &defaults,
	COMMAND_FLAGS(flags, struct fetch_opts),
	.run = fetch_run,
};

const struct command cmd_image_fetch = {
	.name = "fetch",
	.path = "image fetch",
	.usage = "[OPTIONS] IMAGE...",
	.summary = "bring images into the store (the same as husk fetch)",
	.description = "See husk fetch.",
	.defaults = &defaults,
	COMMAND_FLAGS(flags, struct fetch_opts),
	.run = fetch_run,
};
