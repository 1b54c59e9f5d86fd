/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/pod_plan.h"

#include <errno.h>
#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/support/pods.h"

static void test_number_of_apps(void **state)
{
	struct pod_manifest pod, none = { 0 };
	struct err e = ERR_INIT;
	struct pod_plan p;

	(void)state;
	pod_make(&pod, AGENT_APPS_MAX, "odd");
	assert_int_equal(pod_plan_make(&pod, &p, NULL), 0);
	assert_int_equal(p.n_apps, AGENT_APPS_MAX);
	pod_plan_deinit(&p);
	pod_plan_deinit(&p);
	pod_manifest_deinit(&pod);
	assert_int_equal(pod_plan_make(&none, &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "0 apps"));
	none.is_mutable = true;
	assert_int_equal(pod_plan_make(&none, &p, NULL), 0);
	assert_true(p.is_mutable);
	pod_plan_deinit(&p);
	none.n_apps = AGENT_APPS_MAX + 1; /* refused before its apps are looked at */
	assert_int_equal(pod_plan_make(&none, &p, &e), -EINVAL);
}

static void test_messages(void **state)
{
	struct pod_manifest pod;
	struct pod_plan p;

	(void)state;
	pod_make(&pod, 3, "odd");
	assert_int_equal(pod_plan_make(&pod, &p, NULL), 0);
	assert_int_equal(p.setup.scratch_lun, -1);
	for (int i = 0; i < 3; i++) {
		const struct agent_app_add *m = &p.apps[i];

		assert_int_equal(m->lun, i);
		assert_int_equal(m->app[3], '0' + i);
		assert_string_equal(m->process.cwd, "odd");
		assert_string_equal(m->process.user, "odd");
		assert_string_equal(m->process.group, "odd");
		assert_string_equal(m->process.exec.v[0], "odd");
		assert_string_equal(m->process.env.v[0], "NAME=odd");
		assert_false(m->process.with_tty);
	}
	pod_plan_deinit(&p);
	pod_manifest_deinit(&pod);
}

/* An app without limits, and one with every number that there is. */
static void test_confinement(void **state)
{
	static const struct {
		enum isolator which;
		const char *text;
	} isolators[] = {
		{ ISOLATOR_MEMORY, "64Mi" },        { ISOLATOR_CPU, "1.5" },
		{ ISOLATOR_CPU_SHARES, "1024" },    { ISOLATOR_OOM_SCORE_ADJ, "-5" },
		{ ISOLATOR_NO_NEW_PRIVS, "true" },  { ISOLATOR_PIDS, "100" },
		{ ISOLATOR_RLIMITS, "nofile=1:2" },
	};
	struct pod_manifest pod;
	struct pod_plan p;

	(void)state;
	pod_make(&pod, 2, "odd");
	for (size_t i = 0; i < ARRAY_SIZE(isolators); i++)
		assert_int_equal(isolators_set(&pod.apps[1].isolators, isolators[i].which,
					       isolators[i].text, NULL),
				 0);
	assert_int_equal(pod_app_add_group(&pod.apps[1].groups, "7", NULL), 0);
	pod.apps[1].read_only_root = true;
	assert_int_equal(pod_plan_make(&pod, &p, NULL), 0);
	const struct agent_confinement *free_app = &p.apps[0].confinement,
				       *c = &p.apps[1].confinement;
	assert_int_equal(free_app->capabilities, AGENT_CAPABILITIES_DEFAULT);
	assert_int_equal(free_app->cpu_weight, 0);
	assert_int_equal(free_app->memory_max, 0);
	assert_int_equal(free_app->groups.n + free_app->rlimits.n, 0);
	assert_int_equal(c->capabilities, AGENT_CAPABILITIES_DEFAULT);
	assert_int_equal(c->memory_max, 64 << 20);
	assert_int_equal(c->cpu_millis, 1500);
	assert_int_equal(c->cpu_weight, 100);
	assert_int_equal(c->oom_score_adj, -5);
	assert_int_equal(c->pids_max, 100);
	assert_true(c->no_new_privs && c->read_only_root);
	assert_string_equal(c->groups.v[0], "7");
	assert_string_equal(c->rlimits.v[0], "nofile=1:2");
	pod_plan_deinit(&p);
	pod_manifest_deinit(&pod);
}

static void test_weight(void **state)
{
	static const struct {
		int64_t shares, weight;
	} cases[] = { { 0, 0 }, { 2, 1 }, { 1024, 100 }, { 2048, 200 }, { 262144, 10000 } };
	struct pod_manifest pod;

	(void)state;
	pod_make(&pod, 1, "odd");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(agent_app_add_deinit) struct agent_app_add m;

		pod.apps[0].isolators.cpu_shares = cases[i].shares;
		assert_int_equal(pod_plan_app(&pod, &pod.apps[0], 0, &m, NULL), 0);
		assert_int_equal(m.confinement.cpu_weight, cases[i].weight);
	}
	pod_manifest_deinit(&pod);
}

