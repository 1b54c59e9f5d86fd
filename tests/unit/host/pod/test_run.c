/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With a stage1 whose programs are scripts. Pods are mutable, so that most of them need no image.
 */
#include "host/pod/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/launch/stage1.h"
#include "host/pod/info.h"
#include "host/pod/pod.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

#define ANN(name, value) ",{\"name\":\"" name "\",\"value\":\"" value "\"}"
#define MANIFEST(more)                                                                   \
	"{\"acKind\":\"ImageManifest\",\"annotations\":[{\"name\":\"" STAGE1_ANN_VERSION \
	"\",\"value\":\"2\"}" ANN(STAGE1_ANN_RUN, "run") more "]}"
#define VERBS                            \
	ANN(STAGE1_ANN_APP_ADD, "run")   \
	ANN(STAGE1_ANN_APP_START, "run") \
	ANN(STAGE1_ANN_APP_STOP, "run") ANN(STAGE1_ANN_APP_RM, "run")

/* Notes its arguments, and whether the lock that it was handed is of its working directory. */
#define RUN_SCRIPT                                                \
	"#!/bin/sh\nprintf '%s\\n' \"$@\" >\"${0%/*}/../args\"\n" \
	"[ \"$(readlink /proc/self/fd/$HUSK_LOCK_FD)\" = \"$PWD\" ] || exit 9\n"

/* As husk does: opens stage1 and becomes it. */
static int run_pod(const struct run_request *q, int data_fd, const char *data, const char *dir,
		   struct uuid *ret, struct err *e)
{
	static struct stage1 stage1;
	int r = stage1_open(dir, &stage1, e);
	return r < 0 ? r : pod_run(q, data_fd, data, &stage1, ret, e);
}

/* The same with a prepared pod. */
static int run_prepared(const struct run_request *q, struct pods *ps, struct pod *pod,
			const char *data, const char *dir, struct err *e)
{
	static struct stage1 stage1;
	int r = stage1_open(dir, &stage1, e);
	return r < 0 ? r : pod_run_prepared(q, ps, pod, data, &stage1, e);
}

struct places {
	char stage1[PATH_MAX], data[PATH_MAX];
	int data_fd;
};

static void places_deinit(struct places *p)
{
	fd_close(p->data_fd);
}

static void put_stage1(void **state, const char *manifest, const char *script)
{
	mkdirat(fixture_dir(state), "stage1", 0755);
	fixture_write(state, "stage1/manifest", manifest, strlen(manifest));
	fixture_write(state, "stage1/run", script, strlen(script));
	assert_int_equal(fchmodat(fixture_dir(state), "stage1/run", 0755, 0), 0);
}

