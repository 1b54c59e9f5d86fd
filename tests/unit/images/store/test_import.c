/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "images/spec/oci.h"
#include "images/store/catalog.h"
#include "images/store/layout.h"
#include "images/store/store_int.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/rmtree.h"
#include "tests/support/cmocka.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/layers.h"
#include "tests/unit/images/store/support.h"

static struct import *must_begin(struct store *s, const char *key)
{
	struct import *i = NULL;
	struct err e = ERR_INIT;
	if (import_begin(s, key, &i, &e) < 0)
		fail_msg("%s", e.text);
	return i;
}

static void test_publish(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct err e = ERR_INIT;
	bool rendered = false;
	struct import *i = must_begin(s, "key");
	fill_import(i, "one", &id);
	assert_false(catalog_has_image(s, &id));
	assert_int_equal(count_names(state, "oci/blobs/sha256"), 0);
	assert_int_equal(publish_import(i, &id, "a", &rendered, &e), 0);
	import_free(i);
	assert_true(rendered);
	assert_true(catalog_has_image(s, &id));
	assert_int_equal(count_names(state, "oci/blobs/sha256"), 3);
	assert_int_equal(count_names(state, "trees"), 2); /* and its digest */
	assert_int_equal(count_names(state, "tmp"), 0);
	/* Again, under another name: the same image with two names, not rendered again. */
	i = must_begin(s, "key");
	fill_import(i, "one", &id);
	assert_int_equal(publish_import(i, &id, "b", &rendered, &e), 0);
	import_free(i);
	assert_false(rendered);
	CLEANUP(record_deinit) struct record r;
	record_init(&r);
	assert_int_equal(catalog_get(s, &id, &r, &e), 0);
	assert_int_equal(r.names.n, 2);
	assert_string_equal(record_name(&r), "b");
	assert_int_equal(count_names(state, "oci/blobs/sha256"), 3);
}

/* What is not published is gone, unless it is to be gone on with. */
static void test_abandon(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct import *i = must_begin(s, "key");
	fill_import(i, "one", &id);
	import_free(i);
	assert_int_equal(count_names(state, "tmp"), 0);
	i = must_begin(s, "key");
	fill_import(i, "one", &id);
	import_keep(i);
	import_free(i);
	assert_int_equal(count_names(state, "tmp"), 1);
	i = must_begin(s, "other");
	assert_false(layout_has_blob(import_dirfd(i), &id, 1));
	import_free(i);
	i = must_begin(s, "key");
	char path[sizeof(LAYOUT_BLOBS) + 1 + DIGEST_HEX_LEN];
	snprintf(path, sizeof(path), LAYOUT_BLOBS "/%s", id.hex);
	assert_int_equal(faccessat(import_dirfd(i), path, F_OK, 0), 0);
	import_free(i);
	assert_int_equal(count_names(state, "tmp"), 0);
	assert_false(catalog_has_image(s, &id));
	import_free(NULL);
}

