/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one loop over headers. A header is followed by its content, padded to whole
 * blocks. 'x' (pax) and 'L'/'K' (GNU) members carry names and sizes for the next real header and
 * are collected in struct pending; a real header consumes them. The archive ends at a zero block or
 * where the file ends on a header boundary.
 *
 * All arithmetic is on sizes checked against the file's size first, so nothing can wrap.
 */
#include "host/fetch/tar_index.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"

/* Offsets and lengths of header fields. */
enum {
	NAME = 0,
	NAME_LEN = 100,
	SIZE = 124,
	SIZE_LEN = 12,
	CHECKSUM = 148,
	CHECKSUM_LEN = 8,
	TYPE = 156,
	LINK = 157,
	LINK_LEN = 100,
	MAGIC = 257,
	PREFIX = 345,
	PREFIX_LEN = 155,
};

/* A regular file, or a link if @link is not NULL. Strings live in the index. */
struct entry {
	char *name;
	char *link;
	uint64_t offset;
	uint64_t size;
};

struct tar_index {
	struct entry *entries;
	size_t n;
	size_t alloc;
};

/* What extended headers said about the next member. */
struct pending {
	char *name;
	char *link;
	bool has_size;
	uint64_t size;
};

struct scan {
	tar_read_fn read;
	void *ctx;
	uint64_t size;
	struct tar_index *index;
	struct pending pending;
	struct err *e;
};

static void pending_reset(struct pending *p)
{
	free(p->name);
	free(p->link);
	*p = (struct pending){ 0 };
}

static void index_deinit(struct tar_index *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->entries[i].name);
		free(t->entries[i].link);
	}
	free(t->entries);
	*t = (struct tar_index){ 0 };
}

void tar_index_free(struct tar_index *t)
{
	if (!t)
		return;
	index_deinit(t);
	free(t);
}

/* An octal field, or GNU base-256 for sizes of 8 GiB and more. -EBADMSG if it is neither. */
static int parse_number(const unsigned char *field, size_t len, uint64_t *ret)
{
	uint64_t n = 0;
	size_t i = 0;
	if (field[0] == 0x80) {
		for (i = 1; i < len; i++) {
			if (n >> 55)
				return -EBADMSG;
			n = n << 8 | field[i];
		}
		*ret = n;
		return 0;
	}
	while (i < len && field[i] == ' ')
		i++;
	for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
		n = n << 3 | (uint64_t)(field[i] - '0');
	for (; i < len; i++)
		if (field[i] != ' ' && field[i] != '\0')
			return -EBADMSG;
	*ret = n;
	return 0;
}

bool tar_is_header(const unsigned char *block)
{
	uint64_t want, sum = 0;
	if (parse_number(block + CHECKSUM, CHECKSUM_LEN, &want) < 0)
		return false;
	for (size_t i = 0; i < TAR_BLOCK_SIZE; i++)
		sum += i >= CHECKSUM && i < CHECKSUM + CHECKSUM_LEN ? ' ' : block[i];
	return sum == want;
}

static bool is_zero(const unsigned char *block)
{
	for (size_t i = 0; i < TAR_BLOCK_SIZE; i++)
		if (block[i])
			return false;
	return true;
}

/* A name of the archive without "./" in front and slashes behind. NULL if memory is short. */
static char *normal_name(const char *s, size_t len)
{
	while (len >= 2 && s[0] == '.' && s[1] == '/')
		s += 2, len -= 2;
	while (len > 0 && s[len - 1] == '/')
		len--;
	return strndup(s, len);
}

/* The header's own name: "prefix/name" in ustar headers, else the name field. */
static char *header_name(const unsigned char *h)
{
	char joined[PREFIX_LEN + NAME_LEN + 2];
	size_t n = 0;
	if (memcmp(h + MAGIC, "ustar\0", 6) == 0 && h[PREFIX]) {
		n = strnlen((const char *)h + PREFIX, PREFIX_LEN);
		memcpy(joined, h + PREFIX, n);
		joined[n++] = '/';
	}
	size_t len = strnlen((const char *)h + NAME, NAME_LEN);
	memcpy(joined + n, h + NAME, len);
	return normal_name(joined, n + len);
}

static int set_name(char **name, const char *text, size_t len)
{
	free(*name);
	*name = normal_name(text, len);
	return *name ? 0 : -ENOMEM;
}

