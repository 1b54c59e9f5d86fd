/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/isolators.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define CLEANUP_ISOLATORS CLEANUP(isolators_deinit) struct isolators

/* What --seccomp is given as. */
#define SECCOMP ISOLATOR_COUNT_

static int set(struct isolators *i, enum isolator which, const char *text, struct err *e)
{
	return which == SECCOMP ? isolators_set_seccomp(i, text, e)
				: isolators_set(i, which, text, e);
}

/* The member "isolators" of the appc app section that @i becomes; "" without one. */
static void describe(const struct isolators *i, char *out, size_t size)
{
	cleanup_json struct json_object *run = json_object_new_object();
	cleanup_buf struct buf b;
	buf_init(&b, size - 1);
	assert_int_equal(isolators_write(i, run), 0);
	struct json_object *list = json_member(run, "isolators");
	assert_int_equal(list ? json_write(list, false, &b) : 0, 0);
	memcpy(out, buf_data(&b), buf_len(&b));
	out[buf_len(&b)] = '\0';
}

static int read_text(const char *text, struct isolators *i, struct err *e)
{
	cleanup_json struct json_object *run = json_object_new_object();
	struct json_object *list = NULL;
	assert_int_equal(json_parse(text, strlen(text), &list), 0);
	assert_int_equal(json_put(run, "isolators", list), 0);
	isolators_init(i);
	return isolators_read(run, i, e);
}

#define VALUE(name, value) "[{\"name\":\"" name "\",\"value\":" value "}]"

static const struct {
	enum isolator which;
	const char *text, *want;
} good[] = {
	{ ISOLATOR_MEMORY, "4096", VALUE("resource/memory", "{\"limit\":\"4096\"}") },
	{ ISOLATOR_MEMORY, "5k", VALUE("resource/memory", "{\"limit\":\"5000\"}") },
	{ ISOLATOR_MEMORY, "64M", VALUE("resource/memory", "{\"limit\":\"64000000\"}") },
	{ ISOLATOR_MEMORY, "64Mi", VALUE("resource/memory", "{\"limit\":\"67108864\"}") },
	{ ISOLATOR_MEMORY, "1.5Gi", VALUE("resource/memory", "{\"limit\":\"1610612736\"}") },
	{ ISOLATOR_MEMORY, "1Ti", VALUE("resource/memory", "{\"limit\":\"1099511627776\"}") },
	{ ISOLATOR_MEMORY, "1T", VALUE("resource/memory", "{\"limit\":\"1000000000000\"}") },
	{ ISOLATOR_MEMORY, "4096001m", VALUE("resource/memory", "{\"limit\":\"4097\"}") },
	{ ISOLATOR_CPU, "1.5", VALUE("resource/cpu", "{\"limit\":\"1500m\"}") },
	{ ISOLATOR_CPU, "1500m", VALUE("resource/cpu", "{\"limit\":\"1500m\"}") },
	{ ISOLATOR_CPU, "0.01", VALUE("resource/cpu", "{\"limit\":\"10m\"}") },
	{ ISOLATOR_CPU, "1024", VALUE("resource/cpu", "{\"limit\":\"1024000m\"}") },
	{ ISOLATOR_CPU_SHARES, "2", VALUE("os/linux/cpu-shares", "2") },
	{ ISOLATOR_CPU_SHARES, "262144", VALUE("os/linux/cpu-shares", "262144") },
	{ ISOLATOR_OOM_SCORE_ADJ, "-1000", VALUE("os/linux/oom-score-adj", "-1000") },
	{ ISOLATOR_OOM_SCORE_ADJ, "0", VALUE("os/linux/oom-score-adj", "0") },
	{ ISOLATOR_NO_NEW_PRIVS, "true", VALUE("os/linux/no-new-privileges", "true") },
	{ ISOLATOR_NO_NEW_PRIVS, "false", VALUE("os/linux/no-new-privileges", "false") },
	{ ISOLATOR_CAPS_RETAIN, "CAP_CHOWN,kill,cap_net_raw,KILL",
	  VALUE("os/linux/capabilities-retain-set",
		"{\"set\":[\"CAP_CHOWN\",\"CAP_KILL\",\"CAP_NET_RAW\"]}") },
	{ ISOLATOR_CAPS_RETAIN, "", VALUE("os/linux/capabilities-retain-set", "{\"set\":[]}") },
	{ ISOLATOR_CAPS_REMOVE, "mknod",
	  VALUE("os/linux/capabilities-remove-set", "{\"set\":[\"CAP_MKNOD\"]}") },
	{ SECCOMP, "read,write",
	  VALUE("os/linux/seccomp-retain-set", "{\"set\":[\"read\",\"write\"]}") },
	{ SECCOMP, "mode=remove,errno=EACCES,chmod,@systemd/clock",
	  VALUE("os/linux/seccomp-remove-set",
		"{\"set\":[\"chmod\",\"@systemd/clock\"],\"errno\":\"EACCES\"}") },
	{ SECCOMP, "chmod,errno=EPERM,mode=retain",
	  VALUE("os/linux/seccomp-retain-set", "{\"set\":[\"chmod\"],\"errno\":\"EPERM\"}") },
	{ SECCOMP, "@appc.io/all",
	  VALUE("os/linux/seccomp-retain-set", "{\"set\":[\"@appc.io/all\"]}") },
	{ ISOLATOR_PIDS, "4194304", VALUE("husk/pids-limit", "4194304") },
	{ ISOLATOR_RLIMITS, "nofile=1024:4096",
	  VALUE("husk/rlimits", "{\"set\":[\"nofile=1024:4096\"]}") },
	{ ISOLATOR_STOP_SIGNAL, "quit", VALUE("husk/stop-signal", "\"SIGQUIT\"") },
	{ ISOLATOR_STOP_SIGNAL, "37", VALUE("husk/stop-signal", "\"SIGRTMIN+3\"") },
	{ ISOLATOR_INIT, "true", VALUE("husk/init", "true") },
	{ ISOLATOR_UMASK, "0", VALUE("husk/umask", "0") },
	{ ISOLATOR_UMASK, "511", VALUE("husk/umask", "511") },
	{ ISOLATOR_MASKED_PATHS, "", VALUE("husk/masked-paths", "{\"set\":[]}") },
	{ ISOLATOR_MASKED_PATHS, "/a,/b,/a",
	  VALUE("husk/masked-paths", "{\"set\":[\"/a\",\"/b\"]}") },
	{ ISOLATOR_READ_ONLY_PATHS, "/a", VALUE("husk/read-only-paths", "{\"set\":[\"/a\"]}") },
	{ ISOLATOR_SECCOMP_PROFILE, "{}", VALUE("husk/seccomp-profile", "{}") },
	{ ISOLATOR_SECCOMP_PROFILE, " { \"a\" : [18446744073709551615] } ",
	  VALUE("husk/seccomp-profile", "{\"a\":[18446744073709551615]}") },
};

