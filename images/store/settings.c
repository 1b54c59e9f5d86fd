/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/settings.h"

#include <errno.h>
#include <string.h>

#include "images/render/render.h"
#include "lib/base/num.h"
#include "lib/base/quantity.h"

void store_settings_init(struct store_settings *s)
{
	*s = (struct store_settings){
		.bytes_max = RENDER_BYTES_MAX,
		.compression = RENDER_PLAIN,
	};
}

int store_settings_bytes_max(struct store_settings *s, const char *origin, const char *text,
			     struct err *e)
{
	uint64_t bytes = 0;
	if (size_parse(text, 0, STORE_BYTES_LIMIT, &bytes) < 0)
		return err_set(
			e, -EINVAL,
			"%s=\"%s\" is not a size of at most 1024Ti (give bytes, or 128Gi, 1Ti)",
			origin, text);
	s->bytes_max = bytes;
	return 0;
}

/* Takes "zstd:LEVEL" apart. */
static int parse_level(const char *text, int *ret)
{
	uint64_t level = 0;
	if (num_parse_u64(text, RENDER_ZSTD_LEVEL_MAX, &level) < 0 || level == 0)
		return -EINVAL;
	*ret = (int)level;
	return 0;
}

int store_settings_compression(struct store_settings *s, const char *origin, const char *text,
			       struct err *e)
{
	static const struct {
		const char *name;
		enum render_compression compression;
	} names[] = {
		{ "plain", RENDER_PLAIN },
		{ "lz4", RENDER_LZ4 },
		{ "zstd", RENDER_ZSTD },
	};
	int level = 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i].name);
		if (strncmp(text, names[i].name, len) != 0)
			continue;
		bool has_level = names[i].compression == RENDER_ZSTD && text[len] == ':';
		if (text[len] && (!has_level || parse_level(text + len + 1, &level) < 0))
			break;
		s->compression = names[i].compression;
		s->level = level;
		return 0;
	}
	return err_set(
		e, -EINVAL,
		"%s=\"%s\" is not a compression (give plain, lz4, zstd, or zstd:LEVEL with a level "
		"from 1 to %d)",
		origin, text, RENDER_ZSTD_LEVEL_MAX);
}
