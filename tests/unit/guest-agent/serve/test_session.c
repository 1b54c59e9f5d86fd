/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/serve/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/wire/rpc.h"
#include "tests/support/fixture.h"
#include "tests/unit/guest-agent/seam.h"

#define SECRET "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define WRONG  "00112233445566778899aabbccddeeff00112233445566778899aabbccddeefe"

static struct loop loop;
static struct session_env env;
static struct session *answered; /* where the pod's answers go */

static void on_done(void *ctx, struct pod_caller to, const struct fault *f)
{
	(void)ctx;
	if (answered && answered->serial == to.conn)
		session_answer(answered, to.id, f);
}

static void on_stats(void *ctx, struct pod_caller to, const struct agent_app_stats *m)
{
	(void)ctx;
	if (answered && answered->serial == to.conn)
		session_answer_stats(answered, to.id, m);
}

static void on_exited(void *ctx, const struct agent_app_exited *m)
{
	(void)ctx;
	if (answered)
		session_notify_exited(answered, m);
}

static void on_exec_started(void *ctx, uint64_t conn, const struct agent_exec_ref *m)
{
	(void)ctx;
	if (answered && answered->serial == conn)
		session_notify_exec_started(answered, m);
}

static void on_exec_exited(void *ctx, uint64_t conn, const struct agent_exec_exited *m)
{
	(void)ctx;
	if (answered && answered->serial == conn)
		session_notify_exec_exited(answered, m);
}

static void on_off(void *ctx)
{
	(void)ctx;
}

static int begin(void **state)
{
	static const struct pod_config config = { .rootfs = { .run_dir = "/run" } };
	const struct pod_events events = { on_done,        on_stats, on_exited, on_exec_started,
					   on_exec_exited, on_off,   NULL };
	seam_reset();
	if (fixture_setup(state) != 0 || loop_init(&loop) < 0)
		return -1;
	env = (struct session_env){ .pod = pod_new(&loop, &config, &events), .secret = SECRET };
	answered = NULL;
	return env.pod ? 0 : -1;
}

static int end(void **state)
{
	pod_free(env.pod);
	loop_deinit(&loop);
	return fixture_teardown(state) == 0 && env.n_control == 0 ? 0 : -1;
}

/* Gives the session what it asks for of @bytes, as the server does. Returns how much it took. */
static size_t feed(struct session *s, const char *bytes, size_t len)
{
	size_t at = 0, want;
	while (at < len && (want = session_wants(s)) > 0) {
		size_t n = MIN(want, len - at);
		assert_int_equal(buf_append(&s->in, bytes + at, n), 0);
		at += n;
		session_process(s);
	}
	return at;
}

static void request(struct session *s, int64_t id, const char *method, const char *params)
{
	char text[4096];
	cleanup_buf struct buf frame;
	buf_init(&frame, FRAME_MAX);
	int n = snprintf(text, sizeof(text),
			 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\",\"params\":%s}", (int)id,
			 method, params);
	assert_true(n > 0 && (size_t)n < sizeof(text));
	assert_int_equal(frame_append(&frame, text, (size_t)n), 0);
	feed(s, buf_data(&frame), buf_len(&frame));
}

/* Takes the next message out of the session's output; the caller frees it. */
static struct rpc_msg next(struct session *s)
{
	const char *payload;
	size_t len;
	struct rpc_msg msg = { 0 };
	assert_int_equal(frame_peek(&s->out, &payload, &len), 0);
	assert_int_equal(rpc_decode(payload, len, &msg), 0);
	frame_consume(&s->out, len);
	return msg;
}

static void expect_result(struct session *s, int64_t id)
{
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = next(s);
	assert_int_equal(msg.kind, RPC_RESULT);
	assert_int_equal(msg.id, id);
}

static void expect_error(struct session *s, int64_t id, int code)
{
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = next(s);
	assert_int_equal(msg.kind, RPC_ERROR);
	assert_int_equal(msg.id, id);
	assert_int_equal(msg.code, code);
}

#define HELLO "{\"version_min\":1,\"version_max\":1,\"secret\":\"" SECRET "\"}"

static void say_hello(struct session *s, uint64_t serial)
{
	session_init(s, &env, serial);
	request(s, 1, AGENT_HELLO, HELLO);
	assert_int_equal(s->state, SESSION_CONTROL);
	expect_result(s, 1);
}

