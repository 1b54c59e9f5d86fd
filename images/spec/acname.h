/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of app container images: "host/path[:version][,label=value...]" (appc spec 0.8, "AC
 * Identifier Type" and "App Container Image Discovery"). Pure.
 */
#ifndef IMAGES_SPEC_ACNAME_H
#define IMAGES_SPEC_ACNAME_H

#include <stdbool.h>
#include <stddef.h>

#include "images/spec/config.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Longest identifier of an image: that of other names of images. */
#define ACNAME_MAX IMAGE_NAME_MAX
/* Longest name of a label; "version" is the longest of the well-known ones. */
#define ACNAME_LABEL_MAX ((size_t)63)
/* Longest value of a label; a version with a hash in it has some 80 bytes. */
#define ACNAME_VALUE_MAX ((size_t)255)
/* Most labels of a name; version, os and arch are three. */
#define ACNAME_LABELS_MAX ((size_t)16)

/* The values of the labels "os" and "arch" for this machine, in the words of appc. */
#define ACNAME_HOST_OS "linux"
extern const char acname_host_arch[];

struct acname_label {
	char name[ACNAME_LABEL_MAX + 1];
	char value[ACNAME_VALUE_MAX + 1];
};

struct acname {
	char name[ACNAME_MAX + 1]; /* an AC identifier */
	struct acname_label labels[ACNAME_LABELS_MAX];
	size_t n; /* labels; no name twice */
};

/*
 * True if @s is an AC identifier of at most @max bytes: groups of lower-case letters and digits,
 * joined by single characters of "-._~/", or several of "-_~": appc's tools take any, but names
 * become paths.
 */
bool acname_is_identifier(const char *s, size_t max);

/*
 * Takes a name apart. The version becomes the label "version". Values are printable ASCII without
 * blanks, colons and commas, and not empty. 0, or -EINVAL and @e with cause and remedy.
 */
int acname_parse(const char *text, struct acname *ret, struct err *e);

/* True if @text is a name that begins with a host, which can be asked for it. */
bool acname_has_host(const char *text);

/* The value of @label, borrowed from @n; NULL if it has none. */
const char *acname_get(const struct acname *n, const char *label);

/*
 * Sets @label, which may be there already. 0, or -EINVAL (not a label, not a value), -E2BIG beyond
 * ACNAME_LABELS_MAX, and @e.
 */
int acname_set(struct acname *n, const char *label, const char *value, struct err *e);

/*
 * The first label of @want that an image called @have has not, or has with another value; NULL if
 * there is none. The version "latest" is also what an image without a version is.
 */
const struct acname_label *acname_missing(const struct acname *have, const struct acname *want);

/* Appends the name in the form that acname_parse() reads. Errors as buf_append(). */
int acname_format(const struct acname *n, struct buf *out);

#endif
