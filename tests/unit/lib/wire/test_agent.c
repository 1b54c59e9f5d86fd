/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define SECRET "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Fills @dst of @size bytes with the longest text that fits. */
static void fill(char *dst, size_t size, char c)
{
	memset(dst, c, size - 1);
	dst[size - 1] = '\0';
}

/* Sends @body through a frame as the peer would see it; the caller owns the result. */
static struct json_object *transfer(struct json_object *body)
{
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	const char *p;
	size_t len;
	assert_int_equal(rpc_append_request(&b, RPC_ID_MAX, AGENT_POD_SHUTDOWN, body), 0);
	assert_int_equal(frame_peek(&b, &p, &len), 0);
	CLEANUP(rpc_msg_deinit) struct rpc_msg m = { 0 };
	assert_int_equal(rpc_decode(p, len, &m), 0);
	return TAKE_PTR(m.body);
}

/* The message @m goes out, fits a frame and comes back the same. */
#define assert_round_trip(name, m)                                                        \
	do {                                                                              \
		struct json_object *body_ = NULL, *again_ = NULL;                         \
		struct agent_##name back_;                                                \
		assert_int_equal(agent_##name##_encode(&(m), &body_), 0);                 \
		cleanup_json struct json_object *got_ = transfer(json_object_get(body_)); \
		assert_int_equal(agent_##name##_decode(got_, &back_), 0);                 \
		assert_int_equal(agent_##name##_encode(&back_, &again_), 0);              \
		assert_true(json_object_equal(body_, again_));                            \
		json_object_put(body_);                                                   \
		json_object_put(again_);                                                  \
	} while (0)

/* With lists, which the copy owns. */
static void setup_round_trip(const struct agent_pod_setup *m)
{
	CLEANUP(agent_pod_setup_deinit) struct agent_pod_setup back;
	struct json_object *body = NULL, *again = NULL;
	assert_int_equal(agent_pod_setup_encode(m, &body), 0);
	cleanup_json struct json_object *got = transfer(json_object_get(body));
	assert_int_equal(agent_pod_setup_decode(got, &back), 0);
	assert_int_equal(agent_pod_setup_encode(&back, &again), 0);
	assert_true(json_object_equal(body, again));
	json_object_put(body);
	json_object_put(again);
}

static void test_round_trips_of_largest(void **state)
{
	(void)state;
	struct agent_hello hello = { .version_min = 0, .version_max = INT32_MAX, .secret = SECRET };
	assert_round_trip(hello, hello);

	struct agent_hello_reply reply = { .version = 1 };
	/* Escaped, each of these is six bytes long. */
	fill(reply.agent, sizeof(reply.agent), '"');
	fill(reply.kernel, sizeof(reply.kernel), 'k');
	assert_round_trip(hello_reply, reply);

	for (int i = 0; i < AGENT_STREAM_COUNT_; i++) {
		struct agent_attach attach = { .secret = SECRET,
					       .stream = (enum agent_stream)i,
					       .end_stdin = i == 0 };
		fill(attach.app, sizeof(attach.app), 'a');
		assert_round_trip(attach, attach);
	}

	struct agent_connect connect = { .secret = SECRET, .port = UINT16_MAX };
	assert_round_trip(connect, connect);

	struct agent_pod_setup setup = { .clock_ns = INT64_MAX, .scratch_lun = AGENT_LUN_MAX };
	fill(setup.hostname, sizeof(setup.hostname), 'h');
	char *parameters[SYSCTLS_MAX], one[] = "net.core.somaxconn=1", empty[] = "";
	for (size_t i = 0; i < SYSCTLS_MAX; i++)
		parameters[i] = i % 2 ? one : empty;
	assert_round_trip(pod_setup, setup);
	setup.scratch_lun = -1;
	setup.sysctls = (struct strv){ parameters, SYSCTLS_MAX, SYSCTLS_MAX };
	setup_round_trip(&setup);

	struct agent_app_ref ref = { .app = "a" };
	assert_round_trip(app_ref, ref);

	struct agent_app_signal signal = { .app = "a", .signal = AGENT_SIGNAL_MAX };
	assert_round_trip(app_signal, signal);

	struct agent_app_resize resize = { .app = "a",
					   .rows = AGENT_TTY_SIZE_MAX,
					   .cols = AGENT_TTY_SIZE_MAX };
	assert_round_trip(app_resize, resize);

	struct agent_app_update update = { .app = "a",
					   .memory_max = INT64_MAX,
					   .cpu_millis = AGENT_CPU_MILLIS_MAX,
					   .cpu_weight = AGENT_CPU_WEIGHT_MAX,
					   .pids_max = INT32_MAX };
	assert_round_trip(app_update, update);

	struct agent_pod_clock clock = { .clock_ns = INT64_MAX };
	assert_round_trip(pod_clock, clock);
	struct agent_pod_shutdown shutdown = { .grace_ms = AGENT_GRACE_MS_MAX,
					       .drain_ms = AGENT_DRAIN_MS_MAX };
	assert_round_trip(pod_shutdown, shutdown);

	struct agent_app_exited exited = { .app = "a", .code = 255, .signal = AGENT_SIGNAL_MAX };
	fill(exited.message, sizeof(exited.message), '"');
	assert_round_trip(app_exited, exited);

	struct agent_exec_ref exec_ref = { .exec = INT32_MAX };
	assert_round_trip(exec_ref, exec_ref);
	struct agent_exec_signal exec_signal = { .exec = 1, .signal = AGENT_SIGNAL_MAX };
	assert_round_trip(exec_signal, exec_signal);
	struct agent_exec_resize exec_resize = { .exec = 1,
						 .rows = AGENT_TTY_SIZE_MAX,
						 .cols = AGENT_TTY_SIZE_MAX };
	assert_round_trip(exec_resize, exec_resize);
	struct agent_exec_exited exec_exited = { .exec = INT32_MAX,
						 .code = 255,
						 .signal = AGENT_SIGNAL_MAX };
	fill(exec_exited.message, sizeof(exec_exited.message), 'm');
	assert_round_trip(exec_exited, exec_exited);

	struct agent_info info = { .rss_kib = INT64_MAX, .uptime_ms = 0, .init_ms = 1 };
	assert_round_trip(info, info);
	struct agent_app_stats stats = { .cpu_usec = INT64_MAX, .pids = 0, .oom_kills = -1 };
	assert_round_trip(app_stats, stats);
}

/* An app whose lists have @exec arguments of @len bytes. */
static void make_app(struct agent_app_add *m, size_t exec, size_t len)
{
	static char text[AGENT_STRING_MAX + 2];
	agent_app_add_init(m);
	fill(text, len + 1, 'x');
	for (size_t i = 0; i < exec; i++)
		assert_int_equal(strv_add(&m->process.exec, text), 0);
	memcpy(m->app, "app", 4);
	fill(m->process.cwd, sizeof(m->process.cwd), '/');
	fill(m->process.user, sizeof(m->process.user), 'u');
	fill(m->process.group, sizeof(m->process.group), 'g');
	m->lun = AGENT_LUN_MAX;
	m->process.with_tty = true;
	m->process.rows = m->process.cols = AGENT_TTY_SIZE_MAX;
}

static int round_trip_app(const struct agent_app_add *m, struct agent_app_add *ret)
{
	cleanup_json struct json_object *body = NULL;
	int r = agent_app_add_encode(m, &body);
	return r < 0 ? r : agent_app_add_decode(body, ret);
}

static void test_app_add(void **state)
{
	(void)state;
	CLEANUP(agent_app_add_deinit) struct agent_app_add m, back;
	make_app(&m, AGENT_EXEC_MAX, 1);
	agent_app_add_init(&back);
	assert_int_equal(strv_env_set(&m.process.env, "A", "1"), 0);
	for (size_t i = 0; i < AGENT_EXEC_MAX; i++)
		assert_int_equal(strv_add(&m.pre_start, "y"), 0);
	struct json_object *body = NULL;
	assert_int_equal(agent_app_add_encode(&m, &body), 0);
	cleanup_json struct json_object *got = transfer(body);
	assert_int_equal(agent_app_add_decode(got, &back), 0);
	assert_int_equal(back.process.exec.n, AGENT_EXEC_MAX);
	assert_int_equal(back.pre_start.n, AGENT_EXEC_MAX);
	assert_int_equal(back.post_stop.n, 0);
	assert_string_equal(back.process.exec.v[AGENT_EXEC_MAX - 1], "x");
	assert_null(back.process.exec.v[AGENT_EXEC_MAX]);
	assert_string_equal(strv_env_get(&back.process.env, "A"), "1");
	assert_string_equal(back.process.cwd, m.process.cwd);
	assert_string_equal(back.process.user, m.process.user);
	assert_string_equal(back.process.group, m.process.group);
	assert_int_equal(back.lun, AGENT_LUN_MAX);
	assert_true(back.process.with_tty);
	assert_false(back.process.with_stdin);
	agent_app_add_deinit(NULL);
}

static void test_mounts(void **state)
{
	static const struct agent_mount first = { .volume = "v",
						  .path = "/v",
						  .kind = AGENT_VOLUME_MEMORY,
						  .slot = AGENT_VOLUME_SLOTS - 1,
						  .is_own = true,
						  .read_only = true,
						  .no_exec = true,
						  .no_suid = true,
						  .mode = AGENT_MODE_MAX,
						  .uid = AGENT_ID_MAX,
						  .size = INT64_MAX };
	(void)state;
	CLEANUP(agent_app_add_deinit) struct agent_app_add m, back;
	make_app(&m, 1, 1);
	agent_app_add_init(&back);
	for (size_t i = 0; i < AGENT_MOUNTS_MAX; i++)
		assert_int_equal(agent_mounts_add(&m.mounts, &first), 0);
	assert_int_equal(agent_mounts_add(&m.mounts, &first), -E2BIG);
	assert_int_equal(round_trip_app(&m, &back), 0);
	assert_int_equal(back.mounts.n, AGENT_MOUNTS_MAX);
	const struct agent_mount *got = &back.mounts.v[AGENT_MOUNTS_MAX - 1];
	assert_string_equal(got->volume, "v");
	assert_string_equal(got->path, "/v");
	assert_int_equal(got->kind, AGENT_VOLUME_MEMORY);
	assert_true(got->is_own && got->read_only && got->no_exec && got->no_suid);
	assert_int_equal(got->uid, AGENT_ID_MAX);
	assert_int_equal(got->size, INT64_MAX);
	assert_int_equal(got->slot, AGENT_VOLUME_SLOTS - 1);
	m.mounts.v[0].mode = AGENT_MODE_MAX + 1;
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
	m.mounts.v[0] = first;
	m.mounts.v[0].slot = AGENT_VOLUME_SLOTS;
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
	m.mounts.v[0] = first;
	memcpy(m.mounts.v[0].volume, "..", 3);
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
	m.mounts.v[0] = first;
	memcpy(m.mounts.v[0].path, "v", 2);
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
	assert_null(agent_mounts_root(&m.mounts));
	memcpy(m.mounts.v[1].path, "/", 2); /* the root directory, which is no such one */
	memcpy(m.mounts.v[0].path, "/v", 3);
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
	m.mounts.v[1].kind = AGENT_VOLUME_HOST;
	agent_app_add_deinit(&back);
	assert_int_equal(round_trip_app(&m, &back), 0);
	assert_ptr_equal(agent_mounts_root(&m.mounts), &m.mounts.v[1]);
	assert_false(agent_mount_is_root(&m.mounts.v[0]));
	m.mounts.v[2] = m.mounts.v[1]; /* one alone can be it */
	agent_app_add_deinit(&back);
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
}

static void test_app_add_limits(void **state)
{
	(void)state;
	CLEANUP(agent_app_add_deinit) struct agent_app_add m, back;
	agent_app_add_init(&back);
	make_app(&m, 1, AGENT_STRING_MAX);
	assert_int_equal(round_trip_app(&m, &back), 0);
	assert_int_equal(strlen(back.process.exec.v[0]), AGENT_STRING_MAX);
	agent_app_add_deinit(&m);
	agent_app_add_deinit(&back);

	make_app(&m, 1, AGENT_STRING_MAX + 1);
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
	agent_app_add_deinit(&m);

	make_app(&m, 0, 0);
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG); /* nothing to run */
	m.process.exec.max++;
	for (size_t i = 0; i < AGENT_EXEC_MAX + 1; i++)
		assert_int_equal(strv_add(&m.process.exec, "x"), 0);
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
	agent_app_add_deinit(&m);

	make_app(&m, 1, 1);
	m.post_stop.max++;
	for (size_t i = 0; i < AGENT_EXEC_MAX + 1; i++)
		assert_int_equal(strv_add(&m.post_stop, "y"), 0);
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
	agent_app_add_deinit(&m);

	make_app(&m, 1, 1);
	m.process.env.max++;
	for (size_t i = 0; i < AGENT_ENV_MAX + 1; i++)
		assert_int_equal(strv_add(&m.process.env, "x=y"), 0);
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
}

/* What confines an app, at its limits and one beyond. */
static void test_confinement(void **state)
{
	(void)state;
	static char seccomp[AGENT_SECCOMP_MAX + 2];
	CLEANUP(agent_app_add_deinit) struct agent_app_add m, back;
	make_app(&m, 1, 1);
	agent_app_add_init(&back);
	fill(seccomp, AGENT_SECCOMP_MAX + 1, '0');
	struct agent_confinement *c = &m.confinement;
	*c = (struct agent_confinement){ .capabilities = INT64_MAX,
					 .no_new_privs = true,
					 .read_only_root = true,
					 .open_paths = true,
					 .umask = AGENT_UMASK_MAX,
					 .groups = c->groups,
					 .rlimits = c->rlimits,
					 .masked_paths = c->masked_paths,
					 .read_only_paths = c->read_only_paths,
					 .seccomp = strdup(seccomp),
					 .oom_score_adj = -1000,
					 .memory_max = INT64_MAX,
					 .cpu_millis = AGENT_CPU_MILLIS_MAX,
					 .cpu_weight = 10000,
					 .pids_max = INT32_MAX };
	for (int i = 0; i < AGENT_GROUPS_MAX; i++)
		assert_int_equal(strv_addf(&c->groups, "%d", i), 0);
	for (int i = 0; i < AGENT_RLIMITS_MAX; i++)
		assert_int_equal(strv_add(&c->rlimits, "nofile=1:2"), 0);
	for (int i = 0; i < AGENT_PATHS_MAX; i++)
		assert_int_equal(strv_add(&c->masked_paths, "/proc/kcore"), 0);
	assert_int_equal(strv_add(&c->read_only_paths, "/tmp"), 0);
	assert_int_equal(round_trip_app(&m, &back), 0);
	assert_int_equal(back.confinement.masked_paths.n, AGENT_PATHS_MAX);
	assert_string_equal(back.confinement.read_only_paths.v[0], "/tmp");
	assert_int_equal(back.confinement.umask, AGENT_UMASK_MAX);
	assert_int_equal(strlen(back.confinement.seccomp), AGENT_SECCOMP_MAX);
	assert_string_equal(back.confinement.groups.v[AGENT_GROUPS_MAX - 1], "1023");
	assert_int_equal(back.confinement.rlimits.n, AGENT_RLIMITS_MAX);
	assert_int_equal(back.confinement.capabilities, INT64_MAX);
	assert_int_equal(back.confinement.oom_score_adj, -1000);
	assert_int_equal(back.confinement.memory_max, INT64_MAX);
	assert_true(back.confinement.no_new_privs && back.confinement.read_only_root &&
		    back.confinement.open_paths);

	c->cpu_weight++;
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
	c->cpu_weight = 0;
	c->umask++;
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
	c->umask = -1;
	agent_app_add_deinit(&back);
	agent_app_add_init(&back);
	assert_int_equal(round_trip_app(&m, &back), 0);
	assert_int_equal(back.confinement.umask, -1);
	c->masked_paths.max++;
	assert_int_equal(strv_add(&c->masked_paths, "/x"), 0);
	assert_true(round_trip_app(&m, &back) < 0);
	strv_deinit(&c->masked_paths);
	c->groups.max++;
	assert_int_equal(strv_add(&c->groups, "1"), 0);
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
	strv_deinit(&c->groups);
	free(c->seccomp);
	c->seccomp = malloc(sizeof(seccomp));
	memset(c->seccomp, '0', sizeof(seccomp) - 1);
	c->seccomp[sizeof(seccomp) - 1] = '\0';
	assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
}

static void test_app_exec(void **state)
{
	(void)state;
	CLEANUP(agent_app_exec_deinit) struct agent_app_exec m, back;
	agent_app_exec_init(&m);
	agent_app_exec_init(&back);
	memcpy(m.app, "app", 4);
	cleanup_json struct json_object *body = NULL;
	cleanup_json struct json_object *full = NULL;
	assert_int_equal(agent_app_exec_encode(&m, &body), 0);
	assert_int_equal(agent_app_exec_decode(body, &back), -EBADMSG); /* nothing to run */
	assert_int_equal(strv_add(&m.process.exec, "x"), 0);
	m.process.with_stdin = true;
	for (int i = 0; i < AGENT_GROUPS_MAX; i++)
		assert_int_equal(strv_add(&m.groups, "7"), 0);
	assert_int_equal(strv_add(&m.groups, "7"), -E2BIG);
	assert_int_equal(agent_app_exec_encode(&m, &full), 0);
	assert_int_equal(agent_app_exec_decode(full, &back), 0);
	assert_string_equal(back.app, "app");
	assert_string_equal(back.process.exec.v[0], "x");
	assert_true(back.process.with_stdin);
	assert_int_equal(back.groups.n, AGENT_GROUPS_MAX);
	assert_string_equal(back.groups.v[0], "7");
	agent_app_exec_deinit(NULL);
}

/* The numbers of processes begin with 1. */
static void test_exec_numbers(void **state)
{
	(void)state;
	const struct agent_exec_ref bad[] = { { 0 }, { -1 }, { (int64_t)INT32_MAX + 1 } };
	struct agent_exec_ref back;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cleanup_json struct json_object *body = NULL;
		assert_int_equal(agent_exec_ref_encode(&bad[i], &body), 0);
		assert_int_equal(agent_exec_ref_decode(body, &back), -EBADMSG);
	}
}

static void test_app_update(void **state)
{
	(void)state;
	const struct agent_app_update bad[] = {
		{ .app = "a", .memory_max = -1 },
		{ .app = "a", .cpu_millis = -1 },
		{ .app = "a", .cpu_millis = AGENT_CPU_MILLIS_MAX + 1 },
		{ .app = "a", .cpu_weight = -1 },
		{ .app = "a", .cpu_weight = AGENT_CPU_WEIGHT_MAX + 1 },
		{ .app = "a", .pids_max = -1 },
		{ .app = "a", .pids_max = (int64_t)INT32_MAX + 1 },
		{ .app = "A" },
	};
	struct agent_app_update back;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cleanup_json struct json_object *body = NULL;
		assert_int_equal(agent_app_update_encode(&bad[i], &body), 0);
		assert_int_equal(agent_app_update_decode(body, &back), -EBADMSG);
	}
}

