/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/find.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "images/spec/aci.h"
#include "images/store/catalog.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/store/support.h"

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
	check_fails(find_id, s, whole, -EINVAL, "is not an image ID (sha256- and hex digits)");
	check_fails(find_id, s, "sha256-AB1", -EINVAL, "is not an image ID");
	check_fails(find_id, s, "sha512-ab1", -ENOENT, "no image IDs found");
}

/*
 * What a pod manifest has as the ID of an image that is not appc's: any part of it that is unique.
 */
static void test_appc_ids(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	char text[DIGEST_APPC_ID_LEN + 2];
	put_record(s, "ab1", "x", 1);
	put_record(s, "c", "y", 1);
	assert_int_equal(find_id(s, "c0", &id, NULL), 0);
	digest_appc_id(&id, text);
	check(find_image, s, text, "c0");
	text[DIGEST_APPC_ID_LEN] = '0';
	text[DIGEST_APPC_ID_LEN + 1] = '\0';
	check_fails(find_id, s, text, -ENOENT, "no image IDs found");
	text[strlen("sha512-") + FIND_PREFIX_MIN] = '\0';
	check(find_id, s, text, "c0");
	text[strlen("sha512-") + FIND_PREFIX_MIN - 1] = '\0';
	check_fails(find_id, s, text, -EINVAL, "image ID too short");
}

/* An appc image by its key, of which rkt shows half: all of it, and one digit more. */
static void test_keys(void **state)
{
	CLEANUP(record_deinit) struct record r;
	cleanup_store struct store *s = must_open_store(state);
	struct err e = ERR_INIT;
	char text[sizeof("sha512-") + ACI_KEY_LEN + 1] = "sha512-";
	record_init(&r);
	digest_of("id", 2, &r.id);
	r.chain = r.id;
	r.kind = IMAGE_ACI;
	memset(r.key, 'a', ACI_KEY_LEN);
	assert_int_equal(record_set_below(&r, NULL, 0), 0);
	assert_int_equal(record_add_name(&r, "example.com/a"), 0);
	assert_int_equal(catalog_put(s, &r, &e), 0);
	memcpy(text + strlen("sha512-"), r.key, ACI_KEY_LEN);
	check(find_image, s, text, r.id.hex);
	text[strlen("sha512-") + ACI_KEY_LEN] = 'a';
	check_fails(find_image, s, text, -EINVAL, "is not an image ID");
	text[strlen("sha512-") + DIGEST_HEX_LEN] = '\0';
	check(find_image, s, text, r.id.hex);
	text[strlen("sha512-") + DIGEST_HEX_LEN - 1] = 'b';
	check_fails(find_image, s, text, -ENOENT, "no image IDs found");
	/* Its digest is still one of its IDs, as other programs and old manifests have it. */
	snprintf(text, sizeof(text), "sha256-%s", r.id.hex);
	check(find_image, s, text, r.id.hex);
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

/* One name in every spelling; what is spelled in full is only that. */
static void test_spellings(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	put_record(s, "a", "docker.io/library/debian:latest", 1);
	put_record(s, "b", "quay.io/x/y:2", 2);
	static const char *const same[] = { "debian",
					    "debian:latest",
					    "docker.io/debian",
					    "library/debian",
					    "index.docker.io/library/debian",
					    "docker://debian",
					    "docker:debian:latest",
					    "oci://docker.io/library/debian:latest",
					    "docker.io/library/debian:latest" };
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		check(find_image, s, same[i], "a0");
	check(find_image, s, "docker://quay.io/x/y:2", "b0");
	check_fails(find_image, s, "debian:12", -ENOENT, "cannot find an image");
	check_fails(find_image, s, "docker://quay.io/x/y", -ENOENT,
		    "for a registry: docker://quay.io/x/y;");
	/* As docker save writes it. */
	put_record(s, "c", "redis:7", 3);
	check(find_image, s, "docker://redis:7", "c0");
	check(find_image, s, "docker.io/library/redis:7", "c0");
}

/* A short name that is several images is refused, with all of them. */
static void test_ambiguous(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	put_record(s, "a", "docker.io/library/debian:latest", 1);
	put_record(s, "b", "debian", 2);
	check_fails(find_image, s, "debian", -EEXIST,
		    "several images are meant by \"debian\": docker.io/library/debian:latest "
		    "(sha256-a00000000000), debian (sha256-b00000000000) (give an ID)");
	/* As many as a message shows, and one beyond. */
	put_record(s, "c", "debian:latest", 3);
	put_record(s, "d", "library/debian", 4);
	check_fails(find_image, s, "debian", -EEXIST,
		    "library/debian (sha256-d00000000000) (give an ID)");
	put_record(s, "e", "docker.io/debian", 5);
	check_fails(find_image, s, "debian", -EEXIST,
		    "library/debian (sha256-d00000000000) (give an ID)");
}

/* What the registry's name stands for counts, though a local image took the name. */
static void test_registry_reference(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	static struct ref ref;
	put_record(s, "a", "x", 1);
	put_record(s, "b", "docker.io/library/debian:latest", 2);
	assert_int_equal(ref_init(&ref, "docker://docker.io/library/debian:latest"), 0);
	assert_int_equal(find_id(s, "a0", &ref.image, NULL), 0);
	assert_int_equal(catalog_put_ref(s, &ref), 0);
	check_fails(find_image, s, "debian", -EEXIST, "several images are meant");
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
	/* A reference decides, also if its image is gone. */
	check(find_id, s, "a0", "a0");
	assert_int_equal(find_id(s, "a0", &id, NULL), 0);
	assert_int_equal(catalog_put_name(s, &id, "name", NULL), 0);
	check(find_name, s, "name", "a0");
	assert_int_equal(catalog_remove(s, &id, NULL), 0);
	check_fails(find_name, s, "name", -ENOENT, "cannot find an image of this name");
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
		fixture_test(test_appc_ids),
		fixture_test(test_keys),
		fixture_test(test_names),
		fixture_test(test_lost_references),
		fixture_test(test_spellings),
		fixture_test(test_ambiguous),
		fixture_test(test_registry_reference),
		fixture_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
