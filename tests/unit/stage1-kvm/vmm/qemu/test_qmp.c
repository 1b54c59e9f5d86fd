/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vmm/qemu/qmp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define GREETING                                                                       \
	"{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 22, \"minor\": 2, \"major\": " \
	"7}, \"package\": \"x\"}, \"capabilities\": [\"oob\"]}}\r\n"

static void feed(struct qmp *q, const char *text)
{
	assert_int_equal(qmp_feed(q, text, strlen(text)), 0);
}

/* Feeds one line to a fresh client and returns what qmp_next() says. */
static int next_of(const char *line, struct qmp_msg *m)
{
	CLEANUP(qmp_deinit) struct qmp q;

	qmp_init(&q);
	feed(&q, line);
	return qmp_next(&q, m);
}

static void test_greeting(void **state)
{
	CLEANUP(qmp_msg_deinit) struct qmp_msg m = { 0 };

	(void)state;
	assert_int_equal(next_of(GREETING, &m), 0);
	assert_int_equal(m.kind, QMP_GREETING);
	assert_int_equal(m.major, 7);
	assert_int_equal(m.minor, 2);
}

static void test_return(void **state)
{
	CLEANUP(qmp_msg_deinit) struct qmp_msg m = { 0 };
	const char *status;

	(void)state;
	assert_int_equal(next_of("{\"return\": {\"status\": \"running\"}, \"id\": 12}\r\n", &m), 0);
	assert_int_equal(m.kind, QMP_RETURN);
	assert_int_equal(m.id, 12);
	assert_int_equal(json_get_str(m.body, "status", 32, &status), 0);
	assert_string_equal(status, "running");
}

static void test_error(void **state)
{
	struct qmp_msg m;

	(void)state;
	assert_int_equal(next_of("{\"id\": 3, \"error\": {\"class\": \"GenericError\", "
				 "\"desc\": \"no\"}}\r\n",
				 &m),
			 0);
	assert_int_equal(m.kind, QMP_ERROR);
	assert_int_equal(m.id, 3);
	assert_string_equal(m.name, "GenericError");
	assert_string_equal(m.text, "no");
	assert_int_equal(
		next_of("{\"error\": {\"class\": \"GenericError\", \"desc\": \"\"}}\n", &m), 0);
	assert_int_equal(m.id, -1);
}

static void test_long_description_is_cut(void **state)
{
	char line[QMP_TEXT_MAX + 256];
	char desc[QMP_TEXT_MAX + 2];
	struct qmp_msg m;

	(void)state;
	memset(desc, 'd', sizeof(desc) - 1);
	desc[sizeof(desc) - 1] = '\0';
	snprintf(line, sizeof(line), "{\"error\": {\"class\": \"X\", \"desc\": \"%s\"}}\n", desc);
	assert_int_equal(next_of(line, &m), 0);
	assert_int_equal(strlen(m.text), QMP_TEXT_MAX);
}

static void test_event(void **state)
{
	struct qmp_msg m;
	const char *device;

	(void)state;
	assert_int_equal(
		next_of("{\"timestamp\": {\"seconds\": 1, \"microseconds\": 2}, "
			"\"event\": \"DEVICE_DELETED\", \"data\": {\"device\": \"disk1\"}}\n",
			&m),
		0);
	assert_int_equal(m.kind, QMP_EVENT);
	assert_string_equal(m.name, "DEVICE_DELETED");
	assert_int_equal(json_get_str(m.body, "device", 32, &device), 0);
	assert_string_equal(device, "disk1");
	qmp_msg_deinit(&m);
	assert_int_equal(next_of("{\"event\": \"STOP\"}\n", &m), 0);
	assert_null(m.body);
}

static void test_byte_by_byte(void **state)
{
	CLEANUP(qmp_deinit) struct qmp q;
	struct qmp_msg m;
	size_t len = strlen(GREETING);

	(void)state;
	qmp_init(&q);
	for (size_t i = 0; i < len; i++) {
		assert_int_equal(qmp_next(&q, &m), QMP_INCOMPLETE);
		assert_int_equal(qmp_feed(&q, &GREETING[i], 1), 0);
	}
	assert_int_equal(qmp_next(&q, &m), 0);
	assert_int_equal(qmp_next(&q, &m), QMP_INCOMPLETE);
}

