/* SPDX-License-Identifier: Apache-2.0 */
#include "host/manifest/user_manifest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fixture.h"

#define POD(apps)  "{\"acKind\":\"PodManifest\",\"acVersion\":\"0.8.11\",\"apps\":[" apps "]}"
#define IMAGE      "\"image\":{\"name\":\"/images/web:1\",\"id\":\"sha256-00\"}"
#define APP(extra) "{\"name\":\"web\"," IMAGE extra "}"

static int parse(const char *text, struct run_request *q, struct err *e)
{
	run_request_init(q);
	return declare_parse(text, strlen(text), q, e);
}

static void test_whole(void **state)
{
	(void)state;
	CLEANUP(run_request_deinit) struct run_request q;
	struct err e = ERR_INIT;
	const char *text = POD(APP(
		",\"annotations\":[{\"name\":\"a\",\"value\":\"b\"}],\"app\":{"
		"\"exec\":[\"/bin/web\",\"--port=1\"],\"user\":\"www\","
		"\"group\":\"100\",\"workingDirectory\":\"/srv\",\"isolators\":[],"
		"\"environment\":[{\"name\":\"A\",\"value\":\"b=c\"}]}") ","
									 "{\"name\":\"other\",\"image\":{\"name\":\"x\"}}");
	assert_int_equal(parse(text, &q, &e), 0);
	assert_int_equal(q.n_apps, 2);
	const struct app_options *o = &q.apps[0];
	assert_string_equal(o->name, "web");
	assert_string_equal(o->image, "sha256-00");
	assert_true(o->instead_of_image);
	assert_int_equal(o->args.n, 2);
	assert_string_equal(o->args.v[1], "--port=1");
	assert_string_equal(o->user, "www");
	assert_string_equal(o->group, "100");
	assert_string_equal(o->working_dir, "/srv");
	assert_string_equal(o->env.v[0], "A=b=c");
	assert_string_equal(q.apps[1].image, "x");
	assert_false(q.apps[1].instead_of_image);
}

/* Ports of the pod, one by the name that an app has for it. */
static void test_ports(void **state)
{
	(void)state;
	CLEANUP(run_request_deinit) struct run_request q;
	struct err e = ERR_INIT;
	const char *text = "{\"acKind\":\"PodManifest\",\"apps\":[" APP(
		",\"app\":{\"exec\":[\"x\"],\"ports\":[{\"name\":\"http\","
		"\"protocol\":\"tcp\",\"port\":80}]}") "],\"ports\":[{\"name\":\"http\",\"hostPort\":"
						       "8080},{\"name\":\"dns\",\"hostPort\":53,"
						       "\"podPort\":{\"name\":\"dns\",\"protocol\":"
						       "\"udp\",\"port\":5353}}]}";
	assert_int_equal(parse(text, &q, &e), 0);
	assert_int_equal(q.apps[0].ports.n, 1);
	assert_int_equal(q.ports.n, 2);
	assert_int_equal(q.ports.v[0].port, 0);
	assert_int_equal(q.ports.v[1].port, 5353);
}

/* An ID alone is enough; user and group that stand there for appc's sake are nobody's wish. */
static void test_id_alone(void **state)
{
	(void)state;
	static const struct {
		const char *unset, *user, *group;
	} cases[] = {
		{ "user", NULL, "0" },
		{ "group", "0", NULL },
		{ "user,group", NULL, NULL },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(run_request_deinit) struct run_request q;
		struct err e = ERR_INIT;
		char text[512];
		snprintf(
			text, sizeof(text),
			POD("{\"name\":\"a\",\"image\":{\"id\":\"sha512-ab\"},\"app\":{\"exec\":[\"x\"],"
			    "\"user\":\"0\",\"group\":\"0\"},\"annotations\":[{\"name\":\"husk/unset\","
			    "\"value\":\"%s\"}]}"),
			cases[i].unset);
		assert_int_equal(parse(text, &q, &e), 0);
		assert_string_equal(q.apps[0].image, "sha512-ab");
		assert_int_equal(q.apps[0].user != NULL, cases[i].user != NULL);
		assert_int_equal(q.apps[0].group != NULL, cases[i].group != NULL);
	}
}