/* From a text to JSON, and that JSON read is the same again. */
static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		CLEANUP_ISOLATORS iso, back;
		struct err e = ERR_INIT;
		char got[512], again[512];
		isolators_init(&iso);
		if (set(&iso, good[i].which, good[i].text, &e) != 0)
			fail_msg("%s: %s", good[i].text, e.text);
		describe(&iso, got, sizeof(got));
		assert_string_equal(got, good[i].want);
		assert_int_equal(read_text(got, &back, &e), 0);
		assert_int_equal(back.given, iso.given);
		describe(&back, again, sizeof(again));
		assert_string_equal(again, got);
	}
}

static const struct {
	enum isolator which;
	const char *text, *error;
} bad[] = {
	{ ISOLATOR_MEMORY, "", "\"\" is not an amount of memory" },
	{ ISOLATOR_MEMORY, "64MB",
	  "\"64MB\" is not an amount of memory (like 64Mi, 64M, 67108864)" },
	{ ISOLATOR_MEMORY, "64K", "is not an amount of memory" },
	{ ISOLATOR_MEMORY, "1.", "is not an amount of memory" },
	{ ISOLATOR_MEMORY, "1.0001G", "is not an amount of memory" },
	{ ISOLATOR_MEMORY, "-1", "is not an amount of memory" },
	{ ISOLATOR_MEMORY, "16m",
	  "\"16m\" is less than 4096 bytes (m is a thousandth: write M or Mi)" },
	{ ISOLATOR_MEMORY, "4095", "is less than 4096 bytes" },
	{ ISOLATOR_MEMORY, "4095.999", "is less than 4096 bytes" },
	{ ISOLATOR_MEMORY, "1099511627777", "is more than 1 TiB" },
	{ ISOLATOR_MEMORY, "2Ti", "is more than 1 TiB" },
	{ ISOLATOR_MEMORY, "99999999999999999999999", "is more than 1 TiB" },
	{ ISOLATOR_MEMORY, "1099511627776Ti", "is more than 1 TiB" },
	{ ISOLATOR_CPU, "9m", "\"9m\" is not a number of processors from 0.01 to 1024" },
	{ ISOLATOR_CPU, "1024001m", "is not a number of processors" },
	{ ISOLATOR_CPU, "x", "is not a number of processors" },
	{ ISOLATOR_CPU_SHARES, "1", "1 is not from 2 to 262144" },
	{ ISOLATOR_CPU_SHARES, "262145", "262145 is not from 2 to 262144" },
	{ ISOLATOR_CPU_SHARES, "x", "\"x\" is not a number from 2 to 262144" },
	{ ISOLATOR_OOM_SCORE_ADJ, "-1001", "-1001 is not from -1000 to 1000" },
	{ ISOLATOR_OOM_SCORE_ADJ, "1001", "1001 is not from -1000 to 1000" },
	{ ISOLATOR_OOM_SCORE_ADJ, "--1", "\"--1\" is not a number from -1000 to 1000" },
	{ ISOLATOR_NO_NEW_PRIVS, "yes", "\"yes\" is neither true nor false" },
	{ ISOLATOR_CAPS_RETAIN, "chown,", "\"\" is not a name of a capability" },
	{ ISOLATOR_CAPS_RETAIN, "CAP_", "\"CAP_\" is not a name of a capability" },
	{ ISOLATOR_CAPS_RETAIN, "net-raw", "\"net-raw\" is not a name of a capability" },
	{ ISOLATOR_CAPS_REMOVE, "", "the set is empty" },
	{ SECCOMP, "", "\"\" is not a name of a system call" },
	{ SECCOMP, "mode=remove", "the set is empty" },
	{ SECCOMP, "mode=none,read", "\"mode=none\" is neither mode=retain nor mode=remove" },
	{ SECCOMP, "errno=EWHAT,read", "\"EWHAT\" is not an errno (like EPERM)" },
	{ SECCOMP, "errno=EPERM,errno=EPERM,read", "errno is given twice" },
	{ SECCOMP, "Read", "\"Read\" is not a name of a system call" },
	{ SECCOMP, "@docker/all", "there is no wildcard \"@docker/all\"" },
	{ SECCOMP, "mode=remove,execve", "\"execve\" cannot be removed: no app starts without it" },
	{ SECCOMP, "@appc.io/empty", "\"@appc.io/empty\" means nothing in a retain set" },
	{ SECCOMP, "mode=remove,@appc.io/all", "\"@appc.io/all\" means nothing in a remove set" },
	{ ISOLATOR_PIDS, "0", "0 is not from 1 to 4194304" },
	{ ISOLATOR_PIDS, "4194305", "4194305 is not from 1 to 4194304" },
	{ ISOLATOR_RLIMITS, "files=1", "\"files=1\" is not a limit of the form NAME=SOFT[:HARD]" },
	{ ISOLATOR_UMASK, "512", "512 is not from 0 to 511" },
	{ ISOLATOR_MASKED_PATHS, "proc", "\"proc\" is not an absolute path of at most 4095 bytes" },
	{ ISOLATOR_READ_ONLY_PATHS, "/a,", "\"\" is not an absolute path" },
	{ ISOLATOR_SECCOMP_PROFILE, "", "it is not valid JSON" },
	{ ISOLATOR_SECCOMP_PROFILE, "[]", "it is not an object" },
	{ ISOLATOR_SECCOMP_PROFILE, "{\"a\":1.5}", "floating-point" },
	{ ISOLATOR_STOP_SIGNAL, "", "\"\" is no signal (like SIGQUIT, SIGRTMIN+3, 15)" },
	{ ISOLATOR_STOP_SIGNAL, "65", "\"65\" is no signal (like SIGQUIT, SIGRTMIN+3, 15)" },
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP_ISOLATORS iso;
		struct err e = ERR_INIT;
		isolators_init(&iso);
		if (set(&iso, bad[i].which, bad[i].text, &e) != -EINVAL ||
		    !strstr(e.text, bad[i].error))
			fail_msg("%s: \"%s\"", bad[i].text, e.text);
	}
}

