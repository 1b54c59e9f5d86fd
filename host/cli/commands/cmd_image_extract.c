/* SPDX-License-Identifier: Apache-2.0 */
/* husk image extract, husk image render */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/cli.h"
#include "host/cli/data_dir.h"
#include "host/cli/image_app.h"
#include "host/cli/images.h"
#include "images/images.h"

#define LEFT_OUT_MAX ((size_t)256) /* bytes of the list in a message: three numbers and words */

struct extract_opts {
	bool overwrite;
	bool rootfs_only;
};

static const struct flag flags[] = {
	FLAG_SWITCH("overwrite", struct extract_opts, overwrite,
		    "replace DIR, with all that is in it, if it exists"),
	FLAG_SWITCH("rootfs-only", struct extract_opts, rootfs_only,
		    "write the root file system into DIR itself, and no manifest"),
};

/* The data directory is no more to be lost than the root directory. */
static int check_data_dir(const struct cli *c, const char *dir, struct err *e)
{
	char data[PATH_MAX], full[PATH_MAX];
	int r = cli_data_dir(c, data, e);
	if (r < 0 || !realpath(dir, full))
		return r;
	size_t len = strlen(full);
	if (strncmp(data, full, len) == 0 && (data[len] == '\0' || data[len] == '/'))
		return err_set(e, -EPERM,
			       "this would delete the data directory of husk. Refusing.");
	return 0;
}

static void add_left_out(struct buf *list, size_t n, const char *what)
{
	if (n > 0)
		buf_printf(list, "%s%zu %s%s", buf_len(list) > 0 ? ", " : "", n, what,
			   n == 1 ? "" : "s");
}

static void image_extract_tell(const struct cli *c, const char *name,
			       const struct unpack_report *report)
{
	cleanup_buf struct buf list;
	buf_init(&list, LEFT_OUT_MAX);
	add_left_out(&list, report->devices, "device file");
	add_left_out(&list, report->xattrs, "extended attribute");
	add_left_out(&list, report->set_ids, "set-ID bit");
	if (buf_len(&list) > 0)
		cli_message(c, "warning: image \"%s\": left out what cannot be made here%s: %.*s",
			    name, geteuid() == 0 ? "" : " without root", (int)buf_len(&list),
			    buf_data(&list));
}

static int extract_to(const struct cli *c, const char *name, const char *dir,
		      const struct extract_opts *o, struct err *e)
{
	cleanup_store struct store *s = NULL;
	cleanup_image struct image *image = NULL;
	cleanup_buf struct buf manifest;
	struct unpack_report report;
	buf_init(&manifest, DESCRIBE_MAX);
	int r = cli_open_store(c, &s, e);
	if (r == 0)
		r = cli_open_rendered_image(s, name, &image, e);
	if (r == 0)
		r = image_describe(image, &manifest, e);
	if (r == 0 && o->overwrite)
		r = check_data_dir(c, dir, e);
	if (r != 0)
		return r;
	const struct extract_job job = {
		.image = image->rootfs,
		.manifest = o->rootfs_only ? NULL : &manifest,
		.dir = dir,
		.overwrite = o->overwrite,
	};
	r = extract_image(&job, &report, e);
	if (r == 0)
		image_extract_tell(c, name, &report);
	return r;
}

static int image_extract_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	if (operands->n != 2)
		return err_set(e, CLI_MISUSE, "exactly one IMAGE and one DIR are needed");
	return extract_to(c, operands->v[0], operands->v[1], opts, e);
}

const struct command cmd_image_extract = {
	.name = "extract",
	.path = "image extract",
	.usage = "[OPTIONS] IMAGE DIR",
	.summary = "write the files of an image into a directory",
	.description =
		"Makes DIR with the file manifest and the directory rootfs. DIR appears when it is\n"
		"complete. Without root all files belong to you; device files and what else only root can\n"
		"make are left out, and how many is said.",
	COMMAND_FLAGS(flags, struct extract_opts),
	.run = image_extract_run,
};

const struct command cmd_image_render = {
	.name = "render",
	.path = "image render",
	.usage = "[OPTIONS] IMAGE DIR",
	.summary = "write the files of an image and of those it depends on",
	.description = "The same as husk image extract: an image of the store has all its files.",
	COMMAND_FLAGS(flags, struct extract_opts),
	.run = image_extract_run,
};
