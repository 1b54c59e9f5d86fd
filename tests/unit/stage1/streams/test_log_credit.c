/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/streams/log_credit.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

#define BLOCK ((size_t)16384)

struct ctx {
	struct applog log;
	struct log_credit valve;
	char block[BLOCK];
};

static void begin(void **state, struct ctx *c)
{
	memset(c->block, 'x', BLOCK);
	c->block[BLOCK - 1] = '\n';
	applog_init(&c->log);
	assert_int_equal(applog_open(&c->log, fixture_dir(state), "app"), 0);
	log_credit_init(&c->valve, &c->log, CRILOG_STDOUT, 0);
}

static void end(struct ctx *c)
{
	log_credit_deinit(&c->valve);
	applog_deinit(&c->log);
}

/* Whether the newest file of the log has @text. */
static bool has(struct ctx *c, const char *text)
{
	cleanup_free char *all = NULL;
	size_t len;
	assert_int_equal(file_read_at(c->log.dir_fd, "app", APPLOG_FILE_MAX, &all, &len), 0);
	return strstr(all, text) != NULL;
}

/* All the credit of the moment 0. Returns how many bytes of the app that were. */
static size_t spend(struct ctx *c)
{
	size_t n = 0;
	for (; c->valve.credit > 0; n += BLOCK)
		log_credit_feed(&c->valve, 0, c->block, BLOCK);
	return n;
}

static void test_slow_app(void **state)
{
	struct ctx c;
	begin(state, &c);
	for (int64_t s = 0; s < 10; s++) /* at the limit */
		for (size_t n = 0; n < APPLOG_FILE_MAX / BLOCK * 9 / 10; n++) {
			log_credit_feed(&c.valve, s * NS_PER_SEC, c.block, BLOCK);
			assert_false(log_credit_is_behind(&c.valve));
		}
	end(&c);
}

/* What comes without credit is left out but for its end, which comes when there is credit again. */
static void test_fast_app(void **state)
{
	struct ctx c;
	begin(state, &c);
	size_t n = spend(&c);
	assert_true(n <= APPLOG_FILE_MAX && n > APPLOG_FILE_MAX * 9 / 10);
	for (int i = 0; i < 1000; i++)
		log_credit_feed(&c.valve, 0, c.block, BLOCK);
	log_credit_feed(&c.valve, 0, "the end\n", 8);
	assert_true(log_credit_is_behind(&c.valve));
	assert_int_equal(buf_len(&c.valve.tail), LOG_CREDIT_TAIL_MAX);
	log_credit_catch_up(&c.valve, 0);
	assert_true(log_credit_is_behind(&c.valve));
	assert_false(has(&c, "the end"));
	log_credit_catch_up(&c.valve, NS_PER_SEC / 2);
	assert_false(log_credit_is_behind(&c.valve));
	char text[80];
	snprintf(text, sizeof(text), "stdout F [husk: %zu bytes are not in the log]\n",
		 1000 * BLOCK + 8 - LOG_CREDIT_TAIL_MAX);
	assert_true(has(&c, text));
	assert_true(has(&c, "stdout F the end\n"));
	log_credit_feed(&c.valve, NS_PER_SEC / 2, "more\n", 5);
	assert_true(has(&c, "stdout F more\n"));
	end(&c);
}

/* The tail at its limit loses nothing, and one byte more is one byte that is missing. */
static void test_tail(void **state)
{
	for (size_t more = 0; more < 2; more++) {
		struct ctx c;
		begin(state, &c);
		spend(&c);
		for (size_t i = 0; i < LOG_CREDIT_TAIL_MAX + more; i += 1)
			log_credit_feed(&c.valve, 0, i % 64 == 63 ? "\n" : "y", 1);
		assert_int_equal(c.valve.left_out, more);
		log_credit_end(&c.valve); /* whatever the credit */
		assert_false(log_credit_is_behind(&c.valve));
		assert_int_equal(has(&c, "[husk: 1 bytes are not in the log]"), more == 1);
		assert_true(has(&c, "stdout F yyyy"));
		end(&c);
	}
}

/* A clock that stands, goes back or leaps gives no more than there is. */
static void test_clock(void **state)
{
	struct ctx c;
	begin(state, &c);
	spend(&c);
	log_credit_catch_up(&c.valve, -5 * NS_PER_SEC);
	assert_true(c.valve.credit <= 0);
	log_credit_catch_up(&c.valve, INT64_MAX);
	assert_true(c.valve.credit > 0 && c.valve.credit <= LOG_CREDIT_CREDIT_MAX);
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_slow_app),
		fixture_test(test_fast_app),
		fixture_test(test_tail),
		fixture_test(test_clock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
