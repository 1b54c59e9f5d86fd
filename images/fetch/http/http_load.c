/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl comes with some twenty libraries that nothing else here needs, and that take a third as
 * long to load as a small image to import. So what needs it is a module of its own, which the first
 * download loads.
 */
#include "images/fetch/http/http.h"
#include "images/module/module.h"

int http_get(const struct http_request *q, const struct fetch_options *o, struct http_result *ret,
	     struct err *e)
{
	static const struct module *loaded; /* once per process */
	int r = loaded ? 0 : module_load("husk-http.so", "http_module", &loaded, e);
	return r < 0 ? r : ((const struct http_module *)loaded)->get(q, o, ret, e);
}
