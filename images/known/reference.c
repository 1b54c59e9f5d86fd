/* SPDX-License-Identifier: Apache-2.0 */
#include "images/known/reference.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"

static const struct {
	const char *prefix;
	enum reference_type type;
} schemes[] = {
	{ "docker://", REFERENCE_REGISTRY },
	{ "docker:", REFERENCE_REGISTRY },
	{ "oci://", REFERENCE_REGISTRY },
	{ "oci:", REFERENCE_OCI_DIR },
	{ "oci-archive:", REFERENCE_OCI_ARCHIVE },
	{ "docker-archive:", REFERENCE_DOCKER_ARCHIVE },
	{ "rootfs:", REFERENCE_ROOTFS },
	{ "file://", REFERENCE_ANY },
	{ "file:", REFERENCE_ANY },
};

/* Transports of skopeo(1) for what only other programs keep. */
static const char *const foreign[] = { "docker-daemon:", "containers-storage:", "dir:", "ostree:",
				       "sif:" };

/* Copies the first @len bytes of @text as the path. */
static int set_path(struct reference *ref, const char *text, size_t len, struct err *e)
{
	if (len == 0)
		return err_set(e, -EINVAL, "empty path (give an OCI layout or an image archive)");
	if (len >= sizeof(ref->path))
		return err_set(e, -ENAMETOOLONG, "path longer than %d bytes", PATH_MAX - 1);
	memcpy(ref->path, text, len);
	ref->path[len] = '\0';
	return 0;
}

static int set_name(struct reference *ref, const char *text, struct err *e)
{
	if (*text == '@') /* PATH:@sha256:... */
		text++;
	if (!str_is_text(text, IMAGE_NAME_MAX))
		return err_set(e, -EINVAL,
			       "the name behind the path is empty, longer than %zu "
			       "bytes or not printable UTF-8",
			       IMAGE_NAME_MAX);
	return str_copy(ref->name, sizeof(ref->name), text);
}

/* Splits "PATH[:NAME]". */
static int split(const char *text, bool (*exists)(const char *), struct reference *ref,
		 struct err *e)
{
	int r = set_path(ref, text, strlen(text), e);
	if (r < 0 || exists(ref->path))
		return r;
	for (const char *colon = strchr(text, ':'); colon; colon = strchr(colon + 1, ':')) {
		if (colon == text || set_path(ref, text, (size_t)(colon - text), e) < 0)
			continue;
		if (exists(ref->path))
			return set_name(ref, colon + 1, e);
	}
	const char *colon = strchr(text, ':');
	r = set_path(ref, text, colon ? (size_t)(colon - text) : strlen(text), e);
	return r < 0 || !colon ? r : set_name(ref, colon + 1, e);
}

/* Without a scheme: looks like a path, whether it exists or not. */
static bool is_path(const char *text)
{
	return *text == '/' || strstr(text, "./") || str_ends(text, ".aci");
}

static int check_foreign(const char *text, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		if (str_starts(text, foreign[i]))
			return err_set(e, -EINVAL,
				       "husk does not read what other programs keep (copy it "
				       "first: skopeo copy %s oci:DIR)",
				       text);
	return 0;
}

static bool is_id(const char *text)
{
	return str_starts(text, "sha256-") || str_starts(text, "sha512-");
}

/* What is nothing but an ID is none of a file that happens to be called so. */
static bool is_only_id(const char *text)
{
	const char *hex = text + strlen("sha256-");
	return is_id(text) && *hex && strspn(hex, "0123456789abcdef") == strlen(hex);
}

/* What has no scheme and is not a path that exists. */
static void parse_bare(const char *text, struct reference *ref)
{
	ref->path[0] = ref->name[0] = '\0';
	ref->text = text;
	ref->type = is_id(text) ? REFERENCE_ID : REFERENCE_NAME;
}

static int parse_path(const char *text, bool scheme, bool (*exists)(const char *),
		      struct reference *ref, struct err *e)
{
	int r = split(text, exists, ref, e);
	if (exists(ref->path))
		return r;
	if (!scheme && *text && !is_path(text)) {
		if (e)
			*e = ERR_INIT; /* not a path: no matter what is wrong with it as one */
		r = check_foreign(text, e);
		if (r == 0)
			parse_bare(text, ref);
		return r;
	}
	return r < 0 ? r
		     : err_set(e, -ENOENT,
			       "no such file or directory (give the path of an OCI layout, an OCI "
			       "archive or a docker archive)");
}

int reference_parse(const char *text, bool (*exists)(const char *path), struct reference *ret,
		    struct err *e)
{
	struct reference ref = { .type = REFERENCE_ANY, .text = text };
	bool scheme = false;
	int r = 0;
	for (size_t i = 0; !scheme && i < ARRAY_SIZE(schemes); i++) {
		scheme = str_starts(text, schemes[i].prefix);
		if (scheme) {
			ref.type = schemes[i].type;
			ref.text = text + strlen(schemes[i].prefix);
		}
	}
	if (str_starts(text, "http://") || str_starts(text, "https://"))
		ref.type = REFERENCE_URL;
	else if (is_only_id(text))
		ref.type = REFERENCE_ID;
	else if (ref.type <= REFERENCE_ROOTFS)
		r = parse_path(ref.text, scheme, exists, &ref, e);
	if (r < 0)
		return r;
	*ret = ref;
	return 0;
}
