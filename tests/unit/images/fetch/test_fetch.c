/* SPDX-License-Identifier: Apache-2.0 */
/* The whole way: references, sources, digests, rendering, the store. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "images/fetch/fetch.h"
#include "images/fetch/resolve.h"
#include "images/images.h"
#include "images/store/find.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/rmtree.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/fetch/layout.h"
#include "tests/unit/images/render/listing.h"

#define LINES(...) ((const char *const[]){ __VA_ARGS__, NULL })

#define CONFIG                                               \
	"\"Entrypoint\":[\"/bin/e\"],\"Cmd\":[\"a\",\"b\"]," \
	"\"Env\":[\"PATH=/bin\"],\"WorkingDir\":\"/w\",\"User\":\"u\""

static const char *const base_lines[] = { "d bin", "f bin/a text=one", "f bin/b text=two", NULL };
static const char *const upper_lines[] = { "f bin/.wh.a", "f bin/c text=three", NULL };

static const struct layout_image sample = {
	.layers = { base_lines, upper_lines },
	.filter = "gzip",
	.config = CONFIG,
	.tag = "v1",
};

static struct store *open_store(void **state)
{
	struct store *s = NULL;
	struct err e = ERR_INIT;
	if (store_open(fixture_dir(state), fixture_path(state), &s, &e) < 0)
		fail_msg("%s", e.text);
	return s;
}

/* Opens PATH-OF-FIXTURE/@name, with @prefix in front. */
static int try_open(void **state, struct store *s, const char *prefix, const char *name,
		    struct image **ret, struct err *e)
{
	char reference[1024];
	snprintf(reference, sizeof(reference), "%s%s/%s", prefix, fixture_path(state), name);
	const struct fetch_request q = { .reference = reference, .policy = PULL_NEW };
	*e = ERR_INIT;
	return fetch_image(s, &q, ret, e);
}

static struct image *must_open(void **state, struct store *s, const char *prefix, const char *name)
{
	struct image *i = NULL;
	struct err e;
	if (try_open(state, s, prefix, name, &i, &e) < 0)
		fail_msg("%s", e.text);
	return i;
}

static void check_fails(void **state, struct store *s, const char *prefix, const char *name,
			const char *want)
{
	struct image *i = NULL;
	struct err e;
	assert_true(try_open(state, s, prefix, name, &i, &e) < 0);
	assert_true(strncmp(e.text, "image \"", 7) == 0);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, e.text);
}

static size_t count_entries(void **state, const char *name)
{
	int fd = openat(fixture_dir(state), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *dir = fdopendir(fd);
	size_t n = 0;
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	return n - 2;
}

/* Nothing is left behind but rendered files. */
static void check_clean(void **state, size_t trees)
{
	assert_int_equal(count_entries(state, "trees"), 2 * trees);
	assert_int_equal(count_entries(state, "tmp"), 0);
	assert_true(count_entries(state, "locks") <= 3);
}

static void check_listing(void **state, const struct image *i)
{
	struct err e = ERR_INIT;
	assert_int_equal(image_link_rootfs(i, fixture_dir(state), "rootfs", &e), 0);
	cleanup_fd int fd = openat(fixture_dir(state), "rootfs", O_RDONLY | O_CLOEXEC);
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0444);
	assert_int_equal(st.st_size, i->size);
	cleanup_free char *got = listing_of(fd);
	assert_string_equal(got, "d 0755 0:0 0 3 /\n"
				 "d 0755 0:0 0 2 bin\n"
				 "f 0644 0:0 0 1 bin/b =two\n"
				 "f 0644 0:0 0 1 bin/c =three\n");
	assert_int_equal(unlinkat(fixture_dir(state), "rootfs", 0), 0);
}

