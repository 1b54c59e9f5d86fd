/* SPDX-License-Identifier: Apache-2.0 */
/* Of husk: the functions of the module (images_module.h), which is loaded by the first of them. */
#include "images/images.h"
#include "images/load/images_module.h"

static int load(const struct images_module **ret, struct err *e)
{
	static const struct module *loaded; /* once per process */
	int r = loaded ? 0 : module_load("husk-images.so", "images_module", &loaded, e);
	*ret = (const struct images_module *)loaded;
	return r;
}

int images_check_module(struct err *e)
{
	const struct images_module *m;
	return load(&m, e);
}

/* Defines the function @name with @params, whose names, beginning with "e", are @args. */
#define FORWARD(name, params, ...)                       \
	int name params                                  \
	{                                                \
		const struct images_module *m;           \
		int r = load(&m, e);                     \
		return r < 0 ? r : m->name(__VA_ARGS__); \
	}

FORWARD(fetch_to_store,
	(struct store * s, const struct fetch_request *q, struct fetched *ret, struct err *e), s, q,
	ret, e)
FORWARD(render_confined, (const struct render_job *job, struct render_result *ret, struct err *e),
	job, ret, e)
FORWARD(render_check_confined, (const struct render_job *job, struct err *e), job, e)
FORWARD(export_confined, (const struct export_job *job, struct export_report *ret, struct err *e),
	job, ret, e)
FORWARD(extract_image, (const struct extract_job *job, struct unpack_report *ret, struct err *e),
	job, ret, e)
FORWARD(copy_open_image, (const struct image *image, int out, struct err *e), image, out, e)
FORWARD(appc_find_keys,
	(const char *prefix, const struct fetch_options *o, struct strv *ret, struct err *e),
	prefix, o, ret, e)
FORWARD(appc_download_key,
	(const char *url, const struct fetch_options *o, char **ret, size_t *ret_len,
	 struct err *e),
	url, o, ret, ret_len, e)
FORWARD(trust_key_inspect,
	(const char *text, size_t len, const char *tmp_dir, struct trust_key *ret, struct err *e),
	text, len, tmp_dir, ret, e)
FORWARD(keystore_add,
	(const char *local_dir, const char *prefix, const struct trust_key *key,
	 char ret_path[PATH_MAX], struct err *e),
	local_dir, prefix, key, ret_path, e)
