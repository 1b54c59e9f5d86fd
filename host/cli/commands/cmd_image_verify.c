/* SPDX-License-Identifier: Apache-2.0 */
/* husk image verify */
#include <errno.h>

#include "host/cli/cli.h"
#include "host/cli/images.h"

static int verify_one(const struct cli *c, struct store *s, const char *name, struct err *e)
{
	cleanup_image struct image *image = NULL;
	enum image_health health = IMAGE_INTACT;
	struct err why = ERR_INIT;
	int r = cli_open_image(s, name, &image, e);
	if (r < 0)
		return r;
	r = image_verify(image, &health, &why);
	if (r < 0) {
		*e = why;
		return err_context(e, "image \"%s\"", name);
	}
	if (health == IMAGE_INTACT) {
		printf("successfully verified checksum for image: \"%s\" (\"%s\")\n", name,
		       image->id);
		return 0;
	}
	if (health == IMAGE_NOT_RENDERED) {
		printf("image \"%s\" not rendered; no verification needed\n", name);
		return 0;
	}
	cli_message(c, "tree cache verification failed for image %s: %s;  rebuilding...", name,
		    why.text);
	r = image_repair(image, e);
	return r < 0 ? err_context(e, "image \"%s\"", name) : 0;
}

static int image_verify_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	cleanup_store struct store *s = NULL;
	(void)opts;
	if (operands->n == 0)
		return err_set(e, CLI_MISUSE, "must provide at least one image");
	int r = cli_open_store(c, &s, e);
	for (size_t i = 0; r == 0 && i < operands->n; i++)
		r = verify_one(c, s, operands->v[i], e);
	fflush(stdout);
	return r;
}

const struct command cmd_image_verify = {
	.name = "verify",
	.path = "image verify",
	.usage = "IMAGE...",
	.summary = "check the rendered file systems of images",
	.description =
		"Each is read and compared with what it was when it was rendered, and rendered anew if\n"
		"it is not the same. Pods keep the file that they have.",
	.run = image_verify_run,
};
