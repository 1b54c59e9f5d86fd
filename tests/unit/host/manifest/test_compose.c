/* SPDX-License-Identifier: Apache-2.0 */
#include "host/manifest/compose.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define ID      "sha256-0000000000000000000000000000000000000000000000000000000000000000"
#define APPC_ID "sha512-da67919892d22f02505cc759f0462eb08dac6b01f01f83f9a311da4ae6d41f33"

/* An image and the user's options, with their lists. */
struct subject {
	struct image_config config;
	struct app_options o;
	struct pod_env env;
	struct pod_app app;
	struct err e;
};

static void subject_init(struct subject *s)
{
	memset(s, 0, sizeof(*s));
	strv_init(&s->config.entrypoint, IMAGE_ARGS_MAX);
	strv_init(&s->config.cmd, IMAGE_ARGS_MAX);
	strv_init(&s->config.env, IMAGE_ARGS_MAX);
	strv_init(&s->config.ports, IMAGE_PORTS_MAX);
	s->config.working_dir = s->config.user = "";
	app_options_init(&s->o);
	s->o.image = "dir/img";
	pod_env_init(&s->env);
	pod_app_init(&s->app);
}

static void subject_deinit(struct subject *s)
{
	strv_deinit(&s->config.entrypoint);
	strv_deinit(&s->config.cmd);
	strv_deinit(&s->config.env);
	strv_deinit(&s->config.ports);
	app_options_deinit(&s->o);
	pod_env_deinit(&s->env);
	pod_app_deinit(&s->app);
}

static int compose(struct subject *s)
{
	return compose_app(&s->o, "img:1", ID, &s->config, &s->env, &s->app, &s->e);
}

/* Adds the words of @text, separated by blanks. */
static void add_words(struct strv *sv, const char *text)
{
	char copy[256];
	char *rest = copy;
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word; (word = strsep(&rest, " "));)
		if (*word)
			assert_int_equal(strv_add(sv, word), 0);
}

static void join_words(const struct strv *sv, char *out, size_t size)
{
	out[0] = '\0';
	for (size_t i = 0; i < sv->n; i++)
		snprintf(out + strlen(out), size - strlen(out), "%s%s", i ? " " : "", sv->v[i]);
}

static void test_exec(void **state)
{
	static const char no_command[] =
		"image \"dir/img\" has no command and none is given (use --exec=PROGRAM, or -- "
		"PROGRAM ARGS behind the image)";
	static const struct {
		const char *entrypoint, *cmd, *exec, *args, *want, *error;
		size_t n_entrypoint;
	} cases[] = {
		{ "", "sh", NULL, "", "sh", NULL, 0 },
		{ "ep", "cmd", NULL, "", "ep cmd", NULL, 1 },
		{ "ep x", "", NULL, "", "ep x", NULL, 2 },
		{ "ep", "cmd", NULL, "a b", "ep a b", NULL, 1 },
		{ "", "cmd c", NULL, "sh -c true", "sh -c true", NULL, 0 },
		{ "", "", NULL, "sh -c true", "sh -c true", NULL, 0 },
		{ "ep", "cmd", "/bin/x", "", "/bin/x", NULL, 1 },
		{ "ep", "cmd", "/bin/x", "a b", "/bin/x a b", NULL, 1 },
		{ "", "", "/bin/x", "", "/bin/x", NULL, 1 },
		{ "", "", NULL, "", "", no_command, 0 },
		{ "ep", "", "", "", "", "--exec: the program is empty or not UTF-8 text", 0 },
		{ "ep", "", "\xff", "", "", "--exec: the program is empty or not UTF-8 text", 0 },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(subject_deinit) struct subject s;
		char got[256];
		subject_init(&s);
		add_words(&s.config.entrypoint, cases[i].entrypoint);
		add_words(&s.config.cmd, cases[i].cmd);
		add_words(&s.o.args, cases[i].args);
		s.o.exec = cases[i].exec;
		int r = compose(&s);
		assert_int_equal(r < 0, cases[i].error != NULL);
		assert_string_equal(s.e.text, cases[i].error ? cases[i].error : "");
		join_words(&s.app.exec, got, sizeof(got));
		assert_string_equal(got, cases[i].want);
		assert_int_equal(s.app.n_entrypoint, cases[i].n_entrypoint);
	}
}

