/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vmm/qemu/hotplug.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/os/fd.h"
#include "stage1-kvm/vmm/qemu/qmp_disk.h"
#include "tests/support/fixture.h"

#define LUN 5

/* A QEMU that the test plays: what it was sent, and what whoever asked was told. */
struct ctx {
	struct loop loop;
	struct qmp qmp;
	struct buf out;
	struct hotplug h;
	char sent[512];      /* the last command, "" once it was looked at */
	int sent_fd;         /* what came with it */
	int commands, dones; /* how many so far */
	int send_result;
	bool ok, left;
	char why[ERR_TEXT_MAX];
	void (*in_done)(struct ctx *c); /* what the one who asked does when told */
};

static int on_send(void *arg, int fd)
{
	struct ctx *c = arg;
	snprintf(c->sent, sizeof(c->sent), "%.*s", (int)buf_len(&c->out), buf_data(&c->out));
	buf_consume(&c->out, buf_len(&c->out));
	c->sent_fd = fd;
	c->commands++;
	return c->send_result;
}

static void on_done(void *arg, const struct err *why, bool left)
{
	struct ctx *c = arg;
	c->dones++;
	c->ok = !why;
	c->left = left;
	snprintf(c->why, sizeof(c->why), "%s", why ? why->text : "");
	if (c->in_done)
		c->in_done(c);
}

static void setup(struct ctx *c)
{
	memset(c, 0, sizeof(*c));
	assert_int_equal(loop_init(&c->loop), 0);
	qmp_init(&c->qmp);
	buf_init(&c->out, QMP_COMMAND_MAX);
	hotplug_init(&c->h, &c->loop, &c->qmp, &c->out, on_send, c);
}

static void teardown(struct ctx *c)
{
	hotplug_deinit(&c->h);
	assert_null(c->loop.timers);
	qmp_deinit(&c->qmp);
	buf_deinit(&c->out);
	loop_deinit(&c->loop);
}

/* All that is armed is due: a begin, or a time limit. */
static void time_passes(struct ctx *c)
{
	for (struct loop_timer *t = c->loop.timers; t; t = t->next)
		t->deadline_ns = 0;
	assert_int_equal(loop_turn(&c->loop), 0);
}

