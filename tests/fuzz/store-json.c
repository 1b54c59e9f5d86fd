/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records and references of the store, which other members of a group may have written, and names
 * of files. The first byte says which parser gets the rest. What is accepted is within its limits,
 * and the same when it is written and read again.
 */
#include <stdlib.h>
#include <string.h>

#include "images/store/record.h"
#include "images/store/ref.h"
#include "images/store/store_int.h"

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static void check_record(const struct record *r)
{
	CHECK(strlen(r->id.hex) == DIGEST_HEX_LEN && strlen(r->chain.hex) == DIGEST_HEX_LEN);
	CHECK(r->kind < IMAGE_KINDS && r->imported_ns >= 0 && r->size <= INT64_MAX);
	CHECK(r->names.n > 0 && r->names.n <= RECORD_NAMES_MAX);
	for (size_t i = 0; i < r->names.n; i++)
		CHECK(str_is_text(r->names.v[i], IMAGE_NAME_MAX));
}

static void check_equal_records(const struct record *a, const struct record *b)
{
	CHECK(digest_equal(&a->id, &b->id) && digest_equal(&a->chain, &b->chain));
	CHECK(a->kind == b->kind && a->size == b->size && a->imported_ns == b->imported_ns);
	CHECK(a->names.n == b->names.n);
	for (size_t i = 0; i < a->names.n; i++)
		CHECK(strcmp(a->names.v[i], b->names.v[i]) == 0);
}

static void fuzz_record(const char *text, size_t len)
{
	CLEANUP(record_deinit) struct record r;
	CLEANUP(record_deinit) struct record again;
	cleanup_buf struct buf out;
	record_init(&r);
	record_init(&again);
	buf_init(&out, RECORD_JSON_MAX);
	if (record_parse(text, len, &r) < 0)
		return;
	check_record(&r);
	CHECK(record_format(&r, &out) == 0);
	CHECK(record_parse(buf_data(&out), buf_len(&out), &again) == 0);
	check_equal_records(&r, &again);
	/* What import and listing do with it. */
	record_add_name(&r, record_name(&r));
	record_add_name(&r, r.names.v[0]);
	record_add_name(&r, "one more");
	CHECK(strcmp(record_name(&r), "one more") == 0);
	check_record(&r);
	CHECK(record_remove_name(&r, "one more"));
}

static void check_equal_refs(const struct ref *a, const struct ref *b)
{
	CHECK(strcmp(a->text, b->text) == 0 && strcmp(a->etag, b->etag) == 0);
	CHECK(strcmp(a->last_modified, b->last_modified) == 0);
	CHECK(strcmp(a->stamp, b->stamp) == 0 && strcmp(a->name, b->name) == 0);
	CHECK(strcmp(a->image.hex, b->image.hex) == 0 && strcmp(a->source.hex, b->source.hex) == 0);
	CHECK(a->fetched_ns == b->fetched_ns && a->max_age_s == b->max_age_s);
}

static void fuzz_ref(const char *text, size_t len)
{
	struct ref r, again;
	cleanup_buf struct buf out;
	buf_init(&out, REF_JSON_MAX);
	if (ref_parse(text, len, &r) < 0)
		return;
	CHECK(strlen(r.image.hex) == DIGEST_HEX_LEN);
	CHECK(!*r.source.hex || strlen(r.source.hex) == DIGEST_HEX_LEN);
	CHECK(strlen(r.text) <= REF_TEXT_MAX && strlen(r.etag) <= REF_VALIDATOR_MAX);
	CHECK(strlen(r.stamp) <= REF_STAMP_MAX && strlen(r.name) <= IMAGE_NAME_MAX);
	CHECK(r.fetched_ns >= 0 && r.max_age_s >= 0);
	CHECK(ref_format(&r, &out) == 0);
	CHECK(ref_parse(buf_data(&out), buf_len(&out), &again) == 0);
	check_equal_refs(&r, &again);
}

static void fuzz_tree_name(const char *text, size_t len)
{
	struct digest chain;
	cleanup_free char *name = strndup(text, len);
	if (name && store_chain_of_name(name, &chain))
		CHECK(strncmp(name, chain.hex, DIGEST_HEX_LEN) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	const char *text = (const char *)data + 1;
	if (data[0] == 'i')
		fuzz_record(text, size - 1);
	else if (data[0] == 't')
		fuzz_tree_name(text, size - 1);
	else
		fuzz_ref(text, size - 1);
	return 0;
}