/* Takes one record "keyword=value" of a pax header. */
static int pax_record(struct pending *p, const char *record, size_t len)
{
	const char *equals = memchr(record, '=', len);
	if (!equals)
		return -EBADMSG;
	size_t key = (size_t)(equals - record), value_len = len - key - 1;
	const char *value = equals + 1;
	if (key == 4 && memcmp(record, "path", key) == 0)
		return set_name(&p->name, value, value_len);
	if (key == 8 && memcmp(record, "linkpath", key) == 0)
		return set_name(&p->link, value, value_len);
	if (key == 4 && memcmp(record, "size", key) == 0) {
		char digits[24];
		if (value_len >= sizeof(digits))
			return -EBADMSG;
		memcpy(digits, value, value_len);
		digits[value_len] = '\0';
		p->has_size = true;
		return num_parse_u64(digits, INT64_MAX, &p->size) < 0 ? -EBADMSG : 0;
	}
	/* A sparse member's content is not one range. */
	return key >= 10 && memcmp(record, "GNU.sparse", 10) == 0 ? -EBADMSG : 0;
}

/* Splits a pax header into records "LEN keyword=value\n". */
static int pax_records(struct pending *p, const char *text, size_t len)
{
	while (len > 0 && *text) {
		size_t n = 0, i = 0;
		while (i < len && i < 8 && text[i] >= '0' && text[i] <= '9')
			n = n * 10 + (size_t)(text[i++] - '0');
		if (i == 0 || i == len || text[i] != ' ' || n > len || n < i + 2 ||
		    text[n - 1] != '\n')
			return -EBADMSG;
		int r = pax_record(p, text + i + 1, n - i - 2);
		if (r < 0)
			return r;
		text += n;
		len -= n;
	}
	return 0;
}

/* Reads the content of an extended header into memory and takes it in. */
static int extended(struct scan *s, char type, uint64_t offset, uint64_t size)
{
	if (size > TAR_INDEX_PAX_MAX)
		return err_set(s->e, -E2BIG, "an extended tar header is larger than %zu bytes",
			       TAR_INDEX_PAX_MAX);
	cleanup_free char *text = malloc((size_t)size + 1);
	if (!text)
		return err_set(s->e, -ENOMEM, "out of memory");
	int r = s->read(s->ctx, text, (size_t)size, offset);
	if (r < 0)
		return err_sys(s->e, r, "cannot read");
	text[size] = '\0';
	if (type == 'x') {
		r = pax_records(&s->pending, text, (size_t)size);
	} else {
		r = set_name(type == 'L' ? &s->pending.name : &s->pending.link, text,
			     strnlen(text, (size_t)size));
	}
	return r < 0 ? err_set(s->e, r, "an extended tar header is malformed or not supported") : 0;
}

/* Room for one more entry. */
static int grow(struct scan *s)
{
	struct tar_index *t = s->index;
	if (t->entries && t->n < t->alloc)
		return 0;
	if (t->n >= TAR_INDEX_ENTRIES_MAX)
		return err_set(s->e, -E2BIG, "the archive has more than %zu members",
			       TAR_INDEX_ENTRIES_MAX);
	size_t alloc = MIN(MAX(2 * t->alloc, (size_t)64), TAR_INDEX_ENTRIES_MAX);
	struct entry *entries = reallocarray(t->entries, alloc, sizeof(*entries));
	if (!entries)
		return err_set(s->e, -ENOMEM, "out of memory");
	t->entries = entries;
	t->alloc = alloc;
	return 0;
}

/* Takes a member that is not an extended header: files and links go to the index. */
static int member(struct scan *s, const unsigned char *h, uint64_t offset, uint64_t size)
{
	char type = (char)h[TYPE];
	bool is_link = type == '1' || type == '2';
	struct pending *p = &s->pending;
	if (!is_link && type != '0' && type != '\0' && type != '7')
		return 0;
	if (!p->name)
		p->name = header_name(h);
	if (is_link && !p->link)
		set_name(&p->link, (const char *)h + LINK,
			 strnlen((const char *)h + LINK, LINK_LEN));
	if (!p->name || (is_link && !p->link))
		return err_set(s->e, -ENOMEM, "out of memory");
	if (strlen(p->name) > TAR_INDEX_NAME_MAX ||
	    (is_link && strlen(p->link) > TAR_INDEX_NAME_MAX))
		return 0;
	int r = grow(s);
	if (r < 0 || !s->index->entries)
		return r;
	struct entry *entry = &s->index->entries[s->index->n++];
	*entry = (struct entry){ .offset = offset, .size = size };
	entry->name = TAKE_PTR(p->name);
	if (is_link)
		entry->link = TAKE_PTR(p->link);
	return 0;
}