#define SCOPED CLEANUP(session_deinit)

static void test_hello(void **state)
{
	(void)state;
	SCOPED struct session s;
	session_init(&s, &env, 1);
	request(&s, 7, AGENT_HELLO, HELLO);
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = next(&s);
	struct agent_hello_reply r;
	assert_int_equal(agent_hello_reply_decode(msg.body, &r), 0);
	assert_int_equal(r.version, 1);
	assert_int_equal(env.n_control, 1);
	request(&s, 8, AGENT_HELLO, HELLO);
	expect_error(&s, 8, AGENT_E_STATE);
	assert_int_equal(s.state, SESSION_CONTROL);
}

static void expect_first_refused(const char *method, const char *params, int code)
{
	SCOPED struct session s;
	session_init(&s, &env, 1);
	request(&s, 3, method, params);
	expect_error(&s, 3, code);
	assert_int_equal(s.state, SESSION_CLOSED);
	assert_int_equal(session_wants(&s), 0);
}

static void test_first_message(void **state)
{
	(void)state;
	expect_first_refused(AGENT_INFO, "{}", AGENT_E_SECRET);
	expect_first_refused("nonsense", "{}", AGENT_E_SECRET);
	expect_first_refused(AGENT_HELLO, "{}", AGENT_E_PARAMS);
	expect_first_refused(AGENT_HELLO,
			     "{\"version_min\":1,\"version_max\":1,\"secret\":\"" WRONG "\"}",
			     AGENT_E_SECRET);
	expect_first_refused(AGENT_HELLO,
			     "{\"version_min\":2,\"version_max\":9,\"secret\":\"" SECRET "\"}",
			     AGENT_E_VERSION);
	expect_first_refused(AGENT_HELLO,
			     "{\"version_min\":0,\"version_max\":0,\"secret\":\"" SECRET "\"}",
			     AGENT_E_VERSION);
	expect_first_refused(AGENT_ATTACH,
			     "{\"secret\":\"" WRONG
			     "\",\"app\":\"a\",\"exec\":0,\"stream\":\"stdin\"}",
			     AGENT_E_SECRET);
	expect_first_refused(AGENT_ATTACH,
			     "{\"secret\":\"" SECRET
			     "\",\"app\":\"a\",\"exec\":0,\"stream\":\"stdin\"}",
			     AGENT_E_NO_APP);
	expect_first_refused(AGENT_ATTACH,
			     "{\"secret\":\"" SECRET
			     "\",\"app\":\"a\",\"exec\":0,\"stream\":\"fd3\"}",
			     AGENT_E_PARAMS);
}

/* Before the secret, a connection gets as much memory as one small frame needs. */
static void test_first_frame_limit(void **state)
{
	(void)state;
	static const char huge[SESSION_FIRST_MAX] = { 0, 0, 4, 0 };
	SCOPED struct session s;
	session_init(&s, &env, 1);
	assert_int_equal(session_wants(&s), FRAME_HEADER_LEN);
	feed(&s, huge, FRAME_HEADER_LEN);
	assert_int_equal(s.state, SESSION_CLOSED); /* 1024 bytes and the header are too many */

	static const char largest[SESSION_FIRST_MAX] = { 0, 0, 3, (char)0xfc };
	SCOPED struct session t;
	session_init(&t, &env, 2);
	feed(&t, largest, FRAME_HEADER_LEN);
	assert_int_equal(t.state, SESSION_NEW);
	assert_int_equal(session_wants(&t), SESSION_FIRST_MAX - FRAME_HEADER_LEN);
	assert_int_equal(feed(&t, largest + FRAME_HEADER_LEN, 1020), 1020);
	assert_int_equal(t.state, SESSION_CLOSED); /* no message */
}

static void expect_garbage(const char *bytes, size_t len, bool after_hello)
{
	SCOPED struct session s;
	if (after_hello)
		say_hello(&s, 1);
	else
		session_init(&s, &env, 1);
	feed(&s, bytes, len);
	assert_int_equal(s.state, SESSION_CLOSED);
	assert_int_equal(buf_len(&s.out), 0);
}

static void test_garbage(void **state)
{
	(void)state;
	static const char result[] = "\0\0\0\x29{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}     ";
	for (int after = 0; after < 2; after++) {
		expect_garbage("\0\0\0\0", 4, after);
		expect_garbage("\377\377\377\377", 4, after);
		expect_garbage("\0\x50\0\1", 4, after);
		expect_garbage("\0\0\0\2{}", 6, after);
		expect_garbage("\0\0\0\3xyz", 7, after);
		expect_garbage(result, sizeof(result) - 1, after);
	}
}

