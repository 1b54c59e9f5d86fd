/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/catalog.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "lib/os/file.h"
#include "tests/support/cmocka.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/store/support.h"

static void make_record(struct record *r, const char *text)
{
	record_init(r);
	digest_of(text, strlen(text), &r->id);
	digest_of("chain", 5, &r->chain);
	assert_int_equal(record_add_name(r, text), 0);
}

static void test_records(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	CLEANUP(record_deinit) struct record r;
	CLEANUP(record_deinit) struct record back;
	struct err e = ERR_INIT;
	make_record(&r, "one");
	record_init(&back);
	assert_int_equal(catalog_get(s, &r.id, &back, &e), STORE_MISSING);
	assert_false(catalog_has_record(s, &r.id));
	assert_int_equal(catalog_put(s, &r, &e), 0);
	assert_true(catalog_has_record(s, &r.id));
	assert_false(catalog_has_image(s, &r.id)); /* its blobs are not there */
	assert_int_equal(catalog_get(s, &r.id, &back, &e), 0);
	assert_string_equal(record_name(&back), "one");
	assert_int_equal(catalog_rendered_size(s, &back), 0);
	assert_int_equal(catalog_remove(s, &r.id, &e), 0);
	assert_int_equal(catalog_remove(s, &r.id, &e), 0);
	assert_false(catalog_has_record(s, &r.id));
	assert_int_equal(catalog_last_use(s, &r.id), 0);
}