static int open_disk(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* The command @name was sent, and with a descriptor if @with_fd. */
static void expect_command(struct ctx *c, const char *name, bool with_fd)
{
	char want[64];
	snprintf(want, sizeof(want), "\"%s\"", name);
	if (!strstr(c->sent, want))
		fail_msg("\"%s\" instead of %s", c->sent, name);
	assert_int_equal(c->sent_fd >= 0, with_fd);
	c->sent[0] = '\0';
}

static void expect_silence(struct ctx *c)
{
	assert_string_equal(c->sent, "");
}

static void returns(struct ctx *c)
{
	const struct qmp_msg m = { .kind = QMP_RETURN, .id = c->h.id };
	hotplug_take(&c->h, &m);
}

static void refuses(struct ctx *c, const char *text)
{
	struct qmp_msg m = { .kind = QMP_ERROR, .id = c->h.id, .name = "GenericError" };
	snprintf(m.text, sizeof(m.text), "%s", text);
	hotplug_take(&c->h, &m);
}

static void event(struct ctx *c, const char *name, const char *device)
{
	struct qmp_msg m = { .kind = QMP_EVENT };
	snprintf(m.name, sizeof(m.name), "%s", name);
	if (device) {
		m.body = json_object_new_object();
		assert_int_equal(json_put_str(m.body, "device", device), 0);
	}
	hotplug_take(&c->h, &m);
	qmp_msg_deinit(&m);
}

static int begin_add(struct ctx *c)
{
	int fd = open_disk();
	assert_int_equal(hotplug_add(&c->h, LUN, fd, on_done, c), 0);
	expect_silence(c); /* nothing happens within the call */
	assert_int_equal(loop_turn(&c->loop), 0);
	return fd;
}

static void begin_remove(struct ctx *c)
{
	assert_int_equal(hotplug_remove(&c->h, LUN, on_done, c), 0);
	expect_silence(c);
	assert_int_equal(loop_turn(&c->loop), 0);
}

/* The descriptor goes out once, and is closed here when QEMU has it. */
static void test_add(void **state)
{
	(void)state;
	struct ctx c;
	setup(&c);
	int fd = begin_add(&c);
	assert_int_equal(c.sent_fd, fd);
	expect_command(&c, "add-fd", true);
	returns(&c);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_non_null(strstr(c.sent, "\"disk5\""));
	assert_non_null(strstr(c.sent, "\"read-only\":true"));
	expect_command(&c, "blockdev-add", false);
	returns(&c);
	assert_non_null(strstr(c.sent, "\"lun\":5"));
	expect_command(&c, "device_add", false);
	assert_int_equal(c.dones, 0);
	returns(&c);
	assert_int_equal(c.dones, 1);
	assert_true(c.ok);
	assert_false(c.left);
	expect_silence(&c);
	returns(&c); /* once more, for nothing */
	assert_int_equal(c.dones, 1);
	teardown(&c);
}

static void finish_remove(struct ctx *c)
{
	expect_command(c, "blockdev-del", false);
	returns(c);
	expect_command(c, "remove-fd", false);
	assert_int_equal(c->dones, 0);
	returns(c);
	assert_int_equal(c->dones, 1);
	assert_true(c->ok);
	assert_false(c->left);
}

static void test_remove_event_last(void **state)
{
	(void)state;
	struct ctx c;
	setup(&c);
	begin_remove(&c);
	expect_command(&c, "device_del", false);
	returns(&c);
	expect_silence(&c);
	returns(&c); /* a second reply to the same command does not stand for the event */
	refuses(&c, "late");
	expect_silence(&c);
	event(&c, "DEVICE_DELETED", "disk5");
	finish_remove(&c);
	teardown(&c);
}

static void test_remove_event_first(void **state)
{
	(void)state;
	struct ctx c;
	setup(&c);
	begin_remove(&c);
	expect_command(&c, "device_del", false);
	event(&c, "DEVICE_DELETED", "disk5");
	expect_silence(&c);
	returns(&c);
	finish_remove(&c);
	teardown(&c);
}

/* Each refusal undoes what was done before it, and is told once, in QEMU's words. */
static void test_add_refused(void **state)
{
	(void)state;
	struct ctx c;
	setup(&c);
	int fd = begin_add(&c);
	refuses(&c, "no descriptor");
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(c.dones, 1);
	assert_string_equal(c.why, "QEMU: disk 5: no descriptor");
	assert_false(c.left);
	teardown(&c);

	setup(&c);
	begin_add(&c);
	returns(&c);
	refuses(&c, "Duplicate nodes");
	expect_command(&c, "remove-fd", false);
	assert_int_equal(c.dones, 0);
	returns(&c);
	assert_int_equal(c.dones, 1);
	assert_string_equal(c.why, "QEMU: disk 5: Duplicate nodes");
	assert_false(c.left);
	teardown(&c);

	setup(&c);
	begin_add(&c);
	returns(&c);
	returns(&c);
	refuses(&c, "lun already used");
	expect_command(&c, "blockdev-del", false);
	returns(&c);
	expect_command(&c, "remove-fd", false);
	returns(&c);
	assert_int_equal(c.dones, 1);
	assert_string_equal(c.why, "QEMU: disk 5: lun already used");
	assert_false(c.left);
	teardown(&c);
}

/* What cannot be undone is told with the first reason, and that something is left. */
static void test_undo_refused(void **state)
{
	(void)state;
	struct ctx c;
	setup(&c);
	begin_add(&c);
	returns(&c);
	returns(&c);
	refuses(&c, "first");
	refuses(&c, "second");
	assert_int_equal(c.dones, 1);
	assert_string_equal(c.why, "QEMU: disk 5: first");
	assert_true(c.left);
	teardown(&c);
}

static void test_remove_refused(void **state)
{
	(void)state;
	struct ctx c;
	for (int steps = 0; steps < 3; steps++) {
		setup(&c);
		begin_remove(&c);
		if (steps > 0) {
			event(&c, "DEVICE_DELETED", "disk5");
			returns(&c);
		}
		if (steps > 1)
			returns(&c);
		refuses(&c, "no");
		assert_int_equal(c.dones, 1);
		assert_string_equal(c.why, "QEMU: disk 5: no");
		assert_true(c.left);
		teardown(&c);
	}
}

static void test_foreign_messages(void **state)
{
	(void)state;
	struct ctx c;
	setup(&c);
	event(&c, "DEVICE_DELETED", "disk5"); /* nothing is under way */
	returns(&c);
	assert_int_equal(hotplug_remove(&c.h, LUN, on_done, &c), 0);
	event(&c, "DEVICE_DELETED", "disk5"); /* not begun: it is about something else */
	assert_int_equal(loop_turn(&c.loop), 0);
	expect_command(&c, "device_del", false);
	event(&c, "DEVICE_DELETED", NULL);
	event(&c, "DEVICE_DELETED", "disk55");
	event(&c, "DEVICE_DELETED", "scsi0-of-somebody-else-with-a-long-name");
	event(&c, "ACPI_DEVICE_OST", "disk5");
	const struct qmp_msg other[] = { { .kind = QMP_RETURN, .id = c.h.id + 1 },
					 { .kind = QMP_ERROR, .id = -1 },
					 { .kind = QMP_GREETING, .id = c.h.id } };
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		hotplug_take(&c.h, &other[i]);
	expect_silence(&c);
	returns(&c);
	expect_silence(&c); /* none of those was the event */
	event(&c, "DEVICE_DELETED", "disk5");
	finish_remove(&c);
	/* The same event has no effect on a disk that is being added. */
	begin_add(&c);
	expect_command(&c, "add-fd", true);
	event(&c, "DEVICE_DELETED", "disk5");
	expect_silence(&c);
	teardown(&c);
}

static void test_queue_limit(void **state)
{
	(void)state;
	struct ctx c;
	setup(&c);
	for (int i = 0; i < DISK_JOBS_MAX; i++)
		assert_int_equal(hotplug_add(&c.h, i, open_disk(), on_done, &c), 0);
	int fd = open_disk();
	assert_int_equal(hotplug_add(&c.h, 77, fd, on_done, &c), -E2BIG);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* taken over all the same */
	assert_int_equal(hotplug_remove(&c.h, 77, on_done, &c), -E2BIG);
	assert_int_equal(loop_turn(&c.loop), 0);
	for (int i = 0; i < DISK_JOBS_MAX; i++) {
		expect_command(&c, "add-fd", true); /* one at a time */
		refuses(&c, "no");
		expect_silence(&c);
		assert_int_equal(c.dones, i + 1);
		if (c.loop.timers)
			assert_int_equal(loop_turn(&c.loop), 0);
	}
	expect_silence(&c);
	teardown(&c); /* and no descriptor is left */
}

/* Those that were not done are forgotten, without a word, and closed. */
static void test_deinit_with_jobs(void **state)
{
	(void)state;
	struct ctx c;
	setup(&c);
	begin_add(&c);
	for (int i = 0; i < 3; i++)
		assert_int_equal(hotplug_add(&c.h, i, open_disk(), on_done, &c), 0);
	teardown(&c);
	assert_int_equal(c.dones, 0);
}

/* QEMU says nothing: the next gets its turn, and a late answer has no effect on it. */
static void test_time_limit(void **state)
{
	(void)state;
	struct ctx c;
	setup(&c);
	int fd = begin_add(&c);
	expect_command(&c, "add-fd", true);
	int64_t late = c.h.id;
	assert_int_equal(hotplug_remove(&c.h, 9, on_done, &c), 0);
	time_passes(&c);
	assert_int_equal(c.dones, 1);
	assert_string_equal(c.why, "QEMU: disk 5: it does not answer");
	assert_true(c.left);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	time_passes(&c);
	expect_command(&c, "device_del", false);
	const struct qmp_msg m = { .kind = QMP_RETURN, .id = late };
	hotplug_take(&c.h, &m);
	returns(&c);
	time_passes(&c); /* the event never comes */
	assert_int_equal(c.dones, 2);
	assert_string_equal(c.why, "QEMU: disk 9: it does not answer");
	assert_true(c.left);
	teardown(&c);
}

static void test_cannot_send(void **state)
{
	(void)state;
	struct ctx c;
	setup(&c);
	c.send_result = -EIO;
	begin_add(&c);
	assert_int_equal(c.dones, 1);
	assert_string_equal(c.why, "QEMU: disk 5: cannot send a command");
	assert_true(c.left);
	c.send_result = 0;
	assert_int_equal(hotplug_add(&c.h, AGENT_LUN_MAX + 1, open_disk(), on_done, &c), 0);
	assert_int_equal(loop_turn(&c.loop), 0);
	returns(&c); /* the set takes any number, the node does not */
	assert_int_equal(c.dones, 2);
	assert_false(c.ok);
	teardown(&c);
}

static void ask_again(struct ctx *c)
{
	c->in_done = NULL;
	assert_int_equal(hotplug_remove(&c->h, LUN, on_done, c), 0);
	expect_silence(c);
}

/* Whoever is told may ask for the next at once. */
static void test_ask_in_done(void **state)
{
	(void)state;
	struct ctx c;
	setup(&c);
	c.in_done = ask_again;
	begin_add(&c);
	expect_command(&c, "add-fd", true);
	refuses(&c, "no");
	assert_int_equal(loop_turn(&c.loop), 0);
	expect_command(&c, "device_del", false);
	teardown(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_add),
		fixture_test(test_remove_event_last),
		fixture_test(test_remove_event_first),
		fixture_test(test_add_refused),
		fixture_test(test_undo_refused),
		fixture_test(test_remove_refused),
		fixture_test(test_foreign_messages),
		fixture_test(test_queue_limit),
		fixture_test(test_deinit_with_jobs),
		fixture_test(test_time_limit),
		fixture_test(test_cannot_send),
		fixture_test(test_ask_in_done),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
