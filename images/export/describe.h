/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON documents of an export, as functions of the app: an appc image manifest (appc spec
 * 0.8.11, "Image Manifest Schema"); an OCI configuration, manifest and index (image-spec 1.1).
 */
#ifndef IMAGES_EXPORT_DESCRIBE_H
#define IMAGES_EXPORT_DESCRIBE_H

#include <stdint.h>

#include "images/spec/oci.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/wire/pod_manifest.h"

/* Any of the documents; they hold little more than the app's part of a pod manifest. */
#define DESCRIBE_MAX POD_MANIFEST_SIZE_MAX

#define DESCRIBE_OCI_LAYOUT "{\"imageLayoutVersion\":\"1.0.0\"}"

/*
 * Each appends one document to @out, which is initialised with DESCRIBE_MAX. Texts that are not
 * UTF-8 are refused. 0 or -errno with @e.
 */

/* The "manifest" of an ACI. Its name is the image's, made an AC identifier. */
int describe_aci(const struct pod_app *app, struct buf *out, struct err *e);

/*
 * The configuration of an image, with entrypoint and arguments apart as @app has them, whose only
 * layer has this digest when it is not compressed.
 */
int describe_oci_config(const struct pod_app *app, const struct digest *diff_id, struct buf *out,
			struct err *e);

/* The manifest of an image with one gzip layer. */
int describe_oci_manifest(const struct blob_ref *config, const struct blob_ref *layer,
			  struct buf *out, struct err *e);

/*
 * The index of a layout with one image, named @name, whose manifest is of @type; NULL: an OCI one.
 */
int describe_oci_index(const struct blob_ref *manifest, const char *type, const char *name,
		       struct buf *out, struct err *e);

#endif