/* A record under the name of another one, and one that is not JSON. */
static void test_damaged_record(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	CLEANUP(record_deinit) struct record r;
	struct err e = ERR_INIT;
	char from[128], to[128];
	struct digest other;
	make_record(&r, "one");
	assert_int_equal(catalog_put(s, &r, &e), 0);
	digest_of("two", 3, &other);
	snprintf(from, sizeof(from), "images/%s.json", r.id.hex);
	snprintf(to, sizeof(to), "images/%s.json", other.hex);
	assert_int_equal(renameat(fixture_dir(state), from, fixture_dir(state), to), 0);
	CLEANUP(record_deinit) struct record back;
	record_init(&back);
	assert_int_equal(catalog_get(s, &other, &back, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "is damaged (remove it and fetch the image again)"));
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	assert_int_equal(catalog_list(s, &l, &e), 0);
	assert_int_equal(l.n, 1);
	assert_int_equal(unlinkat(fixture_dir(state), to, 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", fixture_dir(state), to), 0);
	assert_true(catalog_get(s, &other, &back, &e) < 0);
}

static void test_list(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct err e = ERR_INIT;
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	assert_int_equal(catalog_list(s, &l, &e), 0);
	assert_int_equal(l.n, 0);
	for (int i = 0; i < 5; i++) {
		CLEANUP(record_deinit) struct record r;
		char text[8];
		snprintf(text, sizeof(text), "%d", i);
		make_record(&r, text);
		assert_int_equal(catalog_put(s, &r, &e), 0);
	}
	fixture_write(state, "images/.temporary.json.00", "", 0);
	fixture_write(state, "images/README.json", "", 0);
	catalog_list_deinit(&l);
	assert_int_equal(catalog_list(s, &l, &e), 0);
	assert_int_equal(l.n, 5);
	for (size_t i = 1; i < l.n; i++)
		assert_true(strcmp(l.ids[i - 1].hex, l.ids[i].hex) < 0);
}

static void test_last_use(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	CLEANUP(record_deinit) struct record r;
	struct err e = ERR_INIT;
	char path[128];
	make_record(&r, "one");
	assert_int_equal(catalog_put(s, &r, &e), 0);
	snprintf(path, sizeof(path), "images/%s.json", r.id.hex);
	const struct timespec old[] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	assert_int_equal(utimensat(fixture_dir(state), path, old, 0), 0);
	assert_int_equal(catalog_last_use(s, &r.id), 1000 * NS_PER_SEC);
	catalog_use(s, &r.id);
	assert_true(catalog_last_use(s, &r.id) > 1000000000 * NS_PER_SEC);
}

static int count_ref(void *ctx, const char *file, const struct ref *ref)
{
	size_t *n = ctx;
	assert_non_null(file);
	n[ref ? 0 : 1]++;
	return 0;
}

static int stop(void *ctx, const char *file, const struct ref *ref)
{
	(void)ctx;
	(void)file;
	(void)ref;
	return 7;
}

static void test_refs(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct ref r, back;
	size_t n[2] = { 0 };
	assert_int_equal(ref_init(&r, "docker://a/b:c"), 0);
	digest_of("image", 5, &r.image);
	assert_int_equal(catalog_get_ref(s, r.text, &back), STORE_MISSING);
	assert_int_equal(catalog_put_ref(s, &r), 0);
	assert_int_equal(catalog_get_ref(s, r.text, &back), 0);
	assert_string_equal(back.text, r.text);
	assert_int_equal(catalog_put_name(s, &r.image, "some name", NULL), 0);
	assert_int_equal(catalog_get_ref(s, "name:some name", &back), 0);
	assert_true(digest_equal(&back.image, &r.image));
	fixture_write(state,
		      "refs/0000000000000000000000000000000000000000000000000000000000000000.json",
		      "{", 1);
	assert_int_equal(catalog_each_ref(s, count_ref, n), 0);
	assert_int_equal(n[0], 2);
	assert_int_equal(n[1], 1);
	assert_int_equal(catalog_each_ref(s, stop, NULL), 7);
	assert_int_equal(catalog_get_ref(s, "another text", &back), STORE_MISSING);
}

static void test_names(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id, other;
	struct err e = ERR_INIT;
	add_image(s, "one", "first", &id);
	digest_of("none", 4, &other);
	assert_int_equal(catalog_add_name(s, &other, "x", &e), STORE_MISSING);
	assert_int_equal(catalog_add_name(s, &id, "second", &e), 0);
	assert_int_equal(catalog_add_name(s, &id, "second", &e), 0);
	CLEANUP(record_deinit) struct record r;
	record_init(&r);
	assert_int_equal(catalog_get(s, &id, &r, &e), 0);
	assert_int_equal(r.names.n, 2);
	assert_string_equal(record_name(&r), "second");
}

/* index.json is what other programs need: digests, sizes and names of all images. */
static void test_index(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct err e = ERR_INIT;
	cleanup_free char *text = NULL;
	size_t len = 0;
	add_image(s, "one", "first", &id);
	assert_int_equal(catalog_add_name(s, &id, "second", &e), 0);
	assert_int_equal(file_read_at(fixture_dir(state), "oci/index.json", 1 << 20, &text, &len),
			 0);
	cleanup_json struct json_object *o = NULL;
	assert_int_equal(json_parse(text, len, &o), 0);
	struct json_object *list = json_member(o, "manifests");
	assert_int_equal(json_object_array_length(list), 2);
	for (size_t i = 0; i < 2; i++) {
		const char *s_digest, *name;
		struct json_object *m = json_object_array_get_idx(list, i);
		assert_int_equal(json_get_str(m, "digest", 100, &s_digest), 0);
		assert_string_equal(s_digest + strlen("sha256:"), id.hex);
		assert_int_equal(json_get_str(json_member(m, "annotations"),
					      "org.opencontainers.image.ref.name", 100, &name),
				 0);
		assert_string_equal(name, i ? "second" : "first");
	}
}

/* The only digest that index.json lists, and its only name is "moving". */
static void check_index(void **state, const struct digest *id)
{
	cleanup_free char *text = NULL;
	assert_int_equal(file_read_at(fixture_dir(state), "oci/index.json", 1 << 20, &text, NULL),
			 0);
	const char *first = strstr(text, "\"moving\"");
	assert_non_null(first);
	assert_null(strstr(first + 1, "\"moving\""));
	assert_non_null(strstr(text, id->hex));
}

/* A name that moves to another image is that one's only, also if it moves back. */
static void test_moved_name(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest one, two;
	struct err e = ERR_INIT;
	add_image(s, "one", "moving", &one);
	check_index(state, &one);
	add_image(s, "two", "moving", &two);
	check_index(state, &two);
	assert_int_equal(catalog_add_name(s, &one, "moving", &e), 0);
	check_index(state, &one);
	assert_int_equal(catalog_add_name(s, &two, "moving", &e), 0);
	check_index(state, &two);
	assert_true(catalog_stands_for(s, "moving", &two));
	assert_false(catalog_stands_for(s, "moving", &one));
	/* Of an image that is gone it is nobody's: who had it before does not have it again. */
	assert_int_equal(catalog_remove(s, &two, &e), 0);
	assert_int_equal(catalog_write_index(s), 0);
	assert_false(catalog_stands_for(s, "moving", &one));
	cleanup_free char *text = NULL;
	assert_int_equal(file_read_at(fixture_dir(state), "oci/index.json", 1 << 20, &text, NULL),
			 0);
	assert_null(strstr(text, "moving"));
	/* Until it is given that name. */
	assert_int_equal(catalog_add_name(s, &one, "moving", &e), 0);
	check_index(state, &one);
}

/*
 * On a full disk a name stands for what it stood for, and whoever wanted something else hears of
 * it.
 */
static void test_refs_cannot_be_written(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct ref r, back;
	struct rlimit before, none;
	struct err e = ERR_INIT;
	assert_int_equal(ref_init(&r, "docker://a/b:c"), 0);
	digest_of("one", 3, &r.image);
	const struct digest one = r.image;
	assert_int_equal(catalog_refer(s, &r, &e), 0);
	assert_int_equal(catalog_put_name(s, &one, "name", &e), 0);

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	r.fetched_ns = 1;
	int same = catalog_refer(s, &r, &e), same_name = catalog_put_name(s, &one, "name", &e);
	digest_of("two", 3, &r.image);
	int other = catalog_refer(s, &r, &e);
	int other_name = catalog_put_name(s, &r.image, "name", NULL);
	int first = catalog_put_name(s, &r.image, "first", NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);

	assert_int_equal(same, 0);
	assert_int_equal(same_name, 0);
	assert_int_equal(other, -EFBIG);
	assert_int_equal(other_name, -EFBIG);
	assert_int_equal(first, -EFBIG);
	assert_non_null(strstr(e.text, "/refs which image that is: File too large"));
	assert_int_equal(catalog_get_ref(s, r.text, &back), 0);
	assert_true(digest_equal(&back.image, &one));
	assert_int_equal(catalog_get_ref(s, "name:name", &back), 0);
	assert_true(digest_equal(&back.image, &one));
}

static void ref_path(const struct ref *r, char *out, size_t size)
{
	struct digest d;
	digest_of(r->text, strlen(r->text), &d);
	snprintf(out, size, "refs/%s.json", d.hex);
}

static ino_t ref_inode(void **state, const struct ref *r)
{
	char path[256];
	struct stat st;
	ref_path(r, path, sizeof(path));
	assert_int_equal(fstatat(fixture_dir(state), path, &st, 0), 0);
	return st.st_ino;
}

/* What is there is not written again; anything else, and a damaged file, is. */
static void test_same_ref(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct ref r, back;
	assert_int_equal(ref_init(&r, "file:/image"), 0);
	digest_of("one", 3, &r.image);
	assert_int_equal(catalog_put_ref(s, &r), 0);
	ino_t first = ref_inode(state, &r);
	assert_int_equal(catalog_put_ref(s, &r), 0);
	assert_true(ref_inode(state, &r) == first);

	r.max_age_s = 1;
	assert_int_equal(catalog_put_ref(s, &r), 0);
	assert_int_equal(catalog_get_ref(s, r.text, &back), 0);
	assert_int_equal(back.max_age_s, 1);

	char path[256];
	ref_path(&r, path, sizeof(path));
	fixture_write(state, path, "", 0);
	assert_int_equal(catalog_get_ref(s, r.text, &back), STORE_MISSING);
	assert_int_equal(catalog_put_ref(s, &r), 0);
	assert_int_equal(catalog_get_ref(s, r.text, &back), 0);
	assert_true(digest_equal(&back.image, &r.image));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_records),    fixture_test(test_damaged_record),
		fixture_test(test_list),       fixture_test(test_last_use),
		fixture_test(test_refs),       fixture_test(test_same_ref),
		fixture_test(test_names),      fixture_test(test_index),
		fixture_test(test_moved_name), fixture_test(test_refs_cannot_be_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
