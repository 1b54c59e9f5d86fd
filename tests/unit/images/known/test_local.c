/* SPDX-License-Identifier: Apache-2.0 */
#include "images/known/local.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "images/fetch/fetch.h"
#include "images/images.h"
#include "images/store/catalog.h"
#include "images/store/find.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/rmtree.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/fetch/layout.h"
#include "tests/unit/images/store/support.h"

#define LINES(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* A file that has been there for longer than this program; a tar, or something else. */
static void old_file(const char *name, char out[PATH_MAX])
{
	const char *source = getenv("HUSK_SOURCE_DIR");
	snprintf(out, PATH_MAX, "%s/tests/fuzz/corpus/%s", source ? source : ".", name);
}

/* What was noted last. */
struct notes {
	char last[ERR_TEXT_MAX];
};

static void take_note(void *ctx, const char *text)
{
	struct notes *n = ctx;
	snprintf(n->last, sizeof(n->last), "%s", text);
}

/* Fetches @text, a reference; *ret_read says whether the file was read. */
static int try_fetch(struct store *s, const char *text, struct fetched *ret, bool *ret_read,
		     struct err *e)
{
	struct notes notes = { "" };
	const struct fetch_request q = { .reference = text,
					 .options = { .note = take_note, .ctx = &notes } };
	*e = ERR_INIT;
	*ret = (struct fetched){ .name = "" };
	int r = fetch_to_store(s, &q, ret, e);
	assert_true(r <= 0);
	assert_int_equal(r < 0, e->text[0] != '\0');
	*ret_read = !strstr(notes.last, "has not changed since");
	return r;
}

