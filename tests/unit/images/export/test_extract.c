/* SPDX-License-Identifier: Apache-2.0 */
/* A rendered image becomes a directory, in the confined child; on failure nothing is left. */
#include "images/export/extract.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "images/render/render.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/layers.h"

static const char *const lines[] = {
	"d d mode=1777 mtime=5",
	"f d/f text=hello mode=640 mtime=6",
	"h d/h to=d/f",
	"l d/l to=/target",
	"p d/p mode=600",
	"c null dev=1,3",
	"f sparse text=start hole=1000000 zeros=1",
	NULL,
};

struct bench {
	struct extract_job job;
	struct unpack_report report;
	struct buf manifest;
	struct err e;
	char path[4200];
};

static void bench_init(struct bench *b, void **state)
{
	struct render_layer layer = { .span = SPAN_INIT };
	struct render_job job = {
		.layers = &layer, .n_layers = 1, .where = "DIR", .bytes_max = 1 << 20
	};
	cleanup_blob struct blob tar = { NULL, 0 };
	memset(b, 0, sizeof(*b));
	snprintf(b->path, sizeof(b->path), "%s/out", fixture_path(state));
	buf_init(&b->manifest, 100);
	assert_int_equal(buf_puts(&b->manifest, "{}"), 0);
	job.out = memfd_create("image", MFD_CLOEXEC);
	layers_make(lines, "pax", &tar);
	layers_span(tar.data, tar.len, &layer.span);
	digest_of(tar.data, tar.len, &layer.diff_id);
	assert_int_equal(render_here(&job, NULL, &b->e), 0);
	span_deinit(&layer.span);
	b->job = (struct extract_job){ .image = job.out, .manifest = &b->manifest, .dir = b->path };
}

static void bench_deinit(struct bench *b)
{
	fd_close(b->job.image);
	buf_deinit(&b->manifest);
}

static void extract_well(struct bench *b)
{
	if (extract_image(&b->job, &b->report, &b->e) < 0)
		fail_msg("%s", b->e.text);
	assert_int_equal(b->report.devices, geteuid() == 0 ? 0 : 1);
}

/* How many names the test's directory has. */
static int count_names(void **state)
{
	DIR *d = fd_open_dir(openat(fixture_dir(state), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	int n = 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void check_text(void **state, const char *name, const char *want)
{
	cleanup_free char *text = NULL;
	assert_int_equal(file_read_at(fixture_dir(state), name, 100, &text, NULL), 0);
	assert_string_equal(text, want);
}

static void test_with_manifest(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	struct stat st;
	bench_init(&b, state);
	mode_t mask = umask(0);
	extract_well(&b);
	umask(mask);
	assert_int_equal(fstatat(fixture_dir(state), "out", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	check_text(state, "out/manifest", "{}");
	assert_int_equal(fstatat(fixture_dir(state), "out/manifest", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	check_text(state, "out/rootfs/d/h", "hello");
	assert_int_equal(fstatat(fixture_dir(state), "out/rootfs/d/f", &st, 0), 0);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(st.st_mtim.tv_sec, 6);
	assert_int_equal(fstatat(fixture_dir(state), "out/rootfs", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(count_names(state), 1);
}

static void test_rootfs_only(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	struct stat st;
	bench_init(&b, state);
	b.job.manifest = NULL;
	extract_well(&b);
	check_text(state, "out/d/f", "hello");
	assert_int_equal(fstatat(fixture_dir(state), "out", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(extract_image(&b.job, &b.report, &b.e), -EEXIST);
	assert_string_equal(b.e.text, "output directory exists (try --overwrite)");
	b.job.overwrite = true;
	b.job.manifest = &b.manifest;
	extract_well(&b);
	check_text(state, "out/rootfs/d/f", "hello");
	assert_int_equal(faccessat(fixture_dir(state), "out/d", F_OK, 0), -1);
	assert_int_equal(count_names(state), 1);
}

/* Every damage ends in one message or in files, and never in what is left over. */
static void test_damaged(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	bench_init(&b, state);
	off_t size = lseek(b.job.image, 0, SEEK_END);
	unsigned char old;
	int refused = 0;
	b.job.overwrite = true;
	for (off_t at = 0; at < size; at += 211) {
		assert_int_equal(pread(b.job.image, &old, 1, at), 1);
		unsigned char bad = (unsigned char)(old ^ 0x41);
		assert_int_equal(pwrite(b.job.image, &bad, 1, at), 1);
		int r = extract_image(&b.job, &b.report, &b.e);
		if (r < 0 && (strstr(b.e.text, "helper process") || !b.e.text[0]))
			fail_msg("%ld: %s", (long)at, b.e.text);
		refused += r < 0;
		assert_true(count_names(state) <= 1);
		assert_int_equal(pwrite(b.job.image, &old, 1, at), 1);
	}
	assert_true(refused > 1);
	assert_int_equal(ftruncate(b.job.image, 100), 0);
	assert_int_equal(extract_image(&b.job, &b.report, &b.e), -EBADMSG);
	assert_non_null(strstr(b.e.text, "cannot write output directory \"out\": the rendered "
					 "image is damaged"));
}

static void test_signal(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	int status;
	bench_init(&b, state);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGTERM);
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise(SIGTERM); /* comes before the child is done */
		int r = extract_image(&b.job, &b.report, &b.e);
		_exit(r == -EINTR ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* If the child was done first, the directory is complete. */
	assert_int_equal(count_names(state), status == 0 ? 0 : 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_with_manifest),
		fixture_test(test_rootfs_only),
		fixture_test(test_damaged),
		fixture_test(test_signal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
