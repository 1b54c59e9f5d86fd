/* SPDX-License-Identifier: Apache-2.0 */
/* With a stage1 whose entrypoints are shell scripts. */
#include "host/pod/running.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/pod/wait.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/lock.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

static struct stage1 stage1;

/* Makes a pod that runs and, with @script, the entrypoint at @slot of the stage1. */
static struct pod begin(void **state, struct pods **ret_ps, char *slot, const char *script)
{
	struct pod p = POD_INIT;
	struct err e = ERR_INIT;
	char text[512];
	memset(&stage1, 0, sizeof(stage1));
	snprintf(stage1.dir, sizeof(stage1.dir), "/s");
	if (slot) {
		int n = snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", script);
		fixture_write(state, "program", text, (size_t)n);
		assert_int_equal(fchmodat(fixture_dir(state), "program", 0755, 0), 0);
		snprintf(slot, PATH_MAX, "%s/program", fixture_path(state));
	}
	assert_int_equal(pods_open(fixture_dir(state), true, ret_ps, &e), 0);
	assert_int_equal(pod_create(*ret_ps, false, &p, &e), 0);
	assert_int_equal(pod_start(*ret_ps, &p, &e), 0);
	return p;
}

/* The pod as others see it. */
static struct pod open_again(struct pods *ps, const struct pod *held)
{
	struct pod p = POD_INIT;
	struct err e = ERR_INIT;
	assert_int_equal(pod_open(ps, held->uuid.text, &p, &e), 0);
	return p;
}

static void expect_file(const struct pod *p, const char *name, const char *want)
{
	cleanup_free char *text = NULL;
	assert_int_equal(file_read_at(p->fd, name, 1024, &text, NULL), 0);
	assert_string_equal(text, want);
}

/* Each state that a pod can be in: whether it runs, and whether it can be stopped. */
static void test_states(void **state)
{
	static const struct {
		enum pod_phase phase;
		bool locked;
		int need, stop;
	} cases[] = {
		{ POD_PREPARE, true, -EINVAL, -EINVAL },
		{ POD_PREPARED, false, -EINVAL, -EINVAL },
		{ POD_RUN, true, 0, 0 },
		{ POD_RUN, false, -EINVAL, POD_STOPPED },
		{ POD_EXITED_GARBAGE, false, -EINVAL, POD_STOPPED },
		{ POD_GARBAGE, false, -EINVAL, -EINVAL },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pod p = POD_INIT;
		struct err need = ERR_INIT, stop = ERR_INIT;
		p.phase = cases[i].phase;
		p.locked = cases[i].locked;
		snprintf(p.uuid.text, sizeof(p.uuid.text), "u");
		assert_int_equal(pod_need_running(&p, &need), cases[i].need);
		assert_int_equal(pod_may_stop(&p, &stop), cases[i].stop);
		assert_string_equal(need.text,
				    cases[i].need ? "pod \"u\" isn't currently running" : "");
		assert_string_equal(stop.text, cases[i].stop < 0 ? "pod \"u\" is not running" : "");
	}
}

/* Returns when the lock is free, not when the entrypoint has ended. */
static void test_stop(void **state)
{
	struct err e = ERR_INIT;
	struct pods *ps = NULL;
	char want[128];
	struct pod held = begin(state, &ps, stage1.stop, "echo \"$@\" >args; : >asked");
	cleanup_pod struct pod p = open_again(ps, &held);
	assert_int_equal(mkfifoat(p.fd, "asked", 0600), 0);
	pid_t holder = fork(); /* has the lock with us, until it is asked */
	if (holder == 0) {
		cleanup_fd int asked = openat(held.fd, "asked", O_RDONLY | O_CLOEXEC);
		_exit(asked < 0);
	}
	pod_deinit(&held);
	assert_int_equal(pod_stop(&p, &stage1, true, true, &e), 0);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	snprintf(want, sizeof(want), "--debug --force %s\n", p.uuid.text);
	expect_file(&p, "args", want);
	assert_int_equal(lock_try_exclusive(p.fd), 0); /* ours was given up */
	pods_free(ps);
}

static void test_stop_fails(void **state)
{
	struct err e = ERR_INIT;
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = begin(state, &ps, stage1.stop, "exit 1");
	assert_int_equal(pod_stop(&p, &stage1, false, false, &e), -EIO);
	stage1.stop[0] = '\0';
	assert_int_equal(pod_stop(&p, &stage1, false, false, &e), -EOPNOTSUPP);
	assert_string_equal(e.text, "stage1 \"/s\" cannot stop pods");
}

