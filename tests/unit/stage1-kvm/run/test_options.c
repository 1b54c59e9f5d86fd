/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/run/options.h"

#include <errno.h>
#include <string.h>

#include "tests/support/fixture.h"

#define UUID "12345678-1234-4234-8234-123456789abc"

static __attribute__((sentinel)) int parse(struct options *o, struct err *e, ...)
{
	char name[] = "run";
	char *argv[24] = { name };
	int argc = 1;
	va_list ap;
	va_start(ap, e);
	char *word;
	while ((word = va_arg(ap, char *)))
		argv[argc++] = word;
	va_end(ap);
	*e = ERR_INIT;
	return options_parse(argc, argv, o, e);
}

static void test_defaults(void **state)
{
	(void)state;
	struct options o;
	struct err e;
	assert_int_equal(parse(&o, &e, UUID, NULL), 0);
	assert_string_equal(o.uuid, UUID);
	assert_false(o.debug);
	assert_null(o.accel);
	assert_int_equal(o.memory, 0);
	assert_int_equal(o.cpus, 0);
	assert_false(o.disable_capabilities || o.disable_seccomp || o.disable_paths);
	assert_int_equal(o.boot_timeout, OPTIONS_BOOT_TIMEOUT_DEFAULT);
}

static void test_all(void **state)
{
	(void)state;
	struct options o;
	struct err e;
	assert_int_equal(parse(&o, &e, "--debug", "--interactive", "--detach", "--hostname=h",
			       "--accel=tcg", "--machine=q35", "--vsock=user", "--kernel=small",
			       "--qemu=/q", "--cache-dir=/c", "--memory=128M", "--cpus=64",
			       "--boot-timeout=1", "--scratch-size=32M", "--start-ns=9",
			       "--disable-capabilities-restriction", "--disable-paths",
			       "--disable-seccomp", UUID, NULL),
			 0);
	assert_true(o.debug && o.interactive && o.detach);
	assert_true(o.disable_capabilities && o.disable_seccomp && o.disable_paths);
	assert_string_equal(o.hostname, "h");
	assert_string_equal(o.machine, "q35");
	assert_int_equal(o.memory, 128 << 20);
	assert_int_equal(o.cpus, 64);
	assert_int_equal(o.start_ns, 9);
}

static void test_errors(void **state)
{
	(void)state;
	struct options o;
	struct err e;
	assert_int_equal(parse(&o, &e, NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "not-a-uuid", NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, UUID, UUID, NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "--unknown", UUID, NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "--cpus=65", UUID, NULL), -EINVAL);
	assert_non_null(strstr(e.text, "--cpus=65"));
	assert_int_equal(parse(&o, &e, "--cpus=0", UUID, NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "--memory=63M", UUID, NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "--memory=64M", UUID, NULL), 0);
	assert_int_equal(parse(&o, &e, "--memory=1T", UUID, NULL), 0);
	assert_int_equal(parse(&o, &e, "--memory=1025G", UUID, NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "--boot-timeout=86401", UUID, NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "--scratch-size=33554431", UUID, NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "--scratch-size=1T", UUID, NULL), 0);
	assert_int_equal(parse(&o, &e, "--scratch-size=1099511627777", UUID, NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "--boot-timeout=x", UUID, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_defaults),
		fixture_test(test_all),
		fixture_test(test_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
