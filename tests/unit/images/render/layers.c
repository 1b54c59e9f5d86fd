/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/images/render/layers.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "tests/support/cmocka.h"

#define WORD_MAX 8192

void blob_deinit(struct blob *b)
{
	free(b->data);
	*b = (struct blob){ NULL, 0 };
}

static int hex_value(char c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* Takes the next word of *at, with its %HH decoded, into @out. False at the end. */
static bool next_word(const char **at, char out[WORD_MAX])
{
	const char *p = *at;
	size_t n = 0;
	while (*p == ' ')
		p++;
	if (!*p)
		return false;
	for (; *p && *p != ' '; p++) {
		assert_true(n + 1 < WORD_MAX);
		if (*p == '%') {
			out[n++] = (char)(hex_value(p[1]) << 4 | hex_value(p[2]));
			p += 2;
		} else {
			out[n++] = *p;
		}
	}
	out[n] = '\0';
	*at = p;
	return true;
}

/* One entry while its words are read. */
struct making {
	struct archive_entry *entry;
	char text[WORD_MAX];
	size_t text_len;
	size_t zeros;
	size_t hole;
};

static void set_attribute(struct making *m, const char *key, const char *value)
{
	struct archive_entry *e = m->entry;
	unsigned long n = strtoul(value, NULL, strcmp(key, "mode") == 0 ? 8 : 10);
	if (strcmp(key, "mode") == 0)
		archive_entry_set_perm(e, (mode_t)n);
	else if (strcmp(key, "uid") == 0)
		archive_entry_set_uid(e, (la_int64_t)n);
	else if (strcmp(key, "gid") == 0)
		archive_entry_set_gid(e, (la_int64_t)n);
	else if (strcmp(key, "mtime") == 0)
		archive_entry_set_mtime(e, strtol(value, NULL, 10), 0);
	else if (strcmp(key, "zeros") == 0)
		m->zeros = n;
	else if (strcmp(key, "hole") == 0)
		m->hole = n;
	else if (strcmp(key, "text") == 0)
		m->text_len = (size_t)snprintf(m->text, sizeof(m->text), "%s", value);
	else if (str_starts(key, "x:"))
		archive_entry_xattr_add_entry(e, key + 2, value, strlen(value));
	else if (strcmp(key, "dev") == 0) {
		const char *comma = strchr(value, ',');
		assert_non_null(comma);
		archive_entry_set_rdevmajor(e, n);
		archive_entry_set_rdevminor(e, strtoul(comma + 1, NULL, 10));
	} else if (strcmp(key, "to") != 0)
		fail_msg("unknown attribute %s", key);
}

static void set_type(struct making *m, char type)
{
	static const struct {
		char letter;
		unsigned int type;
	} types[] = { { 'd', AE_IFDIR }, { 'f', AE_IFREG }, { 'l', AE_IFLNK }, { 'h', AE_IFREG },
		      { 'c', AE_IFCHR }, { 'b', AE_IFBLK }, { 'p', AE_IFIFO } };
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].letter == type)
			archive_entry_set_filetype(m->entry, types[i].type);
	archive_entry_set_perm(m->entry, type == 'd' ? 0755 : 0644);
}

static void write_content(struct archive *a, const struct making *m)
{
	size_t size = m->hole + m->text_len + m->zeros;
	char *content = calloc(size + 1, 1);
	assert_non_null(content);
	memcpy(content + m->hole, m->text, m->text_len);
	assert_int_equal(archive_write_data(a, content, size), size);
	free(content);
}

