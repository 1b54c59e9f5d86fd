/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: an image goes when its record goes; blobs and rendered files follow because
 * no record needs them. All of that happens under the lock of the images, so nobody adds an image
 * that counts on a blob that is about to go. A crash in between leaves files that the next
 * collection removes. Nothing is written but index.json, which nobody needs, so a full disk can be
 * emptied.
 */
#include "images/store/collect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/store/catalog.h"
#include "images/store/inventory.h"
#include "images/store/layout.h"
#include "images/store/list.h"
#include "images/store/store_int.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/lock.h"
#include "lib/os/path.h"
#include "lib/os/rmtree.h"

#define DIGEST_SUFFIX ".digest" /* of the file beside a rendered one */

/* One collection. */
struct collect {
	const struct store *store;
	const struct inventory *inventory;
	int64_t unused_since_ns; /* work that was last touched before that is left over */
	const char *where;       /* the directory, for people */
	int result;              /* of the first failure */
	struct err *e;
};

/* Notes that errno says why @name was not removed. */
static void note_failure(struct collect *c, const char *name)
{
	if (c->result < 0 || errno == ENOENT)
		return;
	c->result = err_sys(c->e, -errno, "cannot remove %s/%s/%s", store_path(c->store), c->where,
			    name);
}

static void remove_name(struct collect *c, int dirfd, const char *name)
{
	if (unlinkat(dirfd, name, 0) < 0)
		note_failure(c, name);
}

/* True if the file is older than what may still be work in progress. */
static bool is_left_over(const struct collect *c, int dirfd, const char *name)
{
	struct stat st;
	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (int64_t)st.st_mtim.tv_sec * NS_PER_SEC + st.st_mtim.tv_nsec <= c->unused_since_ns;
}

/* Calls @fn for each name in the directory @where. */
static void each_name(struct collect *c, int dirfd, const char *where,
		      void (*fn)(struct collect *c, int dirfd, const char *name))
{
	c->where = where;
	cleanup_dir DIR *dir = fd_list_dir(dirfd);
	const struct dirent *de;
	if (!dir) {
		note_failure(c, "");
		return;
	}
	while ((de = readdir(dir)))
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			fn(c, dirfd, de->d_name);
}

static void sweep_blob(struct collect *c, int dirfd, const char *name)
{
	struct digest digest;
	if (digest_from_hex(name, &digest) == 0 ? inventory_needs(c->inventory, &digest, false)
						: !is_left_over(c, dirfd, name))
		return;
	remove_name(c, dirfd, name);
}

/* What file_write_at() leaves if it is interrupted: a file whose name begins with a dot. */
static void sweep_temporary(struct collect *c, int dirfd, const char *name)
{
	if (name[0] == '.' && is_left_over(c, dirfd, name))
		remove_name(c, dirfd, name);
}

/* A digest goes with its rendered file; one without may be about to get it. */
static void sweep_digest(struct collect *c, int dirfd, const char *name)
{
	char tree[NAME_MAX + 1];
	snprintf(tree, sizeof(tree), "%.*s", (int)(strlen(name) - strlen(DIGEST_SUFFIX)), name);
	if (faccessat(dirfd, tree, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && is_left_over(c, dirfd, name))
		remove_name(c, dirfd, name);
}

/* Removes a rendered file and its digest, unless it is open. */
static void sweep_tree(struct collect *c, int dirfd, const char *name)
{
	struct digest chain;
	char beside[NAME_MAX + sizeof(DIGEST_SUFFIX)];
	if (store_chain_of_name(name, &chain) && inventory_needs(c->inventory, &chain, true))
		return;
	if (name[0] == '.') {
		sweep_temporary(c, dirfd, name);
		return;
	}
	if (str_ends(name, DIGEST_SUFFIX)) {
		sweep_digest(c, dirfd, name);
		return;
	}
	cleanup_fd int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && lock_try_exclusive(fd) == LOCK_TAKEN)
		return;
	remove_name(c, dirfd, name);
	snprintf(beside, sizeof(beside), "%s" DIGEST_SUFFIX, name);
	remove_name(c, dirfd, beside);
}

/*
 * True if without the reference its name would be that of an image that had it before: the records
 * decide then.
 */
static bool keeps_name_from_others(const struct collect *c, const struct ref *ref)
{
	static const char prefix[] = "name:";
	return str_starts(ref->text, prefix) &&
	       inventory_has_name(c->inventory, ref->text + strlen(prefix));
}

static int sweep_ref(void *ctx, const char *file, const struct ref *ref)
{
	struct collect *c = ctx;
	if (!ref || (!catalog_has_record(c->store, &ref->image) && !keeps_name_from_others(c, ref)))
		remove_name(c, store_dirfd(c->store, STORE_REFS), file);
	return 0;
}

/* The key of "fetch-UID-HEX". */
static bool parse_fetch_name(const char *name, struct digest *ret)
{
	const char *hex = strrchr(name, '-');
	return str_starts(name, "fetch-") && hex && digest_from_hex(hex + 1, ret) == 0;
}

/* In a shared store others' work is theirs to remove, or root's. */
static bool is_ours(int dirfd, const char *name)
{
	struct stat st;
	return geteuid() == 0 ||
	       (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid());
}

