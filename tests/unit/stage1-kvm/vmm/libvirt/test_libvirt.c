/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver, and what it makes of a helper that dies, lies and floods: fake_helper.c, which lies
 * beside this program as husk-libvirt.
 */
#include "stage1-kvm/vmm/libvirt/libvirt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "stage1-kvm/plan/plan.h"
#include "stage1-kvm/vmm/libvirt/domain_dir.h"
#include "stage1-kvm/vmm/libvirt/uri.h"
#include "tests/support/fixture.h"
#include "tests/support/pods.h"

#define UUID   "6a2a4a4e-2f0e-4b8f-9a48-0c1d2e3f4a5b"
#define WAIT_S 120 /* for what hangs */

/* What the driver told. */
struct seen {
	struct loop loop;
	struct vmm *vmm;
	int up, disk_errors, suspended, resumed, console, ended;
	bool was_up;
	char how[512];
	int done, failed;
	char why[ERR_TEXT_MAX + 1];
	int console_fd; /* kept to the end where it says when QEMU has ended, else -EBADF */
	bool keeps_console;
	int most_per_turn;
};

static void on_up(void *ctx)
{
	((struct seen *)ctx)->up++;
}

static void on_console(void *ctx, int fd)
{
	struct seen *s = ctx;
	s->console++;
	if (s->keeps_console)
		s->console_fd = fd;
	else
		fd_close(fd);
}

static void on_suspended(void *ctx, bool is)
{
	struct seen *s = ctx;
	*(is ? &s->suspended : &s->resumed) += 1;
}

static void on_disk_error(void *ctx)
{
	((struct seen *)ctx)->disk_errors++;
}

static void on_ended(void *ctx, const char *how, bool was_up)
{
	struct seen *s = ctx;
	s->ended++;
	s->was_up = was_up;
	snprintf(s->how, sizeof(s->how), "%s", how);
}

static void on_done(void *ctx, const struct err *why, bool left)
{
	struct seen *s = ctx;
	s->done++;
	assert_int_equal(left, why != NULL);
	if (why) {
		s->failed++;
		snprintf(s->why, sizeof(s->why), "%s", why->text);
	}
}

static const struct vmm_events events = { .up = on_up,
					  .console = on_console,
					  .suspended = on_suspended,
					  .disk_error = on_disk_error,
					  .ended = on_ended };

