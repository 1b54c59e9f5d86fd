/* SPDX-License-Identifier: Apache-2.0 */
#include "host/manifest/volumes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fixture.h"

static void test_volume(void **state)
{
	CLEANUP(volumes_deinit) struct volumes v = { 0 };
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(volumes_add_text(&v, "data,kind=empty", &e), 0);
	assert_int_equal(v.v[0].kind, VOLUME_EMPTY);
	assert_int_equal(v.v[0].mode, 0755);
	assert_false(v.v[0].says_read_only);
	assert_int_equal(volumes_add_text(&v,
					  "m,kind=empty,medium=memory,size=64Ki,mode=01777,uid=7,"
					  "gid=4294967294,readOnly=false",
					  &e),
			 0);
	assert_int_equal(v.v[1].kind, VOLUME_MEMORY);
	assert_int_equal(v.v[1].size, 65536);
	assert_int_equal(v.v[1].mode, 01777);
	assert_int_equal(v.v[1].uid, 7);
	assert_int_equal(v.v[1].gid, 4294967294);
	assert_true(v.v[1].says_read_only);
	assert_int_equal(volumes_add_text(&v, "data,kind=empty", &e), -EEXIST);
	assert_non_null(strstr(e.text, "duplicate volume name \"data\""));
}

static void test_sources(void **state)
{
	CLEANUP(volumes_deinit) struct volumes v = { 0 };
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(volumes_add_text(&v, "a,kind=host,source=/a%2cb", &e), 0);
	assert_string_equal(v.v[0].source, "/a,b");
	assert_true(v.v[0].recursive);
	assert_false(v.v[0].no_cache);
	assert_int_equal(volumes_add_text(&v,
					  "b,kind=host,source=/b,recursive=false,cache=never,"
					  "readOnly=true",
					  &e),
			 0);
	assert_false(v.v[1].recursive);
	assert_true(v.v[1].no_cache);
	assert_true(v.v[1].read_only);
	assert_int_equal(volumes_add_text(&v, "c,kind=block,source=/c", &e), 0);
	assert_int_equal(v.v[2].format, VOLUME_RAW);
	assert_int_equal(volumes_add_text(&v, "d,kind=block,source=/d,format=qcow2", &e), 0);
	assert_int_equal(v.v[3].format, VOLUME_QCOW2);
}

/* Before anything is made for the pod. */
static void test_sources_are_looked_at(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "h,kind=host,source=/nowhere", "volume \"h\": \"/nowhere\": No such file" },
		{ "h,kind=host,source=/dev/null", "neither a directory nor a regular file" },
		{ "b,kind=block,source=/nowhere", "volume \"b\": \"/nowhere\": No such file" },
		{ "b,kind=block,source=/", "neither a regular file nor a block device" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(volumes_deinit) struct volumes v = { 0 };
		struct err e = ERR_INIT;
		assert_int_equal(volumes_add_text(&v, cases[i].text, &e), 0);
		assert_true(volumes_check_source(&v.v[0], false, &e) < 0);
		if (!strstr(e.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, e.text);
	}
}