/* Fetches SCHEME:FIXTURE/NAME. True if it was read. */
static bool must_fetch(void **state, struct store *s, const char *scheme, const char *name,
		       struct fetched *ret)
{
	char text[PATH_MAX];
	struct err e;
	bool was_read;
	snprintf(text, sizeof(text), "%s%s/%s", scheme, fixture_path(state), name);
	if (try_fetch(s, text, ret, &was_read, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	assert_true(catalog_has_image(s, &ret->id));
	assert_int_equal(count_names(state, "tmp"), 0);
	return was_read;
}

static void write_tar(void **state, const char *name, const char *line)
{
	struct blob tar = { NULL, 0 };
	layers_make(LINES(line), "pax", &tar);
	fixture_write(state, name, tar.data, tar.len);
	blob_deinit(&tar);
}

/* Writes what "docker save" would, with one file that contains @text. */
static void write_docker(void **state, const char *name, const char *text, const char *tag)
{
	struct layout_written w;
	char line[128];
	const char *const lines[] = { line, NULL };
	const struct layout_image image = { .layers = { lines }, .tag = tag };
	snprintf(line, sizeof(line), "f f text=%s", text);
	layout_write_docker(state, name, &image, &w);
}

/* The reference for @path of @type with the stamp that @file has, less its first @cut bytes. */
static void put_memo_of(const struct store *s, const char *type, const char *path, const char *file,
			const struct digest *id, size_t cut)
{
	char text[PATH_MAX + 32];
	struct ref memo;
	cleanup_fd int fd = open(file, O_RDONLY | O_CLOEXEC);
	snprintf(text, sizeof(text), "file:%s:%s:", type, path);
	assert_int_equal(ref_init(&memo, text), 0);
	assert_int_equal(ref_stamp(fd, INT64_MAX, memo.stamp), 0);
	memmove(memo.stamp, memo.stamp + cut, strlen(memo.stamp + cut) + 1);
	memo.image = *id;
	str_copy(memo.name, sizeof(memo.name), "remembered");
	assert_int_equal(catalog_put_ref(s, &memo), 0);
}

/* Waits until a file of now is one whose stamp counts. */
static void wait_until_settled(const char *file)
{
	char stamp[REF_STAMP_MAX + 1] = "";
	cleanup_fd int fd = open(file, O_RDONLY | O_CLOEXEC);
	while (!*stamp) {
		usleep(10000); /* check-style allows sleep: time itself is waited for */
		assert_int_equal(ref_stamp(fd, clock_realtime_ns(), stamp), 0);
	}
}

static void put_memo(const struct store *s, const char *file, const struct digest *id, size_t cut)
{
	char path[PATH_MAX];
	assert_non_null(realpath(file, path));
	put_memo_of(s, "rootfs", path, file, id, cut);
}

/* A file that is what it was is not even read: this one is not an image at all. */
static void test_unchanged(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct fetched f;
	struct digest id;
	struct err e;
	bool was_read = true;
	char file[PATH_MAX], text[PATH_MAX + 8];
	old_file("oci-json/config", file);
	snprintf(text, sizeof(text), "rootfs:%s", file);
	add_image(s, "one", "one", &id);
	put_memo(s, file, &id, 0);
	assert_int_equal(try_fetch(s, text, &f, &was_read, &e), 0);
	assert_false(was_read);
	assert_true(digest_equal(&f.id, &id));
	assert_string_equal(f.name, "remembered");
	assert_false(f.rendered);
	/* Another stamp, none, or an image that is gone: then it is read. */
	put_memo(s, file, &id, 1);
	assert_true(try_fetch(s, text, &f, &was_read, &e) < 0);
	assert_true(was_read);
	put_memo(s, file, &id, 0);
	assert_int_equal(catalog_remove(s, &id, &e), 0);
	assert_true(try_fetch(s, text, &f, &was_read, &e) < 0);
	assert_true(was_read);
}

/*
 * An OCI layout is what its index says, and only as a layout: this one says nothing that is valid.
 */
static void test_unchanged_layout(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct fetched f;
	struct digest id;
	struct err e;
	bool was_read = true;
	char dir[PATH_MAX], index[PATH_MAX + 16], text[PATH_MAX + 8];
	assert_non_null(realpath(fixture_path(state), dir));
	strncat(dir, "/layout", sizeof(dir) - strlen(dir) - 1);
	assert_int_equal(mkdir(dir, 0755), 0);
	fixture_write(state, "layout/index.json", "none", 4);
	snprintf(index, sizeof(index), "%s/index.json", dir);
	add_image(s, "one", "one", &id);
	put_memo_of(s, "any", dir, index, &id, 0);
	assert_true(try_fetch(s, dir, &f, &was_read, &e) < 0);
	assert_true(was_read); /* without oci-layout it is none */
	fixture_write(state, "layout/oci-layout", "none", 4);
	/* Its index has just been written: it may change once more with the same times. */
	assert_true(try_fetch(s, dir, &f, &was_read, &e) < 0);
	assert_true(was_read);
	wait_until_settled(index);
	assert_int_equal(try_fetch(s, dir, &f, &was_read, &e), 0);
	assert_false(was_read);
	assert_true(digest_equal(&f.id, &id));
	snprintf(text, sizeof(text), "rootfs:%s", dir);
	put_memo_of(s, "rootfs", dir, index, &id, 0);
	assert_int_equal(try_fetch(s, text, &f, &was_read, &e), 0);
	assert_true(was_read);
	assert_false(digest_equal(&f.id, &id));
	/* Another index. */
	fixture_write(state, "layout/index.new", "more", 4);
	snprintf(text, sizeof(text), "%s/index.new", dir);
	assert_int_equal(rename(text, index), 0);
	wait_until_settled(index);
	assert_true(try_fetch(s, dir, &f, &was_read, &e) < 0);
	assert_true(was_read);
}

/* The stamp that an import leaves is the one that the next looks for. */
static void test_stamp(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	char file[PATH_MAX], text[PATH_MAX + 8];
	struct fetched first, again;
	struct err e;
	bool was_read = false;
	old_file("tar-index/gnu", file);
	snprintf(text, sizeof(text), "rootfs:%s", file);
	if (try_fetch(s, text, &first, &was_read, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(was_read && first.rendered);
	assert_string_equal(first.name, "gnu");
	assert_int_equal(try_fetch(s, text, &again, &was_read, &e), 0);
	assert_false(was_read);
	assert_true(digest_equal(&first.id, &again.id));
	assert_string_equal(again.name, "gnu");
}

/* A file that has just been written may change once more with the same times: it is always read. */
static void test_fresh_file(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct fetched one, two;
	write_tar(state, "tree.tar", "f f text=one");
	assert_true(must_fetch(state, s, "rootfs:", "tree.tar", &one));
	write_tar(state, "tree.tar", "f f text=two");
	assert_true(must_fetch(state, s, "rootfs:", "tree.tar", &two));
	assert_false(digest_equal(&one.id, &two.id));
	assert_string_equal(two.name, "tree");
	/* The name stands for the newer one, the older is still there. */
	struct digest id;
	assert_int_equal(find_name(s, "tree", &id, NULL), 0);
	assert_true(digest_equal(&id, &two.id));
	assert_true(catalog_has_image(s, &one.id));
}

/* A docker archive has no manifest: the one that is made for it is found again. */
static void test_docker_archive(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct fetched f, again;
	struct err e;
	write_docker(state, "saved.tar", "one", "repo:1");
	must_fetch(state, s, "docker-archive:", "saved.tar", &f);
	assert_true(f.rendered);
	assert_string_equal(f.name, "repo:1");
	must_fetch(state, s, "docker-archive:", "saved.tar", &again);
	assert_true(digest_equal(&f.id, &again.id));
	assert_false(again.rendered);
	assert_int_equal(count_names(state, "images"), 1);
	/* Without what was remembered, and without the image, it comes out the same. */
	assert_int_equal(rmtree(fixture_dir(state), "refs"), 0);
	store_free(TAKE_PTR(s));
	s = must_open_store(state);
	must_fetch(state, s, "", "saved.tar", &again);
	assert_true(digest_equal(&f.id, &again.id));
	assert_int_equal(catalog_remove(s, &f.id, &e), 0);
	must_fetch(state, s, "", "saved.tar", &again);
	assert_true(digest_equal(&f.id, &again.id));
	assert_int_equal(count_names(state, "images"), 1);
	assert_int_equal(count_names(state, "oci/blobs/sha256"), 3);
}

static char *blob_with(void **state, const char *hex)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "oci/blobs/sha256/%s", hex);
	return is_there(state, "%s", path) ? strdup(path) : NULL;
}

/* A store that lost a blob has it again after the next fetch, whichever it was. */
static void test_vanished_blob(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct layout_written w;
	struct fetched f, again;
	const struct layout_image image = { .layers = { LINES("f f text=one") }, .tag = "1" };
	layout_write(state, "layout", &image, 1, &w);
	must_fetch(state, s, "", "layout", &f);
	const char *const digests[] = { w.manifest.hex, w.config.hex, w.layers[0].hex };
	for (size_t i = 0; i < ARRAY_SIZE(digests); i++) {
		cleanup_free char *path = blob_with(state, digests[i]);
		assert_non_null(path);
		assert_int_equal(unlinkat(fixture_dir(state), path, 0), 0);
		assert_false(catalog_has_image(s, &f.id));
		must_fetch(state, s, "", "layout", &again);
		assert_true(digest_equal(&f.id, &again.id));
		/* One that was cut is replaced, too. */
		assert_int_equal(unlinkat(fixture_dir(state), path, 0), 0);
		fixture_write(state, path, "x", 1);
		must_fetch(state, s, "", "layout", &again);
	}
	assert_int_equal(count_names(state, "oci/blobs/sha256"), 3);
}

/* One image under the names it was asked for by: it has both, and is found by both. */
static void test_two_names(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	CLEANUP(record_deinit) struct record record;
	struct digest id;
	struct fetched f;
	write_docker(state, "a.tar", "one", "repo:1");
	must_fetch(state, s, "", "a.tar", &f);
	write_docker(state, "b.tar", "one", "repo:2");
	must_fetch(state, s, "", "b.tar", &f);
	must_fetch(state, s, "", "b.tar:docker.io/library/repo:2", &f);
	assert_string_equal(f.name, "docker.io/library/repo:2");
	assert_int_equal(count_names(state, "images"), 1);
	record_init(&record);
	assert_int_equal(catalog_get(s, &f.id, &record, NULL), 0);
	assert_int_equal(record.names.n, 3);
	static const char *const names[] = { "repo:1", "repo:2", "docker.io/library/repo:2" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_string_equal(record.names.v[i], names[i]);
		assert_int_equal(find_name(s, names[i], &id, NULL), 0);
		assert_true(digest_equal(&id, &f.id));
	}
}

/* The name of a file without a tag is what it is called, less what says that it is an archive. */
static void test_names_of_files(void **state)
{
	static const char *const names[][2] = {
		{ "tree.tar", "tree" },
		{ "tree.tar.gz", "tree" },
		{ "tree.tgz", "tree" },
		{ "v1.0", "v1.0" },
		{ ".tar", ".tar" },
		{ "a b", "a b" },
		{ "n\xc3\xa4", "n\xc3\xa4" },
		{ "n\xc3\xb6", "n\xc3\xb6" },
		{ "n\xe4", "n?" },
		{ "a\xe2\x80\xae"
		  "b\n",
		  "a???b?" },
		{ "x.aci", "x" },
		{ "tree.tar.xz", "tree" },
		{ "oci.oci", "oci" },
	};
	cleanup_store struct store *s = must_open_store(state);
	struct fetched f;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		write_tar(state, names[i][0], "f f text=one");
		must_fetch(state, s, "rootfs:", names[i][0], &f);
		assert_string_equal(f.name, names[i][1]);
	}
}

/* A directory is packed each time; what is in it decides which image it is. */
static void test_directory(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct fetched f, again;
	assert_int_equal(mkdirat(fixture_dir(state), "tree", 0755), 0);
	fixture_write(state, "tree/f", "one", 3);
	assert_true(must_fetch(state, s, "rootfs:", "tree/", &f));
	assert_true(f.rendered);
	assert_string_equal(f.name, "tree");
	assert_true(must_fetch(state, s, "rootfs:", "tree", &again));
	assert_true(digest_equal(&f.id, &again.id));
	assert_false(again.rendered);
	fixture_write(state, "tree/f", "other", 5);
	must_fetch(state, s, "rootfs:", "tree:named", &again);
	assert_false(digest_equal(&f.id, &again.id));
	assert_string_equal(again.name, "named");
	/* A link to it is the same place. */
	assert_int_equal(symlinkat("tree", fixture_dir(state), "link"), 0);
	must_fetch(state, s, "rootfs:", "link", &f);
	assert_true(digest_equal(&f.id, &again.id));
}

/* Somebody who knows which tree it is. */
struct knower {
	const char *says[5]; /* each time, the last one from then on; NULL: cannot tell */
	size_t asked;
	bool is_packed; /* the tree was read */
};

#define SAYS(...) ((struct knower){ .says = { __VA_ARGS__ } })

static bool identify(void *ctx, char *ret)
{
	struct knower *k = ctx;
	const char *says = k->says[k->asked];
	if (k->asked + 1 < ARRAY_SIZE(k->says) && k->says[k->asked + 1])
		k->asked++;
	if (says)
		str_copy(ret, REF_STAMP_MAX + 1, says);
	return says;
}

static void on_packing(void *ctx, const struct fetch_progress *p)
{
	struct knower *k = ctx;
	k->is_packed |= p->ended && !p->failed;
}

/* True if the tree was read. */
static bool fetch_identified(void **state, struct store *s, const char *name, struct knower k,
			     struct fetched *ret)
{
	char text[PATH_MAX];
	struct err e = ERR_INIT;
	struct fetch_request q = { .reference = text,
				   .identify = identify,
				   .identity_ctx = &k,
				   .options = { .progress = on_packing, .ctx = &k } };
	snprintf(text, sizeof(text), "rootfs:%s/%s", fixture_path(state), name);
	*ret = (struct fetched){ .name = "" };
	if (fetch_to_store(s, &q, ret, &e) < 0)
		fail_msg("%s", e.text);
	return k.is_packed;
}

static void make_trees(void **state)
{
	assert_int_equal(mkdirat(fixture_dir(state), "tree", 0755), 0);
	assert_int_equal(mkdirat(fixture_dir(state), "other", 0755), 0);
	fixture_write(state, "tree/f", "one", 3);
}

/* Whoever says that it is the same tree is believed, wherever that is; it is not even looked at. */
static void test_identity(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct fetched f, again;
	make_trees(state);
	assert_true(fetch_identified(state, s, "tree", SAYS("1"), &f));
	assert_true(f.rendered);
	fetch_identified(state, s, "other", SAYS("1"), &again);
	assert_true(digest_equal(&f.id, &again.id));
	assert_false(again.rendered);
	assert_string_equal(again.name, "tree");
	fetch_identified(state, s, "other", SAYS("2"), &again);
	assert_false(digest_equal(&f.id, &again.id));
	assert_true(must_fetch(state, s, "rootfs:", "tree", &again)); /* which says nothing */
	assert_true(digest_equal(&f.id, &again.id));
	fetch_identified(state, s, "other", SAYS(NULL), &again);
	assert_false(digest_equal(&f.id, &again.id));
}

/* Not if it says another thing after the tree has been read than before: it has changed. */
static void test_changed_meanwhile(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct fetched f, again;
	make_trees(state);
	fetch_identified(state, s, "tree", SAYS("1", "1", "2"), &f);
	fetch_identified(state, s, "other", SAYS("1"), &again);
	assert_false(digest_equal(&f.id, &again.id));
	fetch_identified(state, s, "tree", SAYS("2"), &again);
	assert_true(digest_equal(&f.id, &again.id));
}

static int fetch_tree(void **state)
{
	struct fetched f;
	cleanup_store struct store *s = must_open_store(state);
	return fetch_identified(state, s, "tree", SAYS("1"), &f);
}

/* Of several at the same time one reads the tree, and the others have what it has packed. */
static void test_identity_of_many(void **state)
{
	pid_t pids[4];
	int status, n = 0;
	make_trees(state);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(fetch_tree(state));
	}
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status));
		n += WEXITSTATUS(status);
	}
	assert_int_equal(n, 1);
}

