/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"

#define TAR_BLOCK  10240                /* bytes the archive is written in; what tar(1) does */
#define DATA_CHUNK ((size_t)256 * 1024) /* bytes read from a file at a time */

struct pack {
	int fd;
	struct hasher hasher;
	struct fetch_meter *meter;
	uint64_t bytes_left; /* for the sizes of further files */
	uint64_t bytes_max;
	int write_error; /* -errno of the first failure */
	struct archive *tar;
	struct archive *disk;
	struct archive_entry_linkresolver *links;
	FTS *walk;
	char *chunk;
	int root;        /* the directory; what is packed is found below it */
	size_t root_len; /* of the path that all others begin with */
};

static void pack_deinit(struct pack *p)
{
	if (p->walk)
		fts_close(p->walk);
	if (p->links)
		archive_entry_linkresolver_free(p->links);
	archive_read_free(p->disk);
	if (!p->write_error)
		p->write_error = -ECANCELED; /* else an entry that failed is padded to its size */
	archive_write_free(p->tar);
	fd_close(p->root);
	free(p->chunk);
}

/* libarchive's write callback. */
static la_ssize_t write_out(struct archive *a, void *ctx, const void *data, size_t len)
{
	struct pack *p = ctx;
	int r = p->write_error ? p->write_error : fd_write_all(p->fd, data, len);
	if (r < 0) {
		p->write_error = r;
		archive_set_error(a, -r, "%s", strerror(-r));
		return -1;
	}
	hasher_update(&p->hasher, data, len);
	fetch_meter_add(p->meter, data, len);
	return (la_ssize_t)len;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int pack_open(struct pack *p, const char *path)
{
	char *roots[] = { NULL, NULL };
	cleanup_free char *root = strdup(path);
	p->chunk = malloc(DATA_CHUNK);
	p->tar = archive_write_new();
	p->disk = archive_read_disk_new();
	p->links = archive_entry_linkresolver_new();
	if (!root || !p->chunk || !p->tar || !p->disk || !p->links)
		return -ENOMEM;
	hasher_init(&p->hasher);
	p->root_len = strlen(path);
	archive_entry_linkresolver_set_strategy(p->links, ARCHIVE_FORMAT_TAR);
	archive_read_disk_set_symlink_physical(p->disk);
	archive_read_disk_set_behavior(p->disk,
				       ARCHIVE_READDISK_NO_ACL | ARCHIVE_READDISK_NO_FFLAGS);
	if (archive_write_set_format_pax_restricted(p->tar) != ARCHIVE_OK ||
	    archive_write_set_format_option(p->tar, "pax", "xattrheader", "SCHILY") != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(p->tar, TAR_BLOCK) != ARCHIVE_OK ||
	    archive_write_open(p->tar, p, NULL, write_out, NULL) != ARCHIVE_OK)
		return -ENOMEM;
	p->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->root < 0)
		return -errno;
	roots[0] = root;
	p->walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_XDEV | FTS_NOCHDIR, by_name);
	return p->walk ? 0 : -errno;
}

/* The failure of libarchive's @a at @path. */
static int pack_fail(const struct pack *p, struct archive *a, const char *path, struct err *e)
{
	if (p->write_error)
		return err_sys(e, p->write_error, "cannot write the packed directory");
	int code = archive_errno(a);
	const char *text = archive_error_string(a);
	return err_set(e, code > 0 ? -code : -EIO, "\"%s\": %s", path,
		       text ? text : "unknown error");
}

/* Hands @len bytes of the entry to libarchive. */
static int pack_put(struct pack *p, const void *data, size_t len, const char *path, struct err *e)
{
	for (size_t done = 0; done < len;) {
		la_ssize_t n = archive_write_data(p->tar, (const char *)data + done, len - done);
		if (n <= 0)
			return pack_fail(p, p->tar, path, e);
		done += (size_t)n;
	}
	return 0;
}

/* Hands over the zeros of a hole: libarchive counts them and writes none. */
static int put_hole(struct pack *p, int64_t len, const char *path, struct err *e)
{
	int r = 0;
	memset(p->chunk, 0, DATA_CHUNK);
	for (; r == 0 && len > 0; len -= (int64_t)DATA_CHUNK)
		r = pack_put(p, p->chunk, (size_t)MIN(len, (int64_t)DATA_CHUNK), path, e);
	return r;
}

