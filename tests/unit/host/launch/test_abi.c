/* SPDX-License-Identifier: Apache-2.0 */
#include "host/launch/abi.h"

#include <errno.h>
#include <string.h>

#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

#define UUID "76a1c7e0-3c2f-4f5e-9d0c-2f7a1b9c3d4e"

static struct stage1 make_stage1(enum stage1_abi abi, int64_t version)
{
	return (struct stage1){ .dir = "/s",
				.abi = abi,
				.version = version,
				.has_network = true,
				.app_add = "/a",
				.app_start = "/b",
				.app_stop = "/c",
				.app_rm = "/d" };
}

/* The members, each with a blank behind it. */
static void check(const struct strv *got, const char *want)
{
	char text[1024] = "";
	for (size_t i = 0; i < got->n; i++) {
		strncat(text, got->v[i], sizeof(text) - strlen(text) - 1);
		strncat(text, " ", sizeof(text) - strlen(text) - 1);
	}
	assert_string_equal(text, want);
}

/* All that can be asked for, of an interface. */
static void test_run(void **state)
{
	static const struct {
		enum stage1_abi abi;
		int64_t version;
		const char *args, *lacking;
	} cases[] = {
		{ STAGE1_ABI_HUSK, 1,
		  "--debug --interactive --detach --disable-capabilities-restriction --disable-paths "
		  "--disable-seccomp --hostname=h --cache-dir=/c --memory=1Gi --cpus=1 "
		  "--memory=2Gi --start-ns=5 " UUID " ",
		  "" },
		{ STAGE1_ABI_RKT, 1, "--debug --net=default --interactive --mutable " UUID " ",
		  "--hostname --insecure-options " },
		{ STAGE1_ABI_RKT, 2,
		  "--debug --net=default --interactive --hostname=h --mutable " UUID " ",
		  "--insecure-options " },
		{ STAGE1_ABI_RKT, 6,
		  "--debug --net=default --interactive --hostname=h "
		  "--disable-capabilities-restriction --disable-paths --disable-seccomp --mutable " UUID
		  " ",
		  "" },
	};
	cleanup_strv struct strv options;
	(void)state;
	strv_init(&options, 3);
	assert_int_equal(strv_add(&options, "--memory=1Gi"), 0);
	assert_int_equal(strv_add(&options, "--cpus=1"), 0);
	assert_int_equal(strv_add(&options, "--memory=2Gi"), 0);
	const struct abi_run run = { .uuid = UUID,
				     .hostname = "h",
				     .cache_dir = "/c",
				     .options = &options,
				     .debug = true,
				     .interactive = true,
				     .detach = true,
				     .is_mutable = true,
				     .all_capabilities = true,
				     .open_paths = true,
				     .no_seccomp = true,
				     .start_ns = 5 };
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_strv struct strv args, lacking;
		struct stage1 s = make_stage1(cases[i].abi, cases[i].version);
		strv_init(&args, ABI_RUN_ARGS_MAX + options.max);
		strv_init(&lacking, ABI_LACKING_MAX);
		assert_int_equal(abi_run_args(&s, &run, &args), 0);
		check(&args, cases[i].args);
		assert_int_equal(abi_lacking(&s, &run, &lacking), 0);
		check(&lacking, cases[i].lacking);
	}
}

static void test_run_nothing(void **state)
{
	static const char *const wants[] = { "--cache-dir=/c --start-ns=0 " UUID " ",
					     "--net=default " UUID " " };
	cleanup_strv struct strv options;
	(void)state;
	strv_init(&options, 1);
	const struct abi_run run = { .uuid = UUID, .cache_dir = "/c", .options = &options };
	for (enum stage1_abi abi = 0; abi < STAGE1_ABI_COUNT_; abi++) {
		cleanup_strv struct strv args, lacking;
		struct stage1 s = make_stage1(abi, 1);
		strv_init(&args, ABI_RUN_ARGS_MAX);
		strv_init(&lacking, 0);
		assert_int_equal(abi_check_run(&s, &run, NULL), 0);
		assert_int_equal(abi_run_args(&s, &run, &args), 0);
		check(&args, wants[abi]);
		assert_int_equal(abi_lacking(&s, &run, &lacking), 0);
	}
}

