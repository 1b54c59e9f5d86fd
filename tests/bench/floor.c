/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of `tools/bench boot`: what QEMU, the guest kernel and the agent cost without husk.
 *
 *   bench-floor --kernel=small|packaged --accel=tcg|kvm --machine=M --vsock=user|kernel
 *               --rootfs=FILE --cache-dir=DIRECTORY
 *
 * Starts QEMU as husk does (the same backend with the same kernel and disks), waits for the agent's
 * first byte on vsock, tells it to power off, waits for the end of QEMU and of husk-vsock, the last
 * of which frees the guest's memory. Prints milliseconds: "agent T1 total T2". No probe, no pod
 * directory, no app.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "stage1/agent/control.h"
#include "stage1/backend.h"

#define RETRY_NS (50 * NS_PER_MS)

struct floor {
	struct loop loop;
	struct backend_pod *pod;
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
		dial_start(&f->dial, &f->loop, &flavor_route, AGENT_PORT, on_dialed, f);
}

static void on_spoke(void *ctx)
{
	dial(ctx);
}

static void on_reached(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
}

static void on_disk_error(void *ctx)
{
	(void)ctx;
}

static void on_ended(void *ctx, const struct err *why)
{
	struct floor *f = ctx;
	if (f->agent_ns == 0) {
		fprintf(stderr, "bench-floor: %s\n", why->text);
		f->failed = true;
	}
	loop_quit(&f->loop);
}

static void on_suspended(void *ctx, bool is)
{
	(void)ctx;
	(void)is;
}

static const struct backend_events events = { .spoke = on_spoke,
					      .reached = on_reached,
					      .disk_error = on_disk_error,
					      .suspended = on_suspended,
					      .helper_ended = on_ended,
					      .ended = on_ended };

struct arguments {
	const char *kernel, *accel, *machine, *vsock, *rootfs, *cache_dir;
};

static int parse(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = {
		{ "kernel", required_argument, NULL, 'k' },
		{ "accel", required_argument, NULL, 'a' },
		{ "machine", required_argument, NULL, 'm' },
		{ "rootfs", required_argument, NULL, 'r' },
		{ "cache-dir", required_argument, NULL, 'd' },
		{ "vsock", required_argument, NULL, 'c' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		const char **slot = opt == 'k'   ? &a->kernel
				    : opt == 'a' ? &a->accel
				    : opt == 'm' ? &a->machine
				    : opt == 'r' ? &a->rootfs
				    : opt == 'd' ? &a->cache_dir
				    : opt == 'c' ? &a->vsock
						 : NULL;
		if (!slot)
			return -EINVAL;
		*slot = optarg;
	}
	return a->rootfs && a->cache_dir ? 0 : -EINVAL;
}

/* The options of husk, whose backend this is. */
static int take_options(const struct arguments *a, struct backend_pod *pod, struct err *e)
{
	const char *const given[][2] = { { "kernel", a->kernel },
					 { "accel", a->accel },
					 { "machine", a->machine },
					 { "vsock", a->vsock } };
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(given); i++)
		if (given[i][1])
			r = flavor_backend.option(pod, given[i][0], given[i][1], e);
	return r;
}

/* A manifest with one app, so that the machine has the same disks. */
static int make_manifest(struct pod_manifest *manifest)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	pod_app_init(&app);
	strcpy(app.name, "app");
	return strv_add(&app.exec, "true") < 0 || pod_manifest_add(manifest, &app) < 0 ? -ENOMEM
										       : 0;
}

static int run(const struct arguments *a, struct floor *f, struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest manifest;
	struct agent_pod_setup setup = { 0 };
	pod_manifest_init(&manifest);
	cleanup_fd int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int rootfs = open(a->rootfs, O_RDONLY | O_CLOEXEC);
	if (dir < 0 || rootfs < 0)
		return err_sys(e, -errno, "rootfs");
	const struct backend_input in = { .pod_fd = dir,
					  .manifest = &manifest,
					  .cache_dir = a->cache_dir,
					  .secret = secret,
					  .unprivileged_ids = geteuid() == 0,
					  .uid = 0x68000000u };
	int r = make_manifest(&manifest);
	if (r == 0)
		r = loop_init(&f->loop);
	f->pod = flavor_backend.create();
	if (r < 0 || !f->pod)
		return err_sys(e, -ENOMEM, "pod");
	r = take_options(a, f->pod, e);
	if (r == 0)
		r = flavor_backend.prepare(f->pod, &in, &setup, e);
	int64_t start = clock_monotonic_ns(); /* what husk adds before this point is not floor */
	if (r == 0)
		r = flavor_backend.start(f->pod, &f->loop, &rootfs, &events, f, e);
	if (r == 0) {
		dial(f);
		r = loop_run(&f->loop);
	}
	/* husk ends when nothing is left of the VM, and so does this. */
	flavor_backend.free(f->pod);
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
	return r < 0 || f.failed;
}
