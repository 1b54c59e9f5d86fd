/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/catalog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/spec/oci.h"
#include "images/store/layout.h"
#include "images/store/store_int.h"
#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

#define INDEX_MAX ((size_t)256 * 1024 * 1024) /* 65,536 images of 64 names, 60 bytes each */

/* "HEX.json" */
#define FILE_NAME_LEN (DIGEST_HEX_LEN + sizeof(".json"))

static void file_name(const struct digest *d, char out[FILE_NAME_LEN])
{
	snprintf(out, FILE_NAME_LEN, "%s.json", d->hex);
}

/* The reverse. 0 or -EINVAL. */
static int parse_file_name(const char *name, struct digest *ret)
{
	char hex[DIGEST_HEX_LEN + 1];
	if (strlen(name) != FILE_NAME_LEN - 1 || strcmp(name + DIGEST_HEX_LEN, ".json") != 0)
		return -EINVAL;
	memcpy(hex, name, DIGEST_HEX_LEN);
	hex[DIGEST_HEX_LEN] = '\0';
	return digest_from_hex(hex, ret);
}

int catalog_get(const struct store *s, const struct digest *id, struct record *ret, struct err *e)
{
	char name[FILE_NAME_LEN];
	cleanup_free char *text = NULL;
	size_t len = 0;
	file_name(id, name);
	int r = file_read_at(store_dirfd(s, STORE_IMAGES), name, RECORD_JSON_MAX, &text, &len);
	if (r == -ENOENT)
		return STORE_MISSING;
	if (r == 0)
		r = record_parse(text, len, ret);
	if (r == 0 && !digest_equal(&ret->id, id))
		r = -EBADMSG;
	if (r == -EBADMSG)
		return err_set(e, r,
			       "the record %s/images/%s is damaged (remove it and fetch the image "
			       "again)",
			       store_path(s), name);
	return r < 0 ? err_sys(e, r, "cannot read %s/images/%s", store_path(s), name) : 0;
}

int catalog_put(const struct store *s, const struct record *r, struct err *e)
{
	char name[FILE_NAME_LEN];
	cleanup_buf struct buf text;
	buf_init(&text, RECORD_JSON_MAX);
	file_name(&r->id, name);
	int x = record_format(r, &text);
	if (x == 0)
		x = file_write_at(store_dirfd(s, STORE_IMAGES), name, buf_data(&text),
				  buf_len(&text), store_file_mode(s));
	return x < 0 ? err_sys(e, x, "cannot write %s/images/%s", store_path(s), name)
		     : catalog_sync(s, e);
}

int catalog_sync(const struct store *s, struct err *e)
{
	return fsync(store_dirfd(s, STORE_IMAGES)) < 0
		       ? err_sys(e, -errno, "cannot sync %s/images", store_path(s))
		       : 0;
}

int catalog_remove(const struct store *s, const struct digest *id, struct err *e)
{
	char name[FILE_NAME_LEN];
	file_name(id, name);
	if (unlinkat(store_dirfd(s, STORE_IMAGES), name, 0) < 0 && errno != ENOENT)
		return err_sys(e, -errno, "cannot remove %s/images/%s", store_path(s), name);
	return 0;
}

void catalog_use(const struct store *s, const struct digest *id)
{
	char name[FILE_NAME_LEN];
	file_name(id, name);
	utimensat(store_dirfd(s, STORE_IMAGES), name, NULL, AT_SYMLINK_NOFOLLOW);
}

