/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/pod_manifest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/wire/pod_logs.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define CLEANUP_MANIFEST CLEANUP(pod_manifest_deinit) struct pod_manifest

/* Adds an app "@name" with plain contents. */
static int add_app(struct pod_manifest *m, const char *name)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	pod_app_init(&app);
	int r = str_copy(app.name, sizeof(app.name), name);
	if (r == 0)
		r = str_copy(app.image_id, sizeof(app.image_id), "sha256-00");
	if (r == 0)
		r = str_copy(app.image_name, sizeof(app.image_name), "example.org/x");
	if (r == 0)
		r = str_copy(app.cwd, sizeof(app.cwd), "/");
	if (r == 0)
		r = strv_add(&app.exec, "/bin/true");
	if (r == 0)
		r = strv_env_set(&app.env, "EMPTY", "");
	if (r == 0)
		r = strv_env_set(&app.env, "A", "b=c \"quoted\"\n");
	if (r == 0)
		r = pod_app_add_group(&app.groups, "4294967294", NULL);
	if (r == 0)
		r = isolators_set(&app.isolators, ISOLATOR_MEMORY, "1M", NULL);
	if (r == 0)
		r = strv_add(&app.pre_start, "/before");
	if (r == 0)
		r = strv_add(&app.post_stop, "/after");
	if (r == 0)
		r = strv_add(&app.post_stop, "all");
	if (r == 0)
		r = pod_ports_add(&app.ports, &(struct pod_port){ .name = "http",
								  .protocol = PORT_TCP,
								  .port = 80,
								  .count = 1 });
	app.read_only_root = true;
	return r < 0 ? r : pod_manifest_add(m, &app);
}

static int parse(const char *text, struct pod_manifest *m, struct err *e)
{
	return pod_manifest_parse(text, strlen(text), m, e);
}

static void test_round_trip(void **state)
{
	(void)state;
	CLEANUP_MANIFEST m, back;
	struct err e = ERR_INIT;
	pod_manifest_init(&m);
	pod_manifest_init(&back);
	assert_int_equal(add_app(&m, "one"), 0);
	assert_int_equal(add_app(&m, "two"), 0);
	assert_int_equal(pod_ports_add(&m.ports, &(struct pod_port){ .name = "http",
								     .protocol = PORT_UDP,
								     .port = 80,
								     .count = 1,
								     .host_port = 8080,
								     .host_ip = "::1" }),
			 0);
	assert_int_equal(sysctls_add(&m.sysctls, "net.core.somaxconn=7", &e), 0);
	cleanup_free char *text = NULL, *again = NULL;
	assert_int_equal(pod_manifest_format(&m, &text), 0);
	assert_int_equal(text[strlen(text) - 1], '\n');
	assert_int_equal(parse(text, &back, &e), 0);
	assert_int_equal(back.n_apps, 2);
	assert_string_equal(back.apps[1].name, "two");
	assert_string_equal(back.apps[1].image_name, "example.org/x");
	assert_string_equal(back.apps[1].exec.v[0], "/bin/true");
	assert_string_equal(strv_env_get(&back.apps[1].env, "EMPTY"), "");
	assert_string_equal(back.apps[1].groups.v[0], "4294967294");
	assert_true(back.apps[1].read_only_root);
	assert_string_equal(back.apps[1].pre_start.v[0], "/before");
	assert_int_equal(back.apps[1].post_stop.n, 2);
	assert_string_equal(back.apps[1].post_stop.v[1], "all");
	assert_int_equal(back.apps[1].isolators.memory, 1000000);
	assert_int_equal(back.apps[1].ports.v[0].port, 80);
	assert_int_equal(back.sysctls.n, 1);
	assert_string_equal(back.sysctls.v[0], "net.core.somaxconn=7");
	assert_int_equal(back.ports.n, 1);
	assert_int_equal(back.ports.v[0].host_port, 8080);
	assert_int_equal(back.ports.v[0].protocol, PORT_UDP);
	assert_string_equal(back.ports.v[0].host_ip, "::1");
	assert_string_equal(strv_env_get(&back.apps[1].env, "A"), "b=c \"quoted\"\n");
	assert_int_equal(pod_manifest_format(&back, &again), 0);
	assert_string_equal(again, text);
	pod_manifest_deinit(NULL);
	pod_app_deinit(NULL);
}

