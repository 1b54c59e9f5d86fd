/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/gc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/pod/info.h"
#include "host/pod/wait.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/lock.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

#define HOUR_NS (3600 * NS_PER_SEC)

/* What was told, by event, and how often stage1 was called. */
struct story {
	int events[GC_FAILED + 1];
	int stage1_calls, stage1_result;
	int stays;               /* of these calls, those for a pod that stays */
	char said[ERR_TEXT_MAX]; /* the last failure */
	struct gc gc;
};

static void tell(void *ctx, enum gc_event event, const struct pod *p, const struct err *e)
{
	struct story *s = ctx;
	assert_int_equal(event == GC_FAILED, e != NULL);
	assert_true(uuid_is_valid(p->uuid.text));
	s->events[event]++;
	if (e)
		str_copy(s->said, sizeof(s->said), e->text);
}

/* The pod is still whole and locked when stage1 sees it. */
static int stage1_gc(void *ctx, const struct pod *p, bool stays, struct err *e)
{
	struct story *s = ctx;
	struct stat st;
	assert_true(p->lock_is_ours);
	assert_int_equal(fstat(p->fd, &st), 0);
	assert_true(st.st_nlink > 0);
	assert_int_equal(p->phase, POD_EXITED_GARBAGE);
	s->stage1_calls++;
	s->stays += stays;
	return s->stage1_result < 0 ? err_set(e, s->stage1_result, "played") : 0;
}

static void begin(void **state, struct story *s)
{
	struct err e = ERR_INIT;
	memset(s, 0, sizeof(*s));
	s->gc = (struct gc){ .now_ns = clock_realtime_ns(),
			     .grace_ns = HOUR_NS,
			     .expire_ns = HOUR_NS,
			     .tell = tell,
			     .stage1_gc = stage1_gc,
			     .ctx = s };
	assert_int_equal(pods_open(fixture_dir(state), true, &s->gc.ps, &e), 0);
}

static void end(struct story *s)
{
	pods_free(s->gc.ps);
}

static void put_file(int dirfd, const char *name)
{
	cleanup_fd int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
	assert_true(fd >= 0);
}

/* A pod of @phase with a manifest and some files; locked by us. */
static struct pod make_pod(struct story *s, enum pod_phase phase)
{
	struct pod p = POD_INIT;
	struct err e = ERR_INIT;
	struct pods *ps = s->gc.ps;
	if (phase == POD_EMBRYO) { /* its creator was killed right after mkdir */
		assert_int_equal(mkdirat(pods_phase_fd(ps, POD_EMBRYO),
					 "12345678-1234-4123-8123-123456789abc", 0750),
				 0);
		assert_int_equal(pod_open(ps, "12345678-1234-4123-8123-123456789abc", &p, &e), 0);
		return p;
	}
	assert_int_equal(pod_create(ps, false, &p, &e), 0);
	put_file(p.fd, POD_FILE_MANIFEST);
	put_file(p.fd, "aaa");
	put_file(p.fd, "zzz");
	assert_int_equal(mkdirat(p.fd, POD_DIR_STATUS, 0750), 0);
	if (phase == POD_PREPARED) {
		assert_int_equal(pod_finish_prepare(ps, &p, &e), 0);
		assert_int_equal(pod_try_lock(ps, &p, &e), 0);
	}
	if (phase == POD_RUN || phase == POD_EXITED_GARBAGE)
		assert_int_equal(pod_start(ps, &p, &e), 0);
	if (phase == POD_EXITED_GARBAGE)
		assert_int_equal(pod_mark_exited(ps, &p, &e), 0);
	if (phase == POD_GARBAGE)
		assert_int_equal(pod_discard(ps, &p, &e), 0);
	return p;
}

/* The same, left by its holder. */
static struct uuid leave_pod(struct story *s, enum pod_phase phase)
{
	cleanup_pod struct pod p = make_pod(s, phase);
	return p.uuid;
}

