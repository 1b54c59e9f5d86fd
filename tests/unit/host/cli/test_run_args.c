/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/run_args.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/fixture.h"

#define WORDS_MAX 24 /* the longest line below has 9 */
#define CONTEXT   "error parsing app image arguments: "

struct globals {
	bool debug;
};

static const struct flag global_table[] = { FLAG_SWITCH("debug", struct globals, debug, "debug") };

/* Parses the words of @line ("_" is an empty word) and checks the options between them. */
static int parse(const char *line, char *copy, size_t size, struct run_opts *o, struct err *e)
{
	struct globals globals = { false };
	const struct flag_set global = { .flags = global_table, .n = 1, .opts = &globals };
	char *argv[WORDS_MAX + 1] = { NULL };
	size_t n = 0;
	snprintf(copy, size, "%s", line);
	for (char *rest = copy, *word; n < WORDS_MAX && (word = strsep(&rest, " "));)
		if (*word) {
			argv[n++] = word;
			if (strcmp(word, "_") == 0)
				*word = '\0';
		}
	const struct flag_set sets[] = { command_flags(&cmd_run, o), global };
	int r = run_args_parse(sets, ARRAY_SIZE(sets), argv, NULL, e);
	return r == 0 ? run_opts_check(o, e) : r;
}

static void append(char *out, size_t size, const char *label, const char *text)
{
	if (text)
		snprintf(out + strlen(out), size - strlen(out), " %s=%s", label, text);
}

static void append_list(char *out, size_t size, const char *label, const struct strv *sv)
{
	for (size_t i = 0; i < sv->n; i++)
		append(out, size, label, sv->v[i]);
}

static void append_number(char *out, size_t size, const struct isolators *i, enum isolator which,
			  const char *label, int64_t n)
{
	if (isolators_has(i, which))
		snprintf(out + strlen(out), size - strlen(out), " %s=%jd", label, (intmax_t)n);
}

static void append_isolators(char *out, size_t size, const struct isolators *i)
{
	append_number(out, size, i, ISOLATOR_MEMORY, "memory", i->memory);
	append_number(out, size, i, ISOLATOR_CPU, "cpu", i->cpu_millis);
	append_number(out, size, i, ISOLATOR_CPU_SHARES, "shares", i->cpu_shares);
	append_number(out, size, i, ISOLATOR_OOM_SCORE_ADJ, "oom", i->oom_score_adj);
	append_number(out, size, i, ISOLATOR_NO_NEW_PRIVS, "nnp", i->no_new_privs);
	append_number(out, size, i, ISOLATOR_PIDS, "pids", i->pids_max);
	append_list(out, size, isolators_has(i, ISOLATOR_CAPS_RETAIN) ? "retain" : "remove",
		    &i->caps);
	append_list(out, size, isolators_has(i, ISOLATOR_SECCOMP_RETAIN) ? "allow" : "refuse",
		    &i->seccomp);
	append(out, size, "errno", *i->seccomp_errno ? i->seccomp_errno : NULL);
	append_list(out, size, "rlimit", &i->rlimits);
}

/* Everything that was parsed, on one line. */
static void describe(const struct run_opts *o, char *out, size_t size)
{
	const struct run_request *q = &o->request;
	out[0] = '\0';
	append(out, size, "host", q->hostname);
	append(out, size, "pod", q->name);
	append(out, size, "uuid", q->uuid_file);
	append_list(out, size, "net", &q->network.nets);
	append(out, size, "netns", q->network.netns);
	append_list(out, size, "dns", &q->network.dns);
	append_list(out, size, "search", &q->network.dns_search);
	append_list(out, size, "opt", &q->network.dns_options);
	append(out, size, "domain", q->network.dns_domain);
	append_list(out, size, "hosts", &q->network.hosts);
	for (size_t i = 0; i < q->ports.n; i++)
		append(out, size, "port", q->ports.v[i].name);
	append_list(out, size, "set", &q->env.set);
	append_list(out, size, "vm", &q->stage1_options);
	append_list(out, size, "podnote", &q->tags.notes);
	append_list(out, size, "podlabel", &q->tags.labels);
	if (q->interactive)
		append(out, size, "interactive", "yes");
	for (size_t i = 0; i < q->n_apps; i++) {
		const struct app_options *app = &q->apps[i];
		append(out, size, "IMAGE", app->image);
		append(out, size, "signature", app->signature);
		append(out, size, "name", app->name);
		append(out, size, "exec", app->exec);
		append(out, size, "user", app->user);
		append(out, size, "group", app->group);
		append(out, size, "cwd", app->working_dir);
		append(out, size, "rootfs", app->read_only_root ? "ro" : NULL);
		append_list(out, size, "gid", &app->groups);
		append_isolators(out, size, &app->isolators);
		append_list(out, size, "env", &app->env);
		append_list(out, size, "arg", &app->args);
		append_list(out, size, "note", &app->tags.notes);
		append_list(out, size, "label", &app->tags.labels);
		append_list(out, size, "notes", &app->tags.annotations);
	}
}