static void test_add_limits(void **state)
{
	(void)state;
	CLEANUP_MANIFEST m;
	pod_manifest_init(&m);
	for (int i = 0; i < AGENT_APPS_MAX; i++) {
		char name[16];
		snprintf(name, sizeof(name), "app%d", i);
		assert_int_equal(add_app(&m, name), 0);
	}
	assert_int_equal(add_app(&m, "more"), -E2BIG);
	m.n_apps--;
	pod_app_deinit(&m.apps[m.n_apps]);
	assert_int_equal(add_app(&m, "app0"), -EEXIST);
	assert_int_equal(m.n_apps, AGENT_APPS_MAX - 1);
}

static void test_remove(void **state)
{
	(void)state;
	CLEANUP_MANIFEST m;
	pod_manifest_init(&m);
	assert_int_equal(pod_manifest_remove(&m, "one"), -ENOENT);
	assert_int_equal(add_app(&m, "one"), 0);
	assert_int_equal(add_app(&m, "two"), 0);
	assert_int_equal(add_app(&m, "three"), 0);
	assert_int_equal(pod_manifest_remove(&m, "two"), 0);
	assert_int_equal(pod_manifest_remove(&m, "two"), -ENOENT);
	assert_int_equal(m.n_apps, 2);
	assert_string_equal(m.apps[1].name, "three");
	assert_int_equal(pod_manifest_remove(&m, "three"), 0);
	assert_int_equal(add_app(&m, "two"), 0);
}

/* What husk writes into the annotations comes back. */
static void round_trip_annotations(enum pod_exit_policy policy, bool is_mutable)
{
	CLEANUP_MANIFEST m, back;
	pod_manifest_init(&m);
	pod_manifest_init(&back);
	cleanup_free char *text = NULL;
	struct err e = ERR_INIT;
	if (!is_mutable)
		assert_int_equal(add_app(&m, "one"), 0);
	m.is_mutable = is_mutable;
	m.exit_policy = policy;
	assert_int_equal(pod_manifest_format(&m, &text), 0);
	assert_int_equal(pod_manifest_parse(text, strlen(text), &back, &e), 0);
	assert_int_equal(back.is_mutable, is_mutable);
	assert_int_equal(back.exit_policy, policy);
	assert_int_equal(back.n_apps, m.n_apps);
	if (policy == POD_EXIT_DEFAULT)
		policy = is_mutable ? POD_EXIT_NEVER : POD_EXIT_ANY_FAILURE;
	assert_int_equal(pod_manifest_exit_policy(&back), policy);
}

static void test_annotations(void **state)
{
	(void)state;
	for (int policy = 0; policy < POD_EXIT_COUNT_; policy++) {
		round_trip_annotations((enum pod_exit_policy)policy, false);
		round_trip_annotations((enum pod_exit_policy)policy, true);
	}
}

/*
 * Annotations of others are kept, of the pod and of its apps, up to the limit; husk's cannot be
 * made so.
 */