static const struct {
	const char *text;
	int code;
	const char *error;
} bad_json[] = {
	{ "{}", -EBADMSG, "\"isolators\" is not a list of at most 18 isolators" },
	{ "[1]", -EBADMSG, "\"name\" is missing" },
	{ "[{}]", -EBADMSG, "\"name\" is missing" },
	{ VALUE("resource/network-bandwidth", "{\"limit\":\"1G\"}"), -EOPNOTSUPP,
	  "isolator \"resource/network-bandwidth\" is not supported in this version" },
	{ VALUE("os/unix/sysctl", "{}"), -EOPNOTSUPP, "\"os/unix/sysctl\" is not supported" },
	{ VALUE("resource/memory", "1"), -EBADMSG,
	  "isolator \"resource/memory\": \"limit\" is not a string" },
	{ VALUE("resource/memory", "{\"limit\":1}"), -EBADMSG, "\"limit\" is not a string" },
	{ VALUE("resource/memory", "{\"limit\":\"16m\"}"), -EBADMSG, "is less than 4096 bytes" },
	{ VALUE("resource/cpu", "{\"limit\":\"0\"}"), -EBADMSG, "is not a number of processors" },
	{ VALUE("os/linux/cpu-shares", "\"2\""), -EBADMSG, "\"value\" is not a number from 2" },
	{ VALUE("os/linux/cpu-shares", "1"), -EBADMSG, "1 is not from 2" },
	{ VALUE("os/linux/oom-score-adj", "1.5"), -EBADMSG, "\"value\" is not a number" },
	{ VALUE("os/linux/no-new-privileges", "1"), -EBADMSG, "\"value\" is neither true" },
	{ VALUE("os/linux/capabilities-retain-set", "{}"), -EBADMSG, "\"set\" is not a list" },
	{ VALUE("os/linux/capabilities-retain-set", "{\"set\":[1]}"), -EBADMSG,
	  "\"set\" is not a list" },
	{ VALUE("os/linux/capabilities-remove-set", "{\"set\":[]}"), -EBADMSG, "the set is empty" },
	{ VALUE("os/linux/seccomp-retain-set", "{\"set\":[\"read\"],\"errno\":1}"), -EBADMSG,
	  "\"errno\" is not a string" },
	{ VALUE("os/linux/seccomp-retain-set", "{\"set\":[\"read\"],\"errno\":\"E\"}"), -EBADMSG,
	  "\"E\" is not an errno" },
	{ VALUE("os/linux/seccomp-remove-set", "{\"set\":[\"exit\"]}"), -EBADMSG,
	  "\"exit\" cannot be removed" },
	{ VALUE("husk/stop-signal", "\"FOO\""), -EBADMSG, "\"FOO\" is no signal" },
	{ VALUE("husk/stop-signal", "65"), -EBADMSG, "\"value\" is no signal" },
	{ VALUE("husk/stop-signal", "\"SIGRTMIN+0000003\""), -EBADMSG, "\"value\" is no signal" },
	{ VALUE("husk/stop-signal", "true"), -EBADMSG, "\"value\" is no signal" },
	{ VALUE("husk/rlimits", "{\"set\":[\"core=0\",\"core=1\"]}"), -EBADMSG,
	  "\"core=1\": there is \"core=0\" already" },
	{ "[{\"name\":\"husk/pids-limit\",\"value\":1},{\"name\":\"husk/pids-limit\",\"value\":0}]",
	  -EBADMSG, "isolator \"husk/pids-limit\": " },
	{ "[{\"name\":\"os/linux/capabilities-retain-set\",\"value\":{\"set\":[\"CAP_KILL\"]}},"
	  "{\"name\":\"os/linux/capabilities-remove-set\",\"value\":{\"set\":[\"CAP_KILL\"]}}]",
	  -EBADMSG, "it cannot stand beside \"os/linux/capabilities-retain-set\"" },
	{ "[{\"name\":\"os/linux/seccomp-remove-set\",\"value\":{\"set\":[\"chmod\"]}},"
	  "{\"name\":\"os/linux/seccomp-retain-set\",\"value\":{\"set\":[\"chmod\"]}}]",
	  -EBADMSG, "it cannot stand beside \"os/linux/seccomp-remove-set\"" },
	{ "[{\"name\":\"os/linux/seccomp-remove-set\",\"value\":{\"set\":[\"chmod\"]}},"
	  "{\"name\":\"husk/seccomp-profile\",\"value\":{}}]",
	  -EBADMSG, "it cannot stand beside \"os/linux/seccomp-remove-set\"" },
	{ "[{\"name\":\"husk/seccomp-profile\",\"value\":{}},"
	  "{\"name\":\"os/linux/seccomp-retain-set\",\"value\":{\"set\":[\"chmod\"]}}]",
	  -EBADMSG, "it cannot stand beside \"husk/seccomp-profile\"" },
	{ VALUE("husk/seccomp-profile", "7"), -EBADMSG, "it is not an object" },
	{ "[{\"name\":\"husk/seccomp-profile\"}]", -EBADMSG, "it is not an object" },
	{ VALUE("husk/masked-paths", "{}"), -EBADMSG, "\"set\" is not a list" },
	{ VALUE("husk/masked-paths", "{\"set\":[\"x\"]}"), -EBADMSG, "not an absolute path" },
};