/* True if somebody works in the directory: gpg's home is locked while it is used. */
static bool is_in_use(int dirfd, const char *name)
{
	cleanup_fd int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && lock_try_exclusive(fd) == LOCK_TAKEN;
}

/* What a fetch left behind that nobody has gone on with. */
static void sweep_work(struct collect *c, int dirfd, const char *name)
{
	struct digest key;
	cleanup_fd int lock = -EBADF;
	if (!is_left_over(c, dirfd, name) || !is_ours(dirfd, name))
		return;
	if (parse_fetch_name(name, &key) &&
	    store_lock_fetch(c->store, &key, false, &lock, NULL) != 0)
		return;
	if (is_in_use(dirfd, name))
		return;
	int r = rmtree(dirfd, name);
	errno = -r;
	if (r < 0)
		note_failure(c, name);
}

/*
 * Removes all that the inventory does not need. The lock of the images is ours. What a power cut
 * can bring back is not without its blobs then.
 */
static void sweep(struct collect *c)
{
	const struct store *s = c->store;
	int r = catalog_sync(s, c->result < 0 ? NULL : c->e);
	if (r < 0) {
		c->result = c->result < 0 ? c->result : r;
		return;
	}
	cleanup_fd int blobs = path_open_beneath(store_dirfd(s, STORE_LAYOUT), LAYOUT_BLOBS,
						 O_RDONLY | O_DIRECTORY, 0);
	if (blobs >= 0)
		each_name(c, blobs, "oci/" LAYOUT_BLOBS, sweep_blob);
	if (store_may_render(s))
		each_name(c, store_dirfd(s, STORE_TREES), "trees", sweep_tree);
	each_name(c, store_dirfd(s, STORE_LAYOUT), "oci", sweep_temporary);
	each_name(c, store_dirfd(s, STORE_IMAGES), "images", sweep_temporary);
	each_name(c, store_dirfd(s, STORE_REFS), "refs", sweep_temporary);
	catalog_each_ref(s, sweep_ref, c);
	catalog_write_index(s); /* for others */
}

/* Removes a record. True if it is gone. */
static bool remove_record(struct collect *c, const struct digest *id)
{
	int r = catalog_remove(c->store, id, c->result < 0 ? NULL : c->e);
	if (c->result == 0)
		c->result = r;
	return r == 0;
}

int collect_remove(const struct store *s, const struct digest *ids, size_t n, struct err *e)
{
	CLEANUP(inventory_deinit) struct inventory v = INVENTORY_INIT;
	cleanup_fd int lock = -EBADF;
	struct collect c = { .store = s, .inventory = &v, .e = e };
	int r = store_lock_images(s, &lock, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		remove_record(&c, &ids[i]);
	r = inventory_load(s, &v, c.result < 0 ? NULL : e);
	if (r < 0)
		return c.result < 0 ? c.result : r;
	sweep(&c);
	return c.result;
}

static bool is_used(const struct collect_plan *plan, const struct digest *id)
{
	for (size_t i = 0; i < plan->n_used; i++)
		if (digest_equal(&plan->used[i], id))
			return true;
	return false;
}

/* Of the images that may go the one that was used longest ago, or NULL. */
static struct inventory_image *find_oldest(const struct inventory *v,
					   const struct collect_plan *plan)
{
	struct inventory_image *oldest = NULL;
	for (size_t i = 0; i < v->n_images; i++) {
		struct inventory_image *image = &v->images[i];
		if (!image->removed && !image->stuck &&
		    (!oldest || image->last_use_ns < oldest->last_use_ns) &&
		    !is_used(plan, &image->id))
			oldest = image;
	}
	return oldest;
}

static void remove_image(struct collect *c, const struct collect_plan *plan,
			 struct inventory_image *image)
{
	char id[IMAGE_ID_LEN + 1];
	store_list_id(c->store, &image->id, id);
	image->removed = remove_record(c, &image->id);
	image->stuck = !image->removed;
	if (image->removed && plan->removed)
		plan->removed(plan->ctx, id);
}

static void remove_images(struct collect *c, const struct collect_plan *plan, struct inventory *v)
{
	struct inventory_image *image;
	while ((image = find_oldest(v, plan)) &&
	       image->last_use_ns <= plan->now_ns - plan->grace_ns)
		remove_image(c, plan, image);
	while (plan->size_max > 0 && inventory_size(v) > plan->size_max &&
	       (image = find_oldest(v, plan)))
		remove_image(c, plan, image);
}

int collect_garbage(const struct store *s, const struct collect_plan *plan, struct err *e)
{
	CLEANUP(inventory_deinit) struct inventory v = INVENTORY_INIT;
	cleanup_fd int lock = -EBADF;
	struct collect c = {
		.store = s,
		.inventory = &v,
		.unused_since_ns = plan->now_ns - plan->grace_ns,
		.e = e,
	};
	int r = store_lock_images(s, &lock, e);
	if (r == 0)
		r = inventory_load(s, &v, e);
	if (r < 0)
		return r;
	remove_images(&c, plan, &v);
	sweep(&c);
	fd_replace(&lock, -EBADF);
	each_name(&c, store_tmp_dirfd(s), "tmp", sweep_work);
	return c.result;
}
