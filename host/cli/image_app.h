/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image as the app that it would be by itself, for the commands that describe and export images.
 */
#ifndef HOST_CLI_IMAGE_APP_H
#define HOST_CLI_IMAGE_APP_H

#include "images/images.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/wire/pod_manifest.h"

/*
 * Fills @ret (initialised); of an image without a command, ret->exec is empty. 0, or -errno and @e.
 */
int image_as_app(const struct image *image, struct pod_app *ret, struct err *e);

/*
 * Appends the image's appc image manifest to @out, which is initialised with DESCRIBE_MAX: its own
 * if it is an appc image, else one made from the app. 0, or -errno and @e.
 */
int image_describe(const struct image *image, struct buf *out, struct err *e);

/* --format=aci|oci of exports: @aci for aci and NULL. 0, or -EINVAL and @e. */
int export_format_of(const char *text, enum export_format aci, enum export_format *ret,
		     struct err *e);

#endif