static void test_bad_json(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad_json); i++) {
		CLEANUP_ISOLATORS iso;
		struct err e = ERR_INIT;
		int r = read_text(bad_json[i].text, &iso, &e);
		if (r != bad_json[i].code || e.code != r || !strstr(e.text, bad_json[i].error))
			fail_msg("%s: %d %s", bad_json[i].text, r, e.text);
	}
}

/* Twice, or both of a pair. */
static void test_once(void **state)
{
	(void)state;
	CLEANUP_ISOLATORS iso;
	struct err e = ERR_INIT;
	isolators_init(&iso);
	isolators_deinit(NULL);
	assert_int_equal(isolators_set(&iso, ISOLATOR_OOM_SCORE_ADJ, "0", &e), 0);
	assert_int_equal(isolators_set(&iso, ISOLATOR_OOM_SCORE_ADJ, "0", &e), -EINVAL);
	assert_string_equal(e.text, "it is given twice");
	assert_int_equal(isolators_set(&iso, ISOLATOR_CAPS_RETAIN, "kill", &e), 0);
	assert_int_equal(isolators_set(&iso, ISOLATOR_CAPS_REMOVE, "kill", &e), -EINVAL);
	assert_string_equal(e.text, "it cannot stand beside \"os/linux/capabilities-retain-set\"");
	assert_int_equal(isolators_set_seccomp(&iso, "read", &e), 0);
	assert_int_equal(isolators_set_seccomp(&iso, "mode=remove,chmod", &e), -EINVAL);
	assert_string_equal(e.text, "it is given twice");
	/* Limits come one at a time, a resource once. */
	assert_int_equal(isolators_set(&iso, ISOLATOR_RLIMITS, "core=0", &e), 0);
	assert_int_equal(isolators_set(&iso, ISOLATOR_RLIMITS, "nofile=1", &e), 0);
	assert_int_equal(isolators_set(&iso, ISOLATOR_RLIMITS, "core=1", &e), -EINVAL);
	assert_string_equal(e.text, "\"core=1\": there is \"core=0\" already");
	assert_int_equal(iso.rlimits.n, 2);
}

