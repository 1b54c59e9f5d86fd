/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/rendered.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "images/store/store_int.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/listing.h"
#include "tests/unit/images/store/support.h"

/* An import with an image, its documents read. */
struct sample {
	struct store *store;
	struct import *import;
	struct layout_image image;
};

static void sample_init(struct sample *p, void **state, const char *text)
{
	struct err e = ERR_INIT;
	struct digest id;
	*p = (struct sample){ .store = must_open_store(state) };
	layout_image_init(&p->image);
	if (import_begin(p->store, text, &p->import, &e) < 0)
		fail_msg("%s", e.text);
	fill_import(p->import, text, &id);
	assert_int_equal(
		layout_read_image(import_dirfd(p->import), &id, false, NULL, 0, &p->image, &e), 0);
}

static void sample_deinit(struct sample *p)
{
	layout_image_deinit(&p->image);
	import_free(p->import);
	store_free(p->store);
}

static int open_it(const struct sample *p, int *ret_fd, bool *ret_made, struct err *e)
{
	*e = ERR_INIT;
	return rendered_open(p->store, &p->image, import_dirfd(p->import), ret_fd, ret_made, e);
}

static int verify_it(const struct sample *p, bool *ret_made, struct err *e)
{
	*e = ERR_INIT;
	return rendered_verify(p->store, &p->image, import_dirfd(p->import), ret_made, e);
}

/* Puts other bytes of the same number in place of the layer. */
static void falsify_layer(const struct sample *p)
{
	struct err e = ERR_INIT;
	const struct oci_descriptor *d = &p->image.manifest.layers[0];
	cleanup_fd int fd = import_new_blob(p->import, &e);
	assert_int_equal(ftruncate(fd, (off_t)d->size), 0);
	assert_int_equal(import_add(p->import, fd, &d->digest, &e), 0);
}

static void test_open(void **state)
{
	CLEANUP(sample_deinit) struct sample p;
	struct err e;
	bool made = false;
	cleanup_fd int fd = -EBADF;
	cleanup_fd int again = -EBADF;
	sample_init(&p, state, "one");
	assert_int_equal(open_it(&p, &fd, &made, &e), 0);
	assert_true(made);
	cleanup_free char *listing = listing_of(fd);
	assert_non_null(strstr(listing, " f =one\n"));
	/* Found: the layers are not even opened. */
	assert_int_equal(rendered_open(p.store, &p.image, -EBADF, &again, &made, &e), 0);
	assert_false(made);
	assert_int_equal(rendered_check(p.store, &p.image, &e), 0);
}

/* Many at once: one renders. */
static void test_at_once(void **state)
{
	enum {
		N = 6
	};
	pid_t pids[N];
	int n_made = 0;
	CLEANUP(sample_deinit) struct sample p;
	sample_init(&p, state, "one");
	for (int i = 0; i < N; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			struct err e;
			bool made;
			int fd;
			_exit(open_it(&p, &fd, &made, &e) < 0 ? 2 : made);
		}
	}
	for (int i = 0; i < N; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
		n_made += WEXITSTATUS(status);
	}
	assert_int_equal(n_made, 1);
	assert_int_equal(count_names(state, "trees"), 2);
}

/* A rendered file proves nothing about layers that come later. */
static void test_verify(void **state)
{
	CLEANUP(sample_deinit) struct sample p;
	struct err e;
	bool made = false;
	sample_init(&p, state, "one");
	assert_int_equal(verify_it(&p, &made, &e), 0);
	assert_true(made);
	assert_int_equal(verify_it(&p, &made, &e), 0);
	assert_false(made);
	falsify_layer(&p);
	assert_int_equal(verify_it(&p, &made, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "layer 1 of 1 (sha256:"));
	assert_non_null(strstr(e.text, "mismatch"));
	assert_false(made);
	assert_int_equal(rendered_check(p.store, &p.image, &e), 0);
}

static void test_verify_unrendered(void **state)
{
	CLEANUP(sample_deinit) struct sample p;
	struct err e;
	bool made = true;
	sample_init(&p, state, "one");
	falsify_layer(&p);
	assert_int_equal(verify_it(&p, &made, &e), -EBADMSG);
	assert_false(made);
	assert_int_equal(count_names(state, "trees"), 0);
	assert_int_equal(rendered_check(p.store, &p.image, &e), STORE_MISSING);
}

static int verify_as_member(void **state, void *ctx)
{
	const struct sample *p = ctx;
	struct err e;
	bool made = true;
	int fd;
	(void)state;
	MUST(verify_it(p, &made, &e) == 0 && !made);
	MUST(open_it(p, &fd, &made, &e) == -EACCES);
	MUST(strstr(e.text, "it has to be rendered, and only the owner of DIR may do that"));
	e = ERR_INIT;
	MUST(rendered_repair(p->store, &p->image, import_dirfd(p->import), &e) == -EACCES);
	return 0;
}

/* Who may not render verifies all the same, and learns early that rendering is not for them. */
static void test_member(void **state)
{
	CLEANUP(sample_deinit) struct sample p;
	if (!share_store(state))
		skip();
	sample_init(&p, state, "one");
	/* The directory of this import is root's: let the member read it. */
	assert_int_equal(fchmod(import_dirfd(p.import), 0755), 0);
	assert_int_equal(fchmodat(import_dirfd(p.import), "blobs", 0755, 0), 0);
	assert_int_equal(fchmodat(import_dirfd(p.import), LAYOUT_BLOBS, 0755, 0), 0);
	run_as_member(state, verify_as_member, &p);
	assert_int_equal(count_names(state, "trees"), 0);
}

static void test_missing_layer(void **state)
{
	CLEANUP(sample_deinit) struct sample p;
	struct err e;
	bool made = true;
	char path[128];
	int fd = -EBADF;
	sample_init(&p, state, "one");
	snprintf(path, sizeof(path), LAYOUT_BLOBS "/%s", p.image.manifest.layers[0].digest.hex);
	assert_int_equal(unlinkat(import_dirfd(p.import), path, 0), 0);
	assert_true(open_it(&p, &fd, &made, &e) < 0);
	assert_non_null(strstr(e.text, "is missing (fetch the image again)"));
	assert_true(verify_it(&p, &made, &e) < 0);
	assert_non_null(strstr(e.text, "is missing (fetch the image again)"));
}

/* A full disk leaves nothing that looks rendered. */
static void test_disk_full(void **state)
{
	static const rlim_t limits[] = { 10, 200, 2000 };
	CLEANUP(sample_deinit) struct sample p;
	struct rlimit old, limit;
	struct err e;
	bool made = true;
	int fd = -EBADF;
	sample_init(&p, state, "one");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		limit = old;
		limit.rlim_cur = limits[i];
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		assert_int_equal(open_it(&p, &fd, &made, &e), -EFBIG);
		assert_non_null(strstr(e.text, "File too large"));
		assert_int_equal(count_names(state, "trees"), 0);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(open_it(&p, &fd, &made, &e), 0);
	fd_close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_open),      fixture_test(test_at_once),
		fixture_test(test_verify),    fixture_test(test_verify_unrendered),
		fixture_test(test_member),    fixture_test(test_missing_layer),
		fixture_test(test_disk_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
