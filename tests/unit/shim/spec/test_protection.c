/* SPDX-License-Identifier: Apache-2.0 */
/* What a container is kept from, through the parser of the whole specification. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "shim/spec/oci_spec.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define BEFORE                                                                                  \
	"{\"process\":{\"args\":[\"true\"]},\"linux\":{\"namespaces\":[{\"type\":\"network\"}," \
	"{\"type\":\"pid\"},{\"type\":\"ipc\"}]"
#define AFTER "}}"

#define DOCUMENT_MAX ((size_t)4 << 20)

static int parse(const char *members, struct oci_spec *ret, struct err *e)
{
	cleanup_buf struct buf b;
	buf_init(&b, DOCUMENT_MAX);
	assert_int_equal(buf_printf(&b, BEFORE "%s" AFTER, members), 0);
	oci_spec_init(ret);
	return oci_spec_parse(buf_data(&b), buf_len(&b), ret, e);
}

static void check(const char *members, int code, const char *want)
{
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	struct err e = ERR_INIT;
	int r = parse(members, &s, &e);
	if (r != code || !strstr(e.text, want))
		fail_msg("%s: %d \"%s\" instead of %d \"%s\"", members, r, e.text, code, want);
}

#define WHOLE                                                                                     \
	",\"seccomp\":{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{\"names\":[\"read\"]," \
	"\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":0,\"value\":18446744073709551615,"    \
	"\"op\":\"SCMP_CMP_NE\"}]}]},\"maskedPaths\":[\"/a,b\",\"/c\"],\"readonlyPaths\":[\"/d\"]"

static void test_all(void **state)
{
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	const struct isolators *i = &s.app.isolators;
	struct err e = ERR_INIT;
	(void)state;
	if (parse(WHOLE, &s, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(
		i->profile,
		"{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{\"names\":[\"read\"],"
		"\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":0,"
		"\"value\":18446744073709551615,\"op\":\"SCMP_CMP_NE\"}]}]}");
	assert_int_equal(i->masked_paths.n, 2);
	assert_string_equal(i->masked_paths.v[0], "/a,b");
	assert_string_equal(i->read_only_paths.v[0], "/d");
	assert_false(isolators_open_paths(i) || isolators_unconfined(i));
}

/* What is not said, or null, is nothing: as with other runtimes the container may then. */
static void test_nothing(void **state)
{
	static const char *const cases[] = {
		"",
		",\"seccomp\":null,\"maskedPaths\":null,\"readonlyPaths\":[],\"devices\":null",
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(oci_spec_deinit) struct oci_spec s;
		struct err e = ERR_INIT;
		assert_int_equal(parse(cases[i], &s, &e), 0);
		assert_true(isolators_open_paths(&s.app.isolators));
		assert_true(isolators_unconfined(&s.app.isolators));
	}
}

