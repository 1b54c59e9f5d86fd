/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of apps, both ways: any bytes, fed in any pieces, become records that are read as the same
 * bytes; any line is read as a record within its limits, or refused.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/crilog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX ((size_t)65536)

static char back[2 * INPUT_MAX];
static size_t n_back;

static void check(bool property)
{
	if (!property)
		abort();
}

static int take(void *ctx, const char *record, size_t len)
{
	struct crilog_record r;
	(void)ctx;
	check(len <= CRILOG_RECORD_MAX && record[len - 1] == '\n');
	check(crilog_parse(record, len - 1, &r) == 0 && r.len <= CRILOG_CONTENT_MAX);
	memcpy(back + n_back, r.content, r.len);
	n_back += r.len;
	if (!r.partial)
		back[n_back++] = '\n';
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct crilog_record r;
	struct crilog c;
	if (size > INPUT_MAX)
		return 0;
	const char *text = (const char *)data;
	if (crilog_parse(text, size, &r) == 0)
		check(r.content >= text && r.content + r.len == text + size);
	size_t step = size > 0 ? (size_t)data[0] + 1 : 1;
	crilog_init(&c, CRILOG_STDOUT);
	n_back = 0;
	for (size_t at = 0; at < size; at += step)
		check(crilog_feed(&c, (int64_t)at, text + at, MIN(step, size - at), take, NULL) ==
		      0);
	check(crilog_end(&c, 0, take, NULL) == 0);
	crilog_deinit(&c);
	check(n_back == size && memcmp(back, text, size) == 0);
	return 0;
}
