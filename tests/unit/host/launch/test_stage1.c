/* SPDX-License-Identifier: Apache-2.0 */
#include "host/launch/stage1.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/lock.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

#define ANN(name, value) "{\"name\":\"" name "\",\"value\":\"" value "\"}"
#define LIST(anns)       "{\"acKind\":\"ImageManifest\",\"annotations\":[" anns "]}"
#define MANIFEST(anns)   LIST(ANN(STAGE1_ANN_VERSION, "2") "," anns)
#define GOOD             MANIFEST(ANN(STAGE1_ANN_RUN, "bin/run") "," ANN(STAGE1_ANN_DOCTOR, "doctor"))

static void put_program(void **state, const char *name, const char *text)
{
	fixture_write(state, name, text, strlen(text));
	assert_int_equal(fchmodat(fixture_dir(state), name, 0755, 0), 0);
}

static void put_stage1(void **state, const char *manifest)
{
	mkdirat(fixture_dir(state), "bin", 0755);
	put_program(state, "bin/run", "#!/bin/sh\n");
	put_program(state, "doctor", "#!/bin/sh\necho '{\"checks\":[]}'; echo \"$@\"; exit 3\n");
	fixture_write(state, "manifest", manifest, strlen(manifest));
}

static void test_open(void **state)
{
	struct stage1 s;
	struct err e = ERR_INIT;
	char want[PATH_MAX];
	put_stage1(state, GOOD);
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	assert_int_equal(s.version, STAGE1_INTERFACE_VERSION);
	snprintf(want, sizeof(want), "%s/bin/run", fixture_path(state));
	assert_string_equal(s.run, want);
	snprintf(want, sizeof(want), "%s/doctor", fixture_path(state));
	assert_string_equal(s.doctor, want);
}

/* Each has a place of its own, and the list of them, which what is trusted is told by, knows it. */
static void test_entrypoints(void **state)
{
	static struct stage1 s;
	const struct {
		const char *annotation, *path;
	} all[] = {
		{ STAGE1_ANN_CHECK, s.check },
		{ STAGE1_ANN_RUN, s.run },
		{ STAGE1_ANN_STOP, s.stop },
		{ STAGE1_ANN_GC, s.gc },
		{ STAGE1_ANN_ENTER, s.enter },
		{ STAGE1_ANN_DOCTOR, s.doctor },
		{ STAGE1_ANN_ATTACH, s.attach },
		{ STAGE1_ANN_STATS, s.stats },
		{ STAGE1_ANN_UPDATE, s.update },
		{ STAGE1_ANN_APP_ADD, s.app_add },
		{ STAGE1_ANN_APP_START, s.app_start },
		{ STAGE1_ANN_APP_STOP, s.app_stop },
		{ STAGE1_ANN_APP_RM, s.app_rm },
		{ STAGE1_ANN_APP_UPDATE, s.app_update },
		{ STAGE1_ANN_APP_SIGNAL, s.app_signal },
		{ STAGE1_ANN_APP_PAUSE, s.app_pause },
		{ STAGE1_ANN_APP_RESUME, s.app_resume },
	};
	struct err e = ERR_INIT;
	assert_int_equal(stage1_n_entrypoints, ARRAY_SIZE(all));
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		char manifest[512];
		bool is_run = strcmp(all[i].annotation, STAGE1_ANN_RUN) == 0;
		snprintf(manifest, sizeof(manifest),
			 MANIFEST(ANN(STAGE1_ANN_RUN, "%s") "," ANN("%s", "doctor")),
			 is_run ? "doctor" : "bin/run", is_run ? "other" : all[i].annotation);
		put_stage1(state, manifest);
		assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
		assert_non_null(strstr(all[i].path, "/doctor"));
		for (size_t k = 0; k < stage1_n_entrypoints; k++) {
			bool is_it =
				strcmp(stage1_entrypoints[k].annotation, all[i].annotation) == 0;
			assert_int_equal(strstr(stage1_program(&s, k), "/doctor") != NULL, is_it);
		}
	}
}