/* The group of a shared store could say what the tree is. */
static void test_identity_in_shared(void **state)
{
	struct fetched f, again;
	if (!share_store(state))
		skip();
	cleanup_store struct store *s = must_open_store(state);
	make_trees(state);
	fetch_identified(state, s, "tree", SAYS("1"), &f);
	fetch_identified(state, s, "other", SAYS("1"), &again);
	assert_false(digest_equal(&f.id, &again.id));
}

static void test_failures(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	const struct fetch_request q = { .policy = PULL_NEW };
	struct reference ref = { .type = REFERENCE_ROOTFS };
	struct found found = { .where = FOUND_NOWHERE };
	struct fetched f;
	struct err e = ERR_INIT;
	char text[PATH_MAX + 8];
	bool was_read;
	snprintf(ref.path, sizeof(ref.path), "%s/missing", fixture_path(state));
	assert_int_equal(local_look(s, &ref, &q, &found, &e), -ENOENT);
	assert_string_equal(e.text, "cannot open: No such file or directory");
	/* Nothing is remembered of what failed. */
	fixture_write(state, "no.tar", "no tar", 6);
	snprintf(text, sizeof(text), "rootfs:%s/no.tar", fixture_path(state));
	assert_true(try_fetch(s, text, &f, &was_read, &e) < 0);
	assert_int_equal(count_names(state, "refs"), 0);
	assert_int_equal(count_names(state, "images"), 0);
	assert_int_equal(count_names(state, "tmp"), 0);
}