static const struct {
	const char *line, *want;
} good[] = {
	{ "a", " IMAGE=a" },
	{ "a b", " IMAGE=a IMAGE=b" },
	{ "a -- x --name=y -- b", " IMAGE=a arg=x arg=--name=y arg=-- arg=b" },
	{ "a -- x --- b -- y --- c", " IMAGE=a arg=x IMAGE=b arg=y IMAGE=c" },
	{ "a -- x _ y", " IMAGE=a arg=x arg= arg=y" },
	{ "_ a _ b", " IMAGE=a IMAGE=b" },
	{ "--- a --- --- b", " IMAGE=a IMAGE=b" },
	{ "a -- --- b", " IMAGE=a IMAGE=b" },
	{ "a --name=x --exec /bin/y --user 1 --group=2 --working-dir=/w --environment=A=b=c",
	  " IMAGE=a name=x exec=/bin/y user=1 group=2 cwd=/w env=A=b=c" },
	{ "a --signature=s b", " IMAGE=a signature=s IMAGE=b" },
	{ "a --name=x b --name=y", " IMAGE=a name=x IMAGE=b name=y" },
	{ "a -- x --- --name=late", " IMAGE=a name=late arg=x" },
	{ "--set-env A=1 a --set-env=B=2 b", " set=A=1 set=B=2 IMAGE=a IMAGE=b" },
	{ "--accel=tcg --memory=1Gi a --machine=q35 --vsock=user --cpus=2 --kernel=small "
	  "--qemu=/q --boot-timeout=9",
	  " vm=--accel=tcg vm=--memory=1Gi vm=--machine=q35 vm=--vsock=user vm=--cpus=2 "
	  "vm=--kernel=small vm=--qemu=/q vm=--boot-timeout=9 IMAGE=a" },
	/* In front of the first image the VM's memory, behind an image the app's. */
	{ "--memory=1Gi a --memory=64Mi b c --memory 1Mi",
	  " vm=--memory=1Gi IMAGE=a memory=67108864 IMAGE=b IMAGE=c memory=1048576" },
	{ "a --cpu=1.5 --cpus=2 --cpu-shares=512 b",
	  " vm=--cpus=2 IMAGE=a cpu=1500 shares=512 IMAGE=b" },
	{ "a --oom-score-adj=-5 --pids-limit=9 --no-new-privileges --readonly-rootfs",
	  " IMAGE=a rootfs=ro oom=-5 nnp=1 pids=9" },
	{ "a --readonly-rootfs --readonly-rootfs=false --no-new-privileges=false",
	  " IMAGE=a nnp=0" },
	{ "a --caps-retain=kill,CAP_CHOWN b --caps-remove=mknod c --caps-retain=",
	  " IMAGE=a retain=CAP_KILL retain=CAP_CHOWN IMAGE=b remove=CAP_MKNOD IMAGE=c" },
	{ "a --seccomp mode=remove,errno=EPERM,chmod,@systemd/clock b --seccomp=read",
	  " IMAGE=a refuse=chmod refuse=@systemd/clock errno=EPERM IMAGE=b allow=read" },
	{ "a --supplementary-gids=1,02 --rlimit=nofile=1:2 --rlimit core=0",
	  " IMAGE=a gid=1 gid=2 rlimit=nofile=1:2 rlimit=core=0" },
	{ "--memory=what --memory=ever a", " vm=--memory=what vm=--memory=ever IMAGE=a" },
	{ "--interactive a", " interactive=yes IMAGE=a" },
	{ "--interactive=false a b", " IMAGE=a IMAGE=b" },
	{ "--hostname=h-1.example --uuid-file-save=f a", " host=h-1.example uuid=f IMAGE=a" },
	{ "--hostname=x --hostname= a", " IMAGE=a" },
	{ "--net=none a", " net=none IMAGE=a" },
	{ "--net a --net=b:K=V,c", " net=default net=b:K=V net=c IMAGE=a" },
	{ "a --net --port=http:80 --port=53/udp:[::1]:53",
	  " net=default port=http port=53-udp IMAGE=a" },
	{ "--netns=/x a", " netns=/x IMAGE=a" },
	{ "--dns=1.1.1.1 --dns=::1 --dns-search=s --dns-opt=o --dns-domain=d a "
	  "--hosts-entry=10.0.0.1=x",
	  " dns=1.1.1.1 dns=::1 search=s opt=o domain=d hosts=10.0.0.1=x IMAGE=a" },
	{ "--name=x a --name=y b --name=z", " pod=x IMAGE=a name=y IMAGE=b name=z" },
	{ "--hostname=a_b a", " host=a_b IMAGE=a" },
	{ "--mds-register --mds-register=false --no-overlay --no-store --ipc= --ipc=private "
	  "--ipc=auto a",
	  " IMAGE=a" },
	{ "a --cap-retain=kill b --cap-remove=mknod",
	  " IMAGE=a retain=CAP_KILL IMAGE=b remove=CAP_MKNOD" },
	{ "--annotation=x/y=1 --user-label=l=p a --annotation=z= --user-label=l=a b "
	  "--user-annotation=n=b",
	  " podnote=x/y=1 podlabel=l=p IMAGE=a note=z= label=l=a IMAGE=b notes=n=b" },
	{ "a --debug", " IMAGE=a" },
	{ "- a", " IMAGE=- IMAGE=a" },
};

