/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/json.h"

#define VERSION 1 /* of the format; a newer one is not read */

static const char *const kinds[IMAGE_KINDS] = {
	[IMAGE_OCI] = "oci",
	[IMAGE_ROOTFS] = "rootfs",
	[IMAGE_ACI] = "aci",
};

void record_init(struct record *r)
{
	*r = (struct record){ 0 };
	strv_init(&r->names, RECORD_NAMES_MAX);
}

void record_deinit(struct record *r)
{
	if (!r)
		return;
	strv_deinit(&r->names);
	free(r->below);
	record_init(r);
}

void record_id_text(const struct record *r, char out[IMAGE_ID_LEN + 1])
{
	bool is_key = r->kind == IMAGE_ACI && r->key[0];
	snprintf(out, IMAGE_ID_LEN + 1, "%s-%.*s", is_key ? "sha512" : "sha256", DIGEST_HEX_LEN,
		 is_key ? r->key : r->id.hex);
}

const char *record_name(const struct record *r)
{
	return r->names.n > 0 ? r->names.v[r->names.n - 1] : "";
}

/* Frees the member @i and closes the gap. */
static void forget_name(struct strv *names, size_t i)
{
	free(names->v[i]);
	memmove(&names->v[i], &names->v[i + 1], (names->n - i) * sizeof(*names->v));
	names->n--;
}

bool record_remove_name(struct record *r, const char *name)
{
	for (size_t i = 0; i < r->names.n; i++) {
		if (strcmp(r->names.v[i], name) == 0) {
			forget_name(&r->names, i);
			return true;
		}
	}
	return false;
}

int record_add_name(struct record *r, const char *name)
{
	if (!str_is_text(name, IMAGE_NAME_MAX))
		return -EINVAL;
	if (strcmp(record_name(r), name) == 0)
		return 0;
	char copy[IMAGE_NAME_MAX + 1];
	str_copy(copy, sizeof(copy), name); /* it may be the member that goes */
	record_remove_name(r, copy);
	if (r->names.n == RECORD_NAMES_MAX)
		forget_name(&r->names, 0);
	return strv_add(&r->names, copy);
}

int record_set_below(struct record *r, const struct digest *ids, size_t n)
{
	if (n > RECORD_BELOW_MAX)
		return -E2BIG;
	struct digest *copy = calloc(MAX(n, (size_t)1), sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		copy[i] = ids[i];
	free(r->below);
	r->below = copy;
	r->n_below = n;
	return 0;
}

/* What only ACIs have. */
static int put_aci(struct json_object *o, const struct record *r)
{
	CLEANUP(strv_deinit) struct strv below;
	strv_init(&below, RECORD_BELOW_MAX);
	if (r->kind != IMAGE_ACI)
		return 0;
	int e = json_put_str(o, "key", r->key);
	for (size_t i = 0; e == 0 && i < r->n_below; i++)
		e = strv_add(&below, r->below[i].hex);
	if (e == 0)
		e = json_put_strv(o, "below", &below);
	return e < 0 || !r->unverified ? e : json_put_bool(o, "unverified", true);
}

int record_format(const struct record *r, struct buf *out)
{
	cleanup_json struct json_object *o = json_make(
		"version", json_object_new_int64(VERSION), "id", json_object_new_string(r->id.hex),
		"kind", json_object_new_string(kinds[r->kind]), "names", json_list_strv(&r->names),
		"chain", json_object_new_string(r->chain.hex), "size",
		json_object_new_int64((int64_t)r->size), "imported",
		json_object_new_int64(r->imported_ns), NULL);
	int e = o ? put_aci(o, r) : -ENOMEM;
	return e < 0 ? e : json_write(o, true, out);
}

/* A member with the hex digits of a digest. */
static int get_digest(struct json_object *o, const char *key, struct digest *ret)
{
	const char *hex;
	int r = json_get_str(o, key, DIGEST_HEX_LEN, &hex);
	return r < 0 || digest_from_hex(hex, ret) < 0 ? -EBADMSG : 0;
}

static int get_kind(struct json_object *o, enum image_kind *ret)
{
	const char *text;
	if (json_get_str(o, "kind", IMAGE_NAME_MAX, &text) < 0)
		return -EBADMSG;
	for (enum image_kind k = 0; k < IMAGE_KINDS; k++) {
		if (strcmp(kinds[k], text) == 0) {
			*ret = k;
			return 0;
		}
	}
	return -EBADMSG;
}

static int get_names(struct json_object *o, struct strv *ret)
{
	int r = json_get_strv(o, "names", IMAGE_NAME_MAX, ret);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || ret->n == 0)
		return -EBADMSG;
	for (size_t i = 0; i < ret->n; i++)
		if (!str_is_text(ret->v[i], IMAGE_NAME_MAX))
			return -EBADMSG;
	return 0;
}

/* What only ACIs have. */
static int get_aci(struct json_object *o, struct record *ret)
{
	CLEANUP(strv_deinit) struct strv below;
	struct digest ids[RECORD_BELOW_MAX];
	const char *key;
	strv_init(&below, RECORD_BELOW_MAX);
	if (ret->kind != IMAGE_ACI)
		return 0;
	if (json_get_str(o, "key", RECORD_KEY_LEN, &key) < 0 || !hex_is_valid(key, RECORD_KEY_LEN))
		return -EBADMSG;
	str_copy(ret->key, sizeof(ret->key), key);
	int r = json_get_bool(o, "unverified", &ret->unverified);
	if (r < 0 && r != -ENOENT)
		return -EBADMSG;
	r = json_get_strv(o, "below", DIGEST_HEX_LEN, &below);
	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	for (size_t i = 0; i < below.n; i++)
		if (digest_from_hex(below.v[i], &ids[i]) < 0)
			return -EBADMSG;
	return record_set_below(ret, ids, below.n);
}

int record_parse(const char *text, size_t len, struct record *ret)
{
	cleanup_json struct json_object *o = NULL;
	int64_t version, size;
	int r = len > RECORD_JSON_MAX ? -EBADMSG : json_parse(text, len, &o);
	if (r < 0)
		return r;
	if (json_get_int(o, "version", VERSION, VERSION, &version) < 0 ||
	    json_get_int(o, "size", 0, INT64_MAX, &size) < 0 ||
	    json_get_int(o, "imported", 0, INT64_MAX, &ret->imported_ns) < 0)
		return -EBADMSG;
	ret->size = (uint64_t)size;
	r = get_digest(o, "id", &ret->id);
	if (r == 0)
		r = get_digest(o, "chain", &ret->chain);
	if (r == 0)
		r = get_kind(o, &ret->kind);
	if (r == 0)
		r = get_aci(o, ret);
	return r < 0 ? r : get_names(o, &ret->names);
}