/* What appc has no word for is noted beside what it takes. */
static void test_image_id(void **state)
{
	static const char key[] = "sha512-ab";
	(void)state;
	CLEANUP(subject_deinit) struct subject s;
	char shown[POD_IMAGE_ID_MAX + 1];
	subject_init(&s);
	add_words(&s.config.cmd, "sh");
	assert_int_equal(compose(&s), 0);
	/* printf sha256:000... | sha512sum */
	assert_string_equal(s.app.image_id, APPC_ID);
	pod_app_image_id(&s.app, shown);
	assert_string_equal(shown, ID);
	pod_app_deinit(&s.app);
	pod_app_init(&s.app);
	assert_int_equal(compose_app(&s.o, "img:1", key, &s.config, &s.env, &s.app, &s.e), 0);
	assert_string_equal(s.app.image_id, key);
	pod_app_image_id(&s.app, shown);
	assert_string_equal(shown, key);
}

static void test_environment(void **state)
{
	(void)state;
	CLEANUP(subject_deinit) struct subject s;
	char got[256];
	subject_init(&s);
	add_words(&s.config.cmd, "sh");
	add_words(&s.config.env, "A=image B=image C=image A=again =bad bad EMPTY=");
	add_words(&s.env.set, "B=pod C=pod D=pod");
	add_words(&s.o.env, "C=app D=app E=a=b");
	assert_int_equal(compose(&s), 0);
	join_words(&s.app.env, got, sizeof(got));
	assert_string_equal(got, "A=again B=pod C=app EMPTY= D=app E=a=b");
}

static void test_environment_limits(void **state)
{
	(void)state;
	CLEANUP(subject_deinit) struct subject s;
	static char value[AGENT_STRING_MAX - 2 + 2];
	subject_init(&s);
	add_words(&s.config.cmd, "sh");
	memset(value, 'v', sizeof(value) - 2); /* just fits */
	assert_int_equal(strv_addf(&s.env.set, "A=%s", value), 0);
	for (size_t i = 1; i < AGENT_ENV_MAX; i++)
		assert_int_equal(strv_addf(&s.config.env, "V%zu=x", i), 0);
	assert_int_equal(compose(&s), 0);
	assert_int_equal(s.app.env.n, AGENT_ENV_MAX);

	pod_app_deinit(&s.app);
	pod_app_init(&s.app);
	add_words(&s.o.env, "ONE=more");
	assert_int_equal(compose(&s), -E2BIG);
	assert_non_null(strstr(s.e.text, "environment of at most 16384 variables"));

	strv_deinit(&s.o.env);
	strv_deinit(&s.env.set);
	value[sizeof(value) - 2] = 'v'; /* one byte more */
	assert_int_equal(strv_addf(&s.env.set, "A=%s", value), 0);
	pod_app_deinit(&s.app);
	pod_app_init(&s.app);
	assert_int_equal(compose(&s), -E2BIG);
	assert_non_null(strstr(s.e.text, "image \"dir/img\": variable \"A\" has 131072 bytes"));
}

static void test_args_limits(void **state)
{
	(void)state;
	CLEANUP(subject_deinit) struct subject s;
	subject_init(&s);
	for (size_t i = 0; i < AGENT_EXEC_MAX; i++)
		assert_int_equal(strv_add(&s.o.args, "x"), 0);
	assert_int_equal(compose(&s), 0);
	assert_int_equal(s.app.exec.n, AGENT_EXEC_MAX);
	pod_app_deinit(&s.app);
	pod_app_init(&s.app);
	add_words(&s.config.entrypoint, "ep");
	assert_int_equal(compose(&s), -E2BIG);
	assert_non_null(strstr(s.e.text, "command of at most 65536 arguments"));
}

static void test_long_argument(void **state)
{
	(void)state;
	CLEANUP(subject_deinit) struct subject s;
	static char arg[AGENT_STRING_MAX + 2];
	subject_init(&s);
	memset(arg, 'a', AGENT_STRING_MAX);
	assert_int_equal(strv_add(&s.o.args, arg), 0);
	assert_int_equal(compose(&s), 0);
	strv_deinit(&s.o.args);
	arg[AGENT_STRING_MAX] = 'a';
	assert_int_equal(strv_add(&s.o.args, arg), 0);
	pod_app_deinit(&s.app);
	pod_app_init(&s.app);
	assert_int_equal(compose(&s), -E2BIG);
	assert_non_null(
		strstr(s.e.text, "image \"dir/img\": argument 1 of the command has 131072"));
}