/* Our own stage1 tells when the apps are there; one of rkt's is not waited for. */
static void test_wait(void **state)
{
	struct err e = ERR_INIT;
	cleanup_pods struct pods *ps = NULL;
	CLEANUP(pod_info_deinit) struct pod_info info = POD_INFO_INIT;
	struct pod held = begin(state, &ps, NULL, NULL);
	cleanup_pod struct pod p = open_again(ps, &held);
	stage1.abi = STAGE1_ABI_RKT;
	assert_int_equal(pod_wait_apps(ps, &p, &stage1, &e), 0);
	stage1.abi = STAGE1_ABI_HUSK;
	assert_int_equal(file_touch_at(held.fd, POD_FILE_READY, 0640), 0);
	assert_int_equal(pod_enter_wait(ps, &p, &stage1, &info, &e), 0);
	assert_string_equal(info.uuid.text, p.uuid.text);
	assert_int_equal(unlinkat(held.fd, POD_FILE_READY, 0), 0);
	pod_deinit(&held); /* it ends before it is ready: entering says that, attaching why */
	assert_int_equal(pod_enter_wait(ps, &p, &stage1, &info, &e), -EINVAL);
	assert_non_null(strstr(e.text, "isn't currently running"));
	assert_int_equal(pod_wait_apps(ps, &p, &stage1, &e), -EINVAL);
	assert_non_null(strstr(e.text, "ended before it was ready"));
}

/* Becomes the entrypoint in a child, which writes its arguments into the pod. */
static void run_child(const struct pod *p, bool attaches)
{
	int status = 0;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct strv env = { .v = NULL };
		char *const command[] = { (char[]){ "ls" }, NULL };
		const struct abi_enter enter = { .app = "web", .env = &env, .command = command };
		const struct abi_attach attach = { .app = "web" };
		struct err e = ERR_INIT;
		if (attaches)
			pod_attach(p, &stage1, &attach, &e);
		else
			pod_enter(p, &stage1, &enter, 1, &e);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_enter_and_attach(void **state)
{
	struct err e = ERR_INIT;
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = begin(state, &ps, stage1.enter, "echo \"$@\" >args");
	const struct abi_attach attach = { .app = "web" };
	run_child(&p, false);
	expect_file(&p, "args", "--appname=web -- ls\n");
	assert_int_equal(pod_attach(&p, &stage1, &attach, &e), -EOPNOTSUPP);
	memcpy(stage1.attach, stage1.enter, sizeof(stage1.attach));
	run_child(&p, true);
	expect_file(&p, "args", "--action=auto-attach --app=web\n");
}

static void test_stats(void **state)
{
	static const struct {
		const char *script;
		int result;
		const char *error;
	} cases[] = {
		{ "printf '%s ' \"$@\"", 0, "" },
		{ "echo why >/dev/null; exit 3", -EIO, "" }, /* it was said */
		{ "kill -KILL $$", -EIO, "was killed by signal 9" },
		{ "exec cat /dev/zero", -EMSGSIZE, "output of" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e = ERR_INIT;
		cleanup_buf struct buf out;
		cleanup_pods struct pods *ps = NULL;
		char want[128];
		cleanup_pod struct pod p = begin(state, &ps, stage1.stats, cases[i].script);
		buf_init(&out, 256);
		assert_int_equal(
			pod_stats(&p, &stage1, (struct abi_stats){ .app = "web" }, &out, &e),
			cases[i].result);
		assert_non_null(strstr(e.text, cases[i].error));
		assert_int_equal(e.text[0] == '\0', cases[i].error[0] == '\0');
		if (i > 0)
			continue;
		snprintf(want, sizeof(want), "--debug=false --uuid=%s --app=web ", p.uuid.text);
		assert_int_equal(buf_len(&out), strlen(want));
		assert_memory_equal(buf_data(&out), want, strlen(want));
		stage1.stats[0] = '\0';
		assert_int_equal(pod_stats(&p, &stage1, (struct abi_stats){ 0 }, &out, &e),
				 -EOPNOTSUPP);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_states),           fixture_test(test_stop),
		fixture_test(test_stop_fails),       fixture_test(test_wait),
		fixture_test(test_enter_and_attach), fixture_test(test_stats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