static int decode_stats(const char *text, struct agent_app_stats *ret)
{
	cleanup_json struct json_object *body = NULL;
	assert_int_equal(json_parse(text, strlen(text), &body), 0);
	return agent_app_stats_decode(body, ret);
}

/* What a kernel does not count is absent; what is there has its limits. */
static void test_app_stats(void **state)
{
	(void)state;
	struct agent_app_stats m;
	assert_int_equal(decode_stats("{}", &m), 0);
	assert_int_equal(m.cpu_usec, -1);
	assert_int_equal(m.oom_kills, -1);
	assert_int_equal(decode_stats("{\"pids\":0,\"memory_limit\":9223372036854775807}", &m), 0);
	assert_int_equal(m.pids, 0);
	assert_int_equal(m.memory_limit, INT64_MAX);
	assert_int_equal(m.pids_limit, -1);
	assert_int_equal(decode_stats("{\"pids\":-1}", &m), -EBADMSG);
	assert_int_equal(decode_stats("{\"pids\":\"1\"}", &m), -EBADMSG);
	assert_int_equal(decode_stats("{\"pids\":9223372036854775808}", &m), -EBADMSG);
	assert_int_equal(decode_stats("[]", &m), -EBADMSG);
	assert_int_equal(agent_app_stats_decode(NULL, &m), -EBADMSG);
	assert_int_equal(m.memory_limit, INT64_MAX);
}

