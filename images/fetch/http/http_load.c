/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl comes with some forty libraries, which take longer to load than everything else that husk
 * does before a pod's machine starts. So what needs it is a module of its own, loaded by the first
 * download. It is part of husk, found relative to it; nothing else can be put in its place.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "images/fetch/http/http.h"
#include "lib/os/path.h"

#define MODULE_FROM_SELF "../lib/husk/husk-http.so"

typedef int (*get_fn)(const struct http_request *q, const struct fetch_options *o,
		      struct http_result *ret, struct err *e);

static int load_module(get_fn *ret, struct err *e)
{
	char path[PATH_MAX];
	int r = path_from_self(MODULE_FROM_SELF, path, sizeof(path));
	if (r < 0)
		return err_sys(e, r, "cannot find " MODULE_FROM_SELF " (install husk anew)");
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *symbol = module ? dlsym(module, "http_get_here") : NULL;
	if (!symbol)
		return err_set(e, -ELIBACC, "cannot load %s: %s", path, dlerror());
	memcpy(ret, &symbol,
	       sizeof(*ret)); /* ISO C knows no conversion; POSIX demands that this works */
	return 0;
}

int http_get(const struct http_request *q, const struct fetch_options *o, struct http_result *ret,
	     struct err *e)
{
	static get_fn get; /* once per process */
	int r = get ? 0 : load_module(&get, e);
	return r < 0 ? r : get(q, o, ret, e);
}