/* Last, so that it counts whatever else is said; a VM has no such option, and needs none. */
static void test_private_users(void **state)
{
	cleanup_strv struct strv options;
	(void)state;
	strv_init(&options, 1);
	assert_int_equal(strv_add(&options, "--userns=host"), 0);
	const struct abi_run run = {
		.uuid = UUID, .cache_dir = "/c", .options = &options, .private_users = true
	};
	struct stage1 s = make_stage1(STAGE1_ABI_HUSK, 2);
	for (int with_option = 0; with_option < 2; with_option++) {
		cleanup_strv struct strv args;
		strv_init(&args, ABI_RUN_ARGS_MAX);
		if (with_option)
			str_copy(s.options[s.n_options++].name, sizeof(s.options[0].name),
				 "userns");
		assert_int_equal(abi_check_run(&s, &run, NULL), 0);
		assert_int_equal(abi_run_args(&s, &run, &args), 0);
		check(&args, with_option ? "--cache-dir=/c --userns=host --userns=private "
					   "--start-ns=0 " UUID " "
					 : "--cache-dir=/c --userns=host --start-ns=0 " UUID " ");
	}
	struct err e = ERR_INIT;
	s = make_stage1(STAGE1_ABI_RKT, 6);
	assert_int_equal(abi_check_run(&s, &run, &e), -EOPNOTSUPP);
	assert_string_equal(e.text, "--private-users option is not supported by stage1");
}

/* The network is told in the words of the interface, or not at all. */
static void test_run_network(void **state)
{
	static const struct {
		enum stage1_abi abi;
		int64_t version;
		bool has_network;
		const char *args, *lacking;
	} cases[] = {
		{ STAGE1_ABI_HUSK, 2, true,
		  "--net=a --net=b:K=V --net-config=/usr/lib/husk/net.d --net-config=/etc/husk/net.d "
		  "--cni-path=/opt/cni/bin --dns=host --hosts-entry=host --cache-dir=/c --start-ns=0 " UUID
		  " ",
		  "" },
		{ STAGE1_ABI_HUSK, 2, false, "--cache-dir=/c --start-ns=0 " UUID " ", "" },
		{ STAGE1_ABI_RKT, 3, false, "--net=a,b:K=V " UUID " ", "--dns-conf-mode " },
		{ STAGE1_ABI_RKT, 4, false,
		  "--net=a,b:K=V --dns-conf-mode=resolv=host,hosts=host " UUID " ", "" },
	};
	CLEANUP(network_wishes_deinit) struct network_wishes w;
	cleanup_strv struct strv options;
	(void)state;
	strv_init(&options, 0);
	network_wishes_init(&w);
	assert_int_equal(network_add_nets(&w, "a,b:K=V", NULL), 0);
	assert_int_equal(network_add_dns(&w, "host", NULL), 0);
	assert_int_equal(network_add_hosts(&w, "host", NULL), 0);
	assert_int_equal(strv_add(&w.config_dirs, "/usr/lib/husk/net.d"), 0);
	assert_int_equal(strv_add(&w.config_dirs, "/etc/husk/net.d"), 0);
	assert_int_equal(strv_add(&w.plugin_dirs, "/opt/cni/bin"), 0);
	const struct abi_run run = {
		.uuid = UUID, .cache_dir = "/c", .options = &options, .network = &w
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_strv struct strv args, lacking;
		struct stage1 s = make_stage1(cases[i].abi, cases[i].version);
		s.has_network = cases[i].has_network;
		strv_init(&args, ABI_RUN_ARGS_MAX);
		strv_init(&lacking, ABI_LACKING_MAX);
		assert_int_equal(abi_run_args(&s, &run, &args), 0);
		check(&args, cases[i].args);
		assert_int_equal(abi_lacking(&s, &run, &lacking), 0);
		check(&lacking, cases[i].lacking);
	}
}