static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		CLEANUP(run_opts_deinit) struct run_opts o;
		struct err e = ERR_INIT;
		char copy[512], got[1024];
		run_opts_init(&o);
		assert_int_equal(parse(good[i].line, copy, sizeof(copy), &o, &e), 0);
		describe(&o, got, sizeof(got));
		assert_string_equal(got, good[i].want);
	}
}

/* @usage: a wrong flag, answered with the usage. */
static const struct {
	const char *line;
	bool usage;
	const char *error;
} bad[] = {
	{ "", false, "must provide at least one image or specify the pod manifest" },
	{ "--debug", false, "must provide at least one image or specify the pod manifest" },
	{ "-- x", false, CONTEXT "an image is required before any app arguments" },
	{ "a -- x --- -- y", false, CONTEXT "only one set of app arguments allowed per image" },
	{ "--name=x --name=y a", true, "--name: the pod has the name \"x\" already" },
	{ "--name=a_b a", true,
	  "--name: \"a_b\" is not a name of a pod (1 to 63 of a-z, 0-9 and '-', not at the ends, and no "
	  "UUID)" },
	{ "--exec=x a", true, "--exec must follow an image" },
	{ "--environment=A=b a", true, "--environment must follow an image" },
	{ "--nope", true, "unknown flag: --nope" },
	{ "--seccomp=read a", true, "--seccomp must follow an image" },
	{ "--readonly-rootfs a", true, "--readonly-rootfs must follow an image" },
	{ "--supplementary-gids=1 a", true, "--supplementary-gids must follow an image" },
	{ "a --memory=16m", false,
	  CONTEXT "--memory: \"16m\" is less than 4096 bytes (m is a thousandth: write M or Mi)" },
	{ "a --cpu=0", false,
	  CONTEXT
	  "--cpu: \"0\" is not a number of processors from 0.01 to 1024 (like 1.5, 1500m)" },
	{ "a --cpu=1 --cpu=2", false, CONTEXT "--cpu specified multiple times for the same image" },
	{ "a --seccomp=read --seccomp=write", false,
	  CONTEXT "--seccomp specified multiple times for the same image" },
	{ "a --seccomp=errno=EPERM", false, CONTEXT "--seccomp: the set is empty" },
	{ "a --caps-remove=kill --caps-retain=kill", false,
	  CONTEXT "--caps-retain and --caps-remove exclude each other for the same image" },
	{ "a --supplementary-gids=1 --supplementary-gids=2", false,
	  CONTEXT "--supplementary-gids specified multiple times for the same image" },
	{ "a --supplementary-gids=wheel", false,
	  CONTEXT "--supplementary-gids: \"wheel\" is not a number of a group" },
	{ "a --rlimit=nofile=1 --rlimit=nofile=2", false,
	  CONTEXT "--rlimit: \"nofile=2\": there is \"nofile=1\" already" },
	{ "a --readonly-rootfs=maybe", false,
	  CONTEXT "invalid argument \"maybe\" for --readonly-rootfs: not true or false" },
	{ "--interactive=x a", true,
	  "invalid argument \"x\" for --interactive: not true or false" },
	{ "a --nope", false, CONTEXT "unknown flag: --nope" },
	{ "a --exec", false, CONTEXT "flag needs an argument: --exec" },
	{ "a --exec=x --exec=y", false,
	  CONTEXT "--exec specified multiple times for the same image" },
	{ "a --name=x --name=y", false,
	  CONTEXT "--name specified multiple times for the same image" },
	{ "a --environment=A=1 --environment=A=2", false,
	  CONTEXT "--environment: variable \"A\" is already set" },
	{ "a --environment=A", false,
	  CONTEXT "--environment: \"A\" is not of the form NAME=VALUE" },
	{ "--set-env==x a", true, "--set-env: \"=x\" is not of the form NAME=VALUE" },
	{ "--set-env=A=1 --set-env=A=1 a", true, "--set-env: variable \"A\" is already set" },
	{ "--interactive a b", false, "interactive option only supports one image" },
	{ "--ipc=parent a", true,
	  "--ipc: every pod has a private IPC namespace (try to remove --ipc)" },
	{ "--ipc=host a", true, "--ipc: \"host\" is not auto, private or parent" },
	{ "a --cap-retain=kill --caps-remove=kill", false,
	  CONTEXT "--caps-retain and --caps-remove exclude each other for the same image" },
	{ "--annotation=husk/mutable=true a", true,
	  "--annotation: \"husk/mutable\" is husk's own, as all that begins with husk/" },
	{ "a --annotation=A=b", false,
	  CONTEXT
	  "--annotation: \"A\" is not a name of an annotation (lower case letters, digits and "
	  "any of -._~/ between them)" },
	{ "--annotation=a a", true,
	  "--annotation: \"a\" is not of the form NAME=VALUE, with at most 255 and 4096 bytes of "
	  "UTF-8" },
	{ "--dns=1.1.1 a", true, "Invalid IP passed to --dns: 1.1.1" },
	{ "--dns=host --dns=none a", false,
	  "no other --dns options allowed when --dns=host is passed" },
	{ "--net=host --net=a a", false, "--net=host excludes other networks" },
	{ "--netns=x a", true, "--netns: \"x\" is not an absolute path" },
	{ "--net=none --port=a:80 a", false, "--port flag does not work with 'none' networking" },
	{ "--port=a a", true,
	  "--port: \"a\" is not of the form NAME:[HOSTIP:]HOSTPORT or "
	  "PORT/PROTOCOL:[HOSTIP:]HOSTPORT" },
	{ "--port=1/tcp:80 --port=2/tcp:80 a", false,
	  "port tcp-0.0.0.0:80 already mapped to pod port 1" },
	{ "--mds-register --net=none a", false,
	  "--mds-register flag does not work with --net=none. Please use 'host', 'default' or an "
	  "equivalent network" },
	{ "--volume=v,kind=x a", true,
	  "--volume: \"v,kind=x\": kind=x is none (empty, host and block are)" },
	{ "a --mount=volume=v,target=v", false,
	  "error parsing app image arguments: --mount: \"volume=v,target=v\": target=v is not an absolute path" },
	{ "--net=none,none a", true, "found duplicate netname \"none\"" },
	{ "--net= a", true, "netname must not be empty" },
	{ "--net=none, a", true, "netname must not be empty" },
	{ "--hostname=-x a", true,
	  "--hostname: \"-x\" is not a host name (1 to 64 of letters, digits, '-', '_' and '.')" },
	{ "--hostname=a+b a", true,
	  "--hostname: \"a+b\" is not a host name (1 to 64 of letters, digits, '-', '_' and '.')" },
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP(run_opts_deinit) struct run_opts o;
		struct err e = ERR_INIT;
		char copy[512];
		run_opts_init(&o);
		int r = parse(bad[i].line, copy, sizeof(copy), &o, &e);
		assert_string_equal(e.text, bad[i].error);
		assert_int_equal(r == FLAG_BAD, bad[i].usage);
		assert_true(r == FLAG_BAD || r < 0);
	}
}

