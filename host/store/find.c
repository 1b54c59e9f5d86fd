/* SPDX-License-Identifier: Apache-2.0 */
#include "host/store/find.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/image/aci.h"
#include "host/image/config.h"
#include "host/store/catalog.h"
#include "host/store/layout.h"
#include "host/store/store_int.h"
#include "lib/base/str.h"

#define PREFIX     "sha256-"
#define KEY_PREFIX "sha512-" /* as long */
#define PREFIX_LEN (sizeof(PREFIX) - 1)

/* Exactly one image must have the hash. */
static int check_matches(size_t n, const char *hex, struct err *e)
{
	if (n == 0)
		return err_set(e, -ENOENT, "no image IDs found (see \"husk image list\")");
	if (n > 1)
		return err_set(e, -EEXIST,
			       "ambiguous image ID: \"%s\" (%zu images; give more digits)", hex, n);
	return 0;
}

/* The only member of the sorted list that begins with @hex. */
static int find_prefix(const struct catalog_list *l, const char *hex, struct digest *ret,
		       struct err *e)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++) {
		if (!str_starts(l->ids[i].hex, hex))
			continue;
		*ret = l->ids[i];
		n++;
	}
	return check_matches(n, hex, e);
}

/* The appc image whose key begins with @hex. */
static int find_key(const struct store *s, const char *hex, struct digest *ret, struct err *e)
{
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	size_t n = 0;
	int r = catalog_list(s, &l, e);
	for (size_t i = 0; r == 0 && i < l.n; i++) {
		CLEANUP(record_deinit) struct record record;
		record_init(&record);
		if (catalog_get(s, &l.ids[i], &record, NULL) != 0 || !record.key[0] ||
		    !str_starts(record.key, hex))
			continue;
		*ret = l.ids[i];
		n++;
	}
	return r < 0 ? r : check_matches(n, hex, e);
}

/* The labels that an appc image of the store has. */
static int read_labels(const struct store *s, const struct record *record, struct acname *ret)
{
	CLEANUP(layout_image_deinit) struct layout_image image;
	CLEANUP(aci_manifest_deinit) struct aci_manifest m;
	cleanup_free char *text = NULL;
	size_t len = 0;
	layout_image_init(&image);
	aci_manifest_init(&m);
	int r = layout_read_image(store_layout_dirfd(s), &record->id, true, record->below,
				  record->n_below, &image, NULL);
	if (r == 0)
		r = layout_read_document(store_layout_dirfd(s), &image.manifest.config.digest,
					 image.manifest.config.size, "configuration", &text, &len,
					 NULL);
	if (r == 0)
		r = aci_manifest_parse(text, len, &m, NULL);
	if (r == 0)
		*ret = m.name;
	return r;
}

/* True if one of the names that the image was given is this one, with or without a version. */
static bool is_called(const struct record *record, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < record->names.n; i++)
		if (strncmp(record->names.v[i], name, len) == 0 &&
		    (record->names.v[i][len] == '\0' || record->names.v[i][len] == ':'))
			return true;
	return false;
}

/* True if the record is of an appc image with that name, these labels, and a key that begins so. */
static bool is_wanted(const struct store *s, const struct record *record, const struct acname *want,
		      const char *key, bool verified)
{
	struct acname have;
	return record->kind == IMAGE_ACI && !(verified && record->unverified) &&
	       str_starts(record->key, key) && is_called(record, want->name) &&
	       read_labels(s, record, &have) == 0 && strcmp(have.name, want->name) == 0 &&
	       !acname_missing(&have, want);
}

bool find_is_appc(const struct store *s, const struct digest *id, const struct acname *want,
		  const char *key, bool verified)
{
	CLEANUP(record_deinit) struct record record;
	record_init(&record);
	return catalog_get(s, id, &record, NULL) == 0 && is_wanted(s, &record, want, key, verified);
}

