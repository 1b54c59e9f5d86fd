/* SPDX-License-Identifier: Apache-2.0 */
#include "host/events/events.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/lock.h"
#include "lib/os/rmtree.h"
#include "lib/wire/stage1.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define LIMIT_NS  (120 * NS_PER_SEC) /* of one wait; what is waited for comes at once */
#define LIVES     60                 /* of the pods that nobody waits for */
#define TEXT_MAX_ 8192
#define PODS      ((size_t)500) /* most that are watched */

/* A watcher and what it has told, as words: "started" of a pod, "a:started" of an app. */
struct story {
	struct loop loop;
	struct pods *ps;
	struct pod_events *pe;
	struct loop_timer limit;
	char text[TEXT_MAX_];
	char problem[ERR_TEXT_MAX];
	size_t n;       /* events told */
	size_t stop_at; /* the callback wants no more than these */
	int n_problems;
	bool late;
};

static int on_event(void *ctx, const struct uuid *pod, const struct pod_event *ev)
{
	struct story *s = ctx;
	size_t n = strlen(s->text);
	assert_true(uuid_is_valid(pod->text));
	s->n++;
	if (n + 128 < sizeof(s->text)) {
		n += (size_t)snprintf(s->text + n, sizeof(s->text) - n, "%s%s%s%s", n ? " " : "",
				      ev->app, ev->app[0] ? ":" : "", pod_event_name(ev->kind));
		if (ev->has_exit_code)
			snprintf(s->text + n, sizeof(s->text) - n, "=%d%s", ev->exit_code,
				 ev->end == APP_END_OOM_KILLED ? "!" : "");
	}
	return s->n == s->stop_at;
}

static int on_live(void *ctx)
{
	struct story *s = ctx;
	strcat(s->text, s->text[0] ? " live" : "live");
	return 0;
}

static void on_problem(void *ctx, const struct err *e)
{
	struct story *s = ctx;
	s->n_problems++;
	snprintf(s->problem, sizeof(s->problem), "%s", e->text);
}

static void begin(void **state, struct story *s)
{
	struct err e = ERR_INIT;
	memset(s, 0, sizeof(*s));
	assert_int_equal(loop_init(&s->loop), 0);
	assert_int_equal(pods_open(fixture_dir(state), true, &s->ps, &e), 0);
}

static void watch(struct story *s, const struct uuid *only, bool replay)
{
	struct err e = ERR_INIT;
	const struct pod_events_request q = { .only = only,
					      .max = PODS,
					      .replay = replay,
					      .event = on_event,
					      .live = on_live,
					      .problem = on_problem,
					      .ctx = s };
	pod_events_free(s->pe);
	s->pe = NULL;
	s->text[0] = '\0';
	s->loop.quit = false;
	assert_int_equal(pod_events_new(&s->loop, s->ps, &q, &s->pe, &e), 0);
}

static void end(struct story *s)
{
	pod_events_free(s->pe);
	pods_free(s->ps);
	loop_deinit(&s->loop);
}

static void on_limit(void *ctx)
{
	struct story *s = ctx;
	s->late = true;
}

/* Waits until exactly @want has been told since the last time. */
static void expect(struct story *s, const char *want)
{
	loop_timer_arm(&s->loop, &s->limit, clock_monotonic_ns() + LIMIT_NS, on_limit, s);
	while (strcmp(s->text, want) != 0 && !s->late && !s->loop.quit)
		assert_int_equal(loop_turn(&s->loop), 0);
	loop_timer_disarm(&s->limit);
	assert_string_equal(s->text, want);
	s->text[0] = '\0';
}

/* Waits for the end of the watcher. */
static void expect_end(struct story *s, const char *want)
{
	loop_timer_arm(&s->loop, &s->limit, clock_monotonic_ns() + LIMIT_NS, on_limit, s);
	while (!s->loop.quit && !s->late)
		assert_int_equal(loop_turn(&s->loop), 0);
	loop_timer_disarm(&s->limit);
	assert_true(pod_events_are_over(s->pe));
	assert_string_equal(s->text, want);
}

static void put(int dir, const char *name, const char *text)
{
	assert_int_equal(file_replace_at(dir, name, text, strlen(text), 0640), 0);
}