static void test_notes(void **state)
{
	(void)state;
	CLEANUP_MANIFEST m, back;
	pod_manifest_init(&m);
	pod_manifest_init(&back);
	cleanup_free char *text = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(add_app(&m, "one"), 0);
	m.exit_policy = POD_EXIT_NEVER;
	m.private_users = true;
	assert_int_equal(str_copy(m.hostname, sizeof(m.hostname), "under_score"), 0);
	for (int i = 0; i < POD_TAGS_MAX; i++) {
		char note[32];
		snprintf(note, sizeof(note), "n%d=v=%d", i, i);
		assert_int_equal(pod_tags_add(&m.tags.notes, note, &e), 0);
		assert_int_equal(pod_tags_add(&m.apps[0].tags.notes, note, &e), 0);
	}
	m.apps[0].streams.in = STREAM_MODE_NULL;
	assert_int_equal(pod_manifest_format(&m, &text), 0);
	assert_int_equal(parse(text, &back, &e), 0);
	assert_string_equal(back.hostname, "under_score");
	assert_true(back.private_users);
	assert_int_equal(back.exit_policy, POD_EXIT_NEVER);
	assert_int_equal(back.tags.notes.n, POD_TAGS_MAX);
	assert_int_equal(back.apps[0].tags.notes.n, POD_TAGS_MAX);
	assert_string_equal(back.tags.notes.v[POD_TAGS_MAX - 1], "n63=v=63");
	assert_int_equal(back.apps[0].streams.in, STREAM_MODE_NULL);
	pod_manifest_deinit(&back);
	static const char foreign[] =
		"{\"acKind\":\"PodManifest\",\"apps\":[],\"annotations\":["
		"{\"name\":\"husk/mutable\",\"value\":\"true\"},{\"name\":\"husk/other\",\"value\":\"x\"},"
		"{\"name\":\"a\",\"value\":\"1\"},{\"name\":\"a\",\"value\":\"2\"},{\"name\":\"b=c\","
		"\"value\":\"3\"}]}";
	assert_int_equal(parse(foreign, &back, &e), 0);
	assert_int_equal(back.tags.notes.n, 1);
	assert_string_equal(back.tags.notes.v[0], "a=1");
}

/* Where the streams of an app go are annotations of it. */
static void test_streams(void **state)
{
	(void)state;
	CLEANUP_MANIFEST m, back;
	pod_manifest_init(&m);
	pod_manifest_init(&back);
	cleanup_free char *text = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(add_app(&m, "one"), 0);
	m.apps[0].streams.in = STREAM_MODE_STREAM;
	m.apps[0].streams.err = STREAM_MODE_NULL;
	assert_int_equal(pod_manifest_format(&m, &text), 0);
	assert_int_equal(pod_manifest_parse(text, strlen(text), &back, &e), 0);
	assert_int_equal(back.apps[0].streams.in, STREAM_MODE_STREAM);
	assert_int_equal(back.apps[0].streams.out, STREAM_MODE_DEFAULT);
	assert_int_equal(back.apps[0].streams.err, STREAM_MODE_NULL);
	m.apps[0].streams.out = STREAM_MODE_TTY; /* does not go with the others */
	free(TAKE_PTR(text));
	pod_manifest_deinit(&back);
	assert_int_equal(pod_manifest_format(&m, &text), 0);
	assert_int_equal(pod_manifest_parse(text, strlen(text), &back, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "app 0: a terminal is all of stdin, stdout and stderr"));
}

/* What of a command is the entrypoint comes back; all of it, if nothing is said. */
/* Output that somebody gathers is not for who attaches; input is. */
static void test_gathered_logs(void **state)
{
	(void)state;
	CLEANUP_MANIFEST m, back;
	cleanup_free char *text = NULL;
	pod_manifest_init(&m);
	pod_manifest_init(&back);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(add_app(&m, i == 0 ? "one" : "two"), 0);
		m.apps[i].streams = (struct stream_modes){ STREAM_MODE_STREAM, STREAM_MODE_STREAM,
							   STREAM_MODE_STREAM };
	}
	m.apps[0].streams.err = STREAM_MODE_NULL;
	assert_int_equal(pod_tags_add(&m.tags.notes, POD_LOGS_ANN_MODE "=k8s-plain", NULL), 0);
	assert_int_equal(pod_tags_add(&m.tags.notes, POD_LOGS_ANN_DIR "=/logs", NULL), 0);
	assert_int_equal(pod_tags_add(&m.apps[0].tags.notes, POD_LOGS_ANN_PATH "=x", NULL), 0);
	assert_int_equal(pod_manifest_format(&m, &text), 0);
	assert_int_equal(parse(text, &back, NULL), 0);
	assert_int_equal(back.apps[0].streams.in, STREAM_MODE_STREAM);
	assert_int_equal(back.apps[0].streams.out, STREAM_MODE_LOG);
	assert_int_equal(back.apps[0].streams.err, STREAM_MODE_NULL);
	assert_int_equal(back.apps[1].streams.out, STREAM_MODE_STREAM);
	assert_int_equal(back.apps[1].streams.err, STREAM_MODE_STREAM);
}

