/* SPDX-License-Identifier: Apache-2.0 */
#include "images/render/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/base/str.h"

#define ROOTFS   "rootfs" /* names of the appc specification */
#define MANIFEST "manifest"

struct layer {
	struct stream *stream;
	enum layer_kind kind;
	struct archive *tar;
	struct archive_entry *entry; /* borrowed from @tar */
	const void *first;           /* what the stream began with, until libarchive asks for it */
	size_t first_len;
	bool empty; /* nothing at all, not even the end of a tar */
	uint32_t n_entries;
	uint64_t data_end; /* behind the last piece of the current entry */
	struct err stream_err;
	bool has_manifest; /* of an ACI */
	bool has_rootfs;
	char path[LAYER_PATH_MAX]; /* of the current entry, cleaned */
	char hardlink[LAYER_PATH_MAX];
};

static la_ssize_t read_stream(struct archive *a, void *ctx, const void **ret)
{
	struct layer *l = ctx;
	size_t len = l->first_len;
	if (len > 0) {
		*ret = l->first;
		l->first_len = 0;
		return (la_ssize_t)len;
	}
	int r = stream_next(l->stream, ret, &len, &l->stream_err);
	if (r < 0) {
		archive_set_error(a, -r, "%s", l->stream_err.text);
		return -1;
	}
	return r == STREAM_END ? 0 : (la_ssize_t)len;
}

/* The failure of libarchive, or of the stream below it. */
static int tar_error(struct layer *l, struct err *e)
{
	if (l->stream_err.code)
		return err_set(e, l->stream_err.code, "%s", l->stream_err.text);
	if (archive_errno(l->tar) == ENOMEM)
		return err_set(e, -ENOMEM, "out of memory while reading the tar");
	const char *text = archive_error_string(l->tar);
	return err_set(e, -EBADMSG, "damaged tar: %s", text ? text : "a header makes no sense");
}

void layer_clean_path(const char *path, char *out)
{
	size_t len = 0;
	while (*path) {
		size_t n = strcspn(path, "/");
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (len > 0 && out[--len] != '/')
				;
		} else if (n > 0 && !(n == 1 && path[0] == '.')) {
			if (len > 0)
				out[len++] = '/';
			memcpy(out + len, path, n);
			len += n;
		}
		path += n + (path[n] == '/');
	}
	out[len] = '\0';
}

static int open_tar(struct layer *l, struct err *e)
{
	l->tar = archive_read_new();
	if (!l->tar)
		return err_set(e, -ENOMEM, "out of memory");
	archive_read_support_format_tar(l->tar);
	return archive_read_open(l->tar, l, NULL, read_stream, NULL) != ARCHIVE_OK ? tar_error(l, e)
										   : 0;
}

int layer_new(const struct span *span, enum layer_kind kind, uint64_t bytes_max, struct layer **ret,
	      struct err *e)
{
	CLEANUP(layer_freep) struct layer *l = calloc(1, sizeof(*l));
	if (!l)
		return err_set(e, -ENOMEM, "out of memory");
	l->kind = kind;
	int r = stream_new(span, kind != LAYER_OCI, bytes_max, &l->stream, e);
	if (r == 0)
		r = stream_next(l->stream, &l->first, &l->first_len, e);
	if (r < 0)
		return r;
	/* Some tools write a changeset without a change as nothing; a root is something. */
	l->empty = r == STREAM_END && kind == LAYER_OCI;
	r = l->empty ? 0 : open_tar(l, e);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(l);
	return 0;
}

void layer_free(struct layer *l)
{
	if (!l)
		return;
	archive_read_free(l->tar);
	stream_free(l->stream);
	free(l);
}

uint64_t layer_bytes(const struct layer *l)
{
	return stream_bytes(l->stream);
}

bool layer_keeps_xattr(const char *name)
{
	if (str_starts(name, "trusted.overlay.") || strcmp(name, "security.selinux") == 0)
		return false;
	const char *dot = strchr(name, '.');
	return dot && dot[1] &&
	       (str_starts(name, "user.") || str_starts(name, "trusted.") ||
		str_starts(name, "security."));
}