static void test_layout(void **state)
{
	cleanup_store struct store *s = open_store(state);
	struct layout_written w;
	layout_write(state, "layout", &sample, 1, &w);
	cleanup_image struct image *i = must_open(state, s, "", "layout:v1");
	assert_true(i->rendered);
	check_listing(state, i);
	check_clean(state, 1);
	char want[IMAGE_ID_LEN + 1];
	snprintf(want, sizeof(want), "sha256-%s", w.manifest.hex);
	assert_string_equal(i->id, want);
	struct digest chain;
	digest_chain(w.diff_ids, 2, &chain);
	snprintf(want, sizeof(want), "sha256-%s", chain.hex);
	assert_string_equal(i->chain_id, want);
	assert_string_equal(i->name, "layout:v1");
	const struct image_config *c = &i->config;
	assert_string_equal(c->entrypoint.v[0], "/bin/e");
	assert_int_equal(c->cmd.n, 2);
	assert_string_equal(c->env.v[0], "PATH=/bin");
	assert_string_equal(c->working_dir, "/w");
	assert_string_equal(c->user, "u");
	/* The second time it is there, under any reference. */
	static const char *const names[] = { "layout", "layout:v1" };
	for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
		cleanup_image struct image *again = must_open(state, s, k ? "oci:" : "", names[k]);
		assert_false(again->rendered);
	}
}

