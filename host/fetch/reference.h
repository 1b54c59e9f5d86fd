/* What the user typed to name an image, taken apart. */
#ifndef HOST_FETCH_REFERENCE_H
#define HOST_FETCH_REFERENCE_H

#include <limits.h>
#include <stdbool.h>

#include "host/image/config.h"
#include "lib/base/err.h"

enum reference_type {
	REFERENCE_ANY, /* a plain path: the content decides */
	REFERENCE_OCI_DIR,
	REFERENCE_OCI_ARCHIVE,
	REFERENCE_DOCKER_ARCHIVE,
};

struct reference {
	enum reference_type type;
	char path[PATH_MAX];
	char name[IMAGE_NAME_MAX + 1]; /* "" if none was given */
};

/*
 * Takes a reference apart (its forms are listed at image_open()). Both path and name may contain
 * colons, so the shortest prefix for which @exists is true is the path; if there is none, the path
 * ends at the first colon. A transport that husk does not have ("docker://") is an error that says
 * how to fetch such an image. 0, or -EINVAL/-ENOENT/-ENAMETOOLONG with @e.
 */
int reference_parse(const char *text, bool (*exists)(const char *path), struct reference *ret,
		    struct err *e);

#endif
