/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads configuration directories.
 *
 * Theory of operation: a source is a directory with the subdirectories auth.d, paths.d and
 * stage1.d. Each part (config.h) is loaded when somebody needs it and then kept. Loading a part
 * reads, source by source, its *.json files in the order of their names into one layer, in which
 * nothing may be said twice, and merges the layer over what the sources before it said. A failure
 * leaves the part unloaded.
 *
 * Only regular files are ever opened, and none of them through a symbolic link: what else is in a
 * subdirectory is ignored, as rkt does. A source itself may be a symbolic link; a subdirectory that
 * is one is an error rather than ignored, because it looks as if it counted.
 */
#ifndef HOST_CONFIG_LOAD_H
#define HOST_CONFIG_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "host/config/config.h"
#include "lib/base/err.h"

/* A directory to read. */
struct config_source {
	const char *dir; /* borrowed; "" is not a source */
	bool optional;   /* may be missing */
};

/*
 * Told what is not an error but should be changed, in one line; with @debug also what may be right.
 */
struct config_warn {
	void (*fn)(const void *ctx, const char *text);
	bool debug;
	const void *ctx;
};

/*
 * Loads those of the parts @parts that @c does not have yet from the @n sources, of which later
 * ones override earlier ones. What a user other than root may not read is as if it were not there.
 * @warn hears of files with credentials that everybody can read. 0, or -errno and @e, which names
 * the file, the cause and the remedy.
 */
int config_load(struct config *c, const struct config_source *sources, size_t n, unsigned parts,
		const struct config_warn *warn, struct err *e);

#endif