/* As the supervisor notes how an app ended. */
static void put_status(int dir, const char *app, const char *text)
{
	cleanup_fd int status = openat(dir, "status", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put(status, app, text);
}

static void touch(int dir, const char *name)
{
	assert_int_equal(file_touch_at(dir, name, 0640), 0);
}

/* A pod in prepare, locked by us, with what a preparation leaves. */
static struct pod make_pod(struct story *s)
{
	struct pod p = POD_INIT;
	struct err e = ERR_INIT;
	assert_int_equal(pod_create(s->ps, false, &p, &e), 0);
	assert_int_equal(mkdirat(p.fd, "status", 0750), 0);
	touch(p.fd, "pod-created");
	put(p.fd, "pod", "{}");
	return p;
}

/* Gives the pod in run to a process of its own, which holds its lock: its supervisor. */
static pid_t supervise(struct pod *p)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	p->fd = fd_close(p->fd); /* the child has it, too */
	p->lock_is_ours = p->locked = false;
	return pid;
}

static void kill_supervisor(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int open_run(struct story *s, const struct uuid *uuid)
{
	int fd = openat(pods_phase_fd(s->ps, POD_RUN), uuid->text,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void put_pid(int dir, pid_t pid)
{
	char text[16];
	snprintf(text, sizeof(text), "%d\n", (int)pid);
	put(dir, "pid", text);
}

/* Starts @p, which has then a supervisor: its process. *ret_dir is the pod's directory. */
static pid_t start(struct story *s, struct pod *p, int *ret_dir)
{
	struct err e = ERR_INIT;
	struct uuid uuid = p->uuid;
	assert_int_equal(pod_start(s->ps, p, &e), 0);
	pid_t pid = supervise(p);
	*ret_dir = open_run(s, &uuid);
	put_pid(*ret_dir, pid);
	return pid;
}

static void delete_pod(struct story *s, const struct uuid *uuid)
{
	struct err e = ERR_INIT;
	cleanup_pod struct pod p = POD_INIT;
	assert_int_equal(pod_open(s->ps, uuid->text, &p, &e), 0);
	assert_int_equal(pod_lock(s->ps, &p, &e), 0); /* the watcher may probe it just now */
	if (p.phase == POD_RUN)
		assert_int_equal(pod_mark_exited(s->ps, &p, &e), 0);
	assert_int_equal(pod_delete(s->ps, &p, &e), 0);
}

static void test_life(void **state)
{
	struct story s;
	struct err e = ERR_INIT;
	begin(state, &s);
	watch(&s, NULL, false);
	expect(&s, "live");
	cleanup_pod struct pod p = make_pod(&s);
	struct uuid uuid = p.uuid;
	assert_int_equal(pod_finish_prepare(s.ps, &p, &e), 0);
	expect(&s, "created prepared");
	assert_int_equal(pod_try_lock(s.ps, &p, &e), 0);
	cleanup_fd int dir = -EBADF;
	pid_t pid = start(&s, &p, &dir);
	expect(&s, "started");
	touch(dir, "status/a-started");
	expect(&s, "a:started");
	touch(dir, "status/b-created");
	expect(&s, "b:created");
	touch(dir, "status/b-started");
	touch(dir, "ready");
	expect(&s, "b:started ready");
	touch(dir, "status/b-oom");
	expect(&s, "b:oom");
	put_status(dir, "b", "9\n");
	expect(&s, "b:exited=9!");
	/* A file that is not renamed into place is believed when it has its content. */
	touch(dir, "status/a");
	cleanup_fd int out = openat(dir, "status/a", O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(out, "7\n", 2), 2);
	fd_replace(&out, -EBADF);
	expect(&s, "a:exited=7");
	kill_supervisor(pid);
	expect(&s, "exited");
	delete_pod(&s, &uuid);
	expect(&s, "marked removed");
	end(&s);
}

static const struct timespec past[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

static void test_restart(void **state)
{
	struct story s;
	begin(state, &s);
	cleanup_pod struct pod p = make_pod(&s);
	cleanup_fd int dir = -EBADF;
	pid_t pid = start(&s, &p, &dir);
	touch(dir, "status/a-started");
	assert_int_equal(utimensat(dir, "status/a-started", past, 0), 0);
	put_status(dir, "a", "1\n");
	watch(&s, NULL, true);
	expect(&s, "created started a:started a:exited=1 live");
	assert_int_equal(unlinkat(dir, "status/a", 0), 0);
	touch(dir, "status/a-started");
	expect(&s, "a:started");
	put_status(dir, "a", "1\n");
	expect(&s, "a:exited=1");
	kill_supervisor(pid);
	expect(&s, "exited");
	end(&s);
}

/* Of a pod in which nothing else happens: it is told as it begins and ends, each time. */
static void test_full_and_suspended(void **state)
{
	static const struct {
		const char *file, *begins, *ends;
	} cases[] = {
		{ POD_FILE_DISK_FULL, "disk-full", "disk-room" },
		{ POD_FILE_SUSPENDED, "suspended", "resumed" },
	};
	struct story s;
	begin(state, &s);
	cleanup_pod struct pod p = make_pod(&s);
	cleanup_fd int dir = -EBADF;
	pid_t pid = start(&s, &p, &dir);
	watch(&s, NULL, true);
	expect(&s, "created started live");
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		touch(dir, cases[i / 2].file);
		expect(&s, cases[i / 2].begins);
		assert_int_equal(unlinkat(dir, cases[i / 2].file, 0), 0);
		expect(&s, cases[i / 2].ends);
	}
	kill_supervisor(pid);
	expect(&s, "exited");
	end(&s);
}

static void test_replay_and_only(void **state)
{
	struct story s;
	struct err e = ERR_INIT;
	begin(state, &s);
	cleanup_pod struct pod p = make_pod(&s);
	struct uuid uuid = p.uuid;
	cleanup_pod struct pod other = make_pod(&s);
	cleanup_fd int dir = -EBADF;
	pid_t pid = start(&s, &p, &dir);
	touch(dir, "status/a-started");
	watch(&s, &uuid, true);
	expect(&s, "created started a:started live");
	assert_int_equal(pod_finish_prepare(s.ps, &other, &e), 0); /* not the one */
	kill_supervisor(pid); /* before it could say how its app ended */
	expect_end(&s, "a:exited exited");
	assert_int_equal(pod_events_result(s.pe, &e), 0);
	watch(&s, &uuid, true); /* one that has ended already */
	expect_end(&s, "created started a:started a:exited exited");
	watch(&s, &uuid, false);
	expect_end(&s, "");
	watch(&s, NULL, false);
	expect(&s, "live");
	delete_pod(&s, &uuid);
	expect(&s, "marked removed");
	watch(&s, &uuid, true); /* not there any more */
	expect_end(&s, "");
	end(&s);
}

static void limit_files(rlim_t soft)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = soft;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Who cannot look for lack of descriptors does so later: the pod has not ended for that. */
static void test_only_short_of_files(void **state)
{
	struct story s;
	struct err e = ERR_INIT;
	struct rlimit before;
	begin(state, &s);
	cleanup_pod struct pod p = make_pod(&s);
	struct uuid uuid = p.uuid;
	cleanup_fd int dir = -EBADF;
	pid_t pid = start(&s, &p, &dir);
	watch(&s, &uuid, true);
	expect(&s, "created started live");
	touch(dir, "status/a-started");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit_files(3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(loop_turn(&s.loop), 0); /* what there is, and by the clock */
	limit_files(before.rlim_cur);
	assert_false(pod_events_are_over(s.pe));
	assert_int_equal(s.n_problems, 0);
	expect(&s, "a:started");
	kill_supervisor(pid);
	expect_end(&s, "a:exited exited");
	assert_int_equal(pod_events_result(s.pe, &e), 0);
	end(&s);
}

/* A pod that ends before it ran ends the watcher that is about it. */
static void test_only_never_runs(void **state)
{
	struct story s;
	struct err e = ERR_INIT;
	begin(state, &s);
	struct pod p = make_pod(&s);
	struct uuid uuid = p.uuid;
	watch(&s, &uuid, true);
	expect(&s, "live");
	assert_int_equal(pod_finish_prepare(s.ps, &p, &e), 0);
	expect(&s, "created prepared");
	assert_int_equal(pod_try_lock(s.ps, &p, &e), 0);
	assert_int_equal(pod_discard(s.ps, &p, &e), 0);
	expect_end(&s, "removed");
	pod_deinit(&p);

	p = make_pod(&s);
	uuid = p.uuid;
	watch(&s, &uuid, true);
	expect(&s, "live");
	pod_deinit(&p); /* its creator dies: it stays in prepare, which nobody reports */
	expect_end(&s, "");
	end(&s);
}

/* A supervisor that dies before it has written its number, or whose number is somebody else's. */
static void test_polled(void **state)
{
	struct story s;
	struct err e = ERR_INIT;
	begin(state, &s);
	watch(&s, NULL, false);
	expect(&s, "live");
	struct pod p = make_pod(&s);
	assert_int_equal(pod_start(s.ps, &p, &e), 0);
	expect(&s, "created");
	pod_deinit(&p);
	expect(&s, "exited");

	p = make_pod(&s);
	assert_int_equal(pod_start(s.ps, &p, &e), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	put_pid(p.fd, pid); /* the lock is ours */
	expect(&s, "created started");
	kill_supervisor(pid);
	touch(p.fd, "ready");
	expect(&s, "ready");
	pod_deinit(&p);
	expect(&s, "exited");

	p = make_pod(&s);
	assert_int_equal(pod_start(s.ps, &p, &e), 0);
	expect(&s, "created");
	pod_deinit(&p);
	pod_events_look(s.pe);
	assert_string_equal(s.text, "exited"); /* before the loop turns */
	expect(&s, "exited");
	end(&s);
}

/* ---- pods that nobody waits for ---- */

static void live_and_die(struct story *s)
{
	struct err e = ERR_INIT;
	struct pod p = make_pod(s);
	struct uuid uuid = p.uuid;
	assert_int_equal(pod_finish_prepare(s->ps, &p, &e), 0);
	assert_int_equal(pod_lock(s->ps, &p, &e), 0);
	assert_int_equal(pod_start(s->ps, &p, &e), 0);
	put_pid(p.fd, getpid());
	touch(p.fd, "status/a-created");
	touch(p.fd, "status/a-started");
	touch(p.fd, "ready");
	put_status(p.fd, "a", "3\n");
	pod_deinit(&p);
	delete_pod(s, &uuid);
}

/* What has been told about each of some pods, in the order in which they turned up. */
struct ledger {
	struct story s;
	struct ledger_entry {
		struct uuid uuid;
		unsigned int kinds;
		enum pod_event_kind last;
	} v[LIVES + 1];
	size_t n;
	size_t n_removed;
};

static int on_ledger_event(void *ctx, const struct uuid *pod, const struct pod_event *ev)
{
	struct ledger *l = ctx;
	size_t i = 0;
	while (i < l->n && strcmp(l->v[i].uuid.text, pod->text) != 0)
		i++;
	assert_true(i <= LIVES);
	if (i == l->n)
		l->v[l->n++].uuid = *pod;
	struct ledger_entry *entry = &l->v[i];
	assert_false(entry->kinds & 1U << ev->kind); /* each once */
	assert_true((entry->kinds == 0) == (ev->kind == POD_EVENT_CREATED));
	assert_false(entry->kinds & 1U << POD_EVENT_REMOVED);
	if (!ev->app[0]) {
		assert_true(entry->kinds == 0 || ev->kind > entry->last);
		entry->last = ev->kind;
	} else {
		assert_false(entry->kinds & 1U << POD_EVENT_EXITED);
		if (ev->kind == POD_EVENT_APP_EXITED && ev->has_exit_code)
			assert_int_equal(ev->exit_code, 3);
	}
	entry->kinds |= 1U << ev->kind;
	if (ev->kind == POD_EVENT_REMOVED)
		l->n_removed++;
	return 0;
}

static int on_ledger_live(void *ctx)
{
	(void)ctx;
	return 0;
}

static void on_ledger_problem(void *ctx, const struct err *e)
{
	(void)ctx;
	fail_msg("%s", e->text);
}

static void watch_ledger(struct ledger *l)
{
	struct err e = ERR_INIT;
	const struct pod_events_request q = { .max = PODS,
					      .event = on_ledger_event,
					      .live = on_ledger_live,
					      .problem = on_ledger_problem,
					      .ctx = l };
	assert_int_equal(pod_events_new(&l->s.loop, l->s.ps, &q, &l->s.pe, &e), 0);
}

/*
 * Beside the watcher; it sees of each whatever it sees, but in order, and the end of what it has
 * seen.
 */
static void test_races(void **state)
{
	static struct ledger l;
	begin(state, &l.s);
	watch_ledger(&l);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < LIVES; i++)
			live_and_die(&l.s);
		_exit(0);
	}
	int status = -1;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		loop_timer_arm(&l.s.loop, &l.s.limit, clock_monotonic_ns() + NS_PER_MS, on_limit,
			       &l.s);
		assert_int_equal(loop_turn(&l.s.loop), 0);
	}
	assert_int_equal(status, 0);
	struct pod p = make_pod(&l.s); /* when this one is told about, so is all before it */
	struct err e = ERR_INIT;
	struct uuid last = p.uuid;
	assert_int_equal(pod_finish_prepare(l.s.ps, &p, &e), 0);
	while (l.n == 0 || strcmp(l.v[l.n - 1].uuid.text, last.text) != 0)
		assert_int_equal(loop_turn(&l.s.loop), 0);
	pod_deinit(&p);
	assert_int_equal(l.n_removed, l.n - 1);
	assert_int_equal(pod_events_result(l.s.pe, &e), 0);
	loop_timer_disarm(&l.s.limit);
	end(&l.s);
}

static long max_queued_events(void)
{
	long n = 0;
	FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &n), 1);
	fclose(f);
	return n;
}

