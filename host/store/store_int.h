/* The directories of the store, as image.c uses them. */
#ifndef HOST_STORE_STORE_INT_H
#define HOST_STORE_STORE_INT_H

#include "host/image/digest.h"
#include "host/store/store.h"

/* Directory for files without a name; borrowed. */
int store_tmp_dirfd(const struct store *s);

/* Path of the data directory, for people. */
const char *store_path(const struct store *s);

/* Most bytes that an image may unpack to: RENDER_BYTES_MAX or $HUSK_IMAGE_BYTES_MAX. */
uint64_t store_bytes_max(const struct store *s);

/* STORE_MISSING: there is no rendered file for the chain ID. */
enum {
	STORE_MISSING = 1,
};

/*
 * Opens the rendered file of @chain read-only, with a shared lock that keeps it from being removed.
 * 0, STORE_MISSING, or -errno with @e.
 */
int store_find_tree(const struct store *s, const struct digest *chain, int *ret_fd, struct err *e);

/*
 * Locks the rendering of @chain, waiting for whoever renders it now. Closing *ret_fd gives the lock
 * up. 0 or -errno with @e.
 */
int store_lock_tree(const struct store *s, const struct digest *chain, int *ret_fd, struct err *e);

/*
 * Syncs the O_TMPFILE file @fd and gives it the name of @chain. The caller holds the lock. 0 or
 * -errno with @e.
 */
int store_publish_tree(const struct store *s, const struct digest *chain, int fd, struct err *e);

/* Hard-links the rendered file of @chain. 0 or -errno with @e. */
int store_link_tree(const struct store *s, const struct digest *chain, int dirfd, const char *name,
		    struct err *e);

#endif
