/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/registry_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static const char text[] = "the manifest";

static struct digest digest(const char *s)
{
	struct digest d;
	digest_of(s, strlen(s), &d);
	return d;
}

/* A configuration "config" and the layers "one", "two" and "one". */
static void list(struct registry_blobs *b)
{
	struct oci_descriptor layers[] = {
		{ .digest = digest("one"), .size = 3 },
		{ .digest = digest("two"), .size = 3 },
		{ .digest = digest("one"), .size = 3 },
	};
	const struct oci_manifest m = { .config = { .digest = digest("config"), .size = 6 },
					.layers = layers,
					.n_layers = ARRAY_SIZE(layers) };
	assert_int_equal(registry_blobs_list(&m, b, NULL), 0);
}

static void make_dirs(void **state)
{
	mkdirat(fixture_dir(state), "blobs", 0700);
	mkdirat(fixture_dir(state), "blobs/sha256", 0700);
}

/* Writes the blob of @s, with the content @content. */
static void blob(void **state, const char *s, const char *content)
{
	char path[100];
	snprintf(path, sizeof(path), "blobs/sha256/%s", digest(s).hex);
	fixture_write(state, path, content, strlen(content));
}

static bool is_there(void **state, const char *name)
{
	return faccessat(fixture_dir(state), name, F_OK, 0) == 0;
}

static void test_list(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	struct registry_blobs b;
	list(&b);
	assert_int_equal(b.n, 3);
	assert_int_equal(b.bytes, 12);
	struct oci_descriptor layers[] = { { .digest = digest("config"), .size = 7 } };
	const struct oci_manifest twice = { .config = { .digest = digest("config"), .size = 6 },
					    .layers = layers,
					    .n_layers = 1 };
	assert_int_equal(registry_blobs_list(&twice, &b, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "two sizes"));
}

/* The most layers that a manifest may have, each of the largest size. */
static void test_list_limit(void **state)
{
	(void)state;
	struct registry_blobs b;
	struct oci_descriptor layers[OCI_LAYERS_MAX] = { 0 };
	for (size_t i = 0; i < OCI_LAYERS_MAX; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%zu", i);
		layers[i] = (struct oci_descriptor){ .digest = digest(name), .size = OCI_BLOB_MAX };
	}
	const struct oci_manifest m = { .config = { .digest = digest("c"), .size = OCI_BLOB_MAX },
					.layers = layers,
					.n_layers = OCI_LAYERS_MAX };
	assert_int_equal(registry_blobs_list(&m, &b, NULL), 0);
	assert_int_equal(b.n, REGISTRY_BLOBS_MAX);
	assert_true(b.bytes == REGISTRY_BLOBS_MAX * (uint64_t)OCI_BLOB_MAX);
}

static void test_measure(void **state)
{
	struct registry_sizes s;
	struct registry_blobs b;
	list(&b);
	int dir = fixture_dir(state);
	assert_int_equal(registry_layout_measure(dir, &b, &s, NULL), 0);
	assert_int_equal(s.n_complete + s.complete + s.partial, 0);
	assert_int_equal(s.largest, 6);
	make_dirs(state);
	blob(state, "config", "config");
	blob(state, "one", "wrong size");
	blob(state, "other", "other");
	fixture_write(state, "oci-put-blob1", "12345", 5);
	fixture_write(state, "oci-put-blob2", "12", 2);
	fixture_write(state, "index.json", "{}", 2);
	assert_int_equal(registry_layout_measure(dir, &b, &s, NULL), 0);
	assert_int_equal(s.n_complete, 1);
	assert_int_equal(s.complete, 6);
	assert_int_equal(s.partial, 7);
	assert_int_equal(s.largest, 3);
}