/* What a layout calls "latest", or by a version alone, is called as the layout is; names stay. */
static void test_layout_names(void **state)
{
	static const char *const names[][2] = {
		{ "latest", "web:latest" },
		{ "12", "web:12" },
		{ "3.18-slim", "web:3.18-slim" },
		{ "v1", "web:v1" },
		{ "redis", "redis" },
		{ "x/y:latest", "x/y:latest" },
		{ "12factor", "12factor" },
		{ "vsftpd", "vsftpd" },
		{ "v.1", "v.1" },
		{ "2024_01+b", "web:2024_01+b" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_store struct store *s = open_store(state);
		struct layout_image image = sample;
		struct layout_written w;
		image.tag = names[i][0];
		layout_write(state, "web", &image, 1, &w);
		cleanup_image struct image *own = must_open(state, s, "oci:", "web");
		assert_string_equal(own->name, names[i][1]);
		char path[64];
		snprintf(path, sizeof(path), "web:%s", names[i][0]);
		cleanup_image struct image *told = must_open(state, s, "oci:", path);
		assert_string_equal(told->name, names[i][1]);
		/* It is found again under that name, and "latest" under the bare one. */
		struct digest id;
		assert_int_equal(find_name(s, i == 0 ? "web" : names[i][1], &id, NULL), 0);
		assert_int_equal(rmtree(fixture_dir(state), "web"), 0);
	}
}

static void test_archives(void **state)
{
	cleanup_store struct store *s = open_store(state);
	struct layout_written w;
	layout_write(state, "layout", &sample, 1, &w);
	static const char *const filters[] = { NULL, "gzip", "zstd", "xz", "bzip2" };
	for (size_t k = 0; k < ARRAY_SIZE(filters); k++) {
		layout_pack(state, "layout", "image.tar", filters[k]);
		cleanup_image struct image *i = must_open(state, s, "", "image.tar");
		assert_int_equal(i->rendered, k == 0);
		assert_string_equal(i->name, "image:v1");
		cleanup_image struct image *j = must_open(state, s, "oci-archive:", "image.tar:v1");
		assert_string_equal(i->id, j->id);
		check_clean(state, 1);
	}
	check_fails(state, s, "docker-archive:", "image.tar", "not a docker archive");
	check_fails(state, s, "oci:", "image.tar", "this is a file");
	check_fails(state, s, "oci-archive:", "layout", "this is a directory");
}

static void test_docker_archive(void **state)
{
	cleanup_store struct store *s = open_store(state);
	struct layout_image image = sample;
	struct layout_written w;
	image.filter = NULL;
	image.tag = "foo/bar:v2";
	layout_write_docker(state, "saved.tar", &image, &w);
	cleanup_image struct image *i = must_open(state, s, "", "saved.tar");
	assert_true(i->rendered);
	assert_string_equal(i->name, "foo/bar:v2");
	check_listing(state, i);
	cleanup_image struct image *j =
		must_open(state, s, "docker-archive:", "saved.tar:docker.io/foo/bar:v2");
	assert_string_equal(j->id, i->id);
	assert_string_equal(j->name, "docker.io/foo/bar:v2");
	check_fails(state, s, "", "saved.tar:other",
		    "no image \"other\" in it (there is: foo/bar:v2)");
	check_fails(state, s, "oci-archive:", "saved.tar", "not an OCI layout");
	/* The layers of an OCI layout are the same: nothing to render. */
	layout_write(state, "layout", &image, 1, &w);
	cleanup_image struct image *k = must_open(state, s, "", "layout");
	assert_false(k->rendered);
	/* Without a tag the file gives the name. */
	image.tag = NULL;
	layout_write_docker(state, "na\xc3\xa4me.tar", &image, &w);
	cleanup_image struct image *l = must_open(state, s, "", "na\xc3\xa4me.tar");
	assert_string_equal(l->name, "na\xc3\xa4me");
}

static void test_several_images(void **state)
{
	cleanup_store struct store *s = open_store(state);
	struct layout_image images[3] = { sample, sample, sample };
	struct layout_written w[3];
	images[1].tag = "arm";
	images[1].architecture = "mips";
	images[2].tag = "other";
	images[2].layers[1] = NULL;
	layout_write(state, "layout", images, 3, w);
	check_fails(state, s, "", "layout",
		    "several images in it (choose one with PATH:NAME: v1, arm");
	check_fails(state, s, "", "layout:v2", "(there is: v1, arm, other)");
	check_fails(state, s, "", "layout:arm",
		    "not for this machine: the image is for linux/mips");
	cleanup_image struct image *i = must_open(state, s, "", "layout:other");
	assert_string_equal(i->name, "other");
	char name[128];
	snprintf(name, sizeof(name), "layout:sha256:%s", w[0].manifest.hex);
	cleanup_image struct image *j = must_open(state, s, "", name);
	assert_string_equal(j->name, "layout:v1");
	check_clean(state, 2);
}

/* Overwrites one byte of a file. */
static void damage(const char *path, off_t at)
{
	cleanup_fd int fd = open(path, O_RDWR | O_CLOEXEC);
	char c;
	assert_int_equal(pread(fd, &c, 1, at), 1);
	c ^= 1;
	assert_int_equal(pwrite(fd, &c, 1, at), 1);
}

static void test_digest_mismatch(void **state)
{
	cleanup_store struct store *s = open_store(state);
	struct layout_written w;
	layout_write(state, "layout", &sample, 1, &w);
	const struct {
		const struct digest *blob;
		const char *want;
	} cases[] = {
		{ &w.manifest, "image manifest: digest mismatch" },
		{ &w.config, "image configuration: digest mismatch" },
		{ &w.layers[0], "layer 1 of 2: digest mismatch: it is sha256:" },
		{ &w.layers[1], "digest mismatch: it is sha256:" },
	};
	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		cleanup_free char *path = layout_blob_path(state, "layout", cases[k].blob);
		damage(path, 60);
		check_fails(state, s, "", "layout", cases[k].want);
		check_fails(state, s, "", "layout", "(fetch the image again)");
		damage(path, 60);
		check_clean(state, 0);
	}
	/* Too short, too long, gone. */
	cleanup_free char *path = layout_blob_path(state, "layout", &w.layers[0]);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 1), 0);
	check_fails(state, s, "", "layout", "bytes instead of");
	assert_int_equal(truncate(path, st.st_size + 1), 0);
	check_fails(state, s, "", "layout", "bytes instead of");
	assert_int_equal(unlink(path), 0);
	check_fails(state, s, "", "layout", "(it is incomplete: fetch it again)");
	assert_int_equal(mkdir(path, 0755), 0);
	check_fails(state, s, "", "layout", "is not a regular file");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	check_fails(state, s, "", "layout", "a symbolic link that leads out of the layout");
	check_clean(state, 0);
}

