/* SPDX-License-Identifier: Apache-2.0 */
/* The children that become apps, without an agent around them. */
#include "guest-agent/app/execute.h"
#include "guest-agent/app/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-agent/app/cgroup.h"
#include "guest-agent/app/confine.h"
#include "guest-agent/app/pidns.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "tests/support/fixture.h"

static const struct cgroup no_group = { .fd = -EBADF };
static char base[256], run_dir[300], disk_dir[300];
static const struct rootfs_config rootfs = { .run_dir = run_dir, .disk_dir = disk_dir };

/* An app of one process, and what launch() needs for it. */
struct subject {
	struct agent_app_add spec;
	struct confinement confinement;
	struct launched process;
	pid_t init;
	int out[2]; /* its standard output */
	struct fault fault;
};

static const char *in(const char *name)
{
	static char path[512];
	snprintf(path, sizeof(path), "%s/%s", base, name);
	return path;
}

/* The image is a directory with the program of the tests. */
static int begin(void **state)
{
	static const char *const dirs[] = { "run", "run/apps", "disks", "image", "image/bin" };
	struct fault f = { 0 };
	if (fixture_setup(state) != 0)
		return -1;
	snprintf(base, sizeof(base), "%s", fixture_path(state));
	snprintf(run_dir, sizeof(run_dir), "%s/run", base);
	snprintf(disk_dir, sizeof(disk_dir), "%s/disks", base);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdir(in(dirs[i]), 0755) < 0)
			return -1;
	cleanup_fd int from = open(GUEST_APP, O_RDONLY | O_CLOEXEC);
	cleanup_fd int to = open(in("image/bin/app"), O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	return file_copy_sparse(from, to) < 0 || symlink("../image", in("disks/1")) < 0 ||
			       rootfs_mount_scratch(&rootfs, -1, &f) != 0 ||
			       rootfs_mount_shm(&rootfs, &f) != 0
		       ? -1
		       : 0;
}

static int end(void **state)
{
	struct fault f;
	rootfs_discard_app(&rootfs, "a");
	umount2(in("run/shm"), 0);
	return rootfs_unmount_scratch(&rootfs, &f) | fixture_teardown(state);
}

static void subject_init(struct subject *s, const char *first, const char *second)
{
	char empty[ROOTFS_PATH_MAX];
	*s = (struct subject){ .process = LAUNCHED_INIT };
	agent_app_add_init(&s->spec);
	memcpy(s->spec.app, "a", 2);
	s->spec.lun = 1;
	assert_int_equal(strv_add(&s->spec.process.exec, "/bin/app"), 0);
	assert_int_equal(strv_add(&s->spec.process.exec, first), 0);
	assert_int_equal(strv_add(&s->spec.process.exec, second), 0);
	s->spec.confinement.capabilities = AGENT_CAPABILITIES_DEFAULT;
	assert_int_equal(confinement_init(&s->confinement, &s->spec.confinement, &s->fault), 0);
	assert_int_equal(pipe2(s->out, O_CLOEXEC), 0);
	assert_int_equal(pidns_new(rootfs_empty_path(&rootfs, empty), &s->init), 0);
}

static int status_of(pid_t pid)
{
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void subject_deinit(struct subject *s)
{
	launched_deinit(&s->process);
	kill(s->init, SIGKILL);
	status_of(s->init);
	agent_app_add_deinit(&s->spec);
	confinement_deinit(&s->confinement);
	close(s->out[0]);
}

/* The only one with the writing end of the output is the process, afterwards. */
static void begin_launch(struct subject *s)
{
	cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const struct launch l = { .rootfs = &rootfs,
				  .names.hostname = "host",
				  .spec = &s->spec,
				  .confinement = &s->confinement,
				  .init = s->init,
				  .cgroup = &no_group,
				  .stdio = { null, s->out[1], null },
				  .devpts_fd = -EBADF };
	if (launch(&l, &s->process, &s->fault) != 0)
		fail_msg("%s", s->fault.text);
	close(s->out[1]);
}

static int hear(const struct subject *s, struct fault *ret)
{
	struct pollfd p = { .fd = s->process.hear_fd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 120000), 1);
	return launch_hear(&s->process, ret);
}

static const char *output(const struct subject *s)
{
	static char text[256];
	size_t len = 0;
	assert_int_equal(fd_read_full(s->out[0], text, sizeof(text) - 1, &len), 0);
	text[len] = '\0';
	return text;
}

