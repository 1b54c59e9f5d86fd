/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/find.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "images/spec/aci.h"
#include "images/spec/config.h"
#include "images/spec/registry_name.h"
#include "images/store/catalog.h"
#include "images/store/layout.h"
#include "images/store/store_int.h"
#include "lib/base/buf.h"
#include "lib/base/str.h"

#define PREFIX     "sha256-"
#define KEY_PREFIX "sha512-" /* as long */
#define PREFIX_LEN (sizeof(PREFIX) - 1)

#define CANDIDATES_MAX      ((size_t)4)    /* as many as a line of a message holds */
#define CANDIDATES_TEXT_MAX ((size_t)2048) /* these, each with a name of REGISTRY_TEXT_MAX */

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

/*
 * Reads the record of an image that was listed. True if it is to be looked at; else *ret is a
 * failure that must not be taken for its absence, or as it was.
 */
static bool find_load(const struct store *s, const struct digest *id, struct record *record,
		      int *ret, struct err *e)
{
	int r = catalog_get(s, id, record, NULL);
	if (r == -ENOMEM)
		*ret = err_set(e, r, "out of memory");
	return r == 0;
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

/* True if the ID that appc tools know begins with @hex: of an appc image the key. */
static bool has_key(const struct record *record, const char *hex)
{
	char id[DIGEST_APPC_ID_LEN + 1];
	if (record->kind == IMAGE_ACI)
		return str_starts(record->key, hex);
	digest_appc_id(&record->id, id);
	return str_starts(id + PREFIX_LEN, hex);
}

/* The image whose ID of appc begins with @hex. */
static int find_key(const struct store *s, const char *hex, struct digest *ret, struct err *e)
{
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	size_t n = 0;
	int r = catalog_list(s, &l, e);
	for (size_t i = 0; r == 0 && i < l.n; i++) {
		CLEANUP(record_deinit) struct record record;
		record_init(&record);
		if (!find_load(s, &l.ids[i], &record, &r, e) || !has_key(&record, hex))
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
	int r = layout_read_image(store_dirfd(s, STORE_LAYOUT), &record->id, true, record->below,
				  record->n_below, &image, NULL);
	if (r == 0)
		r = layout_read_document(store_dirfd(s, STORE_LAYOUT),
					 &image.manifest.config.digest, image.manifest.config.size,
					 "configuration", &text, &len, NULL);
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

int find_id(const struct store *s, const char *text, struct digest *ret, struct err *e)
{
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	struct digest whole;
	bool is_key = str_starts(text, KEY_PREFIX);
	const char *hex = is_key || str_starts(text, PREFIX) ? text + PREFIX_LEN : text;
	size_t len = strlen(hex);
	if (strspn(hex, "0123456789abcdef") != len ||
	    len > (is_key ? ACI_KEY_LEN : (size_t)DIGEST_HEX_LEN))
		return err_set(e, -EINVAL, "\"%s\" is not an image ID (" PREFIX " and hex digits)",
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

/* The newest of several. */
struct newest {
	struct digest id;
	int64_t imported_ns; /* -1: none yet */
};

/* What a name may stand for. */
struct candidates {
	struct {
		struct digest id;
		char name[REGISTRY_TEXT_MAX + 1]; /* what it is called */
	} v[CANDIDATES_MAX];
	size_t n;
};

/* Adds an image, once; what is too much is not needed for saying that there are several. */
static void add_candidate(struct candidates *c, const struct digest *id, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (digest_equal(&c->v[i].id, id))
			return;
	if (c->n == CANDIDATES_MAX)
		return;
	c->v[c->n].id = *id;
	str_copy(c->v[c->n++].name, REGISTRY_TEXT_MAX + 1, name);
}

/* What is looked for in the records, and what was found. */
struct search {
	const struct store *store;
	const char *name;          /* one of its names, or NULL */
	const char *normal;        /* a registry's name, whatever its spelling, or NULL */
	const struct acname *want; /* is_wanted(), with what follows; or NULL */
	const char *key;
	bool verified;
	struct newest called; /* of the images that are called @name */
	struct newest appc;   /* of those that are wanted */
	struct candidates found;
};

static int look_at_all(struct search *q, struct err *e);

/*
 * Without a reference, which may be lost: of the images whose records have the name that imported
 * last.
 */
static int search_records(const struct store *s, const char *name, struct digest *ret,
			  struct err *e)
{
	struct search q = { .store = s, .name = name, .called.imported_ns = -1 };
	int r = look_at_all(&q, e);
	*ret = q.called.id;
	return r < 0 || q.called.imported_ns >= 0 ? r : STORE_MISSING;
}

/* True if it is known what the text stands for, though that may be gone. */
static bool has_reference(const struct store *s, const char *text)
{
	struct ref ref;
	return catalog_get_ref(s, text, &ref) == 0;
}

/* The image that is called exactly that. 0, STORE_MISSING, or -errno with @e. */
static int find_exact(const struct store *s, const char *name, struct digest *ret, struct err *e)
{
	char key[IMAGE_NAME_MAX + sizeof("name:")];
	snprintf(key, sizeof(key), "name:%s", name);
	if (try_ref(s, key, ret))
		return 0;
	return has_reference(s, key) ? STORE_MISSING : search_records(s, name, ret, e);
}

/*
 * Adds what has one of its names in another spelling, unless that name stands for another image
 * now.
 */
static int add_spellings(struct search *q, const struct record *record, struct err *e)
{
	char normal[REGISTRY_TEXT_MAX + 1];
	int r = 0;
	for (size_t i = 0; r == 0 && i < record->names.n; i++) {
		const char *name = record->names.v[i];
		struct digest id;
		if (!registry_name_normal(name, normal) || strcmp(normal, q->normal) != 0)
			continue;
		r = find_exact(q->store, name, &id, e);
		if (r == 0)
			add_candidate(&q->found, &id, name);
		r = MIN(r, 0);
	}
	return r;
}

static bool is_newer(const struct record *record, const struct newest *n)
{
	return record->imported_ns > n->imported_ns;
}

/* Looks at each image once. */
static int look_at_all(struct search *q, struct err *e)
{
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	int r = catalog_list(q->store, &l, e);
	for (size_t i = 0; r == 0 && i < l.n; i++) {
		CLEANUP(record_deinit) struct record record;
		record_init(&record);
		if (!find_load(q->store, &l.ids[i], &record, &r, e))
			continue;
		const struct newest this = { record.id, record.imported_ns };
		if (q->name && is_newer(&record, &q->called) && has_name(&record, q->name))
			q->called = this;
		if (q->want && is_newer(&record, &q->appc) &&
		    is_wanted(q->store, &record, q->want, q->key, q->verified))
			q->appc = this;
		if (q->normal)
			r = add_spellings(q, &record, e);
	}
	return r;
}

int find_appc(const struct store *s, const struct acname *want, const char *key, bool verified,
	      struct digest *ret, struct err *e)
{
	struct search q = {
		.store = s, .want = want, .key = key, .verified = verified, .appc.imported_ns = -1
	};
	int r = look_at_all(&q, e);
	if (r == 0 && q.appc.imported_ns < 0)
		return err_set(e, -ENOENT,
			       "cannot find aci satisfying name: \"%s\" and its labels in the "
			       "local store",
			       want->name);
	if (r == 0)
		*ret = q.appc.id;
	return r;
}

/*
 * Of the candidates there must not be an appc image of that name, which is this one in its version
 * of now.
 */
static void add_appc(struct search *q, const char *text)
{
	if (q->appc.imported_ns < 0)
		return;
	for (size_t i = 0; i < q->found.n; i++)
		if (find_is_appc(q->store, &q->found.v[i].id, q->want, q->key, q->verified))
			return;
	add_candidate(&q->found, &q->appc.id, text);
}

/* Finds the candidates. What is spelled in full, or with a scheme, is nothing else. */
static int find_candidates(struct search *q, const char *text, struct err *e)
{
	char key[sizeof("docker://") + REGISTRY_TEXT_MAX];
	struct digest id;
	bool in_full = q->normal && strcmp(q->name, q->normal) == 0;
	bool by_name = q->name == text || in_full;
	snprintf(key, sizeof(key), "name:%s", q->name);
	bool has_ref = by_name && has_reference(q->store, key);
	if (by_name && try_ref(q->store, key, &id))
		add_candidate(&q->found, &id, q->name);
	if (in_full && q->found.n > 0)
		return 0;
	snprintf(key, sizeof(key), "docker://%s", q->normal ? q->normal : "");
	if (q->normal && try_ref(q->store, key, &id))
		add_candidate(&q->found, &id, q->normal);
	int r = look_at_all(q, e);
	if (r == 0 && by_name && !has_ref && q->called.imported_ns >= 0)
		add_candidate(&q->found, &q->called.id, q->name);
	if (r == 0)
		add_appc(q, text);
	return r;
}

static int ambiguous_name(const struct candidates *c, const char *text, struct err *e)
{
	cleanup_buf struct buf list;
	buf_init(&list, CANDIDATES_TEXT_MAX);
	for (size_t i = 0; i < c->n; i++)
		buf_printf(&list, "%s%s (sha256-%.12s)", i > 0 ? ", " : "", c->v[i].name,
			   c->v[i].id.hex);
	return err_set(e, -EEXIST, "several images are meant by \"%.80s\": %.*s (give an ID)", text,
		       (int)buf_len(&list), buf_data(&list));
}

int find_name(const struct store *s, const char *text, struct digest *ret, struct err *e)
{
	char normal[REGISTRY_TEXT_MAX + 1];
	struct acname want;
	struct search q = { .store = s,
			    .name = registry_name_bare(text),
			    .key = "",
			    .called.imported_ns = -1,
			    .appc.imported_ns = -1 };
	if (strlen(q.name) > IMAGE_NAME_MAX)
		return err_set(e, -ENOENT, "no image has a name of more than %zu bytes",
			       IMAGE_NAME_MAX);
	if (registry_name_normal(text, normal))
		q.normal = normal;
	if (q.name == text && acname_parse(text, &want, NULL) == 0)
		q.want = &want;
	int r = find_candidates(&q, text, e);
	if (r < 0)
		return r;
	if (q.found.n > 1)
		return ambiguous_name(&q.found, text, e);
	if (q.found.n == 0)
		return err_set(e, -ENOENT,
			       "cannot find an image of this name in the local store (see \"husk "
			       "image list\"; for a registry: docker://%s; for a file: its path)",
			       q.name);
	*ret = q.found.v[0].id;
	return 0;
}

int find_image(const struct store *s, const char *text, struct digest *ret, struct err *e)
{
	return str_starts(text, PREFIX) || str_starts(text, KEY_PREFIX)
		       ? find_id(s, text, ret, e)
		       : find_name(s, text, ret, e);
}
