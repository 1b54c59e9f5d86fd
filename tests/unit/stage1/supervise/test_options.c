/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/supervise/options.h"

#include <errno.h>
#include <string.h>

#include "tests/support/fake_backend.h"
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
	options_deinit(o);
	options_init(o);
	return options_parse(argc, argv, &fake_backend, NULL, o, e);
}

static void test_defaults(void **state)
{
	(void)state;
	CLEANUP(options_deinit) struct options o;
	struct err e;
	options_init(&o);
	assert_int_equal(parse(&o, &e, UUID, NULL), 0);
	assert_string_equal(o.uuid, UUID);
	assert_false(o.debug);
	assert_null(o.cache_dir);
	assert_false(o.disable_capabilities || o.disable_seccomp || o.disable_paths);
	assert_int_equal(o.boot_timeout, OPTIONS_BOOT_TIMEOUT_DEFAULT);
}

static void test_all(void **state)
{
	(void)state;
	CLEANUP(options_deinit) struct options o;
	struct err e;
	options_init(&o);
	assert_int_equal(parse(&o, &e, "--debug", "--interactive", "--detach", "--hostname=h",
			       "--colour=green", "--cache-dir=/c", "--boot-timeout=1",
			       "--start-ns=9", "--disable-capabilities-restriction",
			       "--disable-paths", "--disable-seccomp", "--cgroup-parent=a-b.slice",
			       UUID, NULL),
			 0);
	assert_true(o.debug && o.interactive && o.detach);
	assert_true(o.disable_capabilities && o.disable_seccomp && o.disable_paths);
	assert_string_equal(o.hostname, "h");
	assert_string_equal(o.cache_dir, "/c");
	assert_int_equal(o.boot_timeout, 1);
	assert_int_equal(o.start_ns, 9);
	assert_string_equal(o.cgroup_parent, "a.slice/a-b.slice");
}

static void test_errors(void **state)
{
	(void)state;
	CLEANUP(options_deinit) struct options o;
	struct err e;
	options_init(&o);
	assert_int_equal(parse(&o, &e, NULL), 0);
	assert_null(o.uuid);
	assert_int_equal(parse(&o, &e, "not-a-uuid", NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, UUID, UUID, NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "--unknown", UUID, NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "--colour", NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "--colour=bad", UUID, NULL), -EINVAL);
	assert_string_equal(e.text, "--colour=bad is bad"); /* the backend's own words */
	assert_int_equal(parse(&o, &e, "--boot-timeout=86401", UUID, NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "--boot-timeout=x", UUID, NULL), -EINVAL);
	assert_int_equal(parse(&o, &e, "--cgroup-parent=/a/..", UUID, NULL), -EINVAL);
	assert_string_equal(e.text,
			    "--cgroup-parent=/a/.. is neither a path of a control group "
			    "(/a/b), of up to 511 bytes, nor a slice (a-b.slice), nor one for "
			    "this pod (+/a/b)");
}

static void test_network(void **state)
{
	(void)state;
	CLEANUP(options_deinit) struct options o;
	struct err e;
	options_init(&o);
	assert_int_equal(parse(&o, &e, "--net=a:IP=192.0.2.1", "--net=b", "--net-config=/c",
			       "--cni-path=/p", "--dns=192.0.2.2", "--dns-search=s", "--dns-opt=o",
			       "--dns-domain=d", "--hosts-entry=192.0.2.3=h", UUID, NULL),
			 0);
	assert_int_equal(o.network.nets.n, 2);
	assert_string_equal(o.network.nets.v[0], "a:IP=192.0.2.1");
	assert_string_equal(o.network.config_dirs.v[0], "/c");
	assert_string_equal(o.network.plugin_dirs.v[0], "/p");
	assert_string_equal(o.names.servers.v[0], "192.0.2.2");
	assert_string_equal(o.names.search.v[0], "s");
	assert_string_equal(o.names.options.v[0], "o");
	assert_string_equal(o.names.domain, "d");
	assert_string_equal(o.names.hosts.v[0], "192.0.2.3=h");
	assert_int_equal(parse(&o, &e, "--net=a", "--net=b", "--net=c", "--net=d", "--net=e",
			       "--net=f", UUID, NULL),
			 0);
	assert_int_equal(parse(&o, &e, "--net=a", "--net=b", "--net=c", "--net=d", "--net=e",
			       "--net=f", "--net=g", UUID, NULL),
			 -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_defaults),
		fixture_test(test_all),
		fixture_test(test_errors),
		fixture_test(test_network),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