/* Lists that are within their limits one by one, but not together, or not in one frame. */
static void test_app_add_together(void **state)
{
	(void)state;
	CLEANUP(agent_app_add_deinit) struct agent_app_add m, back;
	agent_app_add_init(&back);
	make_app(&m, 15, AGENT_STRING_MAX);
	size_t left = AGENT_WORDS_MAX - agent_words_size(&m.process.exec) - AGENT_WORD_COST;
	static char text[AGENT_STRING_MAX + 2];
	fill(text, left + 1, 'x');
	assert_int_equal(strv_add(&m.process.env, text), 0);
	assert_int_equal(round_trip_app(&m, &back), 0);
	agent_app_add_deinit(&back);
	assert_int_equal(strv_extend(&m.pre_start, &m.process.exec), 0);
	assert_int_equal(strv_extend(&m.post_stop, &m.process.exec), 0);
	assert_int_equal(round_trip_app(&m, &back), 0);
	agent_app_add_deinit(&back);
	struct strv *const lists[] = { &m.process.exec, &m.pre_start, &m.post_stop };
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		struct strv *l = lists[i];
		assert_int_equal(strv_add(l, ""), 0);
		assert_int_equal(round_trip_app(&m, &back), -EBADMSG);
		free(l->v[--l->n]);
		l->v[l->n] = NULL;
	}
	struct json_object *body = NULL;
	assert_int_equal(agent_app_add_encode(&m, &body), 0);
	cleanup_buf struct buf b;
	buf_init(&b, 2 * FRAME_MAX);
	assert_int_equal(rpc_append_request(&b, 1, AGENT_APP_ADD, body), -EMSGSIZE);
	assert_int_equal(buf_len(&b), 0);
}

