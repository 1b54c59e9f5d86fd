/* SPDX-License-Identifier: Apache-2.0 */
/* What a stage1's stats entrypoint prints, into the table that people see. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/format/stats.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

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
	cleanup_free char *text = strndup(buf_data(&out), buf_len(&out));
	for (char *c = text; c && *(c += strcspn(c, "\n\t")); c++)
		*c = ' ';
	if (!text || !str_is_text(text, buf_len(&out)))
		abort(); /* but for lines and tabs nothing in it moves a cursor */
	for (size_t i = 0; i < stats_n_apps(doc); i++)
		stats_app_error(doc, i);
	return 0;
}
