/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/show.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define T(s)     ((s)*NS_PER_SEC)
#define SHORT_ID "sha256-001122334455"
#define ID       "sha256-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define UUID1    "6733c088-a507-4694-aabf-0123456789ab"
#define UUID2    "9a1e2b3c-a507-4694-aabf-0123456789ab"

static struct app_info apps[] = {
	{ .name = "redis",
	  .image_name = "redis:7",
	  .image_id = ID,
	  .state = APP_STATE_EXITED,
	  .created_ns = T(101),
	  .started_ns = T(102),
	  .finished_ns = T(110),
	  .has_exit_code = true,
	  .exit_code = 9,
	  .oom = true,
	  .why = { .signal = 9, .message = "too much" },
	  .has_log = true },
	{ .name = "web", .image_name = "", .image_id = ID, .state = APP_STATE_CREATED },
};

static struct pod_info exited_pod(void)
{
	return (struct pod_info){ .uuid = { UUID1 },
				  .name = "db",
				  .flavor = "kvm",
				  .state = POD_STATE_EXITED,
				  .created_ns = T(100),
				  .started_ns = T(103) + 500 * NS_PER_MS,
				  .pid = 4711,
				  .phase = POD_RUN,
				  .has_supervisor_log = true,
				  .apps = apps,
				  .n_apps = 2 };
}

/* Two networks, the second with IPv6 only. */
static void give_networks(struct pod_info *info, struct net_info_list *list)
{
	static const char file[] =
		"[{\"netName\":\"default\",\"ifName\":\"eth0\",\"ip\":\"172.16.28.2\",\"mask\":"
		"\"255.255.255.0\",\"ips\":[\"fd00::2/64\",\"172.16.28.2/24\"]},{\"netName\":\"six\","
		"\"ifName\":\"eth1\",\"ips\":[\"fd01::3/64\"]}]";
	assert_int_equal(net_info_parse(file, strlen(file), list), 0);
	info->networks = list;
}

static struct pod_info young_pod(void)
{
	return (struct pod_info){ .uuid = { UUID2 },
				  .state = POD_STATE_PREPARING,
				  .created_ns = T(4000) };
}

/* The listing of both pods. */
static int list(enum show_layout layout, bool legend, struct buf *out)
{
	CLEANUP(table_deinit) struct table t;
	struct pod_info one = exited_pod(), two = young_pod();
	table_init(&t, show_list_columns(layout));
	buf_init(out, 4096);
	int r = legend ? show_list_header(&t, layout) : 0;
	if (r == 0)
		r = show_list_pod(&t, &one, layout, T(4000));
	if (r == 0)
		r = show_list_pod(&t, &two, layout, T(4000));
	if (r == 0)
		r = table_format(&t, out);
	return r < 0 ? r : buf_append(out, "", 1);
}

static void test_list(void **state)
{
	(void)state;
	cleanup_buf struct buf out;
	assert_int_equal(list(SHOW_SHORT, true, &out), 0);
	assert_string_equal(
		buf_data(&out),
		"UUID\t\tAPP\tIMAGE NAME\tSTATE\t\tCREATED\t\tSTARTED\t\tNETWORKS\tNAME\tFLAVOR\n"
		"6733c088\tredis\tredis:7\t\texited\t\t1 hour ago\t1 hour ago\t\t\tdb\tkvm\n"
		"\t\tweb\t--\t\t\t\t\t\t\t\t\t\t\t\n"
		"9a1e2b3c\t-\t-\t\tpreparing\tnow\t\t\t\t\t\t\t\n");
}

static void test_list_full(void **state)
{
	(void)state;
	cleanup_buf struct buf out;
	assert_int_equal(list(SHOW_FULL, true, &out), 0);
	/* Of IDs it shows as much as without. Scripts for rkt read the times from the end. */
	assert_string_equal(buf_data(&out),
			    "UUID\t\t\t\t\tAPP\tIMAGE NAME\tIMAGE ID\t\tNAME\tFLAVOR\tSTATE\t\t"
			    "CREATED\t\t\t\tSTARTED\t\t\t\tNETWORKS\n" UUID1
			    "\tredis\tredis:7\t\t" SHORT_ID
			    "\tdb\tkvm\texited\t\t1970-01-01 00:01:40 +0000 UTC\t"
			    "1970-01-01 00:01:43.5 +0000 UTC\t\n"
			    "\t\t\t\t\tweb\t--\t\t" SHORT_ID "\t\t\t\t\t\t\t\t\t\t\t\t\t\n" UUID2
			    "\t-\t-\t\t-\t\t\t\t\tpreparing\t1970-01-01 01:06:40 +0000 UTC\t"
			    "\t\t\t\t\n");
}