/* All that husk sends in one message is within a frame, with what else can be in it. */
static void test_app_add_largest(void **state)
{
	(void)state;
	CLEANUP(agent_app_add_deinit) struct agent_app_add m;
	static char quotes[100001], seccomp[AGENT_SECCOMP_MAX + 1];
	struct agent_mount mount = { .path = "/", .slot = 1 };
	make_app(&m, 1, 1);
	fill(quotes, sizeof(quotes), '"');
	fill(seccomp, sizeof(seccomp), '0');
	fill(mount.path, sizeof(mount.path), '"');
	fill(mount.volume, sizeof(mount.volume), 'v');
	m.confinement.seccomp = strdup(seccomp);
	for (size_t k = 0; k < AGENT_WORDS_ENCODED_MAX / (2 * sizeof(quotes)) + 1; k++)
		assert_int_equal(strv_add(k % 2 ? &m.process.env : &m.pre_start, quotes), 0);
	for (size_t i = 0; i < AGENT_MOUNTS_MAX; i++)
		assert_int_equal(agent_mounts_add(&m.mounts, &mount), 0);
	struct json_object *body = NULL;
	assert_int_equal(agent_app_add_encode(&m, &body), 0);
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	assert_int_equal(rpc_append_request(&b, 1, AGENT_APP_ADD, body), 0);
	assert_true(buf_len(&b) > AGENT_WORDS_ENCODED_MAX);
}