/* The tar inside of a layer with a right digest is not what the configuration says. */
static void test_diff_id_mismatch(void **state)
{
	cleanup_store struct store *s = open_store(state);
	struct layout_image image = sample;
	struct layout_written w, other;
	image.layers[1] = NULL;
	image.filter = NULL;
	layout_write_docker(state, "a.tar", &image, &w);
	image.layers[0] = upper_lines;
	layout_write_docker(state, "b.tar", &image, &other);
	/* One docker archive with the other's layer: tar members can be put behind each other. */
	char *a, *b;
	size_t a_len, b_len;
	assert_int_equal(file_read_at(fixture_dir(state), "a.tar", 1 << 20, &a, &a_len), 0);
	assert_int_equal(file_read_at(fixture_dir(state), "b.tar", 1 << 20, &b, &b_len), 0);
	char *at = memmem(a, a_len, w.layers[0].hex, DIGEST_HEX_LEN);
	assert_non_null(at);
	/* The layer's content begins one header later; flip a byte of a file in it. */
	at[512 + 512 * 3] ^= 1;
	fixture_write(state, "c.tar", a, a_len);
	check_fails(state, s, "", "c.tar", "layer 1 of 1 (sha256:");
	check_clean(state, 0);
	free(a);
	free(b);
}

static void test_not_images(void **state)
{
	cleanup_store struct store *s = open_store(state);
	fixture_write(state, "empty", "", 0);
	fixture_write(state, "text", "hello", 5);
	char zeros[2048] = { 0 };
	fixture_write(state, "zeros", zeros, sizeof(zeros));
	assert_int_equal(mkdirat(fixture_dir(state), "dir", 0755), 0);
	assert_int_equal(mkfifoat(fixture_dir(state), "fifo", 0644), 0);
	check_fails(state, s, "", "empty", "neither an OCI layout nor a docker archive");
	check_fails(state, s, "", "text", "neither an OCI layout nor a docker archive");
	check_fails(state, s, "", "zeros", "neither an OCI layout nor a docker archive");
	check_fails(state, s, "", "dir", "neither an OCI layout nor a docker archive");
	check_fails(state, s, "", "fifo", "neither a regular file nor a directory");
	check_fails(state, s, "", "missing", "no such file or directory (give the path of");
	struct image *i;
	struct err e = ERR_INIT;
	const struct fetch_request q = { .reference = "/dev/null" };
	assert_true(fetch_image(s, &q, &i, &e) < 0);
	assert_string_equal(e.text, "image \"/dev/null\": neither a regular file nor a directory");
	struct blob tar = { NULL, 0 };
	layers_make(LINES("f a text=1"), "pax", &tar);
	fixture_write(state, "plain.tar", tar.data, tar.len);
	blob_deinit(&tar);
	check_fails(state, s, "", "plain.tar", "there is no index.json or manifest.json");
	check_clean(state, 0);
}

static void test_byte_limit(void **state)
{
	struct layout_image image = sample;
	struct layout_written w;
	image.layers[0] = LINES("f big zeros=100000");
	image.layers[1] = NULL;
	layout_write(state, "layout", &image, 1, &w);
	cleanup_store struct store *s = open_store(state);
	struct store_settings settings = *store_settings(s);
	settings.bytes_max = 100000;
	store_configure(s, &settings);
	check_fails(state, s, "", "layout", "raise HUSK_IMAGE_BYTES_MAX");
	settings.bytes_max = 204800;
	store_configure(s, &settings);
	image_free(must_open(state, s, "", "layout"));
	/* A hole is not data, but has a size. */
	image.layers[0] = LINES("f hole hole=204801 text=1");
	layout_write(state, "sparse", &image, 1, &w);
	check_fails(state, s, "", "sparse", "the files of the image have more than 204800 bytes");
}