static void test_refused_volumes(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "not of the form NAME,kind=KIND" },
		{ "data", "not of the form NAME,kind=KIND" },
		{ "/host:/pod", "not of the form NAME,kind=KIND" },
		{ ",kind=empty", "not a name of a volume" },
		{ "Data,kind=empty", "not a name of a volume" },
		{ "data,kind=host", "source= is not an absolute path" },
		{ "data,kind=host,source=x", "source=x is not an absolute path" },
		{ "data,kind=host,source=/x,mode=0700", "kind=host is as its source is" },
		{ "data,kind=block,source=/x,uid=5", "kind=block is as its source is" },
		{ "data,kind=host,source=/x,medium=memory", "kind=host has no medium" },
		{ "data,kind=host,source=/x,recursive=1", "neither true nor false" },
		{ "data,kind=host,source=/x,cache=always", "cache=always is none" },
		{ "data,kind=host,source=/x,format=raw", "format= is of kind=block" },
		{ "data,kind=block,source=/x,recursive=true", "are of kind=host" },
		{ "data,kind=block,source=/x,cache=auto", "are of kind=host" },
		{ "data,kind=block,source=/x,format=vmdk", "format=vmdk is none" },
		{ "data,kind=disk,source=/x", "kind=disk is none" },
		{ "data,kind=", "kind= is none" },
		{ "data,medium=memory", "kind= is none" },
		{ "data,kind=empty,source=/x", "kind=empty has no source" },
		{ "data,kind=empty,medium=image", "medium=image is none" },
		{ "data,kind=empty,kind=empty", "\"kind\" is given twice" },
		{ "data,kind=empty,", "not of the form KEY=VALUE" },
		{ "data,kind=empty,x=1", "there is no key \"x\"" },
		{ "data,kind=empty,target=/x", "said by --mount" },
		{ "data,kind=empty,noExec=true", "said by --mount" },
		{ "data,kind=empty,noSuid=false", "said by --mount" },
		{ "data,kind=empty,mode=888", "octal digits" },
		{ "data,kind=empty,uid=root", "number of a user" },
		{ "data,kind=empty,gid=4294967295", "number of a user or group" },
		{ "data,kind=empty,readOnly=yes", "neither true nor false" },
		{ "data,kind=empty,size=1Mi", "size= needs medium=memory" },
		{ "data,kind=empty,medium=memory,size=4095", "at least 4096" },
		{ "data,kind=%6", "two hex digits" },
		{ "data,kind=%00", "two hex digits" },
		{ "data,kind=\xff", "UTF-8" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(volumes_deinit) struct volumes v = { 0 };
		struct err e = ERR_INIT;
		assert_true(volumes_add_text(&v, cases[i].text, &e) < 0);
		if (!strstr(e.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, e.text);
	}
}

static void test_mount(void **state)
{
	static const struct {
		const char *text, *says;
	} refused[] = {
		{ "", "not of the form KEY=VALUE" },
		{ "volume=v", "not an absolute path" },
		{ "target=/x", "not a name of a volume" },
		{ "volume=v,target=x", "target=x is not an absolute path" },
		{ "volume=v,target=/proc/x", "nor in /proc" },
		{ "volume=v,target=/dev", "a volume cannot be /dev, nor" },
		{ "volume=v,target=/a,b", "not of the form KEY=VALUE" },
		{ "volume=v,target=/x,noExec=1", "noExec=1 is neither true nor false" },
		{ "volume=v,target=/x,noSuid=", "noSuid= is neither true nor false" },
		{ "volume=v,target=/x,kind=empty", "not of the form volume=NAME,target=PATH" },
		{ "volume=w,target=/x/../a%2cb", "there is a volume at that path already" },
	};
	CLEANUP(volume_mounts_deinit) struct volume_mounts m = { 0 };
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(volumes_add_mount(&m, "volume=v,target=/a%2Cb/,readOnly=true", &e), 0);
	assert_string_equal(m.v[0].path, "/a,b");
	assert_true(m.v[0].read_only);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		assert_true(volumes_add_mount(&m, refused[i].text, &e) < 0);
		if (!strstr(e.text, refused[i].says))
			fail_msg("%s: %s", refused[i].text, e.text);
		assert_int_equal(m.n, 1);
	}
	assert_false(m.v[0].no_exec || m.v[0].no_suid);
	assert_int_equal(volumes_add_mount(&m, "volume=v,target=/e,noExec=true", &e), 0);
	assert_int_equal(volumes_add_mount(&m, "volume=v,target=/s,noSuid=true,noExec=false", &e),
			 0);
	assert_true(m.v[1].no_exec && !m.v[1].no_suid);
	assert_true(!m.v[2].no_exec && m.v[2].no_suid);
}