static void test_begin(void **state)
{
	struct registry_blobs b;
	struct digest manifest = digest(text);
	char path[100];
	list(&b);
	int dir = fixture_dir(state);
	assert_int_equal(registry_layout_begin(dir, &b, &manifest, NULL), 0);
	make_dirs(state);
	blob(state, "config", "config");
	blob(state, "one", "wrong size");
	blob(state, "other", "other");
	blob(state, text, text);
	fixture_write(state, "oci-put-blob1", "12345", 5);
	fixture_write(state, "index.json", "{}", 2);
	/* Another link to the manifest keeps its content whatever skopeo writes. */
	snprintf(path, sizeof(path), "blobs/sha256/%s", manifest.hex);
	assert_int_equal(linkat(dir, path, dir, "link", 0), 0);
	assert_int_equal(registry_layout_begin(dir, &b, &manifest, NULL), 0);
	assert_false(is_there(state, path));
	assert_true(is_there(state, "link"));
	assert_false(is_there(state, "oci-put-blob1"));
	assert_false(is_there(state, "index.json"));
	snprintf(path, sizeof(path), "blobs/sha256/%s", digest("one").hex);
	assert_false(is_there(state, path));
	snprintf(path, sizeof(path), "blobs/sha256/%s", digest("config").hex);
	assert_true(is_there(state, path));
	snprintf(path, sizeof(path), "blobs/sha256/%s", digest("other").hex);
	assert_true(is_there(state, path));
}

static void check_fails(void **state, const struct registry_blobs *b, const char *want)
{
	struct err e = ERR_INIT;
	assert_true(registry_layout_check(fixture_dir(state), b, &e) < 0);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" instead of \"%s\"", e.text, want);
}

static void test_check(void **state)
{
	struct registry_blobs b;
	list(&b);
	make_dirs(state);
	blob(state, "config", "config");
	blob(state, "one", "one");
	check_fails(state, &b, "was not fetched");
	blob(state, "two", "two2");
	check_fails(state, &b, "has 4 bytes instead of the 3");
	blob(state, "two", "two");
	assert_int_equal(registry_layout_check(fixture_dir(state), &b, NULL), 0);
}

/* What is not a file is an error that says so, not something to read or to remove. */
static void test_strange(void **state)
{
	struct registry_blobs b;
	struct registry_sizes s;
	struct err e = ERR_INIT;
	struct digest manifest = digest(text);
	char path[100];
	list(&b);
	make_dirs(state);
	snprintf(path, sizeof(path), "blobs/sha256/%s", digest("one").hex);
	assert_int_equal(symlinkat("/dev/zero", fixture_dir(state), path), 0);
	assert_int_equal(registry_layout_measure(fixture_dir(state), &b, &s, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "is not a regular file"));
	assert_int_equal(registry_layout_begin(fixture_dir(state), &b, &manifest, NULL), -EBADMSG);
	check_fails(state, &b, "");
}

static void test_files_limit(void **state)
{
	struct registry_blobs b;
	struct registry_sizes s;
	struct err e = ERR_INIT;
	char name[32];
	list(&b);
	/* "." and ".." count. */
	for (size_t i = 0; i < REGISTRY_FILES_MAX - 2; i++) {
		snprintf(name, sizeof(name), "oci-put-blob%zu", i);
		fixture_write(state, name, "x", 1);
	}
	assert_int_equal(registry_layout_measure(fixture_dir(state), &b, &s, NULL), 0);
	assert_int_equal(s.partial, REGISTRY_FILES_MAX - 2);
	fixture_write(state, "one-more", "x", 1);
	assert_int_equal(registry_layout_measure(fixture_dir(state), &b, &s, &e), -E2BIG);
	assert_non_null(strstr(e.text, "more than 1024 files"));
}

static int everything(void *ctx)
{
	struct registry_blobs b;
	struct registry_sizes s;
	struct digest d = digest("no such manifest");
	list(&b);
	int r = registry_layout_begin(*(int *)ctx, &b, &d, NULL);
	return r < 0 ? r : registry_layout_measure(*(int *)ctx, &b, &s, NULL);
}

static void test_no_memory(void **state)
{
	int dir = fixture_dir(state);
	for_each_failing_alloc(everything, &dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_list),      fixture_test(test_list_limit),
		fixture_test(test_measure),   fixture_test(test_begin),
		fixture_test(test_check),     fixture_test(test_strange),
		fixture_test(test_no_memory), fixture_test(test_files_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