static void test_encodings(void **state)
{
	(void)state;
	struct json_object *body = NULL;
	struct agent_app_exited exited = { .app = "a",
					   .message = "no \xff here\x1b \xe2\x80\xaex\xc2\x9b" };
	assert_int_equal(agent_app_exited_encode(&exited, &body), 0);
	cleanup_json struct json_object *got = transfer(body);
	struct agent_app_exited back;
	assert_int_equal(agent_app_exited_decode(got, &back), 0);
	assert_string_equal(back.message, "no ? here? ???x??");
	/* From one that does not replace it itself, too. */
	assert_int_equal(json_put_str(got, "message", "\x1b[2J \xe2\x80\xae"), 0);
	assert_int_equal(agent_app_exited_decode(got, &back), 0);
	assert_string_equal(back.message, "?[2J ???");
	/* What is not prose must not change. */
	CLEANUP(agent_app_add_deinit) struct agent_app_add m;
	make_app(&m, 1, 1);
	assert_int_equal(strv_add(&m.process.exec, "\xff"), 0);
	body = NULL;
	assert_int_equal(agent_app_add_encode(&m, &body), -EILSEQ);
	assert_null(body);
}

/*
 * A body that is right but for one member, which is replaced by @value, or removed if that is "".
 */
static int decode_hello_with(const char *key, const char *value)
{
	struct agent_hello good = { .version_min = 1, .version_max = 1, .secret = SECRET };
	struct agent_hello out = { .version_min = 4711 };
	cleanup_json struct json_object *body = NULL;
	assert_int_equal(agent_hello_encode(&good, &body), 0);
	json_object_object_del(body, key);
	if (*value) {
		struct json_object *v = NULL;
		assert_int_equal(json_parse(value, strlen(value), &v), 0);
		assert_int_equal(json_put(body, key, v), 0);
	}
	int r = agent_hello_decode(body, &out);
	if (r < 0)
		assert_int_equal(out.version_min, 4711);
	return r;
}

