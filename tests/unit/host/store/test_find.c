/* SPDX-License-Identifier: Apache-2.0 */
#include "host/store/find.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/store/catalog.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/host/store/support.h"

/* Puts a record into the store: an image as far as finding goes. */
static void put_record(const struct store *s, const char *hex, const char *name,
		       int64_t imported_ns)
{
	CLEANUP(record_deinit) struct record r;
	struct err e = ERR_INIT;
	char whole[DIGEST_HEX_LEN + 1];
	record_init(&r);
	memset(whole, '0', DIGEST_HEX_LEN);
	whole[DIGEST_HEX_LEN] = '\0';
	memcpy(whole, hex, strlen(hex));
	assert_int_equal(digest_from_hex(whole, &r.id), 0);
	r.chain = r.id;
	r.imported_ns = imported_ns;
	assert_int_equal(record_add_name(&r, name), 0);
	assert_int_equal(catalog_put(s, &r, &e), 0);
}

/* @find(@text) gives the image whose hash begins with @hex. */
static void check(int (*find)(const struct store *, const char *, struct digest *, struct err *),
		  const struct store *s, const char *text, const char *hex)
{
	struct digest id;
	struct err e = ERR_INIT;
	if (find(s, text, &id, &e) != 0)
		fail_msg("%s: %s", text, e.text);
	if (strncmp(id.hex, hex, strlen(hex)) != 0)
		fail_msg("%s: %s", text, id.hex);
}

static void check_fails(int (*find)(const struct store *, const char *, struct digest *,
				    struct err *),
			const struct store *s, const char *text, int code, const char *want)
{
	struct digest id = { "untouched" };
	struct err e = ERR_INIT;
	assert_int_equal(find(s, text, &id, &e), code);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, e.text);
	if (code != -EEXIST)
		assert_string_equal(id.hex, "untouched");
}

static void test_ids(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	char whole[IMAGE_ID_LEN + 2] = "sha256-";
	check_fails(find_id, s, "sha256-ab", -ENOENT, "no image IDs found");
	put_record(s, "ab1", "x", 1);
	put_record(s, "ab2", "y", 1);
	put_record(s, "c", "z", 1);
	check(find_id, s, "sha256-ab1", "ab1");
	check(find_id, s, "c0", "c0");
	check(find_image, s, "sha256-c0", "c0");
	check_fails(find_id, s, "sha256-ab", -EEXIST, "ambiguous image ID: \"ab\" (2 images;");
	check_fails(find_id, s, "sha256-ab3", -ENOENT, "no image IDs found");
	/* Two digits at least, 64 at most, and nothing else. */
	check_fails(find_id, s, "sha256-c", -EINVAL, "image ID too short (give 2 digits at least)");
	check_fails(find_id, s, "sha256-", -EINVAL, "image ID too short");
	memset(whole + strlen(whole), '0', DIGEST_HEX_LEN);
	whole[strlen("sha256-")] = 'c';
	check(find_id, s, whole, "c0");
	whole[IMAGE_ID_LEN] = '0';
	check_fails(find_id, s, whole, -EINVAL, "is no image ID (sha256- and hex digits)");
	check_fails(find_id, s, "sha256-AB1", -EINVAL, "is no image ID");
	check_fails(find_id, s, "sha512-ab1", -ENOENT, "no image IDs found");
}

static void test_names(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest one, two;
	char longest[IMAGE_NAME_MAX + 2];
	add_image(s, "one", "shared", &one);
	add_image(s, "two", "shared", &two);
	check(find_name, s, "shared", two.hex);
	add_image(s, "one", "own", &one);
	check(find_name, s, "own", one.hex);
	check(find_image, s, "own", one.hex);
	check(find_name, s, "shared", two.hex);
	check_fails(find_name, s, "sharing", -ENOENT,
		    "cannot find an image of this name in the local store");
	check_fails(find_name, s, "", -ENOENT, "cannot find an image");
	memset(longest, 'n', sizeof(longest));
	longest[IMAGE_NAME_MAX] = '\0';
	check_fails(find_name, s, longest, -ENOENT, "cannot find an image");
	put_record(s, "d", longest, 1);
	check(find_name, s, longest, "d0");
	longest[IMAGE_NAME_MAX] = 'n';
	longest[IMAGE_NAME_MAX + 1] = '\0';
	check_fails(find_name, s, longest, -ENOENT, "no image has a name of more than 255 bytes");
}

/* References only save work: without them the records decide, the newest import first. */
static void test_lost_references(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	put_record(s, "a", "name", 5);
	put_record(s, "b", "name", 7);
	put_record(s, "c", "name", 6);
	put_record(s, "d", "other", 9);
	check(find_name, s, "name", "b0");
	fixture_write(state, "images/damaged.json", "x", 1);
	check(find_name, s, "name", "b0");
	/* A reference decides, unless its image is gone. */
	check(find_id, s, "a0", "a0");
	assert_int_equal(find_id(s, "a0", &id, NULL), 0);
	assert_int_equal(catalog_put_name(s, &id, "name", NULL), 0);
	check(find_name, s, "name", "a0");
	assert_int_equal(catalog_remove(s, &id, NULL), 0);
	check(find_name, s, "name", "b0");
}

struct finding {
	const struct store *store;
	const char *text;
};

static int find_once(void *ctx)
{
	const struct finding *f = ctx;
	struct digest id;
	struct err e = ERR_INIT;
	int r = find_image(f->store, f->text, &id, &e);
	return r < 0 && e.text[0] == '\0' ? 1 : r;
}

static void test_allocations(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	put_record(s, "a", "name", 5);
	for_each_failing_alloc(find_once, &(struct finding){ s, "sha256-a0" });
	for_each_failing_alloc(find_once, &(struct finding){ s, "name" });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_ids),
		fixture_test(test_names),
		fixture_test(test_lost_references),
		fixture_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
