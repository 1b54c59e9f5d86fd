/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/store/layout.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/layers.h"

#define BYTES_MAX   ((uint64_t)1 << 30)
#define IMPORTS_MAX 2000 /* far more than one import has allocations */

static const char *const lines[] = { "d d", "f d/a text=one", "l l to=d/a", NULL };

/* What was told. */
struct told {
	int ended;
	uint64_t done; /* when it ended */
};

static void watch_end(void *ctx, const struct fetch_progress *p)
{
	struct told *told = ctx;
	told->ended += p->ended;
	if (p->ended)
		told->done = p->done;
}

/* One import of @name below the fixture's directory. */
static int try_import(void **state, struct store *s, const char *name, uint64_t bytes_max,
		      struct digest *ret, struct err *e)
{
	char path[PATH_MAX];
	struct told told = { .ended = 0 };
	cleanup_import struct import *im = NULL;
	const struct fetch_options o = { .progress = watch_end, .ctx = &told };
	snprintf(path, sizeof(path), "%s/%s", fixture_path(state), name);
	*e = ERR_INIT;
	int r = import_begin(s, "key", &im, e);
	if (r == 0) {
		r = rootfs_import(im, path, bytes_max, &o, ret, e);
		assert_true(told.ended <= 1);
	}
	if (r == 0) {
		CLEANUP(layout_image_deinit) struct layout_image image;
		layout_image_init(&image);
		r = layout_read_image(import_dirfd(im), ret, false, NULL, 0, &image, e);
		assert_true(r < 0 || layout_has_image(import_dirfd(im), &image));
		/* Of a directory and of a tar, however it is compressed, the bytes of the layer. */
		assert_true(r < 0 || told.done == image.manifest.layers[0].size);
	}
	assert_int_equal(r < 0, e->code < 0);
	assert_int_equal(r < 0, e->text[0] != '\0');
	return r;
}

static struct store *must_open(void **state)
{
	struct store *s = NULL;
	struct err e = ERR_INIT;
	if (store_open(fixture_dir(state), "DIR", &s, &e) < 0)
		fail_msg("%s", e.text);
	return s;
}

static void check_fails(void **state, struct store *s, const char *name, uint64_t bytes_max,
			const char *want)
{
	struct err e;
	struct digest id;
	assert_true(try_import(state, s, name, bytes_max, &id, &e) < 0);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, e.text);
}

static void write_tar(void **state, const char *name, const char *filter)
{
	struct blob tar = { NULL, 0 }, small = { NULL, 0 };
	layers_make(lines, "pax", &tar);
	if (filter)
		layers_compress(&tar, filter, &small);
	fixture_write(state, name, filter ? small.data : tar.data, filter ? small.len : tar.len);
	blob_deinit(&tar);
	blob_deinit(&small);
}

/* A tar is the same image however it is compressed, and what it is called. */
static void test_compressed(void **state)
{
	static const char *const filters[] = { NULL, "gzip", "zstd", "xz", "bzip2" };
	cleanup_store struct store *s = must_open(state);
	struct digest first, id;
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		struct err e;
		write_tar(state, "tree", filters[i]);
		if (try_import(state, s, "tree", BYTES_MAX, i ? &id : &first, &e) < 0)
			fail_msg("%s: %s", filters[i] ? filters[i] : "plain", e.text);
		assert_true(i == 0 || digest_equal(&first, &id));
	}
	assert_int_equal(mkdirat(fixture_dir(state), "empty", 0755), 0);
	struct err e;
	assert_int_equal(try_import(state, s, "empty", BYTES_MAX, &id, &e), 0);
	assert_false(digest_equal(&first, &id));
}

static void test_limit(void **state)
{
	cleanup_store struct store *s = must_open(state);
	struct blob tar = { NULL, 0 };
	struct digest id;
	struct err e;
	layers_make(lines, "pax", &tar);
	size_t len = tar.len;
	blob_deinit(&tar);
	write_tar(state, "tree", "gzip");
	assert_int_equal(try_import(state, s, "tree", len, &id, &e), 0);
	check_fails(state, s, "tree", len - 1, "raise HUSK_IMAGE_BYTES_MAX");
}

static void test_no_tar(void **state)
{
	cleanup_store struct store *s = must_open(state);
	check_fails(state, s, "missing", BYTES_MAX, "cannot open: No such file or directory");
	assert_int_equal(mkfifoat(fixture_dir(state), "fifo", 0600), 0);
	check_fails(state, s, "fifo", BYTES_MAX, "neither a regular file nor a directory");
	fixture_write(state, "damaged", "\x1f\x8b\x08\0damaged", 11);
	check_fails(state, s, "damaged", BYTES_MAX, "damaged compressed data");
}

static void test_disk_full(void **state)
{
	struct rlimit old, limit;
	cleanup_store struct store *s = must_open(state);
	write_tar(state, "tree", "gzip");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_IGN);
	limit = old;
	limit.rlim_cur = 1000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	check_fails(state, s, "tree", BYTES_MAX,
		    "writing the decompressed archive: File too large");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
}

/* Whichever allocation fails, here or in the child: an error with a text, and nothing leaks. */
static void test_allocations(void **state)
{
	cleanup_store struct store *s = must_open(state);
	struct digest id;
	struct err e;
	write_tar(state, "tree", NULL);
	assert_int_equal(try_import(state, s, "tree", BYTES_MAX, &id, &e), 0);
	for (unsigned long n = 1; n < IMPORTS_MAX; n++) {
		long before = fault_live_allocs();
		fault_arm(n);
		int r = try_import(state, s, "tree", BYTES_MAX, &id, &e);
		bool failed = fault_disarm();
		assert_int_equal(fault_live_allocs(), before);
		if (!failed && r == 0)
			return;
	}
	fail_msg("more than %d allocations", IMPORTS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_compressed),  fixture_test(test_limit),
		fixture_test(test_no_tar),      fixture_test(test_disk_full),
		fixture_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
