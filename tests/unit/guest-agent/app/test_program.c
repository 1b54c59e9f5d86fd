/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/program.h"

#include <errno.h>
#include <string.h>

#include "lib/base/buf.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static const struct ids root;

static int build(struct strv *given, bool tty, struct strv *out)
{
	strv_init(out, PROGRAM_ENV_MAX);
	return program_environment(given, "web", &root, tty, out);
}

static void test_defaults(void **state)
{
	(void)state;
	cleanup_strv struct strv given, env;
	strv_init(&given, AGENT_ENV_MAX);
	assert_int_equal(build(&given, false, &env), 0);
	assert_string_equal(strv_env_get(&env, "PATH"),
			    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	assert_string_equal(strv_env_get(&env, "HOME"), "/root");
	assert_string_equal(strv_env_get(&env, "USER"), "root");
	assert_string_equal(strv_env_get(&env, "LOGNAME"), "root");
	assert_string_equal(strv_env_get(&env, "SHELL"), "/bin/sh");
	assert_string_equal(strv_env_get(&env, "AC_APP_NAME"), "web");
	assert_null(strv_env_get(&env, "TERM"));
	assert_int_equal(env.n, 6);
}

static void expect_user(const struct ids *ids, const char *given, const char *home,
			const char *user)
{
	cleanup_strv struct strv list, env;
	strv_init(&list, AGENT_ENV_MAX);
	strv_init(&env, PROGRAM_ENV_MAX);
	if (given)
		assert_int_equal(strv_add(&list, given), 0);
	assert_int_equal(program_environment(&list, "web", ids, false, &env), 0);
	assert_string_equal(strv_env_get(&env, "HOME"), home);
	const char *const names[] = { strv_env_get(&env, "USER"), strv_env_get(&env, "LOGNAME") };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (user)
			assert_string_equal(names[i], user);
		else
			assert_null(names[i]);
}

/* The user's, not root's; a home that is given counts, one that is given as nothing does not. */
static void test_user(void **state)
{
	(void)state;
	const struct ids joe = { .uid = 1000, .name = "joe", .home = "/home/joe" };
	const struct ids homeless = { .uid = 1001, .name = "ann" };
	const struct ids unknown = { .uid = 4711 };
	const struct ids admin = { .uid = 0, .name = "admin", .home = "/var/root" };
	expect_user(&joe, NULL, "/home/joe", "joe");
	expect_user(&joe, "HOME=/h", "/h", "joe");
	expect_user(&joe, "HOME=", "/home/joe", "joe");
	expect_user(&homeless, NULL, "/", "ann");
	expect_user(&unknown, NULL, "/", NULL);
	expect_user(&unknown, "HOME=", "/", NULL);
	expect_user(&root, NULL, "/root", "root");
	expect_user(&admin, NULL, "/var/root", "admin");
}

static void test_given(void **state)
{
	(void)state;
	cleanup_strv struct strv given, env;
	strv_init(&given, AGENT_ENV_MAX);
	strv_add(&given, "PATH=");
	strv_add(&given, "HOME=/h");
	strv_add(&given, "AC_APP_NAME=liar");
	strv_add(&given, "X=1");
	strv_add(&given, "X=2");
	assert_int_equal(build(&given, true, &env), 0);
	assert_string_equal(env.v[0], "PATH=");
	assert_string_equal(env.v[1], "HOME=/h");
	assert_string_equal(env.v[2], "AC_APP_NAME=web");
	assert_string_equal(env.v[3], "X=1");
	assert_string_equal(env.v[4], "X=2");
	assert_string_equal(strv_env_get(&env, "TERM"), "xterm");
	assert_int_equal(env.n, 9);
}

static void test_env_limit(void **state)
{
	(void)state;
	cleanup_strv struct strv given, env;
	strv_init(&given, AGENT_ENV_MAX);
	while (strv_addf(&given, "V%zu=", given.n) == 0)
		;
	assert_int_equal(given.n, AGENT_ENV_MAX);
	assert_int_equal(build(&given, true, &env), 0);
	assert_int_equal(env.n, AGENT_ENV_MAX + 7);
}

static int candidates(const char *name, const char *path, const char *cwd, struct strv *out)
{
	cleanup_strv struct strv env;
	strv_init(&env, AGENT_ENV_MAX);
	if (path)
		strv_addf(&env, "PATH=%s", path);
	strv_init(out, PROGRAM_DIRS_MAX);
	return program_candidates(name, &env, cwd, out);
}

static void expect(const char *name, const char *path, const char *cwd, const char *joined)
{
	cleanup_strv struct strv out;
	cleanup_buf struct buf text;
	buf_init(&text, 256);
	assert_int_equal(candidates(name, path, cwd, &out), 0);
	for (size_t i = 0; i < out.n; i++)
		assert_int_equal(buf_printf(&text, "%s ", out.v[i]), 0);
	assert_int_equal(buf_len(&text), strlen(joined));
	assert_memory_equal(buf_data(&text), joined, strlen(joined));
}

static void test_candidates(void **state)
{
	(void)state;
	expect("/bin/sh", "/x", "/w", "/bin/sh ");
	expect("bin/sh", "/x", "/w", "bin/sh ");
	expect("./sh", NULL, "/w", "./sh ");
	expect("sh", "/a:/b", "/w", "/a/sh /b/sh ");
	expect("sh", "/a::/b:", "/w", "/a/sh ./sh /b/sh ./sh ");
	expect("sh", "", "/w", "./sh ");
	expect("sh", NULL, "/w",
	       "/usr/local/sbin/sh /usr/local/bin/sh /usr/sbin/sh /usr/bin/sh /sbin/sh /bin/sh "
	       "/w/sh ");
}

static void test_dirs_limit(void **state)
{
	(void)state;
	char path[3 * (PROGRAM_DIRS_MAX + 1)] = "";
	for (size_t i = 0; i < PROGRAM_DIRS_MAX; i++)
		memcpy(path + 3 * i, "/d:", 3);
	path[(size_t)3 * PROGRAM_DIRS_MAX - 1] = '\0';
	cleanup_strv struct strv at, beyond;
	assert_int_equal(candidates("sh", path, "/", &at), 0);
	assert_int_equal(at.n, PROGRAM_DIRS_MAX);
	memcpy(path + (size_t)3 * PROGRAM_DIRS_MAX - 1, ":/e", 4);
	assert_int_equal(candidates("sh", path, "/", &beyond), 0);
	assert_int_equal(beyond.n, PROGRAM_DIRS_MAX);
	assert_string_equal(beyond.v[PROGRAM_DIRS_MAX - 1], "/d/sh");
}

/* A directory that makes the path too long is passed over; if all do, that is an error. */
static void test_length_limit(void **state)
{
	(void)state;
	static char name[AGENT_PATH_MAX + 2];
	memset(name, 'n', sizeof(name) - 1);
	cleanup_strv struct strv a, b, c, d;
	assert_int_equal(candidates(name, "/bin", "/", &a), -ENAMETOOLONG);
	name[AGENT_PATH_MAX] = '\0';
	assert_int_equal(candidates(name, "/bin", "/", &b), -ENAMETOOLONG);
	name[AGENT_PATH_MAX - 5] = '\0';
	assert_int_equal(candidates(name, "/usr/bin:/bin", "/", &c), 0);
	assert_int_equal(c.n, 1);
	assert_int_equal(strlen(c.v[0]), AGENT_PATH_MAX);
	assert_int_equal(candidates(name, NULL, "/working", &d), 0);
	assert_int_equal(d.n, 1);
}

static int with_failing_alloc(void *ctx)
{
	(void)ctx;
	cleanup_strv struct strv given, env;
	strv_init(&given, AGENT_ENV_MAX);
	return build(&given, true, &env);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	for_each_failing_alloc_lenient(with_failing_alloc, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_defaults),     fixture_test(test_given),
		fixture_test(test_user),         fixture_test(test_env_limit),
		fixture_test(test_candidates),   fixture_test(test_dirs_limit),
		fixture_test(test_length_limit), fixture_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
