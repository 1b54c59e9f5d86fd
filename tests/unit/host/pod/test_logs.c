/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/num.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

#define AT(second, text) "2020-01-01T00:00:0" second ".000000000Z stdout F " text "\n"
#define PIECE(second, stream, tag, text) \
	"2020-01-01T00:00:0" second ".000000000Z " stream " " tag " " text "\n"
#define SECOND INT64_C(1000000000)
#define START  (INT64_C(1577836800) * SECOND) /* 2020-01-01 */

static char got[4096];

static int take(void *ctx, const struct crilog_record *r)
{
	(void)ctx;
	strncat(got, r->content, r->len);
	strcat(got, r->partial ? "+" : " ");
	return 0;
}

static void put(void **state, const char *name, const char *text)
{
	char path[64];
	mkdirat(fixture_dir(state), POD_DIR_LOGS, 0700);
	snprintf(path, sizeof(path), POD_DIR_LOGS "/%s", name);
	fixture_write(state, path, text, strlen(text));
}

static int read_logs(void **state, const struct logs_request *q)
{
	struct pod p = { .phase = POD_EXITED_GARBAGE, .fd = fixture_dir(state) };
	struct err e = ERR_INIT;
	got[0] = '\0';
	return pod_logs(NULL, &p, q, take, NULL, &e);
}

static const struct logs_request all = { .app = "a", .tail = -1 };

static void test_parts(void **state)
{
	assert_int_equal(read_logs(state, &all), -ENOENT);
	put(state, "a", AT("3", "three") AT("4", "four"));
	assert_int_equal(read_logs(state, &all), 0);
	assert_string_equal(got, "three four ");
	put(state, "a" POD_LOG_OLD_SUFFIX, AT("1", "one") AT("2", "two"));
	assert_int_equal(read_logs(state, &all), 0);
	assert_string_equal(got, "one two three four ");
	struct logs_request q = all;
	q.follow = true; /* of a pod that is over */
	assert_int_equal(read_logs(state, &q), 0);
	assert_string_equal(got, "one two three four ");
	assert_int_equal(unlinkat(fixture_dir(state), POD_DIR_LOGS "/a", 0), 0);
	assert_int_equal(read_logs(state, &all), 0);
	assert_string_equal(got, "one two ");
}

