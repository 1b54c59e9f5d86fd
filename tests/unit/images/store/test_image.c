/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/image.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "images/store/catalog.h"
#include "images/store/collect.h"
#include "images/store/find.h"
#include "images/store/layout.h"
#include "images/store/store_int.h"
#include "lib/os/fd.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/listing.h"
#include "tests/unit/images/store/support.h"

static struct image *must_open(struct store *s, const struct digest *id)
{
	struct image *i = NULL;
	struct err e = ERR_INIT;
	if (image_open(s, id, &i, &e) != 0)
		fail_msg("%s", e.text);
	return i;
}

/* The path of the rendered file, below the fixture's directory. */
static void tree_path(const struct image *i, const char *suffix, char out[128])
{
	snprintf(out, 128, "trees/%s.v%d%s", i->chain_id + strlen("sha256-"), RENDER_VERSION,
		 suffix);
}

static void test_open(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	char want[IMAGE_ID_LEN + 1];
	add_image(s, "one", "first", &id);
	add_image(s, "one", "second", &id);
	cleanup_image struct image *i = must_open(s, &id);
	snprintf(want, sizeof(want), "sha256-%s", id.hex);
	assert_string_equal(i->id, want);
	assert_string_equal(i->name, "second");
	assert_false(i->rendered); /* but when it was imported */
	assert_true(i->size > 0);
	assert_true(i->open_ms >= 0);
	assert_int_equal(i->config.cmd.n, 0);
	assert_int_equal(image_check_platform(i, NULL), 0); /* known since it came */
	image_set_name(i, "third");
	assert_string_equal(i->name, "third");
	image_set_name(i, "not\nprintable");
	image_set_name(i, "");
	assert_string_equal(i->name, "third");
	i->rendered = true;
	assert_true(i->rendered);
}

static void test_missing(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct image *i = NULL;
	struct err e = ERR_INIT;
	char path[128];
	digest_of("nothing", 7, &id);
	assert_int_equal(image_open(s, &id, &i, &e), STORE_MISSING);
	add_image(s, "one", "name", &id);
	/* Rendered, so its layers are not needed; its documents are. */
	cleanup_image struct image *other = must_open(s, &id);
	(void)other; /* freed at the end */
	snprintf(path, sizeof(path), "oci/" LAYOUT_BLOBS "/%s", id.hex);
	assert_int_equal(unlinkat(fixture_dir(state), path, 0), 0);
	assert_int_equal(image_open(s, &id, &i, &e), STORE_MISSING);
	assert_int_equal(image_open_documents(s, &id, &i, &e), STORE_MISSING);
	assert_null(i);
}

/* A damaged record or manifest is said, with a way out. */
static void test_damaged(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct image *i = NULL;
	struct err e = ERR_INIT;
	char path[128];
	add_image(s, "one", "name", &id);
	snprintf(path, sizeof(path), "images/%s.json", id.hex);
	fixture_write(state, path, "{}", 2);
	assert_int_equal(image_open(s, &id, &i, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "is damaged (remove it and fetch the image again)"));
	assert_true(strncmp(e.text, "image sha256-", strlen("image sha256-")) == 0);
}

/* The last use is noted, but not when only the documents are looked at. */
static void test_last_use(void **state)
{
	const struct timespec old[] = { { .tv_sec = 5 }, { .tv_sec = 5 } };
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct err e = ERR_INIT;
	char path[128];
	add_image(s, "one", "name", &id);
	snprintf(path, sizeof(path), "images/%s.json", id.hex);
	assert_int_equal(utimensat(fixture_dir(state), path, old, 0), 0);
	cleanup_image struct image *i = NULL;
	assert_int_equal(image_open_documents(s, &id, &i, &e), 0);
	assert_int_equal(catalog_last_use(s, &id), INT64_C(5000000000));
	assert_int_equal(i->size, 0);
	image_free(TAKE_PTR(i));
	i = must_open(s, &id);
	assert_true(catalog_last_use(s, &id) > INT64_C(5000000000));
}

static void test_link(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct err e = ERR_INIT;
	struct image *i = NULL;
	add_image(s, "one", "name", &id);
	assert_int_equal(image_open_documents(s, &id, &i, &e), 0);
	assert_int_equal(image_link_rootfs(i, fixture_dir(state), "r", &e), -EBADF);
	assert_non_null(strstr(e.text, "was opened without its rendered file"));
	image_free(i);
	i = must_open(s, &id);
	assert_int_equal(image_link_rootfs(i, fixture_dir(state), "r", &e), 0);
	assert_int_equal(image_link_rootfs(i, fixture_dir(state), "r", &e), -EEXIST);
	image_free(i);
	cleanup_fd int fd = openat(fixture_dir(state), "r", O_RDONLY | O_CLOEXEC);
	cleanup_free char *listing = listing_of(fd);
	assert_non_null(strstr(listing, " f =one\n"));
}

/* Overwrites a byte of a file. */
static void damage(void **state, const char *path, off_t at)
{
	char c;
	assert_int_equal(fchmodat(fixture_dir(state), path, 0640, 0), 0);
	cleanup_fd int fd = openat(fixture_dir(state), path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &c, 1, at), 1);
	c ^= 1;
	assert_int_equal(pwrite(fd, &c, 1, at), 1);
}

static enum image_health verify(const struct image *i, struct err *e)
{
	enum image_health health = IMAGE_NOT_RENDERED;
	*e = ERR_INIT;
	assert_int_equal(image_verify(i, &health, e), 0);
	return health;
}

/*
 * Every byte of the rendered file counts; repairing makes the same file again, pods keep the old
 * one.
 */
