/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage1s that come as images: fetched into the store like any other, and extracted once, into the
 * directory stage1/ID of the data directory.
 */
#ifndef HOST_CLI_STAGE1_IMAGE_H
#define HOST_CLI_STAGE1_IMAGE_H

#include <stdbool.h>

#include "host/cli/cli.h"
#include "host/launch/stage1.h"
#include "images/images.h"
#include "lib/base/err.h"

/*
 * Opens the stage1 that the image @reference is (images/fetch/reference.h; with @is_name a name or
 * an ID of the store or of a server, whatever files there are), which is fetched as @policy says
 * and extracted if that has not been done. c->stage1_lock keeps it from being removed until this
 * process ends; then a pod has to name it. -EPERM in a data directory that a group shares. The
 * calling process has a single thread. 0, or -errno and @e.
 */
int stage1_image_open(struct cli *c, const char *reference, bool is_name, enum pull_policy policy,
		      struct stage1 *ret, struct err *e);

/*
 * The same for the image that the store has under @name. STAGE1_IMAGE_NONE if it has none, or is
 * shared: nothing is fetched.
 */
enum {
	STAGE1_IMAGE_NONE = 1,
};
int stage1_image_find(struct cli *c, const char *name, struct stage1 *ret, struct err *e);

/*
 * Removes what was extracted of images that are not in the store @s any more, unless somebody is
 * about to start a pod with it or a pod names it. Nothing to do for who does not own the data
 * directory. 0, or -errno and @e.
 */
int stage1_image_sweep(const struct cli *c, const struct store *s, struct err *e);

#endif
