/* SPDX-License-Identifier: Apache-2.0 */
/* Both formats from a rendered image and a disk, in the confined child. */
#include "images/export/export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "images/fetch/fetch.h"
#include "images/images.h"
#include "images/render/render.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/export/support.h"
#include "tests/unit/images/render/layers.h"
#include "tests/unit/images/render/listing.h"

struct bench {
	struct pod_app app;
	struct export_job job;
	struct export_report report;
	struct err e;
};

static int render_image(void)
{
	static const char *const lines[] = { "d d", "f d/kept text=1", "f d/gone text=2", NULL };
	struct render_layer layer = { .span = SPAN_INIT };
	struct render_job job = {
		.layers = &layer, .n_layers = 1, .where = "DIR", .bytes_max = 1 << 20
	};
	cleanup_blob struct blob tar = { NULL, 0 };
	struct err e = ERR_INIT;
	job.out = memfd_create("image", MFD_CLOEXEC);
	layers_make(lines, "pax", &tar);
	layers_span(tar.data, tar.len, &layer.span);
	digest_of(tar.data, tar.len, &layer.diff_id);
	assert_int_equal(render_here(&job, NULL, &e), 0);
	span_deinit(&layer.span);
	return job.out;
}

static void bench_init(struct bench *b, void **state, enum export_format format)
{
	memset(b, 0, sizeof(*b));
	pod_app_init(&b->app);
	strcpy(b->app.name, "app");
	assert_int_equal(strv_add(&b->app.exec, "/init"), 0);
	b->app.n_entrypoint = 1;
	fixture_write(state, "data", "hello", 5);
	b->job.app = &b->app;
	b->job.format = format;
	b->job.image = render_image();
	b->job.disk = disk_make(
		fixture_path(state), DISK_STAGE1,
		"mkdir app\nmkdir app/upper\nsif app/upper mtime @9\nmkdir app/upper/d\n"
		"sif app/upper/d mtime @8\ncd app/upper/d\nmknod gone c 0 0\ncd /\n"
		"write data app/upper/d/new\nsif app/upper/d/new mtime @7\nsif app/upper/d/new mode 0100644\n");
	b->job.upper = -EBADF;
	b->job.out = memfd_create("out", MFD_CLOEXEC);
}

/* The same in a directory instead of a disk, closed to all but who reads everything. */
static void change_to_upper(struct bench *b, void **state)
{
	static const char *const times[] = { "upper/d/new", "upper/d", "upper" };
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "upper", 0755), 0);
	assert_int_equal(mkdirat(dir, "upper/d", 0755), 0);
	assert_int_equal(mknodat(dir, "upper/d/gone", S_IFCHR, makedev(0, 0)), 0);
	fixture_write(state, "upper/d/new", "hello", 5);
	assert_int_equal(fchmodat(dir, "upper/d/new", 0, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		const struct timespec t[] = { { 7 + (time_t)i, 0 }, { 7 + (time_t)i, 0 } };
		assert_int_equal(utimensat(dir, times[i], t, 0), 0);
	}
	b->job.disk = fd_close(b->job.disk);
	b->job.upper = openat(dir, "upper", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(b->job.upper >= 0);
}

static void bench_deinit(struct bench *b)
{
	pod_app_deinit(&b->app);
	fd_close(b->job.image);
	fd_close(b->job.disk);
	fd_close(b->job.upper);
	fd_close(b->job.out);
}

/* The image store takes the archive, and renders what it should. */
static void check_oci(void **state, bool has_upper, const char *want)
{
	CLEANUP(bench_deinit) struct bench b;
	cleanup_store struct store *store = NULL;
	cleanup_image struct image *image = NULL;
	char path[4200];
	bench_init(&b, state, EXPORT_OCI);
	if (has_upper)
		change_to_upper(&b, state);
	if (export_confined(&b.job, &b.report, &b.e) < 0)
		fail_msg("%s", b.e.text);
	assert_false(b.report.unclean);
	assert_int_equal(b.report.lost, 0);
	off_t size = lseek(b.job.out, 0, SEEK_END);
	cleanup_free char *mem = malloc((size_t)size);
	assert_int_equal(pread(b.job.out, mem, (size_t)size, 0), size);
	fixture_write(state, "x.tar", mem, (size_t)size);
	snprintf(path, sizeof(path), "oci-archive:%s/x.tar:app", fixture_path(state));
	assert_int_equal(store_open(fixture_dir(state), "DIR", &store, &b.e), 0);
	const struct fetch_request q = { .reference = path };
	if (fetch_image(store, &q, &image, &b.e) < 0)
		fail_msg("%s", b.e.text);
	assert_string_equal(image->config.entrypoint.v[0], "/init");
	assert_int_equal(image_link_rootfs(image, fixture_dir(state), "rootfs", &b.e), 0);
	cleanup_fd int fd = openat(fixture_dir(state), "rootfs", O_RDONLY | O_CLOEXEC);
	cleanup_free char *got = listing_of(fd);
	assert_string_equal(got, want);
}

static void test_oci(void **state)
{
	check_oci(state, false,
		  "d 0755 0:0 9 3 /\n"
		  "d 0755 0:0 8 2 d\n"
		  "f 0644 0:0 0 1 d/kept =1\n"
		  "f 0644 0:0 7 1 d/new =hello\n");
}

static void test_oci_of_a_directory(void **state)
{
	if (geteuid() != 0)
		skip();
	check_oci(state, true,
		  "d 0755 0:0 9 3 /\n"
		  "d 0755 0:0 8 2 d\n"
		  "f 0644 0:0 0 1 d/kept =1\n"
		  "f 0000 0:0 7 1 d/new =hello\n");
}

static void test_aci_is_gzip(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	unsigned char head[10];
	bench_init(&b, state, EXPORT_ACI);
	if (export_confined(&b.job, &b.report, &b.e) < 0)
		fail_msg("%s", b.e.text);
	assert_int_equal(pread(b.job.out, head, sizeof(head), 0), sizeof(head));
	/* RFC 1952: magic, deflate, no name, no time. */
	assert_memory_equal(head, "\x1f\x8b\x08\0\0\0\0\0", 8);
}

/* The image alone: nothing of the disk, and a tar. */
static void test_image_alone(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	char head[512], next[512];
	bench_init(&b, state, EXPORT_ACI_PLAIN);
	b.job.disk = fd_close(b.job.disk);
	if (export_confined(&b.job, &b.report, &b.e) < 0)
		fail_msg("%s", b.e.text);
	assert_false(b.report.unclean);
	assert_int_equal(pread(b.job.out, head, sizeof(head), 0), sizeof(head));
	assert_string_equal(head, "manifest");
	assert_memory_equal(head + 257, "ustar", 5);
	assert_int_equal(pread(b.job.out, next, sizeof(next), 1024), sizeof(next));
	assert_string_equal(next, "rootfs/");
	assert_int_equal(pread(b.job.out, next, sizeof(next), 1536), sizeof(next));
	assert_string_equal(next, "rootfs/d/");
	assert_int_equal(pread(b.job.out, next, sizeof(next), 2048), sizeof(next));
	assert_string_equal(next, "rootfs/d/gone");
}

static void test_fails(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	bench_init(&b, state, EXPORT_ACI);
	strcpy(b.app.name, "other");
	assert_int_equal(export_confined(&b.job, &b.report, &b.e), -ENOENT);
	assert_non_null(strstr(b.e.text, "no directory other/upper"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_oci),         fixture_test(test_oci_of_a_directory),
		fixture_test(test_aci_is_gzip), fixture_test(test_image_alone),
		fixture_test(test_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