/* The phase that the pod is in, or POD_PHASE_COUNT_ if it is nowhere. */
static enum pod_phase phase_of(struct story *s, const struct uuid *uuid)
{
	cleanup_pod struct pod p = POD_INIT;
	struct err e = ERR_INIT;
	int r = pod_open(s->gc.ps, uuid->text, &p, &e);
	assert_true(r == 0 || r == POD_GONE);
	return r == 0 ? p.phase : POD_PHASE_COUNT_;
}

static void collect(struct story *s)
{
	struct err e = ERR_INIT;
	memset(s->events, 0, sizeof(s->events));
	s->stage1_calls = s->stays = 0;
	assert_int_equal(pods_gc(&s->gc, &e), 0);
}

static const enum pod_phase all[] = { POD_EMBRYO, POD_PREPARE,        POD_PREPARED,
				      POD_RUN,    POD_EXITED_GARBAGE, POD_GARBAGE };

/* One that marks only deletes nothing, with whatever grace, so that stage1 is called for all. */
static void test_marks(void **state)
{
	struct story s;
	struct uuid uuids[ARRAY_SIZE(all)];
	begin(state, &s);
	s.gc.mark_only = true;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		uuids[i] = leave_pod(&s, all[i]);
	collect(&s);
	assert_int_equal(phase_of(&s, &uuids[POD_EMBRYO]), POD_GARBAGE);
	assert_int_equal(phase_of(&s, &uuids[POD_PREPARE]), POD_GARBAGE);
	assert_int_equal(phase_of(&s, &uuids[POD_PREPARED]), POD_PREPARED);
	assert_int_equal(phase_of(&s, &uuids[POD_RUN]), POD_EXITED_GARBAGE);
	assert_int_equal(phase_of(&s, &uuids[POD_EXITED_GARBAGE]), POD_EXITED_GARBAGE);
	assert_int_equal(phase_of(&s, &uuids[POD_GARBAGE]), POD_GARBAGE);
	assert_int_equal(s.events[GC_MARKED_ABORTED], 2);
	assert_int_equal(s.events[GC_MARKED_EXITED], 1);
	assert_int_equal(s.events[GC_MARKED_EXPIRED], 0);
	assert_int_equal(s.events[GC_COLLECTING], 0);
	assert_int_equal(s.stage1_calls, 1);
	assert_int_equal(s.stays, 1);
	s.gc.grace_ns = 0;
	struct uuid run = leave_pod(&s, POD_RUN);
	collect(&s);
	assert_int_equal(phase_of(&s, &run), POD_EXITED_GARBAGE);
	assert_int_equal(s.stage1_calls, 1);
	assert_int_equal(s.stays, 1);
	end(&s);
}

/* What somebody holds is left alone, in whatever phase. */
static void test_held(void **state)
{
	struct story s;
	begin(state, &s);
	s.gc.grace_ns = s.gc.expire_ns = 0;
	for (size_t i = 1; i < ARRAY_SIZE(all); i++) {
		cleanup_pod struct pod held = make_pod(&s, all[i]);
		collect(&s);
		assert_int_equal(phase_of(&s, &held.uuid), all[i]);
		for (int event = 0; event <= GC_FAILED; event++)
			assert_int_equal(s.events[event], 0);
		pod_deinit(&held);
		collect(&s);
	}
	end(&s);
}

static void test_grace(void **state)
{
	struct story s;
	begin(state, &s);
	struct uuid run = leave_pod(&s, POD_RUN), prepared = leave_pod(&s, POD_PREPARED);
	collect(&s);
	assert_int_equal(phase_of(&s, &run), POD_EXITED_GARBAGE);
	assert_int_equal(s.events[GC_KEPT], 1);
	assert_int_equal(s.stage1_calls, 1);
	assert_int_equal(s.stays, 1);
	/* The times count from the mark, and from the preparation. */
	s.gc.now_ns += HOUR_NS - 30 * NS_PER_SEC;
	collect(&s);
	assert_int_equal(phase_of(&s, &run), POD_EXITED_GARBAGE);
	assert_int_equal(phase_of(&s, &prepared), POD_PREPARED);
	assert_int_equal(s.stage1_calls, 0);
	s.gc.now_ns += 60 * NS_PER_SEC;
	collect(&s);
	assert_int_equal(phase_of(&s, &run), POD_PHASE_COUNT_);
	assert_int_equal(phase_of(&s, &prepared), POD_PHASE_COUNT_);
	assert_int_equal(s.events[GC_MARKED_EXPIRED], 1);
	assert_int_equal(s.events[GC_COLLECTING], 2);
	assert_int_equal(s.stage1_calls, 1); /* the other one never ran */
	assert_int_equal(s.stays, 0);
	/* A clock that was set back keeps pods rather than deletes them. */
	run = leave_pod(&s, POD_RUN);
	s.gc.now_ns = 0;
	collect(&s);
	assert_int_equal(phase_of(&s, &run), POD_EXITED_GARBAGE);
	end(&s);
}

