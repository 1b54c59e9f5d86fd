/* SPDX-License-Identifier: Apache-2.0 */
/* The backend with a stand-in for husk-ns; system tests start pods. */
#include "stage1/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"

#define LIMIT_MS 120000

struct pod {
	struct loop loop;
	struct loop_timer limit;
	struct pod_manifest manifest;
	struct backend_input in;
	struct backend_pod *backend;
	bool up, ended;
	int n_done;
	char why[2048]; /* of the end, and of what was asked */
	char done[2048];
};

static void on_spoke(void *ctx)
{
	struct pod *p = ctx;
	p->up = true;
}

static void on_reached(void *ctx, const char *name)
{
	(void)ctx;
	assert_string_equal(name, "namespaces made");
}

static void on_ended(void *ctx, const struct err *why)
{
	struct pod *p = ctx;
	assert_false(p->ended);
	p->ended = true;
	snprintf(p->why, sizeof(p->why), "%s", why->text);
}

static const struct backend_events events = { .spoke = on_spoke,
					      .reached = on_reached,
					      .ended = on_ended };

static void on_done(void *ctx, const struct err *why, bool left)
{
	struct pod *p = ctx;
	assert_false(left);
	snprintf(p->done, sizeof(p->done), "%s", why ? why->text : "");
	p->n_done++;
}

static void on_limit(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened");
}

static void start(void **state, struct pod *p, const char *mode)
{
	struct agent_pod_setup setup = { 0 };
	struct err e = ERR_INIT;
	*p = (struct pod){ .in = { .pod_fd = fixture_dir(state),
				   .uuid = mode,
				   .cgroup_parent = "",
				   .manifest = &p->manifest,
				   .cache_dir = "cache",
				   .secret = "secret" } };
	assert_int_equal(fchdir(fixture_dir(state)), 0);
	assert_int_equal(loop_init(&p->loop), 0);
	loop_timer_arm(&p->loop, &p->limit, clock_monotonic_ns() + LIMIT_MS * NS_PER_MS, on_limit,
		       p);
	p->backend = flavor_backend.create();
	if (flavor_backend.prepare(p->backend, &p->in, &setup, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(setup.scratch_lun, AGENT_SCRATCH_LUN);
	if (flavor_backend.start(p->backend, &p->loop, NULL, &events, p, &e) < 0)
		fail_msg("%s", e.text);
}

static void finish(struct pod *p)
{
	flavor_backend.free(p->backend);
	loop_timer_disarm(&p->limit);
	loop_deinit(&p->loop);
	assert_int_equal(access("agent.sock", F_OK), -1);
	assert_int_equal(chdir("/"), 0);
}

static void test_options(void **state)
{
	const struct backend_wishes shared = { .shares_net = true };
	const struct backend_wishes blocks = { .block_volumes = true };
	const struct backend_wishes paths = { .open_paths = true };
	struct err e = ERR_INIT;
	(void)state;
	struct backend_pod *p = flavor_backend.create();
	if (geteuid() == 0) {
		assert_int_equal(flavor_backend.check(p, &blocks, &e), -EOPNOTSUPP);
		assert_non_null(strstr(e.text, "kind=block need a VM"));
	}
	assert_false(flavor_backend.shares_users(p));
	assert_int_equal(flavor_backend.option(p, "userns", "host", &e), 0);
	assert_true(flavor_backend.shares_users(p));
	assert_int_equal(flavor_backend.check(p, &shared, &e), geteuid() == 0 ? 0 : -EPERM);
	assert_int_equal(flavor_backend.check(p, &paths, &e), -EPERM);
	if (geteuid() == 0)
		assert_string_equal(e.text,
				    "--insecure-options=paths opens the host's kernel to its root "
				    "in the pod (leave --userns=host away)");
	else
		assert_string_equal(e.text, "--userns=host: only root may start such pods");
	for (const char *const *s = (const char *[]){ "private", "auto", NULL }; *s; s++) {
		assert_int_equal(flavor_backend.option(p, "userns", *s, &e), 0);
		assert_false(flavor_backend.shares_users(p));
		assert_int_equal(flavor_backend.check(p, &shared, &e),
				 geteuid() == 0 ? 0 : -EOPNOTSUPP);
		assert_int_equal(flavor_backend.check(p, &paths, &e), 0);
	}
	assert_int_equal(flavor_backend.option(p, "userns", "some", &e), -EINVAL);
	assert_string_equal(e.text, "--userns=some: no such choice (see husk run --help)");
	assert_string_equal(flavor_backend.last_words(p), "");
	assert_int_equal(flavor_backend.unplug(p, 0, on_done, NULL), -ENOTCONN);
	flavor_backend.free(p);
	flavor_backend.free(NULL);
}

/* How it ends says the helper's first line, or else its exit code. */
static void test_ends(void **state)
{
	static const char *const cases[][2] = {
		{ "fails", "namespaces: the reason" },
		{ "silent", "exit code 3" },
		{ "dies", "the pod ended unexpectedly: husk-agent: killed by signal 9 (see "
			  "console.log in the pod directory)" },
	};
	struct pod p;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		start(state, &p, cases[i][0]);
		while (!p.ended)
			loop_turn(&p.loop);
		assert_string_equal(p.why, cases[i][1]);
		assert_int_equal(p.up, i == 2);
		finish(&p);
	}
}

static void ask(struct pod *p, int slot, const char *want)
{
	int n = p->n_done;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flavor_backend.plug(p->backend, slot, fd, on_done, p), 0);
	assert_int_equal(flavor_backend.unplug(p->backend, slot, on_done, p), -E2BIG);
	while (p->n_done == n)
		loop_turn(&p->loop);
	assert_string_equal(p->done, want);
}

/*
 * Whatever the helper says, what was asked is answered once, and killing the pod ends it: behind
 * the answer to what was asked before. Its last word did not wait for anybody to read it.
 */
static void test_plug(void **state)
{
	static const char *const modes[] = { "serves", "nonsense" };
	struct pod p;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		start(state, &p, modes[i]);
		while (!p.up)
			loop_turn(&p.loop);
		ask(&p, 0, "");
		ask(&p, 1, "no room");
		ask(&p, 0, "");
		assert_int_equal(p.n_done, 3);
		assert_int_equal(flavor_backend.unplug(p.backend, 1, on_done, &p), 0);
		flavor_backend.kill(p.backend);
		while (!p.ended)
			loop_turn(&p.loop);
		assert_int_equal(p.n_done, 4);
		assert_string_equal(p.done, "no room");
		assert_string_equal(flavor_backend.last_words(p.backend), "husk-agent: a word");
		finish(&p);
	}
}

/* A second supervisor in the same directory finds the pod alive. */
static void test_alive(void **state)
{
	struct pod p;
	struct err e = ERR_INIT;
	struct agent_pod_setup setup;
	if (geteuid() != 0)
		skip();
	start(state, &p, "serves");
	while (!p.up)
		loop_turn(&p.loop);
	assert_int_equal(unlink("agent.sock"), 0);
	struct backend_pod *other = flavor_backend.create();
	assert_int_equal(flavor_backend.prepare(other, &p.in, &setup, &e), 0);
	assert_int_equal(flavor_backend.start(other, &p.loop, NULL, &events, &p, &e), -EBUSY);
	assert_non_null(strstr(e.text, "pod.alive"));
	flavor_backend.free(other);
	finish(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_options),
		fixture_test(test_ends),
		fixture_test(test_plug),
		fixture_test(test_alive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