/* What follows the first frame may belong to a stream: it stays in the socket. */
#define CONFINEMENT                                                                              \
	"\"capabilities\":0,\"no_new_privs\":false,\"read_only_root\":false,\"groups\":[],"      \
	"\"rlimits\":[],\"seccomp\":\"\",\"oom_score_adj\":0,\"memory_max\":0,\"cpu_millis\":0," \
	"\"cpu_weight\":0,\"pids_max\":0"

static void test_attach(void **state)
{
	(void)state;
	SCOPED struct session c, s;
	say_hello(&c, 1);
	answered = &c;
	request(&c, 2, AGENT_POD_SETUP, "{\"hostname\":\"\",\"clock_ns\":0,\"scratch_lun\":-1}");
	request(&c, 3, AGENT_APP_ADD,
		"{\"app\":\"a\",\"lun\":0,\"exec\":[\"x\"],\"env\":[],\"cwd\":\"\",\"user\":\"\","
		"\"group\":\"\",\"with_stdin\":true,\"with_tty\":false,\"rows\":0,\"cols\":0," CONFINEMENT
		"}");
	session_init(&s, &env, 2);
	cleanup_buf struct buf bytes;
	buf_init(&bytes, 2048);
	struct json_object *body;
	struct agent_attach m = { .secret = SECRET, .app = "a", .stream = AGENT_STREAM_STDIN };
	assert_int_equal(agent_attach_encode(&m, &body), 0);
	assert_int_equal(rpc_append_request(&bytes, 5, AGENT_ATTACH, body), 0);
	size_t len = buf_len(&bytes);
	buf_puts(&bytes, "data for the app");
	assert_int_equal(feed(&s, buf_data(&bytes), buf_len(&bytes)), len);
	assert_int_equal(s.state, SESSION_STREAM);
	assert_string_equal(s.attach.app, "a");
	assert_int_equal(s.attach.stream, AGENT_STREAM_STDIN);
	expect_result(&s, 5);
	answered = NULL;
}

/* The first frame of a connection that wants @port. */
static void ask_for_port(struct session *s, const char *secret, int64_t port)
{
	cleanup_buf struct buf bytes;
	struct json_object *body;
	struct agent_connect m = { .port = port };
	str_copy(m.secret, sizeof(m.secret), secret);
	buf_init(&bytes, 2048);
	session_init(s, &env, 2);
	assert_int_equal(agent_connect_encode(&m, &body), 0);
	assert_int_equal(rpc_append_request(&bytes, 5, AGENT_CONNECT, body), 0);
	assert_int_equal(feed(s, buf_data(&bytes), buf_len(&bytes)), buf_len(&bytes));
}

static void test_connect(void **state)
{
	(void)state;
	struct fault f = { 0 };
	SCOPED struct session s;
	ask_for_port(&s, SECRET, UINT16_MAX);
	assert_int_equal(s.state, SESSION_STREAM);
	expect_result(&s, 5);
	int fd = s.port_fd, sock = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(session_hand_over(&s, sock, &f), 0);
	assert_true(fcntl(fd, F_GETFD) < 0);
	assert_true(fcntl(sock, F_GETFD) < 0);
	assert_int_equal(s.port_fd, -EBADF);
}

/* Nothing stays open when the connection ends before it is handed over. */
static void test_connect_and_end(void **state)
{
	(void)state;
	struct session s;
	ask_for_port(&s, SECRET, 80);
	int fd = s.port_fd;
	assert_true(fcntl(fd, F_GETFD) >= 0);
	session_deinit(&s);
	assert_true(fcntl(fd, F_GETFD) < 0);
}

static void test_connect_refused(void **state)
{
	(void)state;
	static const struct {
		const char *secret;
		int64_t port;
		int code;
	} cases[] = {
		{ SECRET, SEAM_CLOSED_PORT, AGENT_E_STATE },
		{ WRONG, 80, AGENT_E_SECRET },
		{ SECRET, 0, AGENT_E_PARAMS },
		{ SECRET, -1, AGENT_E_PARAMS },
		{ SECRET, UINT16_MAX + 1, AGENT_E_PARAMS },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		SCOPED struct session s;
		ask_for_port(&s, cases[i].secret, cases[i].port);
		expect_error(&s, 5, cases[i].code);
		assert_int_equal(s.state, SESSION_CLOSED);
		assert_int_equal(s.port_fd, -EBADF);
	}
}