/* More changes than the kernel keeps: what shows is told all the same. */
static void test_overflow(void **state)
{
	struct story s;
	struct err e = ERR_INIT;
	begin(state, &s);
	struct pod a = make_pod(&s);
	assert_int_equal(pod_start(s.ps, &a, &e), 0);
	pid_t pid = supervise(&a);
	struct pod b = make_pod(&s), c = make_pod(&s);
	assert_int_equal(pod_finish_prepare(s.ps, &b, &e), 0);
	cleanup_fd int dir = open_run(&s, &a.uuid);
	put_pid(dir, pid);
	watch(&s, NULL, false);
	expect(&s, "live");
	long n = max_queued_events();
	for (long i = 0; i < n; i++) { /* two changes each, which differ from the one before */
		touch(dir, "status/noise-created");
		assert_int_equal(unlinkat(dir, "status/noise-created", 0), 0);
	}
	/* Of these there is no report. */
	touch(dir, "status/a-started");
	assert_int_equal(pod_try_lock(s.ps, &b, &e), 0);
	assert_int_equal(pod_discard(s.ps, &b, &e), 0);
	assert_int_equal(pod_start(s.ps, &c, &e), 0);
	pod_deinit(&c);
	/* The pods come in the order of their UUIDs. */
	loop_timer_arm(&s.loop, &s.limit, clock_monotonic_ns() + LIMIT_NS, on_limit, &s);
	while (s.n < 4 && !s.late)
		assert_int_equal(loop_turn(&s.loop), 0);
	loop_timer_disarm(&s.limit);
	assert_non_null(strstr(s.text, "a:started"));
	assert_non_null(strstr(s.text, "removed"));
	assert_non_null(strstr(s.text, "created exited"));
	assert_int_equal(s.n, 4);
	s.text[0] = '\0';
	put_status(dir, "a", "4\n"); /* and it goes on */
	expect(&s, "a:exited=4");
	kill_supervisor(pid);
	expect(&s, "exited");
	pod_deinit(&b);
	end(&s);
}

