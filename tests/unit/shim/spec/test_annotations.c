/* SPDX-License-Identifier: Apache-2.0 */
/* Through the parser of whole specifications, which has none for annotations. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/spec/oci_spec.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/shim/spec/specs.h"

/* Where a container belongs can be read of one that is refused otherwise. */
static void test_annotations(void **state)
{
	static const char without_more[] =
		"{\"annotations\":{\"io.kubernetes.cri.sandbox-id\":\"p\"}}";
	CLEANUP(oci_spec_deinit) struct oci_spec a, b, c;
	struct err e = ERR_INIT;
	(void)state;
	oci_spec_init(&a);
	oci_spec_init(&b);
	oci_spec_init(&c);
	assert_int_equal(oci_annotations_parse(without_more, strlen(without_more), &a, &e), 0);
	assert_string_equal(a.sandbox_id, "p");
	assert_int_equal(oci_annotations_parse("{}", 2, &b, &e), 0);
	assert_null(b.sandbox_id);
	assert_int_equal(oci_annotations_parse("[]", 2, &c, &e), -EBADMSG);
	refuse("{\"annotations\":{\"io.kubernetes.cri.container-name\":7}}", -EBADMSG,
	       "\"annotations\"");
}

static void check_sizes(const char *annotations, int64_t memory, int64_t millis, int error)
{
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	struct err e = ERR_INIT;
	cleanup_free char *text = NULL;
	assert_true(
		asprintf(&text,
			 "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\"%s},"
			 "\"linux\":{\"namespaces\":[{\"type\":\"network\"},{\"type\":\"pid\"},"
			 "{\"type\":\"ipc\"}]}}",
			 annotations) > 0);
	assert_int_equal(parse(text, &s, &e), error);
	assert_true(error == 0 || strstr(e.text, "annotation \"io.kubernetes.cri.sandbox-"));
	assert_int_equal(s.pod_memory, memory);
	assert_int_equal(s.pod_cpu_millis, millis);
}

#define MEMORY(n) ",\"io.kubernetes.cri.sandbox-memory\":\"" n "\""
#define QUOTA(n)  ",\"io.kubernetes.cri.sandbox-cpu-quota\":\"" n "\""
#define PERIOD(n) ",\"io.kubernetes.cri.sandbox-cpu-period\":\"" n "\""

static void test_sizes(void **state)
{
	(void)state;
	check_sizes("", 0, 0, 0);
	check_sizes(MEMORY("0") QUOTA("-1") PERIOD("100000"), 0, 0, 0);
	check_sizes(MEMORY("67108864"), 67108864, 0, 0);
	check_sizes(MEMORY("1099511627776"), INT64_C(1) << 40, 0, 0);
	check_sizes(MEMORY("1099511627777"), 0, 0, -EBADMSG);
	check_sizes(MEMORY("1Gi"), 0, 0, -EBADMSG);
	check_sizes(QUOTA("150000"), 0, 1500, 0);
	check_sizes(QUOTA("150000") PERIOD("50000"), 0, 3000, 0);
	check_sizes(QUOTA("1") PERIOD("100000"), 0, ISOLATOR_CPU_MIN, 0);
	check_sizes(QUOTA("x"), 0, 0, -EBADMSG);
	check_sizes(PERIOD("1000001"), 0, 0, -EBADMSG);
	check_sizes(",\"io.kubernetes.cri.sandbox-memory\":1", 0, 0, -EBADMSG);
}

#define BY_ITSELF "{\"annotations\":{%s},\"process\":{\"args\":[\"true\"]},"
#define NETNS                                                                                     \
	"\"linux\":{\"namespaces\":[{\"type\":\"network\"},{\"type\":\"pid\"},{\"type\":\"ipc\"}" \
	"]}}"