/* On a terminal: fewer columns, with the name in front. */
static void test_list_narrow(void **state)
{
	(void)state;
	CLEANUP(table_deinit) struct table t;
	cleanup_buf struct buf out;
	struct pod_info one = exited_pod();
	table_init(&t, show_list_columns(SHOW_NARROW));
	buf_init(&out, 4096);
	assert_int_equal(show_list_header(&t, SHOW_NARROW), 0);
	assert_int_equal(show_list_pod(&t, &one, SHOW_NARROW, T(4000)), 0);
	assert_int_equal(table_format_width(&t, 80, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(buf_data(&out),
			    "UUID      NAME  APP    IMAGE NAME  STATE   CREATED\n"
			    "6733c088  db    redis  redis:7     exited  1 hour ago\n"
			    "                web    --\n");
}

static void test_status(void **state)
{
	static const struct {
		enum pod_state state;
		const char *want;
	} cases[] = {
		{ POD_STATE_EXITED,
		  "state=exited\nname=db\nflavor=kvm\ncreated=1970-01-01 00:01:40 +0000 UTC\n"
		  "started=1970-01-01 00:01:43.5 +0000 UTC\nnetworks=\npid=4711\nexited=true\n"
		  "app-redis=9\nreason-redis=oom-killed: too much\n" },
		{ POD_STATE_RUNNING,
		  "state=running\nname=db\nflavor=kvm\ncreated=1970-01-01 00:01:40 +0000 UTC\n"
		  "started=1970-01-01 00:01:43.5 +0000 UTC\nnetworks=\npid=4711\nexited=false\n"
		  "reason-redis=oom-killed: too much\n" },
		{ POD_STATE_EXITED_GARBAGE,
		  "state=exited garbage\nname=db\nflavor=kvm\ncreated=1970-01-01 00:01:40 +0000 UTC\n"
		  "started=1970-01-01 00:01:43.5 +0000 UTC\npid=4711\nexited=true\napp-redis=9\n"
		  "reason-redis=oom-killed: too much\n" },
		{ POD_STATE_EXITED_DELETING,
		  "state=exited deleting\nname=db\nflavor=kvm\ncreated=1970-01-01 00:01:40 +0000 UTC\n"
		  "started=1970-01-01 00:01:43.5 +0000 UTC\npid=4711\nexited=false\napp-redis=9\n"
		  "reason-redis=oom-killed: too much\n" },
		{ POD_STATE_PREPARED,
		  "state=prepared\nname=db\nflavor=kvm\ncreated=1970-01-01 00:01:40 +0000 UTC\n"
		  "started=1970-01-01 00:01:43.5 +0000 UTC\n" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_buf struct buf out;
		struct pod_info info = exited_pod();
		info.state = cases[i].state;
		buf_init(&out, 4096);
		assert_int_equal(show_status(&info, &out), 0);
		assert_int_equal(buf_append(&out, "", 1), 0);
		assert_string_equal(buf_data(&out), cases[i].want);
	}
}

static void test_json(void **state)
{
	(void)state;
	cleanup_buf struct buf out;
	struct pod_info info = exited_pod();
	cleanup_json struct json_object *obj = show_pod_json(&info, "/d");
	buf_init(&out, 4096);
	assert_int_equal(show_json(obj, SHOW_JSON, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(
		buf_data(&out),
		"{\"name\":\"" UUID1
		"\",\"pod_name\":\"db\",\"state\":\"exited\",\"flavor\":\"kvm\",\"networks\":[],\"app_names\":[\"redis\",\"web\"],"
		"\"apps\":[{\"name\":\"redis\",\"state\":\"exited\","
		"\"created_at\":\"1970-01-01T00:01:41.000000000Z\","
		"\"started_at\":\"1970-01-01T00:01:42.000000000Z\","
		"\"finished_at\":\"1970-01-01T00:01:50.000000000Z\",\"exit_code\":9,\"signal\":9,"
		"\"reason\":\"oom-killed\",\"message\":\"too much\",\"oom_killed\":true,"
		"\"image_id\":\"" ID "\",\"image_name\":\"redis:7\","
		"\"log_path\":\"/d/pods/run/" UUID1 "/logs/redis\"},"
		"{\"name\":\"web\",\"state\":\"created\",\"image_id\":\"" ID "\"}],"
		"\"created_at\":\"1970-01-01T00:01:40.000000000Z\","
		"\"started_at\":\"1970-01-01T00:01:43.500000000Z\","
		"\"supervisor_log_path\":\"/d/pods/run/" UUID1 "/supervisor.log\"}\n");
}

/*
 * As rkt shows them, IPv6 behind; in JSON all that is known. Only the first row of a pod has them.
 */
static void test_networks(void **state)
{
	static struct net_info_list networks;
	struct pod_info info = exited_pod();
	CLEANUP(table_deinit) struct table t;
	cleanup_buf struct buf out, status;
	(void)state;
	give_networks(&info, &networks);
	info.state = POD_STATE_RUNNING;
	buf_init(&out, 4096);
	buf_init(&status, 4096);
	table_init(&t, show_list_columns(SHOW_SHORT));
	assert_int_equal(show_list_pod(&t, &info, SHOW_SHORT, T(4000)), 0);
	assert_int_equal(table_format(&t, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	char *first = strstr(buf_data(&out),
			     "default:ip4=172.16.28.2, default:ip6=fd00::2, six:ip6=fd01::3");
	assert_non_null(first);
	assert_null(strstr(first + strlen("default:ip4="), "ip4="));
	assert_int_equal(show_status(&info, &status), 0);
	assert_int_equal(buf_append(&status, "", 1), 0);
	assert_non_null(strstr(buf_data(&status),
			       "\nnetworks=default:ip4=172.16.28.2, default:ip6=fd00::2, "
			       "six:ip6=fd01::3\npid="));
	cleanup_json struct json_object *obj = show_pod_json(&info, "/d");
	struct json_object *list = json_member(obj, "networks");
	assert_int_equal(json_object_array_length(list), 2);
	struct json_object *one = json_object_array_get_idx(list, 0);
	assert_string_equal(json_object_get_string(json_member(one, "ip")), "172.16.28.2");
	assert_string_equal(json_object_get_string(json_member(one, "mask")), "255.255.255.0");
	assert_int_equal(json_object_array_length(json_member(one, "ips")), 2);
}

/* Each end has its word. */
static void test_ends(void **state)
{
	static const struct {
		struct app_info app;
		const char *reason, *line;
	} cases[] = {
		{ { .state = APP_STATE_RUNNING }, NULL, "" },
		{ { .state = APP_STATE_EXITED }, NULL, "" },
		{ { .state = APP_STATE_EXITED, .has_exit_code = true }, "completed", "" },
		{ { .state = APP_STATE_EXITED, .has_exit_code = true, .exit_code = 203 },
		  "failed",
		  "" },
		{ { .state = APP_STATE_EXITED,
		    .has_exit_code = true,
		    .exit_code = 203,
		    .why = { .message = "no" } },
		  "not-executed",
		  "reason=not-executed: no\n" },
		{ { .state = APP_STATE_EXITED,
		    .has_exit_code = true,
		    .exit_code = 15,
		    .why = { .signal = 15 } },
		  "signaled",
		  "reason=signaled (15)\n" },
		{ { .state = APP_STATE_EXITED,
		    .has_exit_code = true,
		    .exit_code = 9,
		    .why = { .signal = 9 },
		    .oom = true },
		  "oom-killed",
		  "reason=oom-killed\n" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_buf struct buf out;
		const char *reason = app_end_name(app_end_of(&cases[i].app));
		assert_true(reason ? cases[i].reason && strcmp(reason, cases[i].reason) == 0
				   : !cases[i].reason);
		buf_init(&out, 4096);
		assert_int_equal(show_app(&cases[i].app, &out), 0);
		assert_int_equal(buf_append(&out, "", 1), 0);
		const char *line = strstr(buf_data(&out), "reason=");
		assert_string_equal(line ? line : "", cases[i].line);
	}
}

static void test_json_pretty(void **state)
{
	(void)state;
	cleanup_buf struct buf out;
	struct pod_info info = young_pod();
	cleanup_json struct json_object *obj = show_pod_json(&info, "/d");
	buf_init(&out, 4096);
	assert_int_equal(show_json(obj, SHOW_JSON_PRETTY, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(buf_data(&out),
			    "{\n\t\"name\": \"" UUID2 "\",\n\t\"state\": \"preparing\",\n"
			    "\t\"networks\": [\n\t],\n"
			    "\t\"app_names\": [\n\t],\n\t\"apps\": [\n\t],\n"
			    "\t\"created_at\": \"1970-01-01T01:06:40.000000000Z\"\n}\n");
}

static void test_json_null(void **state)
{
	(void)state;
	cleanup_buf struct buf out;
	buf_init(&out, 16);
	assert_int_equal(show_json(NULL, SHOW_JSON, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(buf_data(&out), "null\n");
}

static struct json_object *some_event(void)
{
	static const struct uuid uuid = { UUID1 };
	const struct pod_event ev = { .kind = POD_EVENT_APP_EXITED,
				      .time_ns = INT64_C(1136214245999000001),
				      .app = "redis",
				      .has_exit_code = true,
				      .exit_code = 9,
				      .end = APP_END_OOM_KILLED,
				      .signal = 9 };
	return show_event_json(&uuid, &ev);
}

static void assert_line(struct json_object *obj, const char *want)
{
	cleanup_buf struct buf out;
	buf_init(&out, 1024);
	assert_non_null(obj);
	assert_int_equal(json_write(obj, false, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(buf_data(&out), want);
	json_object_put(obj);
}

static void test_events(void **state)
{
	static const struct uuid uuid = { UUID1 };
	struct pod_event ev = { .kind = POD_EVENT_READY, .time_ns = T(1) };
	const struct pod_event named = { .kind = POD_EVENT_READY,
					 .time_ns = T(1),
					 .pod_name = "db",
					 .ips = "10.0.0.1 fd00::1" };
	(void)state;
	assert_line(show_event_json(&uuid, &named),
		    "{\"time\":\"1970-01-01T00:00:01.000000000Z\",\"type\":\"pod\","
		    "\"event\":\"ready\",\"pod\":\"" UUID1
		    "\",\"pod_name\":\"db\",\"ips\":[\"10.0.0.1\",\"fd00::1\"]}");
	assert_line(show_event_json(&uuid, &ev),
		    "{\"time\":\"1970-01-01T00:00:01.000000000Z\",\"type\":\"pod\","
		    "\"event\":\"ready\",\"pod\":\"" UUID1 "\"}");
	assert_line(some_event(), "{\"time\":\"2006-01-02T15:04:05.999000001Z\",\"type\":\"app\","
				  "\"event\":\"exited\",\"pod\":\"" UUID1 "\",\"app\":\"redis\","
				  "\"exit_code\":9,\"signal\":9,\"reason\":\"oom-killed\","
				  "\"oom_killed\":true}");
	assert_line(show_live_json(T(2)), "{\"time\":\"1970-01-01T00:00:02.000000000Z\","
					  "\"type\":\"stream\",\"event\":\"live\"}");
}

/* Each kind has its word, and only apps have "oom". */
static void test_event_names(void **state)
{
	static const char *const names[POD_EVENT_KIND_COUNT_] = {
		"created",   "prepared", "started", "ready",   "disk-full", "disk-room",
		"suspended", "resumed",  "exited",  "marked",  "removed",   "created",
		"started",   "oom",      "exited",  "removed",
	};
	(void)state;
	for (enum pod_event_kind kind = 0; kind < POD_EVENT_KIND_COUNT_; kind++)
		assert_string_equal(pod_event_name(kind), names[kind]);
}

static void test_format_names(void **state)
{
	(void)state;
	struct opts {
		enum show_format format;
	} o = { SHOW_JSON };
	const struct flag f = FLAG_FORMAT(struct opts, "");
	struct err e = ERR_INIT;
	assert_int_equal(f.set(&o, &f, "", &e), 0);
	assert_int_equal(o.format, SHOW_TEXT);
	assert_int_equal(f.set(&o, &f, "json-pretty", &e), 0);
	assert_int_equal(o.format, SHOW_JSON_PRETTY);
	assert_int_equal(f.set(&o, &f, "yaml", &e), -EINVAL);
	assert_string_equal(e.text, "invalid format \"yaml\" (json or json-pretty)");
}

static int json_something(void *ctx)
{
	(void)ctx;
	struct pod_info info = exited_pod();
	cleanup_json struct json_object *obj = show_pod_json(&info, "/d");
	return obj ? 0 : -ENOMEM;
}

static int event_json(void *ctx)
{
	(void)ctx;
	cleanup_json struct json_object *obj = some_event();
	return obj ? 0 : -ENOMEM;
}

static void test_memory_failure(void **state)
{
	(void)state;
	for_each_failing_alloc(json_something, NULL);
	for_each_failing_alloc(event_json, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_list),           fixture_test(test_list_full),
		fixture_test(test_list_narrow),    fixture_test(test_status),
		fixture_test(test_json),           fixture_test(test_networks),
		fixture_test(test_ends),           fixture_test(test_json_pretty),
		fixture_test(test_json_null),      fixture_test(test_format_names),
		fixture_test(test_memory_failure), fixture_test(test_events),
		fixture_test(test_event_names),
	};
	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