/* A set of @n different names. */
static char *make_set(const char *before, const char *prefix, size_t n)
{
	cleanup_buf struct buf b;
	buf_init(&b, ISOLATOR_TEXT_MAX);
	assert_int_equal(buf_puts(&b, before), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&b, "%s%s%zu", i ? "," : "", prefix, i), 0);
	return buf_take_string(&b);
}

static void test_limits(void **state)
{
	(void)state;
	for (size_t over = 0; over <= 1; over++) {
		CLEANUP_ISOLATORS iso;
		struct err e = ERR_INIT;
		int want = over ? -E2BIG : 0;
		isolators_init(&iso);
		cleanup_free char *caps = make_set("", "c", ISOLATOR_CAPS_MAX + over);
		assert_int_equal(isolators_set(&iso, ISOLATOR_CAPS_RETAIN, caps, &e), want);
		cleanup_free char *calls =
			make_set("mode=remove,errno=EPERM,", "call", ISOLATOR_SECCOMP_MAX + over);
		assert_int_equal(isolators_set_seccomp(&iso, calls, &e), want);
		if (over)
			assert_string_equal(e.text, "more than 512 names");

		CLEANUP_ISOLATORS names;
		char name[ISOLATOR_NAME_MAX + 2] = { 0 };
		isolators_init(&names);
		memset(name, 'c', ISOLATOR_NAME_MAX + over);
		want = over ? -EINVAL : 0;
		assert_int_equal(isolators_set_seccomp(&names, name, &e), want);
		/* With the prefix that is added, 63 bytes. */
		memset(name, 'C', sizeof(name) - 1);
		name[ISOLATOR_NAME_MAX - 4 + over] = '\0';
		assert_int_equal(isolators_set(&names, ISOLATOR_CAPS_RETAIN, name, &e), want);
	}
}