static void test_pipelined(void **state)
{
	(void)state;
	SCOPED struct session s;
	cleanup_buf struct buf bytes;
	say_hello(&s, 1);
	buf_init(&bytes, 1 << 20);
	for (int i = 0; i < 100; i++)
		assert_int_equal(rpc_append_request(&bytes, i, AGENT_INFO, NULL), 0);
	assert_int_equal(feed(&s, buf_data(&bytes), buf_len(&bytes)), buf_len(&bytes));
	for (int i = 0; i < 100; i++)
		expect_result(&s, i);
	assert_int_equal(buf_len(&s.out), 0);
	assert_null(s.in.mem); /* an idle connection has no buffer */
}

static void test_errors(void **state)
{
	(void)state;
	SCOPED struct session s;
	say_hello(&s, 1);
	request(&s, 2, "no.such", "{}");
	expect_error(&s, 2, AGENT_E_METHOD);
	request(&s, 3, AGENT_APP_START, "{}");
	expect_error(&s, 3, AGENT_E_PARAMS);
	request(&s, 4, AGENT_APP_START, "{\"app\":\"../x\"}");
	expect_error(&s, 4, AGENT_E_PARAMS);
	request(&s, 5, AGENT_APP_START, "{\"app\":\"a\"}");
	expect_error(&s, 5, AGENT_E_NO_APP);
	request(&s, 6, AGENT_APP_SIGNAL, "{\"app\":\"a\",\"signal\":65}");
	expect_error(&s, 6, AGENT_E_PARAMS);
	request(&s, 7, AGENT_APP_RESIZE, "{\"app\":\"a\",\"rows\":1,\"cols\":65536}");
	expect_error(&s, 7, AGENT_E_PARAMS);
	request(&s, 8, AGENT_POD_SHUTDOWN, "{\"grace_ms\":-1}");
	expect_error(&s, 8, AGENT_E_PARAMS);
	request(&s, 9, AGENT_ATTACH, "{}");
	expect_error(&s, 9, AGENT_E_STATE);
	request(&s, 10, AGENT_POD_CLOCK, "{\"clock_ns\":0}");
	expect_error(&s, 10, AGENT_E_PARAMS);
	request(&s, 11, AGENT_POD_CLOCK, "{\"clock_ns\":7}"); /* before pod.setup */
	expect_error(&s, 11, AGENT_E_STATE);
	assert_int_equal(seam.clock_ns, 0);
	assert_int_equal(s.state, SESSION_CONTROL);
}

/* A pod whose machine does not take what it is told is not set up, and can be once more. */
static void test_failed_setup(void **state)
{
#define SETUP(more) "{\"hostname\":\"\",\"clock_ns\":0,\"scratch_lun\":-1" more "}"
	static const char net[] =
		SETUP(",\"net\":{\"interfaces\":[{\"name\":\"eth0\",\"mac\":\"02:00:00:00:00:01\","
		      "\"mtu\":1500,\"addresses\":[]}],\"routes\":[],\"rules\":[]}");
	static const char sysctls[] = SETUP(",\"sysctls\":[\"net.a=1\",\"net.b=2\"]");
	(void)state;
	SCOPED struct session s;
	say_hello(&s, 1);
	seam.fail_net = true;
	request(&s, 2, AGENT_POD_SETUP, net);
	expect_error(&s, 2, AGENT_E_INTERNAL);
	seam.fail_sysctl = true;
	request(&s, 3, AGENT_POD_SETUP, sysctls);
	expect_error(&s, 3, AGENT_E_PARAMS);
	request(&s, 4, AGENT_POD_CLOCK, "{\"clock_ns\":7}");
	expect_error(&s, 4, AGENT_E_STATE);
	seam.fail_sysctl = false;
	seam.sysctls = 0;
	request(&s, 5, AGENT_POD_SETUP, sysctls);
	assert_int_equal(buf_len(&s.out), 0); /* it is under way */
	assert_int_equal(seam.sysctls, 2);
	assert_int_equal(seam.nets, 1);
#undef SETUP
}

