/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor with an agent that a child process plays, and a backend without a pod. The agent
 * does what the name of its role says; signals come from it, too.
 */
#include "stage1/supervise/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/unix.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"
#include "lib/wire/stage1.h"
#include "tests/support/fake_backend.h"
#include "tests/support/fixture.h"

#define SECRET   "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define CLOCK_MS 20 /* between two times at which every limit is over, where a test wants that */

#define TURNS_MAX  50    /* of that clock: many more than limits that may pass before the end */
#define ENDLESS_MS 60000 /* on however busy a host, many more turns than those */

#define SHUT_DOWN "shut-down" /* a file: the agent has answered that */
#define LIMITS    "limits"  /* a file: whatever limits there were when the pod was ready are over */
#define RESUMED   "resumed" /* a file: the time at which the pod began to go on */

enum role {
	ROLE_TERM_TWICE,      /* SIGTERM when the app runs, and again when the pod is to stop */
	ROLE_INT_TWICE,       /* SIGINT likewise; the pod does not stop by itself */
	ROLE_QUIT,            /* SIGQUIT when the app runs */
	ROLE_EXIT,            /* the app exits with 7 */
	ROLE_LIVE,            /* the same when the file LIMITS is there */
	ROLE_OOM,             /* the app is killed because memory was short */
	ROLE_LOSE_OUTPUT,     /* the app exits with 0, its output never ends */
	ROLE_ENDLESS_OUTPUT,  /* the same, and goes on for ENDLESS_MS */
	ROLE_NEVER_RAN,       /* a signal ends the app before its program runs */
	ROLE_LIE,             /* reports the end of an app that nobody knows */
	ROLE_MUTE,            /* takes the connection and says nothing */
	ROLE_CLOCK,           /* the app exits with 0 when the clock has been set twice */
	ROLE_NO_HELLO,        /* answers all but the hello; the app exits with 0 */
	ROLE_NO_SETUP,        /* the same, but for pod.setup */
	ROLE_REFUSE_ADD,      /* the same, and refuses app.add */
	ROLE_IGNORE_SHUTDOWN, /* the app exits with 0, the pod does not stop */
	ROLE_SLOW_SETUP,      /* gives up when the pod is to stop what it was asked for before */
	ROLE_SLOW_START,      /* the same behind app.add; the app runs all the same */
	ROLE_FAIL_EARLY,      /* the app exits with 5 while another, "late", is being added */
};

/* ---- the agent ---- */

static void say(int fd, struct buf *b)
{
	if (fd_write_all(fd, buf_data(b), buf_len(b)) < 0)
		_exit(1);
	buf_deinit(b);
	buf_init(b, FRAME_MAX);
}

static void say_result(int fd, int64_t id, struct json_object *body)
{
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	rpc_append_result(&b, id, body ? body : json_object_new_object());
	say(fd, &b);
}

static void say_exited(int fd, const char *app, int code, int sig, bool oom)
{
	cleanup_buf struct buf b;
	struct agent_app_exited m = { .code = code, .signal = sig, .oom = oom };
	struct json_object *body = NULL;
	snprintf(m.app, sizeof(m.app), "%s", app);
	buf_init(&b, FRAME_MAX);
	agent_app_exited_encode(&m, &body);
	rpc_append_notification(&b, AGENT_APP_EXITED, body);
	say(fd, &b);
}