static void test_optional_parts(void **state)
{
	struct stage1 s;
	struct err e = ERR_INIT;
	put_stage1(state, MANIFEST(ANN(STAGE1_ANN_RUN, "bin/run")));
	memset(&s, 'x', sizeof(s)); /* what was there does not stay */
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	assert_int_equal(s.version, STAGE1_INTERFACE_VERSION);
	assert_string_equal(s.doctor, "");
	assert_false(s.has_network);
	put_stage1(state,
		   MANIFEST(ANN(STAGE1_ANN_RUN, "bin/run") "," ANN(STAGE1_ANN_NETWORK, "yes")));
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	assert_false(s.has_network);
	put_stage1(state,
		   MANIFEST(ANN(STAGE1_ANN_RUN, "bin/run") "," ANN(STAGE1_ANN_NETWORK, "true")));
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	assert_true(s.has_network);
}

static void test_bad_manifests(void **state)
{
	static const struct {
		const char *manifest, *error;
	} cases[] = {
		{ "", "its manifest is not valid JSON" },
		{ "[]", "the \"acKind\" of its manifest is not \"ImageManifest\"" },
		{ "{\"acKind\":\"PodManifest\"}",
		  "the \"acKind\" of its manifest is not \"ImageManifest\"" },
		{ MANIFEST(ANN("x", "y")), "its manifest has no annotation \"husk/stage1/run\"" },
		{ "{\"acKind\":\"ImageManifest\",\"annotations\":{}}",
		  "its manifest has no annotation \"husk/stage1/run\"" },
		{ LIST(ANN(STAGE1_ANN_RUN, "bin/run")),
		  "interface version 1, this husk speaks 2 (install the stage1 of this husk)" },
		{ MANIFEST("7"), "its manifest has no annotation \"husk/stage1/run\"" },
		{ LIST(ANN(STAGE1_ANN_VERSION, "3") "," ANN(STAGE1_ANN_RUN, "bin/run")),
		  "interface version 3, this husk speaks 2 (install the stage1 of this husk)" },
		{ LIST(ANN(STAGE1_ANN_VERSION, "-1") "," ANN(STAGE1_ANN_RUN, "bin/run")),
		  "interface version \"-1\" is not a number" },
		{ MANIFEST(ANN(STAGE1_ANN_RUN, "/bin/sh")),
		  "entrypoint \"/bin/sh\": Invalid cross-device link" },
		{ MANIFEST(ANN(STAGE1_ANN_RUN, "../../bin/sh")),
		  "entrypoint \"../../bin/sh\": Invalid cross-device link" },
		{ MANIFEST(ANN(STAGE1_ANN_RUN, "none")),
		  "entrypoint \"none\": No such file or directory" },
		{ MANIFEST(ANN(STAGE1_ANN_RUN, "bin")),
		  "entrypoint \"bin\" is not an executable file" },
		{ MANIFEST(ANN(STAGE1_ANN_RUN, "manifest")),
		  "entrypoint \"manifest\" is not an executable file" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct stage1 s;
		struct err e = ERR_INIT;
		char want[ERR_TEXT_MAX];
		put_stage1(state, cases[i].manifest);
		assert_true(stage1_open(fixture_path(state), &s, &e) < 0);
		snprintf(want, sizeof(want), "stage1 \"%s\": %s", fixture_path(state),
			 cases[i].error);
		assert_string_equal(e.text, want);
	}
}

/* As husk image extract leaves an appc image: paths are those of its root file system. */
static void test_image(void **state)
{
	struct stage1 s;
	struct err e = ERR_INIT;
	char want[PATH_MAX];
	put_stage1(state, MANIFEST(ANN(STAGE1_ANN_RUN, "/opt/run") "," ANN(STAGE1_ANN_GC, "gc")));
	mkdirat(fixture_dir(state), "rootfs", 0755);
	mkdirat(fixture_dir(state), "rootfs/opt", 0755);
	put_program(state, "rootfs/opt/run", "#!/bin/sh\n");
	put_program(state, "rootfs/gc", "#!/bin/sh\n");
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	assert_int_equal(s.abi, STAGE1_ABI_HUSK);
	snprintf(want, sizeof(want), "%s/rootfs/opt/run", fixture_path(state));
	assert_string_equal(s.run, want);
	put_stage1(state, MANIFEST(ANN(STAGE1_ANN_RUN, "/../bin/run")));
	assert_true(stage1_open(fixture_path(state), &s, &e) < 0);
	assert_non_null(strstr(e.text, "Invalid cross-device link"));
	assert_int_equal(unlinkat(fixture_dir(state), "rootfs/gc", 0), 0);
	assert_int_equal(renameat(fixture_dir(state), "rootfs", fixture_dir(state), "other"), 0);
	assert_int_equal(symlinkat("other", fixture_dir(state), "rootfs"), 0);
	assert_true(stage1_open(fixture_path(state), &s, &e) < 0);
	assert_non_null(strstr(e.text, "its directory \"rootfs\": "));
}

#define RKT(name) STAGE1_RKT_ANN_PREFIX name

static void test_rkt(void **state)
{
	static const struct {
		const char *manifest;
		int version; /* -1: refused */
	} cases[] = {
		{ MANIFEST(ANN(RKT("run"), "bin/run")), 1 },
		{ MANIFEST(ANN(RKT("run"), "bin/run") "," ANN(RKT("interface-version"), "6")), 6 },
		{ MANIFEST(ANN(RKT("run"), "bin/run") "," ANN(RKT("interface-version"), "7")), -1 },
		{ MANIFEST(ANN(RKT("run"), "bin/run") "," ANN(RKT("interface-version"), "0")), -1 },
		/* Ours says nothing about rkt's interface. */
		{ MANIFEST(ANN(RKT("run"), "bin/run") "," ANN(STAGE1_ANN_VERSION, "9")), 1 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct stage1 s;
		struct err e = ERR_INIT;
		put_stage1(state, cases[i].manifest);
		int r = stage1_open(fixture_path(state), &s, &e);
		assert_int_equal(r < 0 ? -1 : s.version, cases[i].version);
		if (r == 0)
			assert_int_equal(s.abi, STAGE1_ABI_RKT);
		else
			assert_non_null(strstr(e.text, "this husk speaks 6 of rkt's"));
	}
}

/* Who speaks both is asked in our words. */
static void test_both(void **state)
{
	struct stage1 s;
	struct err e = ERR_INIT;
	put_stage1(state, MANIFEST(ANN(RKT("run"), "none") "," ANN(STAGE1_ANN_RUN, "bin/run")));
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	assert_int_equal(s.abi, STAGE1_ABI_HUSK);
	assert_string_equal(stage1_abi_name(s.abi), "husk");
	assert_string_equal(stage1_abi_name(STAGE1_ABI_RKT), "rkt");
}

static void test_manifest_size(void **state)
{
	struct stage1 s;
	struct err e = ERR_INIT;
	static char blanks[STAGE1_MANIFEST_MAX + 2];
	put_stage1(state, GOOD);
	memset(blanks, ' ', sizeof(blanks) - 1);
	memcpy(blanks, GOOD, strlen(GOOD));
	fixture_write(state, "manifest", blanks, STAGE1_MANIFEST_MAX);
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	fixture_write(state, "manifest", blanks, STAGE1_MANIFEST_MAX + 1);
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), -EFBIG);
}

