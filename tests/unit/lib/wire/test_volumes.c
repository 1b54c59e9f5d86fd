/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/volumes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void test_paths(void **state)
{
	static const struct {
		const char *path, *clean;
		int r;
	} cases[] = {
		{ "/data", "/data", 0 },
		{ "//srv/./x/../data//", "/srv/data", 0 },
		{ "/../../etc", "/etc", 0 },
		{ "/a/..b/.c", "/a/..b/.c", 0 },
		{ "/device/sysx", "/device/sysx", 0 },
		{ "", NULL, -EINVAL },
		{ "data", NULL, -EINVAL },
		{ "/a\xff", NULL, -EINVAL },
		{ "/", "/", 0 },
		{ "/a/..", "/", 0 },
		{ "/proc", NULL, -EPERM },
		{ "/x/../sys/fs/cgroup", NULL, -EPERM },
		{ "/dev/", NULL, -EPERM },
		{ "/dev/shm", "/dev/shm", 0 },
	};
	static char longest[AGENT_PATH_MAX + 2];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_free char *clean = NULL;
		assert_int_equal(volume_path_clean(cases[i].path, &clean), cases[i].r);
		if (cases[i].r == 0)
			assert_string_equal(clean, cases[i].clean);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[0] = '/';
	cleanup_free char *clean = NULL;
	assert_int_equal(volume_path_clean(longest, &clean), -EINVAL);
	longest[AGENT_PATH_MAX] = '\0';
	assert_int_equal(volume_path_clean(longest, &clean), 0);
	assert_string_equal(clean, longest);
}

static void test_names(void **state)
{
	static const char *const bad[] = { "", "-a", "a-", "A", "a/b", "..", "a_b", "a b", "+new" };
	char longest[AGENT_VOLUME_NAME_MAX + 2];
	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[AGENT_VOLUME_NAME_MAX + 1] = '\0';
	assert_false(agent_volume_is_valid(longest));
	longest[AGENT_VOLUME_NAME_MAX] = '\0';
	assert_true(agent_volume_is_valid(longest));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(agent_volume_is_valid(bad[i]));
}

static void test_texts(void **state)
{
	static const char *const bad_modes[] = { "", "8", "0x1", "-1", "10000", "007777" };
	enum volume_kind kind = VOLUME_IMAGE;
	int64_t mode = 1;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad_modes); i++)
		assert_int_equal(volume_mode_parse(bad_modes[i], &mode), -EINVAL);
	assert_int_equal(mode, 1);
	assert_int_equal(volume_mode_parse("01777", &mode), 0);
	assert_int_equal(mode, 01777);
	assert_int_equal(volume_mode_parse("0", &mode), 0);
	assert_int_equal(mode, 0);
	assert_int_equal(volume_kind_parse("disk", "", &kind), -EINVAL);
	assert_int_equal(volume_kind_parse("host", "memory", &kind), -EINVAL);
	assert_int_equal(volume_kind_parse("empty", "disk", &kind), -EINVAL);
	assert_int_equal(kind, VOLUME_IMAGE);
	assert_int_equal(volume_kind_parse("empty", "memory", &kind), 0);
	assert_int_equal(kind, VOLUME_MEMORY);
	assert_int_equal(volume_kind_parse("empty", "", &kind), 0);
	assert_int_equal(kind, VOLUME_EMPTY);
	assert_int_equal(volume_kind_parse("block", "", &kind), 0);
	assert_int_equal(kind, VOLUME_BLOCK);
}

static void test_source(void **state)
{
	static char longest[AGENT_PATH_MAX + 2];
	CLEANUP(volume_deinit) struct volume v;
	CLEANUP(volumes_deinit) struct volumes list = { 0 };
	(void)state;
	volume_init(&v);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[0] = '/';
	assert_int_equal(volume_set_source(&v, longest), -EINVAL);
	assert_int_equal(volume_set_source(&v, "data"), -EINVAL);
	assert_int_equal(volume_set_source(&v, ""), -EINVAL);
	assert_null(v.source);
	longest[AGENT_PATH_MAX] = '\0';
	assert_int_equal(volume_set_source(&v, longest), 0);
	assert_int_equal(volume_set_source(&v, "/data"), 0);
	snprintf(v.name, sizeof(v.name), "v");
	v.kind = VOLUME_HOST;
	assert_int_equal(volumes_add(&list, &v), 0);
	assert_ptr_not_equal(list.v[0].source, v.source);
	assert_string_equal(list.v[0].source, "/data");
	assert_true(volumes_have(&list, VOLUME_HOST));
	assert_false(volumes_have(&list, VOLUME_BLOCK));
}