/* A stage1 that would do something else than it is told is not asked to. */
static void test_check_network(void **state)
{
	static const struct {
		enum stage1_abi abi;
		const char *net, *dns;
		bool has_ports;
		const char *error;
	} cases[] = {
		{ STAGE1_ABI_HUSK, "none", NULL, false, "" },
		{ STAGE1_ABI_HUSK, "default", NULL, false,
		  "stage1 \"/s\" does not support networks (leave --net away)" },
		{ STAGE1_ABI_HUSK, "none", "host", false,
		  "stage1 \"/s\" does not support networks (leave --dns away)" },
		{ STAGE1_ABI_HUSK, NULL, NULL, true,
		  "stage1 \"/s\" does not support networks (leave --port away)" },
		{ STAGE1_ABI_RKT, "default", "host", true, "" },
		{ STAGE1_ABI_RKT, NULL, "1.1.1.1", true,
		  "--dns option is not supported by stage1" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(network_wishes_deinit) struct network_wishes w;
		struct err e = ERR_INIT;
		struct stage1 s = make_stage1(cases[i].abi, 2);
		const struct abi_run run = { .network = &w, .has_ports = cases[i].has_ports };
		network_wishes_init(&w);
		if (cases[i].net)
			assert_int_equal(network_add_nets(&w, cases[i].net, NULL), 0);
		if (cases[i].dns)
			assert_int_equal(network_add_dns(&w, cases[i].dns, NULL), 0);
		s.has_network = false;
		assert_int_equal(abi_check_run(&s, &run, &e), *cases[i].error ? -EOPNOTSUPP : 0);
		assert_string_equal(e.text, cases[i].error);
		s.has_network = true;
		if (s.abi == STAGE1_ABI_HUSK)
			assert_int_equal(abi_check_run(&s, &run, &e), 0);
	}
}

static void test_check_run(void **state)
{
	struct err e = ERR_INIT;
	const struct abi_run mutable = { .is_mutable = true }, detached = { .detach = true };
	struct stage1 s = make_stage1(STAGE1_ABI_RKT, STAGE1_RKT_HAS_MUTABLE - 1);
	(void)state;
	assert_int_equal(abi_check_run(&s, &mutable, &e), -EOPNOTSUPP);
	assert_string_equal(e.text, "stage1 does not support mutable pods");
	s.version = STAGE1_RKT_HAS_MUTABLE;
	assert_int_equal(abi_check_run(&s, &mutable, &e), 0);
	assert_int_equal(abi_check_run(&s, &detached, &e), -EOPNOTSUPP);
	assert_string_equal(e.text,
			    "stage1 \"/s\" speaks rkt's interface, which does not tell when a "
			    "pod is up (leave --detach away)");
	const struct abi_run tuned = { .has_sysctls = true };
	assert_int_equal(abi_check_run(&s, &tuned, &e), -EOPNOTSUPP);
	assert_string_equal(e.text, "stage1 \"/s\" speaks rkt's interface, which sets no sysctls");
	s = make_stage1(STAGE1_ABI_HUSK, 1);
	assert_int_equal(abi_check_run(&s, &tuned, &e), 0);
	assert_int_equal(abi_check_run(&s, &mutable, &e), 0);
	assert_int_equal(abi_check_run(&s, &detached, &e), 0);
	s.app_rm[0] = '\0';
	assert_int_equal(abi_check_run(&s, &mutable, &e), -EOPNOTSUPP);
}

static void test_stop_and_gc(void **state)
{
	static const char *const wants[] = { "--debug --force " UUID " ", "--force " UUID " " };
	(void)state;
	for (enum stage1_abi abi = 0; abi < STAGE1_ABI_COUNT_; abi++) {
		cleanup_strv struct strv all, none, gc, rest;
		struct stage1 s = make_stage1(abi, 1);
		strv_init(&all, ABI_ARGS_MAX);
		strv_init(&none, ABI_ARGS_MAX);
		strv_init(&gc, ABI_ARGS_MAX);
		strv_init(&rest, ABI_ARGS_MAX);
		assert_int_equal(abi_stop_args(&s, UUID, true, true, &all), 0);
		check(&all, wants[abi]);
		assert_int_equal(abi_stop_args(&s, UUID, false, false, &none), 0);
		check(&none, UUID " ");
		assert_int_equal(abi_gc_args(UUID, true, true, &gc), 0);
		check(&gc, "--debug --pod-stays " UUID " ");
		assert_int_equal(abi_gc_args(UUID, false, false, &rest), 0);
		check(&rest, UUID " ");
	}
}

static void test_app(void **state)
{
	static const struct {
		enum stage1_abi abi;
		bool adds;
		int64_t grace_s;
		const char *want;
		int signal;
		bool all;
	} cases[] = {
		{ STAGE1_ABI_HUSK, false, -1, "--debug=false --uuid=" UUID " --signal=9 --app=web ",
		  9, false },
		{ STAGE1_ABI_HUSK, false, -1,
		  "--debug=false --uuid=" UUID " --signal=64 --all=true --app=web ", 64, true },
		{ STAGE1_ABI_HUSK, true, -1, "--debug=false --uuid=" UUID " --app=web ", 0, false },
		{ STAGE1_ABI_HUSK, false, 3, "--debug=false --uuid=" UUID " --grace=3 --app=web ",
		  0, false },
		{ STAGE1_ABI_RKT, true, -1, "--debug=false --uuid=" UUID " --app=web ", 0, false },
		{ STAGE1_ABI_RKT, false, 3, "--debug=false --app=web ", 0, false },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_strv struct strv args;
		struct stage1 s = make_stage1(cases[i].abi, 6);
		const struct abi_app app = {
			UUID, "web", cases[i].adds, cases[i].grace_s, cases[i].signal, cases[i].all
		};
		strv_init(&args, ABI_ARGS_MAX);
		assert_int_equal(abi_app_args(&s, &app, &args), 0);
		check(&args, cases[i].want);
	}
}

static void test_attach(void **state)
{
	static const struct {
		struct abi_attach q;
		const char *want;
	} cases[] = {
		{ { .app = "web" }, "--action=auto-attach --app=web " },
		{ { .app = "web", .list = true }, "--action=list --app=web " },
		{ { .app = "web",
		    .ends = (1U << ABI_END_COUNT_) - 1,
		    .keep_stdin = true,
		    .detach_keys = "",
		    .control_fd = 5 },
		  "--action=custom-attach --stdin=true --stdout=true --stderr=true --tty-in=true "
		  "--tty-out=true --app=web --keep-stdin=true --detach-keys= --control=5 " },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_strv struct strv args;
		strv_init(&args, ABI_ATTACH_ARGS_MAX);
		assert_int_equal(abi_attach_args(&cases[i].q, &args), 0);
		check(&args, cases[i].want);
	}
}

static void test_stats(void **state)
{
	static const struct {
		struct abi_stats q;
		const char *args;
	} cases[] = {
		{ { UUID, NULL, false, true }, "--debug=true --uuid=" UUID " " },
		{ { UUID, "web", false, false }, "--debug=false --uuid=" UUID " --app=web " },
		{ { UUID, NULL, true, false }, "--debug=false --uuid=" UUID " --host " },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_strv struct strv args;
		strv_init(&args, ABI_ARGS_MAX);
		assert_int_equal(abi_stats_args(&cases[i].q, &args), 0);
		check(&args, cases[i].args);
	}
}

static char *const command[] = { (char[]){ "ls" }, (char[]){ "-l" }, NULL };

static void test_enter(void **state)
{
	cleanup_strv struct strv env, ours, theirs, steered;
	struct stage1 s = make_stage1(STAGE1_ABI_HUSK, 1);
	(void)state;
	strv_init(&env, 1);
	strv_init(&ours, 16);
	strv_init(&theirs, 16);
	strv_init(&steered, 16);
	struct abi_enter q = {
		.app = "web", .pid = 7, .debug = true, .env = &env, .command = command
	};
	struct stage1 rkt = make_stage1(STAGE1_ABI_RKT, 6);
	assert_int_equal(abi_enter_args(&rkt, &q, &theirs, NULL), 0);
	check(&theirs, "--pid=7 --appname=web -- ls -l ");
	assert_int_equal(strv_add(&env, "A=b"), 0);
	q.user = "u";
	q.workdir = "/w";
	q.tty = "true";
	q.timeout_ms = 9;
	assert_int_equal(abi_enter_args(&s, &q, &ours, NULL), 0);
	check(&ours, "--debug --pid=7 --appname=web --user=u --workdir=/w --env=A=b --tty=true "
		     "--timeout-ms=9 -- ls -l ");
	q = (struct abi_enter){ .app = "web", .env = &env, .command = command };
	q.groups = &env;
	q.clear_env = true;
	q.control_fd = 9;
	assert_int_equal(abi_enter_args(&s, &q, &steered, NULL), 0);
	check(&steered,
	      "--appname=web --env=A=b --group=A=b --clear-env=true --control=9 -- ls -l ");
}

/* A command that would not run as it was asked for does not run. */
static void test_enter_rkt_refuses(void **state)
{
	cleanup_strv struct strv some, none, args;
	struct stage1 s = make_stage1(STAGE1_ABI_RKT, 6);
	(void)state;
	strv_init(&some, 1);
	strv_init(&none, 1);
	strv_init(&args, 16);
	assert_int_equal(strv_add(&some, "A=b"), 0);
	const struct {
		struct abi_enter q;
		const char *error;
	} cases[] = {
		{ { .pid = 7, .env = &none, .user = "u" },
		  "--user option is not supported by stage1" },
		{ { .pid = 7, .env = &none, .workdir = "/" },
		  "--workdir option is not supported by stage1" },
		{ { .pid = 7, .env = &some }, "--env option is not supported by stage1" },
		{ { .pid = 7, .env = &none, .tty = "true" },
		  "--tty option is not supported by stage1" },
		{ { .pid = 7, .env = &none, .tty = "false" },
		  "--no-tty option is not supported by stage1" },
		{ { .pid = 7, .env = &none, .timeout_ms = 1 },
		  "--timeout option is not supported by stage1" },
		{ { .pid = 7, .env = &none, .groups = &some },
		  "--group option is not supported by stage1" },
		{ { .pid = 7, .env = &none, .clear_env = true },
		  "--clear-env option is not supported by stage1" },
		{ { .pid = 7, .env = &none, .control_fd = 9 },
		  "--control option is not supported by stage1" },
		{ { .env = &none },
		  "its stage1 has not said which process it is (wait until it runs)" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e = ERR_INIT;
		struct abi_enter q = cases[i].q;
		q.app = "web";
		q.command = command;
		assert_true(abi_enter_args(&s, &q, &args, &e) < 0);
		assert_string_equal(e.text, cases[i].error);
		assert_int_equal(args.n, 0);
	}
}

/* What is not to be changed is not said; what is to be no limit is 0. */
static void test_update(void **state)
{
	const struct isolators l = { .memory = 4096, .pids_max = 7 };
	cleanup_strv struct strv some, all;
	(void)state;
	strv_init(&some, ABI_ARGS_MAX);
	strv_init(&all, ABI_ARGS_MAX);
	assert_int_equal(
		abi_update_args(UUID, 1U << ISOLATOR_MEMORY | 1U << ISOLATOR_CPU, &l, &some), 0);
	check(&some, "--debug=false --uuid=" UUID " --memory=4096 --cpu-millis=0 ");
	assert_int_equal(abi_update_args(UUID, ~0U, &l, &all), 0);
	check(&all, "--debug=false --uuid=" UUID " --memory=4096 --cpu-millis=0 "
		    "--cpu-shares=0 --pids-limit=7 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_run),
		fixture_test(test_run_nothing),
		fixture_test(test_private_users),
		fixture_test(test_run_network),
		fixture_test(test_check_network),
		fixture_test(test_check_run),
		fixture_test(test_stop_and_gc),
		fixture_test(test_app),
		fixture_test(test_attach),
		fixture_test(test_stats),
		fixture_test(test_update),
		fixture_test(test_enter),
		fixture_test(test_enter_rkt_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