static int parse_n(size_t n_images, size_t n_args, struct run_opts *o, struct err *e)
{
	static char *argv[AGENT_EXEC_MAX + AGENT_APPS_MAX + 8];
	static char image[] = "img", dashes[] = "--", x[] = "x";
	size_t n = 0;
	const struct flag_set global = { .flags = global_table, .n = 1 };
	while (n < n_images)
		argv[n++] = image;
	if (n_args > 0)
		argv[n++] = dashes;
	for (size_t i = 0; i < n_args; i++)
		argv[n++] = x;
	argv[n] = NULL;
	const struct flag_set sets[] = { command_flags(&cmd_run, o), global };
	return run_args_parse(sets, ARRAY_SIZE(sets), argv, NULL, e);
}

static void test_limits(void **state)
{
	static const struct {
		size_t images, args;
		const char *error;
	} cases[] = {
		{ AGENT_APPS_MAX, 0, "" },
		{ AGENT_APPS_MAX + 1, 0, CONTEXT "at most 32 apps: Argument list too long" },
		{ 1, AGENT_EXEC_MAX, "" },
		{ 1, AGENT_EXEC_MAX + 1,
		  CONTEXT "at most 65536 app arguments: Argument list too long" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(run_opts_deinit) struct run_opts o;
		struct err e = ERR_INIT;
		run_opts_init(&o);
		int r = parse_n(cases[i].images, cases[i].args, &o, &e);
		assert_int_equal(r == 0, cases[i].error[0] == '\0');
		assert_string_equal(e.text, cases[i].error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_good),
		fixture_test(test_bad),
		fixture_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
