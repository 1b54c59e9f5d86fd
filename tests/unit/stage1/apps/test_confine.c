/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "lib/base/hex.h"
#include "stage1/apps/appfilter.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define BIT(n) (INT64_C(1) << (n))

static const struct confine_options nothing;

/* Confines an app; @texts set isolators, NULL: that one is not given. */
static int confine(const char *retain, const char *remove, const char *seccomp,
		   const struct confine_options *o, struct agent_confinement *c, struct err *e)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	pod_app_init(&app);
	agent_confinement_init(c);
	int r = str_copy(app.name, sizeof(app.name), "web");
	if (r == 0 && retain)
		r = isolators_set(&app.isolators, ISOLATOR_CAPS_RETAIN, retain, e);
	if (r == 0 && remove)
		r = isolators_set(&app.isolators, ISOLATOR_CAPS_REMOVE, remove, e);
	if (r == 0 && seccomp)
		r = isolators_set_seccomp(&app.isolators, seccomp, e);
	return r < 0 ? r : confine_app(&app, o, c, e);
}

static int64_t capabilities(const char *retain, const char *remove, const struct confine_options *o)
{
	CLEANUP(agent_confinement_deinit) struct agent_confinement c;
	struct err e = ERR_INIT;
	assert_int_equal(confine(retain, remove, NULL, o, &c, &e), 0);
	return c.capabilities;
}

static void test_capabilities(void **state)
{
	(void)state;
	const struct confine_options all = { .all_capabilities = true };
	assert_int_equal(capabilities(NULL, NULL, &nothing), AGENT_CAPABILITIES_DEFAULT);
	assert_int_equal(capabilities("sys_admin,CAP_KILL", NULL, &nothing),
			 BIT(CAP_SYS_ADMIN) | BIT(CAP_KILL));
	assert_int_equal(capabilities("", NULL, &nothing), 0);
	assert_int_equal(capabilities(NULL, "net_raw,sys_admin", &nothing),
			 AGENT_CAPABILITIES_DEFAULT & ~BIT(CAP_NET_RAW));
	assert_int_equal(capabilities(NULL, NULL, &all), BIT(CAP_LAST_CAP + 1) - 1);
	assert_int_equal(capabilities("kill", NULL, &all), BIT(CAP_LAST_CAP + 1) - 1);
}

/* The default is what the header says it is. */
static void test_default_capabilities(void **state)
{
	(void)state;
	assert_int_equal(capabilities("AUDIT_WRITE,CHOWN,DAC_OVERRIDE,FOWNER,FSETID,KILL,MKNOD,"
				      "NET_BIND_SERVICE,NET_RAW,SETFCAP,SETGID,SETPCAP,SETUID,"
				      "SYS_CHROOT",
				      NULL, &nothing),
			 AGENT_CAPABILITIES_DEFAULT);
}

static void test_filter(void **state)
{
	(void)state;
	CLEANUP(agent_confinement_deinit) struct agent_confinement usual, off, own;
	const struct confine_options no_seccomp = { .no_seccomp = true };
	struct err e = ERR_INIT;
	cleanup_free char *want = NULL;
	assert_int_equal(confine(NULL, NULL, NULL, &nothing, &usual, &e), 0);
	assert_int_equal(confine(NULL, NULL, "read", &nothing, &own, &e), 0);
	assert_int_equal(confine(NULL, NULL, "read", &no_seccomp, &off, &e), 0);
	assert_true(strcmp(usual.seccomp, own.seccomp) != 0);
	assert_int_equal(appfilter_compile_off(&want, &e), 0);
	assert_string_equal(off.seccomp, want);
	assert_true(hex_is_valid(usual.seccomp, strlen(usual.seccomp)));
}

static void test_unknown_names(void **state)
{
	(void)state;
	CLEANUP(agent_confinement_deinit) struct agent_confinement caps, call;
	struct err e = ERR_INIT;
	assert_int_equal(confine("kill,fly", NULL, NULL, &nothing, &caps, &e), -EINVAL);
	assert_string_equal(e.text, "app \"web\": there is no capability \"CAP_FLY\"");
	assert_int_equal(confine(NULL, NULL, "raed", &nothing, &call, &e), -EINVAL);
	assert_string_equal(e.text,
			    "app \"web\": system call filter: there is no system call \"raed\"");
	assert_null(call.seccomp);
}

/* Apps of each kind, twice: those of a kind get the same, and each a copy of its own. */
static int confine_pod(void *ctx)
{
	static const char *const policies[] = { NULL, "read", NULL, "read" };
	CLEANUP(pod_manifest_deinit) struct pod_manifest pod;
	struct agent_app_add apps[ARRAY_SIZE(policies)];
	const struct confine_options *o = ctx;
	int r = 0;
	pod_manifest_init(&pod);
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		CLEANUP(pod_app_deinit) struct pod_app app;
		pod_app_init(&app);
		app.name[0] = (char)('a' + i);
		agent_app_add_init(&apps[i]);
		if (r == 0 && policies[i])
			r = isolators_set_seccomp(&app.isolators, policies[i], NULL);
		if (r == 0)
			r = pod_manifest_add(&pod, &app);
	}
	if (r == 0)
		r = confine_apps(&pod, o, apps, NULL);
	if (r == 0 && (strcmp(apps[0].confinement.seccomp, apps[2].confinement.seccomp) != 0 ||
		       strcmp(apps[1].confinement.seccomp, apps[3].confinement.seccomp) != 0 ||
		       strcmp(apps[0].confinement.seccomp, apps[1].confinement.seccomp) == 0 ||
		       apps[3].confinement.capabilities != AGENT_CAPABILITIES_DEFAULT))
		r = 1;
	for (size_t i = 0; i < ARRAY_SIZE(apps); i++)
		if (apps[i].confinement.open_paths != o->open_paths)
			r = 2;
	for (size_t i = 0; i < ARRAY_SIZE(apps); i++)
		agent_app_add_deinit(&apps[i]);
	return r;
}

