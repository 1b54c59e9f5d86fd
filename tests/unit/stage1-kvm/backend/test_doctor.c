/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor program as stage0 runs it: one JSON document, an exit status, nothing on the way. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/json.h"
#include "lib/os/fd.h"
#include "lib/os/spawn.h"
#include "tests/support/fixture.h"

#define DOCUMENT_MAX ((size_t)256 * 1024)
#define TEXT_MAX     511

/* Runs doctor with @args (NULL-terminated) and yields its checks; its exit status is returned. */
static int doctor(char *const *args, struct json_object **ret)
{
	static char program[] = HUSK_DOCTOR_PROGRAM;
	char *argv[4] = { program };
	struct spawn_plan plan = { .program = program, .argv = argv };
	cleanup_free char *text = malloc(DOCUMENT_MAX);
	cleanup_json struct json_object *doc = NULL;
	int pipes[2], status;
	size_t len;
	pid_t pid;

	assert_non_null(text);
	for (int i = 0; i < 2 && args && args[i]; i++)
		argv[i + 1] = args[i];
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(spawn_plan_fd(&plan, pipes[1], 1), 0);
	assert_int_equal(spawn_plan_fd(&plan, 2, 2), 0);
	assert_int_equal(spawn(&plan, &pid, NULL), 0);
	close(pipes[1]);
	assert_int_equal(fd_read_full(pipes[0], text, DOCUMENT_MAX, &len), 0);
	close(pipes[0]);
	assert_int_equal(spawn_wait(pid, &status), 0);
	assert_true(WIFEXITED(status));
	if (len > 0) {
		assert_int_equal(json_parse(text, len, &doc), 0);
		*ret = json_object_get(json_member(doc, "checks"));
	}
	return WEXITSTATUS(status);
}

/* The check @name, or NULL. */
static struct json_object *find(struct json_object *checks, const char *name)
{
	for (size_t i = 0; i < json_object_array_length(checks); i++) {
		struct json_object *c = json_object_array_get_idx(checks, i);
		const char *s;

		assert_int_equal(json_get_str(c, "name", 63, &s), 0);
		if (strcmp(s, name) == 0)
			return c;
	}
	return NULL;
}

static bool is_ok(struct json_object *checks, const char *name)
{
	bool ok = false;

	assert_non_null(find(checks, name));
	assert_int_equal(json_get_bool(find(checks, name), "ok", &ok), 0);
	return ok;
}

/* Every check has all its members; what is missed says what to do. */
static void check_form(struct json_object *checks)
{
	static const char *const expected[] = { "kvm",          "acceleration", "vhost-vsock",
						"husk-vsock",   "vsock",        "qemu",
						"guest-kernel", "memfd",        "landlock",
						"seccomp",      "user",         "scratch" };

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_non_null(find(checks, expected[i]));
	for (size_t i = 0; i < json_object_array_length(checks); i++) {
		struct json_object *c = json_object_array_get_idx(checks, i);
		const char *value, *detail, *remedy;
		bool ok;

		assert_int_equal(json_get_bool(c, "ok", &ok), 0);
		assert_int_equal(json_get_str(c, "value", TEXT_MAX, &value), 0);
		assert_int_equal(json_get_str(c, "detail", TEXT_MAX, &detail), 0);
		assert_int_equal(json_get_str(c, "remedy", TEXT_MAX, &remedy), 0);
		assert_true(value[0] != '\0' && detail[0] != '\0');
		assert_int_equal(ok, remedy[0] == '\0');
	}
}

/* A kernel whose banner is at the end of the file, where nothing follows it. */
static void make_kernel(void **state)
{
	static const char banner[] = "\x7f"
				     "ELF...Linux version 6.12.0-test";

	fixture_write(state, "vmlinux", banner, sizeof(banner) - 1);
	fixture_write(state, "initramfs", "x", 1);
}

static void test_complete(void **state)
{
	cleanup_json struct json_object *checks = NULL;
	char option[4200];
	char *args[] = { option, NULL };
	const char *value;

	make_kernel(state);
	snprintf(option, sizeof(option), "--kernel=%s", fixture_path(state));
	assert_int_equal(doctor(args, &checks), 0);
	check_form(checks);
	assert_true(is_ok(checks, "qemu"));
	assert_true(is_ok(checks, "qemu-devices"));
	assert_true(is_ok(checks, "guest-kernel"));
	assert_int_equal(json_get_str(find(checks, "kernel-given"), "value", TEXT_MAX, &value), 0);
	assert_non_null(strstr(value, "6.12.0-test"));
}

static void test_no_kernel(void **state)
{
	cleanup_json struct json_object *checks = NULL;
	char option[4200];
	char *args[] = { option, NULL };

	snprintf(option, sizeof(option), "--kernel=%s", fixture_path(state));
	assert_int_equal(doctor(args, &checks), 1);
	check_form(checks);
	assert_false(is_ok(checks, "guest-kernel"));
}

/* A program that is not a QEMU, one that is not there, one whose name is not a text. */
static void test_bad_qemu(void **state)
{
	static char no_qemu[] = "--qemu=/bin/false";
	static char missing[] = "--qemu=/nonexistent/qemu";
	static char no_text[] = "--qemu=/nonexistent/\xff\xfe\x1b[2J";
	static char *const bad[] = { no_qemu, missing, no_text };
	char kernel[4200];

	make_kernel(state);
	snprintf(kernel, sizeof(kernel), "--kernel=%s", fixture_path(state));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cleanup_json struct json_object *checks = NULL;
		char *args[] = { bad[i], kernel, NULL };

		assert_int_equal(doctor(args, &checks), 1);
		check_form(checks);
		assert_false(is_ok(checks, "qemu"));
		assert_true(is_ok(checks, "guest-kernel"));
	}
}

/* It has the models' names in it, but is not a list of devices. */
static void test_qemu_without_devices(void **state)
{
	cleanup_json struct json_object *checks = NULL;
	char qemu[4200];
	char *args[] = { qemu, NULL };

	fixture_write(state, "qemu", "#!/bin/sh\necho virtio-scsi-device\n", 35);
	snprintf(qemu, sizeof(qemu), "%s/qemu", fixture_path(state));
	assert_int_equal(chmod(qemu, 0755), 0);
	snprintf(qemu, sizeof(qemu), "--qemu=%s/qemu", fixture_path(state));
	assert_int_equal(doctor(args, &checks), 1);
	assert_true(is_ok(checks, "qemu"));
	assert_false(is_ok(checks, "qemu-devices"));
}

static void test_unknown_option(void **state)
{
	cleanup_json struct json_object *checks = NULL;
	char option[] = "--nonsense";
	char *args[] = { option, NULL };

	(void)state;
	assert_int_equal(doctor(args, &checks), 254);
	assert_null(checks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_complete),       fixture_test(test_no_kernel),
		fixture_test(test_bad_qemu),       fixture_test(test_qemu_without_devices),
		fixture_test(test_unknown_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