/* As many pods as there may be, and one more. */
static void test_many(void **state)
{
	struct story s;
	struct err e = ERR_INIT;
	struct uuid uuid;
	begin(state, &s);
	int prepared = pods_phase_fd(s.ps, POD_PREPARED);
	for (size_t i = 0; i < PODS; i++) {
		snprintf(uuid.text, sizeof(uuid.text), "00000000-0000-4000-8000-%012zx", i);
		assert_int_equal(mkdirat(prepared, uuid.text, 0750), 0);
	}
	watch(&s, NULL, true);
	assert_int_equal(s.n, 2 * PODS);
	s.text[0] = '\0';
	assert_int_equal(renameat(prepared, uuid.text, pods_phase_fd(s.ps, POD_RUN), uuid.text), 0);
	expect(&s, "exited");
	assert_int_equal(unlinkat(pods_phase_fd(s.ps, POD_RUN), uuid.text, AT_REMOVEDIR), 0);
	expect(&s, "removed");
	assert_int_equal(mkdirat(prepared, uuid.text, 0750), 0); /* there is room again */
	expect(&s, "created prepared");
	snprintf(uuid.text, sizeof(uuid.text), "f0000000-0000-4000-8000-000000000000");
	assert_int_equal(mkdirat(prepared, uuid.text, 0750), 0);
	expect_end(&s, "");
	assert_int_equal(pod_events_result(s.pe, &e), -E2BIG);
	assert_string_equal(e.text, "more than 500 pods in the data directory");
	watch(&s, NULL, true);
	assert_int_equal(pod_events_result(s.pe, &e), -E2BIG);
	end(&s);
}