/* Starts a machine whose helper plays @role, under the ids of @uid unless that is 0. */
static void start_as(struct seen *s, void **state, const char *role, uid_t uid)
{
	const struct plan_options opts = { .only_q35 = true, .vsock = PLAN_VSOCK_USER };
	const struct plan_host host = { .kernel = PLAN_KERNEL_SMALL };
	static struct pod_manifest pod;
	static struct vm vm;
	struct err e = ERR_INIT;
	int device = -EBADF, theirs = -EBADF;
	memset(s, 0, sizeof(*s));
	assert_int_equal(loop_init(&s->loop), 0);
	pod_make(&pod, 1, "x");
	assert_int_equal(plan_make(&pod, &opts, &host, &vm, NULL), 0);
	pod_manifest_deinit(&pod);
	cleanup_fd int any = memfd_create("any", MFD_CLOEXEC);
	const int disks[] = { any, any };
	const struct vmm_input in = { .vm = &vm,
				      .sources = { any, any, any, -EBADF, disks, NULL, -EBADF },
				      .pod_fd = fixture_dir(state),
				      .uuid = UUID,
				      .cache_dir = role,
				      .program = "/usr/bin/qemu",
				      .unprivileged_ids = uid != 0,
				      .uid = uid,
				      .uri = geteuid() == 0 ? LIBVIRT_URI_EMBED
							    : LIBVIRT_URI_SESSION };
	if (libvirt_driver.vsock_ends(&in, &device, &theirs, &e) < 0 ||
	    libvirt_driver.start(&s->loop, &in, &events, s, &s->vmm, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(theirs, -EBADF);
	fd_close(device);
}

static void start(struct seen *s, void **state, const char *role)
{
	start_as(s, state, role, 0);
}

static void turn(struct seen *s)
{
	int before = s->suspended + s->resumed;
	assert_int_equal(loop_turn(&s->loop), 0);
	int now = s->suspended + s->resumed - before;
	if (now > s->most_per_turn)
		s->most_per_turn = now;
}

static void wait_until(struct seen *s, const int *count, int least)
{
	int64_t end = clock_monotonic_ns() + WAIT_S * NS_PER_SEC;
	while (*count < least) {
		if (clock_monotonic_ns() > end || s->ended)
			fail_msg("nothing more happens: up %d, ended %d: %s", s->up, s->ended,
				 s->how);
		turn(s);
	}
}

static void stop(struct seen *s, void **state)
{
	char dir[DOMAIN_DIR_MAX + 1];
	assert_int_equal(domain_dir_path(fixture_dir(state), UUID, dir, NULL), 0);
	libvirt_driver.free(s->vmm);
	loop_deinit(&s->loop);
	fd_close(s->loop.epoll_fd);
	assert_int_equal(access(dir, F_OK), -1);
}

/* A file that has a path, of the driver. */
static int image_file(void **state)
{
	int fd = openat(fixture_dir(state), "image", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return fd;
}

static void test_life(void **state)
{
	struct seen s;
	start(&s, state, "good");
	assert_int_equal(libvirt_driver.unplug(s.vmm, 0, on_done, &s), -ENOTCONN);
	wait_until(&s, &s.up, 1);
	wait_until(&s, &s.console, 1);
	assert_int_equal(libvirt_driver.plug(s.vmm, 5, image_file(state), on_done, &s), 0);
	assert_int_equal(libvirt_driver.plug(s.vmm, 9, image_file(state), on_done, &s), 0);
	wait_until(&s, &s.done, 2);
	assert_int_equal(s.failed, 1);
	assert_string_equal(s.why, "disk 9 is bad");
	assert_int_equal(libvirt_driver.unplug(s.vmm, 5, on_done, &s), 0);
	wait_until(&s, &s.done, 3);
	assert_int_equal(s.failed, 1);
	/* As many as there can be, whatever a socket holds; the helper does one after the other. */
	for (int i = 0; i < AGENT_APPS_MAX; i++)
		assert_int_equal(libvirt_driver.unplug(s.vmm, i, on_done, &s), 0);
	assert_int_equal(libvirt_driver.plug(s.vmm, 9, image_file(state), on_done, &s), -E2BIG);
	wait_until(&s, &s.done, 3 + AGENT_APPS_MAX);
	assert_int_equal(s.failed, 2); /* disk 9 again */
	libvirt_driver.kill(s.vmm);
	wait_until(&s, &s.ended, 1);
	assert_true(s.was_up);
	stop(&s, state);
}

static void test_does_not_start(void **state)
{
	struct seen s;
	start(&s, state, "dies");
	wait_until(&s, &s.ended, 1);
	assert_false(s.was_up);
	assert_string_equal(s.how, "exit code 127: husk-libvirt: no such library");
	stop(&s, state);
	start(&s, state, "refuses");
	wait_until(&s, &s.ended, 1);
	assert_false(s.was_up);
	assert_non_null(strstr(s.how, "libvirt: "));
	assert_null(strchr(s.how, '\033'));
	assert_null(strchr(s.how, '\n'));
	stop(&s, state);
}

static void test_lies(void **state)
{
	struct seen s;
	start(&s, state, "nonsense");
	wait_until(&s, &s.ended, 1);
	stop(&s, state);
	start(&s, state, "again");
	wait_until(&s, &s.ended, 1);
	assert_int_equal(s.up, 1);
	assert_int_equal(s.disk_errors, 1);
	assert_string_equal(s.how, "it was destroyed");
	stop(&s, state);
	start(&s, state, "short");
	wait_until(&s, &s.up, 1);
	assert_int_equal(libvirt_driver.unplug(s.vmm, 5, on_done, &s), 0);
	wait_until(&s, &s.done, 1);
	stop(&s, state); /* while it runs */
}

/* The limits of the driver pass. */
static void hurry(struct seen *s)
{
	assert_non_null(s->loop.timers); /* else nothing would ever happen */
	for (struct loop_timer *t = s->loop.timers; t; t = t->next)
		t->deadline_ns = 0;
}

/* What nobody answers is given up, and the disk may be there: nobody gets its number again. */
static void test_no_answer(void **state)
{
	struct seen s;
	start(&s, state, "silent");
	wait_until(&s, &s.up, 1);
	assert_int_equal(libvirt_driver.plug(s.vmm, 5, image_file(state), on_done, &s), 0);
	turn(&s); /* in which it begins */
	hurry(&s);
	wait_until(&s, &s.done, 1);
	assert_int_equal(s.failed, 1);
	assert_string_equal(s.why, "libvirt does not answer");
	assert_int_equal(libvirt_driver.plug(s.vmm, 6, image_file(state), on_done, &s), 0);
	assert_int_equal(libvirt_driver.plug(s.vmm, 7, image_file(state), on_done, &s), 0);
	stop(&s, state); /* with one that waits */
}

/* A helper that hangs before there is a QEMU is given up, too, once the pod is to end. */
static void test_stuck(void **state)
{
	struct seen s;
	start(&s, state, "stuck");
	libvirt_driver.kill(s.vmm);
	hurry(&s);
	wait_until(&s, &s.ended, 1);
	assert_false(s.was_up);
	assert_string_equal(s.how, "killed by signal 9");
	stop(&s, state);
}

static void on_later(void *ctx)
{
	(void)ctx;
}

/* A QEMU without anybody who watches over it is ended before the pod is said to have. */
static void test_orphan(void **state)
{
	struct seen s;
	char byte;
	start(&s, state, "orphan");
	s.keeps_console = true;
	wait_until(&s, &s.ended, 1);
	assert_true(s.was_up);
	assert_string_equal(s.how, "exit code 6");
	assert_int_equal(s.console, 1);
	while (recv(s.console_fd, &byte, 1, MSG_DONTWAIT) == 1)
		;
	assert_int_equal(recv(s.console_fd, &byte, 1, MSG_DONTWAIT), 0); /* it has hung up */
	fd_close(s.console_fd);
	struct loop_timer later = { 0 }; /* its end is told once */
	loop_timer_arm(&s.loop, &later, clock_monotonic_ns() + 50 * NS_PER_MS, on_later, NULL);
	while (later.loop)
		turn(&s);
	assert_int_equal(s.ended, 1);
	stop(&s, state);
}

/* Whoever has gone when its connection is seen is not watched: its number may be another's. */
static void test_hangs_up(void **state)
{
	struct seen s;
	start(&s, state, "hangs-up");
	assert_int_equal(waitid(P_ALL, 0, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	wait_until(&s, &s.ended, 1);
	assert_int_equal(s.console, 0);
	assert_string_equal(s.how, "it hung up");
	stop(&s, state);
}

/* Where there is no daemon, QEMU runs as the user of the pod, or as who runs husk. */
static void test_identity(void **state)
{
	struct seen s;
	char own[16];
	snprintf(own, sizeof(own), "%u", geteuid());
	start(&s, state, "identity");
	wait_until(&s, &s.ended, 1);
	assert_string_equal(s.how, own);
	stop(&s, state);
	start_as(&s, state, "identity", 12345);
	wait_until(&s, &s.ended, 1);
	assert_string_equal(s.how, "12345");
	stop(&s, state);
}

/* Others get their turn between two parts of a flood. */
static void test_floods(void **state)
{
	struct seen s;
	start(&s, state, "floods");
	wait_until(&s, &s.resumed, 1000);
	assert_int_equal(s.suspended, 1000);
	assert_true(s.most_per_turn <= 64);
	stop(&s, state);
}

static void expect_asked(const char *uri, bool may_start, const char *text)
{
	struct err e = ERR_INIT;
	assert_int_equal(libvirt_driver.check(uri, may_start, &e), -EIO);
	assert_string_equal(e.text, text);
}

/* Nothing is begun, and no helper asked. */
static void expect_refused(const char *uri, void **state)
{
	struct err e = ERR_INIT;
	struct loop loop = { 0 };
	struct vmm *vmm = NULL;
	const struct vmm_input in = { .uri = uri, .pod_fd = fixture_dir(state), .uuid = UUID };
	assert_int_equal(libvirt_driver.check(uri, true, &e), -EPERM);
	assert_non_null(strstr(e.text, "needs root (give --libvirt-uri=" LIBVIRT_URI_SESSION ")"));
	e = ERR_INIT;
	assert_int_equal(libvirt_driver.start(&loop, &in, &events, NULL, &vmm, &e), -EPERM);
	assert_non_null(strstr(e.text, uri));
	assert_null(vmm);
}

/*
 * Who is not root has the libvirt of his own. Its daemon is started by who connects; so where
 * that is not wanted, only whether there is a library is asked. By its environment the caller would
 * tell the library what to load, and where to write.
 */
static void test_uri(void **state)
{
	int status = -1;
	fixture_dir(state);
	expect_asked(LIBVIRT_URI_SESSION, true, "asked " LIBVIRT_URI_SESSION);
	expect_asked(LIBVIRT_URI_SESSION, false, "asked " LIBVIRT_URI_EMBED);
	if (geteuid() == 0)
		expect_asked(LIBVIRT_URI_SYSTEM, false, "asked " LIBVIRT_URI_SYSTEM);
	pid_t child = fork();
	if (child == 0) {
		assert_true(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
		expect_refused(LIBVIRT_URI_SYSTEM, state);
		expect_refused(LIBVIRT_URI_EMBED, state);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int check_stuck(void)
{
	struct err e = ERR_INIT;
	alarm(WAIT_S); /* whoever waits for its helper ends */
	if (setenv("HOME", "stuck", 1) < 0 ||
	    libvirt_driver.check(LIBVIRT_URI_SESSION, true, &e) != -ETIMEDOUT)
		return 1;
	return strcmp(e.text, "libvirt: " LIBVIRT_URI_SESSION
			      ": it does not answer (restart its daemon)") != 0;
}

/* Whoever asks a daemon that hangs is told so: the helper that waits for it does not stay. */
static void test_check_stuck(void **state)
{
	int status = -1;
	(void)state;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(check_stuck());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_life),        fixture_test(test_does_not_start),
		fixture_test(test_lies),        fixture_test(test_floods),
		fixture_test(test_no_answer),   fixture_test(test_orphan),
		fixture_test(test_identity),    fixture_test(test_uri),
		fixture_test(test_hangs_up),    fixture_test(test_stuck),
		fixture_test(test_check_stuck),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