static int remove_by_uuid(struct story *s, const struct uuid *uuid, struct err *e)
{
	cleanup_pod struct pod p = POD_INIT;
	assert_int_equal(pod_open(s->gc.ps, uuid->text, &p, e), 0);
	return pod_remove(&s->gc, &p, e);
}

/* One collection without grace takes everything that nobody holds. */
static void test_sweeps(void **state)
{
	struct story s;
	struct uuid uuids[ARRAY_SIZE(all)];
	begin(state, &s);
	s.gc.grace_ns = s.gc.expire_ns = 0;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		uuids[i] = leave_pod(&s, all[i]);
	collect(&s);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		assert_int_equal(phase_of(&s, &uuids[i]), POD_PHASE_COUNT_);
	assert_int_equal(s.events[GC_COLLECTING], 6);
	assert_int_equal(s.stage1_calls, 2);
	assert_int_equal(s.stays, 0);
	assert_int_equal(s.events[GC_FAILED], 0);
	end(&s);
}

/* What stage1 needs to clean up is in the pod directory: that stays until it has. */
static void test_stage1_fails(void **state)
{
	static const char want[] =
		"played: the pod is kept until that works (husk gc and husk rm try again)";
	struct story s;
	begin(state, &s);
	s.stage1_result = -EIO;
	struct uuid run = leave_pod(&s, POD_RUN);
	collect(&s);
	assert_int_equal(s.events[GC_FAILED], 1);
	assert_string_equal(s.said, want);
	s.gc.grace_ns = 0;
	collect(&s);
	assert_int_equal(s.stage1_calls, 1);
	assert_int_equal(s.events[GC_FAILED], 1);
	assert_string_equal(s.said, want);
	assert_int_equal(phase_of(&s, &run), POD_EXITED_GARBAGE);
	struct err e = ERR_INIT;
	assert_int_equal(remove_by_uuid(&s, &run, &e), -EIO);
	assert_non_null(strstr(e.text, run.text));
	assert_non_null(strstr(e.text, want));
	struct uuid other = leave_pod(&s, POD_RUN);
	assert_int_equal(remove_by_uuid(&s, &other, &e), -EIO);
	assert_int_equal(phase_of(&s, &other), POD_EXITED_GARBAGE);
	s.stage1_result = 0;
	assert_int_equal(remove_by_uuid(&s, &other, &e), 0);
	collect(&s);
	assert_int_equal(phase_of(&s, &run), POD_PHASE_COUNT_);
	end(&s);
}

/* With what it is called and where; that it fails is told; a stage1 without it is none to call. */
static void test_stage1_gc(void **state)
{
	static struct stage1 stage1;
	static const char script[] = "#!/bin/sh\necho \"$@\" >args\ntest ! -e fail\n";
	struct story s;
	struct err e = ERR_INIT;
	cleanup_free char *args = NULL;
	char want[128];
	begin(state, &s);
	cleanup_pod struct pod p = make_pod(&s, POD_EXITED_GARBAGE);
	assert_int_equal(pod_stage1_gc(&p, &stage1, false, true, &e), 0);
	fixture_write(state, "program", script, strlen(script));
	assert_int_equal(fchmodat(fixture_dir(state), "program", 0755, 0), 0);
	snprintf(stage1.gc, sizeof(stage1.gc), "%s/program", fixture_path(state));
	stage1.abi = STAGE1_ABI_RKT; /* knows of no pods that stay */
	assert_int_equal(pod_stage1_gc(&p, &stage1, true, true, &e), 0);
	assert_int_equal(faccessat(p.fd, "args", F_OK, 0), -1);
	stage1.abi = STAGE1_ABI_HUSK;
	assert_int_equal(pod_stage1_gc(&p, &stage1, true, true, &e), 0);
	snprintf(want, sizeof(want), "--debug --pod-stays %s\n", p.uuid.text);
	assert_int_equal(file_read_at(p.fd, "args", sizeof(want), &args, NULL), 0);
	assert_string_equal(args, want);
	put_file(p.fd, "fail");
	assert_int_equal(pod_stage1_gc(&p, &stage1, false, false, &e), -EIO);
	end(&s);
}

