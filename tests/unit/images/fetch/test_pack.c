/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "images/render/render.h"
#include "lib/base/buf.h"
#include "lib/os/fd.h"
#include "lib/os/rmtree.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/listing.h"

#define BYTES_MAX ((uint64_t)1 << 30)
#define NOBODY    65534

/* A directory below the fixture's, where the test makes its tree. */
static int make_root(void **state, const char *name)
{
	assert_int_equal(mkdirat(fixture_dir(state), name, 0755), 0);
	int fd = openat(fixture_dir(state), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void put_file(int dirfd, const char *name, const void *data, size_t len)
{
	cleanup_fd int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, len), 0);
	assert_int_equal(fchmod(fd, 0644), 0);
}

static void put_text(int dirfd, const char *name, const char *text)
{
	put_file(dirfd, name, text, strlen(text));
}

static int set_time(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const struct timespec times[] = { { .tv_sec = 9 }, { .tv_sec = 7, .tv_nsec = 5 } };
	(void)st;
	(void)type;
	(void)ftw;
	return utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

static void path_of(void **state, const char *name, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%s/%s", fixture_path(state), name);
}

/* Sets all times of the tree to 7 and a bit. */
static void set_times(void **state, const char *name)
{
	char path[PATH_MAX];
	path_of(state, name, path);
	assert_int_equal(nftw(path, set_time, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static int try_pack(void **state, const char *name, int to, uint64_t bytes_max, struct digest *ret,
		    struct err *e)
{
	const struct fetch_options options = { .insecure_tls = false };
	char path[PATH_MAX];
	struct fetch_meter meter;
	path_of(state, name, path);
	*e = ERR_INIT;
	fetch_meter_begin(&meter, &options, path, 0);
	int r = pack_directory(path, to, bytes_max, &meter, ret, e);
	fetch_meter_end(&meter);
	assert_int_equal(r < 0, e->code < 0);
	assert_int_equal(r < 0, e->text[0] != '\0');
	return r;
}

/* Packs into a file in memory; the caller closes it. */
static int must_pack(void **state, const char *name, struct digest *ret)
{
	struct err e;
	int fd = memfd_create("tar", MFD_CLOEXEC);
	assert_true(fd >= 0);
	if (try_pack(state, name, fd, BYTES_MAX, ret, &e) < 0)
		fail_msg("%s", e.text);
	return fd;
}

static void check_fails(void **state, const char *name, uint64_t bytes_max, const char *want)
{
	struct err e;
	struct digest digest;
	cleanup_fd int fd = memfd_create("tar", MFD_CLOEXEC);
	assert_true(try_pack(state, name, fd, bytes_max, &digest, &e) < 0);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, e.text);
}

static off_t size_of(int fd)
{
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size;
}

/* Packs the tree and renders the tar; the caller closes the squashfs file. */
static int must_render(void **state, const char *name)
{
	struct digest digest;
	struct err e = ERR_INIT;
	cleanup_fd int tar = must_pack(state, name, &digest);
	int out = memfd_create("squashfs", MFD_CLOEXEC);
	const struct render_layer layer = {
		.kind = LAYER_PLAIN,
		.span = { .fd = tar, .size = (uint64_t)size_of(tar) },
		.has_blob = true,
		.blob = digest,
		.diff_id = digest,
	};
	const struct render_job job = {
		.layers = &layer,
		.n_layers = 1,
		.out = out,
		.where = "memory",
		.bytes_max = BYTES_MAX,
	};
	if (render_here(&job, NULL, &e) < 0)
		fail_msg("%s", e.text);
	return out;
}

/* The listing of the rendered tree; the caller frees it. */
static char *list(void **state, const char *name)
{
	cleanup_fd int fd = must_render(state, name);
	return listing_of(fd);
}

/* In what is wanted, an @ stands for the UID and GID of whoever runs this. */
static void check_listing(void **state, const char *name, const char *want)
{
	char owner[32];
	cleanup_free char *got = list(state, name);
	struct buf text;
	buf_init(&text, 1 << 20);
	snprintf(owner, sizeof(owner), "%u:%u", geteuid(), getegid());
	for (const char *p = want; *p; p++) {
		if (*p == '@')
			assert_int_equal(buf_puts(&text, owner), 0);
		else
			assert_int_equal(buf_append(&text, p, 1), 0);
	}
	cleanup_free char *expected = buf_take_string(&text);
	assert_string_equal(got, expected);
}

/* What is packed and rendered is what was there; times lose their fractions. */
static void test_tree(void **state)
{
	cleanup_fd int root = make_root(state, "t");
	assert_int_equal(mkdirat(root, "b", 0755), 0);
	put_text(root, "b/f", "text");
	put_text(root, "a", "");
	assert_int_equal(fchmodat(root, "a", 04751, 0), 0);
	assert_int_equal(mkdirat(root, "c", 0700), 0);
	assert_int_equal(fchmodat(root, "c", 01777, 0), 0);
	assert_int_equal(symlinkat("../nowhere", root, "l"), 0);
	assert_int_equal(mkfifoat(root, "p", 0600), 0);
	put_text(root, ".wh.x", "no whiteout");
	set_times(state, "t");
	check_listing(state, "t",
		      "d 0755 @ 7 4 /\n"
		      "f 0644 @ 7 1 .wh.x =no%20whiteout\n"
		      "f 4751 @ 7 1 a size=0\n"
		      "d 0755 @ 7 2 b\n"
		      "f 0644 @ 7 1 b/f =text\n"
		      "d 1777 @ 7 2 c\n"
		      "l 0777 @ 7 1 l ->../nowhere\n"
		      "p 0600 @ 7 1 p\n");
}

static void test_empty(void **state)
{
	cleanup_fd int root = make_root(state, "t");
	(void)root; /* freed at the end */
	set_times(state, "t");
	check_listing(state, "t", "d 0755 @ 7 2 /\n");
}

/* Sockets mean nothing in an image. */
static void test_sockets(void **state)
{
	cleanup_fd int root = make_root(state, "t");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket", root);
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	put_text(root, "z", "z");
	set_times(state, "t");
	check_listing(state, "t", "d 0755 @ 7 2 /\nf 0644 @ 7 1 z =z\n");
}

static void test_devices(void **state)
{
	if (geteuid() != 0) {
		print_message("only root makes devices\n");
		skip();
	}
	cleanup_fd int root = make_root(state, "t");
	if (mknodat(root, "c", S_IFCHR | 0600, makedev(5, 259)) < 0) {
		print_message("no devices can be made here: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(mknodat(root, "b", S_IFBLK | 0600, makedev(300, 1)), 0);
	set_times(state, "t");
	check_listing(state, "t", "d 0755 @ 7 2 /\nb 0600 @ 7 1 b 300,1\nc 0600 @ 7 1 c 5,259\n");
}

/* The first name has the content, the others are links to it, whatever kind of file it is. */
static void test_hard_links(void **state)
{
	cleanup_fd int root = make_root(state, "t");
	assert_int_equal(mkdirat(root, "d", 0755), 0);
	put_text(root, "z", "once");
	assert_int_equal(linkat(root, "z", root, "d/a", 0), 0);
	assert_int_equal(linkat(root, "z", root, "m", 0), 0);
	assert_int_equal(symlinkat("to", root, "s2"), 0);
	assert_int_equal(linkat(root, "s2", root, "s1", 0), 0);
	assert_int_equal(mkfifoat(root, "p2", 0600), 0);
	assert_int_equal(linkat(root, "p2", root, "p1", 0), 0);
	/* A file of which one name is elsewhere is just a file. */
	put_text(fixture_dir(state), "outside", "out");
	assert_int_equal(fchmodat(fixture_dir(state), "outside", 0644, 0), 0);
	assert_int_equal(linkat(fixture_dir(state), "outside", root, "in", 0), 0);
	set_times(state, "t");
	check_listing(state, "t",
		      "d 0755 @ 7 3 /\n"
		      "d 0755 @ 7 2 d\n"
		      "f 0644 @ 7 3 d/a =once\n"
		      "f 0644 @ 7 1 in =out\n"
		      "f 0644 @ 7 3 m =once\n"
		      "p 0600 @ 7 2 p1\n"
		      "p 0600 @ 7 2 p2\n"
		      "l 0777 @ 7 2 s1 ->to\n"
		      "l 0777 @ 7 2 s2 ->to\n"
		      "f 0644 @ 7 3 z =once\n");
}

/* Names are bytes. */
static void test_names(void **state)
{
	char name[NAME_MAX + 1], want[2048];
	cleanup_fd int root = make_root(state, "t");
	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	put_text(root, name, "255");
	put_text(root, "line\nfeed", "1");
	put_text(root, "latin\xe4", "2");
	put_text(root, "utf\xc3\xa4", "3");
	assert_int_equal(symlinkat("\xff", root, "\xfe"), 0);
	set_times(state, "t");
	snprintf(want, sizeof(want),
		 "d 0755 @ 7 2 /\n"
		 "f 0644 @ 7 1 latin%%e4 =2\n"
		 "f 0644 @ 7 1 line%%0afeed =1\n"
		 "f 0644 @ 7 1 %s =255\n"
		 "f 0644 @ 7 1 utf%%c3%%a4 =3\n"
		 "l 0777 @ 7 1 %%fe ->%%ff\n",
		 name);
	check_listing(state, "t", want);
}

/*
 * Directories with names of 200 bytes in each other, so deep that a path to a file is @levels * 201
 * long.
 */
static void make_deep(int root, int levels)
{
	char name[201];
	memset(name, 'd', 200);
	name[200] = '\0';
	cleanup_fd int at = fcntl(root, F_DUPFD_CLOEXEC, 3);
	for (int i = 0; i < levels; i++) {
		assert_int_equal(mkdirat(at, name, 0755), 0);
		fd_replace(&at, openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		assert_true(at >= 0);
	}
	put_text(at, "f", "deep");
}

static void test_deep(void **state)
{
	cleanup_fd int root = make_root(state, "t");
	make_deep(root, 19);
	cleanup_free char *got = list(state, "t");
	assert_non_null(strstr(got, "/f =deep\n"));
	/* The kernel takes no longer paths, so it ends here. */
	assert_int_equal(rmtree(fixture_dir(state), "t"), 0);
	cleanup_fd int again = make_root(state, "t");
	make_deep(again, 21);
	check_fails(state, "t", BYTES_MAX, "dddd");
	assert_int_equal(rmtree(fixture_dir(state), "t"), 0);
}

/* Makes a tree in this or the other order. */
static void make_in_order(int root, bool reverse)
{
	static const char *const names[] = { "a", "b", "c", "Z", "\xc3\xa4" };
	static const char *const attributes[] = { "user.one", "user.two", "user.three" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t k = reverse ? ARRAY_SIZE(names) - 1 - i : i;
		put_text(root, names[k], names[k]);
	}
	assert_int_equal(linkat(root, reverse ? "c" : "b", root, "tmp", 0), 0);
	assert_int_equal(unlinkat(root, reverse ? "b" : "c", 0), 0);
	assert_int_equal(linkat(root, "tmp", root, reverse ? "b" : "c", 0), 0);
	assert_int_equal(unlinkat(root, "tmp", 0), 0);
	put_text(root, "b", "both");
	cleanup_fd int fd = openat(root, "a", O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
		const char *name = attributes[reverse ? ARRAY_SIZE(attributes) - 1 - i : i];
		assert_true(fsetxattr(fd, name, name, strlen(name), 0) == 0 || errno == ENOTSUP);
	}
}

/*
 * Equal trees give equal tars: nothing of when, where and in which order they were made is in
 * there.
 */
static void test_reproducible(void **state)
{
	struct digest digests[2];
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "second" : "t";
		cleanup_fd int root = make_root(state, name);
		make_in_order(root, i);
		set_times(state, name);
		cleanup_fd int tar = must_pack(state, name, &digests[i]);
		assert_int_equal(size_of(tar) % 512, 0);
	}
	assert_true(digest_equal(&digests[0], &digests[1]));
	/* Reading it (times of access) does not change that; writing does. */
	struct digest again;
	fd_close(must_pack(state, "t", &again));
	assert_true(digest_equal(&digests[0], &again));
	char path[PATH_MAX];
	path_of(state, "t/a", path);
	assert_int_equal(chmod(path, 0600), 0);
	fd_close(must_pack(state, "t", &again));
	assert_false(digest_equal(&digests[0], &again));
}

/* The digest is that of what was written. */
static void test_digest(void **state)
{
	struct digest said, is;
	cleanup_fd int root = make_root(state, "t");
	put_text(root, "f", "text");
	cleanup_fd int tar = must_pack(state, "t", &said);
	size_t size = (size_t)size_of(tar);
	void *mem = mmap(NULL, size, PROT_READ, MAP_PRIVATE, tar, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	digest_of(mem, size, &is);
	munmap(mem, size);
	assert_true(digest_equal(&said, &is));
}

static void test_xattrs(void **state)
{
	cleanup_fd int root = make_root(state, "t");
	put_text(root, "f", "x");
	cleanup_fd int fd = openat(root, "f", O_RDONLY | O_CLOEXEC);
	if (fsetxattr(fd, "user.b", "1\n2", 3, 0) < 0) {
		print_message("no extended attributes here: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(fsetxattr(fd, "user.a", "", 0, 0), 0);
	assert_int_equal(fsetxattr(root, "user.dir", "d", 1, 0), 0);
	set_times(state, "t");
	cleanup_free char *got = list(state, "t");
	assert_non_null(strstr(got, " / user.dir=d\n"));
	assert_non_null(strstr(got, " user.a="));
	assert_non_null(strstr(got, " user.b=1%0a2"));
}

#define HOLE ((off_t)8 << 20)

/* The bytes at three places of a file that is mostly holes; a hole at its end, too. */
static void check_sparse(int image, const char *name, bool data)
{
	size_t len = 0;
	cleanup_free char *text = listing_content(image, name, &len);
	assert_int_equal(len, 4 * HOLE);
	for (size_t i = 0; i < len; i++) {
		bool written = data && (i == HOLE || i == 2 * HOLE + 5);
		if (text[i] != (written ? 'x' : 0))
			fail_msg("%s: byte %zu is %d", name, i, text[i]);
	}
}

static void test_sparse(void **state)
{
	struct digest digest;
	cleanup_fd int root = make_root(state, "t");
	put_text(root, "some", "");
	put_text(root, "none", "");
	cleanup_fd int some = openat(root, "some", O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(some, "x", 1, HOLE), 1);
	assert_int_equal(pwrite(some, "x", 1, 2 * HOLE + 5), 1);
	assert_int_equal(ftruncate(some, 4 * HOLE), 0);
	cleanup_fd int none = openat(root, "none", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(none, 4 * HOLE), 0);
	cleanup_fd int tar = must_pack(state, "t", &digest);
	assert_true(size_of(tar) < HOLE);
	cleanup_fd int image = must_render(state, "t");
	check_sparse(image, "some", true);
	check_sparse(image, "none", false);
}

/* The directory may be named in any way, and be a link. */
static void test_ways_to_name(void **state)
{
	static const char *const ways[] = { "t", "t/", "t//", "./t/.", "link", "link/" };
	struct digest first, digest;
	cleanup_fd int root = make_root(state, "t");
	assert_int_equal(mkdirat(root, "d", 0755), 0);
	put_text(root, "d/f", "text");
	assert_int_equal(symlinkat("t", fixture_dir(state), "link"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		cleanup_fd int tar = must_pack(state, ways[i], i ? &digest : &first);
		(void)tar; /* freed at the end */
		if (i && !digest_equal(&first, &digest))
			fail_msg("%s gives another tar", ways[i]);
	}
	check_fails(state, "nothing", BYTES_MAX, "nothing\": No such file or directory");
}

/* All files together, holes included, at the limit and one byte beyond. */
static void test_limit(void **state)
{
	struct err e;
	struct digest digest;
	cleanup_fd int root = make_root(state, "t");
	put_file(root, "a", "12345", 5);
	put_file(root, "b", "1234", 4);
	assert_int_equal(linkat(root, "a", root, "c", 0), 0); /* counts once */
	cleanup_fd int fd = openat(root, "b", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 95), 0);
	cleanup_fd int to = memfd_create("tar", MFD_CLOEXEC);
	assert_int_equal(try_pack(state, "t", to, 100, &digest, &e), 0);
	check_fails(state, "t", 99, "the files have more than 99 bytes up to \"");
	check_fails(state, "t", 99, "t/b\" (if that is intended, raise HUSK_IMAGE_BYTES_MAX)");
	/* A file that only claims to be large does not keep anybody busy. */
	assert_int_equal(ftruncate(fd, (off_t)1 << 42), 0);
	check_fails(state, "t", BYTES_MAX, "t/b\"");
}

/* Runs try_pack() as somebody who may not read everything. */
static void check_unreadable(void **state, const char *want)
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err e;
		struct digest digest;
		int fd = memfd_create("tar", MFD_CLOEXEC);
		if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) < 0)
			_exit(2);
		int r = try_pack(state, "t", fd, BYTES_MAX, &digest, &e);
		if (r == -EACCES && strstr(e.text, want))
			_exit(0);
		fprintf(stderr, "%d: %s\n", r, e.text);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* What cannot be read is named: nobody wants an image without it. */
static void test_unreadable(void **state)
{
	cleanup_fd int root = make_root(state, "t");
	assert_int_equal(fchmod(fixture_dir(state), 0755), 0);
	put_text(root, "a", "readable");
	put_text(root, "b", "secret");
	assert_int_equal(fchmodat(root, "b", 0, 0), 0);
	check_unreadable(state, "t/b\": Permission denied");
	assert_int_equal(fchmodat(root, "b", 0644, 0), 0);
	assert_int_equal(mkdirat(root, "d", 0), 0);
	check_unreadable(state, "t/d\": Permission denied");
}

/* A file size limit is the disk that is full without a disk. */
static void test_disk_full(void **state)
{
	struct err e;
	struct digest digest;
	struct rlimit old, limit;
	char text[10000] = "x";
	cleanup_fd int root = make_root(state, "t");
	put_file(root, "f", text, sizeof(text));
	put_text(fixture_dir(state), "tar", "");
	cleanup_fd int to = openat(fixture_dir(state), "tar", O_WRONLY | O_CLOEXEC);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_IGN);
	limit = old;
	limit.rlim_cur = 5000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(try_pack(state, "t", to, BYTES_MAX, &digest, &e), -EFBIG);
	assert_string_equal(e.text, "cannot write the packed directory: File too large");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(ftruncate(to, 0), 0);
	assert_int_equal(lseek(to, 0, SEEK_SET), 0);
	assert_int_equal(try_pack(state, "t", to, BYTES_MAX, &digest, &e), 0);
}

#define SHRINKS ((size_t)16 << 20)

/* Reads a tar from the pipe; when it is under way, cuts the file. Reports how much came. */
static void cut_meanwhile(int root, int from, int report)
{
	static char mem[65536];
	size_t total = 0;
	ssize_t n;
	while ((n = read(from, mem, sizeof(mem))) > 0) {
		if (total < SHRINKS / 16 && total + (size_t)n >= SHRINKS / 16) {
			cleanup_fd int fd = openat(root, "f", O_WRONLY | O_CLOEXEC);
			if (ftruncate(fd, 1) < 0)
				_exit(1);
		}
		total += (size_t)n;
	}
	_exit(n == 0 && write(report, &total, sizeof(total)) == sizeof(total) ? 0 : 1);
}

/* A file that becomes shorter is an error, and the rest of it is not made up from zeros. */
static void test_shrinks(void **state)
{
	struct err e;
	struct digest digest;
	int tar[2], report[2], status;
	size_t total = 0;
	cleanup_free char *content = calloc(1, SHRINKS);
	cleanup_fd int root = make_root(state, "t");
	assert_non_null(content);
	memset(content, 'x', SHRINKS);
	put_file(root, "f", content, SHRINKS);
	assert_int_equal(pipe2(tar, O_CLOEXEC), 0);
	assert_int_equal(pipe2(report, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(tar[1]);
		cut_meanwhile(root, tar[0], report[1]);
	}
	close(tar[0]);
	assert_int_equal(try_pack(state, "t", tar[1], BYTES_MAX, &digest, &e), -EBUSY);
	assert_non_null(strstr(e.text, "t/f\" became shorter while it was read"));
	close(tar[1]);
	assert_int_equal(read(report[0], &total, sizeof(total)), sizeof(total));
	assert_true(total < SHRINKS / 2);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(report[0]);
	close(report[1]);
}

/*
 * Reads a tar from the pipe; when it is under way, puts a link to "outside" in place of the
 * directory "z".
 */
static void swap_meanwhile(int root, int from)
{
	static char mem[65536];
	bool swapped = false, leaked = false;
	ssize_t n;
	while ((n = read(from, mem, sizeof(mem))) > 0) {
		leaked |= memmem(mem, (size_t)n, "secret", strlen("secret")) != NULL;
		if (!swapped &&
		    (renameat(root, "z", root, "y") < 0 || symlinkat("../outside", root, "z") < 0))
			_exit(1);
		swapped = true;
	}
	_exit(swapped && !leaked ? 0 : 1);
}

/* Whoever owns the directory cannot have other files packed by putting links into it meanwhile. */
static void test_swapped(void **state)
{
	struct err e;
	struct digest digest;
	int tar[2], status;
	cleanup_free char *content = calloc(1, SHRINKS);
	cleanup_fd int root = make_root(state, "t");
	cleanup_fd int outside = make_root(state, "outside");
	assert_non_null(content);
	put_file(root, "f", content, SHRINKS); /* the walk waits here, and has looked at "z" */
	assert_int_equal(mkdirat(root, "z", 0755), 0);
	put_text(outside, "secret", "secret");
	assert_int_equal(pipe2(tar, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(tar[1]);
		swap_meanwhile(root, tar[0]);
	}
	close(tar[0]);
	int r = try_pack(state, "t", tar[1], BYTES_MAX, &digest, &e);
	close(tar[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(r, -EBUSY);
	assert_non_null(strstr(e.text, "t/z\" changed while it was read (try again)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_tree),       fixture_test(test_empty),
		fixture_test(test_sockets),    fixture_test(test_devices),
		fixture_test(test_hard_links), fixture_test(test_names),
		fixture_test(test_deep),       fixture_test(test_reproducible),
		fixture_test(test_digest),     fixture_test(test_xattrs),
		fixture_test(test_sparse),     fixture_test(test_ways_to_name),
		fixture_test(test_limit),      fixture_test(test_unreadable),
		fixture_test(test_disk_full),  fixture_test(test_shrinks),
		fixture_test(test_swapped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