static void test_limits(void **state)
{
	CLEANUP(volumes_deinit) struct volumes v = { 0 };
	CLEANUP(volume_mounts_deinit) struct volume_mounts m = { 0 };
	struct volume one;
	char path[32];
	(void)state;
	volume_init(&one);
	for (size_t i = 0; i < VOLUMES_MAX; i++) {
		snprintf(one.name, sizeof(one.name), "v%zu", i);
		assert_int_equal(volumes_add(&v, &one), 0);
	}
	assert_int_equal(volumes_add(&v, &one), -EEXIST);
	snprintf(one.name, sizeof(one.name), "more");
	assert_int_equal(volumes_add(&v, &one), -E2BIG);
	for (size_t i = 0; i < AGENT_MOUNTS_MAX; i++) {
		snprintf(path, sizeof(path), "/p%zu", i);
		assert_int_equal(volume_mounts_add(&m, "v", path, false), 0);
	}
	assert_int_equal(volume_mounts_add(&m, "v", "/p0/", false), -EEXIST);
	assert_int_equal(volume_mounts_add(&m, "v", "/more", false), -E2BIG);
}

static struct json_object *parse(const char *text)
{
	struct json_object *obj = NULL;
	if (json_parse(text, strlen(text), &obj) < 0)
		fail_msg("%s", text);
	return obj;
}