#define SOME_UUID "12345678-1234-4123-8123-123456789abc"

static void test_problems(void **state)
{
	struct story s;
	struct err e = ERR_INIT;
	begin(state, &s);
	watch(&s, NULL, false);
	expect(&s, "live");
	int run = pods_phase_fd(s.ps, POD_RUN);
	assert_int_equal(symlinkat("/", run, SOME_UUID), 0);
	assert_int_equal(symlinkat("/", run, "lost+found"), 0);
	while (s.n_problems == 0)
		assert_int_equal(loop_turn(&s.loop), 0);
	assert_string_equal(s.problem, "cannot watch pod \"" SOME_UUID "\": Not a directory");
	assert_int_equal(unlinkat(run, SOME_UUID, 0), 0);
	assert_int_equal(mkdirat(run, SOME_UUID, 0750), 0);
	expect(&s, "created exited");
	assert_int_equal(s.n_problems, 1);

	assert_int_equal(rmtree(fixture_dir(state), "pods"), 0);
	loop_timer_arm(&s.loop, &s.limit, clock_monotonic_ns() + LIMIT_NS, on_limit, &s);
	while (!s.loop.quit && !s.late)
		assert_int_equal(loop_turn(&s.loop), 0);
	loop_timer_disarm(&s.limit);
	assert_int_equal(pod_events_result(s.pe, &e), -ENOENT);
	assert_non_null(strstr(e.text, " of the data directory is gone"));
	end(&s);
}