/* A host that does not read is not served; once it reads, nothing is lost. */
static void test_backpressure(void **state)
{
	(void)state;
	SCOPED struct session s;
	cleanup_buf struct buf bytes;
	say_hello(&s, 1);
	buf_init(&bytes, 1 << 20);
	int n = 0;
	while (n < 2000)
		assert_int_equal(rpc_append_request(&bytes, n++, AGENT_INFO, NULL), 0);
	size_t taken = feed(&s, buf_data(&bytes), buf_len(&bytes));
	assert_true(taken < buf_len(&bytes));
	assert_int_equal(session_wants(&s), 0);
	assert_true(buf_len(&s.out) < SESSION_OUT_MAX);
	int replies = 0;
	while (replies < n) {
		expect_result(&s, replies++);
		session_process(&s);
		taken += feed(&s, buf_data(&bytes) + taken, buf_len(&bytes) - taken);
	}
	assert_int_equal(taken, buf_len(&bytes));
}

static void test_control_limit(void **state)
{
	(void)state;
	struct session s[SESSION_CONTROL_MAX];
	for (unsigned i = 0; i < SESSION_CONTROL_MAX; i++)
		say_hello(&s[i], i);
	expect_first_refused(AGENT_HELLO, HELLO, AGENT_E_LIMIT);
	session_deinit(&s[0]);
	SCOPED struct session again;
	say_hello(&again, 99);
	for (unsigned i = 1; i < SESSION_CONTROL_MAX; i++)
		session_deinit(&s[i]);
}

/* Answers of the pod, and exits for whoever comes later. */
static void test_exits(void **state)
{
	(void)state;
	SCOPED struct session s, late;
	say_hello(&s, 1);
	answered = &s;
	request(&s, 2, AGENT_POD_SETUP, "{\"hostname\":\"\",\"clock_ns\":0,\"scratch_lun\":-1}");
	request(&s, 3, AGENT_APP_ADD,
		"{\"app\":\"a\",\"lun\":0,\"exec\":[\"x\"],\"env\":[],\"cwd\":\"\",\"user\":\"\","
		"\"group\":\"\",\"with_stdin\":false,\"with_tty\":false,\"rows\":0,\"cols\":0," CONFINEMENT
		"}");
	request(&s, 4, AGENT_APP_START, "{\"app\":\"a\"}");
	assert_int_equal(buf_len(&s.out), 0);
	seam_end_job(0);
	pod_reap(env.pod);
	assert_true(seam_mount_app(0));
	assert_int_equal(loop_turn(&loop), 0);
	for (int id = 2; id <= 4; id++)
		expect_result(&s, id);
	seam_end_app(5 << 8);
	pod_reap(env.pod);
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = next(&s);
	struct agent_app_exited m;
	assert_int_equal(msg.kind, RPC_NOTIFICATION);
	assert_int_equal(agent_app_exited_decode(msg.body, &m), 0);
	assert_int_equal(m.code, 5);
	answered = NULL;
	say_hello(&late, 2);
	CLEANUP(rpc_msg_deinit) struct rpc_msg again = next(&late);
	assert_string_equal(again.method, AGENT_APP_EXITED);
}

/* App "a" runs; the requests 2 to 4 were for that. */
static void run_app(struct session *s)
{
	say_hello(s, 1);
	answered = s;
	request(s, 2, AGENT_POD_SETUP, "{\"hostname\":\"\",\"clock_ns\":0,\"scratch_lun\":-1}");
	request(s, 3, AGENT_APP_ADD,
		"{\"app\":\"a\",\"lun\":0,\"exec\":[\"x\"],\"env\":[],\"cwd\":\"\",\"user\":\"\","
		"\"group\":\"\",\"with_stdin\":false,\"with_tty\":false,\"rows\":0,\"cols\":0," CONFINEMENT
		"}");
	request(s, 4, AGENT_APP_START, "{\"app\":\"a\"}");
	seam_end_job(0);
	pod_reap(env.pod);
	assert_true(seam_mount_app(0));
	assert_int_equal(loop_turn(&loop), 0);
	for (int id = 2; id <= 4; id++)
		expect_result(s, id);
}