int64_t catalog_last_use(const struct store *s, const struct digest *id)
{
	char name[FILE_NAME_LEN];
	struct stat st;
	file_name(id, name);
	if (fstatat(store_dirfd(s, STORE_IMAGES), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return (int64_t)st.st_mtim.tv_sec * NS_PER_SEC + st.st_mtim.tv_nsec;
}

uint64_t catalog_rendered_size(const struct store *s, const struct record *r)
{
	return store_tree_size(s, &r->chain);
}

/* The name of the file for the reference @text. */
static void ref_name(const char *text, char out[FILE_NAME_LEN])
{
	struct digest d;
	digest_of(text, strlen(text), &d);
	file_name(&d, out);
}

static int read_ref(const struct store *s, const char *name, struct ref *ret)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = file_read_at(store_dirfd(s, STORE_REFS), name, REF_JSON_MAX, &text, &len);
	return r < 0 ? r : ref_parse(text, len, ret);
}

int catalog_get_ref(const struct store *s, const char *text, struct ref *ret)
{
	char name[FILE_NAME_LEN];
	ref_name(text, name);
	if (read_ref(s, name, ret) < 0)
		return STORE_MISSING;
	return str_copy(ret->text, sizeof(ret->text), text) < 0 ? STORE_MISSING : 0;
}

static bool has_content(int dirfd, const char *name, const struct buf *text)
{
	cleanup_free char *old = NULL;
	size_t len = 0;
	return file_read_at(dirfd, name, REF_JSON_MAX, &old, &len) == 0 && len == buf_len(text) &&
	       memcmp(old, buf_data(text), len) == 0;
}

/*
 * Each start of a pod comes here, mostly with what is there, and a replaced file is written out at
 * once by ext4.
 */
int catalog_put_ref(const struct store *s, const struct ref *r)
{
	char name[FILE_NAME_LEN];
	cleanup_buf struct buf text;
	buf_init(&text, REF_JSON_MAX);
	ref_name(r->text, name);
	int x = ref_format(r, &text);
	if (x < 0 || has_content(store_dirfd(s, STORE_REFS), name, &text))
		return x;
	return file_replace_at(store_dirfd(s, STORE_REFS), name, buf_data(&text), buf_len(&text),
			       store_file_mode(s));
}

int catalog_refer(const struct store *s, const struct ref *r, struct err *e)
{
	struct ref old;
	int x = catalog_put_ref(s, r);
	if (x == 0 ||
	    (catalog_get_ref(s, r->text, &old) == 0 && digest_equal(&old.image, &r->image)))
		return 0;
	return err_sys(e, x, "cannot note in %s/refs which image that is", store_path(s));
}

/* The reference for a name. */
#define NAME_TEXT_LEN (sizeof("name:") + IMAGE_NAME_MAX)

static void name_text(const char *name, char out[NAME_TEXT_LEN])
{
	snprintf(out, NAME_TEXT_LEN, "name:%s", name);
}

bool catalog_stands_for(const struct store *s, const char *name, const struct digest *id)
{
	struct ref ref;
	char text[NAME_TEXT_LEN];
	name_text(name, text);
	return catalog_get_ref(s, text, &ref) != 0 || digest_equal(&ref.image, id);
}

int catalog_put_name(const struct store *s, const struct digest *id, const char *name,
		     struct err *e)
{
	struct ref ref;
	char text[NAME_TEXT_LEN];
	name_text(name, text);
	int r = ref_init(&ref, text);
	if (r < 0)
		return err_sys(e, r, "name \"%s\"", name);
	ref.image = *id;
	return catalog_refer(s, &ref, e);
}

int catalog_add_name(const struct store *s, const struct digest *id, const char *name,
		     struct err *e)
{
	CLEANUP(record_deinit) struct record record;
	cleanup_fd int lock = -EBADF;
	record_init(&record);
	int r = store_lock_images(s, &lock, e);
	if (r == 0)
		r = catalog_get(s, id, &record, e);
	if (r != 0)
		return r;
	bool known = strcmp(record_name(&record), name) == 0;
	bool stands = known && catalog_stands_for(s, name, id);
	if (!known) {
		r = record_add_name(&record, name);
		r = r < 0 ? err_sys(e, r, "name \"%s\"", name) : catalog_put(s, &record, e);
		if (r < 0)
			return r;
	}
	r = catalog_put_name(s, id, name, e);
	if (!stands)
		catalog_write_index(s); /* for others; the next change makes up for it */
	return r;
}

bool catalog_has_record(const struct store *s, const struct digest *id)
{
	char name[FILE_NAME_LEN];
	file_name(id, name);
	return faccessat(store_dirfd(s, STORE_IMAGES), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool catalog_has_image(const struct store *s, const struct digest *id)
{
	CLEANUP(record_deinit) struct record record;
	CLEANUP(layout_image_deinit) struct layout_image image;
	int fd = store_dirfd(s, STORE_LAYOUT);
	record_init(&record);
	layout_image_init(&image);
	return catalog_get(s, id, &record, NULL) == 0 &&
	       layout_read_image(fd, id, record.kind == IMAGE_ACI, record.below, record.n_below,
				 &image, NULL) == 0 &&
	       layout_has_image(fd, &image);
}

void catalog_list_deinit(struct catalog_list *l)
{
	if (!l)
		return;
	free(l->ids);
	*l = CATALOG_LIST_INIT;
}

static int list_add(void *list, const char *name, const struct digest *id)
{
	struct catalog_list *l = list;
	(void)name;
	if (l->n >= CATALOG_IMAGES_MAX)
		return -E2BIG;
	if (!GROW(l->ids, l->n))
		return -ENOMEM;
	l->ids[l->n++] = *id;
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(((const struct digest *)a)->hex, ((const struct digest *)b)->hex);
}

/* Calls @fn for each "HEX.json" of the directory, until it returns not 0. That, 0 or -errno. */
static int each_file(int dirfd, int (*fn)(void *ctx, const char *name, const struct digest *id),
		     void *ctx)
{
	cleanup_dir DIR *dir = fd_list_dir(dirfd);
	if (!dir)
		return -errno;
	for (;;) {
		struct digest id;
		errno = 0;
		const struct dirent *de = readdir(dir);
		if (!de)
			return -errno;
		int r = parse_file_name(de->d_name, &id) == 0 ? fn(ctx, de->d_name, &id) : 0;
		if (r != 0)
			return r;
	}
}

int catalog_list(const struct store *s, struct catalog_list *ret, struct err *e)
{
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	int r = each_file(store_dirfd(s, STORE_IMAGES), list_add, &l);
	if (r < 0)
		return err_sys(e, r, "cannot list %s/images", store_path(s));
	if (l.n > 0)
		qsort(l.ids, l.n, sizeof(*l.ids), compare_ids);
	*ret = l;
	l = CATALOG_LIST_INIT;
	return 0;
}

/* One who looks at all references. */
struct ref_reader {
	const struct store *store;
	int (*fn)(void *ctx, const char *file, const struct ref *ref);
	void *ctx;
};

static int show_ref(void *reader, const char *name, const struct digest *id)
{
	const struct ref_reader *r = reader;
	struct ref ref;
	(void)id;
	int x = read_ref(r->store, name, &ref);
	return x < 0 && !store_is_damage(x) ? 0 : r->fn(r->ctx, name, x < 0 ? NULL : &ref);
}

int catalog_each_ref(const struct store *s,
		     int (*fn)(void *ctx, const char *file, const struct ref *ref), void *ctx)
{
	struct ref_reader reader = { s, fn, ctx };
	return each_file(store_dirfd(s, STORE_REFS), show_ref, &reader);
}

/* One entry of index.json: the image @record under @name. */
static int add_entry(struct json_object *list, const struct store *s, const struct record *record,
		     const char *name)
{
	struct stat st;
	char path[LAYOUT_PATH_LEN];
	layout_path_of_blob(&record->id, path);
	if (fstatat(store_dirfd(s, STORE_LAYOUT), path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* removed meanwhile */
	return json_append(list, oci_make_descriptor(OCI_TYPE_MANIFEST, &record->id,
						     (uint64_t)st.st_size, name));
}

static int add_entries(struct json_object *list, const struct store *s, const struct digest *id)
{
	CLEANUP(record_deinit) struct record record;
	record_init(&record);
	int r = catalog_get(s, id, &record, NULL);
	if (r != 0)
		return r == -ENOMEM ? r : 0;
	for (size_t i = 0; r == 0 && i < record.names.n; i++)
		if (catalog_stands_for(s, record.names.v[i], id))
			r = add_entry(list, s, &record, record.names.v[i]);
	return r;
}

static int format_index(const struct store *s, struct buf *out)
{
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	cleanup_json struct json_object *list = json_object_new_array();
	int r = list ? catalog_list(s, &l, NULL) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < l.n; i++)
		r = add_entries(list, s, &l.ids[i]);
	return r < 0 ? r : oci_index_format(TAKE_PTR(list), out);
}

int catalog_write_index(const struct store *s)
{
	cleanup_buf struct buf text;
	buf_init(&text, INDEX_MAX);
	int r = format_index(s, &text);
	return r < 0 ? r
		     : file_replace_at(store_dirfd(s, STORE_LAYOUT), "index.json", buf_data(&text),
				       buf_len(&text), store_file_mode(s));
}