/* It says that it has mounted, waits, and executes its program when it is released, not before. */
static void test_release(void **state)
{
	(void)state;
	struct subject s;
	struct fault f = { .code = 1 };
	subject_init(&s, "mode", "/bin/app");
	begin_launch(&s);
	assert_int_equal(hear(&s, &f), 0);
	assert_int_equal(f.code, 0);
	assert_int_equal(launch_hear(&s.process, &f), -EAGAIN);
	assert_false(launch_has_executed(&s.process));
	struct pollfd p = { .fd = s.out[0], .events = POLLIN };
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(launch_release(&s.process), 0);
	assert_string_equal(output(&s), "/bin/app 100755 0:0\n");
	assert_int_equal(status_of(s.process.pid), 0);
	assert_true(launch_has_executed(&s.process));
	assert_int_equal(launch_hear(&s.process, &f), -EPIPE);
	subject_deinit(&s);
}

/* Released before it looks for that: the same. */
static void test_release_at_once(void **state)
{
	(void)state;
	struct subject s;
	subject_init(&s, "exit", "6");
	begin_launch(&s);
	assert_int_equal(launch_release(&s.process), 0);
	assert_int_equal(WEXITSTATUS(status_of(s.process.pid)), 6);
	subject_deinit(&s);
}

/* Nobody will release it any more: it ends, and executes nothing. */
static void test_abandon(void **state)
{
	(void)state;
	struct subject s;
	struct fault f;
	subject_init(&s, "mode", "/bin/app");
	begin_launch(&s);
	assert_int_equal(hear(&s, &f), 0);
	launch_abandon(&s.process);
	assert_int_equal(WEXITSTATUS(status_of(s.process.pid)), EXECUTE_EXIT_CODE);
	assert_string_equal(output(&s), "");
	subject_deinit(&s);
}

/* What cannot be mounted is said, and nothing is waited for or left. */
static void test_no_image(void **state)
{
	(void)state;
	struct subject s;
	struct fault f;
	fd_close(open(in("disks/2"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	subject_init(&s, "exit", "0");
	s.spec.lun = 2;
	begin_launch(&s);
	assert_int_equal(hear(&s, &f), 0);
	assert_int_equal(f.code, AGENT_E_DISK);
	assert_int_equal(WEXITSTATUS(status_of(s.process.pid)), EXECUTE_EXIT_CODE);
	assert_int_equal(access(in("run/apps/a"), F_OK), -1);
	subject_deinit(&s);
}

/* What fails behind the release is said, too. */
static void test_no_program(void **state)
{
	(void)state;
	struct subject s;
	struct fault f;
	subject_init(&s, "", "");
	strv_deinit(&s.spec.process.exec);
	assert_int_equal(strv_add(&s.spec.process.exec, "/nothing"), 0);
	begin_launch(&s);
	assert_int_equal(launch_release(&s.process), 0);
	assert_int_equal(hear(&s, &f), 0);
	assert_int_equal(f.code, 0);
	assert_int_equal(hear(&s, &f), 0);
	assert_string_equal(f.text, "Unable to open \"/nothing\": No such file or directory");
	assert_int_equal(WEXITSTATUS(status_of(s.process.pid)), EXECUTE_EXIT_CODE);
	subject_deinit(&s);
}

/* In a namespace that has ended nothing begins, and no descriptor is left. */
static void test_ended_namespace(void **state)
{
	(void)state;
	struct subject s;
	siginfo_t info;
	subject_init(&s, "exit", "0");
	assert_int_equal(kill(s.init, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)s.init, &info, WEXITED | WNOWAIT), 0);
	const struct launch l = { .rootfs = &rootfs,
				  .names.hostname = "host",
				  .spec = &s.spec,
				  .confinement = &s.confinement,
				  .init = s.init,
				  .cgroup = &no_group,
				  .devpts_fd = -EBADF };
	assert_int_equal(launch(&l, &s.process, &s.fault), FAULT_SET);
	assert_int_equal(s.fault.code, AGENT_E_STATE);
	assert_string_equal(s.fault.text, "app \"a\" has ended");
	close(s.out[1]);
	subject_deinit(&s);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		puts("SKIP: namespaces and mounts need root");
		return 77;
	}
	sigset_t all; /* as in the agent */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	const struct CMUnitTest tests[] = {
		TEST(test_release),  TEST(test_release_at_once), TEST(test_abandon),
		TEST(test_no_image), TEST(test_no_program),      TEST(test_ended_namespace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
