/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: tmp/fetch-UID-HEX, HEX the digest of the key, is an OCI layout that belongs
 * to us alone (mode 0700; one that does not is refused). Blobs get their names in it when they are
 * complete. Publishing verifies the whole, syncs the blobs, and then, under the lock of the images,
 * moves them into the store's layout, the manifest last, and writes the record: from then on the
 * image exists. A crash before leaves blobs that no record counts on, and a directory in tmp/, for
 * the next import of the key or the next collection.
 *
 * An import in another (of what an image depends on) waits for no import: whoever has that one may
 * be waiting for ours. Images choose what they depend on, so their publisher could make every fetch
 * of them hang.
 */
#include "images/store/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/store/catalog.h"
#include "images/store/layout.h"
#include "images/store/rendered.h"
#include "images/store/store_int.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/os/rmtree.h"

#define COPY_CHUNK ((size_t)256 * 1024) /* bytes read at a time */
#define BLOB_MODE  0440
#define NONCE_LEN  16 /* bytes of a key that nobody else has */

/* "fetch-UID-HEX" */
#define DIR_NAME_LEN (sizeof("fetch--") + 10 + DIGEST_HEX_LEN)

struct import {
	struct store *store;
	int lock;
	int dir;
	int blobs; /* the directory of the store's blobs, while they are moved there */
	char dir_name[DIR_NAME_LEN]; /* in tmp/; "" until it exists */
	bool keep;
	bool aside; /* somebody else has the key: the directory is under a name that nobody looks for */
};

void import_free(struct import *i)
{
	if (!i)
		return;
	fd_close(i->dir);
	fd_close(i->blobs);
	if (i->dir_name[0] && !i->keep)
		rmtree(store_tmp_dirfd(i->store), i->dir_name);
	fd_close(i->lock);
	free(i);
}

void import_keep(struct import *i)
{
	i->keep = !i->aside;
}

int import_dirfd(const struct import *i)
{
	return i->dir;
}