static void test_entrypoint(void **state)
{
	(void)state;
	for (size_t n = 0; n <= 2; n++) {
		CLEANUP_MANIFEST m, back;
		pod_manifest_init(&m);
		pod_manifest_init(&back);
		cleanup_free char *text = NULL;
		struct err e = ERR_INIT;
		assert_int_equal(add_app(&m, "one"), 0);
		assert_int_equal(strv_add(&m.apps[0].exec, "-x"), 0);
		m.apps[0].n_entrypoint = n;
		assert_int_equal(pod_manifest_format(&m, &text), 0);
		assert_int_equal(strstr(text, POD_ANN_ENTRYPOINT) != NULL, n < 2);
		assert_int_equal(parse(text, &back, &e), 0);
		assert_int_equal(back.apps[0].n_entrypoint, n);
	}
}

/* Whether the working directory is made comes back; another value than ours is refused. */
static void test_working_dir(void **state)
{
	(void)state;
	for (int is_there = 0; is_there <= 1; is_there++) {
		CLEANUP_MANIFEST m, back, bad;
		pod_manifest_init(&m);
		pod_manifest_init(&back);
		pod_manifest_init(&bad);
		cleanup_free char *text = NULL;
		struct err e = ERR_INIT;
		assert_int_equal(add_app(&m, "one"), 0);
		m.apps[0].cwd_is_there = is_there;
		assert_int_equal(pod_manifest_format(&m, &text), 0);
		char *value = strstr(text, "\"given\"");
		assert_int_equal(value != NULL, is_there);
		assert_int_equal(parse(text, &back, &e), 0);
		assert_int_equal(back.apps[0].cwd_is_there, is_there);
		if (!value)
			continue;
		value[1] = 'G';
		assert_int_equal(parse(text, &bad, &e), -EBADMSG);
		assert_non_null(strstr(e.text, "annotation \"" POD_ANN_WORKING_DIR "\" has"));
	}
}

/* What appc's schema cannot hold comes back; what it wants is there. */
static void test_image_and_user(void **state)
{
	(void)state;
	static const struct {
		const char *user, *group, *unset, *written;
	} cases[] = {
		{ "", "", "\"user,group\"", "\"user\":\"0\",\n        \"group\":\"0\"" },
		{ "www", "", "\"group\"", "\"user\":\"www\",\n        \"group\":\"www\"" },
		{ "", "7", "\"user\"", "\"user\":\"0\",\n        \"group\":\"7\"" },
		{ "www", "7", NULL, "\"user\":\"www\",\n        \"group\":\"7\"" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP_MANIFEST m, back;
		pod_manifest_init(&m);
		pod_manifest_init(&back);
		cleanup_free char *text = NULL;
		struct err e = ERR_INIT;
		assert_int_equal(add_app(&m, "one"), 0);
		strcpy(m.apps[0].user, cases[i].user);
		strcpy(m.apps[0].group, cases[i].group);
		strcpy(m.apps[0].image_name, "localhost:5000/x:1");
		strcpy(m.apps[0].image_id, "sha512-00");
		strcpy(m.apps[0].image_digest, "sha256:11");
		assert_int_equal(pod_manifest_format(&m, &text), 0);
		if (!strstr(text, cases[i].written))
			fail_msg("%s", text);
		assert_int_equal(strstr(text, POD_ANN_UNSET) != NULL, cases[i].unset != NULL);
		assert_true(!cases[i].unset || strstr(text, cases[i].unset));
		assert_non_null(strstr(text, "\"name\":\"localhost-5000/x\""));
		assert_int_equal(parse(text, &back, &e), 0);
		assert_string_equal(back.apps[0].user, cases[i].user);
		assert_string_equal(back.apps[0].group, cases[i].group);
		assert_string_equal(back.apps[0].image_name, "localhost:5000/x:1");
		assert_string_equal(back.apps[0].image_digest, "sha256:11");
	}
}

/* At the number of members, and one beyond. */
static void test_entrypoint_refused(void **state)
{
	(void)state;
	static const struct {
		const char *value;
		int r;
	} samples[] = {
		{ "0", 0 }, { "1", 0 }, { "2", -EBADMSG }, { "-1", -EBADMSG }, { "", -EBADMSG }
	};
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		CLEANUP_MANIFEST m;
		struct err e = ERR_INIT;
		char text[512];
		pod_manifest_init(&m);
		snprintf(
			text, sizeof(text),
			"{\"acKind\":\"PodManifest\",\"apps\":[{\"name\":\"a\",\"image\":{\"id\":\"sha256-00\"},"
			"\"app\":{\"exec\":[\"/x\"]},\"annotations\":[{\"name\":\"" POD_ANN_ENTRYPOINT
			"\",\"value\":\"%s\"}]}]}",
			samples[i].value);
		assert_int_equal(parse(text, &m, &e), samples[i].r);
		if (samples[i].r < 0)
			assert_non_null(
				strstr(e.text, "annotation \"" POD_ANN_ENTRYPOINT "\" has"));
	}
}

