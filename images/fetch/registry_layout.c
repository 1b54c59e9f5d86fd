/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/registry_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/store/layout.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"

#define TEMPORARY "oci-put-blob" /* how skopeo's names of half-written blobs begin */

/* Does something with one half-written blob; a failure ends the walk. */
typedef int (*temporary_fn)(int dirfd, const char *name, void *ctx);

static int add_blob(struct registry_blobs *b, const struct oci_descriptor *d, struct err *e)
{
	for (size_t i = 0; i < b->n; i++) {
		if (!digest_equal(&b->v[i].digest, &d->digest))
			continue;
		if (b->v[i].size != d->size)
			return err_set(e, -EBADMSG,
				       "the manifest gives blob sha256:%.12s... two sizes",
				       d->digest.hex);
		return 0;
	}
	b->v[b->n++] = (struct blob_ref){ .digest = d->digest, .size = d->size };
	b->bytes += d->size;
	return 0;
}

int registry_blobs_list(const struct oci_manifest *m, struct registry_blobs *ret, struct err *e)
{
	ret->n = 0;
	ret->bytes = 0;
	int r = add_blob(ret, &m->config, e);
	for (size_t i = 0; r == 0 && i < m->n_layers; i++)
		r = add_blob(ret, &m->layers[i], e);
	return r;
}

/* Calls @fn for every half-written blob. */
static int each_temporary(int layout_fd, temporary_fn fn, void *ctx, struct err *e)
{
	cleanup_dir DIR *dir = fd_list_dir(layout_fd);
	if (!dir)
		return err_sys(e, -errno, "cannot read the layout's directory");
	for (size_t n = 0;;) {
		errno = 0;
		const struct dirent *entry = readdir(dir);
		if (!entry)
			return errno == 0
				       ? 0
				       : err_sys(e, -errno, "cannot read the layout's directory");
		if (n++ >= REGISTRY_FILES_MAX)
			return err_set(e, -E2BIG,
				       "more than %zu files in the layout's directory (remove it)",
				       REGISTRY_FILES_MAX);
		int r = str_starts(entry->d_name, TEMPORARY) ? fn(dirfd(dir), entry->d_name, ctx)
							     : 0;
		if (r < 0)
			return err_sys(e, r, "half-written blob \"%s\"", entry->d_name);
	}
}

static int remove_file(int dirfd, const char *name, void *ctx)
{
	(void)ctx;
	return unlinkat(dirfd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int add_size(int dirfd, const char *name, void *ctx)
{
	struct stat st;
	/* Gone by now: it is complete and has its name. */
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	*(uint64_t *)ctx += (uint64_t)st.st_size;
	return 0;
}

/* The size of a blob that is there, *ret; -1 if it is not. */
static int blob_size(int layout_fd, const struct blob_ref *b, int64_t *ret, struct err *e)
{
	struct stat st;
	char path[LAYOUT_PATH_LEN];
	layout_path_of_blob(&b->digest, path);
	*ret = -1;
	if (fstatat(layout_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, -errno, "cannot look at %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EBADMSG, "%s is not a regular file (remove it)", path);
	*ret = st.st_size;
	return 0;
}

int registry_layout_sweep(int layout_fd, struct err *e)
{
	return each_temporary(layout_fd, remove_file, NULL, e);
}

/* Removes a blob that has the wrong size. */
static int drop_damaged(int layout_fd, const struct blob_ref *b, struct err *e)
{
	int64_t size;
	char path[LAYOUT_PATH_LEN];
	int r = blob_size(layout_fd, b, &size, e);
	if (r < 0 || size < 0 || (uint64_t)size == b->size)
		return r;
	layout_path_of_blob(&b->digest, path);
	r = remove_file(layout_fd, path, NULL);
	return r < 0 ? err_sys(e, r, "cannot remove %s, which has a wrong size", path) : 0;
}

int registry_layout_begin(int layout_fd, const struct registry_blobs *b,
			  const struct digest *manifest, struct err *e)
{
	char path[LAYOUT_PATH_LEN];
	layout_path_of_blob(manifest, path);
	const char *const old[] = { "index.json", "oci-layout", path };
	int r = registry_layout_sweep(layout_fd, e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(old); i++) {
		r = remove_file(layout_fd, old[i], NULL);
		if (r < 0)
			err_sys(e, r, "cannot remove %s", old[i]);
	}
	for (size_t i = 0; r == 0 && i < b->n; i++)
		r = drop_damaged(layout_fd, &b->v[i], e);
	return r;
}

int registry_layout_measure(int layout_fd, const struct registry_blobs *b,
			    struct registry_sizes *ret, struct err *e)
{
	struct registry_sizes s = { .n_complete = 0 };
	/*
	 * Half-written ones first: what is finished between the two looks counts twice, not never.
	 */
	int r = each_temporary(layout_fd, add_size, &s.partial, e);
	for (size_t i = 0; r == 0 && i < b->n; i++) {
		int64_t size;
		r = blob_size(layout_fd, &b->v[i], &size, e);
		if (r == 0 && size >= 0 && (uint64_t)size == b->v[i].size) {
			s.n_complete++;
			s.complete += b->v[i].size;
		} else {
			s.largest = MAX(s.largest, b->v[i].size);
		}
	}
	if (r == 0)
		*ret = s;
	return r;
}

int registry_layout_check(int layout_fd, const struct registry_blobs *b, struct err *e)
{
	for (size_t i = 0; i < b->n; i++) {
		int64_t size;
		const struct blob_ref *blob = &b->v[i];
		int r = blob_size(layout_fd, blob, &size, e);
		if (r < 0)
			return r;
		if (size < 0)
			return err_set(e, -EBADMSG,
				       "blob sha256:%.12s... was not fetched: it is not in the "
				       "registry but at other addresses, which husk does not ask",
				       blob->digest.hex);
		if ((uint64_t)size != blob->size)
			return err_set(e, -EBADMSG,
				       "blob sha256:%.12s... has %lld bytes instead of the %llu "
				       "that the manifest says (do not use this image)",
				       blob->digest.hex, (long long)size,
				       (unsigned long long)blob->size);
	}
	return 0;
}