/* Somebody else's directory under our name is not used. */
static void test_foreign_directory(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct import *i = must_begin(s, "key");
	struct err e = ERR_INIT;
	struct digest key;
	char name[256];
	import_free(i);
	digest_of("key", 3, &key);
	snprintf(name, sizeof(name), "tmp/fetch-%u-%s", (unsigned)geteuid(), key.hex);
	assert_int_equal(mkdirat(fixture_dir(state), name, 0755), 0);
	assert_int_equal(import_begin(s, "key", &i, &e), -EPERM);
	assert_non_null(strstr(e.text, "belongs to somebody else (remove it)"));
	assert_int_equal(unlinkat(fixture_dir(state), name, AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("/tmp", fixture_dir(state), name), 0);
	e = ERR_INIT;
	assert_true(import_begin(s, "key", &i, &e) < 0);
	assert_int_equal(unlinkat(fixture_dir(state), name, 0), 0);
}

static void count_bytes(void *ctx, const void *data, size_t len)
{
	assert_non_null(data);
	*(uint64_t *)ctx += len;
}

static void test_copy(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	cleanup_import struct import *i = must_begin(s, "key");
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	struct digest want, other, got;
	struct err e = ERR_INIT;
	uint64_t done = 0;
	const struct import_watch watch = { count_bytes, &done };
	layers_span("hello", 5, &span);
	digest_of("hello", 5, &want);
	digest_of("other", 5, &other);
	assert_int_equal(import_copy(i, &span, &other, NULL, &got, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "digest mismatch"));
	assert_false(layout_has_blob(import_dirfd(i), &want, 5));
	assert_int_equal(import_copy(i, &span, &want, &watch, &got, &e), 0);
	assert_int_equal(done, 5);
	assert_true(digest_equal(&want, &got));
	assert_true(layout_has_blob(import_dirfd(i), &want, 5));
	/* A second time it takes the place of the first. */
	assert_int_equal(import_copy(i, &span, NULL, NULL, &got, &e), 0);
	span.size = 6;
	assert_int_equal(import_copy(i, &span, NULL, NULL, &got, &e), -ENODATA);
	assert_non_null(strstr(e.text, "became shorter"));
}

/* Blobs that the store has are linked, those of another size are not. */
static void test_reuse(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct stat a, b;
	char path[128];
	add_image(s, "one", "name", &id);
	cleanup_import struct import *i = must_begin(s, "key");
	snprintf(path, sizeof(path), "oci/" LAYOUT_BLOBS "/%s", id.hex);
	assert_int_equal(fstatat(fixture_dir(state), path, &a, 0), 0);
	assert_int_equal(import_reuse(i, &id, (uint64_t)a.st_size + 1), STORE_MISSING);
	assert_int_equal(import_reuse(i, &id, (uint64_t)a.st_size), 0);
	assert_int_equal(import_reuse(i, &id, (uint64_t)a.st_size), 0);
	assert_int_equal(fstatat(import_dirfd(i), path + strlen("oci/"), &b, 0), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	digest_of("unknown", 7, &id);
	assert_int_equal(import_reuse(i, &id, 1), STORE_MISSING);
}

/*
 * An image that is not what it says does not get into the store, whatever is rendered there
 * already.
 */
static void test_lies(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id, wrong;
	struct err e = ERR_INIT;
	bool rendered;
	add_image(s, "one", "name", &id);
	struct import *i = must_begin(s, "key");
	fill_import(i, "two", &id);
	/* The bytes of another layer of that length, under the name of this one. */
	CLEANUP(layout_image_deinit) struct layout_image image;
	layout_image_init(&image);
	assert_int_equal(layout_read_image(import_dirfd(i), &id, false, NULL, 0, &image, &e), 0);
	cleanup_fd int fd = import_new_blob(i, &e);
	assert_int_equal(ftruncate(fd, (off_t)image.manifest.layers[0].size), 0);
	assert_int_equal(import_add(i, fd, &image.manifest.layers[0].digest, &e), 0);
	assert_true(publish_import(i, &id, "a", &rendered, &e) < 0);
	assert_non_null(strstr(e.text, "mismatch"));
	import_free(i);
	assert_false(catalog_has_image(s, &id));
	assert_int_equal(count_names(state, "images"), 1);
	assert_int_equal(count_names(state, "oci/blobs/sha256"), 3);
	/* A manifest that is not there, and one that is not a manifest. */
	i = must_begin(s, "key");
	digest_of("nothing", 7, &wrong);
	assert_int_equal(publish_import(i, &wrong, "a", &rendered, &e), -ENOENT);
	assert_int_equal(import_text(i, "text", 4, &wrong, &e), 0);
	assert_true(publish_import(i, &wrong, "a", &rendered, &e) < 0);
	import_free(i);
	assert_int_equal(count_names(state, "images"), 1);
}

/* A blob of the store that was damaged is replaced by a new import. */
static void test_repair(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct err e = ERR_INIT;
	char path[128];
	add_image(s, "one", "name", &id);
	snprintf(path, sizeof(path), "oci/" LAYOUT_BLOBS "/%s", id.hex);
	assert_int_equal(unlinkat(fixture_dir(state), path, 0), 0);
	fixture_write(state, "damaged", "x", 1);
	assert_int_equal(renameat(fixture_dir(state), "damaged", fixture_dir(state), path), 0);
	assert_false(catalog_has_image(s, &id));
	cleanup_image struct image *image = NULL;
	assert_true(image_open(s, &id, &image, &e) < 0);
	assert_non_null(strstr(e.text, "its manifest is damaged"));
	add_image(s, "one", "name", &id);
	assert_true(catalog_has_image(s, &id));
	assert_int_equal(image_open(s, &id, &image, &e), 0);
}

/* In a child that waits for a byte: the import, then a byte back. */
static void begin_second(void **state, const int go[2], const int begun[2])
{
	struct store *s;
	struct import *i = NULL;
	char c;
	if (read(go[0], &c, 1) != 1 || store_open(fixture_dir(state), "DIR", &s, NULL) < 0 ||
	    import_begin(s, "key", &i, NULL) < 0)
		_exit(1);
	_exit(write(begun[1], "x", 1) == 1 ? 0 : 1);
}

/*
 * Who comes second waits for the first. The child has nothing from before that could hold the lock.
 */
static void test_lock(void **state)
{
	int go[2], begun[2], status;
	char c;
	fixture_dir(state);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(begun, O_CLOEXEC | O_NONBLOCK), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		begin_second(state, go, begun);
	cleanup_store struct store *s = must_open_store(state);
	struct import *i = must_begin(s, "key");
	assert_int_equal(write(go[1], "x", 1), 1);
	cleanup_import struct import *other = must_begin(s, "other"); /* another key is free */
	(void)other;                                                  /* freed at the end */
	assert_int_equal(read(begun[0], &c, 1), -1);
	import_free(i);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(begun[0], &c, 1), 1);
	for (int k = 0; k < 2; k++) {
		close(go[k]);
		close(begun[k]);
	}
}

/* Who has an import waits for nobody: he gets one of his own, of which nothing stays. */
static void test_nested(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct import *i = must_begin(s, "key"), *nested = NULL;
	struct err e = ERR_INIT;
	struct digest id;
	bool rendered;
	alarm(600); /* it would wait for ever */
	assert_int_equal(import_begin_nested(s, "key", &nested, &e), 0);
	alarm(0);
	assert_int_equal(count_names(state, "tmp"), 2);
	fill_import(nested, "one", &id);
	import_keep(nested);
	assert_int_equal(publish_import(nested, &id, "a", &rendered, &e), 0);
	import_free(nested);
	assert_true(catalog_has_image(s, &id));
	assert_int_equal(import_begin_nested(s, "key", &nested, &e), 0);
	import_keep(nested);
	import_free(nested);
	assert_int_equal(count_names(state, "tmp"), 1);
	import_free(i);
	/* With nobody in the way it is that of the key. */
	assert_int_equal(import_begin_nested(s, "key", &nested, &e), 0);
	import_keep(nested);
	import_free(nested);
	assert_int_equal(count_names(state, "tmp"), 1);
	import_free(must_begin(s, "key"));
	assert_int_equal(count_names(state, "tmp"), 0);
}

static int import_as_member(void **state, void *ctx)
{
	struct store *s = NULL;
	struct import *i = NULL;
	struct image *image = NULL;
	struct err e = ERR_INIT;
	struct digest *id = ctx;
	bool rendered = true;
	MUST(store_open(fixture_dir(state), "DIR", &s, NULL) == 0);
	MUST(!store_may_render(s));
	MUST(import_begin(s, "key", &i, NULL) == 0);
	fill_import(i, "one", id);
	MUST(publish_import(i, id, "a", &rendered, NULL) == 0);
	MUST(!rendered && catalog_has_image(s, id));
	import_free(i);
	MUST(image_open_documents(s, id, &image, NULL) == 0);
	image_free(image);
	MUST(image_open(s, id, &image, &e) == -EACCES);
	MUST(strstr(e.text, "only the owner of DIR may do that"));
	store_free(s);
	return 0;
}

static int open_as_member(void **state, void *ctx)
{
	struct store *s = NULL;
	struct image *image = NULL;
	MUST(store_open(fixture_dir(state), "DIR", &s, NULL) == 0);
	MUST(image_open(s, ctx, &image, NULL) == 0 && !image->rendered);
	image_free(image);
	store_free(s);
	return 0;
}

/* Members of the group fetch into the store of another, who renders. */
static void test_group(void **state)
{
	struct digest id;
	struct err e = ERR_INIT;
	cleanup_image struct image *image = NULL;
	if (!share_store(state))
		skip();
	mode_t old = umask(022);
	cleanup_store struct store *s = must_open_store(state);
	umask(old);
	struct import *i = must_begin(s, "own");
	fill_import(i, "one", &id); /* which ID it will have */
	import_free(i);
	run_as_member(state, import_as_member, &(struct digest){ "" });
	assert_true(catalog_has_image(s, &id));
	assert_int_equal(count_names(state, "trees"), 0);
	assert_int_equal(count_names(state, "tmp"), 0);
	assert_int_equal(image_open(s, &id, &image, &e), 0);
	assert_true(image->rendered);
	run_as_member(state, open_as_member, &id);
	/* Whoever came first made the locks, for all. */
	static const char *const locks[] = { "locks/fetch", "locks/images", "locks/render" };
	for (size_t k = 0; k < ARRAY_SIZE(locks); k++) {
		struct stat st;
		assert_int_equal(fstatat(fixture_dir(state), locks[k], &st, 0), 0);
		assert_int_equal(st.st_mode, S_IFREG | 0660);
	}
	assert_int_equal(count_names(state, "locks"), ARRAY_SIZE(locks));
}

#define ACI(name) \
	"{\"acKind\":\"ImageManifest\",\"acVersion\":\"0.8.11\",\"name\":\"a.b/" name "\"}"

/* Imports an appc image on top of @below, if that is not NULL. */
static int import_aci(struct store *s, const char *manifest, const struct digest *below,
		      struct digest *ret, struct err *e)
{
	static const char *const lines[] = { "f manifest text=m", "d rootfs", "f rootfs/f text=one",
					     NULL };
	cleanup_import struct import *i = must_begin(s, manifest);
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	CLEANUP(buf_deinit) struct buf text;
	struct blob tar = { NULL, 0 };
	struct oci_descriptor layer = { .media_type = OCI_TYPE_ACI };
	struct oci_manifest m = { .layers = &layer, .n_layers = 1 };
	bool rendered;
	char key[RECORD_KEY_LEN + 1] = "";
	memset(key, 'a', RECORD_KEY_LEN);
	layers_make(lines, "pax", &tar);
	layers_span(tar.data, tar.len, &span);
	layer.size = tar.len;
	blob_deinit(&tar);
	m.config = (struct oci_descriptor){ .media_type = OCI_TYPE_APPC, .size = strlen(manifest) };
	assert_int_equal(import_copy(i, &span, NULL, NULL, &layer.digest, e), 0);
	assert_int_equal(import_text(i, manifest, strlen(manifest), &m.config.digest, e), 0);
	buf_init(&text, OCI_JSON_MAX);
	assert_int_equal(oci_manifest_format(&m, &text), 0);
	assert_int_equal(import_text(i, buf_data(&text), buf_len(&text), ret, e), 0);
	const struct import_image image = {
		.id = *ret,
		.is_appc = true,
		.name = "a.b/c",
		.key = key,
		.below = below,
		.n_below = below ? 1 : 0,
	};
	return import_publish(i, &image, &rendered, e);
}

/* Waits until @pid waits for a lock of a whole file. */
static void wait_until_locked(pid_t pid)
{
	char want[64];
	snprintf(want, sizeof(want), "FLOCK  ADVISORY  WRITE %d ", (int)pid);
	for (bool found = false; !found;) {
		char line[256];
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		FILE *f = fopen("/proc/locks", "re");
		assert_non_null(f);
		while (fgets(line, sizeof(line), f))
			found |= strstr(line, "-> ") && strstr(line, want);
		fclose(f);
	}
}

/* The image below is removed while the one on top of it is rendered. */
static void test_below_is_removed(void **state)
{
	struct digest below, id;
	struct err e = ERR_INIT;
	int status;
	cleanup_store struct store *s = must_open_store(state);
	if (import_aci(s, ACI("below"), NULL, &below, &e) < 0)
		fail_msg("%s", e.text);
	cleanup_fd int lock = -EBADF;
	assert_int_equal(store_lock_images(s, &lock, &e), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct store *own;
		close(lock);
		_exit(store_open(fixture_dir(state), "DIR", &own, NULL) < 0 ||
		      import_aci(own, ACI("upon"), &below, &id, NULL) < 0);
	}
	wait_until_locked(pid);
	assert_int_equal(catalog_remove(s, &below, &e), 0);
	assert_int_equal(rmtree(fixture_dir(state), "oci/" LAYOUT_BLOBS), 0);
	assert_int_equal(mkdirat(fixture_dir(state), "oci/" LAYOUT_BLOBS, 0755), 0);
	fd_replace(&lock, -EBADF);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	assert_int_equal(catalog_list(s, &l, &e), 0);
	assert_int_equal(l.n, 1);
	assert_true(catalog_has_image(s, &l.ids[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_publish),
		fixture_test(test_abandon),
		fixture_test(test_foreign_directory),
		fixture_test(test_copy),
		fixture_test(test_reuse),
		fixture_test(test_lies),
		fixture_test(test_repair),
		fixture_test(test_lock),
		fixture_test(test_nested),
		fixture_test(test_group),
		fixture_test(test_below_is_removed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
