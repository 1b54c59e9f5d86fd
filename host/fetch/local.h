/* Images from files and directories of this machine. */
#ifndef HOST_FETCH_LOCAL_H
#define HOST_FETCH_LOCAL_H

#include "host/fetch/options.h"
#include "host/fetch/reference.h"
#include "host/image/digest.h"
#include "host/store/store.h"
#include "lib/base/err.h"

/* An image of the store, and what it is called here. */
struct fetched {
	struct digest id;
	char name[IMAGE_NAME_MAX + 1]; /* "" leaves it to the store */
	bool rendered;                 /* just now */
};

/*
 * Brings the image that @ref names (a type up to REFERENCE_ROOTFS) into the store, unless it is there: a
 * file that has not changed since it was imported is not even read; of a layout or an archive the
 * documents are read first; a directory with a root file system is packed each time. 0 or -errno with @e.
 */
int local_fetch(struct store *s, const struct reference *ref, const struct fetch_options *o,
		struct fetched *ret, struct err *e);

#endif