/* Copies @len bytes at @offset of the file. */
static int put_bytes(struct pack *p, int fd, int64_t offset, int64_t len, const char *path,
		     struct err *e)
{
	while (len > 0) {
		size_t want = (size_t)MIN(len, (int64_t)DATA_CHUNK), got;
		int r = fd_read_at(fd, p->chunk, want, (uint64_t)offset, &got);
		if (r < 0)
			return err_sys(e, r, "cannot read \"%s\"", path);
		if (got < want)
			return err_set(e, -EBUSY, "\"%s\" became shorter while it was read", path);
		r = pack_put(p, p->chunk, want, path, e);
		if (r < 0)
			return r;
		offset += (int64_t)want;
		len -= (int64_t)want;
	}
	return 0;
}

/* Writes the content of a regular file; the holes that libarchive found are not read. */
static int pack_content(struct pack *p, struct archive_entry *entry, int fd, const char *path,
			struct err *e)
{
	la_int64_t size = archive_entry_size(entry), offset, len;
	int64_t at = 0;
	int r = 0;
	if ((uint64_t)size > p->bytes_left)
		return err_set(
			e, -EFBIG,
			"the files have more than %llu bytes up to \"%s\" (if that is intended, "
			"raise HUSK_IMAGE_BYTES_MAX)",
			(unsigned long long)p->bytes_max, path);
	p->bytes_left -= (uint64_t)size;
	if (archive_entry_sparse_reset(entry) == 0)
		return put_bytes(p, fd, 0, size, path, e);
	while (r == 0 && archive_entry_sparse_next(entry, &offset, &len) == ARCHIVE_OK) {
		r = put_hole(p, offset - at, path, e);
		if (r == 0)
			r = put_bytes(p, fd, offset, len, path, e);
		at = offset + len;
	}
	return r < 0 ? r : put_hole(p, size - at, path, e);
}

/* An extended attribute of an entry, borrowed from it. */
struct xattr {
	const char *name;
	const void *value;
	size_t size;
};

static int by_xattr_name(const void *a, const void *b)
{
	return strcmp(((const struct xattr *)a)->name, ((const struct xattr *)b)->name);
}

static void cleanup_entry(struct archive_entry **entry)
{
	archive_entry_free(*entry);
}

/*
 * File systems list the attributes in the order they were set, or in any other: sorts them. 0 or
 * -ENOMEM.
 */
static int sort_xattrs(struct archive_entry *entry)
{
	int n = archive_entry_xattr_reset(entry); /* as many as fit into XATTR_LIST_MAX bytes */
	if (n <= 1)
		return 0;
	CLEANUP(cleanup_entry) struct archive_entry *copy = archive_entry_clone(entry);
	cleanup_free struct xattr *list = calloc((size_t)n, sizeof(*list));
	if (!copy || !list)
		return -ENOMEM;
	archive_entry_xattr_reset(copy);
	for (int i = 0; i < n; i++)
		if (archive_entry_xattr_next(copy, &list[i].name, &list[i].value, &list[i].size) !=
		    ARCHIVE_OK)
			return -ENOMEM; /* it was not copied */
	qsort(list, (size_t)n, sizeof(*list), by_xattr_name);
	archive_entry_xattr_clear(entry);
	for (int i = 0; i < n; i++)
		archive_entry_xattr_add_entry(entry, list[i].name, list[i].value, list[i].size);
	return archive_entry_xattr_count(entry) == n ? 0 : -ENOMEM;
}

/* The path below the directory. */
static const char *name_of(const struct pack *p, const FTSENT *at)
{
	const char *name = at->fts_path + p->root_len;
	while (*name == '/')
		name++;
	return *name ? name : ".";
}