static void test_many_in_one_feed(void **state)
{
	CLEANUP(qmp_deinit) struct qmp q;
	struct qmp_msg m;

	(void)state;
	qmp_init(&q);
	feed(&q, "{\"event\": \"A\"}\n{\"event\": \"B\"}\n{\"eve");
	assert_int_equal(qmp_next(&q, &m), 0);
	assert_string_equal(m.name, "A");
	assert_int_equal(qmp_next(&q, &m), 0);
	assert_string_equal(m.name, "B");
	assert_int_equal(qmp_next(&q, &m), QMP_INCOMPLETE);
	feed(&q, "nt\": \"C\"}\n");
	assert_int_equal(qmp_next(&q, &m), 0);
	assert_string_equal(m.name, "C");
}

static void test_nonsense(void **state)
{
	static const char *const lines[] = {
		"\n",
		"\r\n",
		"x\n",
		"{}\n",
		"[]\n",
		"null\n",
		"{\"return\": {}}\n",
		"{\"return\": null, \"id\": 1}\n",
		"{\"return\": {}, \"id\": -1}\n",
		"{\"return\": {}, \"id\": 4294967296}\n",
		"{\"return\": {}, \"id\": \"1\"}\n",
		"{\"error\": {}, \"id\": 1}\n",
		"{\"error\": 1, \"id\": 1}\n",
		"{\"error\": {\"class\": \"X\", \"desc\": \"y\"}, \"id\": \"1\"}\n",
		"{\"error\": {\"class\": 1, \"desc\": \"y\"}, \"id\": 1}\n",
		"{\"error\": {\"class\": \"X\", \"desc\": 2}, \"id\": 1}\n",
		"{\"error\": {\"class\": \"X\", \"desc\": \"y\\u0000z\"}, \"id\": 1}\n",
		"{\"event\": 1}\n",
		"{\"event\": \"\"}\n",
		"{\"event\": \"A\\u001b[2J\"}\n",
		"{\"event\": \"0123456789012345678901234567890123456789012345678901234567890123\"}\n",
		"{\"QMP\": {}}\n",
		"{\"QMP\": {\"version\": 7}}\n",
		"{\"QMP\": {\"version\": {\"qemu\": {\"major\": 7}}}}\n",
		"{\"event\": \"A\"} {\"event\": \"B\"}\n",
	};
	struct qmp_msg m = { .id = 4711 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		if (next_of(lines[i], &m) != -EBADMSG)
			fail_msg("accepted: %s", lines[i]);
		assert_int_equal(m.id, 4711); /* untouched */
	}
}

/* Fills @line of @len bytes: an event, much space, a newline. Not NUL-terminated. */
static void make_line(char *line, size_t len)
{
	static const char head[] = "{\"event\": \"A\"}";

	memset(line, ' ', len);
	memcpy(line, head, sizeof(head) - 1);
	line[len - 1] = '\n';
}

static void test_longest_line(void **state)
{
	static char longest[QMP_LINE_MAX], longer[QMP_LINE_MAX + 1];
	CLEANUP(qmp_deinit) struct qmp q;
	struct qmp_msg m;

	make_line(longest, sizeof(longest));
	make_line(longer, sizeof(longer));
	(void)state;
	qmp_init(&q);
	assert_int_equal(qmp_room(&q), QMP_LINE_MAX);
	assert_int_equal(qmp_feed(&q, longest, sizeof(longest)), 0);
	assert_int_equal(qmp_room(&q), 0);
	assert_int_equal(qmp_feed(&q, "x", 1), -EMSGSIZE);
	assert_int_equal(qmp_next(&q, &m), 0);
	assert_int_equal(qmp_room(&q), QMP_LINE_MAX);
	assert_int_equal(qmp_feed(&q, longer, QMP_LINE_MAX), 0);
	assert_int_equal(qmp_next(&q, &m), -EBADMSG);
}

static void test_command(void **state)
{
	CLEANUP(qmp_deinit) struct qmp q;
	cleanup_buf struct buf out;
	struct json_object *args = json_object_new_object();
	int64_t id = -1;

	(void)state;
	qmp_init(&q);
	buf_init(&out, QMP_COMMAND_MAX);
	assert_int_equal(qmp_command(&q, &out, "qmp_capabilities", NULL, &id), 0);
	assert_int_equal(id, 0);
	assert_int_equal(json_put_str(args, "filename", "/dev/fdset/1"), 0);
	assert_int_equal(qmp_command(&q, &out, "x", args, &id), 0);
	assert_int_equal(id, 1);
	cleanup_free char *text = buf_take_string(&out);
	assert_string_equal(text, "{\"execute\":\"qmp_capabilities\",\"id\":0}\n"
				  "{\"execute\":\"x\",\"arguments\":{\"filename\":\"/dev/fdset/1\"}"
				  ",\"id\":1}\n");
}