/* What confines the app, up to the app of the pod. */
static void test_confinement(void **state)
{
	(void)state;
	CLEANUP(run_request_deinit) struct run_request q;
	CLEANUP(pod_app_deinit) struct pod_app app;
	static const struct image_config image = { .working_dir = "", .user = "" };
	struct err e = ERR_INIT;
	pod_app_init(&app);
	assert_int_equal(
		parse(POD(APP(",\"readOnlyRootFS\":true,\"app\":{\"exec\":[\"x\"],"
			      "\"supplementaryGIDs\":[7,8],\"isolators\":["
			      "{\"name\":\"resource/memory\",\"value\":{\"request\":\"1M\","
			      "\"limit\":\"64Mi\"}},"
			      "{\"name\":\"os/linux/capabilities-retain-set\","
			      "\"value\":{\"set\":[\"CAP_KILL\"]}}]}")),
		      &q, &e),
		0);
	assert_int_equal(compose_app(&q.apps[0], "name", "sha256-00", &image, &q.env, &app, &e), 0);
	assert_true(app.read_only_root);
	assert_int_equal(app.groups.n, 2);
	assert_string_equal(app.groups.v[1], "8");
	assert_int_equal(app.isolators.memory, 64 << 20);
	assert_string_equal(app.isolators.caps.v[0], "CAP_KILL");
}

/* An app section stands for the image's configuration as a whole. */
static void test_instead_of_image(void **state)
{
	(void)state;
	CLEANUP(run_request_deinit) struct run_request q;
	CLEANUP(pod_app_deinit) struct pod_app app;
	CLEANUP(strv_deinit) struct strv words;
	struct err e = ERR_INIT;
	struct image_config image = { .working_dir = "/image", .user = "image:image" };
	pod_app_init(&app);
	strv_init(&words, 1);
	assert_int_equal(strv_add(&words, "IMAGE=1"), 0);
	image.entrypoint = image.cmd = image.env = words;
	assert_int_equal(parse(POD(APP(",\"app\":{\"exec\":[\"x\"]}")), &q, &e), 0);
	assert_int_equal(compose_app(&q.apps[0], "name", "sha256-00", &image, &q.env, &app, &e), 0);
	assert_int_equal(app.exec.n, 1);
	assert_string_equal(app.exec.v[0], "x");
	assert_int_equal(app.env.n, 0);
	assert_string_equal(app.user, "");
	assert_string_equal(app.group, "");
	assert_string_equal(app.cwd, "/");
}