static void test_both(void **state)
{
	CLEANUP(volumes_deinit) struct volumes v = { 0 };
	CLEANUP(volume_mounts_deinit) struct volume_mounts m = { 0 };
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(volumes_add_both(&v, &m, "name=a,kind=empty,target=/a,readOnly=true", &e),
			 0);
	assert_string_equal(v.v[0].name, "a");
	assert_string_equal(m.v[0].volume, "a");
	assert_true(m.v[0].read_only);
	assert_int_equal(volumes_add_both(&v, &m, "name=a,kind=empty,target=/b", &e), -EEXIST);
	assert_int_equal(volumes_add_both(&v, &m, "volume=b,kind=empty,target=/b", &e), -EINVAL);
	assert_int_equal(volumes_add_both(&v, &m, "name=b,kind=empty", &e), -EINVAL);
	assert_int_equal(volumes_add_both(&v, &m, "name=h,kind=host,source=/,target=/h", &e), 0);
	assert_string_equal(volumes_find(&v, "h")->source, "/");
	assert_int_equal(
		volumes_add_both(&v, &m, "name=c,kind=host,source=/,target=/c,cache=never", &e),
		-EOPNOTSUPP);
	assert_non_null(strstr(e.text, "cache= is of a whole pod"));
	assert_int_equal(volumes_add_both(&v, &m, "name=c,kind=block,source=/,target=/c", &e),
			 -EOPNOTSUPP);
	assert_non_null(strstr(e.text, "kind=block is of a whole pod"));
}

/* A pod with three volumes, and an app of which the rest of the test says what it has. */
struct pair {
	struct pod_manifest m;
	struct pod_app app;
	struct volume_mounts common;
	struct err e;
};

static void pair_init(struct pair *p)
{
	pod_manifest_init(&p->m);
	pod_app_init(&p->app);
	p->common = (struct volume_mounts){ 0 };
	p->e = ERR_INIT;
	assert_int_equal(volumes_add_text(&p->m.volumes, "data,kind=empty", &p->e), 0);
	assert_int_equal(volumes_add_text(&p->m.volumes, "ro,kind=empty,readOnly=true", &p->e), 0);
	assert_int_equal(volumes_add_text(&p->m.volumes, "rw,kind=empty,readOnly=false", &p->e), 0);
}

static void pair_deinit(struct pair *p)
{
	pod_manifest_deinit(&p->m);
	pod_app_deinit(&p->app);
	volume_mounts_deinit(&p->common);
}

static int settle(struct pair *p)
{
	return volumes_resolve(&p->m, &p->common, &p->app, &p->e);
}

/* "VOLUME PATH[ ro]" for each mount. */
static const char *said(const struct pair *p)
{
	static char text[512];
	size_t n = 0;
	text[0] = '\0';
	for (size_t i = 0; i < p->app.mounts.n; i++) {
		const struct volume_mount *m = &p->app.mounts.v[i];
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %s%s", i > 0 ? ", " : "",
				      m->volume, m->path, m->read_only ? " ro" : "");
	}
	return text;
}

static void test_own_mounts_beat_common_ones(void **state)
{
	CLEANUP(pair_deinit) struct pair p;
	(void)state;
	pair_init(&p);
	assert_int_equal(volume_mounts_add(&p.app.mounts, "data", "/a", false), 0);
	assert_int_equal(volume_mounts_add(&p.common, "rw", "/a", false), 0);
	assert_int_equal(volume_mounts_add(&p.common, "ro", "/b", false), 0);
	p.common.v[0].no_exec = p.common.v[1].no_exec = p.common.v[1].no_suid = true;
	assert_int_equal(settle(&p), 0);
	assert_string_equal(said(&p), "data /a, ro /b ro");
	assert_false(p.app.mounts.v[0].no_exec);
	assert_true(p.app.mounts.v[1].no_exec && p.app.mounts.v[1].no_suid);
	assert_int_equal(p.app.volumes.n, 0);
}