static int take_xattrs(struct archive_entry *from, struct layer_entry *to, struct err *e)
{
	const char *name;
	const void *value;
	size_t size;
	archive_entry_xattr_reset(from);
	while (archive_entry_xattr_next(from, &name, &value, &size) == ARCHIVE_OK) {
		if (!name || !layer_keeps_xattr(name))
			continue;
		if (strlen(name) > LAYER_XATTR_NAME_MAX || size > LAYER_XATTR_VALUE_MAX)
			return err_set(e, -E2BIG,
				       "entry \"%.200s\": an extended attribute has a name of more "
				       "than %zu or a value of more than %zu bytes",
				       to->path, LAYER_XATTR_NAME_MAX, LAYER_XATTR_VALUE_MAX);
		/*
		 * Each is there twice, in two encodings, if libarchive or star(1) wrote it. The
		 * last one of the tar counts, and comes first here.
		 */
		size_t i = 0;
		while (i < to->n_xattrs && strcmp(to->xattrs[i].name, name) != 0)
			i++;
		if (i < to->n_xattrs)
			continue;
		if (i == LAYER_XATTRS_MAX)
			return err_set(e, -E2BIG,
				       "entry \"%.200s\" has more than %zu extended attributes",
				       to->path, LAYER_XATTRS_MAX);
		to->xattrs[to->n_xattrs++] = (struct layer_xattr){ name, value, size };
	}
	return 0;
}

static uint32_t clamp_time(time_t t)
{
	return t < 0 ? 0 : (uint32_t)MIN((uint64_t)t, (uint64_t)UINT32_MAX);
}

/* Fields that only some types have. */
static int take_type(struct archive_entry *from, struct layer_entry *to, struct err *e)
{
	if (S_ISREG(to->mode)) {
		to->size = (uint64_t)MAX(archive_entry_size(from), 0);
	} else if (S_ISLNK(to->mode)) {
		to->target = archive_entry_symlink(from);
		if (!to->target || !*to->target || strlen(to->target) > LAYER_TARGET_MAX)
			return err_set(e, -EBADMSG,
				       "entry \"%.200s\": the target of the symbolic link is empty "
				       "or longer than %zu bytes",
				       to->path, LAYER_TARGET_MAX);
		to->mode = S_IFLNK | 0777; /* as every link on Linux */
	} else if (S_ISCHR(to->mode) || S_ISBLK(to->mode)) {
		uint64_t major = (uint64_t)archive_entry_rdevmajor(from);
		uint64_t minor = (uint64_t)archive_entry_rdevminor(from);
		if (major > LAYER_DEVICE_MAJOR_MAX || minor > LAYER_DEVICE_MINOR_MAX)
			return err_set(e, -EBADMSG, "entry \"%.200s\": no such device number",
				       to->path);
		to->major = (uint32_t)major;
		to->minor = (uint32_t)minor;
	} else if (!S_ISDIR(to->mode) && !S_ISFIFO(to->mode) && !S_ISSOCK(to->mode)) {
		return err_set(e, -EBADMSG, "entry \"%.200s\" has an unknown type", to->path);
	}
	return 0;
}

static int take_owner(struct archive_entry *from, struct layer_entry *to, struct err *e)
{
	la_int64_t uid = archive_entry_uid(from), gid = archive_entry_gid(from);
	/* UINT32_MAX is "no change" to chown(2) and no identity. */
	if (uid < 0 || uid >= UINT32_MAX || gid < 0 || gid >= UINT32_MAX)
		return err_set(e, -EBADMSG, "entry \"%.200s\": owner out of range", to->path);
	to->uid = (uint32_t)uid;
	to->gid = (uint32_t)gid;
	return 0;
}

static int convert(struct archive_entry *from, struct layer_entry *to, struct err *e)
{
	to->path = archive_entry_pathname(from);
	if (!to->path || !*to->path)
		return err_set(e, -EBADMSG, "entry %u has no name", to->number);
	if (strlen(to->path) >= LAYER_PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "entry %u has a name of more than %zu bytes",
			       to->number, LAYER_PATH_MAX - 1);
	to->hardlink = archive_entry_hardlink(from);
	if (to->hardlink) {
		if (strlen(to->hardlink) >= LAYER_PATH_MAX)
			return err_set(e, -ENAMETOOLONG,
				       "entry %u links to a name of more than %zu bytes",
				       to->number, LAYER_PATH_MAX - 1);
		return 0;
	}
	to->mode = (uint32_t)archive_entry_filetype(from) |
		   ((uint32_t)archive_entry_perm(from) & 07777);
	to->mtime = clamp_time(archive_entry_mtime(from));
	int r = take_owner(from, to, e);
	if (r == 0)
		r = take_type(from, to, e);
	return r < 0 ? r : take_xattrs(from, to, e);
}

