/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image store: directories below husk's data directory.
 *
 *   oci/     an OCI image layout: the blobs of all images, by digest. index.json is for other
 *            programs; husk writes it and never reads it.
 *   images/  a record for each image (images/store/record.h): an image is in the store when it has
 *            one
 *   refs/    what a name or a place stood for when it was last looked at (images/store/ref.h)
 *   trees/   rendered images, one file per chain ID: HEX.vN, N the version of the rendering, and
 *            beside it HEX.vN.digest, the digest of its content. A file there is complete, synced
 *            and never changed; pods keep it alive with hard links.
 *   tmp/     work in progress: files without a name, and a directory for each fetch
 *   locks/   empty files to lock
 *
 * Nothing here trusts an image: all archive formats are read in a forked child that holds no
 * privilege, no path and no descriptor but its input and its output; digests are verified always.
 */
#ifndef IMAGES_STORE_STORE_H
#define IMAGES_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/store/settings.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

struct store;

/* STORE_MISSING: it is not in the store; STORE_BUSY: somebody else is at it. */
enum {
	STORE_MISSING = 1,
	STORE_BUSY,
};

/*
 * Opens the store below the directory @data_dirfd (borrowed; it may be closed afterwards) and
 * creates its directories if they are missing: with mode 0750, or open to the group if @data_dirfd
 * is shared. -EPERM if one of them is not as lib/data/datadir.h says. @data_path is only shown
 * to people (copied). 0 or -errno with @e.
 */
int store_open(int data_dirfd, const char *data_path, struct store **ret, struct err *e);

/* Closes the store. Accepts NULL. Images and imports of it must be freed first. */
void store_free(struct store *s);
DEFINE_FREEP(store);
#define cleanup_store CLEANUP(store_freep)

/* The directory for files without a name and work in progress; borrowed. */
int store_tmp_dirfd(const struct store *s);

/* Path of the data directory, for people. */
const char *store_path(const struct store *s);

/* True if the group of the store can change what names and places stand for in it. */
bool store_is_shared(const struct store *s);

/* True if we may put rendered files into the store: not so for the group of a shared one. */
bool store_may_render(const struct store *s);

/* Replaces the default settings, for all that is done with @s from now on. */
void store_configure(struct store *s, const struct store_settings *settings);

/* The settings; borrowed. */
const struct store_settings *store_settings(const struct store *s);

/* Most bytes that an image may unpack to, of the settings. */
uint64_t store_bytes_max(const struct store *s);

#endif
