/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of `tools/bench boot`: what QEMU, the guest kernel and the agent cost without husk.
 *
 *   bench-floor --kernel=small|packaged --accel=tcg|kvm --machine=M --rootfs=FILE --scratch=FILE
 *               --vsock=user|kernel --vsock-program=FILE
 *
 * Starts QEMU with the argv that husk would use (same plan, same kernel, same initramfs, same
 * disks), waits for the agent's first byte on vsock, tells it to power off, waits for the end of
 * QEMU and of husk-vsock, the last of which frees the guest's memory. Prints
 * milliseconds: "agent T1 total T2". No probe, no pod directory, no app.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1-kvm/plan/plan.h"
#include "stage1-kvm/run/control.h"
#include "stage1-kvm/run/dial.h"
#include "stage1-kvm/run/facts.h"
#include "stage1-kvm/run/machine.h"

#define RETRY_NS (50 * NS_PER_MS)

struct floor {
	struct loop loop;
	struct machine machine;
	struct dial_target target;
	struct dial dial;
	struct control control;
	struct loop_timer retry;
	int64_t agent_ns;
	bool failed;
};

static const char secret[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void dial(struct floor *f);

static void on_reply(void *ctx, int id, const struct rpc_msg *msg)
{
	struct floor *f = ctx;
	(void)msg;
	if (id != 0) {
		control_close(&f->control); /* the agent powers off now */
		return;
	}
	f->agent_ns = clock_monotonic_ns();
	const struct agent_pod_shutdown m = { .grace_ms = 0 };
	struct json_object *body = NULL;
	if (agent_pod_shutdown_encode(&m, &body) < 0 ||
	    control_call(&f->control, 1, AGENT_POD_SHUTDOWN, body) < 0)
		f->failed = true;
}

static void on_notification(void *ctx, const struct rpc_msg *msg)
{
	(void)ctx;
	(void)msg;
}

static void on_closed(void *ctx, const struct err *why)
{
	(void)ctx;
	(void)why; /* the guest powers off */
}

static const struct control_ops control_ops = { on_reply, on_notification, on_closed };

static void on_retry(void *ctx)
{
	dial(ctx);
}

static void on_dialed(void *ctx, int fd)
{
	struct floor *f = ctx;
	if (fd < 0) {
		loop_timer_arm(&f->loop, &f->retry, clock_monotonic_ns() + RETRY_NS, on_retry, f);
		return;
	}
	struct agent_hello m = { .version_min = AGENT_VERSION_MIN,
				 .version_max = AGENT_VERSION_MAX };
	memcpy(m.secret, secret, AGENT_SECRET_LEN);
	struct json_object *body = NULL;
	if (control_open(&f->control, &f->loop, fd, &control_ops, f) < 0 ||
	    agent_hello_encode(&m, &body) < 0 ||
	    control_call(&f->control, 0, AGENT_HELLO, body) < 0)
		f->failed = true;
}

static void dial(struct floor *f)
{
	if (!f->dial.loop && !f->control.loop)
		dial_start(&f->dial, &f->loop, &f->target, AGENT_PORT, on_dialed, f);
}

static void on_console(void *ctx)
{
	dial(ctx);
}

static void on_qmp_up(void *ctx)
{
	(void)ctx;
}

static void on_qemu_ended(void *ctx, const char *how)
{
	struct floor *f = ctx;
	if (f->agent_ns == 0) {
		fprintf(stderr, "bench-floor: QEMU: %s\n", how);
		f->failed = true;
	}
	loop_quit(&f->loop);
}

static void on_disk_error(void *ctx)
{
	(void)ctx;
}

static const struct machine_ops machine_ops = { on_console, on_qmp_up, on_disk_error, on_qemu_ended,
						on_qemu_ended };

struct arguments {
	const char *kernel, *accel, *machine, *vsock, *vsock_program, *rootfs, *scratch, *kernels;
};

static int parse(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = {
		{ "kernel", required_argument, NULL, 'k' },
		{ "accel", required_argument, NULL, 'a' },
		{ "machine", required_argument, NULL, 'm' },
		{ "rootfs", required_argument, NULL, 'r' },
		{ "scratch", required_argument, NULL, 's' },
		{ "vsock", required_argument, NULL, 'c' },
		{ "vsock-program", required_argument, NULL, 'v' },
		{ "kernels", required_argument, NULL, 'd' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		const char **slot = opt == 'k'   ? &a->kernel
				    : opt == 'a' ? &a->accel
				    : opt == 'm' ? &a->machine
				    : opt == 'r' ? &a->rootfs
				    : opt == 's' ? &a->scratch
				    : opt == 'd' ? &a->kernels
				    : opt == 'c' ? &a->vsock
				    : opt == 'v' ? &a->vsock_program
						 : NULL;
		if (!slot)
			return -EINVAL;
		*slot = optarg;
	}
	return a->vsock_program && a->rootfs && a->scratch && a->kernels ? 0 : -EINVAL;
}

static int make_plan(const struct arguments *a, struct facts *facts, struct plan *plan,
		     struct err *e)
{
	/* A manifest with one app, so that the argv has the same disks. */
	CLEANUP(pod_manifest_deinit) struct pod_manifest manifest;
	pod_manifest_init(&manifest);
	CLEANUP(pod_app_deinit) struct pod_app app;
	pod_app_init(&app);
	strcpy(app.name, "app");
	if (strv_add(&app.exec, "true") < 0 || pod_manifest_add(&manifest, &app) < 0)
		return -ENOMEM;
	struct plan_options options = { 0 }; /* the sizes that husk takes by itself */
	if (a->accel && plan_accel_parse(a->accel, &options.accel) < 0)
		return err_set(e, -EINVAL, "--accel");
	if (a->machine && plan_machine_parse(a->machine, &options.machine) < 0)
		return err_set(e, -EINVAL, "--machine");
	if (a->vsock && plan_vsock_parse(a->vsock, &options.vsock) < 0)
		return err_set(e, -EINVAL, "--vsock");
	const struct facts_options where = { .kernel = a->kernel, .kernels = a->kernels };
	int r = facts_collect(&where, options.accel, options.vsock, facts, e);
	if (r < 0)
		return r;
	struct plan_host host;
	facts_to_plan(facts, &host);
	return plan_make(&manifest, &options, &host, plan, e);
}

static int run(const struct arguments *a, struct floor *f, struct err *e)
{
	CLEANUP(facts_deinit) struct facts facts = FACTS_INIT;
	CLEANUP(plan_deinit) struct plan plan = { 0 };
	int r = make_plan(a, &facts, &plan, e);
	if (r < 0)
		return r;
	cleanup_fd int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int rootfs = open(a->rootfs, O_RDONLY | O_CLOEXEC);
	cleanup_fd int scratch = open(a->scratch, O_RDWR | O_CLOEXEC);
	if (dir < 0 || rootfs < 0 || scratch < 0)
		return err_sys(e, -errno, "rootfs or scratch");
	const int disks[] = { rootfs, scratch };
	const struct machine_input in = { .vm = &plan.vm,
					  .facts = &facts,
					  .vsock_program = a->vsock_program,
					  .secret = secret,
					  .pod_fd = dir,
					  .disk_fds = disks,
					  .unprivileged_ids = geteuid() == 0,
					  .uid = 0x68000000u };
	f->target = machine_dial_target(&plan.vm);
	r = loop_init(&f->loop);
	int64_t start = clock_monotonic_ns(); /* what husk adds before this point is not floor */
	if (r == 0)
		r = machine_start(&f->machine, &f->loop, &in, &machine_ops, f, e);
	if (r < 0)
		return r;
	dial(f);
	r = loop_run(&f->loop);
	machine_deinit(
		&f->machine); /* husk ends when nothing is left of the VM, and so does this */
	if (r == 0 && !f->failed)
		printf("agent %.1f total %.1f\n", (double)(f->agent_ns - start) / NS_PER_MS,
		       (double)(clock_monotonic_ns() - start) / NS_PER_MS);
	return r;
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	struct arguments a = { 0 };
	static struct floor f;
	if (parse(argc, argv, &a) < 0) {
		fprintf(stderr, "usage: see tools/bench\n");
		return 2;
	}
	int r = run(&a, &f, &e);
	if (r < 0)
		fprintf(stderr, "bench-floor: %s\n", e.text);
	machine_deinit(&f.machine);
	return r < 0 || f.failed;
}
