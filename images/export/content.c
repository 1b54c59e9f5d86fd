/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/content.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/macros.h"

void content_map_deinit(struct content_map *m)
{
	free(m->v);
	*m = CONTENT_MAP_INIT;
}

static int content_append(struct content_map *m, const struct content_piece *piece)
{
	if (m->n >= CONTENT_PIECES_MAX)
		return -E2BIG;
	if (!GROW(m->v, m->n))
		return -ENOMEM;
	m->v[m->n++] = *piece;
	return 0;
}

/* True if the bytes at @at follow those of @last, wherever the reader has them. */
static bool continues(const struct content_piece *last, uint64_t at)
{
	if (last->at == CONTENT_ZEROS || at == CONTENT_ZEROS)
		return last->at == at;
	return last->at + last->len == at;
}

int content_map_add(struct content_map *m, uint64_t offset, uint64_t len, uint64_t at)
{
	struct content_piece *last = m->n > 0 ? &m->v[m->n - 1] : NULL;
	if (len == 0)
		return 0;
	if (offset + len < offset || (last && offset < last->offset + last->len))
		return -EBADMSG;
	if (last && offset == last->offset + last->len && continues(last, at)) {
		last->len += len;
		return 0;
	}
	return content_append(m, &(struct content_piece){ offset, len, at });
}

void content_map_clip(struct content_map *m, uint64_t size)
{
	while (m->n > 0 && m->v[m->n - 1].offset >= size)
		m->n--;
	if (m->n == 0)
		return;
	struct content_piece *last = &m->v[m->n - 1];
	last->len = MIN(last->len, size - last->offset);
}

int content_map_fill(struct content_map *m, uint64_t size, uint64_t min)
{
	CLEANUP(content_map_deinit) struct content_map full = CONTENT_MAP_INIT;
	uint64_t end = 0;
	int r = 0;
	for (size_t i = 0; i <= m->n && r == 0; i++) {
		uint64_t next = i < m->n ? m->v[i].offset : size;
		if (next - end < min)
			r = content_map_add(&full, end, next - end, CONTENT_ZEROS);
		if (i == m->n || r < 0)
			break;
		r = content_map_add(&full, m->v[i].offset, m->v[i].len, m->v[i].at);
		end = next + m->v[i].len;
	}
	if (r < 0)
		return r;
	struct content_map old = *m;
	*m = full;
	full = old;
	return 0;
}
