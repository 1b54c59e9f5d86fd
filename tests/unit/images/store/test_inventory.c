/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/inventory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/store/catalog.h"
#include "images/store/layout.h"
#include "images/store/store_int.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/store/support.h"

static void read_image(const struct store *s, const struct digest *id, struct layout_image *ret)
{
	struct err e = ERR_INIT;
	layout_image_init(ret);
	if (layout_read_image(store_dirfd(s, STORE_LAYOUT), id, false, NULL, 0, ret, &e) < 0)
		fail_msg("%s", e.text);
}

static void load(const struct store *s, struct inventory *ret)
{
	struct err e = ERR_INIT;
	*ret = INVENTORY_INIT;
	if (inventory_load(s, ret, &e) < 0)
		fail_msg("%s", e.text);
}

static struct inventory_image *image_of(const struct inventory *v, const struct digest *id)
{
	for (size_t i = 0; i < v->n_images; i++)
		if (digest_equal(&v->images[i].id, id))
			return &v->images[i];
	fail_msg("%s is not there", id->hex);
	return NULL;
}

/* True if all that the image consists of is needed; the test fails if only a part is. */
static bool is_needed(const struct inventory *v, const struct layout_image *i)
{
	bool needed = inventory_needs(v, &i->id, false);
	assert_int_equal(needed, inventory_needs(v, &i->manifest.layers[0].digest, false));
	assert_int_equal(needed, inventory_needs(v, &i->chain, true));
	return needed;
}

static void test_empty(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	CLEANUP(inventory_deinit) struct inventory v;
	struct digest id;
	digest_of("x", 1, &id);
	load(s, &v);
	assert_int_equal(v.n_images, 0);
	assert_int_equal(inventory_size(&v), 0);
	assert_false(inventory_needs(&v, &id, false));
	assert_false(inventory_has_name(&v, "x"));
	inventory_deinit(NULL);
}

static void test_needs(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	CLEANUP(inventory_deinit) struct inventory v;
	CLEANUP(layout_image_deinit) struct layout_image one;
	CLEANUP(layout_image_deinit) struct layout_image two;
	struct digest ids[2];
	add_image(s, "one", "a", &ids[0]);
	add_image(s, "two", "b", &ids[1]);
	read_image(s, &ids[0], &one);
	read_image(s, &ids[1], &two);
	load(s, &v);
	assert_int_equal(v.n_images, 2);
	assert_true(is_needed(&v, &one) && is_needed(&v, &two));
	assert_false(inventory_needs(&v, &one.id, true)); /* a blob, no tree */
	uint64_t sizes = one.size + two.size;
	sizes += store_tree_size(s, &one.chain) + store_tree_size(s, &two.chain);
	assert_int_equal(inventory_size(&v), sizes);
	image_of(&v, &ids[0])->removed = true;
	assert_false(is_needed(&v, &one));
	assert_true(is_needed(&v, &two));
	assert_int_equal(inventory_size(&v), two.size + store_tree_size(s, &two.chain));
	assert_true(image_of(&v, &ids[1])->last_use_ns > 0);
}

static void test_names(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	CLEANUP(inventory_deinit) struct inventory v;
	struct digest ids[2];
	add_image(s, "one", "a", &ids[0]);
	add_image(s, "two", "b", &ids[1]);
	assert_int_equal(catalog_add_name(s, &ids[1], "a", NULL), 0);
	load(s, &v);
	assert_int_equal(v.n_names, 3);
	assert_true(inventory_has_name(&v, "a") && inventory_has_name(&v, "b"));
	assert_false(inventory_has_name(&v, "c"));
	image_of(&v, &ids[1])->removed = true;
	assert_true(inventory_has_name(&v, "a"));
	assert_false(inventory_has_name(&v, "b"));
	image_of(&v, &ids[0])->removed = true;
	assert_false(inventory_has_name(&v, "a"));
}

/* Another image with the layers of one, but another configuration. */
static void add_sibling(struct store *s, const struct layout_image *of, struct digest *ret)
{
	cleanup_import struct import *i = NULL;
	CLEANUP(oci_manifest_deinit) struct oci_manifest m = OCI_MANIFEST_INIT;
	CLEANUP(buf_deinit) struct buf text;
	struct err e = ERR_INIT;
	char config[1024];
	bool rendered = true;
	buf_init(&text, OCI_JSON_MAX);
	assert_int_equal(import_begin(s, "sibling", &i, &e), 0);
	int len = snprintf(config, sizeof(config),
			   "{\"os\":\"linux\",\"config\":{\"User\":\"u\"},\"rootfs\":{\"type\":"
			   "\"layers\",\"diff_ids\":[\"sha256:%s\"]}}",
			   of->config.diff_ids[0].hex);
	m.layers = calloc(1, sizeof(*m.layers));
	assert_non_null(m.layers);
	m.layers[0] = of->manifest.layers[0];
	m.n_layers = 1;
	m.config = of->manifest.config;
	m.config.size = (uint64_t)len;
	assert_int_equal(import_reuse(i, &m.layers[0].digest, m.layers[0].size), 0);
	assert_int_equal(import_text(i, config, (size_t)len, &m.config.digest, &e), 0);
	assert_int_equal(oci_manifest_format(&m, &text), 0);
	assert_int_equal(import_text(i, buf_data(&text), buf_len(&text), ret, &e), 0);
	if (publish_import(i, ret, "sibling", &rendered, &e) < 0)
		fail_msg("%s", e.text);
	assert_false(rendered);
}

