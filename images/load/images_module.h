/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reads, fetches, renders and writes images is a module of its own, because the libraries that
 * it takes come with twenty others: to load them costs more than all that most commands do. husk
 * is linked with forward.c, whose functions have the names and contracts of the module's; the first
 * call loads it. Tests are linked with the module's parts themselves.
 */
#ifndef IMAGES_LOAD_IMAGES_MODULE_H
#define IMAGES_LOAD_IMAGES_MODULE_H

#include "images/appc/keys.h"
#include "images/appc/trust/keystore.h"
#include "images/export/copy.h"
#include "images/export/export.h"
#include "images/export/extract.h"
#include "images/fetch/fetch.h"
#include "images/module/module.h"
#include "images/render/render.h"

/* The functions of the module, under their names. */
struct images_module {
	struct module module;
	__typeof__(fetch_to_store) *fetch_to_store;
	__typeof__(render_confined) *render_confined;
	__typeof__(render_check_confined) *render_check_confined;
	__typeof__(export_confined) *export_confined;
	__typeof__(extract_image) *extract_image;
	__typeof__(copy_open_image) *copy_open_image;
	__typeof__(appc_find_keys) *appc_find_keys;
	__typeof__(appc_download_key) *appc_download_key;
	__typeof__(trust_key_inspect) *trust_key_inspect;
	__typeof__(keystore_add) *keystore_add;
};

/* The module's own. */
extern const struct images_module images_module;

#endif