/* A file size limit is the disk that is full without a disk. */
static void test_disk_full(void **state)
{
	cleanup_store struct store *s = open_store(state);
	static const struct {
		rlim_t limit;
		const char *want;
	} cases[] = {
		{ 60, "layer 1 of 2: cannot write to " },
		{ 2000, "writing the file system image: File too large" },
	};
	struct layout_written w;
	layout_write(state, "layout", &sample, 1, &w);
	struct rlimit old, limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	signal(SIGXFSZ, SIG_IGN);
	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		limit.rlim_cur = cases[k].limit;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		check_fails(state, s, "", "layout", cases[k].want);
		check_clean(state, 0);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	image_free(must_open(state, s, "", "layout"));
	check_clean(state, 1);
}

/* Many processes want the same image at once: it is rendered once. */
static void test_concurrent(void **state)
{
	enum {
		N = 8
	};
	struct layout_written w;
	layout_write(state, "layout", &sample, 1, &w);
	pid_t pids[N];
	int rendered = 0;
	for (int k = 0; k < N; k++) {
		pids[k] = fork();
		assert_true(pids[k] >= 0);
		if (pids[k] > 0)
			continue;
		struct store *s;
		struct image *i;
		struct err e = ERR_INIT;
		if (store_open(fixture_dir(state), "DIR", &s, &e) < 0 ||
		    try_open(state, s, "", "layout", &i, &e) < 0)
			_exit(2);
		_exit(i->rendered);
	}
	for (int k = 0; k < N; k++) {
		int status;
		assert_int_equal(waitpid(pids[k], &status, 0), pids[k]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
		rendered += WEXITSTATUS(status);
	}
	assert_int_equal(rendered, 1);
	check_clean(state, 1);
}

/* The same layers give the same bytes, also in another store and from another archive. */
static void test_reproducible(void **state)
{
	struct layout_written w;
	struct layout_image image = sample;
	layout_write(state, "gz", &image, 1, &w);
	image.filter = "zstd";
	layout_write(state, "zstd", &image, 1, &w);
	struct digest digests[2];
	for (int k = 0; k < 2; k++) {
		cleanup_store struct store *s = open_store(state);
		cleanup_image struct image *i = must_open(state, s, "", k ? "zstd" : "gz");
		assert_true(i->rendered);
		struct err e = ERR_INIT;
		assert_int_equal(image_link_rootfs(i, fixture_dir(state), "r", &e), 0);
		char *text;
		size_t len;
		assert_int_equal(file_read_at(fixture_dir(state), "r", 1 << 24, &text, &len), 0);
		digest_of(text, len, &digests[k]);
		free(text);
		assert_int_equal(unlinkat(fixture_dir(state), "r", 0), 0);
		assert_int_equal(rmtree(fixture_dir(state), "trees"), 0);
	}
	assert_true(digest_equal(&digests[0], &digests[1]));
}

/* Whoever removes a rendered file takes its lock first; a pod's link keeps the content. */
static void test_removal(void **state)
{
	struct layout_written w;
	layout_write(state, "layout", &sample, 1, &w);
	cleanup_store struct store *s = open_store(state);
	struct image *i = must_open(state, s, "", "layout");
	struct err e = ERR_INIT;
	assert_int_equal(image_link_rootfs(i, fixture_dir(state), "r", &e), 0);
	assert_int_equal(image_link_rootfs(i, fixture_dir(state), "r", &e), -EEXIST);
	assert_non_null(strstr(e.text, "cannot link"));
	image_free(i);
	assert_int_equal(rmtree(fixture_dir(state), "trees"), 0);
	store_free(TAKE_PTR(s));
	s = open_store(state);
	i = must_open(state, s, "", "layout");
	assert_true(i->rendered);
	image_free(i);
	store_free(NULL);
	image_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_layout),           fixture_test(test_layout_names),
		fixture_test(test_archives),         fixture_test(test_docker_archive),
		fixture_test(test_several_images),   fixture_test(test_digest_mismatch),
		fixture_test(test_diff_id_mismatch), fixture_test(test_not_images),
		fixture_test(test_byte_limit),       fixture_test(test_disk_full),
		fixture_test(test_concurrent),       fixture_test(test_reproducible),
		fixture_test(test_removal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
