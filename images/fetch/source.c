/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/source.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/fetch/tar_index.h"
#include "images/render/confine.h"
#include "images/render/stream.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"

struct source {
	enum source_type type;
	int fd;         /* the directory, or the archive, not compressed */
	int compressed; /* the archive as it came, if that is another file */
	uint64_t size;  /* of the archive */
	bool is_archive;
	struct buf index; /* of an archive, see tar_index.h */
};

void source_free(struct source *s)
{
	if (!s)
		return;
	buf_deinit(&s->index);
	fd_close(s->fd);
	fd_close(s->compressed);
	free(s);
}

static void cleanup_source(struct source **s)
{
	source_free(*s);
}

int source_file(const struct source *s)
{
	return s->compressed >= 0 ? s->compressed : s->fd;
}

struct span source_tar(const struct source *s)
{
	return (struct span){ .fd = s->fd, .size = s->size };
}

enum source_type source_type(const struct source *s)
{
	return s->type;
}

static int find_in_archive(const struct source *s, const char *name, struct span *ret,
			   struct err *e)
{
	struct span span;
	int r = tar_index_find(&s->index, s->size, name, &span.offset, &span.size);
	if (r < 0)
		return err_set(e, r, "the archive has no \"%s\" (it is incomplete: fetch it again)",
			       name);
	span.fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 3);
	if (span.fd < 0)
		return err_sys(e, -errno, "cannot duplicate a descriptor");
	*ret = span;
	return 0;
}

static int find_in_directory(const struct source *s, const char *name, struct span *ret,
			     struct err *e)
{
	cleanup_fd int fd = path_open_beneath(s->fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -ENOENT)
		return err_set(e, fd, "the layout has no \"%s\" (it is incomplete: fetch it again)",
			       name);
	if (fd == -EXDEV)
		return err_set(
			e, fd,
			"\"%s\" is, or is behind, a symbolic link that leads out of the layout (copy "
			"what it leads to)",
			name);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, fd < 0 ? fd : -errno, "cannot open \"%s\"", name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "\"%s\" is not a regular file", name);
	*ret = (struct span){ .fd = TAKE_FD(fd), .size = (uint64_t)st.st_size };
	return 0;
}

int source_find(const struct source *s, const char *name, struct span *ret, struct err *e)
{
	return s->is_archive ? find_in_archive(s, name, ret, e)
			     : find_in_directory(s, name, ret, e);
}

int source_read_span(const struct span *span, const char *what, size_t max, char **ret,
		     size_t *ret_len, struct err *e)
{
	if (span->size > max)
		return err_set(e, -EFBIG, "%s is larger than %zu bytes", what, max);
	cleanup_free char *text = malloc((size_t)span->size + 1);
	if (!text)
		return err_set(e, -ENOMEM, "out of memory");
	int r = span_read(span, text, (size_t)span->size, 0);
	if (r < 0)
		return err_sys(e, r, "cannot read %s", what);
	text[span->size] = '\0';
	*ret = TAKE_PTR(text);
	*ret_len = (size_t)span->size;
	return 0;
}

int source_read(const struct source *s, const char *name, size_t max, char **ret, size_t *ret_len,
		struct err *e)
{
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	char what[ERR_TEXT_MAX];
	int r = source_find(s, name, &span, e);
	if (r < 0)
		return r;
	snprintf(what, sizeof(what), "\"%s\"", name);
	return source_read_span(&span, what, max, ret, ret_len, e);
}

/* Opens @path if it is a regular file or a directory; a device is not even opened. */
static int open_plain(const char *path, struct stat *st, struct err *e)
{
	if (stat(path, st) < 0)
		return err_sys(e, -errno, "cannot open");
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return err_set(e, -EINVAL, "neither a regular file nor a directory");
	cleanup_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, st) < 0)
		return err_sys(e, -errno, "cannot open");
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return err_set(e, -EINVAL, "neither a regular file nor a directory");
	return TAKE_FD(fd);
}

struct decompression {
	int from;
	uint64_t size;
	int to;
	uint64_t max;
};

static int decompress_confined(void *ctx, struct buf *result, struct err *e)
{
	const struct decompression *d = ctx;
	struct digest digest;
	int r = stream_decompress_file(d->from, d->size, d->to, d->max, &digest, e);
	return r < 0 ? r : buf_append(result, digest.hex, DIGEST_HEX_LEN);
}

