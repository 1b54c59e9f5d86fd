/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/stage1_choice.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/fixture.h"

struct opts {
	int other;
	struct stage1_choice stage1;
};

static const struct flag flags[] = {
	{ .name = "stage1-path",
	  .set = stage1_choice_set,
	  .offset = offsetof(struct opts, stage1) },
	{ .name = "stage1-url", .set = stage1_choice_set, .offset = offsetof(struct opts, stage1) },
};

static void test_set(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		struct opts o = { .other = 7 };
		struct err e = ERR_INIT;
		char want[128];
		assert_int_equal(flags[i].set(&o, &flags[i], "", &e), -EINVAL);
		assert_null(o.stage1.flag);
		assert_int_equal(flags[i].set(&o, &flags[i], "x", &e), 0);
		assert_string_equal(o.stage1.flag, flags[i].name);
		assert_string_equal(o.stage1.value, "x");
		assert_int_equal(flags[i].set(&o, &flags[i], "y", &e), -EINVAL);
		snprintf(want, sizeof(want), "--%s already used", flags[i].name);
		assert_string_equal(e.text, want);
		const struct flag *next = &flags[(i + 1) % ARRAY_SIZE(flags)];
		assert_int_equal(next->set(&o, next, "y", &e), -EINVAL);
		snprintf(want, sizeof(want), "flags --%s and --%s are mutually exclusive",
			 flags[i].name, next->name);
		assert_string_equal(e.text, want);
		assert_string_equal(o.stage1.value, "x");
		assert_int_equal(o.other, 7);
	}
}

/* What is wrong by itself is said before anything is opened. */
static void test_choose(void **state)
{
	static struct stage1 s;
	static const struct {
		const char *stage1, *flag, *value, *error;
	} cases[] = {
		{ "/s", "stage1-url", "x",
		  "flags --stage1 and --stage1-url are mutually exclusive" },
		{ NULL, "stage1-url", "/x",
		  "--stage1-url: \"/x\" is not a URL of scheme docker, file, http or https (use "
		  "--stage1-path)" },
		{ NULL, "stage1-url", "x",
		  "--stage1-url: location \"x\": default stage1 image location is either a "
		  "relative path or a URL without scheme (write it as /PATH or file:///PATH)" },
		{ NULL, "stage1-hash", "md5-00",
		  "--stage1-hash: \"md5-00\" is not an image ID (see husk image list)" },
		{ NULL, "stage1-from-dir", "a/b",
		  "--stage1-from-dir: \"a/b\" is not a name of a file (use --stage1-path)" },
		{ NULL, "stage1-from-dir", "..",
		  "--stage1-from-dir: \"..\" is not a name of a file (use --stage1-path)" },
		{ NULL, "stage1-path", "/nonexistent",
		  "--stage1-path: stage1 \"/nonexistent\": No such file or directory" },
		{ "/nonexistent", NULL, NULL,
		  "stage1 \"/nonexistent\": No such file or directory" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e = ERR_INIT;
		struct cli c = { .stage1 = cases[i].stage1, .stage1_lock = -EBADF };
		const struct stage1_choice choice = { cases[i].flag, cases[i].value };
		assert_true(stage1_choose(&c, &choice, PULL_NEVER, &s, &e) < 0);
		assert_string_equal(e.text, cases[i].error);
		assert_int_equal(c.stage1_lock, -EBADF);
	}
}

/* A directory on the way of a choice is used as it is, with a manifest beside its entrypoints. */
static void test_directory(void **state)
{
	static const char manifest[] =
		"{\"acKind\":\"ImageManifest\",\"annotations\":"
		"[{\"name\":\"husk/stage1/interface-version\",\"value\":\"2\"},"
		"{\"name\":\"husk/stage1/run\",\"value\":\"run\"}]}";
	static struct stage1 s;
	struct err e = ERR_INIT;
	char url[PATH_MAX + 16];
	struct cli c = { .stage1_lock = -EBADF };
	fixture_write(state, "manifest", manifest, strlen(manifest));
	fixture_write(state, "run", "", 0);
	assert_int_equal(fchmodat(fixture_dir(state), "run", 0755, 0), 0);
	snprintf(url, sizeof(url), "file://%s", fixture_path(state));
	const struct stage1_choice choices[] = { { "stage1-path", fixture_path(state) },
						 { "stage1-url", url } };
	for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
		assert_int_equal(stage1_choose(&c, &choices[i], PULL_NEVER, &s, &e), 0);
		assert_string_equal(s.dir, fixture_path(state));
		assert_string_equal(s.image, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_set),
		fixture_test(test_choose),
		fixture_test(test_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
