/* SPDX-License-Identifier: Apache-2.0 */
/* Rendered images: found, or made once. */
#ifndef IMAGES_STORE_RENDERED_H
#define IMAGES_STORE_RENDERED_H

#include <stdbool.h>

#include "images/store/layout.h"
#include "images/store/store.h"

/*
 * Opens the rendered file of the image @i with a shared lock that keeps it from being removed, and
 * renders it first if there is none, from the layers in the layout @layout_fd. Concurrent calls for
 * one chain render it once. *ret_made says whether this call did. 0 or -errno with @e (-EACCES if
 * it would have to be rendered and we may not, see store_may_render()).
 *
 * The calling process must have a single thread and must not have SIGCHLD ignored.
 */
int rendered_open(const struct store *s, const struct layout_image *i, int layout_fd, int *ret_fd,
		  bool *ret_made, struct err *e);

/*
 * Verifies that the layers in @layout_fd are what the configuration of @i says, and renders them if
 * nobody has yet and we may. An existing rendered file proves nothing about these layers, so they
 * are read in any case. *ret_made says whether they were rendered. 0 or -errno with @e.
 */
int rendered_verify(const struct store *s, const struct layout_image *i, int layout_fd,
		    bool *ret_made, struct err *e);

/* RENDERED_DAMAGED: the rendered file is not what it was. */
enum {
	RENDERED_DAMAGED = STORE_BUSY + 1,
};

/*
 * Compares the content of the rendered file of @i with what it was when it was rendered. 0,
 * STORE_MISSING if there is none, RENDERED_DAMAGED with @e saying how, or -errno with @e.
 */
int rendered_check(const struct store *s, const struct layout_image *i, struct err *e);

/*
 * Renders @i anew, in place of what there is, which stays if that fails; pods keep the file they
 * have. 0 or -errno with @e.
 */
int rendered_repair(const struct store *s, const struct layout_image *i, int layout_fd,
		    struct err *e);

#endif