/* What a container by itself asks for, each on a line of its own; or why not. */
static void check_wishes(const char *annotations, int code, const char *want)
{
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	struct err e = ERR_INIT;
	cleanup_free char *text = NULL;
	char got[256] = "";
	assert_true(asprintf(&text, BY_ITSELF NETNS, annotations) > 0);
	assert_int_equal(parse(text, &s, &e), code);
	for (size_t i = 0; i < s.wishes.n && code == 0; i++)
		strcat(strcat(got, s.wishes.v[i]), "\n");
	if (code == 0)
		assert_string_equal(got, want);
	else if (!strstr(e.text, want))
		fail_msg("\"%s\" instead of \"%s\"", e.text, want);
}

static void test_wishes(void **state)
{
	char longest[100] = "\"husk/memory\":\"";
	(void)state;
	check_wishes("\"other/memory\":\"1\",\"husk\":\"x\",\"memory\":\"1\"", 0, "");
	check_wishes("\"husk/memory\":\"1Gi\"", 0, "memory=1Gi\n");
	check_wishes("\"husk/kernel\":\"packaged\",\"husk/cpus\":\"2\",\"husk/memory\":\"64M\"", 0,
		     "kernel=packaged\ncpus=2\nmemory=64M\n");
	/* Never the host's choice of files: */
	check_wishes(
		"\"husk/kernel\":\"/boot\"", -EBADMSG,
		"annotation \"husk/kernel\": not a kernel, which are auto, small and packaged");
	check_wishes("\"husk/kernel\":\"\"", -EBADMSG, "not a kernel");
	check_wishes("\"husk/qemu\":\"/bin/sh\"", -EOPNOTSUPP,
		     "annotation \"husk/qemu\": there is none of that name (husk/cpus, husk/kernel "
		     "and husk/memory are)");
	check_wishes("\"husk/\":\"x\"", -EOPNOTSUPP, "annotation \"husk/\"");
	check_wishes("\"husk/cpus\":2", -EBADMSG,
		     "annotation \"husk/cpus\": not a number of processors");
	check_wishes("\"husk/cpus\":\"2\\n\"", -EBADMSG, "not a number of processors");
	check_wishes("\"husk/memory\":\"1Gi --qemu=/x\"", -EBADMSG,
		     "annotation \"husk/memory\": not a size such as 1Gi");
	memset(longest + strlen(longest), '0', 62);
	strcat(longest, "1\"");
	check_wishes(longest, 0,
		     "memory=000000000000000000000000000000000000000000000000000000000"
		     "000001\n");
	longest[strlen(longest) - 1] = '1';
	strcat(longest, "\"");
	check_wishes(longest, -EBADMSG, "annotation \"husk/memory\": not a size");
}

/* Of the containers in it nothing more is asked: containerd says the pod's annotations again. */
static void test_wishes_of_pods(void **state)
{
	static const char sandbox[] =
		"{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\","
		"\"husk/memory\":\"1Gi\"}," NETNS;
	static const char member[] =
		"{\"annotations\":{\"io.kubernetes.cri.sandbox-id\":\"p\",\"husk/memory\":\"1Gi\"},"
		"\"process\":{\"args\":[\"true\"]}," NETNS;
	CLEANUP(oci_spec_deinit) struct oci_spec a, b;
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(parse(sandbox, &a, &e), 0);
	assert_int_equal(a.wishes.n, 1);
	assert_int_equal(parse(member, &b, &e), 0);
	assert_int_equal(b.wishes.n, 0);
}

static int parse_wishes(void *ctx)
{
	struct oci_spec s;
	struct err e = ERR_INIT;
	int r = parse(ctx, &s, &e);
	oci_spec_deinit(&s);
	return r;
}

static void test_no_memory(void **state)
{
	static char text[] =
		"{\"annotations\":{\"husk/memory\":\"1Gi\",\"husk/cpus\":\"2\",\"husk/kernel\":"
		"\"auto\"},\"process\":{\"args\":[\"true\"]}," NETNS;
	(void)state;
	for_each_failing_alloc_lenient(parse_wishes, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_annotations), fixture_test(test_sizes),
		fixture_test(test_wishes),      fixture_test(test_wishes_of_pods),
		fixture_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
