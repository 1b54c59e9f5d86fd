/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/dirwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define MASK (IN_CREATE | IN_DELETE)

/* What was reported: "KIND+NAME" for each change. */
struct story {
	struct dirwatch *w;
	char text[256];
	int overflows;
	int *drop; /* dropped at the first change */
};

static void on_change(void *ctx, const struct dirwatch_entry *entry, uint32_t mask,
		      const char *name)
{
	struct story *s = ctx;
	size_t n = strlen(s->text);
	if (!entry) {
		assert_int_equal(mask, IN_Q_OVERFLOW);
		s->overflows++;
		return;
	}
	assert_ptr_equal(entry->owner, s);
	if (n < sizeof(s->text))
		snprintf(s->text + n, sizeof(s->text) - n, "%d%c%s ", entry->kind,
			 mask & IN_IGNORED ? '!' : (mask & IN_CREATE ? '+' : '-'), name);
	if (s->drop)
		dirwatch_drop(s->w, s->drop);
}

static int make_dir(void **state, const char *name)
{
	assert_int_equal(mkdirat(fixture_dir(state), name, 0700), 0);
	int fd = openat(fixture_dir(state), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void make(int dir, const char *name)
{
	assert_int_equal(mknodat(dir, name, S_IFREG | 0600, 0), 0);
}

static const char *read_story(struct dirwatch *w, struct story *s)
{
	s->text[0] = '\0';
	assert_int_equal(dirwatch_read(w, on_change, s), 0);
	return s->text;
}

static void test_owners(void **state)
{
	CLEANUP(dirwatch_deinit) struct dirwatch w;
	struct story s = { .w = &w };
	assert_int_equal(dirwatch_init(&w), 0);
	cleanup_fd int a = make_dir(state, "a"), b = make_dir(state, "b");
	int wd_a = dirwatch_add(&w, a, MASK, &s, 1), wd_b = dirwatch_add(&w, b, MASK, &s, 2);
	assert_true(wd_a >= 0 && wd_b >= 0);
	assert_int_equal(dirwatch_add(&w, b, MASK, &s, 3), -EEXIST);
	assert_string_equal(read_story(&w, &s), "");
	make(b, "x");
	make(a, "y");
	assert_int_equal(unlinkat(b, "x", 0), 0);
	assert_string_equal(read_story(&w, &s), "2+x 1+y 2-x ");
	dirwatch_drop(&w, &wd_a);
	assert_int_equal(wd_a, DIRWATCH_NONE);
	dirwatch_drop(&w, &wd_a);
	make(a, "z");
	assert_string_equal(read_story(&w, &s), "");
	assert_int_equal(unlinkat(fixture_dir(state), "b", AT_REMOVEDIR), 0);
	fd_replace(&b, -EBADF);
	assert_string_equal(read_story(&w, &s), "2! ");
	assert_int_equal(w.n, 0);
}

/* What is in the queue about a watch that is dropped is nobody's. */
static void test_dropped_in_between(void **state)
{
	CLEANUP(dirwatch_deinit) struct dirwatch w;
	assert_int_equal(dirwatch_init(&w), 0);
	cleanup_fd int a = make_dir(state, "a");
	struct story s = { .w = &w };
	int wd = dirwatch_add(&w, a, MASK, &s, 1);
	s.drop = &wd;
	make(a, "x");
	make(a, "y");
	assert_string_equal(read_story(&w, &s), "1+x ");
}

/* Many watches, dropped in another order than they were made. */
static void test_many(void **state)
{
	enum {
		N = 50
	};
	CLEANUP(dirwatch_deinit) struct dirwatch w;
	int fds[N], wds[N];
	struct story s = { .w = &w };
	char name[8];
	assert_int_equal(dirwatch_init(&w), 0);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%d", i);
		fds[i] = make_dir(state, name);
		wds[i] = dirwatch_add(&w, fds[i], MASK, &s, i);
	}
	for (int i = 0; i < N; i += 2)
		dirwatch_drop(&w, &wds[i]);
	make(fds[30], "x");
	make(fds[31], "x");
	assert_string_equal(read_story(&w, &s), "31+x ");
	wds[30] = dirwatch_add(&w, fds[30], MASK, &s, 30);
	make(fds[30], "y");
	assert_string_equal(read_story(&w, &s), "30+y ");
	for (int i = 0; i < N; i++)
		close(fds[i]);
}

static long max_queued_events(void)
{
	long n = 0;
	FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &n), 1);
	fclose(f);
	return n;
}

static void test_overflow(void **state)
{
	CLEANUP(dirwatch_deinit) struct dirwatch w;
	struct story s = { .w = &w };
	long n = max_queued_events();
	assert_int_equal(dirwatch_init(&w), 0);
	assert_true(dirwatch_add(&w, fixture_dir(state), MASK, &s, 1) >= 0);
	for (long i = 0; i < n; i++) {
		make(fixture_dir(state), "x");
		assert_int_equal(unlinkat(fixture_dir(state), "x", 0), 0);
	}
	while (s.overflows == 0)
		read_story(&w, &s);
	assert_int_equal(s.overflows, 1);
}

static void test_failures(void **state)
{
	CLEANUP(dirwatch_deinit) struct dirwatch w;
	assert_int_equal(dirwatch_init(&w), 0);
	fixture_write(state, "file", "", 0);
	cleanup_fd int file = openat(fixture_dir(state), "file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(dirwatch_add(&w, file, MASK, NULL, 0), -ENOTDIR);
	assert_int_equal(dirwatch_add(&w, 9999, MASK, NULL, 0), -ENOENT);
	assert_int_equal(w.n, 0);
	fault_arm(1);
	assert_int_equal(dirwatch_add(&w, fixture_dir(state), MASK, NULL, 0), -ENOMEM);
	fault_disarm();
	assert_true(dirwatch_add(&w, fixture_dir(state), MASK, NULL, 0) >= 0);
	struct dirwatch none = { .fd = -EBADF };
	dirwatch_deinit(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_owners),   fixture_test(test_dropped_in_between),
		fixture_test(test_many),     fixture_test(test_overflow),
		fixture_test(test_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