/* A collector that died: what is left is deleted, the manifest or nothing being last. */
static void test_half_deleted(void **state)
{
	struct story s;
	begin(state, &s);
	s.gc.grace_ns = 0;
	cleanup_pod struct pod p = make_pod(&s, POD_EXITED_GARBAGE);
	assert_int_equal(unlinkat(p.fd, POD_FILE_MANIFEST, 0), 0);
	struct uuid uuid = p.uuid;
	pod_deinit(&p);
	collect(&s);
	assert_int_equal(phase_of(&s, &uuid), POD_PHASE_COUNT_);
	assert_int_equal(s.events[GC_FAILED], 0);
	end(&s);
}

/* A file where a pod should be is told, and the others are collected. */
static void test_foreign_file(void **state)
{
	struct story s;
	begin(state, &s);
	s.gc.grace_ns = 0;
	put_file(pods_phase_fd(s.gc.ps, POD_RUN), "00000000-1234-4123-8123-123456789abc");
	put_file(pods_phase_fd(s.gc.ps, POD_RUN), "lost+found");
	struct uuid run = leave_pod(&s, POD_RUN);
	collect(&s);
	assert_int_equal(phase_of(&s, &run), POD_PHASE_COUNT_);
	assert_int_equal(s.events[GC_FAILED], 1);
	assert_int_equal(unlinkat(pods_phase_fd(s.gc.ps, POD_RUN),
				  "00000000-1234-4123-8123-123456789abc", 0),
			 0);
	end(&s);
}

static void test_remove(void **state)
{
	struct story s;
	begin(state, &s);
	for (size_t i = 1; i < ARRAY_SIZE(all); i++) {
		struct err e = ERR_INIT;
		struct uuid uuid = leave_pod(&s, all[i]);
		assert_int_equal(remove_by_uuid(&s, &uuid, &e), 0);
		assert_int_equal(phase_of(&s, &uuid), POD_PHASE_COUNT_);
	}
	assert_int_equal(s.stage1_calls, 2);
	end(&s);
}

static void test_remove_refused(void **state)
{
	static const char *const what[] = { "",
					    "currently being prepared",
					    "currently being started",
					    "currently running",
					    "currently being deleted",
					    "currently being deleted" };
	struct story s;
	begin(state, &s);
	for (size_t i = 1; i < ARRAY_SIZE(all); i++) {
		struct err e = ERR_INIT;
		cleanup_pod struct pod held = make_pod(&s, all[i]);
		assert_int_equal(remove_by_uuid(&s, &held.uuid, &e), -EBUSY);
		assert_non_null(strstr(e.text, what[i]));
		assert_non_null(strstr(e.text, held.uuid.text));
		assert_int_equal(phase_of(&s, &held.uuid), all[i]);
	}
	end(&s);
}

static int probe_fd;

static void end_probe(int sig)
{
	(void)sig;
	lock_release(probe_fd);
}

/* A probe that passes does not make a removal fail. */
static void test_remove_beside_probes(void **state)
{
	struct story s;
	struct err e = ERR_INIT;
	begin(state, &s);
	struct uuid uuid = leave_pod(&s, POD_RUN);
	cleanup_pod struct pod p = POD_INIT, prober = POD_INIT;
	assert_int_equal(pod_open(s.gc.ps, uuid.text, &prober, &e), 0);
	assert_int_equal(pod_open(s.gc.ps, uuid.text, &p, &e), 0);
	assert_int_equal(lock_try_shared(prober.fd), 0);
	probe_fd = prober.fd;
	signal(SIGALRM, end_probe);
	setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = 20000 }, NULL);
	assert_int_equal(pod_remove(&s.gc, &p, &e), 0);
	assert_int_equal(phase_of(&s, &uuid), POD_PHASE_COUNT_);
	end(&s);
}