static void test_errno(void **state)
{
	(void)state;
	assert_int_equal(isolators_errno("EPERM"), EPERM);
	assert_int_equal(isolators_errno("ENOSYS"), ENOSYS);
	assert_int_equal(isolators_errno("EHWPOISON"), EHWPOISON);
	assert_int_equal(isolators_errno("eperm"), -EINVAL);
	assert_int_equal(isolators_errno(""), -EINVAL);
	assert_int_equal(isolators_errno("0"), -EINVAL);
}

static int read_and_write(void *ctx)
{
	(void)ctx;
	CLEANUP_ISOLATORS iso, copy, back;
	cleanup_json struct json_object *run = json_object_new_object();
	isolators_init(&iso);
	isolators_init(&copy);
	isolators_init(&back);
	int r = run ? isolators_set(&iso, ISOLATOR_SECCOMP_PROFILE, "{\"a\":[]}", NULL) : -ENOMEM;
	if (r == 0)
		r = isolators_set(&iso, ISOLATOR_MASKED_PATHS, "/a,/b", NULL);
	if (r == 0)
		r = isolators_set(&iso, ISOLATOR_CAPS_REMOVE, "kill", NULL);
	if (r == 0)
		r = isolators_set(&iso, ISOLATOR_MEMORY, "1M", NULL);
	if (r == 0)
		r = isolators_copy(&copy, &iso);
	if (r == 0)
		r = isolators_write(&copy, run);
	if (r == 0)
		r = isolators_read(run, &back, NULL);
	if (r < 0)
		return r;
	return back.given == iso.given && strcmp(back.profile, "{\"a\":[]}") == 0 &&
			       back.masked_paths.n == 2 && back.caps.n == 1
		       ? 0
		       : 1;
}

static void test_short_of_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(read_and_write, NULL);
}

/* What is open is said by two that are there and empty; what an image may not say is told. */
static void test_of_runner(void **state)
{
	(void)state;
	CLEANUP_ISOLATORS iso, image;
	isolators_init(&iso);
	isolators_init(&image);
	assert_int_equal(isolators_set(&iso, ISOLATOR_CPU, "1", NULL), 0);
	assert_int_equal(isolators_not_of_image(&iso), ISOLATOR_COUNT_);
	assert_int_equal(isolators_set(&iso, ISOLATOR_MASKED_PATHS, "", NULL), 0);
	assert_false(isolators_open_paths(&iso));
	assert_int_equal(isolators_not_of_image(&iso), ISOLATOR_MASKED_PATHS);
	assert_int_equal(isolators_set(&iso, ISOLATOR_READ_ONLY_PATHS, "", NULL), 0);
	assert_true(isolators_open_paths(&iso));
	strv_add(&iso.read_only_paths, "/a");
	assert_false(isolators_open_paths(&iso));
	assert_false(isolators_unconfined(&iso));
	assert_int_equal(isolators_set(&iso, ISOLATOR_SECCOMP_PROFILE, "{ }", NULL), 0);
	assert_true(isolators_unconfined(&iso));
	/* Whoever gave one has no set of an image beside it. */
	assert_int_equal(isolators_set_seccomp(&image, "read", NULL), 0);
	assert_int_equal(isolators_merge(&iso, &image), 0);
	assert_false(isolators_has(&iso, ISOLATOR_SECCOMP_RETAIN));
	assert_string_equal(iso.profile, "{}");
}

static void test_members(void **state)
{
	(void)state;
	CLEANUP_ISOLATORS iso;
	cleanup_strv struct strv list;
	struct err e = ERR_INIT;
	isolators_init(&iso);
	strv_init(&list, AGENT_PATHS_MAX + 1);
	assert_int_equal(isolators_set_members(&iso, ISOLATOR_CAPS_REMOVE, &list, &e), -EINVAL);
	for (size_t i = 0; i < AGENT_PATHS_MAX; i++)
		assert_int_equal(strv_addf(&list, "/a,%zu", i), 0);
	assert_int_equal(isolators_set_members(&iso, ISOLATOR_MASKED_PATHS, &list, &e), 0);
	assert_string_equal(iso.masked_paths.v[1], "/a,1");
	assert_int_equal(isolators_set_members(&iso, ISOLATOR_MASKED_PATHS, &list, &e), -EINVAL);
	assert_int_equal(strv_add(&list, "/one-more"), 0);
	assert_int_equal(isolators_set_members(&iso, ISOLATOR_READ_ONLY_PATHS, &list, &e), -E2BIG);
}