static const struct {
	const char *text, *error;
} bad[] = {
	{ "", "it is not valid JSON" },
	{ "[]", "\"acKind\" is not" },
	{ "{\"acKind\":\"ImageManifest\"}", "\"acKind\" is not" },
	{ "{\"acKind\":\"PodManifest\"}", "pod must contain at least one application" },
	{ POD(""), "pod must contain at least one application" },
	{ "{\"acKind\":\"PodManifest\",\"apps\":{}}", "\"apps\" is not a list" },
	{ "{\"acKind\":\"PodManifest\",\"apps\":[],\"volumes\":[{}]}",
	  "\"volumes\" member 0: \"name\" is not a name" },
	{ "{\"acKind\":\"PodManifest\",\"apps\":[],\"ports\":[1]}",
	  "\"ports\" member 0: \"name\" is not" },
	{ "{\"acKind\":\"PodManifest\",\"apps\":[],\"isolators\":{}}",
	  "\"isolators\" of the pod is not a list" },
	{ "{\"acKind\":\"PodManifest\",\"apps\":[],\"isolators\":[{\"name\":\"resource/memory\"}]}",
	  "isolator \"resource/memory\" of a pod is not supported" },
	{ POD("1"), "app 0: \"name\" is missing" },
	{ POD("{\"name\":\"a\"}"), "app 0: \"image.id\" and \"image.name\" are missing" },
	{ POD("{\"name\":\"a\",\"image\":{\"id\":\"x\"}}"), "app 0: \"image.id\" is \"x\", no ID" },
	{ POD("{\"name\":\"a\",\"image\":{\"name\":\"x\",\"labels\":[{}]}}"),
	  "app 0: \"image.labels\" need an \"image.id\"" },
	{ POD("{\"name\":\"a\",\"image\":{\"name\":\"x\"},\"annotations\":[{\"name\":\"husk/unset\",\"value\":\"all\"}]}"),
	  "app 0: annotation \"husk/unset\" has the value \"all\"" },
	{ POD("{\"name\":1}"), "app 0: \"name\" is not a string" },
	{ POD(APP(",\"mounts\":[{}]")), "app 0: \"mounts\" member 0: \"volume\" is not a name" },
	{ POD(APP(",\"readOnlyRootFS\":\"true\"")),
	  "app 0: \"readOnlyRootFS\" is neither true nor false" },
	{ POD(APP(",\"app\":[]")), "app 0: \"app\" is not an object" },
	{ POD(APP(",\"app\":{}")), "app 0: \"exec\" is not a list" },
	{ POD(APP(",\"app\":{\"exec\":[]}")), "app 0: \"exec\" is not a list" },
	{ POD(APP(",\"app\":{\"exec\":[1]}")), "app 0: \"exec\" is not a list" },
	{ POD(APP(",\"app\":{\"exec\":[\"x\"],\"isolators\":[{}]}")),
	  "app 0: \"name\" is missing, or no string" },
	{ POD(APP(",\"app\":{\"exec\":[\"x\"],\"isolators\":[{\"name\":\"resource/block-iops\","
		  "\"value\":{\"limit\":\"1\"}}]}")),
	  "app 0: isolator \"resource/block-iops\" is not supported in this version" },
	{ POD(APP(",\"app\":{\"exec\":[\"x\"],\"isolators\":[{\"name\":\"resource/memory\","
		  "\"value\":{\"limit\":\"1m\"}}]}")),
	  "app 0: isolator \"resource/memory\": \"1m\" is less than 4096 bytes" },
	{ POD(APP(",\"app\":{\"exec\":[\"x\"],\"supplementaryGIDs\":[\"x\"]}")),
	  "app 0: \"supplementaryGIDs\" member 0 is not a number of a group" },
	{ POD(APP(",\"app\":{\"exec\":[\"x\"],\"eventHandlers\":[{}]}")),
	  "app 0: an event handler has no name" },
	{ POD(APP(",\"app\":{\"exec\":[\"x\"],\"user\":0}")), "app 0: \"user\" is not a string" },
	{ POD(APP(",\"app\":{\"exec\":[\"x\"],\"environment\":{}}")),
	  "app 0: \"environment\" is not a list" },
	{ POD(APP(",\"app\":{\"exec\":[\"x\"],\"environment\":[{\"name\":\"a=\",\"value\":\"\"}]}")),
	  "app 0: \"environment\" member 0 is not a variable" },
	{ POD(APP(",\"app\":{\"exec\":[\"x\"],\"environment\":[{\"name\":\"a\",\"value\":\"\"},"
		  "{\"name\":\"a\",\"value\":\"\"}]}")),
	  "app 0: \"environment\" has \"a\" twice" },
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP(run_request_deinit) struct run_request q;
		struct err e = ERR_INIT;
		assert_true(parse(bad[i].text, &q, &e) < 0);
		if (!strstr(e.text, bad[i].error))
			fail_msg("\"%s\" does not have \"%s\"", e.text, bad[i].error);
	}
}

/* @n apps. */
static int parse_apps(size_t n, struct err *e)
{
	static char text[AGENT_APPS_MAX * 64 + 256];
	CLEANUP(run_request_deinit) struct run_request q;
	size_t len = (size_t)snprintf(text, sizeof(text), "{\"acKind\":\"PodManifest\",\"apps\":[");
	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s{\"name\":\"a%zu\",\"image\":{\"name\":\"x\"}}",
					i > 0 ? "," : "", i);
	snprintf(text + len, sizeof(text) - len, "]}");
	return parse(text, &q, e);
}

static void test_limits(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	assert_int_equal(parse_apps(AGENT_APPS_MAX, &e), 0);
	assert_int_equal(parse_apps(AGENT_APPS_MAX + 1, &e), -E2BIG);
	assert_non_null(strstr(e.text, "at most 32 apps"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_whole),
		fixture_test(test_confinement),
		fixture_test(test_instead_of_image),
		fixture_test(test_id_alone),
		fixture_test(test_ports),
		fixture_test(test_bad),
		fixture_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
