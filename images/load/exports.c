/* SPDX-License-Identifier: Apache-2.0 */
/* Of the module: what it has. */
#include "images/load/images_module.h"

const struct images_module images_module = {
	.module = { .version = HUSK_VERSION },
	.fetch_to_store = fetch_to_store,
	.render_confined = render_confined,
	.render_check_confined = render_check_confined,
	.export_confined = export_confined,
	.extract_image = extract_image,
	.copy_open_image = copy_open_image,
	.appc_find_keys = appc_find_keys,
	.appc_download_key = appc_download_key,
	.trust_key_inspect = trust_key_inspect,
	.keystore_add = keystore_add,
};