static void test_choice(void **state)
{
	put(state, "a" POD_LOG_OLD_SUFFIX, AT("1", "one") AT("2", "two"));
	put(state, "a", AT("3", "three") AT("4", "four"));
	struct logs_request q = all;
	const struct {
		int64_t tail, since;
		const char *want;
	} cases[] = {
		{ 0, 0, "" },
		{ 1, 0, "four " },
		{ 3, 0, "two three four " },
		{ 9, 0, "one two three four " },
		{ -1, 2, "two three four " },
		{ 1, 2, "four " },
		{ 9, 4, "four " },
		{ -1, 5, "" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		q.tail = cases[i].tail;
		q.since_ns = cases[i].since ? START + cases[i].since * SECOND : 0;
		assert_int_equal(read_logs(state, &q), 0);
		assert_string_equal(got, cases[i].want);
	}
}

/* A long line is one line, although it is several records, and whatever comes in between. */
static void test_long_lines(void **state)
{
	put(state, "a" POD_LOG_OLD_SUFFIX,
	    AT("1", "one") PIECE("2", "stdout", "P", "a1") PIECE("3", "stdout", "P", "a2")
		    PIECE("3", "stderr", "P", "b1"));
	put(state, "a",
	    PIECE("4", "stdout", "F", "a3") AT("4", "four") PIECE("5", "stderr", "F", "b2")
		    PIECE("6", "stdout", "P", "end"));
	struct logs_request q = all;
	static const struct {
		int64_t tail, since;
		const char *want;
	} cases[] = {
		{ 1, 0, "end+" },
		{ 2, 0, "four end+" },
		{ 3, 0, "b1+four b2 end+" },
		{ 4, 0, "a1+a2+b1+a3 four b2 end+" },
		{ 5, 0, "one a1+a2+b1+a3 four b2 end+" },
		{ 3, 4, "four b2 end+" },
		{ 4, 4, "a3 four b2 end+" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		q.tail = cases[i].tail;
		q.since_ns = cases[i].since ? START + cases[i].since * SECOND : 0;
		assert_int_equal(read_logs(state, &q), 0);
		assert_string_equal(got, cases[i].want);
	}
}

/* What is not a record, as after a crash of the host, hides nothing else. */
static void test_damage(void **state)
{
	static char text[2 * CRILOG_RECORD_MAX];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s",
				    "garbage\n\n" AT("1", "one") "2020-01-01T00:00:09.0\n");
	memset(text + n, 'x', CRILOG_RECORD_MAX + 100);
	n += CRILOG_RECORD_MAX + 100;
	snprintf(text + n, sizeof(text) - n, "\n%s", AT("2", "two") "2020-01-01T00:00:03");
	put(state, "a", text);
	assert_int_equal(read_logs(state, &all), 0);
	assert_string_equal(got, "one two ");
}

static void test_tricks(void **state)
{
	mkdirat(fixture_dir(state), POD_DIR_LOGS, 0700);
	assert_int_equal(symlinkat("/etc/passwd", fixture_dir(state), POD_DIR_LOGS "/a"), 0);
	assert_true(read_logs(state, &all) < 0);
	assert_int_equal(unlinkat(fixture_dir(state), POD_DIR_LOGS "/a", 0), 0);
	assert_int_equal(mkfifoat(fixture_dir(state), POD_DIR_LOGS "/a", 0600), 0);
	assert_int_equal(read_logs(state, &all), -EINVAL);
}

/* ---- following ---- */

#define RECORDS 20000 /* that a writer writes as fast as it can */
#define ROTATE  500   /* records in a file of such a writer */

/* A pod that runs, its log, and what the reader got of it. */
struct followed {
	struct pods *ps;
	struct pod writer; /* holds the lock */
	int logs;
	int fd;
	int got, last;
};

static void add_record(struct followed *f, int n)
{
	char text[128];
	int len = snprintf(text, sizeof(text), "2020-01-01T00:00:00.000000000Z stdout F %d\n", n);
	assert_int_equal(write(f->fd, text, (size_t)len), len);
}

static void open_log(struct followed *f)
{
	f->fd = openat(f->logs, "a", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(f->fd >= 0);
}

/* As stage1 does it. */
static void rotate(struct followed *f)
{
	assert_int_equal(renameat(f->logs, "a", f->logs, "a" POD_LOG_OLD_SUFFIX), 0);
	close(f->fd);
	open_log(f);
}

static void begin(void **state, struct followed *f)
{
	struct err e = ERR_INIT;
	memset(f, 0, sizeof(*f));
	f->writer = POD_INIT;
	assert_int_equal(pods_open(fixture_dir(state), true, &f->ps, &e), 0);
	assert_int_equal(pod_create(f->ps, false, &f->writer, &e), 0);
	assert_int_equal(pod_start(f->ps, &f->writer, &e), 0);
	assert_int_equal(mkdirat(f->writer.fd, POD_DIR_LOGS, 0700), 0);
	f->logs = openat(f->writer.fd, POD_DIR_LOGS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	open_log(f);
}

static void end(struct followed *f)
{
	close(f->logs);
	close(f->fd);
	pod_deinit(&f->writer);
	pods_free(f->ps);
}

static void follow(struct followed *f, logs_fn fn)
{
	const struct logs_request q = { .app = "a", .tail = -1, .follow = true };
	struct err e = ERR_INIT;
	cleanup_pod struct pod p = POD_INIT;
	assert_int_equal(pod_open(f->ps, f->writer.uuid.text, &p, &e), 0);
	assert_int_equal(pod_logs(f->ps, &p, &q, fn, f, &e), 0);
}

static int number_of(const struct crilog_record *r)
{
	char text[16];
	uint64_t n;
	assert_true(r->len < sizeof(text));
	memcpy(text, r->content, r->len);
	text[r->len] = '\0';
	assert_int_equal(num_parse_u64(text, INT32_MAX, &n), 0);
	return (int)n;
}

/* The writer goes on while its reader is about to read the end of the file. */
static int write_meanwhile(void *ctx, const struct crilog_record *r)
{
	struct followed *f = ctx;
	int n = number_of(r);
	assert_int_equal(n, ++f->last); /* none twice, none left out */
	if (n == 2) {                   /* once between two looks */
		rotate(f);
		add_record(f, 3);
	} else if (n == 3) { /* twice, one file being empty */
		rotate(f);
		rotate(f);
		add_record(f, 4);
	} else if (n == 4) { /* twice */
		add_record(f, 5);
		rotate(f);
		add_record(f, 6);
		rotate(f);
		add_record(f, 7);
	} else if (n == 7) {
		rotate(f);
		add_record(f, 8);
		pod_deinit(&f->writer); /* and that was the pod */
	}
	return 0;
}

static void test_follow_rotation(void **state)
{
	struct followed f;
	begin(state, &f);
	add_record(&f, 1);
	add_record(&f, 2);
	follow(&f, write_meanwhile);
	assert_int_equal(f.last, 8);
	end(&f);
}

/* Between a rename and the new file there is only the old one, which is not read again later. */
static int make_new_file(void *ctx, const struct crilog_record *r)
{
	struct followed *f = ctx;
	assert_int_equal(number_of(r), ++f->last);
	if (f->last == 1) {
		open_log(f);
		add_record(f, 2);
	} else {
		pod_deinit(&f->writer);
	}
	return 0;
}

static void test_follow_between(void **state)
{
	struct followed f;
	begin(state, &f);
	add_record(&f, 1);
	assert_int_equal(renameat(f.logs, "a", f.logs, "a" POD_LOG_OLD_SUFFIX), 0);
	close(f.fd);
	follow(&f, make_new_file);
	assert_int_equal(f.last, 2);
	end(&f);
}

static int take_in_order(void *ctx, const struct crilog_record *r)
{
	struct followed *f = ctx;
	int n = number_of(r);
	assert_true(n > f->last);
	f->last = n;
	f->got++;
	return 0;
}

/* A writer that does not wait for anybody: whole files may be lost, but order and end are not. */
static void test_follow_fast_writer(void **state)
{
	struct followed f;
	begin(state, &f);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		for (int n = 1; n <= RECORDS; n++) {
			if (n % ROTATE == 0)
				rotate(&f);
			add_record(&f, n);
		}
		_exit(0);
	}
	int lock = TAKE_FD(f.writer.fd); /* the child has it, too */
	close(lock);
	follow(&f, take_in_order);
	assert_int_equal(f.last, RECORDS);
	assert_true(f.got >= ROTATE); /* the last two files at least */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_parts),          fixture_test(test_choice),
		fixture_test(test_long_lines),     fixture_test(test_damage),
		fixture_test(test_tricks),         fixture_test(test_follow_rotation),
		fixture_test(test_follow_between), fixture_test(test_follow_fast_writer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
