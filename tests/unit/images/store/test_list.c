/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/list.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "images/store/catalog.h"
#include "images/store/collect.h"
#include "lib/os/file.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/store/support.h"

/* Keeps what was said of damaged records: the last text, and how many. */
struct told {
	size_t n;
	char last[ERR_TEXT_MAX + 1];
};

static void tell(void *ctx, const char *why)
{
	struct told *told = ctx;
	told->n++;
	str_copy_text(told->last, sizeof(told->last), why);
}

/* What is listed of the image, which is expected. */
static const struct listed_image *must_find(const struct store_list *l, const struct digest *id)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].id + strlen("sha256-"), id->hex) == 0)
			return &l->v[i];
	fail_msg("sha256-%s is not listed", id->hex);
	return &l->v[0];
}

static void test_images(void **state)
{
	CLEANUP(store_list_deinit) struct store_list none = STORE_LIST_INIT, l = STORE_LIST_INIT;
	cleanup_store struct store *s = must_open_store(state);
	struct told told = { .n = 0 };
	struct digest one, two;
	struct err e = ERR_INIT;
	assert_int_equal(store_list_read(s, tell, &told, &none, &e), 0);
	assert_int_equal(none.n, 0);
	add_image(s, "one", "first", &one);
	add_image(s, "two", "moving", &two);
	assert_int_equal(catalog_add_name(s, &two, "second", &e), 0);
	assert_int_equal(catalog_add_name(s, &one, "moving", &e), 0);
	assert_int_equal(store_list_read(s, tell, &told, &l, &e), 0);
	assert_int_equal(told.n, 0);
	assert_int_equal(l.n, 2);
	assert_true(strcmp(l.v[0].id, l.v[1].id) < 0);
	const struct listed_image *first = must_find(&l, &one), *second = must_find(&l, &two);
	assert_int_equal(first->names.n, 2);
	assert_string_equal(first->names.v[1], "moving");
	assert_int_equal(second->names.n, 1); /* the other one has moved */
	assert_string_equal(second->names.v[0], "second");
	assert_true(first->imported_ns > 0 && second->imported_ns >= first->imported_ns);
}

/* The blobs of an image, and its rendered file while there is one. */
static void test_size(void **state)
{
	CLEANUP(store_list_deinit) struct store_list with = STORE_LIST_INIT, bare = STORE_LIST_INIT;
	cleanup_store struct store *s = must_open_store(state);
	CLEANUP(record_deinit) struct record record;
	struct told told = { .n = 0 };
	struct digest id;
	struct err e = ERR_INIT;
	add_image(s, "one", "name", &id);
	record_init(&record);
	assert_int_equal(catalog_get(s, &id, &record, &e), 0);
	assert_int_equal(store_list_read(s, tell, &told, &with, &e), 0);
	uint64_t rendered = catalog_rendered_size(s, &record);
	assert_true(rendered > 0);
	assert_int_equal(with.v[0].size, record.size + rendered);
	char path[256];
	assert_true(snprintf(path, sizeof(path), "trees/%s.v%d", record.chain.hex, RENDER_VERSION) >
		    0);
	assert_int_equal(unlinkat(fixture_dir(state), path, 0), 0);
	assert_int_equal(store_list_read(s, tell, &told, &bare, &e), 0);
	assert_int_equal(bare.v[0].size, record.size);
}

/* One is told of, the others are listed; by its ID it can be spoken of, too. */
static void test_damaged(void **state)
{
	CLEANUP(store_list_deinit) struct store_list l = STORE_LIST_INIT;
	cleanup_store struct store *s = must_open_store(state);
	struct told told = { .n = 0 };
	struct digest one, two;
	struct err e = ERR_INIT;
	char path[256], text[IMAGE_ID_LEN + 1], want[IMAGE_ID_LEN + 1];
	add_image(s, "one", "first", &one);
	add_image(s, "two", "second", &two);
	assert_true(snprintf(path, sizeof(path), "images/%s.json", one.hex) > 0);
	int fd = openat(fixture_dir(state), path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "{", 1), 1);
	close(fd);
	assert_int_equal(store_list_read(s, tell, &told, &l, &e), 0);
	assert_int_equal(told.n, 1);
	assert_non_null(strstr(told.last, one.hex));
	assert_int_equal(l.n, 1);
	must_find(&l, &two);
	assert_true(snprintf(want, sizeof(want), "sha256-%s", one.hex) > 0);
	store_list_id(s, &one, text);
	assert_string_equal(text, want);
}

/* An image whose names cannot be looked up has none; one that cannot be read is told of. */
static int list_all(void *ctx)
{
	CLEANUP(store_list_deinit) struct store_list l = STORE_LIST_INIT;
	struct told told = { .n = 0 };
	int r = store_list_read(ctx, tell, &told, &l, NULL);
	return r == 0 && l.n + told.n != 1 ? 1 : r;
}

static void test_allocations(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	add_image(s, "one", "name", &id);
	for_each_failing_alloc_lenient(list_all, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_images),
		fixture_test(test_size),
		fixture_test(test_damaged),
		fixture_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