int source_decompress(int from, uint64_t size, int to, uint64_t max, struct digest *ret,
		      struct err *e)
{
	struct decompression d = { from, size, to, max };
	const int fds[] = { from, to };
	char hex[DIGEST_HEX_LEN + 1] = "";
	cleanup_buf struct buf result;
	buf_init(&result, DIGEST_HEX_LEN);
	int r = confine_run("decompressing", decompress_confined, &d, fds, ARRAY_SIZE(fds), &result,
			    e);
	if (r < 0)
		return r;
	memcpy(hex, buf_data(&result), MIN(buf_len(&result), (size_t)DIGEST_HEX_LEN));
	return digest_from_hex(hex, ret) < 0
		       ? err_set(e, -EIO, "decompressing: the helper process failed")
		       : 0;
}

/* Replaces the compressed archive @s->fd by a decompressed one without a name. */
static int decompress_archive(struct source *s, int tmp_dirfd, uint64_t max, struct err *e)
{
	cleanup_fd int to = openat(tmp_dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (to < 0)
		return err_sys(e, -errno, "cannot create a temporary file in the image store");
	struct digest digest;
	int r = source_decompress(s->fd, s->size, to, max, &digest, e);
	struct stat st = { 0 };
	if (r == 0 && fstat(to, &st) < 0)
		r = err_sys(e, -errno, "cannot read the decompressed archive");
	if (r < 0)
		return r;
	s->size = (uint64_t)st.st_size;
	s->compressed = s->fd;
	s->fd = TAKE_FD(to);
	return 0;
}

static int scan_confined(void *ctx, struct buf *result, struct err *e)
{
	return tar_index_scan(ctx, result, e);
}

/* Indexes the archive @s->fd, decompressed first if need be. */
static int open_archive(struct source *s, int tmp_dirfd, uint64_t max, struct err *e)
{
	enum stream_compression c = STREAM_PLAIN;
	struct span span = source_tar(s);
	int r = stream_detect_span(&span, &c);
	if (r < 0)
		return err_sys(e, r, "cannot read");
	if (c != STREAM_PLAIN)
		r = decompress_archive(s, tmp_dirfd, max, e);
	if (r < 0)
		return r;
	span = source_tar(s);
	s->is_archive = true;
	return confine_run("reading the archive", scan_confined, &span, &s->fd, 1, &s->index, e);
}

static bool has(const struct source *s, const char *name)
{
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	return source_find(s, name, &span, NULL) == 0;
}

/* Decides what the source is, from what it contains and what the reference demands. */
static int find_type(struct source *s, const struct reference *ref, struct err *e)
{
	bool is_oci = has(s, "oci-layout") && has(s, "index.json");
	bool is_docker = s->is_archive && has(s, "manifest.json");
	if (ref->type == REFERENCE_ANY && s->is_archive && !is_oci && !is_docker &&
	    has(s, "manifest")) {
		s->type = SOURCE_ACI;
		return 0;
	}
	if (ref->type == REFERENCE_DOCKER_ARCHIVE && !is_docker)
		return err_set(e, -EINVAL, "not a docker archive: there is no manifest.json in it");
	if ((ref->type == REFERENCE_OCI_DIR || ref->type == REFERENCE_OCI_ARCHIVE) && !is_oci)
		return err_set(e, -EINVAL,
			       "not an OCI layout: oci-layout and index.json are not both there");
	if (!is_oci && !is_docker)
		return err_set(e, -EINVAL,
			       "neither an OCI layout nor a docker archive: there is no %s in it",
			       s->is_archive ? "index.json or manifest.json at its top"
					     : "oci-layout and index.json");
	s->type = is_oci && ref->type != REFERENCE_DOCKER_ARCHIVE ? SOURCE_OCI : SOURCE_DOCKER;
	return 0;
}

int source_open(const struct reference *ref, int tmp_dirfd, uint64_t bytes_max, struct source **ret,
		struct err *e)
{
	CLEANUP(cleanup_source) struct source *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	struct stat st;
	s->fd = s->compressed = -EBADF;
	buf_init(&s->index, TAR_INDEX_MAX);
	fd_replace(&s->fd, open_plain(ref->path, &st, e));
	if (s->fd < 0)
		return s->fd;
	s->size = (uint64_t)st.st_size;
	bool is_dir = S_ISDIR(st.st_mode);
	if (is_dir && (ref->type == REFERENCE_OCI_ARCHIVE || ref->type == REFERENCE_DOCKER_ARCHIVE))
		return err_set(e, -EISDIR, "an archive was asked for but this is a directory");
	if (!is_dir && ref->type == REFERENCE_OCI_DIR)
		return err_set(e, -ENOTDIR, "this is a file (an archive? then use oci-archive:)");
	int r = is_dir ? 0 : open_archive(s, tmp_dirfd, bytes_max, e);
	if (r == 0)
		r = find_type(s, ref, e);
	if (r == 0)
		*ret = TAKE_PTR(s);
	return r;
}