/* A command of exactly QMP_COMMAND_MAX bytes goes out; one byte more does not. */
static void test_longest_command(void **state)
{
	const size_t frame = strlen("{\"execute\":\"\",\"id\":0}\n");
	char name[QMP_COMMAND_MAX + 1];
	CLEANUP(qmp_deinit) struct qmp q;
	cleanup_buf struct buf out;
	int64_t id = 99;

	(void)state;
	qmp_init(&q);
	buf_init(&out, 2 * QMP_COMMAND_MAX);
	memset(name, 'n', sizeof(name));
	name[QMP_COMMAND_MAX - frame + 1] = '\0';
	assert_int_equal(qmp_command(&q, &out, name, NULL, &id), -EMSGSIZE);
	assert_int_equal(buf_len(&out), 0);
	assert_int_equal(id, 99);
	name[QMP_COMMAND_MAX - frame] = '\0';
	assert_int_equal(qmp_command(&q, &out, name, NULL, &id), 0);
	assert_int_equal(buf_len(&out), QMP_COMMAND_MAX);
	assert_int_equal(id, 0);
}

static void test_full_output(void **state)
{
	CLEANUP(qmp_deinit) struct qmp q;
	cleanup_buf struct buf out;

	(void)state;
	qmp_init(&q);
	buf_init(&out, 10);
	assert_int_equal(qmp_command(&q, &out, "quit", json_object_new_object(), NULL), -EMSGSIZE);
	assert_int_equal(buf_len(&out), 0);
}

static void test_ids_wrap(void **state)
{
	CLEANUP(qmp_deinit) struct qmp q;
	cleanup_buf struct buf out;
	int64_t id;

	(void)state;
	qmp_init(&q);
	buf_init(&out, QMP_COMMAND_MAX);
	q.next_id = QMP_ID_MAX;
	assert_int_equal(qmp_command(&q, &out, "a", NULL, &id), 0);
	assert_int_equal(id, QMP_ID_MAX);
	assert_int_equal(qmp_command(&q, &out, "b", NULL, &id), 0);
	assert_int_equal(id, 0);
}

static int command_once(void *ctx)
{
	CLEANUP(qmp_deinit) struct qmp q;
	cleanup_buf struct buf out;
	cleanup_json struct json_object *args = json_object_new_object();
	int r = json_put_str(args, "key", "value");

	(void)ctx;
	qmp_init(&q);
	buf_init(&out, QMP_COMMAND_MAX);
	return r < 0 ? r : qmp_command(&q, &out, "x", TAKE_PTR(args), NULL);
}

static int decode_once(void *ctx)
{
	CLEANUP(qmp_deinit) struct qmp q;
	CLEANUP(qmp_msg_deinit) struct qmp_msg m = { 0 };
	int r;

	qmp_init(&q);
	r = qmp_feed(&q, ctx, strlen(ctx));
	return r < 0 ? r : qmp_next(&q, &m);
}

static void test_no_memory(void **state)
{
	static char line[] = "{\"return\": {\"a\": [1]}, \"id\": 1}\n";

	(void)state;
	for_each_failing_alloc(command_once, NULL);
	for_each_failing_alloc(decode_once, line);
}

static void test_deinit(void **state)
{
	(void)state;
	qmp_deinit(NULL);
	qmp_msg_deinit(NULL);
	qmp_msg_deinit(&(struct qmp_msg){ 0 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_greeting),
		fixture_test(test_return),
		fixture_test(test_error),
		fixture_test(test_long_description_is_cut),
		fixture_test(test_event),
		fixture_test(test_byte_by_byte),
		fixture_test(test_many_in_one_feed),
		fixture_test(test_nonsense),
		fixture_test(test_longest_line),
		fixture_test(test_command),
		fixture_test(test_longest_command),
		fixture_test(test_full_output),
		fixture_test(test_ids_wrap),
		fixture_test(test_no_memory),
		fixture_test(test_deinit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