/* Each fits, and not all of them together: for the program, for a handler, for the message. */
static void test_all_together(void **state)
{
	(void)state;
	static char arg[100001], odd[100001];
	memset(arg, 'a', sizeof(arg) - 1);
	memset(odd, '\1', sizeof(odd) - 1);
	for (int i = 0; i < 4; i++) {
		CLEANUP(subject_deinit) struct subject s;
		subject_init(&s);
		add_words(&s.o.args, "sh");
		struct strv *list = i == 1 ? &s.o.pre_start : i == 2 ? &s.o.post_stop : &s.o.args;
		if (i < 3)
			assert_int_equal(strv_addf(&s.o.env, "A=%s", arg), 0);
		for (int k = 0; k < (i < 3 ? 19 : 6); k++)
			assert_int_equal(strv_add(list, i < 3 ? arg : odd), 0);
		assert_int_equal(compose(&s), 0);
		pod_app_deinit(&s.app);
		pod_app_init(&s.app);
		assert_int_equal(strv_add(list, i < 3 ? arg : odd), 0);
		assert_int_equal(compose(&s), -E2BIG);
		assert_non_null(strstr(s.e.text, i < 3 ? "bytes together, counting 9 more for each"
						       : "bytes together as JSON"));
	}
}

static void test_utf8(void **state)
{
	static const struct {
		const char *arg;
		bool ok;
	} cases[] = {
		{ "gr\xc3\xbc\xc3\x9f", true },
		{ "\xe2\x82\xac", true },
		{ "\xf0\x9f\x98\x80", true },
		{ "\xff", false },
		{ "\xc3", false },
		{ "\xe2\x82", false },
		{ "\xc0\xaf", false },
		{ "\xe0\x80\xaf", false },
		{ "\xed\xa0\x80", false },
		{ "\xf4\x90\x80\x80", false },
		{ "\xf0\x80\x80\x80", false },
		{ "\x80", false },
		{ "\xf4\x8f\xbf\xbf", true },
		{ "\xf5\x80\x80\x80", false },
		{ "\xe2\x28\xa1", false },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(subject_deinit) struct subject s;
		subject_init(&s);
		assert_int_equal(strv_add(&s.o.args, cases[i].arg), 0);
		assert_int_equal(compose(&s) == 0, cases[i].ok);
	}
}