/* What is behind "rootfs" in a cleaned path: "" for itself, NULL if it is not there. */
static const char *below_rootfs(const char *path)
{
	const size_t len = sizeof(ROOTFS) - 1;
	if (strncmp(path, ROOTFS, len) != 0 || (path[len] && path[len] != '/'))
		return NULL;
	return path + len + (path[len] == '/');
}

/* Takes "rootfs" from the names of an entry. *ret_skip: the entry is not part of the tree. */
static int convert_aci(struct layer *l, struct layer_entry *to, bool *ret_skip, struct err *e)
{
	layer_clean_path(to->path, l->path);
	*ret_skip = !*l->path;
	if (*ret_skip)
		return 0;
	if (strcmp(l->path, MANIFEST) == 0 && S_ISREG(to->mode) && !l->has_manifest) {
		l->has_manifest = *ret_skip = true;
		return 0;
	}
	const char *below = below_rootfs(l->path);
	if (!below)
		return err_set(e, -EBADMSG,
			       "entry \"%.200s\": an ACI has one file " MANIFEST
			       " and the directory " ROOTFS ", nothing else",
			       to->path);
	l->has_rootfs = true;
	if (to->hardlink) {
		layer_clean_path(to->hardlink, l->hardlink);
		to->hardlink = below_rootfs(l->hardlink);
		if (!to->hardlink || !*to->hardlink)
			return err_set(e, -EBADMSG,
				       "entry \"%.200s\": a hard link that leads to nothing in "
				       "the directory " ROOTFS,
				       to->path);
	}
	to->path = *below ? below : ".";
	return 0;
}

/* What must have been in an ACI. */
static int check_end(const struct layer *l, struct err *e)
{
	if (l->kind != LAYER_ACI || (l->has_manifest && l->has_rootfs))
		return LAYER_END;
	return err_set(e, -EBADMSG, "no ACI: it has no %s", l->has_rootfs ? MANIFEST : ROOTFS);
}

/* Reads one header, of whatever entry. */
static int read_entry(struct layer *l, struct layer_entry *ret, struct err *e)
{
	if (l->empty)
		return check_end(l, e);
	int r = archive_read_next_header(l->tar, &l->entry);
	if (r == ARCHIVE_EOF)
		return check_end(l, e);
	/*
	 * ARCHIVE_WARN: a name that is not in the current character set (its bytes are kept), or
	 * an attribute that makes no sense (it is dropped).
	 */
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return tar_error(l, e);
	if (l->n_entries >= LAYER_ENTRIES_MAX)
		return err_set(e, -E2BIG, "more than %u entries", LAYER_ENTRIES_MAX);
	ret->number = l->n_entries++;
	ret->hardlink = ret->target = NULL;
	ret->mode = ret->uid = ret->gid = ret->mtime = ret->major = ret->minor = 0;
	ret->size = 0;
	ret->n_xattrs = 0;
	l->data_end = 0;
	return convert(l->entry, ret, e);
}

int layer_next(struct layer *l, struct layer_entry *ret, struct err *e)
{
	bool skip;
	do {
		skip = false;
		int r = read_entry(l, ret, e);
		if (r == 0 && l->kind == LAYER_ACI)
			r = convert_aci(l, ret, &skip, e);
		if (r != 0)
			return r;
	} while (skip);
	return 0;
}

int layer_data(struct layer *l, const void **ret, size_t *ret_len, uint64_t *ret_offset,
	       struct err *e)
{
	la_int64_t offset = 0;
	*ret_len = 0;
	int r = archive_read_data_block(l->tar, ret, ret_len, &offset);
	if (r == ARCHIVE_EOF)
		return LAYER_END;
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return tar_error(l, e);
	if (offset < 0 || (uint64_t)offset < l->data_end ||
	    *ret_len > (uint64_t)INT64_MAX - (uint64_t)offset)
		return err_set(e, -EBADMSG, "damaged tar: the parts of a sparse file overlap");
	*ret_offset = (uint64_t)offset;
	l->data_end = (uint64_t)offset + *ret_len;
	return 0;
}

int layer_verify(struct layer *l, const struct digest *blob, const struct digest *diff_id,
		 struct err *e)
{
	return stream_verify(l->stream, blob, diff_id, e);
}

void layer_explain(const struct span *span, const struct digest *blob, struct err *e)
{
	struct digest got;
	if (span_digest(span, &got) == 0)
		stream_check_digest(blob, &got, "digest", e);
}
