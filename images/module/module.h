/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: parts of husk that come with many libraries, loaded by who first needs them. They are
 * found relative to the program, in ../lib/husk; nothing else can be put in their place.
 */
#ifndef IMAGES_MODULE_MODULE_H
#define IMAGES_MODULE_MODULE_H

#include "lib/base/err.h"

/* What a module's table begins with. */
struct module {
	const char *version; /* HUSK_VERSION: both sides are of one build */
};

/*
 * Loads @name, "husk-X.so", for the rest of the process. *ret is the table that it calls @table.
 * 0, or -errno with @e, which says how to mend it.
 */
int module_load(const char *name, const char *table, const struct module **ret, struct err *e);

#endif