static void test_no_stage1(void **state)
{
	struct stage1 s;
	struct err e = ERR_INIT;
	assert_true(stage1_open("/nonexistent", &s, &e) < 0);
	assert_string_equal(e.text, "stage1 \"/nonexistent\": No such file or directory");
	assert_true(stage1_open(fixture_path(state), &s, &e) < 0);
	assert_non_null(strstr(e.text, "cannot read its manifest: No such file or directory"));
}

static void test_query(void **state)
{
	struct stage1 s;
	struct err e = ERR_INIT;
	cleanup_strv struct strv args;
	cleanup_buf struct buf out;
	int status = 0;
	put_stage1(state, GOOD);
	strv_init(&args, 4);
	assert_int_equal(strv_add(&args, "--x"), 0);
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	buf_init(&out, 64);
	assert_int_equal(stage1_query(s.doctor, &args, &out, &status, &e), 0);
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(buf_data(&out), "{\"checks\":[]}\n--x\n");
}

/* One about a pod runs in its directory. */
static void test_query_pod(void **state)
{
	struct stage1 s;
	struct err e = ERR_INIT;
	cleanup_buf struct buf out;
	int status = 0;
	put_stage1(state, GOOD);
	put_program(state, "doctor", "#!/bin/sh\npwd -P\n");
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	cleanup_fd int dir = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	buf_init(&out, 64);
	assert_int_equal(stage1_query_pod(s.doctor, dir, NULL, false, &out, &status, &e), 0);
	assert_int_equal(status, 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(buf_data(&out), "/usr\n");
}

/* A program that prints without end is cut off, not waited for. */
static void test_query_too_much(void **state)
{
	struct stage1 s;
	struct err e = ERR_INIT;
	cleanup_buf struct buf out;
	int status = 77;
	put_stage1(state, GOOD);
	put_program(state, "doctor", "#!/bin/sh\nexec cat /dev/zero\n");
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	buf_init(&out, STAGE1_OUTPUT_MAX);
	assert_int_equal(stage1_query(s.doctor, NULL, &out, &status, &e), -EMSGSIZE);
	assert_int_equal(status, 77);
}

static void test_query_no_program(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	cleanup_buf struct buf out;
	int status;
	buf_init(&out, 64);
	assert_int_equal(stage1_query("/nonexistent", NULL, &out, &status, &e), -ENOENT);
	assert_string_equal(e.text, "cannot run \"/nonexistent\": No such file or directory");
}

/* The child side of the exec contract, seen by a program that is really executed. */
static const char run_script[] =
	"#!/bin/sh\n"
	"{ echo \"args=$*\"; echo \"cwd=$(pwd)\"; echo \"pid=$$\"\n"
	"for fd in 3 4 5 6 7 8 9; do\n"
	"  [ -e /proc/$$/fd/$fd ] || continue\n"
	"  if [ $fd = $HUSK_LOCK_FD ]; then echo lock; else echo \"extra=$fd\"; fi\n"
	"done\n"
	"flock -n -s /proc/self/cwd true && echo unlocked || echo locked; } >out\n"
	"exit 7\n";

static void test_exec_run(void **state)
{
	struct stage1 s;
	struct err e = ERR_INIT;
	cleanup_strv struct strv args;
	char text[1024] = "", want[1024];
	put_stage1(state, GOOD);
	put_program(state, "bin/run", run_script);
	assert_int_equal(mkdirat(fixture_dir(state), "pod", 0750), 0);
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	strv_init(&args, 4);
	assert_int_equal(strv_add(&args, "--a=b"), 0);
	assert_int_equal(strv_add(&args, "UUID"), 0);
	cleanup_fd int pod_fd = openat(fixture_dir(state), "pod", O_RDONLY | O_CLOEXEC);
	pid_t pid = fork();
	if (pid == 0) {
		/*
		 * A lock of the child's own description; and one more descriptor that must not
		 * pass.
		 */
		int fd = openat(fixture_dir(state), "pod", O_RDONLY | O_CLOEXEC);
		if (fd < 0 || lock_exclusive(fd) < 0 || dup(fd) < 0)
			_exit(1);
		stage1_exec_run(&s, fd, &args, &e);
		_exit(2);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 7);
	cleanup_fd int out = openat(pod_fd, "out", O_RDONLY | O_CLOEXEC);
	size_t got;
	assert_int_equal(fd_read_full(out, text, sizeof(text) - 1, &got), 0);
	snprintf(want, sizeof(want), "args=--a=b UUID\ncwd=%s/pod\npid=%d\nlock\nlocked\n",
		 fixture_path(state), (int)pid);
	assert_string_equal(text, want);
}

static void test_exec_run_fails(void **state)
{
	struct stage1 s;
	cleanup_strv struct strv args;
	put_stage1(state, GOOD);
	put_program(state, "bin/run", "#!/nonexistent/interpreter\n");
	struct err e = ERR_INIT;
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	strv_init(&args, 1);
	pid_t pid = fork(); /* it closes descriptors and changes directory */
	if (pid == 0) {
		int r = stage1_exec_run(&s, fixture_dir(state), &args, &e);
		_exit(r == -ENOENT && strstr(e.text, "cannot execute \"") ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The same descriptors, but no lock: the pod is the supervisor's. */
static void test_exec_enter(void **state)
{
	struct stage1 s;
	struct err e = ERR_INIT;
	cleanup_strv struct strv args;
	char text[1024] = "", want[1024];
	put_stage1(state, GOOD);
	put_program(state, "bin/run", run_script);
	assert_int_equal(mkdirat(fixture_dir(state), "pod", 0750), 0);
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	strv_init(&args, 4);
	assert_int_equal(strv_add(&args, "--a=b"), 0);
	cleanup_fd int pod_fd = openat(fixture_dir(state), "pod", O_RDONLY | O_CLOEXEC);
	assert_int_equal(stage1_exec_enter(&s, pod_fd, 0, &args, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.text, "does not support enter"));
	memcpy(s.enter, s.run, sizeof(s.enter));
	pid_t pid = fork();
	if (pid == 0) {
		setenv("HUSK_LOCK_FD", "none", 1);
		if (dup(pod_fd) < 0)
			_exit(1);
		stage1_exec_enter(&s, pod_fd, 0, &args, &e);
		_exit(2);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 7);
	cleanup_fd int out = openat(pod_fd, "out", O_RDONLY | O_CLOEXEC);
	size_t got;
	assert_int_equal(fd_read_full(out, text, sizeof(text) - 1, &got), 0);
	snprintf(want, sizeof(want), "args=--a=b\ncwd=%s/pod\npid=%d\nunlocked\n",
		 fixture_path(state), (int)pid);
	assert_string_equal(text, want);
}

/* What the program whose path is @path left in "log" about itself. */
static void expect_dies_with_us(void **state, int r)
{
	cleanup_free char *text = NULL;
	size_t len;
	assert_int_equal(r, 0);
	assert_int_equal(file_read_at(fixture_dir(state), "log", 65536, &text, &len), 0);
	assert_non_null(strstr(text, "Parent death signal: KILL\n"));
	assert_int_equal(unlinkat(fixture_dir(state), "log", 0), 0);
}

/* When husk is killed, its entrypoints are, however they are called. */
static void test_entrypoints_die_with_us(void **state)
{
	CLEANUP(buf_deinit) struct buf out;
	char path[PATH_MAX];
	struct err e = ERR_INIT;
	int status, code, dir = fixture_dir(state);
	buf_init(&out, 65536);
	put_program(state, "program", "#!/bin/sh\nexec setpriv --dump >\"${0%/*}/log\"\n");
	snprintf(path, sizeof(path), "%s/program", fixture_path(state));
	expect_dies_with_us(state, stage1_call(path, dir, NULL, &e));
	expect_dies_with_us(state, stage1_query(path, NULL, &out, &status, &e));
	expect_dies_with_us(state, stage1_query_pod(path, dir, NULL, false, &out, &status, &e));
	expect_dies_with_us(state, stage1_ask(path, dir, NULL, &code, &e));
}

/* Runs @script as a crossing entrypoint; its exit code. */
static int cross(void **state, const char *script, struct err *e)
{
	cleanup_strv struct strv args;
	char path[PATH_MAX], text[1024];
	int code = 77;
	snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", script);
	put_program(state, "cross", text);
	mkdirat(fixture_dir(state), "pod", 0750);
	cleanup_fd int pod_fd = openat(fixture_dir(state), "pod", O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/cross", fixture_path(state));
	strv_init(&args, 4);
	assert_int_equal(strv_add(&args, "--app=web"), 0);
	*e = ERR_INIT;
	int r = stage1_ask(path, pod_fd, &args, &code, e);
	assert_int_equal(r < 0, code == 77);
	return r < 0 ? r : code;
}

static void test_cross(void **state)
{
	static const struct {
		const char *script;
		int code;
		const char *text;
	} cases[] = {
		{ "exit 0", 0, "" },
		{ "echo noise >&2", 0, "" },
		{ "test \"$*\" = --app=web && test \"$(basename \"$PWD\")\" = pod", 0, "" },
		{ "read x; echo lost; exit 5", 5, "it does not say why" }, /* no stdin, no stdout */
		{ "exit 254", 254, "it does not say why" },
		{ "echo 'stage1: app/rm: it is busy' >&2; exit 254", 254, "it is busy" },
		{ "printf 'one\\ntwo' >&2; exit 1", 1, "two" },
		{ "printf 'one\\ntwo\\n\\n' >&2; exit 1", 1, "two" },
		{ "echo 'stage1: app/add: error: multiple: colons' >&2; exit 1", 1,
		  "error: multiple: colons" },
		{ "echo 'app \"a: b\": why' >&2; exit 1", 1, "app \"a: b\": why" },
		{ "echo 'cat: no such file' >&2; exit 1", 1, "cat: no such file" },
		{ "echo 'stage1: without a verb: no' >&2; exit 1", 1, "without a verb: no" },
		{ "printf '\\033[2Jforged\\n' >&2; exit 1", 1, "?[2Jforged" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e;
		assert_int_equal(cross(state, cases[i].script, &e), cases[i].code);
		assert_string_equal(e.text, cases[i].text);
	}
}

/* As much as a program likes to say: only the last line is kept, and of that what fits. */
static void test_cross_talks_much(void **state)
{
	struct err e;
	assert_int_equal(cross(state, "yes | head -c 8000000 >&2; echo end >&2; exit 3", &e), 3);
	assert_string_equal(e.text, "end");
	assert_int_equal(cross(state, "head -c 100000 /dev/zero | tr '\\0' x >&2; exit 3", &e), 3);
	assert_int_equal(strspn(e.text, "x"), ERR_TEXT_MAX - 1);
}

static void test_cross_fails(void **state)
{
	struct err e;
	int code = 77;
	assert_int_equal(cross(state, "kill -9 $$", &e), -EIO);
	assert_non_null(strstr(e.text, "/cross\" was killed by signal 9"));
	e = ERR_INIT;
	assert_int_equal(stage1_ask("/nonexistent", fixture_dir(state), NULL, &code, &e), -ENOENT);
	assert_string_equal(e.text, "cannot run \"/nonexistent\": No such file or directory");
	assert_int_equal(code, 77);
}

static void test_is_mutable(void **state)
{
	struct stage1 s = { .app_add = "/a", .app_start = "/b", .app_stop = "/c", .app_rm = "/d" };
	(void)state;
	assert_true(stage1_is_mutable(&s));
	char *const paths[] = { s.app_add, s.app_start, s.app_stop, s.app_rm };
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		paths[i][0] = '\0';
		assert_false(stage1_is_mutable(&s));
		paths[i][0] = '/';
	}
}

#define OPTION(name, value) ANN(STAGE1_ANN_OPTION name, value)
#define RUN                 ANN(STAGE1_ANN_RUN, "bin/run") ","
#define LONGEST_ARGUMENT    "SIZE-of-forty-seven-bytes-is-what-an-option-has"

static void test_options(void **state)
{
	struct stage1 s;
	struct err e = ERR_INIT;
	put_stage1(state, MANIFEST(RUN OPTION("accel", "auto|tcg how it is made") "," OPTION(
				  "m-2", "SIZE memory") "," ANN(STAGE1_ANN_CHANGES_FILE, "disk")));
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	assert_int_equal(s.n_options, 2);
	assert_string_equal(s.options[0].name, "accel");
	assert_string_equal(s.options[0].arg, "auto|tcg");
	assert_string_equal(s.options[0].help, "how it is made");
	assert_ptr_equal(stage1_find_option(&s, "m-2=x", 3), &s.options[1]);
	assert_null(stage1_find_option(&s, "m-2=x", 2));
	assert_string_equal(s.changes_file, "disk");
	assert_string_equal(s.changes_dir, "");
	put_stage1(state, MANIFEST(RUN OPTION("a", LONGEST_ARGUMENT " help")));
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	assert_string_equal(s.options[0].arg, LONGEST_ARGUMENT);
	put_stage1(state, MANIFEST(RUN ANN(STAGE1_ANN_CHANGES_DIR, "files")));
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	assert_string_equal(s.changes_file, "");
	assert_string_equal(s.changes_dir, "files");
	put_stage1(state, MANIFEST(RUN ANN(STAGE1_ANN_CHANGES_DIR, "a/.b/c.d")));
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), -EBADMSG);
	put_stage1(state, MANIFEST(RUN ANN(STAGE1_ANN_CHANGES_DIR, "a/b/c.d")));
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	assert_string_equal(s.changes_dir, "a/b/c.d");
}

static void test_bad_options(void **state)
{
	static const char *const bad[] = {
		MANIFEST(RUN OPTION("", "SIZE memory")),
		MANIFEST(RUN OPTION("a", "SIZE")),
		MANIFEST(RUN OPTION("a", "SIZE ")),
		MANIFEST(RUN OPTION("a", " help")),
		MANIFEST(RUN OPTION("a", "")),
		MANIFEST(RUN OPTION("a", LONGEST_ARGUMENT "s help")),
		MANIFEST(RUN OPTION("-a", "N help")),
		MANIFEST(RUN OPTION("a b", "N help")),
		MANIFEST(RUN OPTION("A", "N help")),
		MANIFEST(RUN OPTION("a", "N help\\u001b[2J")),
		MANIFEST(RUN OPTION("a", "N help") "," OPTION("a", "N help")),
		MANIFEST(RUN OPTION("abcdefghijklmnopqrstuvwxyzabcdef", "N help")),
		MANIFEST(RUN ANN(STAGE1_ANN_CHANGES_FILE, "")),
		MANIFEST(RUN ANN(STAGE1_ANN_CHANGES_FILE, "..")),
		MANIFEST(RUN ANN(STAGE1_ANN_CHANGES_FILE, "/x")),
		MANIFEST(RUN ANN(STAGE1_ANN_CHANGES_FILE, "apps//x")),
		MANIFEST(RUN ANN(STAGE1_ANN_CHANGES_FILE, "apps/")),
		MANIFEST(RUN ANN(STAGE1_ANN_CHANGES_DIR, "apps/../x")),
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct stage1 s;
		struct err e = ERR_INIT;
		put_stage1(state, bad[i]);
		if (stage1_open(fixture_path(state), &s, &e) != -EBADMSG)
			fail_msg("%s: %s", bad[i], e.text);
	}
}

/* As many options as there may be, and one more. */
static void test_number_of_options(void **state)
{
	for (int n = STAGE1_OPTIONS_MAX; n <= STAGE1_OPTIONS_MAX + 1; n++) {
		cleanup_buf struct buf b;
		struct stage1 s;
		struct err e = ERR_INIT;
		buf_init(&b, STAGE1_MANIFEST_MAX);
		buf_puts(&b, "{\"acKind\":\"ImageManifest\",\"annotations\":[" ANN(
				     STAGE1_ANN_VERSION, "2") "," ANN(STAGE1_ANN_RUN, "bin/run"));
		for (int i = 0; i < n; i++)
			buf_printf(&b, "," ANN(STAGE1_ANN_OPTION "o%d", "N help"), i);
		assert_int_equal(buf_append(&b, "]}", 3), 0);
		put_stage1(state, buf_data(&b));
		assert_int_equal(stage1_open(fixture_path(state), &s, &e),
				 n == STAGE1_OPTIONS_MAX ? 0 : -E2BIG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_options),
		fixture_test(test_bad_options),
		fixture_test(test_number_of_options),
		fixture_test(test_open),
		fixture_test(test_entrypoints),
		fixture_test(test_optional_parts),
		fixture_test(test_bad_manifests),
		fixture_test(test_image),
		fixture_test(test_rkt),
		fixture_test(test_both),
		fixture_test(test_manifest_size),
		fixture_test(test_no_stage1),
		fixture_test(test_query),
		fixture_test(test_query_pod),
		fixture_test(test_query_too_much),
		fixture_test(test_query_no_program),
		fixture_test(test_exec_run),
		fixture_test(test_exec_run_fails),
		fixture_test(test_exec_enter),
		fixture_test(test_entrypoints_die_with_us),
		fixture_test(test_cross),
		fixture_test(test_cross_talks_much),
		fixture_test(test_cross_fails),
		fixture_test(test_is_mutable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