static void test_reader_has_enough(void **state)
{
	struct story s;
	struct err e = ERR_INIT;
	begin(state, &s);
	struct pod p = make_pod(&s);
	assert_int_equal(pod_finish_prepare(s.ps, &p, &e), 0);
	s.stop_at = 1;
	watch(&s, NULL, true);
	assert_true(pod_events_are_over(s.pe));
	assert_string_equal(s.text, "created");
	assert_int_equal(pod_events_result(s.pe, &e), 0);
	pod_deinit(&p);
	end(&s);
}

static int replay(void *ctx)
{
	struct story *s = ctx;
	struct err e = ERR_INIT;
	struct pod_events *pe = NULL;
	const struct pod_events_request q = { .max = PODS,
					      .replay = true,
					      .event = on_event,
					      .live = on_live,
					      .problem = on_problem,
					      .ctx = s };
	s->text[0] = '\0';
	int r = pod_events_new(&s->loop, s->ps, &q, &pe, &e);
	if (r == 0)
		r = pod_events_result(pe, &e);
	pod_events_free(pe);
	return r;
}

static void test_short_of_memory(void **state)
{
	struct story s;
	begin(state, &s);
	struct pod p = make_pod(&s);
	struct err e = ERR_INIT;
	touch(p.fd, "status/a-started");
	assert_int_equal(pod_start(s.ps, &p, &e), 0);
	/* A number that cannot be read is none yet. */
	for_each_failing_alloc_lenient(replay, &s);
	pod_deinit(&p);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_life),
		fixture_test(test_restart),
		fixture_test(test_full_and_suspended),
		fixture_test(test_replay_and_only),
		fixture_test(test_only_short_of_files),
		fixture_test(test_only_never_runs),
		fixture_test(test_polled),
		fixture_test(test_races),
		fixture_test(test_overflow),
		fixture_test(test_many),
		fixture_test(test_problems),
		fixture_test(test_reader_has_enough),
		fixture_test(test_short_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
