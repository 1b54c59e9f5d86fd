/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/layers.h"

#define LINES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void cleanup_source(struct source **s)
{
	source_free(*s);
}

static int open_named(void **state, const char *name, enum reference_type type, struct source **ret,
		      struct err *e)
{
	struct reference ref = { .type = type };
	snprintf(ref.path, sizeof(ref.path), "%s/%s", fixture_path(state), name);
	return source_open(&ref, fixture_dir(state), UINT64_MAX, ret, e);
}

static void write_tar(void **state, const char *name, const char *const *lines)
{
	cleanup_blob struct blob tar = { NULL, 0 };
	layers_make(lines, "ustar", &tar);
	fixture_write(state, name, tar.data, tar.len);
}

static void check_read(const struct source *s, const char *name, size_t max, const char *want)
{
	cleanup_free char *text = NULL;
	size_t len;
	struct err e = ERR_INIT;
	if (source_read(s, name, max, &text, &len, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(len, strlen(want));
	assert_string_equal(text, want);
}

static void test_archive(void **state)
{
	write_tar(state, "a.tar", LINES("f manifest.json text=[]", "f layer text=content"));
	CLEANUP(cleanup_source) struct source *s = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(open_named(state, "a.tar", REFERENCE_ANY, &s, &e), 0);
	assert_int_equal(source_type(s), SOURCE_DOCKER);
	check_read(s, "manifest.json", 2, "[]");
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	assert_int_equal(source_find(s, "layer", &span, &e), 0);
	assert_int_equal(span.size, 7);
	char mem[8];
	assert_int_equal(span_read(&span, mem, 7, 0), 0);
	assert_memory_equal(mem, "content", 7);
	assert_int_equal(span_read(&span, mem, 2, 5), 0);
	assert_memory_equal(mem, "nt", 2);
	assert_int_equal(span_read(&span, mem, 3, 5), -ENODATA);
	assert_int_equal(span_read(&span, mem, 1, UINT64_MAX), -ENODATA);
	assert_int_equal(span_read(&span, mem, 0, 7), 0);
	char *text;
	size_t len;
	assert_int_equal(source_read(s, "layer", 6, &text, &len, &e), -EFBIG);
	assert_int_equal(source_read(s, "missing", 6, &text, &len, &e), -ENOENT);
}

/* Both kinds in one archive, as "docker save" makes them: the OCI one unless asked otherwise. */
static void test_both(void **state)
{
	write_tar(state, "a.tar",
		  LINES("f manifest.json text=[]", "f index.json text={}", "f oci-layout text={}"));
	CLEANUP(cleanup_source) struct source *s = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(open_named(state, "a.tar", REFERENCE_ANY, &s, &e), 0);
	assert_int_equal(source_type(s), SOURCE_OCI);
	source_free(TAKE_PTR(s));
	assert_int_equal(open_named(state, "a.tar", REFERENCE_DOCKER_ARCHIVE, &s, &e), 0);
	assert_int_equal(source_type(s), SOURCE_DOCKER);
}

static void test_directory(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "d", 0755), 0);
	fixture_write(state, "d/oci-layout", "{}", 2);
	fixture_write(state, "d/index.json", "text", 4);
	fixture_write(state, "outside", "secret", 6);
	CLEANUP(cleanup_source) struct source *s = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(open_named(state, "d", REFERENCE_OCI_DIR, &s, &e), 0);
	check_read(s, "index.json", 4, "text");
	/* Links stay inside; devices and FIFOs are refused and do not block. */
	assert_int_equal(symlinkat("index.json", dir, "d/good"), 0);
	assert_int_equal(symlinkat("../outside", dir, "d/bad"), 0);
	assert_int_equal(symlinkat("/etc/passwd", dir, "d/worse"), 0);
	assert_int_equal(mkfifoat(dir, "d/fifo", 0644), 0);
	check_read(s, "good", 4, "text");
	char *text;
	size_t len;
	static const char *const names[] = { "bad",        "worse",       "fifo",
					     "../outside", "/etc/passwd", "." };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(source_read(s, names[i], 100, &text, &len, &e) < 0);
	/* manifest.json counts in archives only. */
	fixture_write(state, "d/manifest.json", "[]", 2);
	assert_int_equal(unlinkat(dir, "d/index.json", 0), 0);
	struct source *none;
	assert_int_equal(open_named(state, "d", REFERENCE_ANY, &none, &e), -EINVAL);
}

static void test_compressed_limit(void **state)
{
	cleanup_blob struct blob tar = { NULL, 0 };
	cleanup_blob struct blob gz = { NULL, 0 };
	layers_make(LINES("f manifest.json text=[]", "f z zeros=100000"), "ustar", &tar);
	layers_compress(&tar, "gzip", &gz);
	fixture_write(state, "a.tar.gz", gz.data, gz.len);
	for (int beyond = 0; beyond < 2; beyond++) {
		CLEANUP(cleanup_source) struct source *s = NULL;
		struct err e = ERR_INIT;
		struct reference ref = { .type = REFERENCE_ANY };
		snprintf(ref.path, sizeof(ref.path), "%s/a.tar.gz", fixture_path(state));
		int r = source_open(&ref, fixture_dir(state), tar.len - (size_t)beyond, &s, &e);
		assert_int_equal(r, beyond ? -EFBIG : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_archive),
		fixture_test(test_both),
		fixture_test(test_directory),
		fixture_test(test_compressed_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