static int fetch_as_member(void **state, void *ctx)
{
	struct fetch_request q = { .reference = ctx, .fetch_only = true };
	struct store *s = NULL;
	struct image *i = NULL;
	struct err e = ERR_INIT;
	if (store_open(fixture_dir(state), "DIR", &s, &e) < 0 || fetch_image(s, &q, &i, &e) < 0)
		fprintf(stderr, "%s\n", e.text);
	MUST(e.code == 0 && i->size == 0);
	image_free(i);
	q.fetch_only = false;
	MUST(fetch_image(s, &q, &i, &e) < 0);
	MUST(strstr(e.text, "it has to be rendered, and only the owner of DIR may do that"));
	store_free(s);
	return 0;
}

/* A member of the group fetches, and is done; whoever owns the store renders. */
static void test_member(void **state)
{
	char text[PATH_MAX];
	struct fetched f;
	if (!share_store(state))
		skip();
	cleanup_store struct store *s = must_open_store(state);
	assert_int_equal(fchmod(fixture_dir(state), 02775), 0);
	write_docker(state, "saved.tar", "one", "repo:1");
	assert_int_equal(fchmodat(fixture_dir(state), "saved.tar", 0644, 0), 0);
	snprintf(text, sizeof(text), "%s/saved.tar", fixture_path(state));
	run_as_member(state, fetch_as_member, text);
	assert_int_equal(count_names(state, "trees"), 0);
	must_fetch(state, s, "", "saved.tar", &f);
	struct image *i = NULL;
	assert_int_equal(image_open(s, &f.id, &i, NULL), 0);
	assert_true(i->rendered);
	image_free(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_unchanged),
		fixture_test(test_stamp),
		fixture_test(test_unchanged_layout),
		fixture_test(test_fresh_file),
		fixture_test(test_docker_archive),
		fixture_test(test_vanished_blob),
		fixture_test(test_two_names),
		fixture_test(test_names_of_files),
		fixture_test(test_directory),
		fixture_test(test_failures),
		fixture_test(test_member),
		fixture_test(test_identity),
		fixture_test(test_changed_meanwhile),
		fixture_test(test_identity_of_many),
		fixture_test(test_identity_in_shared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
