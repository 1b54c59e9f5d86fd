#include "host/fetch/reference.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"

static const struct {
	const char *prefix;
	enum reference_type type;
} transports[] = {
	{ "oci:", REFERENCE_OCI_DIR },
	{ "oci-archive:", REFERENCE_OCI_ARCHIVE },
	{ "docker-archive:", REFERENCE_DOCKER_ARCHIVE },
};

/* Transports of skopeo(1) that need a daemon or the network. */
static const char *const foreign[] = { "docker://", "docker-daemon:", "containers-storage:",
				       "dir:",      "ostree:",        "sif:" };

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
	if (!str_is_printable(text, IMAGE_NAME_MAX))
		return err_set(e, -EINVAL,
			       "the name behind the path is empty, longer than %zu "
			       "bytes or not printable",
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

static int not_there(const char *text, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		if (str_starts(text, foreign[i]))
			return err_set(e, -EINVAL,
				       "images are read from files only (fetch it first: skopeo "
				       "copy %s oci:DIR)",
				       text);
	return err_set(e, -ENOENT,
		       "no such file or directory (give the path of an OCI layout, an OCI archive "
		       "or a docker archive)");
}

int reference_parse(const char *text, bool (*exists)(const char *path), struct reference *ret,
		    struct err *e)
{
	const char *whole = text;
	struct reference ref = { .type = REFERENCE_ANY };
	for (size_t i = 0; i < ARRAY_SIZE(transports); i++) {
		if (!str_starts(text, transports[i].prefix))
			continue;
		ref.type = transports[i].type;
		text += strlen(transports[i].prefix);
		break;
	}
	int r = split(text, exists, &ref, e);
	if (r < 0)
		return r;
	if (!exists(ref.path))
		return not_there(whole, e);
	*ret = ref;
	return 0;
}
