/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts of a container, through the parser of the whole specification. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "shim/spec/oci_spec.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define BEFORE                                                                                 \
	"{\"annotations\":{\"io.kubernetes.cri.container-type\":\"container\","                \
	"\"io.kubernetes.cri.sandbox-id\":\"p\"},\"process\":{\"args\":[\"true\"]},\"linux\":" \
	"{\"namespaces\":[{\"type\":\"network\"},{\"type\":\"pid\"},{\"type\":\"ipc\"}]},"     \
	"\"mounts\":["
#define AFTER "]}"

#define DOCUMENT_MAX ((size_t)8 << 20) /* twice what the parser takes */

static int parse(const char *mounts, struct oci_spec *ret, struct err *e)
{
	cleanup_buf struct buf b;
	buf_init(&b, DOCUMENT_MAX);
	assert_int_equal(buf_printf(&b, BEFORE "%s" AFTER, mounts), 0);
	oci_spec_init(ret);
	return oci_spec_parse(buf_data(&b), buf_len(&b), ret, e);
}

static void refuse(const char *mounts, int code, const char *want)
{
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	struct err e = ERR_INIT;
	int r = parse(mounts, &s, &e);
	if (r != code || !strstr(e.text, want))
		fail_msg("%s: %d \"%s\" instead of %d \"%s\"", mounts, r, e.text, code, want);
}

#define BIND(source, destination, options)                                            \
	"{\"type\":\"bind\",\"source\":\"" source "\",\"destination\":\"" destination \
	"\",\"options\":[" options "]}"

/* As Kubernetes has them. */
static void test_binds(void **state)
{
	static const char mounts[] =
		"{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"}," BIND("/k/hosts", "/etc/hosts", "\"rbind\",\"rprivate\",\"rw\"") "," BIND(
			"/c/sandboxes/p/shm", "/dev/shm",
			"\"rbind\",\"rprivate\",\"rw\"") "," BIND("/k/secret", "/run/../secret/",
								  "\"rbind\",\"ro\"") "," BIND("/k/words",
											       "/dev/termination-log",
											       "\"bind\"") ","
													   "{\"source\":\"/n\",\"destination\":\"/n\",\"options\":[\"rbind\"]}";
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	struct err e = ERR_INIT;
	(void)state;
	if (parse(mounts, &s, &e) < 0)
		fail_msg("%s", e.text);
	const struct volumes *v = &s.app.volumes;
	const struct volume_mounts *m = &s.app.mounts;
	assert_int_equal(v->n, 4); /* shared memory is the pod's own */
	assert_int_equal(m->n, 4);
	assert_int_equal(v->v[0].kind, VOLUME_HOST);
	assert_string_equal(v->v[0].source, "/k/hosts");
	assert_true(v->v[0].recursive && !v->v[0].read_only && !m->v[0].read_only);
	assert_string_equal(m->v[1].path, "/secret");
	assert_string_equal(m->v[1].volume, v->v[1].name);
	assert_true(v->v[1].read_only && m->v[1].read_only);
	assert_string_equal(m->v[2].path, "/dev/termination-log");
	assert_false(v->v[2].recursive);
	assert_string_equal(v->v[3].source, "/n");
}

#define TMPFS(to, options)       \
	"{\"destination\":\"" to \
	"\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[" options "]}"

/* As `--tmpfs` has them elsewhere, and what tmpfs(5) takes for a size. */
static void test_tmpfs(void **state)
{
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	struct err e = ERR_INIT;
	(void)state;
	if (parse(TMPFS("/cache", "\"noexec\",\"nosuid\",\"nodev\",\"size=64m\"") "," TMPFS("/t", "") "," TMPFS("/most", "\"ro\",\"size=9223372036854775807\",\"mode=0700\",\"uid=7\",\"gid=4294967294\"") "," TMPFS(
			  "/k", "\"size=1K\",\"rw\"") "," TMPFS("/g", "\"size=8589934591G\""),
		  &s, &e) < 0)
		fail_msg("%s", e.text);
	const struct volumes *v = &s.app.volumes;
	const struct volume_mounts *m = &s.app.mounts;
	assert_int_equal(v->n, 5);
	assert_int_equal(m->n, 5);
	assert_int_equal(v->v[0].kind, VOLUME_MEMORY);
	assert_int_equal(v->v[0].size, 64 * 1024 * 1024);
	assert_string_equal(m->v[0].path, "/cache");
	assert_string_equal(m->v[0].volume, v->v[0].name);
	assert_true(m->v[0].no_exec && m->v[0].no_suid && !m->v[0].read_only);
	assert_int_equal(v->v[1].mode, 01777);
	assert_int_equal(v->v[1].size, 0);
	assert_false(m->v[1].no_exec || m->v[1].no_suid);
	assert_int_equal(v->v[2].size, INT64_MAX);
	assert_int_equal(v->v[2].mode, 0700);
	assert_int_equal(v->v[2].uid, 7);
	assert_int_equal(v->v[2].gid, AGENT_ID_MAX);
	assert_true(m->v[2].read_only);
	assert_int_equal(v->v[3].size, 1024);
	assert_int_equal(v->v[4].size, INT64_C(8589934591) << 30);
}