static void test_verify(void **state)
{
	static const off_t places[] = { 0, 95, 96, 200 };
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct err e = ERR_INIT;
	char path[128];
	add_image(s, "one", "name", &id);
	cleanup_image struct image *i = NULL;
	assert_int_equal(image_open_documents(s, &id, &i, &e), 0);
	assert_int_equal(verify(i, &e), IMAGE_INTACT);
	tree_path(i, "", path);
	for (size_t k = 0; k < ARRAY_SIZE(places); k++) {
		damage(state, path, places[k]);
		assert_int_equal(verify(i, &e), IMAGE_DAMAGED);
		assert_non_null(strstr(e.text, "the digest of its content is "));
		assert_int_equal(image_repair(i, &e), 0);
		assert_int_equal(verify(i, &e), IMAGE_INTACT);
	}
	struct stat a, b;
	cleanup_image struct image *opened = must_open(s, &id);
	assert_int_equal(image_link_rootfs(opened, fixture_dir(state), "pod", &e), 0);
	assert_int_equal(image_repair(i, &e), 0);
	assert_int_equal(fstatat(fixture_dir(state), "pod", &a, 0), 0);
	assert_int_equal(fstatat(fixture_dir(state), path, &b, 0), 0);
	assert_int_not_equal(a.st_ino, b.st_ino);
	assert_int_equal(a.st_size, b.st_size);
	assert_int_equal(count_names(state, "tmp"), 0);
}

static void test_verify_lengths(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct err e = ERR_INIT;
	char path[128], beside[128];
	add_image(s, "one", "name", &id);
	cleanup_image struct image *i = NULL;
	assert_int_equal(image_open_documents(s, &id, &i, &e), 0);
	tree_path(i, "", path);
	tree_path(i, ".digest", beside);
	fixture_write(state, path, "short", 5);
	assert_int_equal(verify(i, &e), IMAGE_DAMAGED);
	assert_true(e.text[0] != '\0');
	assert_int_equal(image_repair(i, &e), 0);
	assert_int_equal(fchmodat(fixture_dir(state), beside, 0640, 0), 0);
	fixture_write(state, beside, "no digest", 9);
	assert_int_equal(verify(i, &e), IMAGE_DAMAGED);
	assert_string_equal(e.text, "nobody knows the digest of its content");
	assert_int_equal(image_repair(i, &e), 0);
	assert_int_equal(verify(i, &e), IMAGE_INTACT);
	assert_int_equal(unlinkat(fixture_dir(state), path, 0), 0);
	assert_int_equal(verify(i, &e), IMAGE_NOT_RENDERED);
}

/* What cannot be rendered again stays as it is. */
static void test_repair_fails(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	CLEANUP(layout_image_deinit) struct layout_image documents;
	struct digest id;
	struct err e = ERR_INIT;
	char path[128], blob[128];
	add_image(s, "one", "name", &id);
	cleanup_image struct image *i = NULL;
	assert_int_equal(image_open_documents(s, &id, &i, &e), 0);
	layout_image_init(&documents);
	assert_int_equal(layout_read_image(store_dirfd(s, STORE_LAYOUT), &id, false, NULL, 0,
					   &documents, &e),
			 0);
	snprintf(blob, sizeof(blob), "oci/" LAYOUT_BLOBS "/%s",
		 documents.manifest.layers[0].digest.hex);
	damage(state, blob, 600);
	assert_true(image_repair(i, &e) < 0);
	assert_non_null(strstr(e.text, "digest mismatch"));
	tree_path(i, "", path);
	assert_true(is_there(state, "%s", path));
	assert_int_equal(verify(i, &e), IMAGE_INTACT);
}

/* In a child: makes the fixture's directory read-only and uses the store in it. 0, or a line. */
static int use_read_only(void **state, const struct digest *id)
{
	const char *path = fixture_path(state);
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	struct store *s = NULL;
	struct image *i = NULL;
	struct digest found;
	struct err e = ERR_INIT;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(path, path, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0)
		return 77;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(store_open(fd, "DIR", &s, &e) == 0);
	MUST(catalog_list(s, &l, &e) == 0 && l.n == 1);
	MUST(find_image(s, "name", &found, &e) == 0 && digest_equal(&found, id));
	MUST(image_open(s, id, &i, &e) == 0);
	image_free(i);
	MUST(collect_remove(s, id, 1, &e) == -EROFS);
	MUST(strstr(e.text, "Read-only file system"));
	MUST(catalog_has_image(s, id));
	return 0;
}

/* A store that can only be read serves what it has. */
static void test_read_only(void **state)
{
	struct digest id;
	int status;
	struct store *s = must_open_store(state);
	add_image(s, "one", "name", &id);
	store_free(s);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(use_read_only(state, &id));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("no mounts can be made here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

struct opening {
	struct store *store;
	const struct digest *id;
};

static int open_once(void *ctx)
{
	const struct opening *o = ctx;
	struct err e = ERR_INIT;
	cleanup_image struct image *i = NULL;
	int r = image_open(o->store, o->id, &i, &e);
	return r < 0 && e.text[0] == '\0' ? 1 : r;
}

static void test_allocations(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	add_image(s, "one", "name", &id);
	for_each_failing_alloc(open_once, &(struct opening){ s, &id });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_open),           fixture_test(test_missing),
		fixture_test(test_damaged),        fixture_test(test_last_use),
		fixture_test(test_link),           fixture_test(test_verify),
		fixture_test(test_verify_lengths), fixture_test(test_repair_fails),
		fixture_test(test_read_only),      fixture_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