static void test_decode_refuses(void **state)
{
	(void)state;
	static const struct {
		const char *key, *value;
		int r;
	} samples[] = {
		{ "version_min", "0", 0 },
		{ "version_min", "-1", -EBADMSG },
		{ "version_min", "2147483647", 0 },
		{ "version_min", "2147483648", -EBADMSG },
		{ "version_min", "1.0", -EBADMSG },
		{ "version_min", "\"1\"", -EBADMSG },
		{ "version_min", "[]", -EBADMSG },
		{ "version_min", "", -EBADMSG },
		{ "secret", "\"\"", -EBADMSG },
		{ "secret", "\"" SECRET "\"", 0 },
		{ "secret", "\"" SECRET "0\"", -EBADMSG },
		{ "secret", "\"0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef\"",
		  -EBADMSG },
		{ "secret", "7", -EBADMSG },
		{ "secret", "", -EBADMSG },
		{ "something_else", "7", 0 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		if (decode_hello_with(samples[i].key, samples[i].value) != samples[i].r)
			fail_msg("%s: %s", samples[i].key, samples[i].value);
	struct agent_hello out;
	assert_int_equal(agent_hello_decode(NULL, &out), -EBADMSG);
	cleanup_json struct json_object *list = json_object_new_array();
	assert_int_equal(agent_hello_decode(list, &out), -EBADMSG);
}

static int decode_text(const char *text)
{
	cleanup_json struct json_object *body = NULL;
	struct agent_attach out;
	assert_int_equal(json_parse(text, strlen(text), &body), 0);
	return agent_attach_decode(body, &out);
}

static void test_stream_names(void **state)
{
	(void)state;
	assert_string_equal(agent_stream_name(AGENT_STREAM_STDIN), "stdin");
	assert_string_equal(agent_stream_name(AGENT_STREAM_TTY), "tty");
	assert_int_equal(decode_text("{\"secret\":\"" SECRET
				     "\",\"app\":\"a\",\"exec\":0,\"stream\":\"tty\"}"),
			 0);
	assert_int_equal(decode_text("{\"secret\":\"" SECRET
				     "\",\"app\":\"a\",\"exec\":0,\"stream\":\"ttyS0\"}"),
			 -EBADMSG);
	assert_int_equal(
		decode_text("{\"secret\":\"" SECRET "\",\"app\":\"a\",\"exec\":0,\"stream\":0}"),
		-EBADMSG);
	assert_int_equal(decode_text("{\"secret\":\"" SECRET
				     "\",\"app\":\"a/b\",\"exec\":0,\"stream\":\"tty\"}"),
			 -EBADMSG);
}

static void test_name_is_valid(void **state)
{
	(void)state;
	char name[AGENT_NAME_MAX + 2];
	fill(name, AGENT_NAME_MAX + 1, 'n');
	assert_true(agent_name_is_valid(name));
	fill(name, AGENT_NAME_MAX + 2, 'n');
	assert_false(agent_name_is_valid(name));
	static const char *const bad[] = { "",    "-",  "-a",  "a-",  "A",       "a.b",
					   "a_b", "..", "a/b", "a b", "\xc3\xa4" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(agent_name_is_valid(bad[i]));
	assert_true(agent_name_is_valid("a"));
	assert_true(agent_name_is_valid("0-a--b9"));
}

static void test_choose_version(void **state)
{
	(void)state;
	assert_int_equal(agent_choose_version(AGENT_VERSION_MIN, AGENT_VERSION_MAX),
			 AGENT_VERSION_MAX);
	assert_int_equal(agent_choose_version(0, INT32_MAX), AGENT_VERSION_MAX);
	assert_int_equal(agent_choose_version(0, AGENT_VERSION_MIN - 1), -EPROTONOSUPPORT);
	assert_int_equal(agent_choose_version(AGENT_VERSION_MAX + 1, INT32_MAX), -EPROTONOSUPPORT);
	assert_int_equal(agent_choose_version(AGENT_VERSION_MAX, AGENT_VERSION_MIN - 1),
			 -EPROTONOSUPPORT);
	assert_int_equal(agent_choose_version(AGENT_VERSION_MAX + 1, AGENT_VERSION_MAX),
			 -EPROTONOSUPPORT);
}

/* Encodes and decodes one message of every kind. */
#define TRY(name, ...)                                             \
	do {                                                       \
		struct agent_##name m_ = { __VA_ARGS__ }, back_;   \
		cleanup_json struct json_object *body_ = NULL;     \
		int r_ = agent_##name##_encode(&m_, &body_);       \
		if (r_ == 0)                                       \
			r_ = agent_##name##_decode(body_, &back_); \
		if (r_ < 0)                                        \
			return r_;                                 \
	} while (0)

static int try_all(void *ctx)
{
	(void)ctx;
	TRY(hello, .secret = SECRET);
	TRY(hello_reply, .agent = "x");
	TRY(attach, .secret = SECRET, .app = "a");
	TRY(connect, .secret = SECRET, .port = 1);
	TRY(pod_setup, .hostname = "h");
	TRY(app_ref, .app = "a");
	TRY(app_signal, .app = "a", .signal = 1);
	TRY(app_resize, .app = "a");
	TRY(app_update, .app = "a");
	TRY(pod_shutdown, .grace_ms = 0);
	TRY(pod_clock, .clock_ns = 1);
	TRY(app_exited, .app = "a");
	TRY(info, .rss_kib = 0);
	TRY(app_stats, .pids = 1);
	TRY(exec_ref, .exec = 1);
	TRY(exec_signal, .exec = 1, .signal = 1);
	TRY(exec_resize, .exec = 1);
	TRY(exec_exited, .exec = 1);
	return 0;
}

static int try_app_add(void *ctx)
{
	const struct agent_app_add *m = ctx;
	CLEANUP(agent_app_add_deinit) struct agent_app_add back;
	agent_app_add_init(&back);
	return round_trip_app(m, &back);
}

static void test_short_of_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(try_all, NULL);
	CLEANUP(agent_app_add_deinit) struct agent_app_add m;
	make_app(&m, 3, 100);
	assert_int_equal(strv_env_set(&m.process.env, "A", "1"), 0);
	assert_int_equal(strv_add(&m.confinement.groups, "1"), 0);
	m.confinement.seccomp = strdup("00");
	for_each_failing_alloc(try_app_add, &m);
}

/* Whatever the texts of the agent are, what the host accepts of it has room for them. */
static void test_largest_reply(void **state)
{
	(void)state;
	struct agent_hello_reply reply = { .version = INT32_MAX };
	memset(reply.agent, 1, AGENT_TEXT_MAX); /* six bytes each in JSON */
	memset(reply.kernel, 1, AGENT_TEXT_MAX);
	struct json_object *body;
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	assert_int_equal(agent_hello_reply_encode(&reply, &body), 0);
	assert_int_equal(rpc_append_result(&b, RPC_ID_MAX, body), 0);
	assert_true(buf_len(&b) > (size_t)2 * 6 * AGENT_TEXT_MAX);
	assert_true(buf_len(&b) <= FRAME_HEADER_LEN + AGENT_REPLY_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_round_trips_of_largest),
		fixture_test(test_app_add),
		fixture_test(test_mounts),
		fixture_test(test_app_add_limits),
		fixture_test(test_app_add_together),
		fixture_test(test_app_add_largest),
		fixture_test(test_confinement),
		fixture_test(test_app_exec),
		fixture_test(test_exec_numbers),
		fixture_test(test_app_update),
		fixture_test(test_app_stats),
		fixture_test(test_encodings),
		fixture_test(test_decode_refuses),
		fixture_test(test_stream_names),
		fixture_test(test_name_is_valid),
		fixture_test(test_choose_version),
		fixture_test(test_largest_reply),
		fixture_test(test_short_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
