/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image of an app in a pod manifest: the member "image" (appc spec 0.8.11, "Pod Manifest
 * Schema"), whose name is an AC identifier and whose version is a label. Images have other names
 * than that: what it cannot hold is in an annotation of the app.
 */
#ifndef LIB_WIRE_POD_IMAGE_H
#define LIB_WIRE_POD_IMAGE_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

#define POD_IMAGE_NAME_MAX 255 /* as for images of the store, IMAGE_NAME_MAX */
#define POD_IMAGE_ID_MAX   135 /* "sha512-" and 128 hex digits */

/*
 * Annotations of an app: the name of its image, if "image" does not say it whole; its OCI digest,
 * "sha256:HEX".
 */
#define POD_ANN_IMAGE_NAME   "husk/image-name"
#define POD_ANN_IMAGE_DIGEST "husk/image-digest"

/* This machine in the words of appc: the labels "os" and "arch". */
#define POD_HOST_OS "linux"
#if defined(__x86_64__)
#define POD_HOST_ARCH "amd64"
#elif defined(__aarch64__)
#define POD_HOST_ARCH "aarch64"
#else
#error "unknown architecture: add its name here"
#endif

/* "NAME:VERSION" in its parts. */
struct pod_image_name {
	char identifier[POD_IMAGE_NAME_MAX + 1]; /* an AC identifier, or "" */
	char version[POD_IMAGE_NAME_MAX + 1];    /* a tag, or "" */
	bool whole;                              /* the two say all of the name */
};

/*
 * Takes a name of at most POD_IMAGE_NAME_MAX bytes apart. An AC identifier is lower-case letters
 * and digits with any of - . _ ~ / between; what is none becomes groups of the former with one of
 * the latter between. A digest ("@sha256:...") is left out.
 */
void pod_image_split(const char *name, struct pod_image_name *ret);

/* [{"name": "version", ...}, "os", "arch"], owned by the caller; NULL if memory is short. */
struct json_object *pod_image_labels(const char *version);

/* The member "image"; NULL if memory is short. */
struct json_object *pod_image_format(const char *id, const char *name);

/*
 * Reads the member: @id must be there, @name becomes "" or NAME[:VERSION]. 0, or -EBADMSG and @e.
 */
int pod_image_read(struct json_object *image, char id[POD_IMAGE_ID_MAX + 1],
		   char name[POD_IMAGE_NAME_MAX + 1], struct err *e);

#endif