static void test_pod(void **state)
{
	(void)state;
	struct confine_options open_paths = { .open_paths = true }, usual = nothing;
	assert_int_equal(confine_pod(&usual), 0);
	assert_int_equal(confine_pod(&open_paths), 0);
}

/* An app that was told @said, or whose image wishes for @wish, each with @which; NULL: not. */
static void add_app(struct pod_manifest *pod, const char *name, enum isolator which,
		    const char *said, const char *wish)
{
	CLEANUP(isolators_deinit) struct isolators image;
	CLEANUP(pod_app_deinit) struct pod_app app;
	struct err e = ERR_INIT;
	isolators_init(&image);
	pod_app_init(&app);
	assert_int_equal(str_copy(app.name, sizeof(app.name), name), 0);
	if (said)
		assert_int_equal(isolators_set(&app.isolators, which, said, &e), 0);
	if (wish)
		assert_int_equal(isolators_set(&image, which, wish, &e), 0);
	assert_int_equal(isolators_merge(&app.isolators, &image), 0);
	assert_int_equal(pod_manifest_add(pod, &app), 0);
}

/* What one app may have says nothing of another, whose policy is compiled to the same. */
static void test_wishes_of_each(void **state)
{
	(void)state;
	static const struct {
		enum isolator which;
		const char *said, *wish, *other; /* of the first app, and the wish of the second */
	} cases[] = {
		{ ISOLATOR_CAPS_RETAIN, "SYS_ADMIN", NULL, "SYS_ADMIN" },
		{ ISOLATOR_OOM_SCORE_ADJ, NULL, "100", "-100" },
		{ ISOLATOR_RLIMITS, "nofile=100", NULL, "nofile=100" },
	};
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		CLEANUP(pod_manifest_deinit) struct pod_manifest pod;
		const struct confine_options o = { .shares_users = i % 2 };
		struct agent_app_add apps[2];
		struct err e = ERR_INIT;
		pod_manifest_init(&pod);
		agent_app_add_init(&apps[0]);
		agent_app_add_init(&apps[1]);
		add_app(&pod, "a", cases[i / 2].which, cases[i / 2].said, cases[i / 2].wish);
		add_app(&pod, "b", cases[i / 2].which, NULL, cases[i / 2].other);
		assert_int_equal(confine_apps(&pod, &o, apps, &e), i % 2 ? -EPERM : 0);
		if (i % 2)
			assert_non_null(strstr(e.text, "app \"b\": its image asks for"));
		agent_app_add_deinit(&apps[0]);
		agent_app_add_deinit(&apps[1]);
	}
}

/* Of one app nothing is protected, where root of the pod is not root of the host. */
static void test_paths_of_each(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		CLEANUP(pod_manifest_deinit) struct pod_manifest pod;
		const struct confine_options o = { .shares_users = i };
		struct agent_app_add apps[2];
		struct err e = ERR_INIT;
		pod_manifest_init(&pod);
		agent_app_add_init(&apps[0]);
		agent_app_add_init(&apps[1]);
		add_app(&pod, "a", ISOLATOR_MASKED_PATHS, "", NULL);
		add_app(&pod, "b", ISOLATOR_MASKED_PATHS, "", NULL);
		assert_int_equal(
			isolators_set(&pod.apps[1].isolators, ISOLATOR_READ_ONLY_PATHS, "", &e), 0);
		assert_int_equal(confine_apps(&pod, &o, apps, &e), i ? -EPERM : 0);
		assert_false(apps[0].confinement.open_paths);
		assert_int_equal(apps[1].confinement.open_paths, !i);
		if (i)
			assert_non_null(strstr(e.text, "app \"b\": without protected paths"));
		agent_app_add_deinit(&apps[0]);
		agent_app_add_deinit(&apps[1]);
	}
}

/* No filter at all is what was asked for, where it leads to nobody else. */
static void test_unconfined(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		CLEANUP(agent_confinement_deinit) struct agent_confinement c;
		CLEANUP(pod_app_deinit) struct pod_app app;
		const struct confine_options o = { .own_vsock = i % 2 };
		struct err e = ERR_INIT;
		pod_app_init(&app);
		agent_confinement_init(&c);
		assert_int_equal(
			isolators_set(&app.isolators, ISOLATOR_SECCOMP_PROFILE,
				      i < 2 ? "{}" : "{\"defaultAction\":\"SCMP_ACT_ALLOW\"}", &e),
			0);
		assert_int_equal(confine_app(&app, &o, &c, &e), 0);
		assert_int_equal(c.seccomp == NULL, i == 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_capabilities),  fixture_test(test_default_capabilities),
		fixture_test(test_filter),        fixture_test(test_unknown_names),
		fixture_test(test_pod),           fixture_test(test_wishes_of_each),
		fixture_test(test_paths_of_each), fixture_test(test_unconfined),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