/* One isolator of each form. */
static void set_some(struct isolators *i, const char *caps, const char *calls)
{
	assert_int_equal(isolators_set(i, ISOLATOR_MEMORY, "64Mi", NULL), 0);
	assert_int_equal(isolators_set(i, ISOLATOR_CPU, "1.5", NULL), 0);
	assert_int_equal(isolators_set(i, ISOLATOR_OOM_SCORE_ADJ, "-5", NULL), 0);
	assert_int_equal(isolators_set(i, ISOLATOR_NO_NEW_PRIVS, "true", NULL), 0);
	assert_int_equal(isolators_set(i, ISOLATOR_CAPS_REMOVE, caps, NULL), 0);
	assert_int_equal(isolators_set_seccomp(i, calls, NULL), 0);
	assert_int_equal(isolators_set(i, ISOLATOR_RLIMITS, "nofile=5", NULL), 0);
}

static void test_merge(void **state)
{
	(void)state;
	CLEANUP(isolators_deinit) struct isolators image, none, some;
	isolators_init(&image);
	isolators_init(&none);
	isolators_init(&some);
	set_some(&image, "mknod", "mode=remove,errno=EACCES,chmod");
	assert_int_equal(isolators_merge(&none, &image), 0);
	assert_int_equal(none.given, image.given);
	assert_int_equal(none.wished, image.given);
	assert_int_equal(image.wished, 0);
	assert_int_equal(none.memory, 64 << 20);
	assert_int_equal(none.cpu_millis, 1500);
	assert_int_equal(none.oom_score_adj, -5);
	assert_true(none.no_new_privs);
	assert_string_equal(none.caps.v[0], "CAP_MKNOD");
	assert_string_equal(none.seccomp.v[0], "chmod");
	assert_string_equal(none.seccomp_errno, "EACCES");
	assert_string_equal(none.rlimits.v[0], "nofile=5");

	/* Of a pair, what is there stays alone. */
	assert_int_equal(isolators_set(&some, ISOLATOR_CAPS_RETAIN, "", NULL), 0);
	assert_int_equal(isolators_set_seccomp(&some, "read", NULL), 0);
	assert_int_equal(isolators_set(&some, ISOLATOR_MEMORY, "32Mi", NULL), 0);
	assert_int_equal(isolators_set(&some, ISOLATOR_NO_NEW_PRIVS, "false", NULL), 0);
	assert_int_equal(isolators_merge(&some, &image), 0);
	assert_int_equal(some.caps.n, 0);
	assert_true(isolators_has(&some, ISOLATOR_CAPS_RETAIN));
	assert_false(isolators_has(&some, ISOLATOR_CAPS_REMOVE));
	assert_int_equal(some.seccomp.n, 1);
	assert_string_equal(some.seccomp.v[0], "read");
	assert_string_equal(some.seccomp_errno, "");
	assert_int_equal(some.memory, 32 << 20);
	assert_false(some.no_new_privs);
	assert_int_equal(some.cpu_millis, 1500);
	assert_true(isolators_is_wish(&some, ISOLATOR_CPU));
	assert_false(isolators_is_wish(&some, ISOLATOR_MEMORY));
	assert_false(isolators_is_wish(&some, ISOLATOR_CAPS_RETAIN));
	assert_false(isolators_is_wish(&some, ISOLATOR_CAPS_REMOVE));
}