static void test_points(void **state)
{
	CLEANUP(pair_deinit) struct pair p;
	(void)state;
	pair_init(&p);
	assert_int_equal(volume_mounts_add(&p.app.mounts, "data", "/taken", false), 0);
	assert_int_equal(volume_mounts_add(&p.app.points, "x", "/taken", true), 0);
	assert_int_equal(volume_mounts_add(&p.app.points, "rw", "/named", true), 0);
	assert_int_equal(volume_mounts_add(&p.app.points, "free", "/free", false), 0);
	assert_int_equal(volume_mounts_add(&p.app.points, "free", "/too", true), 0);
	assert_int_equal(settle(&p), 0);
	assert_string_equal(said(&p), "data /taken ro, rw /named, free /free, free /too ro");
	assert_int_equal(p.app.volumes.n, 1);
	assert_int_equal(p.app.volumes.v[0].kind, VOLUME_IMAGE);
}

/* As a manifest can say, which has no flags to look at. */
static void test_own_with_source(void **state)
{
	CLEANUP(pair_deinit) struct pair p;
	(void)state;
	pair_init(&p);
	assert_int_equal(volumes_add_text(&p.app.volumes, "x,kind=host,source=/", &p.e), 0);
	assert_int_equal(settle(&p), -EOPNOTSUPP);
	assert_non_null(strstr(p.e.text, "volume \"x\" has a source"));
	p.m.is_mutable = true; /* to which the app comes */
	assert_int_equal(settle(&p), 0);
	assert_int_equal(volumes_add_text(&p.app.volumes, "y,kind=block,source=/", &p.e), 0);
	assert_int_equal(settle(&p), -EOPNOTSUPP);
	assert_non_null(strstr(p.e.text, "volume \"y\" has a source"));
}

/* A directory of the host alone can be the root directory. */
static void test_root(void **state)
{
	CLEANUP(pair_deinit) struct pair p;
	(void)state;
	pair_init(&p);
	assert_int_equal(volumes_add_text(&p.m.volumes, "host,kind=host,source=/x", &p.e), 0);
	assert_int_equal(volumes_add_mount(&p.app.mounts, "volume=host,target=/a/..", &p.e), 0);
	assert_int_equal(volumes_add_mount(&p.app.mounts, "volume=data,target=//", &p.e), -EEXIST);
	/* Of what the image asks for it has what the pod has. */
	assert_int_equal(volume_points_add(&p.app.points, "x", "/free", false), 0);
	assert_int_equal(volume_points_add(&p.app.points, "data", "/data", false), 0);
	assert_int_equal(settle(&p), 0);
	assert_string_equal(said(&p), "host /, data /data");
	assert_ptr_equal(volume_mounts_root(&p.app.mounts), &p.app.mounts.v[0]);
	volume_mounts_deinit(&p.app.mounts);
	assert_null(volume_mounts_root(&p.app.mounts));
	assert_int_equal(volume_points_add(&p.app.points, "x", "/", false), -EPERM);
	assert_int_equal(volumes_add_mount(&p.common, "volume=data,target=/", &p.e), 0);
	assert_int_equal(settle(&p), -EOPNOTSUPP);
	assert_string_equal(p.e.text, "app \"\": volume \"data\" cannot be its root directory: "
				      "only one of kind=host can");
}

static void test_dangling(void **state)
{
	static const struct volumes none;
	CLEANUP(pair_deinit) struct pair p;
	(void)state;
	pair_init(&p);
	assert_int_equal(volume_mounts_add(&p.common, "y", "/z", false), 0);
	assert_int_equal(settle(&p), -ENOENT);
	assert_string_equal(p.e.text, "dangling mount point \"/z\": volume \"y\" not found");
	assert_int_equal(volumes_check(&p.m.volumes, &none, &p.common, &p.e), -ENOENT);
	volume_mounts_deinit(&p.common);
	assert_int_equal(volumes_check(&none, &none, &p.common, &p.e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_volume),
		cmocka_unit_test(test_refused_volumes),
		cmocka_unit_test(test_mount),
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_points),
		cmocka_unit_test(test_own_mounts_beat_common_ones),
		cmocka_unit_test(test_dangling),
		cmocka_unit_test(test_own_with_source),
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_sources_are_looked_at),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