static void test_tmpfs_refused(void **state)
{
	static const char *const options[] = {
		"size=",
		"size=k",
		"size=1x",
		"size=1mb",
		"size=50%",
		"size=0",
		"size=-1",
		"size=8589934592g",
		"size=9223372036854775808",
		"size=000000000000000000000001",
		"mode=8",
		"mode=010000",
		"uid=x",
		"gid=4294967295",
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		char mount[256];
		snprintf(mount, sizeof(mount), TMPFS("/x", "\"%s\""), options[i]);
		refuse(mount, -EINVAL, options[i]);
	}
	refuse(TMPFS("/x", "\"nr_inodes=1\""), -EOPNOTSUPP, "\"nr_inodes=1\" is not supported");
	refuse(TMPFS("/proc/x", ""), -EOPNOTSUPP, "no volume can be there");
	refuse(TMPFS("/x/..", ""), -EOPNOTSUPP, "no volume can be there");
	refuse(TMPFS("/x", "\"rshared\""), -EOPNOTSUPP, "do not propagate");
}

/* What is only read is so with all that is below it, whatever the word for that is. */
static void test_options(void **state)
{
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(parse(BIND("/y", "/x", "\"rbind\",\"rro\",\"noexec\",\"nosuid\""), &s, &e),
			 0);
	assert_true(s.app.mounts.v[0].read_only && s.app.volumes.v[0].read_only);
	assert_true(s.app.mounts.v[0].no_exec && s.app.mounts.v[0].no_suid);
}

static void test_refused(void **state)
{
	(void)state;
	refuse("7", -EBADMSG, "\"mounts\"");
	refuse("{}", -EBADMSG, "\"mounts\"");
	refuse("{\"destination\":\"/x\",\"options\":7}", -EBADMSG, "\"mounts\"");
	refuse("{\"destination\":\"/x\",\"source\":7}", -EBADMSG, "\"mounts\"");
	refuse("{\"destination\":\"/x\",\"type\":\"nfs\"}", -EOPNOTSUPP,
	       "the mount at \"/x\": \"nfs\" is not supported there");
	refuse(BIND("/y", "/x", "\"rbind\",\"rshared\""), -EOPNOTSUPP, "do not propagate");
	refuse(BIND("/y", "/x", "\"rslave\""), -EOPNOTSUPP, "do not propagate");
	refuse(BIND("/y", "/x", "\"size=1m\""), -EOPNOTSUPP, "\"size=1m\" is not supported");
	refuse(BIND("/y", "/x", "7"), -EOPNOTSUPP, "\"\" is not supported");
	refuse(BIND("y", "/x", ""), -EINVAL, "\"y\" is no absolute path");
	refuse(BIND("/y", "/proc/x", ""), -EOPNOTSUPP, "no volume can be there");
	refuse(BIND("/y", "/x/../sys", ""), -EOPNOTSUPP, "no volume can be there");
	refuse(BIND("/y", "/", ""), -EOPNOTSUPP, "no volume can be there");
	refuse(BIND("/y", "x", ""), -EINVAL, "the mount at \"x\"");
	refuse(BIND("/y", "/x", "") "," BIND("/z", "/x", ""), -EEXIST, "the mount at \"/x\"");
	/* Another sandbox's shared memory is not this one's; the host's has no use in a pod. */
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	struct err e = ERR_INIT;
	assert_int_equal(parse(BIND("/dev/shm", "/dev/shm", ""), &s, &e), 0);
	assert_int_equal(s.app.volumes.n, 0);
	refuse(BIND("/c/sandboxes/q/shm", "/dev/shm", "\"rshared\""), -EOPNOTSUPP, "propagate");
	/* In a pod it is the pod's, whatever is said of a size. */
	oci_spec_deinit(&s);
	assert_int_equal(parse(TMPFS("/dev/shm", "\"size=1m\""), &s, &e), 0);
	assert_int_equal(s.app.volumes.n, 0);
}

/* @n mounts, of /proc or of the host. */
static char *many(size_t n, bool of_host)
{
	struct buf b;
	buf_init(&b, DOCUMENT_MAX);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(buf_puts(&b, i > 0 ? "," : ""), 0);
		assert_int_equal(of_host ? buf_printf(&b, BIND("/y", "/x%zu", ""), i)
					 : buf_puts(&b, "{\"destination\":\"/proc\","
							"\"type\":\"proc\"}"),
				 0);
	}
	return buf_take_string(&b);
}

static void test_limits(void **state)
{
	struct oci_spec s;
	struct err e = ERR_INIT;
	(void)state;
	cleanup_free char *most = many(OCI_SPEC_MOUNTS_MAX, false);
	cleanup_free char *more = many(OCI_SPEC_MOUNTS_MAX + 1, false);
	cleanup_free char *far_more = many(OCI_SPEC_CONTAINERS_MAX, false);
	cleanup_free char *volumes = many(VOLUMES_MAX, true);
	cleanup_free char *more_volumes = many(VOLUMES_MAX + 1, true);
	assert_int_equal(parse(most, &s, &e), 0);
	oci_spec_deinit(&s);
	refuse(more, -E2BIG, "1025 members, more than 1024");
	refuse(far_more, -E2BIG, "config.json: more than 65536 objects and lists");
	assert_int_equal(parse(volumes, &s, &e), 0);
	oci_spec_deinit(&s);
	refuse(more_volumes, -E2BIG, "at most 64 mounts of the host and tmpfs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_binds),         fixture_test(test_tmpfs),
		fixture_test(test_tmpfs_refused), fixture_test(test_options),
		fixture_test(test_refused),       fixture_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