static void test_annotations_refused(void **state)
{
	(void)state;
	static const struct {
		const char *annotations, *text;
	} samples[] = {
		{ "{}", "\"annotations\" is not a list of at most 72 pairs" },
		{ "[{}]", "\"annotations\" member 0 is not a pair" },
		{ "[{\"name\":\"a\",\"value\":\"b\"}]", "\"apps\" has 0 members, not 1 to 32" },
		{ "[{\"name\":\"husk/mutable\",\"value\":\"yes\"}]",
		  "annotation \"husk/mutable\" has the value \"yes\"" },
		{ "[{\"name\":\"husk/exit-policy\",\"value\":\"\"}]",
		  "annotation \"husk/exit-policy\" has the value \"\"" },
		{ "[{\"name\":\"husk/mutable\",\"value\":\"false\"}]",
		  "\"apps\" has 0 members, not 1 to 32" },
		{ "[{\"name\":\"husk/mutable\",\"value\":\"true\"}]", NULL },
	};
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		CLEANUP_MANIFEST m;
		struct err e = ERR_INIT;
		char text[256];
		pod_manifest_init(&m);
		snprintf(text, sizeof(text),
			 "{\"acKind\":\"PodManifest\",\"apps\":[],\"annotations\":%s}",
			 samples[i].annotations);
		int r = pod_manifest_parse(text, strlen(text), &m, &e);
		assert_int_equal(r, samples[i].text ? -EBADMSG : 0);
		if (samples[i].text)
			assert_non_null(strstr(e.text, samples[i].text));
	}
}

static void test_format_refuses(void **state)
{
	(void)state;
	CLEANUP_MANIFEST m;
	char *text = NULL;
	pod_manifest_init(&m);
	assert_int_equal(add_app(&m, "one"), 0);
	assert_int_equal(strv_add(&m.apps[0].exec, "\xff"), 0);
	assert_int_equal(pod_manifest_format(&m, &text), -EILSEQ);
	strv_deinit(&m.apps[0].exec);
	/* Larger than any manifest that pod_manifest_parse() would take. */
	static char big[AGENT_STRING_MAX + 1];
	memset(big, 'x', sizeof(big) - 1);
	for (size_t i = 0; i < POD_MANIFEST_SIZE_MAX / sizeof(big) + 1; i++)
		assert_int_equal(strv_add(&m.apps[0].exec, big), 0);
	assert_int_equal(pod_manifest_format(&m, &text), -EMSGSIZE);
	assert_null(text);
}

#define HEAD                  "{\"acVersion\":\"0.8.11\",\"acKind\":\"PodManifest\",\"apps\":"
#define APP(name, image, run) "{\"name\":" name ",\"image\":" image ",\"app\":" run "}"
#define ID                    "{\"id\":\"sha256-00\"}"
#define RUN                   "{\"exec\":[\"/x\"]}"
#define ENV(v)                "{\"exec\":[\"/x\"],\"environment\":" v "}"
#define EVENTS(list)          "{\"exec\":[\"/x\"],\"eventHandlers\":" list "}"
#define GROUPS(v)             "{\"exec\":[\"/x\"],\"supplementaryGIDs\":" v "}"
#define ONE(app)              HEAD "[" app "]}"

