/* SPDX-License-Identifier: Apache-2.0 */
/* husk image export */
#include <errno.h>
#include <string.h>

#include "host/cli/cli.h"
#include "host/cli/image_app.h"
#include "host/cli/images.h"
#include "images/images.h"
#include "lib/data/target.h"

struct export_opts {
	const char *format;
	bool overwrite;
};

static const struct flag flags[] = {
	FLAG_STRING("format", "aci|oci", struct export_opts, format,
		    "the kind of archive: appc image, the default, or OCI image"),
	FLAG_SWITCH("overwrite", struct export_opts, overwrite, "replace FILE if it exists"),
};

static int write_aci(const struct image *image, int out, struct err *e)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	struct export_report report;
	pod_app_init(&app);
	int r = image_as_app(image, &app, e);
	if (r < 0)
		return r;
	const struct export_job job = {
		.app = &app,
		.format = EXPORT_ACI_PLAIN,
		.image = image->rootfs,
		.disk = -EBADF,
		.upper = -EBADF,
		.out = out,
	};
	return export_confined(&job, &report, e);
}

/* Opens the image, and renders it only if that is needed. */
static int open_image(struct store *s, const char *name, enum export_format format,
		      struct image **ret, struct err *e)
{
	int r = cli_open_image(s, name, ret, e);
	if (r < 0)
		return r;
	if (format == EXPORT_OCI && (*ret)->is_appc)
		return err_set(e, -EOPNOTSUPP,
			       "image \"%s\" is an appc image, which no OCI archive can hold "
			       "(try --format=aci)",
			       name);
	if (format == EXPORT_OCI || (*ret)->is_appc)
		return 0;
	image_free(TAKE_PTR(*ret));
	return cli_open_rendered_image(s, name, ret, e);
}

static int export_image(const struct cli *c, const char *name, const char *file,
			enum export_format format, bool overwrite, struct err *e)
{
	cleanup_store struct store *s = NULL;
	cleanup_image struct image *image = NULL;
	CLEANUP(target_deinit) struct target target = TARGET_INIT;
	int r = cli_open_store(c, &s, e);
	if (r == 0)
		r = open_image(s, name, format, &image, e);
	if (r == 0)
		r = target_open(file, format == EXPORT_OCI ? "output OCI file" : "output ACI file",
				overwrite, &target, e);
	if (r != 0)
		return r;
	r = format == EXPORT_OCI || image->is_appc ? copy_open_image(image, target.fd, e)
						   : write_aci(image, target.fd, e);
	if (r < 0)
		return err_context(e, "image \"%s\"", name);
	return target_publish(&target, e);
}

static int image_export_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct export_opts *o = opts;
	enum export_format format;
	if (operands->n != 2)
		return err_set(e, CLI_MISUSE, "exactly one IMAGE and one FILE are needed");
	int r = export_format_of(o->format, EXPORT_ACI_PLAIN, &format, e);
	return r == 0 ? export_image(c, operands->v[0], operands->v[1], format, o->overwrite, e)
		      : r;
}

const struct command cmd_image_export = {
	.name = "export",
	.path = "image export",
	.usage = "[OPTIONS] IMAGE FILE",
	.summary = "write an image into a file",
	.description =
		"FILE gets an appc image that is not compressed: the archive itself if the image is one,\n"
		"else one made from it; or with --format=oci an OCI image archive of what was fetched,\n"
		"unchanged, so that it has the same ID where it is fetched again. FILE appears when it is\n"
		"complete.",
	COMMAND_FLAGS(flags, struct export_opts),
	.run = image_export_run,
};
