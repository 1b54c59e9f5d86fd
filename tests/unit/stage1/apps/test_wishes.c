/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/wishes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fixture.h"

/* What one isolator says; @seccomp: with its mode. */
struct wish {
	enum isolator which;
	const char *text;
	bool seccomp;
};

static void set(struct isolators *i, const struct wish *w)
{
	struct err e = ERR_INIT;
	int r = w->seccomp ? isolators_set_seccomp(i, w->text, &e)
			   : isolators_set(i, w->which, w->text, &e);
	if (r < 0)
		fail_msg("%s: %s", w->text, e.text);
}

/* The app of an image with the wish @w, for which somebody said @word before, or nobody (NULL). */
static int check(const struct wish *w, const struct wish *word, struct err *e)
{
	CLEANUP(isolators_deinit) struct isolators image;
	CLEANUP(pod_app_deinit) struct pod_app app;
	isolators_init(&image);
	pod_app_init(&app);
	*e = ERR_INIT;
	assert_int_equal(str_copy(app.name, sizeof(app.name), "web"), 0);
	if (word)
		set(&app.isolators, word);
	set(&image, w);
	assert_int_equal(isolators_merge(&app.isolators, &image), 0);
	return wishes_check(&app, e);
}

static const struct {
	struct wish wish;
	const char *what, *option; /* of the refusal; NULL: there is none */
} cases[] = {
	{ { ISOLATOR_CAPS_RETAIN, "CHOWN,SYS_ADMIN", false }, "CAP_SYS_ADMIN", "--caps-retain" },
	{ { ISOLATOR_CAPS_RETAIN, "SYS_PTRACE", false }, "CAP_SYS_PTRACE", "--caps-retain" },
	{ { ISOLATOR_CAPS_RETAIN, "CHOWN,MKNOD", false }, NULL, NULL },
	{ { ISOLATOR_CAPS_RETAIN, "", false }, NULL, NULL },
	{ { ISOLATOR_CAPS_REMOVE, "CHOWN,SYS_ADMIN", false }, NULL, NULL },
	{ { 0, "@appc.io/all", true }, "@appc.io/all", "--seccomp" },
	{ { 0, "read,mount", true }, "mount", "--seccomp" },
	{ { 0, "read,clone", true }, "clone", "--seccomp" },
	{ { 0, "read,@systemd/mount", true }, "@systemd/mount", "--seccomp" },
	{ { 0, "read,write,socket", true }, NULL, NULL },
	{ { 0, "@rkt/default-whitelist", true }, NULL, NULL },
	{ { 0, "mode=remove,chmod", true }, "os/linux/seccomp-remove-set", "--seccomp" },
	{ { 0, "mode=remove,@rkt/default-blacklist", true },
	  "os/linux/seccomp-remove-set",
	  "--seccomp" },
	{ { 0, "mode=remove,@appc.io/empty", true }, NULL, NULL },
	{ { ISOLATOR_OOM_SCORE_ADJ, "-1", false }, "os/linux/oom-score-adj", "--oom-score-adj" },
	{ { ISOLATOR_OOM_SCORE_ADJ, "1", false }, NULL, NULL },
	{ { ISOLATOR_RLIMITS, "nofile=100", false }, "husk/rlimits", "--rlimit" },
	{ { ISOLATOR_MEMORY, "64Mi", false }, NULL, NULL },
	{ { ISOLATOR_CPU, "1", false }, NULL, NULL },
	{ { ISOLATOR_CPU_SHARES, "262144", false }, NULL, NULL },
	{ { ISOLATOR_PIDS, "1000", false }, NULL, NULL },
	{ { ISOLATOR_NO_NEW_PRIVS, "true", false }, NULL, NULL },
};

static void test_images(void **state)
{
	char want[512];
	struct err e;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = check(&cases[i].wish, NULL, &e);
		if (!cases[i].what && r < 0)
			fail_msg("%s: %s", cases[i].wish.text, e.text);
		if (!cases[i].what)
			continue;
		assert_int_equal(r, -EPERM);
		snprintf(want, sizeof(want),
			 "app \"web\": its image asks for %s, and root of the pod is root of the "
			 "host (leave --userns=host away, or say %s for the app)",
			 cases[i].what, cases[i].option);
		assert_string_equal(e.text, want);
	}
}

/* Whoever runs the app may say all of that, and the image has no say then. */
static void test_people(void **state)
{
	static const struct wish harmless[] = {
		{ ISOLATOR_CAPS_RETAIN, "CHOWN", false },
		{ 0, "read", true },
		{ ISOLATOR_OOM_SCORE_ADJ, "0", false },
		{ ISOLATOR_RLIMITS, "nofile=10", false },
	};
	struct err e;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (check(&cases[i].wish, &cases[i].wish, &e) < 0)
			fail_msg("%s: %s", cases[i].wish.text, e.text);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t k = 0; k < ARRAY_SIZE(harmless); k++)
			if (cases[i].wish.seccomp == harmless[k].seccomp &&
			    cases[i].wish.which == harmless[k].which &&
			    check(&cases[i].wish, &harmless[k], &e) < 0)
				fail_msg("%s: %s", cases[i].wish.text, e.text);
}

/* A name that came in a manifest of another version. */
static void test_unknown_names(void **state)
{
	struct err e;
	(void)state;
	const struct wish capability = { ISOLATOR_CAPS_RETAIN, "NONE_SUCH", false };
	const struct wish call = { 0, "nonesuch", true };
	assert_int_equal(check(&capability, NULL, &e), -EINVAL);
	assert_string_equal(e.text, "app \"web\": there is no capability \"CAP_NONE_SUCH\"");
	assert_int_equal(check(&call, NULL, &e), -EINVAL);
	assert_string_equal(e.text, "app \"web\": there is no system call \"nonesuch\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_images),
		fixture_test(test_people),
		fixture_test(test_unknown_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
