/* SPDX-License-Identifier: Apache-2.0 */
/* What a stage1's stats entrypoint prints, into the table that people see. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "host/cli/format/stats.h"
#include "lib/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_json struct json_object *doc = NULL;
	cleanup_buf struct buf out;
	struct err e = ERR_INIT;
	buf_init(&out, (size_t)64 * 1024);
	int r = stats_parse((const char *)data, size, &doc, &e);
	if ((r < 0) != (e.text[0] != '\0'))
		abort();
	if (r < 0)
		return 0;
	if (stats_format(doc, true, &out) < 0)
		abort(); /* a row for each of the apps and the three processes fits */
	for (size_t i = 0; i < buf_len(&out); i++) {
		char c = buf_data(&out)[i];
		if (c != '\n' && c != '\t' && (c < 0x20 || c > 0x7e))
			abort();
	}
	for (size_t i = 0; i < stats_n_apps(doc); i++)
		stats_app_error(doc, i);
	return 0;
}