/* Fills @entry for the file that the walk is at. */
static int pack_describe(struct pack *p, const FTSENT *at, int fd, struct archive_entry *entry,
			 struct err *e)
{
	archive_entry_copy_sourcepath(entry, at->fts_path);
	archive_entry_copy_pathname(entry, name_of(p, at));
	int r = archive_read_disk_entry_from_file(p->disk, entry, fd, at->fts_statp);
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return pack_fail(p, p->disk, at->fts_path, e);
	/* What depends on when and where it is packed. */
	archive_entry_unset_atime(entry);
	archive_entry_unset_ctime(entry);
	archive_entry_unset_birthtime(entry);
	archive_entry_copy_uname(entry, NULL);
	archive_entry_copy_gname(entry, NULL);
	archive_entry_set_mtime(entry, at->fts_statp->st_mtime, 0);
	return sort_xattrs(entry) < 0 ? err_set(e, -ENOMEM, "out of memory") : 0;
}

/*
 * Opens what the walk is at: for reading if it is a regular file. Whoever owns the directory may
 * put a link in place of one on the way, after the walk has looked at it, that leads to files of
 * other people. The descriptor, or -errno with @e.
 */
static int open_entry(const struct pack *p, const FTSENT *at, struct err *e)
{
	struct stat st;
	int flags = S_ISREG(at->fts_statp->st_mode) ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH;
	cleanup_fd int fd = path_open_beneath(p->root, name_of(p, at), flags | O_NOFOLLOW, 0);
	bool gone = fd == -EXDEV || fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP;
	if (fd < 0 && !gone)
		return err_sys(e, fd, "cannot open \"%s\"", at->fts_path);
	if (gone || fstat(fd, &st) < 0 || st.st_ino != at->fts_statp->st_ino ||
	    st.st_dev != at->fts_statp->st_dev)
		return err_set(e, -EBUSY, "\"%s\" changed while it was read (try again)",
			       at->fts_path);
	return TAKE_FD(fd);
}

static int pack_file(struct pack *p, const FTSENT *at, struct err *e)
{
	bool regular = S_ISREG(at->fts_statp->st_mode);
	cleanup_fd int fd = open_entry(p, at, e);
	if (fd < 0)
		return fd;
	CLEANUP(cleanup_entry) struct archive_entry *entry = archive_entry_new();
	if (!entry)
		return err_set(e, -ENOMEM, "out of memory");
	int r = pack_describe(p, at, regular ? fd : -1, entry, e);
	if (r < 0)
		return r;
	/* Later names of a file become links to the first; none is held back in tar. */
	struct archive_entry *held = NULL, *now = entry;
	archive_entry_linkify(p->links, &now, &held);
	r = archive_write_header(p->tar, entry);
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return pack_fail(p, p->tar, at->fts_path, e);
	return regular && !archive_entry_hardlink(entry)
		       ? pack_content(p, entry, fd, at->fts_path, e)
		       : 0;
}

static int pack_entry(struct pack *p, const FTSENT *at, struct err *e)
{
	switch (at->fts_info) {
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return err_sys(e, -at->fts_errno, "cannot read \"%s\"", at->fts_path);
	case FTS_DP: /* it was packed when the walk entered it */
		return 0;
	default:
		return S_ISSOCK(at->fts_statp->st_mode) ? 0 : pack_file(p, at, e);
	}
}

static int pack_all(struct pack *p, struct err *e)
{
	for (;;) {
		errno = 0;
		FTSENT *at = fts_read(p->walk);
		if (!at)
			return errno ? err_sys(e, -errno, "cannot read the directory") : 0;
		int r = pack_entry(p, at, e);
		if (r < 0)
			return r;
	}
}

int pack_directory(const char *path, int fd, uint64_t bytes_max, struct fetch_meter *meter,
		   struct digest *ret, struct err *e)
{
	CLEANUP(pack_deinit)
	struct pack p = { .fd = fd,
			  .meter = meter,
			  .root = -EBADF,
			  .bytes_left = bytes_max,
			  .bytes_max = bytes_max };
	int r = pack_open(&p, path);
	r = r < 0 ? err_sys(e, r, "cannot read \"%s\"", path) : pack_all(&p, e);
	if (r == 0 && archive_write_close(p.tar) != ARCHIVE_OK)
		r = pack_fail(&p, p.tar, path, e);
	if (r == 0)
		hasher_finish(&p.hasher, ret);
	return r;
}