/* What the agent is told about the streams of an app. */
static void test_streams(void **state)
{
	static const struct {
		struct stream_modes m;
		bool keep, tty, in, no_out, no_err;
	} samples[] = {
		{ { STREAM_MODE_DEFAULT, STREAM_MODE_DEFAULT, STREAM_MODE_LOG },
		  false,
		  false,
		  false,
		  false,
		  false },
		{ { STREAM_MODE_NULL, STREAM_MODE_NULL, STREAM_MODE_NULL },
		  false,
		  false,
		  false,
		  true,
		  true },
		{ { STREAM_MODE_STREAM, STREAM_MODE_LOG, STREAM_MODE_NULL },
		  true,
		  false,
		  true,
		  false,
		  true },
		{ { STREAM_MODE_DEFAULT, STREAM_MODE_TTY, STREAM_MODE_DEFAULT },
		  true,
		  true,
		  false,
		  false,
		  false },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct pod_manifest pod;
		CLEANUP(agent_app_add_deinit) struct agent_app_add m;
		struct err e = ERR_INIT;
		pod_make(&pod, 1, "x");
		pod.apps[0].streams = samples[i].m;
		assert_int_equal(strv_add(&pod.apps[0].pre_start, "before"), 0);
		assert_int_equal(strv_add(&pod.apps[0].post_stop, "after"), 0);
		assert_int_equal(pod_plan_app(&pod, &pod.apps[0], 7, &m, &e), 0);
		assert_int_equal(m.lun, 7);
		assert_string_equal(m.pre_start.v[0], "before");
		assert_string_equal(m.post_stop.v[0], "after");
		assert_int_equal(m.keep_streams, samples[i].keep);
		assert_int_equal(m.process.with_tty, samples[i].tty);
		assert_int_equal(m.process.with_stdin, samples[i].in);
		assert_int_equal(m.process.null_stdout, samples[i].no_out);
		assert_int_equal(m.process.null_stderr, samples[i].no_err);
		pod_manifest_deinit(&pod);
	}
}

static int make_once(void *ctx)
{
	struct pod_plan p = { 0 };
	int r = pod_plan_make(ctx, &p, NULL);

	pod_plan_deinit(&p);
	return r;
}

/* By its number among the pod's, which is where the host puts what is its own. */
static void test_slots(void **state)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest pod;
	CLEANUP(agent_app_add_deinit) struct agent_app_add m;
	CLEANUP(volume_deinit) struct volume v;
	struct err e = ERR_INIT;
	(void)state;
	pod_make(&pod, 1, "x");
	volume_init(&v);
	memcpy(v.name, "first", sizeof("first"));
	assert_int_equal(volumes_add(&pod.volumes, &v), 0);
	memcpy(v.name, "disk", sizeof("disk"));
	v.kind = VOLUME_BLOCK;
	assert_int_equal(volume_set_source(&v, "/x"), 0);
	assert_int_equal(volumes_add(&pod.volumes, &v), 0);
	assert_int_equal(volume_mounts_add(&pod.apps[0].mounts, "disk", "/d", false), 0);
	assert_int_equal(pod_plan_app(&pod, &pod.apps[0], 0, &m, &e), 0);
	assert_int_equal(m.mounts.v[0].kind, AGENT_VOLUME_BLOCK);
	assert_int_equal(m.mounts.v[0].slot, 1);
	agent_app_add_deinit(&m);
	/* One of the app's own has no place there; stage0 says so first. Directories have. */
	assert_int_equal(volumes_add(&pod.apps[0].volumes, &v), 0);
	assert_int_equal(pod_plan_app(&pod, &pod.apps[0], 0, &m, &e), -EOPNOTSUPP);
	agent_app_add_deinit(&m);
	memcpy(v.name, "own", sizeof("own"));
	v.kind = VOLUME_HOST;
	volume_mounts_deinit(&pod.apps[0].mounts);
	assert_int_equal(volumes_add(&pod.apps[0].volumes, &v), 0);
	assert_int_equal(volume_mounts_add(&pod.apps[0].mounts, "own", "/o", false), 0);
	assert_int_equal(pod_plan_app(&pod, &pod.apps[0], 0, &m, &e), 0);
	assert_true(m.mounts.v[0].kind == AGENT_VOLUME_HOST && m.mounts.v[0].is_own);
	assert_int_equal(m.mounts.v[0].slot, 1);
}

static void test_no_memory(void **state)
{
	struct pod_manifest pod;

	(void)state;
	pod_make(&pod, 2, "x");
	for_each_failing_alloc_lenient(make_once, &pod);
	pod_manifest_deinit(&pod);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_number_of_apps), fixture_test(test_messages),
		fixture_test(test_confinement),    fixture_test(test_weight),
		fixture_test(test_streams),        fixture_test(test_slots),
		fixture_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