/* What images share is needed until the last of them goes, and counted once. */
static void test_shared(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	CLEANUP(inventory_deinit) struct inventory v;
	CLEANUP(layout_image_deinit) struct layout_image one;
	CLEANUP(layout_image_deinit) struct layout_image sibling;
	struct digest ids[2];
	add_image(s, "one", "a", &ids[0]);
	read_image(s, &ids[0], &one);
	add_sibling(s, &one, &ids[1]);
	read_image(s, &ids[1], &sibling);
	load(s, &v);
	uint64_t tree = store_tree_size(s, &one.chain);
	uint64_t layer = one.manifest.layers[0].size;
	assert_int_equal(inventory_size(&v), one.size + sibling.size - layer + tree);
	for (size_t i = 0; i < 2; i++) {
		image_of(&v, &ids[i])->removed = true;
		bool last = i == 1;
		assert_int_equal(inventory_needs(&v, &one.manifest.layers[0].digest, false), !last);
		assert_int_equal(inventory_needs(&v, &one.chain, true), !last);
		assert_false(inventory_needs(&v, &ids[i], false));
	}
	assert_int_equal(inventory_size(&v), 0);
}

/* Only some uses of a file know how large it is, whichever comes first. */
static void test_sizes(void **state)
{
	struct inventory_image images[3] = { { .removed = false } };
	struct inventory_use uses[] = {
		{ .digest = { "a" }, .size = 0, .image = 0 },
		{ .digest = { "a" }, .size = 10, .image = 1 },
		{ .digest = { "a" }, .size = 0, .image = 2 },
		{ .digest = { "b" }, .size = 5, .image = 1 },
		{ .digest = { "b" }, .size = 0, .image = 0 },
		{ .digest = { "b" }, .size = 7, .image = 0, .is_tree = true },
	};
	const struct inventory v = { .images = images, .n_images = 3, .uses = uses, .n_uses = 6 };
	(void)state;
	assert_int_equal(inventory_size(&v), 22);
	images[1].removed = true;
	assert_int_equal(inventory_size(&v), 7);
	images[0].removed = true;
	assert_int_equal(inventory_size(&v), 0);
}

/* Of an image that is damaged nothing is needed, whatever is in place of its files. */
static void test_damaged(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	char record[128], manifest[128];
	int dir = fixture_dir(state);
	add_image(s, "one", "a", &id);
	snprintf(record, sizeof(record), "images/%s.json", id.hex);
	snprintf(manifest, sizeof(manifest), "oci/" LAYOUT_BLOBS "/%s", id.hex);
	for (int kind = 0; kind < 6; kind++) {
		CLEANUP(inventory_deinit) struct inventory v;
		const char *path = kind == 0 ? manifest : record;
		assert_int_equal(unlinkat(dir, path, kind == 4 ? AT_REMOVEDIR : 0), 0);
		if (kind == 1)
			fixture_write(state, path, "{}", 2);
		else if (kind == 2)
			assert_int_equal(symlinkat(manifest, dir, path), 0);
		else if (kind == 3)
			assert_int_equal(mkdirat(dir, path, 0755), 0);
		else if (kind == 4)
			assert_int_equal(mkfifoat(dir, path, 0644), 0);
		else if (kind == 5)
			assert_int_equal(mknodat(dir, path, S_IFSOCK | 0644, 0), 0);
		load(s, &v);
		assert_int_equal(v.n_images, 1);
		assert_int_equal(v.n_uses, 0);
	}
}

static int load_as_member(void **state, void *ctx)
{
	struct store *s = NULL;
	struct inventory v;
	struct err e = ERR_INIT;
	(void)ctx;
	MUST(store_open(fixture_dir(state), "DIR", &s, NULL) == 0);
	MUST(inventory_load(s, &v, &e) == -EACCES);
	MUST(strstr(e.text, "cannot tell what image sha256-"));
	MUST(strstr(e.text, "Permission denied"));
	store_free(s);
	return 0;
}

/* What somebody may not read is no damage: nobody knows what it needs. */
static void test_unreadable(void **state)
{
	struct digest id;
	char record[128];
	if (!share_store(state))
		skip();
	cleanup_store struct store *s = must_open_store(state);
	add_image(s, "one", "a", &id);
	snprintf(record, sizeof(record), "images/%s.json", id.hex);
	assert_int_equal(fchmodat(fixture_dir(state), record, 0600, 0), 0);
	run_as_member(state, load_as_member, NULL);
}

static int load_once(void *ctx)
{
	CLEANUP(inventory_deinit) struct inventory v = INVENTORY_INIT;
	struct err e = ERR_INIT;
	int r = inventory_load(ctx, &v, &e);
	if (r < 0)
		return e.text[0] == '\0' ? 1 : r;
	return v.n_uses == 8 ? 0 : 2; /* no image is forgotten */
}

static void test_allocations(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	add_image(s, "one", "a", &id);
	add_image(s, "two", "b", &id);
	for_each_failing_alloc(load_once, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_empty),      fixture_test(test_needs),
		fixture_test(test_names),      fixture_test(test_shared),
		fixture_test(test_sizes),      fixture_test(test_damaged),
		fixture_test(test_unreadable), fixture_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