static void test_removed_by_another(void **state)
{
	struct story s;
	struct err e = ERR_INIT;
	begin(state, &s);
	struct uuid uuid = leave_pod(&s, POD_RUN);
	cleanup_pod struct pod p = POD_INIT;
	assert_int_equal(pod_open(s.gc.ps, uuid.text, &p, &e), 0);
	assert_int_equal(remove_by_uuid(&s, &uuid, &e), 0);
	assert_int_equal(pod_remove(&s.gc, &p, &e), -EBUSY);
	assert_non_null(strstr(e.text, "currently being deleted"));
	/* Who still has the directory open sees that it is not a pod any more. */
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	assert_int_equal(pod_info_read(s.gc.ps, &p, &info), POD_GONE);
	end(&s);
}

static void test_wait(void **state)
{
	struct story s;
	struct err e = ERR_INIT;
	begin(state, &s);
	struct pod held = make_pod(&s, POD_RUN);
	cleanup_pod struct pod p = POD_INIT;
	assert_int_equal(pod_open(s.gc.ps, held.uuid.text, &p, &e), 0);
	assert_int_equal(pod_wait_finished(s.gc.ps, &p, clock_monotonic_ns(), &e), -ETIMEDOUT);
	assert_string_equal(e.text, "error waiting for pod to finish: context deadline exceeded");
	assert_int_equal(pod_wait_ready(s.gc.ps, &p, clock_monotonic_ns(), &e), -ETIMEDOUT);
	assert_string_equal(e.text, "error waiting for pod readiness: context deadline exceeded");
	put_file(held.fd, POD_FILE_READY);
	assert_int_equal(pod_wait_ready(s.gc.ps, &p, 0, &e), 0);
	pid_t pid = fork();
	if (pid == 0) {
		pod_mark_exited(s.gc.ps, &held, &e);
		_exit(0);
	}
	pod_deinit(&held);
	assert_int_equal(pod_wait_finished(s.gc.ps, &p, INT64_MAX, &e), 0);
	assert_int_equal(p.phase, POD_EXITED_GARBAGE);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	end(&s);
}

static void test_wait_in_vain(void **state)
{
	struct story s;
	struct err e = ERR_INIT;
	begin(state, &s);
	struct uuid uuid = leave_pod(&s, POD_RUN);
	cleanup_pod struct pod p = POD_INIT;
	assert_int_equal(pod_open(s.gc.ps, uuid.text, &p, &e), 0);
	assert_int_equal(pod_wait_ready(s.gc.ps, &p, INT64_MAX, &e), -EINVAL);
	assert_non_null(strstr(e.text, "ended before it was ready"));
	uuid = leave_pod(&s, POD_PREPARED);
	cleanup_pod struct pod waited = POD_INIT;
	assert_int_equal(pod_open(s.gc.ps, uuid.text, &waited, &e), 0);
	pid_t pid = fork();
	if (pid == 0) {
		remove_by_uuid(&s, &uuid, &e);
		_exit(0);
	}
	assert_true(pod_wait_finished(s.gc.ps, &waited, INT64_MAX, &e) <= 0);
	assert_string_equal(waited.uuid.text, uuid.text);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_marks),
		fixture_test(test_held),
		fixture_test(test_grace),
		fixture_test(test_sweeps),
		fixture_test(test_stage1_fails),
		fixture_test(test_stage1_gc),
		fixture_test(test_half_deleted),
		fixture_test(test_foreign_file),
		fixture_test(test_remove),
		fixture_test(test_remove_refused),
		fixture_test(test_remove_beside_probes),
		fixture_test(test_removed_by_another),
		fixture_test(test_wait),
		fixture_test(test_wait_in_vain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
