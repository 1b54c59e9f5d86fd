/* SPDX-License-Identifier: Apache-2.0 */
/* Images for tests of the store, made by the store's own means. */
#ifndef TESTS_UNIT_IMAGES_STORE_SUPPORT_H
#define TESTS_UNIT_IMAGES_STORE_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "images/store/image.h"
#include "images/store/import.h"
#include "images/store/store.h"

/* A member of the group with which a store is shared, and the group. Numbers that nobody has. */
#define MEMBER_UID 65501
#define GROUP_GID  65502

/* Opens the store in the fixture's directory. */
struct store *must_open_store(void **state);

/*
 * Fills an import with an image of one layer: a file "f" with the content @text. *ret is the digest
 * of its manifest.
 */
void fill_import(struct import *i, const char *text, struct digest *ret);

/* import_publish() for an image without images below. */
int publish_import(struct import *i, const struct digest *id, const char *name, bool *ret_rendered,
		   struct err *e);

/* Puts such an image into the store, under @name. */
void add_image(struct store *s, const char *text, const char *name, struct digest *ret);

/*
 * Makes the fixture's directory the data directory of a group, before the store is opened in it.
 * False if only root could (then that is said).
 */
bool share_store(void **state);

/* In a function for run_as_member(): says which condition does not hold, and returns 1. */
#define MUST(condition)                                               \
	do {                                                          \
		if (!(condition)) {                                   \
			fprintf(stderr, "line %d fails\n", __LINE__); \
			return 1;                                     \
		}                                                     \
	} while (0)

/*
 * Runs @fn(@state, @ctx), which returns 0 if all is well, in a child that is not the owner of the
 * store but a member of the group. The test fails if it returns anything else.
 */
void run_as_member(void **state, int (*fn)(void **state, void *ctx), void *ctx);

/* How many names the directory below the fixture's has, without those that begin with a dot. */
size_t count_names(void **state, const char *dir);

/* True if the file is there, below the fixture's directory. */
bool is_there(void **state, const char *fmt, ...) PRINTF_FORMAT(2, 3);

#endif