static void make_places(void **state, struct places *p)
{
	snprintf(p->stage1, sizeof(p->stage1), "%s/stage1", fixture_path(state));
	snprintf(p->data, sizeof(p->data), "%s/data", fixture_path(state));
	assert_int_equal(mkdirat(fixture_dir(state), "data", 0755), 0);
	p->data_fd = openat(fixture_dir(state), "data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->data_fd >= 0);
	put_stage1(state, MANIFEST(VERBS), RUN_SCRIPT "exit 7\n");
}

/* How many pods are in the phases of the bit set. */
static size_t count_pods(const struct places *p, unsigned int phases)
{
	CLEANUP(pod_list_deinit) struct pod_list l = POD_LIST_INIT;
	cleanup_pods struct pods *ps = NULL;
	assert_int_equal(pods_open(p->data_fd, false, &ps, NULL), 0);
	assert_int_equal(pods_list(ps, phases, POD_LIST_MAX, &l, NULL), 0);
	return l.n;
}

#define ALL_PHASES ((1U << POD_PHASE_COUNT_) - 1)

/* Becomes stage1 in a child; its exit code, or 100 if that failed with the message @want in it. */
static int run(const struct places *p, const struct run_request *q, const char *want)
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct uuid uuid;
		struct err e = ERR_INIT;
		int r = run_pod(q, p->data_fd, p->data, p->stage1, &uuid, &e);
		bool as_wanted = r < 0 && want && strstr(e.text, want);
		if (!as_wanted)
			dprintf(STDERR_FILENO, "%d: %s\n", r, e.text);
		_exit(as_wanted ? 100 : 101);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void check_args(void **state, const char *want)
{
	cleanup_free char *text = NULL;
	assert_int_equal(file_read_at(fixture_dir(state), "args", 65536, &text, NULL), 0);
	char *uuid = strrchr(text, '-');
	uuid = uuid ? uuid - (UUID_TEXT_LEN - 13) : text;
	assert_int_equal(strlen(uuid), UUID_TEXT_LEN + 1); /* the last, and a newline */
	*uuid = '\0';
	assert_string_equal(text, want);
}

static void test_arguments(void **state)
{
	char want[PATH_MAX + 512];
	CLEANUP(places_deinit) struct places p;
	CLEANUP(run_request_deinit) struct run_request q;
	make_places(state, &p);
	run_request_init(&q);
	q.is_mutable = true;
	assert_int_equal(run(&p, &q, NULL), 7);
	snprintf(want, sizeof(want), "--cache-dir=%s/cache\n--start-ns=0\n", p.data);
	check_args(state, want);
	/*
	 * Each option by itself would do; all at once show the order, too: theirs are before
	 * --start.
	 */
	q.debug = q.interactive = q.all_capabilities = q.no_seccomp = true;
	q.hostname = "name";
	q.start_ns = 5;
	assert_int_equal(strv_add(&q.stage1_options, "--memory=1Gi"), 0);
	assert_int_equal(run(&p, &q, NULL), 7);
	snprintf(want, sizeof(want),
		 "--debug\n--interactive\n--disable-capabilities-restriction\n--disable-seccomp\n"
		 "--hostname=name\n--cache-dir=%s/cache\n--memory=1Gi\n--start-ns=5\n",
		 p.data);
	check_args(state, want);
	assert_int_equal(count_pods(&p, 1U << POD_RUN), 2);
	assert_int_equal(count_pods(&p, ALL_PHASES), 2);
}

/* Whatever fails before stage1 is there leaves no pod; only the exec leaves one that has ended. */
static void test_failures(void **state)
{
	CLEANUP(places_deinit) struct places p;
	CLEANUP(run_request_deinit) struct run_request q;
	char none[PATH_MAX + 16];
	make_places(state, &p);
	run_request_init(&q);
	q.is_mutable = true;
	snprintf(none, sizeof(none), "%s/none/uuid", fixture_path(state));
	q.uuid_file = none;
	assert_int_equal(run(&p, &q, "--uuid-file-save: cannot write"), 100);
	q.uuid_file = NULL;
	put_stage1(state, MANIFEST(), RUN_SCRIPT);
	assert_int_equal(run(&p, &q, "stage1 does not support mutable pods"), 100);
	put_stage1(state, "", RUN_SCRIPT);
	assert_int_equal(run(&p, &q, "manifest"), 100);
	put_stage1(state, MANIFEST(VERBS), RUN_SCRIPT);
	struct app_options *app;
	assert_int_equal(run_request_add_app(&q, "/nonexistent", &app), 0);
	assert_int_equal(run(&p, &q, "/nonexistent"), 100);
	assert_int_equal(count_pods(&p, ALL_PHASES), 0);
	q.n_apps = 0;
	put_stage1(state, MANIFEST(VERBS), "#!/nonexistent/interpreter\n");
	assert_int_equal(run(&p, &q, "cannot execute"), 100);
	assert_int_equal(count_pods(&p, ALL_PHASES), 1);
	assert_int_equal(count_pods(&p, 1U << POD_RUN), 1);
}

static void test_uuid_file(void **state)
{
	CLEANUP(places_deinit) struct places p;
	CLEANUP(run_request_deinit) struct run_request q;
	char file[PATH_MAX + 16];
	make_places(state, &p);
	run_request_init(&q);
	snprintf(file, sizeof(file), "%s/uuid", fixture_path(state));
	q.is_mutable = true;
	q.uuid_file = file;
	assert_int_equal(run(&p, &q, NULL), 7);
	cleanup_free char *text = NULL;
	size_t len;
	assert_int_equal(file_read_at(fixture_dir(state), "uuid", 64, &text, &len), 0);
	assert_int_equal(len, UUID_TEXT_LEN);
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod pod = POD_INIT;
	assert_int_equal(pods_open(p.data_fd, false, &ps, NULL), 0);
	assert_int_equal(pod_open(ps, text, &pod, NULL), 0);
	assert_int_equal(pod.phase, POD_RUN);
	assert_false(pod.locked); /* stage1 has ended, and nobody else held it */
}

/* As `husk run` does it in the background. */
static void test_detached(void **state)
{
	struct uuid uuid;
	struct err e = ERR_INIT;
	CLEANUP(places_deinit) struct places p;
	CLEANUP(run_request_deinit) struct run_request q;
	make_places(state, &p);
	run_request_init(&q);
	q.is_mutable = q.detach = true;
	int result[2], status, said = 0;
	for (int i = 0; i < 2; i++) { /* it is up; it ends before */
		put_stage1(state, MANIFEST(VERBS),
			   i == 0 ? RUN_SCRIPT ": >ready\n"
				  : RUN_SCRIPT "echo 'stage1: why' >&2\nexit 254\n");
		assert_int_equal(pipe2(result, O_CLOEXEC), 0);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			said = run_pod(&q, p.data_fd, p.data, p.stage1, &uuid, &e);
			if (said < 0 && strcmp(e.text, "stage1: why") != 0)
				said = 0;
			_exit(write(result[1], &said, sizeof(said)) != sizeof(said));
		}
		fd_close(result[1]);
		assert_int_equal(read(result[0], &said, sizeof(said)), sizeof(said));
		fd_close(result[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(said, i == 0 ? RUN_DETACHED : -EIO);
	}
	assert_int_equal(count_pods(&p, ALL_PHASES), 2);
}

/* A prepared pod: what is of the run only is not looked at. */
static void prepare(const struct places *p, struct uuid *ret)
{
	struct err e = ERR_INIT;
	CLEANUP(run_request_deinit) struct run_request q;
	static struct stage1 stage1;
	run_request_init(&q);
	if (stage1_open(p->stage1, &stage1, &e) < 0 ||
	    pod_prepare_only(&q, p->data_fd, p->data, &stage1, ret, &e) < 0)
		fail_msg("%s", e.text);
	/* Only a mutable pod may be without apps. */
	static const char manifest[] =
		"{\"acVersion\":\"0.8.11\",\"acKind\":\"PodManifest\",\"apps\":[],"
		"\"annotations\":[{\"name\":\"husk/mutable\",\"value\":\"true\"}]}";
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "pods/prepared/%s/pod", ret->text);
	cleanup_fd int fd = openat(p->data_fd, path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(fd_write_all(fd, manifest, strlen(manifest)), 0);
}

/* Runs the prepared pod in a child, which becomes stage1, and tells its exit code. */
static int become_stage1(const struct run_request *q, struct pods *ps, struct pod *pod,
			 const struct places *p)
{
	struct err e = ERR_INIT;
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		run_prepared(q, ps, pod, p->data, p->stage1, &e);
		_exit(100);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void test_prepared(void **state)
{
	struct uuid uuid;
	struct err e = ERR_INIT;
	CLEANUP(places_deinit) struct places p;
	CLEANUP(run_request_deinit) struct run_request q;
	cleanup_pods struct pods *ps = NULL;
	make_places(state, &p);
	run_request_init(&q);
	prepare(&p, &uuid);
	assert_int_equal(count_pods(&p, 1U << POD_PREPARED), 1);
	assert_int_equal(pods_open(p.data_fd, true, &ps, &e), 0);
	/* Two saw it prepared; one is first. */
	cleanup_pod struct pod first = POD_INIT, second = POD_INIT;
	assert_int_equal(pod_open(ps, uuid.text, &first, &e), 0);
	assert_int_equal(pod_open(ps, uuid.text, &second, &e), 0);
	assert_int_equal(become_stage1(&q, ps, &first, &p), 7);
	assert_int_equal(count_pods(&p, 1U << POD_RUN), 1);
	assert_int_equal(run_prepared(&q, ps, &second, p.data, p.stage1, &e), -EINVAL);
	assert_non_null(strstr(e.text, "it has moved on"));
	cleanup_pod struct pod ended = POD_INIT;
	assert_int_equal(pod_open(ps, uuid.text, &ended, &e), 0);
	assert_int_equal(run_prepared(&q, ps, &ended, p.data, p.stage1, &e), -EINVAL);
	assert_null(strstr(e.text, "moved on"));
	assert_non_null(strstr(e.text, "is not prepared"));
	assert_false(ended.lock_is_ours);
	assert_int_equal(count_pods(&p, ALL_PHASES), 1);
}

static void put_manifest(const struct pod *p, const char *apps)
{
	char text[1024];
	int len = snprintf(text, sizeof(text),
			   "{\"acVersion\":\"0.8.11\",\"acKind\":\"PodManifest\",\"apps\":[%s]}",
			   apps);
	assert_int_equal(file_write_at(p->fd, POD_FILE_MANIFEST, text, (size_t)len, 0600), 0);
}

#define APP(name)                                                          \
	"{\"name\":\"" name "\",\"image\":{\"id\":\"sha256-00\"},\"app\":" \
	"{\"exec\":[\"/bin/true\"]}}"

static void test_prepared_interactive(void **state)
{
	struct uuid uuid;
	struct err e = ERR_INIT;
	CLEANUP(places_deinit) struct places p;
	CLEANUP(run_request_deinit) struct run_request q;
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod pod = POD_INIT;
	make_places(state, &p);
	run_request_init(&q);
	q.interactive = true;
	prepare(&p, &uuid);
	assert_int_equal(pods_open(p.data_fd, true, &ps, &e), 0);
	assert_int_equal(pod_open(ps, uuid.text, &pod, &e), 0);
	put_manifest(&pod, APP("a") "," APP("b"));
	assert_int_equal(run_prepared(&q, ps, &pod, p.data, p.stage1, &e), -EINVAL);
	assert_string_equal(e.text, "interactive option only supports pods with one app");
	put_manifest(&pod, "no JSON");
	assert_true(run_prepared(&q, ps, &pod, p.data, p.stage1, &e) < 0);
	/* Nobody has touched it: it can be run. */
	assert_int_equal(count_pods(&p, 1U << POD_PREPARED), 1);
	assert_false(pod.lock_is_ours);
	put_manifest(&pod, APP("a"));
	assert_int_equal(become_stage1(&q, ps, &pod, &p), 7);
}

/* The host name is the one that was said at its preparation, unless another one is said now. */
static void test_prepared_hostname(void **state)
{
	static const char *const said[] = { NULL, "now" };
	CLEANUP(places_deinit) struct places p;
	make_places(state, &p);
	for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
		static const char manifest[] =
			"{\"acVersion\":\"0.8.11\",\"acKind\":\"PodManifest\",\"apps\":[],"
			"\"annotations\":[{\"name\":\"husk/mutable\",\"value\":\"true\"},"
			"{\"name\":\"husk/hostname\",\"value\":\"before\"}]}";
		CLEANUP(run_request_deinit) struct run_request q;
		cleanup_pods struct pods *ps = NULL;
		cleanup_pod struct pod pod = POD_INIT;
		struct uuid uuid;
		struct err e = ERR_INIT;
		char want[PATH_MAX + 64];
		run_request_init(&q);
		q.hostname = said[i];
		prepare(&p, &uuid);
		assert_int_equal(pods_open(p.data_fd, true, &ps, &e), 0);
		assert_int_equal(pod_open(ps, uuid.text, &pod, &e), 0);
		assert_int_equal(
			file_write_at(pod.fd, POD_FILE_MANIFEST, manifest, strlen(manifest), 0600),
			0);
		assert_int_equal(become_stage1(&q, ps, &pod, &p), 7);
		snprintf(want, sizeof(want), "--hostname=%s\n--cache-dir=%s/cache\n--start-ns=0\n",
			 said[i] ? said[i] : "before", p.data);
		check_args(state, want);
	}
}

static void test_app_limit(void **state)
{
	(void)state;
	struct app_options *app = NULL;
	CLEANUP(run_request_deinit) struct run_request q;
	run_request_init(&q);
	for (int i = 0; i < AGENT_APPS_MAX; i++) {
		assert_int_equal(run_request_add_app(&q, "image", &app), 0);
		assert_ptr_equal(app, &q.apps[i]);
		assert_string_equal(app->image, "image");
	}
	assert_int_equal(run_request_add_app(&q, "image", &app), -E2BIG);
	assert_int_equal(q.n_apps, AGENT_APPS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_arguments),         fixture_test(test_failures),
		fixture_test(test_uuid_file),         fixture_test(test_detached),
		fixture_test(test_prepared),          fixture_test(test_prepared_interactive),
		fixture_test(test_prepared_hostname), fixture_test(test_app_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