static void make_entry(struct archive *a, const char *line)
{
	char word[WORD_MAX] = "", path[WORD_MAX] = "";
	struct making m = { .entry = archive_entry_new() };
	assert_true(next_word(&line, word));
	char type = word[0];
	set_type(&m, type);
	assert_true(next_word(&line, path));
	archive_entry_copy_pathname(m.entry, path);
	while (next_word(&line, word)) {
		char *equals = strchr(word, '=');
		assert_non_null(equals);
		*equals = '\0';
		if (strcmp(word, "to") == 0 && type == 'h')
			archive_entry_copy_hardlink(m.entry, equals + 1);
		else if (strcmp(word, "to") == 0)
			archive_entry_copy_symlink(m.entry, equals + 1);
		else
			set_attribute(&m, word, equals + 1);
	}
	size_t size = m.hole + m.text_len + m.zeros;
	archive_entry_set_size(m.entry, (la_int64_t)size);
	if (m.hole > 0)
		archive_entry_sparse_add_entry(m.entry, (la_int64_t)m.hole,
					       (la_int64_t)(m.text_len + m.zeros));
	int r = archive_write_header(a, m.entry);
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		fail_msg("%s: %s", path, archive_error_string(a));
	if (type == 'f')
		write_content(a, &m);
	archive_entry_free(m.entry);
}

/* Closes @a, which then has written *@used bytes to @mem, and hands them over. */
static void finish(struct archive *a, void *mem, const size_t *used, struct blob *ret)
{
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	archive_write_free(a);
	size_t len = *used;
	ret->data = malloc(MAX(len, (size_t)1));
	assert_non_null(ret->data);
	memcpy(ret->data, mem, len);
	ret->len = len;
	free(mem);
}

void layers_make(const char *const *lines, const char *format, struct blob *ret)
{
	size_t used = 0;
	void *mem = malloc(LAYERS_TAR_MAX);
	struct archive *a = archive_write_new();
	assert_non_null(mem);
	assert_int_equal(archive_write_set_format_by_name(a, format), ARCHIVE_OK);
	archive_write_set_options(a, strcmp(format, "pax") == 0 ? "hdrcharset=BINARY" : NULL);
	archive_write_set_bytes_per_block(a, 0);
	assert_int_equal(archive_write_open_memory(a, mem, LAYERS_TAR_MAX, &used), ARCHIVE_OK);
	for (; *lines; lines++)
		make_entry(a, *lines);
	finish(a, mem, &used, ret);
}

void layers_compress(const struct blob *in, const char *filter, struct blob *ret)
{
	size_t used = 0;
	void *mem = malloc(LAYERS_TAR_MAX);
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();
	assert_non_null(mem);
	archive_write_set_format_raw(a);
	assert_int_equal(archive_write_add_filter_by_name(a, filter), ARCHIVE_OK);
	archive_write_set_bytes_per_block(a, 0);
	assert_int_equal(archive_write_open_memory(a, mem, LAYERS_TAR_MAX, &used), ARCHIVE_OK);
	archive_entry_set_filetype(e, AE_IFREG);
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	assert_int_equal(archive_write_data(a, in->data, in->len), in->len);
	archive_entry_free(e);
	finish(a, mem, &used, ret);
}

/* Type 0: as it is, 1: one byte, @len times. */
static void put_block(int fd, unsigned int type, const void *data, size_t len)
{
	size_t h = len << 3 | type << 1;
	const unsigned char head[] = { h & 0xff, h >> 8 & 0xff, h >> 16 & 0xff };
	assert_int_equal(fd_write_all(fd, head, sizeof(head)), 0);
	assert_int_equal(fd_write_all(fd, data, type == 1 ? 1 : len), 0);
}

void layers_frame(int fd, const struct blob *in, size_t zeros, unsigned char window)
{
	const size_t max = (size_t)128 * 1024;
	const unsigned char head[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, window };
	assert_int_equal(fd_write_all(fd, head, sizeof(head)), 0);
	for (size_t at = 0; at < in->len; at += max)
		put_block(fd, 0, in->data + at, MIN(in->len - at, max));
	for (size_t i = 0; i < zeros; i++)
		put_block(fd, 1, "", max);
	assert_int_equal(fd_write_all(fd, "\1\0\0", 3), 0); /* the last one, of nothing */
}

void layers_span(const void *data, size_t len, struct span *ret)
{
	int fd = memfd_create("layer", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, len), 0);
	*ret = (struct span){ .fd = fd, .size = len };
}