/* Takes one header; *pos moves behind it and its content. */
static int header(struct scan *s, const unsigned char *h, uint64_t *pos)
{
	char type = (char)h[TYPE];
	bool is_extension = type == 'x' || type == 'L' || type == 'K';
	bool has_content = type != '1' && type != '2' && type != '5';
	uint64_t size, content = *pos + TAR_BLOCK_SIZE;
	if (!tar_is_header(h) || parse_number(h + SIZE, SIZE_LEN, &size) < 0 || type == 'S')
		return err_set(s->e, -EBADMSG, "damaged or unsupported tar header at byte %llu",
			       (unsigned long long)*pos);
	if (!is_extension && type != 'g' && s->pending.has_size)
		size = s->pending.size;
	if (!has_content)
		size = 0;
	if (size > s->size - content)
		return err_set(s->e, -EBADMSG,
			       "the archive is cut off: a member of %llu bytes at byte %llu of "
			       "%llu (fetch it again)",
			       (unsigned long long)size, (unsigned long long)*pos,
			       (unsigned long long)s->size);
	int r = 0;
	if (is_extension) {
		r = extended(s, type, content, size);
	} else if (type != 'g') {
		r = member(s, h, content, size);
		pending_reset(&s->pending);
	}
	*pos = content + (size + TAR_BLOCK_SIZE - 1) / TAR_BLOCK_SIZE * TAR_BLOCK_SIZE;
	return r;
}

static int scan_all(struct scan *s)
{
	uint64_t pos = 0;
	size_t headers = 0;
	while (pos + TAR_BLOCK_SIZE <= s->size) {
		unsigned char h[TAR_BLOCK_SIZE];
		int r = s->read(s->ctx, h, sizeof(h), pos);
		if (r < 0)
			return err_sys(s->e, r, "cannot read");
		if (is_zero(h))
			return 0;
		if (++headers > TAR_INDEX_HEADERS_MAX)
			return err_set(s->e, -E2BIG, "the archive has more than %zu tar headers",
				       TAR_INDEX_HEADERS_MAX);
		r = header(s, h, &pos);
		if (r < 0)
			return r;
	}
	return 0;
}

int tar_index_new(tar_read_fn read, void *ctx, uint64_t size, struct tar_index **ret, struct err *e)
{
	CLEANUP(index_deinit) struct tar_index index = { 0 };
	struct scan s = {
		.read = read,
		.ctx = ctx,
		.size = size > INT64_MAX ? INT64_MAX : size,
		.index = &index,
		.e = e,
	};
	int r = scan_all(&s);
	pending_reset(&s.pending);
	if (r < 0)
		return r;
	struct tar_index *t = malloc(sizeof(*t));
	if (!t)
		return err_set(e, -ENOMEM, "out of memory");
	*t = index;
	index = (struct tar_index){ 0 };
	*ret = t;
	return 0;
}

static const struct entry *find_entry(const struct tar_index *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->entries[i].name, name) == 0)
			return &t->entries[i];
	return NULL;
}

/* Where a link leads: hard links are named from the top, symbolic ones from their directory. */
static const struct entry *follow(const struct tar_index *t, const struct entry *from)
{
	const struct entry *to = find_entry(t, from->link);
	if (to)
		return to;
	char path[2 * TAR_INDEX_NAME_MAX + 2] = "";
	const char *slash = strrchr(from->name, '/');
	size_t dir = slash ? (size_t)(slash - from->name) : 0;
	memcpy(path, from->name, dir);
	const char *link = from->link;
	while (str_starts(link, "../") && dir > 0) {
		while (dir > 0 && path[--dir] != '/')
			;
		link += 3;
	}
	if (dir > 0)
		path[dir++] = '/';
	str_copy(path + dir, sizeof(path) - dir, link);
	return find_entry(t, path);
}

int tar_index_find(const struct tar_index *t, const char *name, uint64_t *ret_offset,
		   uint64_t *ret_size)
{
	while (str_starts(name, "./"))
		name += 2;
	const struct entry *entry = find_entry(t, name);
	if (entry && entry->link)
		entry = follow(t, entry);
	if (!entry || entry->link)
		return -ENOENT;
	*ret_offset = entry->offset;
	*ret_size = entry->size;
	return 0;
}