static void test_parse_accepts(void **state)
{
	(void)state;
	static const char *const good[] = {
		ONE(APP("\"a\"", ID, RUN)),
		ONE(APP("\"a\"", ID, RUN)) " \n",
		HEAD "[" APP("\"a\"", ID, RUN) "," APP("\"b\"", ID, RUN) "]}",
		ONE(APP("\"a\"", ID, ENV("[]"))),
		ONE(APP("\"a\"", ID, ENV("[{\"name\":\"A\",\"value\":\"\"}]"))),
		ONE(APP("\"a\"", ID, "{\"exec\":[\"\"],\"unknown\":{\"x\":[1.5]}}")),
	};
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		CLEANUP_MANIFEST m;
		struct err e = ERR_INIT;
		pod_manifest_init(&m);
		if (parse(good[i], &m, &e) != 0)
			fail_msg("%s: %s", good[i], e.text);
	}
}

/* Each refusal names the field. */
static void test_parse_refuses(void **state)
{
	(void)state;
	static const struct {
		const char *text, *words;
	} bad[] = {
		{ "", "JSON" },
		{ "{}", "acKind" },
		{ "{\"acKind\":\"ImageManifest\"}", "acKind" },
		{ "{\"acKind\":\"PodManifest\"}", "apps" },
		{ HEAD "{}}", "apps" },
		{ HEAD "[]}", "apps" },
		{ HEAD "[1]}", "app 0" },
		{ ONE(APP("\"a\"", ID, RUN)) "x", "JSON" },
		{ ONE(APP("\"A\"", ID, RUN)), "app name" },
		{ ONE(APP("\"\"", ID, RUN)), "app name" },
		{ ONE(APP("\"../x\"", ID, RUN)), "app name" },
		{ ONE(APP("1", ID, RUN)), "\"name\"" },
		{ ONE(APP("\"a\"", "{}", RUN)), "\"id\"" },
		{ ONE(APP("\"a\"", "[]", RUN)), "\"id\"" },
		{ ONE(APP("\"a\"", ID, "{}")), "\"exec\"" },
		{ ONE(APP("\"a\"", ID, "{\"exec\":[]}")), "\"exec\"" },
		{ ONE(APP("\"a\"", ID, "{\"exec\":[1]}")), "\"exec\"" },
		{ ONE(APP("\"a\"", ID, "{\"exec\":\"/x\"}")), "\"exec\"" },
		{ ONE(APP("\"a\"", ID, "{\"exec\":[\"a\\u0000b\"]}")), "\"exec\"" },
		{ ONE(APP("\"a\"", ID, ENV("{}"))), "\"environment\"" },
		{ ONE(APP("\"a\"", ID, ENV("[1]"))), "\"environment\" member 0" },
		{ ONE(APP("\"a\"", ID, ENV("[{\"name\":\"A\"}]"))), "\"environment\" member 0" },
		{ ONE(APP("\"a\"", ID, ENV("[{\"name\":\"\",\"value\":\"\"}]"))),
		  "\"environment\" member 0" },
		{ ONE(APP("\"a\"", ID, ENV("[{\"name\":\"A=B\",\"value\":\"\"}]"))),
		  "\"environment\" member 0" },
		{ ONE(APP("\"a\"", ID, "{\"exec\":[\"/x\"],\"user\":1}")), "\"user\"" },
		{ ONE(APP("\"a\"", ID, "{\"exec\":[\"/x\"],\"isolators\":1}")), "\"isolators\"" },
		{ ONE(APP("\"a\"", ID, GROUPS("1"))),
		  "\"supplementaryGIDs\" is not a list of at most 1024" },
		{ ONE(APP("\"a\"", ID, GROUPS("[-1]"))), "member 0 is not a number of a group" },
		{ ONE(APP("\"a\"", ID, GROUPS("[0,4294967295]"))), "member 1 is not a number" },
		{ ONE(APP("\"a\"", ID, GROUPS("[\"1\"]"))), "member 0 is not a number" },
		{ ONE(APP("\"a\"", ID, EVENTS("1"))), "\"eventHandlers\" is not a list" },
		{ ONE(APP("\"a\"", ID, EVENTS("[1]"))), "an event handler has no name" },
		{ ONE(APP("\"a\"", ID, EVENTS("[{\"name\":\"x\",\"exec\":[\"y\"]}]"))),
		  "event handler \"x\" is not supported" },
		{ ONE(APP("\"a\"", ID, EVENTS("[{\"name\":\"pre-start\",\"exec\":[]}]"))),
		  "event handler \"pre-start\": \"exec\" is not a list of 1 to 65536 arguments" },
		{ ONE(APP("\"a\"", ID, EVENTS("[{\"name\":\"pre-start\",\"exec\":[\"\"]}]"))),
		  "event handler \"pre-start\": \"exec\"" },
		{ ONE(APP("\"a\"", ID,
			  EVENTS("[{\"name\":\"pre-start\",\"exec\":[\"y\"]},"
				 "{\"name\":\"pre-start\",\"exec\":[\"y\"]}]"))),
		  "event handler \"pre-start\" is given twice" },
		{ HEAD "[{\"name\":\"a\",\"image\":" ID ",\"readOnlyRootFS\":1}]}",
		  "\"readOnlyRootFS\"" },
		{ HEAD "[" APP("\"a\"", ID, RUN) "," APP("\"a\"", ID, RUN) "]}", "\"a\"" },
		{ HEAD "[" APP("\"a\"", ID, RUN) "],\"ports\":[{\"name\":\"a\",\"hostPort\":1}]}",
		  "\"ports\" member 0 has no \"podPort\"" },
		{ ONE(APP("\"a\"", ID, "{\"exec\":[\"/x\"],\"ports\":1}")),
		  "\"ports\" is not a list" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct pod_manifest m = { .n_apps = 4711 };
		struct err e = ERR_INIT;
		int r = parse(bad[i].text, &m, &e);
		if (r >= 0 || e.code != r || !strstr(e.text, bad[i].words) ||
		    !str_starts(e.text, "pod manifest: "))
			fail_msg("%s: %d %s", bad[i].text, r, e.text);
		assert_int_equal(m.n_apps, 4711);
	}
}

/* Appends @before and then @count copies of @item with commas between them. */
static void make_list(struct buf *b, const char *before, const char *item, size_t count)
{
	assert_int_equal(buf_puts(b, before), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(buf_printf(b, "%s%s", i ? "," : "", item), 0);
}

static int parse_buffer(struct buf *b)
{
	CLEANUP_MANIFEST m;
	pod_manifest_init(&m);
	int r = pod_manifest_parse(buf_data(b), buf_len(b), &m, NULL);
	buf_consume(b, buf_len(b));
	return r;
}

static void test_parse_limits(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	buf_init(&b, POD_MANIFEST_SIZE_MAX + 100);
	for (int over = 0; over <= 1; over++) {
		int want = over ? -EBADMSG : 0;
		make_list(&b, HEAD "[{\"name\":\"a\",\"image\":" ID ",\"app\":{\"exec\":[", "\"x\"",
			  AGENT_EXEC_MAX + (size_t)over);
		assert_int_equal(buf_puts(&b, "]}}]}"), 0);
		assert_int_equal(parse_buffer(&b), want);

		make_list(&b,
			  HEAD "[{\"name\":\"a\",\"image\":" ID
			       ",\"app\":{\"exec\":[\"x\"],\"environment\":[",
			  "{\"name\":\"A\",\"value\":\"\"}", AGENT_ENV_MAX + (size_t)over);
		assert_int_equal(buf_puts(&b, "]}}]}"), 0);
		assert_int_equal(parse_buffer(&b), want);

		static char value[AGENT_STRING_MAX + 1];
		memset(value, 'v', AGENT_STRING_MAX - strlen("A=") + (size_t)over);
		assert_int_equal(buf_printf(&b,
					    ONE(APP("\"a\"", ID,
						    ENV("[{\"name\":\"A\",\"value\":\"%s\"}]"))),
					    value),
				 0);
		assert_int_equal(parse_buffer(&b), want);

		/* What nobody reads is bounded, too. */
		make_list(&b, HEAD "[" APP("\"a\"", ID, RUN) "],\"unread\":[", "[]",
			  POD_MANIFEST_CONTAINERS_MAX - 7 + (size_t)over);
		assert_int_equal(buf_puts(&b, "]}"), 0);
		assert_int_equal(parse_buffer(&b), want);

		char name[AGENT_NAME_MAX + 2] = { 0 };
		memset(name, 'n', AGENT_NAME_MAX + (size_t)over);
		assert_int_equal(buf_printf(&b, ONE(APP("\"%s\"", ID, RUN)), name), 0);
		assert_int_equal(parse_buffer(&b), want);

		char cwd[AGENT_PATH_MAX + 2] = { 0 };
		memset(cwd, '/', AGENT_PATH_MAX + (size_t)over);
		assert_int_equal(
			buf_printf(&b,
				   ONE(APP("\"a\"", ID,
					   "{\"exec\":[\"x\"],\"workingDirectory\":\"%s\"}")),
				   cwd),
			0);
		assert_int_equal(parse_buffer(&b), want);

		/* The file as a whole: padded with blanks. */
		assert_int_equal(buf_puts(&b, ONE(APP("\"a\"", ID, RUN))), 0);
		while (buf_len(&b) < POD_MANIFEST_SIZE_MAX + (size_t)over)
			assert_int_equal(buf_puts(&b, " "), 0);
		assert_int_equal(parse_buffer(&b), want);
	}
}

static void test_parse_apps_limit(void **state)
{
	(void)state;
	for (int n = AGENT_APPS_MAX; n <= AGENT_APPS_MAX + 1; n++) {
		cleanup_buf struct buf b;
		buf_init(&b, POD_MANIFEST_SIZE_MAX);
		assert_int_equal(buf_puts(&b, HEAD "["), 0);
		for (int i = 0; i < n; i++)
			assert_int_equal(
				buf_printf(&b, "%s" APP("\"a%d\"", ID, RUN), i ? "," : "", i), 0);
		assert_int_equal(buf_puts(&b, "]}"), 0);
		assert_int_equal(parse_buffer(&b), n <= AGENT_APPS_MAX ? 0 : -EBADMSG);
	}
}

static void test_groups(void **state)
{
	(void)state;
	cleanup_strv struct strv groups;
	struct err e = ERR_INIT;
	strv_init(&groups, AGENT_GROUPS_MAX);
	for (int i = 0; i < AGENT_GROUPS_MAX; i++)
		assert_int_equal(pod_app_add_group(&groups, "007", &e), 0);
	assert_string_equal(groups.v[0], "7");
	assert_int_equal(pod_app_add_group(&groups, "7", &e), -E2BIG);
	assert_non_null(strstr(e.text, "at most 1024 groups"));
	assert_int_equal(pod_app_add_group(&groups, "4294967295", &e), -EINVAL);
	assert_string_equal(e.text, "\"4294967295\" is not a number of a group");
	assert_int_equal(pod_app_add_group(&groups, "wheel", &e), -EINVAL);
}

static int format_one(void *ctx)
{
	(void)ctx;
	CLEANUP_MANIFEST m, back;
	pod_manifest_init(&m);
	pod_manifest_init(&back);
	cleanup_free char *text = NULL;
	int r = add_app(&m, "one");
	if (r == 0)
		r = pod_manifest_format(&m, &text);
	if (r == 0)
		r = parse(text, &back, NULL);
	if (r < 0)
		return r;
	return back.n_apps == 1 && back.apps[0].env.n == 2 && back.apps[0].exec.n == 1 ? 0 : 1;
}

static void test_short_of_memory(void **state)
{
	(void)state;
	/* Lenient for vasprintf(3), in which strv_env_set() builds a variable. */
	for_each_failing_alloc_lenient(format_one, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_round_trip),
		fixture_test(test_add_limits),
		fixture_test(test_remove),
		fixture_test(test_annotations),
		fixture_test(test_notes),
		fixture_test(test_streams),
		fixture_test(test_gathered_logs),
		fixture_test(test_entrypoint),
		fixture_test(test_working_dir),
		fixture_test(test_image_and_user),
		fixture_test(test_entrypoint_refused),
		fixture_test(test_annotations_refused),
		fixture_test(test_format_refuses),
		fixture_test(test_parse_accepts),
		fixture_test(test_parse_refuses),
		fixture_test(test_parse_limits),
		fixture_test(test_parse_apps_limit),
		fixture_test(test_groups),
		fixture_test(test_short_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