static void test_user(void **state)
{
	static const struct {
		const char *image, *user, *group, *want_user, *want_group;
	} cases[] = {
		{ "", NULL, NULL, "", "" },
		{ "www", NULL, NULL, "www", "" },
		{ "1000:100", NULL, NULL, "1000", "100" },
		{ "a:b:c", NULL, NULL, "a", "b:c" },
		{ "1000:100", "www", NULL, "www", "100" },
		{ "400:500", "200", NULL, "200", "500" },
		{ "1000", "www", NULL, "www", "" },
		{ "1000:100", "www:wheel", NULL, "www:wheel", "" },
		{ "1000:100", "/a:b", NULL, "/a:b", "100" },
		{ "1000:100", NULL, "wheel", "1000", "wheel" },
		{ "1000:100", "www", "wheel", "www", "wheel" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(subject_deinit) struct subject s;
		subject_init(&s);
		add_words(&s.config.cmd, "sh");
		s.config.user = cases[i].image;
		s.o.user = cases[i].user;
		s.o.group = cases[i].group;
		assert_int_equal(compose(&s), 0);
		assert_string_equal(s.app.user, cases[i].want_user);
		assert_string_equal(s.app.group, cases[i].want_group);
	}
}

static void test_text_limits(void **state)
{
	(void)state;
	CLEANUP(subject_deinit) struct subject s;
	char user[AGENT_USER_MAX + 2];
	subject_init(&s);
	add_words(&s.config.cmd, "sh");
	memset(user, 'u', sizeof(user));
	user[AGENT_USER_MAX] = '\0';
	s.o.user = user;
	assert_int_equal(compose(&s), 0);
	user[AGENT_USER_MAX] = 'u';
	user[AGENT_USER_MAX + 1] = '\0';
	assert_true(compose(&s) < 0);
	assert_string_equal(s.e.text, "--user is longer than 255 bytes");
}

static void test_working_dir(void **state)
{
	static const struct {
		const char *image, *option, *want, *error;
		bool is_there; /* must be: an image's own is made */
	} cases[] = {
		{ "", NULL, "/", NULL, false },
		{ "/srv", NULL, "/srv", NULL, false },
		{ "srv/x", NULL, "/srv/x", NULL, false },
		{ "/srv", "/tmp", "/tmp", NULL, true },
		{ "/srv", "/srv", "/srv", NULL, false },
		{ "/srv", "tmp", "", "--working-dir: \"tmp\" is not an absolute path", false },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(subject_deinit) struct subject s;
		subject_init(&s);
		add_words(&s.config.cmd, "sh");
		s.config.working_dir = cases[i].image;
		s.o.working_dir = cases[i].option;
		assert_int_equal(compose(&s) < 0, cases[i].error != NULL);
		assert_string_equal(s.app.cwd, cases[i].want);
		assert_int_equal(s.app.cwd_is_there, cases[i].is_there);
		assert_string_equal(s.e.text, cases[i].error ? cases[i].error : "");
		s.o.makes_working_dir = true;
		if (compose(&s) == 0)
			assert_false(s.app.cwd_is_there);
	}
}

static void test_app_name(void **state)
{
	static const struct {
		const char *image, *want;
	} cases[] = {
		{ "debian", "debian" },
		{ "debian:12", "debian" },
		{ "registry.example.com:5000/lib/My_App:1.0", "my-app" },
		{ "x@sha256:00", "x" },
		{ "a..b__c", "a-b-c" },
		{ "-a-", "a" },
		{ "caf\xc3\xa9", "caf" },
		{ "lib/\xe6\x97\xa5:1", "app" },
		{ "lib/", NULL },
		{ "", NULL },
		{ "___", NULL },
		{ "0123456789012345678901234567890123456789012345678901234567890123456789",
		  "012345678901234567890123456789012345678901234567890123456789012" },
		{ "01234567890123456789012345678901234567890123456789012345678901-3",
		  "01234567890123456789012345678901234567890123456789012345678901" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char name[AGENT_NAME_MAX + 1];
		int r = compose_app_name(cases[i].image, name);
		assert_int_equal(r == 0, cases[i].want != NULL);
		assert_string_equal(name, cases[i].want ? cases[i].want : "");
		if (r == 0)
			assert_true(agent_name_is_valid(name));
	}
}

static void test_name(void **state)
{
	static const struct {
		const char *name, *error;
	} cases[] = {
		{ "web-1", NULL },
		{ "Web",
		  "--name: \"Web\" is not an app name (1 to 63 of a-z, 0-9 and dashes inside)" },
		{ "../x",
		  "--name: \"../x\" is not an app name (1 to 63 of a-z, 0-9 and dashes inside)" },
		{ "", "--name: \"\" is not an app name (1 to 63 of a-z, 0-9 and dashes inside)" },
		{ "a-created",
		  "app name \"a-created\": the ending -created is reserved (use --name=NAME)" },
		{ "a-started",
		  "app name \"a-started\": the ending -started is reserved (use --name=NAME)" },
		{ "a-stopping",
		  "app name \"a-stopping\": the ending -stopping is reserved (use --name=NAME)" },
		{ "a-deleting",
		  "app name \"a-deleting\": the ending -deleting is reserved (use --name=NAME)" },
		{ "a-oom", "app name \"a-oom\": the ending -oom is reserved (use --name=NAME)" },
		{ "created", NULL },
		{ "oom", NULL },
		{ "a-stopping-b", NULL },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(subject_deinit) struct subject s;
		subject_init(&s);
		add_words(&s.config.cmd, "sh");
		s.o.name = cases[i].name;
		assert_int_equal(compose(&s) < 0, cases[i].error != NULL);
		assert_string_equal(s.e.text, cases[i].error ? cases[i].error : "");
	}
}

/* What is said of confinement reaches the app; names that the kernel does not know do not. */
static void test_confinement(void **state)
{
	static const struct {
		enum isolator which;
		const char *text, *error;
	} cases[] = {
		{ ISOLATOR_CAPS_RETAIN, "kill,net_admin", NULL },
		{ ISOLATOR_CAPS_RETAIN, "kill,fly",
		  "app \"img\": there is no capability \"CAP_FLY\"" },
		{ ISOLATOR_SECCOMP_REMOVE, "chown32,@systemd/clock,fchmodat2", NULL },
		{ ISOLATOR_SECCOMP_RETAIN, "read,raed",
		  "app \"img\": there is no system call \"raed\"" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(subject_deinit) struct subject s;
		subject_init(&s);
		add_words(&s.config.cmd, "sh");
		add_words(&s.o.groups, "7 8");
		s.o.read_only_root = true;
		assert_int_equal(isolators_set(&s.o.isolators, cases[i].which, cases[i].text, NULL),
				 0);
		assert_int_equal(compose(&s) < 0, cases[i].error != NULL);
		assert_string_equal(s.e.text, cases[i].error ? cases[i].error : "");
		if (cases[i].error)
			continue;
		assert_true(s.app.read_only_root);
		assert_int_equal(s.app.groups.n, 2);
		assert_int_equal(s.app.isolators.given, s.o.isolators.given);
	}
}

/* The image's is a wish; whoever runs the app has the last word. */
static void test_stop_signal(void **state)
{
	static const struct {
		int image;
		const char *option;
		int want;
		bool is_wish;
	} cases[] = { { 0, NULL, 0, false },
		      { 3, NULL, 3, true },
		      { 0, "SIGINT", 2, false },
		      { 3, "SIGINT", 2, false } };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(subject_deinit) struct subject s;
		subject_init(&s);
		add_words(&s.config.cmd, "sh");
		s.config.stop_signal = cases[i].image;
		if (cases[i].option)
			assert_int_equal(isolators_set(&s.o.isolators, ISOLATOR_STOP_SIGNAL,
						       cases[i].option, NULL),
					 0);
		assert_int_equal(compose(&s), 0);
		const struct isolators *got = &s.app.isolators;
		assert_int_equal(got->stop_signal, cases[i].want);
		assert_int_equal(isolators_has(got, ISOLATOR_STOP_SIGNAL), cases[i].want != 0);
		assert_int_equal(isolators_is_wish(got, ISOLATOR_STOP_SIGNAL), cases[i].is_wish);
	}
}

/* Those of an OCI image are called as docker2aci calls them. */
static void test_ports(void **state)
{
	CLEANUP(subject_deinit) struct subject s;
	struct pod_port mine = { .name = "mine", .protocol = PORT_UDP, .port = 7, .count = 1 };
	(void)state;
	subject_init(&s);
	add_words(&s.config.cmd, "x");
	add_words(&s.config.ports, "80/tcp 53/udp");
	assert_int_equal(compose(&s), 0);
	assert_int_equal(s.app.ports.n, 2);
	assert_string_equal(s.app.ports.v[1].name, "53-udp");
	pod_app_deinit(&s.app);
	pod_app_init(&s.app);
	s.o.instead_of_image = true;
	s.o.exec = "y";
	assert_int_equal(pod_ports_add(&s.o.ports, &mine), 0);
	assert_int_equal(compose(&s), 0);
	assert_int_equal(s.app.ports.n, 1);
	assert_string_equal(s.app.ports.v[0].name, "mine");
}

static int compose_something(void *ctx)
{
	(void)ctx;
	CLEANUP(subject_deinit) struct subject s;
	subject_init(&s);
	int r = strv_add(&s.config.entrypoint, "sh");
	if (r == 0)
		r = strv_add(&s.config.env, "A=b");
	if (r == 0)
		r = strv_add(&s.o.args, "x");
	return r < 0 ? r : compose(&s);
}

static void test_memory_failure(void **state)
{
	(void)state;
	for_each_failing_alloc_lenient(compose_something, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_exec),           fixture_test(test_image_id),
		fixture_test(test_environment),    fixture_test(test_environment_limits),
		fixture_test(test_args_limits),    fixture_test(test_long_argument),
		fixture_test(test_all_together),   fixture_test(test_utf8),
		fixture_test(test_user),           fixture_test(test_text_limits),
		fixture_test(test_stop_signal),    fixture_test(test_working_dir),
		fixture_test(test_app_name),       fixture_test(test_name),
		fixture_test(test_confinement),    fixture_test(test_ports),
		fixture_test(test_memory_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
