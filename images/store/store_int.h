/* SPDX-License-Identifier: Apache-2.0 */
/* Directories and locks of the store, as its other modules use them. */
#ifndef IMAGES_STORE_STORE_INT_H
#define IMAGES_STORE_STORE_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "images/render/squash.h"
#include "images/spec/digest.h"
#include "images/store/store.h"

/* The directories, and the descriptor of one; borrowed. */
enum store_dir {
	STORE_LAYOUT,
	STORE_IMAGES,
	STORE_REFS,
	STORE_TREES,
	STORE_TMP,
	STORE_LOCKS,
	STORE_DIRS,
};
int store_dirfd(const struct store *s, enum store_dir d);

/*
 * The mode of records, references and the index: in a shared store the group reads, replaces and
 * touches them.
 */
mode_t store_file_mode(const struct store *s);

/*
 * True if the failure @r of reading something of the store says that it is not what it should be.
 * Others, such as a permission that we lack or memory that is short, say nothing about it.
 */
bool store_is_damage(int r);

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
 * Locks the fetching of what @key stands for: waits for whoever does it now, or says STORE_BUSY. As
 * store_lock_tree().
 */
int store_lock_fetch(const struct store *s, const struct digest *key, bool wait, int *ret_fd,
		     struct err *e);

/* Locks the set of images, to change it. As store_lock_tree(). */
int store_lock_images(const struct store *s, int *ret_fd, struct err *e);

/*
 * Syncs the O_TMPFILE file @fd, whose content digest is @content (render_content_digest()), and
 * gives it the name of @chain. The caller holds the lock. 0 or -errno with @e.
 */
int store_publish_tree(const struct store *s, const struct digest *chain, int fd,
		       const struct digest *content, struct err *e);

/*
 * The content digest that the rendered file of @chain had when it was published. 0, or -EBADMSG if
 * that is not there or damaged.
 */
int store_tree_content(const struct store *s, const struct digest *chain, struct digest *ret);

/* Removes the rendered file of @chain; pods keep theirs. 0 or -errno with @e. */
int store_remove_tree(const struct store *s, const struct digest *chain, struct err *e);

/* Size of the rendered file of @chain in bytes; 0 if there is none. */
uint64_t store_tree_size(const struct store *s, const struct digest *chain);

/*
 * True if @name, in the directory of rendered files, is one that this husk makes for an image; @ret
 * is then its chain ID.
 */
bool store_chain_of_name(const char *name, struct digest *ret);

/* Hard-links the rendered file of @chain. 0 or -errno with @e. */
int store_link_tree(const struct store *s, const struct digest *chain, int dirfd, const char *name,
		    struct err *e);

#endif
