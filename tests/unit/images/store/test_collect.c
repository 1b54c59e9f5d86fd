/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "images/store/catalog.h"
#include "images/store/find.h"
#include "images/store/inventory.h"
#include "images/store/layout.h"
#include "images/store/store_int.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/store/support.h"

#define SECOND INT64_C(1000000000)
#define NOW    (1000 * SECOND)
#define BLOBS  "oci/" LAYOUT_BLOBS

/* Sets when a file was last changed, in seconds. */
static void set_age(void **state, const char *path, int64_t second)
{
	const struct timespec times[] = { { .tv_sec = second }, { .tv_sec = second } };
	assert_int_equal(utimensat(fixture_dir(state), path, times, AT_SYMLINK_NOFOLLOW), 0);
}

/* An image that was last used at that second. */
static void add_used(void **state, struct store *s, const char *text, int64_t second,
		     struct digest *ret)
{
	char path[128];
	add_image(s, text, text, ret);
	snprintf(path, sizeof(path), "images/%s.json", ret->hex);
	set_age(state, path, second);
}

static void must_collect(const struct store *s, const struct collect_plan *plan)
{
	struct err e = ERR_INIT;
	if (collect_garbage(s, plan, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(e.code, 0);
}

/* Nothing is there but @n images of which each has three blobs and its own rendered file. */
static void check_store(void **state, const struct store *s, size_t n)
{
	assert_int_equal(count_names(state, "images"), n);
	assert_int_equal(count_names(state, BLOBS), 3 * n);
	assert_int_equal(count_names(state, "trees"), 2 * n);
	assert_int_equal(count_names(state, "refs"), n);
	assert_int_equal(count_names(state, "tmp"), 0);
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	assert_int_equal(catalog_list(s, &l, NULL), 0);
	for (size_t i = 0; i < l.n; i++)
		assert_true(catalog_has_image(s, &l.ids[i]));
}

static void test_remove(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest ids[3];
	struct err e = ERR_INIT;
	cleanup_free char *index = NULL;
	add_image(s, "one", "1", &ids[0]);
	add_image(s, "two", "2", &ids[1]);
	add_image(s, "three", "3", &ids[2]);
	check_store(state, s, 3);
	assert_int_equal(collect_remove(s, ids, 2, &e), 0);
	check_store(state, s, 1);
	assert_true(catalog_has_image(s, &ids[2]));
	assert_int_equal(file_read_at(fixture_dir(state), "oci/index.json", 65536, &index, NULL),
			 0);
	assert_non_null(strstr(index, ids[2].hex));
	assert_null(strstr(index, ids[0].hex));
	/* It is gone already; and all of them. */
	assert_int_equal(collect_remove(s, ids, 3, &e), 0);
	check_store(state, s, 0);
	assert_int_equal(collect_remove(s, NULL, 0, &e), 0);
}

/* A name that has moved stays away from who had it, as long as that one is there. */
static void test_moved_name(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest one, two, found;
	struct err e = ERR_INIT;
	add_image(s, "one", "name", &one);
	add_image(s, "two", "name", &two);
	assert_int_equal(find_image(s, "name", &found, &e), 0);
	assert_true(digest_equal(&found, &two));
	for (int i = 0; i < 2; i++) { /* the second time there is nothing to do */
		assert_int_equal(collect_remove(s, &two, 1, &e), 0);
		assert_int_equal(find_image(s, "name", &found, NULL), -ENOENT);
		assert_false(catalog_stands_for(s, "name", &one));
		assert_int_equal(count_names(state, "refs"), 1);
	}
	add_image(s, "one", "name", &one);
	assert_int_equal(find_image(s, "name", &found, &e), 0);
	add_image(s, "two", "name", &two);
	const struct collect_plan plan = { .now_ns = INT64_MAX, .n_used = 1, .used = &one };
	must_collect(s, &plan);
	assert_false(catalog_has_record(s, &two));
	assert_int_equal(find_image(s, "name", &found, NULL), -ENOENT);
	/* Nothing is left of it when nobody has it. */
	assert_int_equal(collect_remove(s, &one, 1, &e), 0);
	assert_int_equal(count_names(state, "refs"), 0);
}

/* One that cannot be removed does not keep the others. */
static void test_stuck(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest ids[2], stuck;
	struct err e = ERR_INIT;
	char path[128];
	digest_of("stuck", 5, &stuck);
	add_used(state, s, "one", 1, &ids[1]);
	snprintf(path, sizeof(path), "images/%s.json", stuck.hex);
	assert_int_equal(mkdirat(fixture_dir(state), path, 0755), 0);
	set_age(state, path, 0);
	ids[0] = stuck;
	assert_int_equal(collect_remove(s, ids, 2, &e), -EISDIR);
	assert_non_null(strstr(e.text, "cannot remove DIR/images/"));
	assert_int_equal(count_names(state, BLOBS), 0);
	add_used(state, s, "one", 1, &ids[1]);
	e = ERR_INIT;
	const struct collect_plan plan = { .now_ns = NOW, .size_max = 1 };
	assert_int_equal(collect_garbage(s, &plan, &e), -EISDIR);
	assert_non_null(strstr(e.text, "Is a directory"));
	assert_false(catalog_has_record(s, &ids[1]));
	assert_int_equal(count_names(state, BLOBS), 0);
	assert_int_equal(unlinkat(fixture_dir(state), path, AT_REMOVEDIR), 0);
}

struct told {
	struct digest ids[4];
	size_t n;
};

static void tell(void *ctx, const char *id)
{
	struct told *told = ctx;
	assert_true(told->n < ARRAY_SIZE(told->ids));
	assert_int_equal(strncmp(id, "sha256-", strlen("sha256-")), 0);
	assert_int_equal(digest_from_hex(id + strlen("sha256-"), &told->ids[told->n++]), 0);
}

/*
 * To the nanosecond: what is as old as the grace period goes, the oldest first; pods keep theirs.
 */
static void test_grace(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest ids[4];
	struct told told = { .n = 0 };
	add_used(state, s, "three", 903, &ids[3]);
	add_used(state, s, "two", 902, &ids[2]);
	add_used(state, s, "one", 901, &ids[1]);
	add_used(state, s, "zero", 900, &ids[0]);
	struct collect_plan plan = {
		.now_ns = NOW,
		.grace_ns = 100 * SECOND + 1,
		.used = &ids[1],
		.n_used = 1,
		.removed = tell,
		.ctx = &told,
	};
	must_collect(s, &plan);
	check_store(state, s, 4);
	plan.grace_ns = 98 * SECOND;
	must_collect(s, &plan);
	check_store(state, s, 2);
	assert_int_equal(told.n, 2);
	assert_true(digest_equal(&told.ids[0], &ids[0]));
	assert_true(digest_equal(&told.ids[1], &ids[2]));
	plan.n_used = 0;
	plan.grace_ns = 0;
	must_collect(s, &plan);
	check_store(state, s, 0);
	assert_true(digest_equal(&told.ids[2], &ids[1]));
	/* However long, nothing overflows. */
	plan.grace_ns = INT64_MAX;
	must_collect(s, &plan);
}

/* The images used longest ago go until the rest is as small as wanted, but not those of pods. */
static void test_size(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	CLEANUP(inventory_deinit) struct inventory v = INVENTORY_INIT;
	struct digest ids[3];
	for (int i = 0; i < 3; i++)
		add_used(state, s, (const char *[]){ "one", "two", "six" }[i], 901 + i, &ids[i]);
	assert_int_equal(inventory_load(s, &v, NULL), 0);
	uint64_t size = inventory_size(&v);
	struct collect_plan plan = {
		.now_ns = NOW,
		.grace_ns = NOW,
		.size_max = size,
		.used = &ids[0],
		.n_used = 1,
	};
	must_collect(s, &plan);
	check_store(state, s, 3);
	plan.size_max = size - 1;
	must_collect(s, &plan);
	check_store(state, s, 2);
	assert_false(catalog_has_record(s, &ids[1]));
	plan.size_max = 1;
	must_collect(s, &plan);
	check_store(state, s, 1);
	assert_true(catalog_has_record(s, &ids[0]));
}

/* An open image keeps its rendered file, and what tells that it is intact. */
static void test_open_image(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct err e = ERR_INIT;
	add_image(s, "one", "1", &id);
	int status;
	pid_t pid;
	cleanup_image struct image *i = NULL;
	assert_int_equal(image_open(s, &id, &i, &e), 0);
	pid = fork(); /* another process: its own locks */
	assert_true(pid >= 0);
	if (pid == 0) {
		struct store *other = NULL;
		bool done = store_open(fixture_dir(state), "DIR", &other, NULL) == 0 &&
			    collect_remove(other, &id, 1, NULL) == 0;
		_exit(done ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(count_names(state, "images"), 0);
	assert_int_equal(count_names(state, "trees"), 2);
	assert_int_equal(image_link_rootfs(i, fixture_dir(state), "pod", &e), 0);
	/* It comes back, and needs not be rendered again. */
	image_free(TAKE_PTR(i));
	add_image(s, "one", "1", &id);
	assert_int_equal(image_open(s, &id, &i, &e), 0);
	enum image_health health;
	assert_int_equal(image_verify(i, &health, &e), 0);
	assert_int_equal(health, IMAGE_INTACT);
	image_free(TAKE_PTR(i));
	assert_int_equal(collect_remove(s, &id, 1, &e), 0);
	check_store(state, s, 0);
}

static void put(void **state, const char *path, int64_t second)
{
	fixture_write(state, path, "x", 1);
	set_age(state, path, second);
}

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* What an end between two system calls leaves behind goes when it is old enough. */
static void test_left_over(void **state)
{
	static const char *const files[] = {
		"oci/.index.json.0123456789abcdef",
		"images/." HEX ".json.0123456789abcdef",
		"refs/." HEX ".json.0123456789abcdef",
		"trees/." HEX ".v3.digest.0123456789abcdef",
		"trees/" HEX ".v3.digest", /* killed before the file got its name */
		BLOBS "/oci-put-blob1234",
		"tmp/unknown",
	};
	static const char *const always[] = {
		"trees/" HEX ".v3", /* killed before the record was written, or after it was removed */
		"trees/" HEX ".v2", "trees/" HEX ".v2.digest", /* of an older husk */
		BLOBS "/" HEX,      "refs/" HEX ".json",
	};
	cleanup_store struct store *s = must_open_store(state);
	const struct collect_plan plan = { .now_ns = NOW, .grace_ns = 100 * SECOND };
	struct err e = ERR_INIT;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		put(state, files[i], 901);
	must_collect(s, &plan);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		assert_true(is_there(state, "%s", files[i]));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		set_age(state, files[i], 900);
	assert_int_equal(collect_remove(s, NULL, 0, &e), 0); /* removes what is nobody's only */
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		assert_true(is_there(state, "%s", files[i]));
	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		put(state, always[i], 999);
	must_collect(s, &plan);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		assert_false(is_there(state, "%s", files[i]));
	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		assert_false(is_there(state, "%s", always[i]));
	assert_true(is_there(state, "oci/oci-layout"));
	assert_true(is_there(state, "oci/index.json"));
}

/* An import that was kept is there until it is old; one under way stays in any case. */
static void test_imports(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct import *kept = NULL, *active = NULL;
	struct digest id;
	struct err e = ERR_INIT;
	int status;
	assert_int_equal(import_begin(s, "kept", &kept, &e), 0);
	fill_import(kept, "one", &id);
	import_keep(kept);
	import_free(kept);
	assert_int_equal(import_begin(s, "active", &active, &e), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct store *other = NULL;
		struct collect_plan plan = { .now_ns = clock_realtime_ns(),
					     .grace_ns = SECOND * 3600 };
		bool done = store_open(fixture_dir(state), "DIR", &other, NULL) == 0 &&
			    collect_garbage(other, &plan, NULL) == 0 &&
			    count_names(state, "tmp") == 2;
		plan.grace_ns = 0;
		done = done && collect_garbage(other, &plan, NULL) == 0 &&
		       count_names(state, "tmp") == 1;
		_exit(done ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fill_import(active, "two", &id); /* its directory still works */
	import_free(active);
	assert_int_equal(count_names(state, "tmp"), 0);
}

/* What is done in another process while this one holds the lock of the images. */
struct other {
	struct store *store;
	struct import *import; /* under way */
	struct digest id;      /* what it has */
	const struct digest *old;
};

static int other_collects(struct other *o)
{
	const struct collect_plan plan = { .now_ns = clock_realtime_ns() };
	return collect_garbage(o->store, &plan, NULL);
}

static int other_removes(struct other *o)
{
	return collect_remove(o->store, o->old, 1, NULL);
}

static int other_publishes(struct other *o)
{
	bool rendered;
	struct err e = ERR_INIT;
	return publish_import(o->import, &o->id, "new", &rendered, &e);
}

/* True if the process waits for a flock(2); false if it has ended. */
static bool waits_for_lock(pid_t pid)
{
	char want[64], line[256];
	snprintf(want, sizeof(want), "-> FLOCK  ADVISORY  WRITE %d ", (int)pid);
	for (;;) {
		int status;
		FILE *locks = fopen("/proc/locks", "re");
		assert_non_null(locks);
		bool found = false;
		while (fgets(line, sizeof(line), locks))
			found = found || strstr(line, want);
		fclose(locks);
		if (found)
			return true;
		if (waitpid(pid, &status, WNOHANG) == pid)
			return false;
		sched_yield();
	}
}

/*
 * Images are put into place and removed by one at a time: else a blob goes that a new record counts
 * on.
 */
static void test_one_at_a_time(void **state)
{
	static int (*const others[])(struct other *) = { other_publishes, other_removes,
							 other_collects };
	struct digest old;
	struct err e = ERR_INIT;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		int status, lock = -EBADF;
		cleanup_store struct store *s = must_open_store(state);
		struct other o = { .store = s, .old = &old };
		add_image(s, "old", "old", &old);
		assert_int_equal(import_begin(s, "key", &o.import, &e), 0);
		fill_import(o.import, "new", &o.id);
		assert_int_equal(store_lock_images(s, &lock, &e), 0);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			fd_close(lock); /* that is the parent's */
			_exit(others[i](&o) == 0 ? 0 : 1);
		}
		assert_true(waits_for_lock(pid));
		fd_close(lock);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		import_free(o.import);
	}
}

/*
 * An image whose blobs another needs, too, takes only its own with it; one that is damaged can be
 * removed.
 */
static void test_damaged(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id, other;
	struct err e = ERR_INIT;
	char path[128];
	add_image(s, "one", "1", &id);
	add_image(s, "two", "2", &other);
	snprintf(path, sizeof(path), "images/%s.json", id.hex);
	fixture_write(state, path, "damaged", 7);
	assert_int_equal(collect_remove(s, NULL, 0, &e), 0);
	assert_int_equal(count_names(state, "images"), 2); /* it can still be seen */
	assert_int_equal(count_names(state, BLOBS), 3);
	assert_int_equal(collect_remove(s, &id, 1, &e), 0);
	check_store(state, s, 1);
}

static int collect_as_member(void **state, void *ctx)
{
	struct store *s = NULL;
	struct digest id;
	struct err e = ERR_INIT;
	const struct collect_plan plan = { .now_ns = INT64_MAX };
	MUST(store_open(fixture_dir(state), "DIR", &s, NULL) == 0);
	add_image(s, "two", "2", &id);
	MUST(collect_remove(s, ctx, 1, &e) == 0);
	MUST(collect_garbage(s, &plan, &e) == 0);
	store_free(s);
	return 0;
}

/* A member of the group removes images; rendered files and others' work stay for root. */
static void test_member(void **state)
{
	struct digest id;
	struct import *kept = NULL;
	struct err e = ERR_INIT;
	if (!share_store(state))
		skip();
	cleanup_store struct store *s = must_open_store(state);
	add_image(s, "one", "1", &id);
	assert_int_equal(import_begin(s, "kept", &kept, &e), 0);
	import_keep(kept);
	import_free(kept);
	run_as_member(state, collect_as_member, &id);
	assert_int_equal(count_names(state, "images"), 0);
	assert_int_equal(count_names(state, BLOBS), 0);
	assert_int_equal(count_names(state, "trees"), 2);
	assert_int_equal(count_names(state, "tmp"), 1);
	must_collect(s, &(const struct collect_plan){ .now_ns = INT64_MAX });
	check_store(state, s, 0);
}

static int collect_once(void *ctx)
{
	const struct collect_plan plan = { .now_ns = INT64_MAX,
					   .grace_ns = INT64_MAX,
					   .size_max = 1 };
	struct err e = ERR_INIT;
	int r = collect_garbage(ctx, &plan, &e);
	return r < 0 && e.text[0] == '\0' ? 1 : r;
}

/* Short memory never makes anything needless: lenient, as index.json is written if it can be. */
static void test_allocations(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	char path[128];
	add_image(s, "one", "1", &id);
	snprintf(path, sizeof(path), "images/%s.json", id.hex);
	for_each_failing_alloc_lenient(collect_once, s);
	assert_int_equal(count_names(state, "images"), 0);
	add_image(s, "one", "1", &id);
	for (unsigned long n = 1; n < 1000; n++) {
		const struct collect_plan plan = { .now_ns = NOW, .grace_ns = NOW };
		fault_arm(n);
		collect_garbage(s, &plan, NULL);
		bool failed = fault_disarm();
		check_store(state, s, 1);
		if (!failed)
			return;
	}
	fail_msg("it never ends");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_remove),    fixture_test(test_moved_name),
		fixture_test(test_stuck),     fixture_test(test_grace),
		fixture_test(test_size),      fixture_test(test_open_image),
		fixture_test(test_left_over), fixture_test(test_imports),
		fixture_test(test_damaged),   fixture_test(test_one_at_a_time),
		fixture_test(test_member),    fixture_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
