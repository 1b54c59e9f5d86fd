/* SPDX-License-Identifier: Apache-2.0 */
#include "images/module/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lib/os/path.h"

#define MODULES_FROM_SELF "../lib/husk"
#define AGAIN             "(install husk again)"

int module_load(const char *name, const char *table, const struct module **ret, struct err *e)
{
	char from_self[NAME_MAX], path[PATH_MAX];
	snprintf(from_self, sizeof(from_self), MODULES_FROM_SELF "/%s", name);
	int r = path_from_self(from_self, path, sizeof(path));
	if (r < 0)
		return err_sys(e, r, "cannot find %s, a part of husk " AGAIN, name);
	/*
	 * The module itself is bound at once (-z now); its libraries as where a program has them.
	 */
	void *file = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	const struct module *m = file ? dlsym(file, table) : NULL;
	if (!m)
		return err_set(e, -ELIBACC, "cannot load %s: %s " AGAIN, path, dlerror());
	if (strcmp(m->version, HUSK_VERSION) != 0)
		return err_set(e, -ELIBBAD, "%s is of husk %s, this is " HUSK_VERSION " " AGAIN,
			       path, m->version);
	*ret = m;
	return 0;
}