/* Whose an isolator is stays with it on its way through a manifest. */
/* As rkt has it; nothing is left of what went before. */
static void test_last_counts(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "[{\"name\":\"husk/pids-limit\",\"value\":1,\"husk/wish\":true},"
		  "{\"name\":\"husk/pids-limit\",\"value\":2}]",
		  VALUE("husk/pids-limit", "2") },
		{ "[{\"name\":\"os/linux/capabilities-retain-set\",\"value\":{\"set\":[\"CAP_KILL\"]}},"
		  "{\"name\":\"husk/init\",\"value\":true},"
		  "{\"name\":\"os/linux/capabilities-retain-set\",\"value\":{\"set\":[\"CAP_CHOWN\"]}}]",
		  "[{\"name\":\"os/linux/capabilities-retain-set\",\"value\":{\"set\":[\"CAP_CHOWN\"]}},"
		  "{\"name\":\"husk/init\",\"value\":true}]" },
		{ "[{\"name\":\"os/linux/seccomp-remove-set\",\"value\":{\"set\":[\"chmod\"],"
		  "\"errno\":\"EPERM\"}},"
		  "{\"name\":\"os/linux/seccomp-remove-set\",\"value\":{\"set\":[\"chown\"]}}]",
		  VALUE("os/linux/seccomp-remove-set", "{\"set\":[\"chown\"]}") },
		{ "[{\"name\":\"husk/seccomp-profile\",\"value\":{\"a\":1}},"
		  "{\"name\":\"husk/seccomp-profile\",\"value\":{\"a\":2}}]",
		  VALUE("husk/seccomp-profile", "{\"a\":2}") },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP_ISOLATORS iso;
		char text[1024];
		assert_int_equal(read_text(cases[i].text, &iso, NULL), 0);
		describe(&iso, text, sizeof(text));
		assert_string_equal(text, cases[i].want);
	}
}

static void test_wishes_in_json(void **state)
{
	(void)state;
	CLEANUP(isolators_deinit) struct isolators image, some, read;
	struct err e = ERR_INIT;
	isolators_init(&image);
	isolators_init(&some);
	isolators_init(&read);
	set_some(&image, "mknod", "mode=remove,chmod");
	assert_int_equal(isolators_set(&some, ISOLATOR_MEMORY, "32Mi", NULL), 0);
	assert_int_equal(isolators_merge(&some, &image), 0);
	cleanup_json struct json_object *run = json_object_new_object();
	assert_int_equal(isolators_write(&some, run), 0);
	assert_int_equal(isolators_read(run, &read, &e), 0);
	assert_int_equal(read.given, some.given);
	assert_int_equal(read.wished, some.wished);
	assert_int_equal(read.wished, some.given & ~(1U << ISOLATOR_MEMORY));
	assert_string_equal(isolators_name(ISOLATOR_MEMORY), "resource/memory");
}

static void test_replace(void **state)
{
	(void)state;
	CLEANUP(isolators_deinit) struct isolators app, wanted;
	isolators_init(&app);
	isolators_init(&wanted);
	set_some(&app, "mknod", "chmod");
	app.wished = 1U << ISOLATOR_MEMORY;
	assert_int_equal(isolators_set(&wanted, ISOLATOR_MEMORY, "32Mi", NULL), 0);
	assert_int_equal(isolators_set(&wanted, ISOLATOR_PIDS, "7", NULL), 0);
	isolators_replace(&app, ISOLATOR_MEMORY, &wanted);
	isolators_replace(&app, ISOLATOR_PIDS, &wanted);
	isolators_replace(&app, ISOLATOR_CPU, &wanted);
	assert_int_equal(app.memory, 32 << 20);
	assert_int_equal(app.pids_max, 7);
	assert_true(isolators_has(&app, ISOLATOR_MEMORY) && isolators_has(&app, ISOLATOR_PIDS));
	assert_false(isolators_is_wish(&app, ISOLATOR_MEMORY)); /* who runs it has said so */
	assert_false(isolators_has(&app, ISOLATOR_CPU));
	assert_int_equal(app.cpu_millis, 0);
	assert_int_equal(app.oom_score_adj, -5); /* the others stay */
	assert_string_equal(app.caps.v[0], "CAP_MKNOD");
}

static int merge_once(void *ctx)
{
	CLEANUP(isolators_deinit) struct isolators i;
	isolators_init(&i);
	return isolators_merge(&i, ctx);
}

static void test_merge_short_of_memory(void **state)
{
	(void)state;
	CLEANUP(isolators_deinit) struct isolators image;
	isolators_init(&image);
	set_some(&image, "mknod", "mode=remove,chmod");
	for_each_failing_alloc(merge_once, &image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_good),
		fixture_test(test_bad),
		fixture_test(test_bad_json),
		fixture_test(test_once),
		fixture_test(test_limits),
		fixture_test(test_errno),
		fixture_test(test_merge),
		fixture_test(test_replace),
		fixture_test(test_last_counts),
		fixture_test(test_wishes_in_json),
		fixture_test(test_of_runner),
		fixture_test(test_members),
		fixture_test(test_merge_short_of_memory),
		fixture_test(test_short_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