/* Makes and opens the directory. 0 or -errno with @e. */
static int open_dir(struct import *i, const struct digest *key, struct err *e)
{
	const struct store *s = i->store;
	struct stat st;
	char name[DIR_NAME_LEN];
	snprintf(name, sizeof(name), "fetch-%u-%s", (unsigned)geteuid(), key->hex);
	if (mkdirat(store_tmp_dirfd(s), name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, -errno, "cannot create %s/tmp/%s", store_path(s), name);
	i->dir = openat(store_tmp_dirfd(s), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (i->dir < 0 || fstat(i->dir, &st) < 0)
		return err_sys(e, -errno, "cannot open %s/tmp/%s", store_path(s), name);
	if (st.st_uid != geteuid() || st.st_mode & 0077)
		return err_set(e, -EPERM, "%s/tmp/%s belongs to somebody else (remove it)",
			       store_path(s), name);
	memcpy(i->dir_name, name, sizeof(name));
	int r = layout_make(i->dir, false);
	return r < 0 ? err_sys(e, r, "cannot write to %s/tmp/%s", store_path(s), name) : 0;
}

/*
 * Takes the lock of @key, or without waiting that of a key that nobody else has, which then is
 * @key.
 */
static int take_lock(struct import *i, bool nested, struct digest *key, struct err *e)
{
	unsigned char nonce[NONCE_LEN];
	int r = store_lock_fetch(i->store, key, !nested, &i->lock, e);
	if (r != STORE_BUSY)
		return r;
	if (getrandom(nonce, sizeof(nonce), 0) != sizeof(nonce))
		return err_sys(e, -errno, "cannot get random bytes");
	digest_of(nonce, sizeof(nonce), key);
	i->aside = true;
	r = store_lock_fetch(i->store, key, false, &i->lock, e);
	return r == STORE_BUSY
		       ? err_set(e, -EBUSY, "somebody holds all of %s/locks/fetch (try again)",
				 store_path(i->store))
		       : r;
}

static int begin(struct store *s, const char *key, bool nested, struct import **ret, struct err *e)
{
	struct digest digest;
	cleanup_import struct import *i = calloc(1, sizeof(*i));
	if (!i)
		return err_set(e, -ENOMEM, "out of memory");
	i->store = s;
	i->lock = i->dir = i->blobs = -EBADF;
	digest_of(key, strlen(key), &digest);
	int r = take_lock(i, nested, &digest, e);
	if (r == 0)
		r = open_dir(i, &digest, e);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(i);
	return 0;
}

int import_begin(struct store *s, const char *key, struct import **ret, struct err *e)
{
	return begin(s, key, false, ret, e);
}

int import_begin_nested(struct store *s, const char *key, struct import **ret, struct err *e)
{
	return begin(s, key, true, ret, e);
}

int import_reuse(struct import *i, const struct digest *blob, uint64_t size)
{
	char path[LAYOUT_PATH_LEN];
	int layout = store_dirfd(i->store, STORE_LAYOUT);
	if (layout_has_blob(i->dir, blob, size))
		return 0;
	if (!layout_has_blob(layout, blob, size))
		return STORE_MISSING;
	layout_path_of_blob(blob, path);
	return linkat(layout, path, i->dir, path, 0) < 0 ? STORE_MISSING : 0;
}

static int cannot_write(const struct import *i, int r, struct err *e)
{
	return err_sys(e, r, "cannot write to %s/tmp", store_path(i->store));
}

int import_new_blob(struct import *i, struct err *e)
{
	int fd = openat(i->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd < 0 ? cannot_write(i, -errno, e) : fd;
}

int import_add(struct import *i, int fd, const struct digest *digest, struct err *e)
{
	char path[LAYOUT_PATH_LEN];
	layout_path_of_blob(digest, path);
	/* An earlier import may have left one that is damaged. */
	if ((unlinkat(i->dir, path, 0) < 0 && errno != ENOENT) || fchmod(fd, BLOB_MODE) < 0)
		return cannot_write(i, -errno, e);
	int r = fd_link_at(fd, i->dir, path);
	return r < 0 ? cannot_write(i, r, e) : 0;
}

static int copy(struct import *i, const struct span *from, int to, const struct import_watch *watch,
		struct digest *ret, struct err *e)
{
	struct hasher hasher;
	cleanup_free char *chunk = malloc(COPY_CHUNK);
	if (!chunk)
		return err_set(e, -ENOMEM, "out of memory");
	hasher_init(&hasher);
	for (uint64_t at = 0; at < from->size;) {
		size_t len = (size_t)MIN(from->size - at, (uint64_t)COPY_CHUNK);
		int r = span_read(from, chunk, len, at);
		if (r == -ENODATA)
			return err_set(e, r, "the file became shorter while it was read");
		if (r < 0)
			return err_sys(e, r, "cannot read");
		hasher_update(&hasher, chunk, len);
		r = fd_write_all(to, chunk, len);
		if (r < 0)
			return cannot_write(i, r, e);
		at += len;
		if (watch)
			watch->fn(watch->ctx, chunk, len);
	}
	hasher_finish(&hasher, ret);
	return 0;
}

int import_copy(struct import *i, const struct span *from, const struct digest *want,
		const struct import_watch *watch, struct digest *ret, struct err *e)
{
	cleanup_fd int fd = import_new_blob(i, e);
	if (fd < 0)
		return fd;
	struct digest got;
	int r = copy(i, from, fd, watch, &got, e);
	if (r == 0 && want && !digest_equal(want, &got))
		r = err_set(e, -EBADMSG,
			    "digest mismatch: it is sha256:%.12s... instead of sha256:%.12s... "
			    "(fetch the image again)",
			    got.hex, want->hex);
	if (r == 0)
		r = import_add(i, fd, &got, e);
	if (r == 0)
		*ret = got;
	return r;
}

int import_text(struct import *i, const char *text, size_t len, struct digest *ret, struct err *e)
{
	cleanup_fd int fd = import_new_blob(i, e);
	if (fd < 0)
		return fd;
	struct digest digest;
	digest_of(text, len, &digest);
	int r = fd_write_all(fd, text, len);
	r = r < 0 ? cannot_write(i, r, e) : import_add(i, fd, &digest, e);
	if (r == 0)
		*ret = digest;
	return r;
}

int import_manifest(struct import *i, const struct oci_manifest *m, struct digest *ret,
		    struct err *e)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, OCI_JSON_MAX);
	int r = oci_manifest_format(m, &text);
	if (r < 0)
		return err_sys(e, r, "cannot write the image manifest");
	return import_text(i, buf_data(&text), buf_len(&text), ret, e);
}

/* Calls @fn for all blobs of the image, the manifest last. 0, or the first failure. */
static int each_blob(struct import *i, const struct layout_image *image,
		     int (*fn)(struct import *i, const char *path, struct err *e), struct err *e)
{
	char path[LAYOUT_PATH_LEN];
	int r = 0;
	for (size_t k = image->n_own; r == 0 && k > 0; k--) {
		layout_path_of_blob(&image->files[k - 1].digest, path);
		r = fn(i, path, e);
	}
	return r;
}

static int sync_blob(struct import *i, const char *path, struct err *e)
{
	cleanup_fd int fd = path_open_beneath(i->dir, path, O_RDONLY | O_NOFOLLOW, 0);
	if (fd < 0 || fsync(fd) < 0)
		return err_sys(e, fd < 0 ? fd : -errno, "cannot sync %s/tmp/%s/%s",
			       store_path(i->store), i->dir_name, path);
	fchmod(fd, BLOB_MODE); /* one that is not ours was reused, and has its mode */
	return 0;
}

/*
 * Moves a blob into the store, in place of one that is there. Through a descriptor: whoever shares
 * the store may make a link of what is on the way.
 */
static int move_blob(struct import *i, const char *path, struct err *e)
{
	if (renameat(i->dir, path, i->blobs, path + strlen(LAYOUT_BLOBS "/")) < 0 &&
	    errno != ENOENT) /* ENOENT: the image names it twice */
		return err_sys(e, -errno, "cannot create %s/oci/%s", store_path(i->store), path);
	return 0;
}

/*
 * What the images below have was linked here from the store, but whoever collected garbage since
 * then did not know that it is needed.
 */
static int move_below(struct import *i, const struct layout_image *documents,
		      const struct import_image *image, struct err *e)
{
	char path[LAYOUT_PATH_LEN];
	int r = 0;
	for (size_t k = 0; r == 0 && k < image->n_below; k++) {
		layout_path_of_blob(&layout_below(documents)[k].digest, path);
		r = move_blob(i, path, e);
		if (r < 0)
			break;
		layout_path_of_blob(&image->below[k], path);
		r = move_blob(i, path, e);
	}
	return r;
}

static int move_blobs(struct import *i, const struct layout_image *documents,
		      const struct import_image *image, struct err *e)
{
	fd_replace(&i->blobs, path_open_beneath(store_dirfd(i->store, STORE_LAYOUT), LAYOUT_BLOBS,
						O_RDONLY | O_DIRECTORY, 0));
	if (i->blobs < 0)
		return err_sys(e, i->blobs, "cannot open %s/oci/" LAYOUT_BLOBS,
			       store_path(i->store));
	int r = move_below(i, documents, image, e);
	if (r == 0)
		r = each_blob(i, documents, move_blob, e);
	if (r < 0)
		return r;
	return fsync(i->blobs) < 0 ? err_sys(e, -errno, "cannot sync %s/oci/" LAYOUT_BLOBS,
					     store_path(i->store))
				   : 0;
}

/* Writes the record, new or with another name. */
static int write_record(struct import *i, const struct layout_image *documents,
			const struct import_image *image, struct err *e)
{
	CLEANUP(record_deinit) struct record record;
	record_init(&record);
	int r = catalog_get(i->store, &image->id, &record, NULL);
	if (r != 0) { /* also a damaged one */
		record_deinit(&record);
		record.imported_ns = clock_realtime_ns();
	}
	record.id = image->id;
	record.kind = documents->kind;
	record.chain = documents->chain;
	record.size = documents->size;
	record.unverified = image->unverified; /* what is below may be another than before */
	r = record_set_below(&record, image->below, image->n_below);
	if (r == 0 && image->key)
		r = str_copy(record.key, sizeof(record.key), image->key);
	if (r == 0)
		r = record_add_name(&record, image->name);
	if (r < 0)
		return err_sys(e, r, "name \"%s\"", image->name);
	return catalog_put(i->store, &record, e);
}

static int publish(struct import *i, const struct layout_image *documents,
		   const struct import_image *image, struct err *e)
{
	cleanup_fd int lock = -EBADF;
	int r = each_blob(i, documents, sync_blob, e); /* not under the lock: that may take long */
	if (r == 0)
		r = store_lock_images(i->store, &lock, e);
	if (r == 0)
		r = move_blobs(i, documents, image, e);
	if (r == 0)
		r = write_record(i, documents, image, e);
	if (r < 0)
		return r;
	r = catalog_put_name(i->store, &image->id, image->name, e);
	catalog_write_index(i->store); /* for others; the next change makes up for it */
	return r;
}

/* Puts what the images below have into our layout, so that all is in one place. */
static int link_below(struct import *i, const struct import_image *image, struct err *e)
{
	for (size_t k = 0; k < image->n_below; k++) {
		CLEANUP(layout_image_deinit) struct layout_image below;
		layout_image_init(&below);
		const struct digest *id = &image->below[k];
		int r = layout_read_image(store_dirfd(i->store, STORE_LAYOUT), id, true, NULL, 0,
					  &below, e);
		if (r < 0)
			return err_context(e, "dependency sha256-%.12s", id->hex);
		if (below.whitelist.n > 0)
			return err_set(e, -EOPNOTSUPP,
				       "dependency sha256-%.12s has a pathWhitelist, which husk "
				       "knows only of the image on top",
				       id->hex);
		const struct oci_descriptor *layer = &below.manifest.layers[0];
		if (import_reuse(i, id, below.files[0].size) != 0 ||
		    import_reuse(i, &layer->digest, layer->size) != 0)
			return err_set(e, -ENOENT,
				       "dependency sha256-%.12s was removed, or may not be linked "
				       "(fetch it again)",
				       id->hex);
	}
	return 0;
}

int import_publish(struct import *i, const struct import_image *image, bool *ret_rendered,
		   struct err *e)
{
	CLEANUP(layout_image_deinit) struct layout_image documents;
	layout_image_init(&documents);
	int r = link_below(i, image, e);
	if (r == 0)
		r = layout_read_image(i->dir, &image->id, image->is_appc, image->below,
				      image->n_below, &documents, e);
	if (r == 0)
		r = rendered_verify(i->store, &documents, i->dir, ret_rendered, e);
	if (r == 0)
		r = publish(i, &documents, image, e);
	if (r == 0)
		i->keep = false;
	return r;
}