/* A connection to the agent's port. */
static int take_connection(int listener)
{
	struct pollfd pfd = { .fd = listener, .events = POLLIN };
	poll(&pfd, 1, -1);
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

/* The next request on @fd; ends the agent at the end of the connection. */
static void hear(int fd, struct buf *in, struct rpc_msg *ret)
{
	const char *payload;
	size_t len;
	while (frame_peek(in, &payload, &len) != 0) {
		char *where;
		ssize_t n = buf_reserve(in, 1, &where) == 0 ? read(fd, where, 1) : -1;
		if (n != 1)
			_exit(0);
		buf_commit(in, 1);
	}
	if (rpc_decode(payload, len, ret) < 0)
		_exit(1);
	frame_consume(in, len);
}

/*
 * Attaches the app's output, of which there is one byte, and a line in each of the next @more
 * milliseconds; and keeps it open.
 */
static void serve_output(int listener, int more)
{
	cleanup_buf struct buf in;
	struct rpc_msg m = { 0 };
	buf_init(&in, FRAME_MAX);
	int fd = take_connection(listener);
	hear(fd, &in, &m);
	say_result(fd, m.id, NULL);
	fd_write_all(fd, "x", 1);
	rpc_msg_deinit(&m);
	if (more == 0 || fork() > 0)
		return;
	while (more-- > 0 && fd_write_all(fd, "x\n", 2) == 0)
		poll(NULL, 0, 1);
	_exit(0);
}

/* Sends a signal when the supervisor has heard that the app runs. */
static void send_when_ready(int number)
{
	while (access(POD_FILE_READY, F_OK) < 0)
		poll(NULL, 0, 1);
	kill(getppid(), number);
}

static void run_app(enum role role, int fd, int listener)
{
	switch (role) {
	case ROLE_TERM_TWICE:
		send_when_ready(SIGTERM);
		return;
	case ROLE_INT_TWICE:
		send_when_ready(SIGINT);
		return;
	case ROLE_QUIT:
		send_when_ready(SIGQUIT);
		return;
	case ROLE_LIVE:
		while (access(LIMITS, F_OK) < 0)
			poll(NULL, 0, 1);
		say_exited(fd, "web", 7, 0, false);
		return;
	case ROLE_EXIT:
		say_exited(fd, "web", 7, 0, false);
		return;
	case ROLE_FAIL_EARLY:
		say_exited(fd, "web", 5, 0, false);
		return;
	case ROLE_OOM:
		say_exited(fd, "web", 0, SIGKILL, true);
		return;
	case ROLE_NEVER_RAN:
	case ROLE_SLOW_SETUP:
	case ROLE_SLOW_START:
	case ROLE_CLOCK:
	case ROLE_MUTE:
		return;
	case ROLE_LOSE_OUTPUT:
		serve_output(listener, 0);
		say_exited(fd, "web", 0, 0, false);
		return;
	case ROLE_ENDLESS_OUTPUT:
		serve_output(listener, ENDLESS_MS);
		say_exited(fd, "web", 0, 0, false);
		return;
	case ROLE_LIE:
		say_exited(fd, "other", 0, 0, false);
		return;
	case ROLE_NO_HELLO:
	case ROLE_NO_SETUP:
	case ROLE_REFUSE_ADD:
	case ROLE_IGNORE_SHUTDOWN:
		say_exited(fd, "web", 0, 0, false);
		return;
	}
}

static void shut_down(enum role role, int fd, int64_t id)
{
	if (role == ROLE_INT_TWICE) {
		kill(getppid(), SIGINT);
		return;
	}
	if (role == ROLE_IGNORE_SHUTDOWN)
		return;
	if (role == ROLE_TERM_TWICE) {
		kill(getppid(), SIGTERM);
		say_exited(fd, "web", 0, SIGTERM, false);
	}
	say_result(fd, id, NULL);
	fd_close(open(SHUT_DOWN, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

/*
 * The second comes when the first has been answered, with a later time; none is of a pod that
 * stands, whose clock would stand, too, until it goes on.
 */
static void set_clock(int fd, const struct rpc_msg *msg)
{
	static int64_t last;
	int64_t resumed_ns = 0;
	struct agent_pod_clock m;
	cleanup_fd int resumed = open(RESUMED, O_RDONLY | O_CLOEXEC);
	if (read(resumed, &resumed_ns, sizeof(resumed_ns)) != sizeof(resumed_ns) ||
	    agent_pod_clock_decode(msg->body, &m) < 0 || m.clock_ns <= last ||
	    m.clock_ns < resumed_ns || m.clock_ns > clock_realtime_ns())
		_exit(1);
	if (last > 0)
		say_exited(fd, "web", 0, 0, false);
	last = m.clock_ns;
}

/*
 * Keeps a request, whose reply comes with that to pod.shutdown. True if it is answered here.
 */
static bool be_slow(enum role role, int fd, const struct rpc_msg *msg)
{
	static int64_t kept[4];
	static size_t n;
	bool is_start = strcmp(msg->method, AGENT_APP_START) == 0;
	const char *app = "";
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	if (strcmp(msg->method, AGENT_POD_SHUTDOWN) == 0) {
		for (size_t i = 0; i < n; i++) {
			if (role != ROLE_SLOW_START) {
				rpc_append_error(&b, kept[i], AGENT_E_STATE, "giving up");
				say(fd, &b);
			} else {
				say_result(fd, kept[i], NULL);
				say_exited(fd, "web", 0, SIGTERM, false);
			}
		}
		return false;
	}
	if (strcmp(msg->method, AGENT_HELLO) == 0 || (role == ROLE_SLOW_START && !is_start))
		return false;
	json_get_str(msg->body, "app", AGENT_NAME_MAX, &app);
	if (role == ROLE_FAIL_EARLY && strcmp(app, "late") != 0)
		return false;
	kept[n++] = msg->id;
	return true;
}

/* True if the request gets no answer, or has got its own here. */
static bool be_odd(enum role role, int fd, const struct rpc_msg *msg)
{
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	if (role == ROLE_NO_HELLO)
		return strcmp(msg->method, AGENT_HELLO) == 0;
	if (role != ROLE_NO_SETUP && role != ROLE_REFUSE_ADD)
		return role >= ROLE_SLOW_SETUP && be_slow(role, fd, msg);
	if (role == ROLE_NO_SETUP || strcmp(msg->method, AGENT_APP_ADD) != 0)
		return strcmp(msg->method, AGENT_POD_SETUP) == 0;
	rpc_append_error(&b, msg->id, AGENT_E_STATE, "no room for it");
	say(fd, &b);
	return true;
}

static _Noreturn void be_agent(enum role role, int listener)
{
	cleanup_buf struct buf in;
	buf_init(&in, FRAME_MAX);
	int fd = take_connection(listener);
	while (role == ROLE_MUTE)
		pause();
	for (;;) {
		struct rpc_msg m = { 0 };
		struct json_object *body = NULL;
		const struct agent_hello_reply hello = { .version = AGENT_VERSION_MAX };
		hear(fd, &in, &m);
		if (be_odd(role, fd, &m)) {
			rpc_msg_deinit(&m);
			continue;
		}
		if (strcmp(m.method, AGENT_POD_SHUTDOWN) == 0) {
			shut_down(role, fd, m.id);
		} else {
			if (role == ROLE_NEVER_RAN && strcmp(m.method, AGENT_APP_START) == 0)
				say_exited(fd, "web", 0, SIGTERM, false);
			if (strcmp(m.method, AGENT_POD_CLOCK) == 0)
				set_clock(fd, &m);
			if (strcmp(m.method, AGENT_HELLO) == 0)
				agent_hello_reply_encode(&hello, &body);
			say_result(fd, m.id, body);
		}
		if (strcmp(m.method, AGENT_APP_START) == 0)
			run_app(role, fd, listener);
		rpc_msg_deinit(&m);
	}
}

/* ---- the pod ---- */

struct ctx {
	struct loop loop;
	struct timeline timeline;
	struct pod_plan plan;
	struct agent_app_add apps[2]; /* "web", "late" */
	struct supervisor_input input;
	struct network network;
	struct names_options names;
	struct strv sysctls;
	struct supervisor *supervisor;
	struct backend_pod pod;
	pid_t agent;
	bool ends_itself;        /* the pod, as nobody wanted it */
	struct loop_timer clock; /* armed where every limit is to be over soon */
	int turns;               /* of the clock */
	const char *awaited;     /* by the clock */
};

static void on_clock(void *arg)
{
	struct ctx *c = arg;
	c->turns++;
	for (struct loop_timer *t = c->loop.timers; t; t = t->next)
		t->deadline_ns = 0;
	loop_timer_arm(&c->loop, &c->clock, clock_monotonic_ns() + CLOCK_MS * NS_PER_MS, on_clock,
		       c);
}

/*
 * As on_clock(), from when the file c->awaited is there: what comes before has limits, too. In the
 * turn of the loop after that, so that what was said to the supervisor before has been heard.
 */
static void on_clock_when_there(void *arg)
{
	struct ctx *c = arg;
	loop_timer_arm(&c->loop, &c->clock, clock_monotonic_ns() + CLOCK_MS * NS_PER_MS,
		       access(c->awaited, F_OK) == 0 ? on_clock : on_clock_when_there, c);
}

static void setup(void **state, struct ctx *c, enum role role)
{
	struct err e = ERR_INIT;
	int dir = fixture_dir(state);
	*c = (struct ctx){ 0 };
	assert_int_equal(chdir(fixture_path(state)), 0);
	mkdirat(dir, POD_DIR_STATUS, 0750);
	unlink(FAKE_AGENT_SOCKET);
	cleanup_fd int listener = unix_listen(FAKE_AGENT_SOCKET, 0600);
	assert_true(listener >= 0);
	c->agent = fork();
	assert_true(c->agent >= 0);
	if (c->agent == 0)
		be_agent(role, listener);
	for (size_t i = 0; i < ARRAY_SIZE(c->apps); i++) {
		struct agent_app_add *app = &c->apps[i];
		agent_app_add_init(app);
		snprintf(app->app, sizeof(app->app), i == 0 ? "web" : "late");
		assert_int_equal(strv_add(&app->process.exec, "/bin/true"), 0);
		snprintf(app->process.cwd, sizeof(app->process.cwd), "/");
	}
	c->plan.apps = c->apps;
	c->plan.n_apps = role == ROLE_FAIL_EARLY ? 2 : 1;
	c->plan.exit_policy = POD_EXIT_ANY_FAILURE;
	bool has_output = role == ROLE_LOSE_OUTPUT || role == ROLE_ENDLESS_OUTPUT;
	enum stream_mode out = has_output ? STREAM_MODE_LOG : STREAM_MODE_NULL;
	c->plan.streams[0] = (struct stream_modes){ STREAM_MODE_NULL, out, STREAM_MODE_NULL };
	c->plan.streams[1] = c->plan.streams[0];
	c->plan.setup.scratch_lun = -1;
	network_init(&c->network);
	names_options_init(&c->names);
	c->input = (struct supervisor_input){ .plan = &c->plan,
					      .backend = &fake_backend,
					      .pod = &c->pod,
					      .hostname = "pod",
					      .sysctls = &c->sysctls,
					      .secret = SECRET,
					      .pod_fd = dir,
					      .network = &c->network,
					      .names = &c->names,
					      .boot_timeout_s = 60 };
	assert_int_equal(loop_init(&c->loop), 0);
	timeline_init(&c->timeline, clock_monotonic_ns());
	assert_int_equal(supervisor_new(&c->input, &c->loop, &c->timeline, &c->supervisor, &e), 0);
	assert_int_equal(fake_backend.start(&c->pod, &c->loop, NULL, &supervisor_backend_events,
					    c->supervisor, &e),
			 0);
}

/* Runs the pod to its end. Its status, or -1 with the reason in @e. Nothing is left. */
static int run(struct ctx *c, struct err *e)
{
	int status = -1;
	*e = ERR_INIT;
	if (supervisor_run(c->supervisor, &status, e) < 0)
		status = -1;
	assert_int_equal(c->pod.kills + c->pod.drops > 0, !c->ends_itself);
	loop_timer_disarm(&c->clock);
	supervisor_free(c->supervisor);
	assert_null(c->loop.timers); /* all are disarmed */
	loop_deinit(&c->loop);
	for (size_t i = 0; i < ARRAY_SIZE(c->apps); i++)
		agent_app_add_deinit(&c->apps[i]);
	network_deinit(&c->network);
	names_options_deinit(&c->names);
	kill(c->agent, SIGKILL);
	assert_int_equal(waitpid(c->agent, NULL, 0), c->agent);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	assert_int_equal(chdir("/"), 0);
	return status;
}

/* ---- the tests ---- */

static void test_second_sigterm(void **state)
{
	struct ctx c;
	struct err e;
	setup(state, &c, ROLE_TERM_TWICE);
	assert_int_equal(run(&c, &e), 0); /* what was ended on request has not failed */
	assert_int_equal(e.code, 0);
}

/* Somebody suspends the pod, and lets it go on, twice in a moment. */
static void on_resumed(void *arg)
{
	struct ctx *c = arg;
	if (access(POD_FILE_READY, F_OK) < 0) {
		loop_timer_arm(&c->loop, &c->clock, clock_monotonic_ns() + CLOCK_MS * NS_PER_MS,
			       on_resumed, c);
		return;
	}
	supervisor_backend_events.suspended(c->supervisor, true);
	int64_t now = clock_realtime_ns();
	assert_int_equal(file_replace_at(AT_FDCWD, RESUMED, &now, sizeof(now), 0600), 0);
	supervisor_backend_events.suspended(c->supervisor, false);
	supervisor_backend_events.suspended(c->supervisor, true);
	supervisor_backend_events.suspended(c->supervisor, false);
}

static void test_clock(void **state)
{
	struct ctx c;
	struct err e;
	setup(state, &c, ROLE_CLOCK);
	on_resumed(&c);
	assert_int_equal(run(&c, &e), 0);
	assert_int_equal(e.code, 0);
}

static void expect_failure(void **state, enum role role, bool hurry, const char *text)
{
	struct ctx c;
	struct err e;
	setup(state, &c, role);
	if (hurry)
		on_clock(&c);
	assert_int_equal(run(&c, &e), -1);
	if (!strstr(e.text, text))
		fail_msg("\"%s\" does not contain \"%s\"", e.text, text);
}

static void test_second_sigint(void **state)
{
	expect_failure(state, ROLE_INT_TWICE, false, "pod killed on request");
}

static void test_sigquit(void **state)
{
	expect_failure(state, ROLE_QUIT, false, "pod killed on request");
}

/* Asks for the end when the agent has said hello, which is before any app runs. */
static void on_stop_early(void *arg)
{
	struct ctx *c = arg;
	bool there = false;
	for (size_t i = 0; i < c->timeline.n_marks; i++)
		there = there || strcmp(c->timeline.marks[i].name, MARK_AGENT) == 0;
	if (there)
		raise(SIGTERM);
	else
		loop_timer_arm(&c->loop, &c->clock, clock_monotonic_ns() + NS_PER_MS, on_stop_early,
			       c);
}

/* One line says what has happened; what the agent gives up for that is none of it. */
static void test_stop_during_start(void **state)
{
	struct ctx c;
	struct err e;
	setup(state, &c, ROLE_SLOW_SETUP);
	on_stop_early(&c);
	assert_int_equal(run(&c, &e), -1);
	assert_string_equal(e.text, "pod ended on request before its apps ran");
	assert_int_equal(e.code, -EINTR);
}

/* The app has run, if not for long. */
static void test_stop_as_apps_start(void **state)
{
	struct ctx c;
	struct err e;
	setup(state, &c, ROLE_SLOW_START);
	on_stop_early(&c);
	assert_int_equal(run(&c, &e), 0);
	assert_int_equal(e.code, 0);
}

/* What has failed is the first app: that the other was given up for it is none. */
static void test_fail_early(void **state)
{
	struct ctx c;
	struct err e;
	setup(state, &c, ROLE_FAIL_EARLY);
	assert_int_equal(run(&c, &e), 5);
	assert_int_equal(e.code, 0);
}

static void test_lie(void **state)
{
	expect_failure(state, ROLE_LIE, false, "reports the end of an app that does not run");
}

static void expect_answer_failure(void **state, enum role role, const char *text)
{
	struct ctx c;
	struct err e;
	setup(state, &c, role);
	c.awaited = POD_FILE_READY; /* it must not get there; but should it, this is over soon */
	on_clock_when_there(&c);
	assert_int_equal(run(&c, &e), -1);
	assert_non_null(strstr(e.text, text));
}

/* Nobody has shown that it knows the secret, or has said what the apps find; a refusal is one. */
static void test_premature_answers(void **state)
{
	static const char premature[] = "answers a call before the one that it depends on";
	expect_answer_failure(state, ROLE_NO_HELLO, premature);
	expect_answer_failure(state, ROLE_NO_SETUP, premature);
	expect_answer_failure(state, ROLE_REFUSE_ADD, "no room for it");
}

static bool is_there(const char *path, struct stat *ret)
{
	return stat(path, ret) == 0;
}

static void test_exit_status(void **state)
{
	struct ctx c;
	struct err e;
	struct stat st;
	char path[512];
	setup(state, &c, ROLE_EXIT);
	assert_int_equal(run(&c, &e), 7);
	snprintf(path, sizeof(path), "%s/" POD_FILE_READY, fixture_path(state));
	assert_true(is_there(path, &st));
	snprintf(path, sizeof(path), "%s/" POD_DIR_STATUS "/web", fixture_path(state));
	assert_true(is_there(path, &st));
}

/*
 * While a pre-start handler runs, say: the answer to app.start is only behind the end of the app.
 */
static void test_app_that_never_ran(void **state)
{
	struct ctx c;
	struct err e;
	setup(state, &c, ROLE_NEVER_RAN);
	assert_int_equal(run(&c, &e), SIGTERM);
}

/* Who sees the exit may look for the reason at once. */
static void test_oom_is_noted_first(void **state)
{
	struct ctx c;
	struct err e;
	struct stat oom, end;
	char path[512];
	setup(state, &c, ROLE_OOM);
	assert_int_equal(run(&c, &e), SIGKILL);
	snprintf(path, sizeof(path), "%s/" POD_DIR_STATUS "/web" POD_STATUS_OOM_SUFFIX,
		 fixture_path(state));
	assert_true(is_there(path, &oom));
	snprintf(path, sizeof(path), "%s/" POD_DIR_STATUS "/web", fixture_path(state));
	assert_true(is_there(path, &end));
	assert_true(oom.st_ctim.tv_sec < end.st_ctim.tv_sec ||
		    (oom.st_ctim.tv_sec == end.st_ctim.tv_sec &&
		     oom.st_ctim.tv_nsec <= end.st_ctim.tv_nsec));
}

static void test_lost_output(void **state)
{
	struct ctx c;
	struct err e;
	setup(state, &c, ROLE_LOSE_OUTPUT);
	c.awaited = SHUT_DOWN;
	on_clock_when_there(&c);
	assert_int_equal(run(&c, &e), -1);
	assert_non_null(strstr(e.text, "the output of the apps did not end"));
}

/* Nobody holds it up, and the processes that could have written it are gone: the agent lies. */
static void test_endless_output(void **state)
{
	struct ctx c;
	struct err e;
	setup(state, &c, ROLE_ENDLESS_OUTPUT);
	c.awaited = SHUT_DOWN;
	on_clock_when_there(&c);
	assert_int_equal(run(&c, &e), -1);
	assert_non_null(strstr(e.text, "the output of the apps did not end"));
	assert_in_range(c.turns, 1, TURNS_MAX);
}

static void test_no_shutdown(void **state)
{
	struct ctx c;
	struct err e;
	setup(state, &c, ROLE_IGNORE_SHUTDOWN);
	c.awaited = POD_FILE_READY;
	on_clock_when_there(&c);
	assert_int_equal(run(&c, &e), -1);
	assert_non_null(
		strstr(e.text, "the agent did not end the pod within 30 s; the pod was killed"));
}

/* The pod is gone before the agent answers: the backend says why. */
static void test_pod_that_ends(void **state)
{
	struct ctx c;
	struct err e;
	setup(state, &c, ROLE_MUTE);
	c.ends_itself = true;
	fake_backend_end(&c.pod);
	assert_int_equal(run(&c, &e), -1);
	assert_string_equal(e.text, FAKE_END);
}

static struct backend_pod *ending; /* by the time it is reached */

/* A connection whose other end has gone, as a queue's that nobody accepts from any more. */
static int connect_broken(unsigned port, uint32_t *ret_events)
{
	int fds[2];
	(void)port;
	*ret_events = EPOLLOUT;
	if (unix_pair(fds) < 0 || fd_set_nonblock(fds[0], true) < 0)
		return -errno;
	close(fds[1]);
	return fds[0];
}

static int finish_broken(int fd)
{
	(void)fd;
	fake_backend_end(ending);
	return 0;
}

/* It is gone when the agent is to be told of it, which is seen before its end is. */
static void test_pod_that_ends_early(void **state)
{
	const struct agent_route route = { .connect = connect_broken, .finish = finish_broken };
	struct backend broken = fake_backend;
	struct ctx c;
	struct err e;
	setup(state, &c, ROLE_MUTE);
	broken.route = &route;
	c.input.backend = &broken;
	c.ends_itself = true;
	ending = &c.pod;
	assert_int_equal(run(&c, &e), -1);
	assert_string_equal(e.text, FAKE_END);
}

/* A helper's end explains what broke, unless the pod's own end does. */
static void test_helper_that_ends(void **state)
{
	struct ctx c;
	struct err e, why = ERR_INIT;
	err_set(&why, -EIO, "the helper ended");
	setup(state, &c, ROLE_MUTE);
	supervisor_backend_events.helper_ended(c.supervisor, &why);
	on_clock(&c);
	assert_int_equal(run(&c, &e), -1);
	assert_string_equal(e.text, "the helper ended");
	setup(state, &c, ROLE_MUTE);
	supervisor_backend_events.helper_ended(c.supervisor, &why);
	c.ends_itself = true;
	fake_backend_end(&c.pod);
	assert_int_equal(run(&c, &e), -1);
	assert_string_equal(e.text, FAKE_END);
}

static void test_boot_timeout(void **state)
{
	struct ctx c;
	struct err e;
	setup(state, &c, ROLE_MUTE);
	on_clock(&c);
	assert_int_equal(run(&c, &e), -1);
	assert_non_null(strstr(e.text, "the agent did not answer within 60 s; the pod's last line: "
				       "\"" FAKE_LAST_WORDS "\""));
}

static void on_limits_over(void *arg)
{
	(void)arg;
	fd_close(open(LIMITS, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

/* All limits that there are when the pod is ready are over at once. */
static void on_ready(void *arg)
{
	struct ctx *c = arg;
	bool ready = access(POD_FILE_READY, F_OK) == 0;
	for (struct loop_timer *t = c->loop.timers; ready && t; t = t->next)
		t->deadline_ns = 0;
	/* Those of the supervisor come first, as they are in the past. */
	loop_timer_arm(&c->loop, &c->clock, clock_monotonic_ns() + CLOCK_MS * NS_PER_MS,
		       ready ? on_limits_over : on_ready, c);
}

/* The limit is for the start: the apps may live as long as they like. */
static void test_boot_timeout_is_of_the_start(void **state)
{
	struct ctx c;
	struct err e;
	setup(state, &c, ROLE_LIVE);
	on_ready(&c);
	assert_int_equal(run(&c, &e), 7);
	assert_int_equal(e.code, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_pod_that_ends),
		fixture_test(test_pod_that_ends_early),
		fixture_test(test_helper_that_ends),
		fixture_test(test_boot_timeout),
		fixture_test(test_second_sigterm),
		fixture_test(test_stop_during_start),
		fixture_test(test_stop_as_apps_start),
		fixture_test(test_clock),
		fixture_test(test_second_sigint),
		fixture_test(test_sigquit),
		fixture_test(test_fail_early),
		fixture_test(test_lie),
		fixture_test(test_exit_status),
		fixture_test(test_app_that_never_ran),
		fixture_test(test_oom_is_noted_first),
		fixture_test(test_lost_output),
		fixture_test(test_no_shutdown),
		fixture_test(test_premature_answers),
		fixture_test(test_boot_timeout_is_of_the_start),
		fixture_test(test_endless_output),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