int find_appc(const struct store *s, const struct acname *want, const char *key, bool verified,
	      struct digest *ret, struct err *e)
{
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	int64_t newest = -1;
	int r = catalog_list(s, &l, e);
	for (size_t i = 0; r == 0 && i < l.n; i++) {
		CLEANUP(record_deinit) struct record record;
		record_init(&record);
		if (catalog_get(s, &l.ids[i], &record, NULL) != 0 || record.imported_ns <= newest ||
		    !is_wanted(s, &record, want, key, verified))
			continue;
		newest = record.imported_ns;
		*ret = l.ids[i];
	}
	if (r < 0 || newest >= 0)
		return r;
	return err_set(e, -ENOENT,
		       "cannot find aci satisfying name: \"%s\" and its labels in the "
		       "local store",
		       want->name);
}

int find_acname(const struct store *s, const struct acname *want, struct digest *ret, struct err *e)
{
	return find_appc(s, want, "", false, ret, e);
}

int find_id(const struct store *s, const char *text, struct digest *ret, struct err *e)
{
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	struct digest whole;
	bool is_key = str_starts(text, KEY_PREFIX);
	const char *hex = is_key || str_starts(text, PREFIX) ? text + PREFIX_LEN : text;
	size_t len = strlen(hex);
	if (strspn(hex, "0123456789abcdef") != len ||
	    len > (is_key ? ACI_KEY_LEN : (size_t)DIGEST_HEX_LEN))
		return err_set(e, -EINVAL, "\"%s\" is no image ID (" PREFIX " and hex digits)",
			       text);
	if (len < FIND_PREFIX_MIN)
		return err_set(e, -EINVAL, "image ID too short (give %zu digits at least)",
			       FIND_PREFIX_MIN);
	if (is_key)
		return find_key(s, hex, ret, e);
	if (digest_from_hex(hex, &whole) == 0 && catalog_has_record(s, &whole)) {
		*ret = whole;
		return 0;
	}
	int r = catalog_list(s, &l, e);
	return r < 0 ? r : find_prefix(&l, hex, ret, e);
}

/* True if the text stands for an image that is still there. */
static bool try_ref(const struct store *s, const char *text, struct digest *ret)
{
	struct ref ref;
	if (catalog_get_ref(s, text, &ref) != 0 || !catalog_has_record(s, &ref.image))
		return false;
	*ret = ref.image;
	return true;
}

static bool has_name(const struct record *record, const char *name)
{
	for (size_t i = 0; i < record->names.n; i++)
		if (strcmp(record->names.v[i], name) == 0)
			return true;
	return false;
}

/* Without a reference, which may be lost: of the images whose records have the name that imported last. */
static int search_records(const struct store *s, const char *name, struct digest *ret,
			  struct err *e)
{
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	int64_t newest = -1;
	int r = catalog_list(s, &l, e);
	for (size_t i = 0; r == 0 && i < l.n; i++) {
		CLEANUP(record_deinit) struct record record;
		record_init(&record);
		if (catalog_get(s, &l.ids[i], &record, NULL) != 0 || !has_name(&record, name) ||
		    record.imported_ns <= newest)
			continue;
		newest = record.imported_ns;
		*ret = l.ids[i];
	}
	return r < 0 || newest >= 0 ? r : STORE_MISSING;
}

int find_name(const struct store *s, const char *text, struct digest *ret, struct err *e)
{
	char key[IMAGE_NAME_MAX + sizeof("name:")];
	if (strlen(text) > IMAGE_NAME_MAX)
		return err_set(e, -ENOENT, "no image has a name of more than %zu bytes",
			       IMAGE_NAME_MAX);
	snprintf(key, sizeof(key), "name:%s", text);
	if (try_ref(s, key, ret))
		return 0;
	int r = search_records(s, text, ret, e);
	if (r != STORE_MISSING)
		return r;
	return err_set(e, -ENOENT,
		       "cannot find an image of this name in the local store (see \"husk image "
		       "list\"; for a registry: docker://%s; for a file: its path)",
		       text);
}

int find_image(const struct store *s, const char *text, struct digest *ret, struct err *e)
{
	return str_starts(text, PREFIX) || str_starts(text, KEY_PREFIX)
		       ? find_id(s, text, ret, e)
		       : find_name(s, text, ret, e);
}