/* The numbers come as the result, whenever they are there; nothing else waits for them. */
static void test_stats(void **state)
{
	(void)state;
	SCOPED struct session s;
	run_app(&s);
	request(&s, 5, AGENT_APP_STATS, "{\"app\":\"a\"}");
	request(&s, 6, AGENT_APP_SIGNAL, "{\"app\":\"a\",\"signal\":9}");
	expect_result(&s, 6);
	request(&s, 7, AGENT_APP_STATS, "{\"app\":1}");
	expect_error(&s, 7, AGENT_E_PARAMS);
	seam_end_job(0);
	pod_reap(env.pod);
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = next(&s);
	struct agent_app_stats m;
	assert_int_equal(msg.id, 5);
	assert_int_equal(agent_app_stats_decode(msg.body, &m), 0);
	assert_int_equal(m.pids, INT64_C(0x0101010101010101)); /* as the seam has it */
	answered = NULL;
}

/* What pod.setup says of sysctls comes later than what is usual, whatever waits for disks. */
static void test_prepare_before_setup(void **state)
{
	(void)state;
	pod_prepare(env.pod);
	assert_int_equal(seam_count(true), 1); /* its job, which has not run yet */
	assert_int_equal(seam.low_ports, 1);
	seam_end_job(0);
	pod_reap(env.pod);
}

#define UPDATE(numbers) "{\"app\":\"a\"," numbers "}"
#define SOME_LIMITS     UPDATE("\"memory_max\":9,\"cpu_millis\":8,\"cpu_weight\":7,\"pids_max\":6")

/* One at a time, answered when it is done; another app's start does not wait for it. */
static void test_update(void **state)
{
	(void)state;
	SCOPED struct session s;
	run_app(&s);
	request(&s, 5, AGENT_APP_UPDATE, UPDATE("\"memory_max\":9"));
	expect_error(&s, 5, AGENT_E_PARAMS);
	request(&s, 6, AGENT_APP_UPDATE, SOME_LIMITS);
	assert_int_equal(buf_len(&s.out), 0);
	request(&s, 7, AGENT_APP_UPDATE, SOME_LIMITS);
	expect_error(&s, 7, AGENT_E_STATE);
	seam_end_job(0);
	pod_reap(env.pod);
	expect_result(&s, 6);
	request(&s, 8, AGENT_APP_UPDATE, SOME_LIMITS);
	seam_end_job(AGENT_E_STATE);
	pod_reap(env.pod);
	expect_error(&s, 8, AGENT_E_STATE);
	seam.no_fork = true;
	request(&s, 9, AGENT_APP_UPDATE, SOME_LIMITS);
	expect_error(&s, 9, AGENT_E_INTERNAL);
	seam.no_fork = false;
	request(&s, 10, AGENT_APP_UPDATE, SOME_LIMITS); /* and not for ever */
	seam_end_job(0);
	pod_reap(env.pod);
	expect_result(&s, 10);
	answered = NULL;
}

/* Who asked hears of it also if the app goes first, or the pod. */
static void test_update_ends_with_app(void **state)
{
	(void)state;
	SCOPED struct session s;
	run_app(&s);
	seam_end_app(0);
	pod_reap(env.pod);
	CLEANUP(rpc_msg_deinit) struct rpc_msg exited = next(&s);
	assert_string_equal(exited.method, AGENT_APP_EXITED);
	request(&s, 5, AGENT_APP_UPDATE, SOME_LIMITS);
	request(&s, 6, AGENT_APP_REMOVE, "{\"app\":\"a\"}");
	seam.children[0].is_job = false; /* the update's goes on */
	seam_end_job(0);
	pod_reap(env.pod);
	expect_error(&s, 5, AGENT_E_STATE);
	expect_result(&s, 6);
	request(&s, 7, AGENT_APP_UPDATE, SOME_LIMITS);
	expect_error(&s, 7, AGENT_E_NO_APP);
	request(&s, 8, AGENT_POD_SHUTDOWN, "{\"grace_ms\":0,\"drain_ms\":0}");
	answered = NULL;
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_hello),
		TEST(test_first_message),
		TEST(test_first_frame_limit),
		TEST(test_garbage),
		TEST(test_attach),
		TEST(test_connect),
		TEST(test_connect_and_end),
		TEST(test_connect_refused),
		TEST(test_pipelined),
		TEST(test_errors),
		TEST(test_failed_setup),
		TEST(test_backpressure),
		TEST(test_control_limit),
		TEST(test_exits),
		TEST(test_stats),
		TEST(test_update),
		TEST(test_update_ends_with_app),
		TEST(test_prepare_before_setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