static void test_wrong(void **state)
{
	static const struct {
		const char *members;
		int code;
		const char *want;
	} cases[] = {
		{ ",\"seccomp\":{}", -EBADMSG, "\"linux.seccomp\": it has no \"defaultAction\"" },
		{ ",\"seccomp\":7", -EBADMSG, "\"linux.seccomp\"" },
		{ ",\"seccomp\":{\"defaultAction\":1.5}", -EINVAL, "\"linux.seccomp\"" },
		{ ",\"maskedPaths\":7", -EBADMSG, "\"linux.maskedPaths\"" },
		{ ",\"maskedPaths\":[\"proc\"]", -EINVAL,
		  "\"linux.maskedPaths\": \"proc\" is not an absolute path" },
		{ ",\"readonlyPaths\":[7]", -EBADMSG, "\"linux.readonlyPaths\"" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(cases[i].members, cases[i].code, cases[i].want);
}

#define ALL "\"resources\":{\"devices\":[{\"allow\":true,\"access\":\"rwm\"}]}"

static void test_devices(void **state)
{
	static const struct {
		const char *members;
		int code;
		const char *want;
	} cases[] = {
		{ ",\"devices\":7", -EBADMSG, "\"linux.devices\" is not a list" },
		{ ",\"devices\":[{\"path\":\"/dev/x\"}]", -EBADMSG, "\"linux.devices\"" },
		{ ",\"resources\":{\"devices\":{}}", -EBADMSG, "\"linux.resources.devices\"" },
		{ ",\"devices\":[{\"path\":\"/dev/null\",\"type\":\"c\",\"major\":1,\"minor\":3}]",
		  0, "" },
		{ ",\"devices\":[{\"path\":\"/dev/null\",\"type\":\"c\",\"major\":1,\"minor\":1}]",
		  -EOPNOTSUPP, "\"/dev/null\" of the host" },
		{ ",\"devices\":[{\"path\":\"/dev/null\",\"type\":\"b\",\"major\":1,\"minor\":3}]",
		  -EOPNOTSUPP, "\"/dev/null\" of the host" },
		{ ",\"devices\":[{\"path\":\"/dev/sda\",\"type\":\"b\",\"major\":8,\"minor\":0}]",
		  -EOPNOTSUPP, "\"/dev/sda\" of the host is not to be had in a pod" },
		{ ",\"devices\":[{\"path\":\"/dev/p\",\"type\":\"p\"}]", -EOPNOTSUPP, "/dev/p" },
		/* One of a kind is not all. */
		{ ",\"devices\":[{\"path\":\"/dev/sda\",\"type\":\"b\",\"major\":8,\"minor\":0}],"
		  "\"resources\":{\"devices\":[{\"allow\":false,\"access\":\"rwm\"},{\"allow\":true,"
		  "\"type\":\"b\",\"major\":8,\"minor\":0},{\"allow\":true,\"type\":\"a\",\"major\":8}]}",
		  -EOPNOTSUPP, "/dev/sda" },
		{ ",\"devices\":[{\"path\":\"/dev/sda\",\"type\":\"b\",\"major\":8,\"minor\":0}]," ALL,
		  0, "" },
		{ ",\"devices\":[7]," ALL, -EBADMSG, "\"linux.devices\"" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(cases[i].members, cases[i].code, cases[i].want);
}

/* @n paths of a kind. */
static char *paths(size_t n)
{
	cleanup_buf struct buf b;
	buf_init(&b, DOCUMENT_MAX);
	assert_int_equal(buf_printf(&b, ",\"maskedPaths\":["), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&b, "%s\"/%zu\"", i > 0 ? "," : "", i), 0);
	assert_int_equal(buf_append(&b, "]", 2), 0);
	return strdup(buf_data(&b));
}

/* A profile of so many bytes as the pod's manifest has it. */
static char *profile(size_t size)
{
	static const char front[] = ",\"seccomp\":{\"defaultAction\":\"";
	size_t in_front = strlen(front), frame = strlen("{\"defaultAction\":\"\"}");
	char *text = calloc(1, in_front + size + 1);
	assert_non_null(text);
	memcpy(text, front, in_front);
	memset(text + in_front, 'x', size - frame);
	memcpy(text + in_front + size - frame, "\"}", 2);
	return text;
}

static void test_limits(void **state)
{
	cleanup_free char *most = paths(AGENT_PATHS_MAX), *too_many = paths(AGENT_PATHS_MAX + 1);
	cleanup_free char *longest = profile(ISOLATOR_PROFILE_MAX);
	cleanup_free char *too_long = profile(ISOLATOR_PROFILE_MAX + 1);
	(void)state;
	check(most, 0, "");
	check(too_many, -E2BIG, "\"linux.maskedPaths\" has more than 4096 members");
	check(longest, 0, "");
	check(too_long, -E2BIG, "\"linux.seccomp\"");
}

static int parse_whole(void *ctx)
{
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	static const char text[] = BEFORE WHOLE AFTER;
	(void)ctx;
	oci_spec_init(&s);
	int r = oci_spec_parse(text, strlen(text), &s, NULL);
	return r == 0 && (!s.app.isolators.profile || s.app.isolators.masked_paths.n != 2) ? 1 : r;
}

static void test_allocations(void **state)
{
	(void)state;
	for_each_failing_alloc_lenient(parse_whole, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),    cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_wrong),  cmocka_unit_test(test_devices),
		cmocka_unit_test(test_limits), cmocka_unit_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
