/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "tests/support/cmocka.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/store/support.h"

/* A store's own layout with one image. */
struct made {
	struct store *store;
	struct digest id;
	int fd;
};

static void make(void **state, struct made *m)
{
	m->store = must_open_store(state);
	add_image(m->store, "one", "name", &m->id);
	m->fd = openat(fixture_dir(state), "oci", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(m->fd >= 0);
}

static void unmake(struct made *m)
{
	store_free(m->store);
	close(m->fd);
}

static void test_make(void **state)
{
	cleanup_free char *text = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(layout_make(fixture_dir(state), true), 0);
	assert_int_equal(layout_make(fixture_dir(state), false), 0);
	size_t len = 0;
	assert_int_equal(file_read_at(fixture_dir(state), "oci-layout", 100, &text, &len), 0);
	assert_int_equal(oci_layout_parse(text, len, &e), 0);
	assert_true(is_there(state, LAYOUT_BLOBS));
	assert_int_equal(layout_make(-1, true), -EBADF);
}

/* Another manifest of the image @i, which says that the layer is a root file system. */
static void make_rootfs(const struct made *m, struct layout_image *i, struct digest *ret)
{
	char path[LAYOUT_PATH_LEN];
	cleanup_buf struct buf text;
	buf_init(&text, OCI_JSON_MAX);
	i->manifest.is_rootfs = true;
	assert_int_equal(oci_manifest_format(&i->manifest, &text), 0);
	digest_of(buf_data(&text), buf_len(&text), ret);
	layout_path_of_blob(ret, path);
	cleanup_fd int fd = openat(m->fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, buf_data(&text), buf_len(&text)), buf_len(&text));
}

static void test_read(void **state)
{
	struct made m;
	struct digest rootfs;
	struct err e = ERR_INIT;
	CLEANUP(layout_image_deinit) struct layout_image i;
	CLEANUP(layout_image_deinit) struct layout_image plain;
	CLEANUP(layout_image_deinit) struct layout_image again;
	layout_image_init(&i);
	layout_image_init(&plain);
	layout_image_init(&again);
	make(state, &m);
	assert_int_equal(layout_read_image(m.fd, &m.id, false, NULL, 0, &i, &e), 0);
	assert_true(digest_equal(&i.id, &m.id));
	assert_int_equal(i.manifest.n_layers, 1);
	assert_true(i.size > i.manifest.config.size + i.manifest.layers[0].size);
	assert_true(layout_has_image(m.fd, &i));
	/* One layer: the chain ID is its diff_id; with another meaning it has another name. */
	assert_true(digest_equal(&i.chain, &i.config.diff_ids[0]));
	assert_int_equal(i.kind, IMAGE_OCI);
	make_rootfs(&m, &i, &rootfs);
	assert_int_equal(layout_read_image(m.fd, &rootfs, false, NULL, 0, &plain, &e), 0);
	assert_int_equal(plain.kind, IMAGE_ROOTFS);
	assert_false(digest_equal(&i.chain, &plain.chain));
	assert_int_equal(layout_read_image(m.fd, &m.id, true, NULL, 0, &again, &e), -EBADMSG);
	assert_string_equal(e.text, "it is an image of another kind");
	struct render_layer *layers = NULL;
	assert_int_equal(layout_open_layers(m.fd, &i, &layers, &e), 0);
	assert_int_equal(layers[0].span.size, i.manifest.layers[0].size);
	assert_true(digest_equal(&layers[0].diff_id, &i.config.diff_ids[0]));
	layout_layers_free(layers, 1);
	layout_layers_free(NULL, 1);
	unmake(&m);
}