static void test_json(void **state)
{
	static const char text[] =
		"{\"volumes\":[{\"name\":\"data\",\"kind\":\"empty\",\"readOnly\":false,"
		"\"mode\":\"0770\",\"uid\":5,\"gid\":4294967294},"
		"{\"name\":\"mem\",\"kind\":\"empty\",\"medium\":\"memory\",\"mode\":\"0755\","
		"\"uid\":0,\"gid\":0,\"size\":4096},"
		"{\"name\":\"host\",\"kind\":\"host\",\"readOnly\":true,\"source\":\"/srv\","
		"\"recursive\":false,\"cache\":\"never\"},"
		"{\"name\":\"block\",\"kind\":\"block\",\"source\":\"/disk\","
		"\"format\":\"qcow2\"}],"
		"\"mounts\":[{\"volume\":\"data\",\"path\":\"/a\"},"
		"{\"volume\":\"own\",\"path\":\"/b\",\"readOnly\":true,\"noExec\":true,"
		"\"noSuid\":true,\"appVolume\":"
		"{\"name\":\"own\",\"kind\":\"empty\",\"medium\":\"image\",\"mode\":\"0755\","
		"\"uid\":0,\"gid\":0}}],"
		"\"mountPoints\":[{\"name\":\"p\",\"path\":\"/c\"}]}";
	cleanup_json struct json_object *obj = parse(text), *again = json_object_new_object();
	CLEANUP(volumes_deinit) struct volumes v = { 0 }, own = { 0 };
	CLEANUP(volume_mounts_deinit) struct volume_mounts m = { 0 }, points = { 0 };
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(volumes_read(obj, &v, &e), 0);
	assert_int_equal(app_mounts_read(obj, &m, &own, &e), 0);
	assert_int_equal(mount_points_read(obj, &points, &e), 0);
	assert_int_equal(volumes_find(&v, "data")->mode, 0770);
	assert_true(volumes_find(&v, "data")->says_read_only);
	assert_false(volumes_find(&v, "mem")->says_read_only);
	assert_string_equal(volumes_find(&v, "host")->source, "/srv");
	assert_false(volumes_find(&v, "host")->recursive);
	assert_true(volumes_find(&v, "host")->no_cache);
	assert_int_equal(volumes_find(&v, "block")->format, VOLUME_QCOW2);
	assert_int_equal(volumes_find(&own, "own")->kind, VOLUME_IMAGE);
	assert_true(volume_mounts_find(&m, "/b")->read_only);
	assert_true(volume_mounts_find(&m, "/b")->no_exec);
	assert_true(volume_mounts_find(&m, "/b")->no_suid);
	assert_false(volume_mounts_find(&m, "/a")->no_exec);
	assert_int_equal(volumes_write(&v, again), 0);
	assert_int_equal(app_mounts_write(&m, &own, again), 0);
	assert_int_equal(mount_points_write(&points, again), 0);
	cleanup_buf struct buf out;
	buf_init(&out, sizeof(text) + 100);
	assert_int_equal(json_write(again, false, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(buf_data(&out), text);
}

#define GOOD "\"name\":\"v\",\"kind\":\"empty\""
#define HOST "\"name\":\"v\",\"kind\":\"host\",\"source\":"

static void test_bad_json(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "{\"volumes\":{}}", "\"volumes\" is not a list" },
		{ "{\"volumes\":[{}]}", "\"volumes\" member 0: \"name\" is not a name" },
		{ "{\"volumes\":[{\"name\":\"v\"}]}", "\"kind\" and \"medium\"" },
		{ "{\"volumes\":[{\"name\":\"v\",\"kind\":\"disk\"}]}", "none that this version" },
		{ "{\"volumes\":[{\"name\":\"v\",\"kind\":\"host\"}]}", "no absolute path" },
		{ "{\"volumes\":[{" HOST "\"srv\"}]}", "no absolute path" },
		{ "{\"volumes\":[{" HOST "7}]}", "no absolute path" },
		{ "{\"volumes\":[{" HOST "\"/srv\",\"recursive\":1}]}", "neither true nor false" },
		{ "{\"volumes\":[{" HOST "\"/srv\",\"cache\":\"none\"}]}", "\"cache\" is neither" },
		{ "{\"volumes\":[{\"name\":\"v\",\"kind\":\"block\",\"source\":\"/d\","
		  "\"format\":\"vmdk\"}]}",
		  "\"format\" is neither" },
		{ "{\"volumes\":[{" GOOD ",\"mode\":493}]}", "octal" },
		{ "{\"volumes\":[{" GOOD ",\"mode\":\"9\"}]}", "octal" },
		{ "{\"volumes\":[{" GOOD ",\"uid\":4294967295}]}", "\"uid\" is not a number" },
		{ "{\"volumes\":[{" GOOD ",\"readOnly\":1}]}", "neither true nor false" },
		{ "{\"mounts\":[{\"volume\":\"v\",\"path\":\"/x\",\"noExec\":1}]}",
		  "\"noExec\" is neither true nor false" },
		{ "{\"mounts\":[{\"volume\":\"v\",\"path\":\"/x\",\"noSuid\":\"\"}]}",
		  "\"noSuid\" is neither true nor false" },
		{ "{\"volumes\":[{" GOOD ",\"size\":-1}]}", "\"size\" is not a number" },
		{ "{\"volumes\":[{" GOOD "},{" GOOD "}]}", "duplicate volume name \"v\"" },
		{ "{\"mounts\":[{\"volume\":\"v\"}]}", "\"path\" is missing" },
		{ "{\"mounts\":[{\"volume\":\"v\",\"path\":\"x\"}]}", "Invalid argument" },
		{ "{\"mounts\":[{\"volume\":\"v\",\"path\":\"/proc/x\"}]}", "not permitted" },
		{ "{\"mounts\":[{\"volume\":\"w\",\"path\":\"/x\",\"appVolume\":{" GOOD "}}]}",
		  "another name" },
		{ "{\"mountPoints\":[{\"name\":\"v\",\"path\":\"x\"}]}",
		  "\"mountPoints\" member 0" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_json struct json_object *obj = parse(cases[i].text);
		CLEANUP(volumes_deinit) struct volumes v = { 0 }, own = { 0 };
		CLEANUP(volume_mounts_deinit) struct volume_mounts m = { 0 }, points = { 0 };
		struct err e = ERR_INIT;
		int r = volumes_read(obj, &v, &e);
		if (r == 0)
			r = app_mounts_read(obj, &m, &own, &e);
		if (r == 0)
			r = mount_points_read(obj, &points, &e);
		assert_true(r < 0);
		if (!strstr(e.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, e.text);
	}
}

/* An image cannot have a volume in /proc or /dev, and nobody is there to be told. */
static void test_points_nowhere(void **state)
{
	cleanup_json struct json_object *obj =
		parse("{\"mountPoints\":[{\"name\":\"a\",\"path\":\"/proc\"},"
		      "{\"name\":\"b\",\"path\":\"/b\"},{\"name\":\"c\",\"path\":\"/b/\"},"
		      "{\"name\":\"d\",\"path\":\"/dev/d\"}]}");
	CLEANUP(volume_mounts_deinit) struct volume_mounts points = { 0 };
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(mount_points_read(obj, &points, &e), 0);
	assert_int_equal(points.n, 1);
	assert_string_equal(points.v[0].volume, "b");
}

static int copy_document(void *ctx)
{
	struct json_object *from = ctx;
	CLEANUP(volumes_deinit) struct volumes v = { 0 }, own = { 0 };
	CLEANUP(volume_mounts_deinit) struct volume_mounts m = { 0 };
	cleanup_json struct json_object *to = json_object_new_object();
	struct err e = ERR_INIT;
	int r = to ? volumes_read(from, &v, &e) : -ENOMEM;
	if (r == 0)
		r = app_mounts_read(from, &m, &own, &e);
	if (r == 0)
		r = volumes_write(&v, to);
	return r == 0 ? app_mounts_write(&m, &own, to) : r;
}

static void test_no_memory(void **state)
{
	cleanup_json struct json_object *from =
		parse("{\"volumes\":[{" HOST "\"/srv\"}],"
		      "\"mounts\":[{\"volume\":\"v\",\"path\":\"/x\"}]}");
	(void)state;
	for_each_failing_alloc(copy_document, from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),          cmocka_unit_test(test_names),
		cmocka_unit_test(test_texts),          cmocka_unit_test(test_limits),
		cmocka_unit_test(test_json),           cmocka_unit_test(test_bad_json),
		cmocka_unit_test(test_points_nowhere), cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_source),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