/* Parts that are gone, of another size, or something else than a file. */
static void test_incomplete(void **state)
{
	struct made m;
	struct err e = ERR_INIT;
	char path[128];
	struct render_layer *layers = NULL;
	CLEANUP(layout_image_deinit) struct layout_image i;
	layout_image_init(&i);
	make(state, &m);
	assert_int_equal(layout_read_image(m.fd, &m.id, false, NULL, 0, &i, &e), 0);
	snprintf(path, sizeof(path), LAYOUT_BLOBS "/%s", i.manifest.layers[0].digest.hex);
	assert_int_equal(fchmodat(m.fd, path, 0600, 0), 0);
	cleanup_fd int fd = openat(m.fd, path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 10), 0);
	assert_false(layout_has_image(m.fd, &i));
	assert_int_equal(layout_open_layers(m.fd, &i, &layers, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "has 10 bytes instead of"));
	assert_int_equal(unlinkat(m.fd, path, 0), 0);
	assert_int_equal(layout_open_layers(m.fd, &i, &layers, &e), -ENOENT);
	assert_non_null(strstr(e.text, "is missing (fetch the image again)"));
	assert_int_equal(symlinkat("/etc/passwd", m.fd, path), 0);
	assert_false(layout_has_image(m.fd, &i));
	assert_true(layout_open_layers(m.fd, &i, &layers, &e) < 0);
	assert_int_equal(unlinkat(m.fd, path, 0), 0);
	assert_int_equal(mkdirat(m.fd, path, 0700), 0);
	assert_false(layout_has_image(m.fd, &i));
	assert_int_equal(layout_open_layers(m.fd, &i, &layers, &e), -EBADMSG);
	/* The configuration, then the manifest. */
	CLEANUP(layout_image_deinit) struct layout_image again;
	layout_image_init(&again);
	snprintf(path, sizeof(path), LAYOUT_BLOBS "/%s", i.manifest.config.digest.hex);
	assert_int_equal(unlinkat(m.fd, path, 0), 0);
	assert_int_equal(layout_read_image(m.fd, &m.id, false, NULL, 0, &again, &e), -ENOENT);
	assert_non_null(strstr(e.text, "its configuration is missing"));
	layout_image_deinit(&again);
	snprintf(path, sizeof(path), LAYOUT_BLOBS "/%s", m.id.hex);
	assert_int_equal(unlinkat(m.fd, path, 0), 0);
	assert_int_equal(layout_read_image(m.fd, &m.id, false, NULL, 0, &again, &e), -ENOENT);
	assert_non_null(strstr(e.text, "its manifest is missing"));
	unmake(&m);
}

static int open_blobs(void *ctx)
{
	const struct made *m = ctx;
	CLEANUP(layout_image_deinit) struct layout_image i;
	struct blob_file *blobs = NULL;
	size_t n = 0;
	layout_image_init(&i);
	int r = layout_read_image(m->fd, &m->id, false, NULL, 0, &i, NULL);
	if (r == 0)
		r = layout_open_blobs(m->fd, &i, &blobs, &n, NULL);
	layout_blobs_free(blobs, n);
	return r;
}

static void test_blobs(void **state)
{
	struct made m;
	struct err e = ERR_INIT;
	struct blob_file *blobs = NULL;
	struct stat st;
	size_t n = 0;
	CLEANUP(layout_image_deinit) struct layout_image i;
	layout_image_init(&i);
	make(state, &m);
	assert_int_equal(layout_read_image(m.fd, &m.id, false, NULL, 0, &i, &e), 0);
	assert_string_equal(i.manifest.media_type, OCI_TYPE_MANIFEST);
	assert_int_equal(layout_open_blobs(m.fd, &i, &blobs, &n, &e), 0);
	assert_int_equal(n, 3);
	assert_true(digest_equal(&blobs[0].digest, &m.id));
	assert_true(digest_equal(&blobs[1].digest, &i.manifest.config.digest));
	assert_true(digest_equal(&blobs[2].digest, &i.manifest.layers[0].digest));
	for (size_t k = 0; k < n; k++) {
		assert_int_equal(fstat(blobs[k].fd, &st), 0);
		assert_int_equal(st.st_size, blobs[k].size);
	}
	layout_blobs_free(blobs, n);
	layout_blobs_free(NULL, 0);
	for_each_failing_alloc_lenient(open_blobs, &m);
	char path[200];
	snprintf(path, sizeof(path), LAYOUT_BLOBS "/%s", i.manifest.layers[0].digest.hex);
	assert_int_equal(unlinkat(m.fd, path, 0), 0);
	assert_int_equal(layout_open_blobs(m.fd, &i, &blobs, &n, &e), -ENOENT);
	assert_non_null(strstr(e.text, "is missing (fetch the image again)"));
	unmake(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_make),
		fixture_test(test_read),
		fixture_test(test_incomplete),
		fixture_test(test_blobs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
