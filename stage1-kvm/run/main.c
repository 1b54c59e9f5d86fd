/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run entrypoint of stage1-kvm: reads what stage0 prepared, looks at the host, plans, starts
 * the VM, supervises it, exits with the pod's status (docs/protocol-stage1.md).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/hex.h"
#include "lib/base/num.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/notify.h"
#include "lib/os/path.h"
#include "lib/os/sandbox.h"
#include "lib/wire/stage1.h"
#include "stage1-kvm/plan/plan.h"
#include "stage1-kvm/run/confine.h"
#include "stage1-kvm/run/facts.h"
#include "stage1-kvm/run/machine.h"
#include "stage1-kvm/run/options.h"
#include "stage1-kvm/run/podfiles.h"
#include "stage1-kvm/run/scratch.h"
#include "stage1-kvm/run/supervisor.h"
#include "stage1-kvm/run/timeline.h"

/*
 * User ids for the processes of one pod: from a range nobody else uses, by the pod's UUID.
 * Two pods that hash alike share an id but still no file, socket or descriptor.
 */
#define POD_UID_BASE 0x68000000u

struct run {
	struct options options;
	struct timeline timeline;
	int pod_fd;
	struct pod_manifest manifest;
	struct facts facts;
	struct plan plan;
	int disk_fds[VM_DISKS_MAX];
	char *notify; /* owned */
	char secret[AGENT_SECRET_LEN + 1];
	char hostname[AGENT_HOSTNAME_MAX + 1];
	char vsock_program[PATH_MAX];
};

static void run_init(struct run *run)
{
	memset(run, 0, sizeof(*run));
	run->pod_fd = -EBADF;
	run->facts = FACTS_INIT;
	for (size_t i = 0; i < VM_DISKS_MAX; i++)
		run->disk_fds[i] = -EBADF;
}

static void run_deinit(struct run *run)
{
	pod_manifest_deinit(&run->manifest);
	plan_deinit(&run->plan);
	facts_deinit(&run->facts);
	free(run->notify);
	for (size_t i = 0; i < VM_DISKS_MAX; i++)
		fd_close(run->disk_fds[i]);
	fd_close(run->pod_fd);
}

/*
 * The lock descriptor stays open for our life and goes to no child. Anything else that we inherited
 * by accident is closed.
 */
static int take_lock_fd(struct err *e)
{
	const char *text = getenv(STAGE1_ENV_LOCK_FD);
	uint64_t n;
	if (!text || num_parse_u64(text, INT_MAX, &n) < 0 || fcntl((int)n, F_GETFD) < 0)
		return err_set(e, -EINVAL,
			       "%s does not name the pod's lock (start pods with husk run)",
			       STAGE1_ENV_LOCK_FD);
	int fd = (int)n;
	int r = fd_set_cloexec(fd, true);
	if (r == 0)
		r = fd_close_others(&fd, 1);
	return r < 0 ? err_sys(e, r, "descriptors") : 0;
}

/* The service manager is ours to tell: no process of the pod gets to know of it. */
static int take_notify_socket(struct run *run, struct err *e)
{
	const char *name = getenv(NOTIFY_ENV);
	if (!name)
		return 0;
	run->notify = strdup(name);
	if (!run->notify || unsetenv(NOTIFY_ENV) < 0)
		return err_sys(e, -ENOMEM, NOTIFY_ENV);
	return 0;
}

static int parse_choice(int r, const char *option, const char *value, struct err *e)
{
	return r < 0 ? err_set(e, r, "--%s=%s: no such choice (see husk run --help)", option, value)
		     : 0;
}

static int plan_options(const struct options *o, struct plan_options *ret, struct err *e)
{
	struct plan_options p = { .memory_mib = (unsigned)(o->memory >> 20),
				  .cpus = (unsigned)o->cpus,
				  .debug = false };
	int r = 0;
	if (o->accel)
		r = parse_choice(plan_accel_parse(o->accel, &p.accel), "accel", o->accel, e);
	if (r == 0 && o->machine)
		r = parse_choice(plan_machine_parse(o->machine, &p.machine), "machine", o->machine,
				 e);
	if (r == 0 && o->vsock)
		r = parse_choice(plan_vsock_parse(o->vsock, &p.vsock), "vsock", o->vsock, e);
	if (r == 0)
		*ret = p;
	return r;
}

static int make_plan(struct run *run, struct err *e)
{
	struct plan_options options = { 0 };
	int r = plan_options(&run->options, &options, e);
	if (r < 0)
		return r;
	options.no_scratch = !run->options.cache_dir;
	const struct facts_options where = { .qemu = run->options.qemu,
					     .kernel = run->options.kernel };
	r = facts_collect(&where, options.accel, options.vsock, &run->facts, e);
	if (r < 0)
		return r;
	struct plan_host host;
	facts_to_plan(&run->facts, &host);
	return plan_make(&run->manifest, &options, &host, &run->plan, e);
}

/* Opens the disks in the order of the plan: a root per app, then the scratch disk. */
static int open_disks(struct run *run, struct err *e)
{
	size_t n = run->manifest.n_apps;
	for (size_t i = 0; i < n; i++) {
		run->disk_fds[i] = podfiles_open_rootfs(run->pod_fd, run->manifest.apps[i].name, e);
		if (run->disk_fds[i] < 0)
			return run->disk_fds[i];
	}
	if (!run->plan.with_scratch)
		return 0;
	run->disk_fds[n] =
		scratch_create(run->pod_fd, run->options.cache_dir, run->options.scratch_size, e);
	return run->disk_fds[n] < 0 ? run->disk_fds[n] : 0;
}

static int prepare(struct run *run, struct err *e)
{
	run->pod_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run->pod_fd < 0)
		return err_sys(e, -errno, "pod directory");
	int r = podfiles_read_manifest(run->pod_fd, &run->manifest, e);
	if (r == 0)
		r = podfiles_write_pid(run->pod_fd, e);
	if (r == 0)
		r = podfiles_make_secret(run->pod_fd, run->secret, e);
	if (r == 0)
		r = make_plan(run, e);
	if (r == 0)
		r = open_disks(run, e);
	if (r < 0)
		return r;
	if (path_from_self("husk-vsock", run->vsock_program, sizeof(run->vsock_program)) < 0)
		return err_set(e, -ENOENT,
			       "husk-vsock is not beside stage1's run (reinstall husk)");
	if (run->options.hostname)
		r = str_copy(run->hostname, sizeof(run->hostname), run->options.hostname);
	else
		snprintf(run->hostname, sizeof(run->hostname), "husk-%s", run->options.uuid);
	return r < 0 ? err_sys(e, r, "--hostname") : 0;
}

static uid_t pod_uid(const char *uuid)
{
	char digits[7] = { 0 };
	unsigned char bytes[3] = { 0 };
	memcpy(digits, uuid, sizeof(digits) - 1);
	hex_decode(digits, bytes, sizeof(bytes)); /* a valid UUID begins with eight digits */
	return POD_UID_BASE + ((uid_t)bytes[0] << 16 | (uid_t)bytes[1] << 8 | bytes[2]);
}

/*
 * From here on the guest talks to us. Of root's capabilities only that is kept by which QEMU,
 * another user's process, can be killed; somebody else has none, and stays visible to his other
 * processes.
 */
static int drop_privileges(struct err *e)
{
	static const int kept[] = { CAP_KILL };
	int r = geteuid() == 0 ? sandbox_keep_capabilities(kept, ARRAY_SIZE(kept)) : 0;
	return r < 0 ? err_sys(e, r, "supervisor: cannot give up capabilities") : 0;
}

/* Starts the machine and supervises it to its end. */
static int supervise(struct run *run, struct loop *loop, int *ret_status, struct err *e)
{
	const struct confine_options confine = {
		.all_capabilities = run->options.disable_capabilities,
		.no_seccomp = run->options.disable_seccomp,
		.open_paths = run->options.disable_paths,
	};
	const struct supervisor_input input = { .plan = &run->plan,
						.confine = confine,
						.hostname = run->hostname,
						.secret = run->secret,
						.pod_fd = run->pod_fd,
						.notify = run->notify,
						.interactive = run->options.interactive &&
							       isatty(STDIN_FILENO),
						.detach = run->options.detach,
						.boot_timeout_s = run->options.boot_timeout };
	CLEANUP(supervisor_freep) struct supervisor *s = NULL;
	int r = supervisor_new(&input, loop, &run->timeline, &s, e);
	if (r < 0)
		return r;
	const struct machine_input machine_input = { .vm = &run->plan.vm,
						     .facts = &run->facts,
						     .vsock_program = run->vsock_program,
						     .secret = run->secret,
						     .pod_fd = run->pod_fd,
						     .disk_fds = run->disk_fds,
						     .unprivileged_ids = geteuid() == 0,
						     .uid = pod_uid(run->options.uuid) };
	CLEANUP(machine_deinit) struct machine machine = { 0 };
	r = machine_start(&machine, loop, &machine_input, &supervisor_machine_ops, s, e);
	if (r < 0)
		return r;
	timeline_reach(&run->timeline, MARK_SPAWNED);
	/* The VM boots meanwhile; names that are wrong were refused by stage0. */
	r = confine_apps(&run->manifest, &confine, run->plan.apps, e);
	if (r == 0)
		r = drop_privileges(e);
	if (r < 0)
		return r;
	return supervisor_run(s, &machine, ret_status, e);
}

static int run_pod(struct run *run, int argc, char **argv, int *ret_status, struct err *e)
{
	int r = options_parse(argc, argv, &run->options, e);
	if (r < 0)
		return r;
	int64_t now = clock_monotonic_ns();
	timeline_init(&run->timeline, run->options.start_ns ? (int64_t)run->options.start_ns : now);
	timeline_reach(&run->timeline, MARK_STAGE1);
	r = fd_fill_stdio();
	if (r == 0 &&
	    signal(SIGXFSZ, SIG_IGN) == SIG_ERR) /* a file that is too large is an error */
		r = -errno;
	if (r < 0)
		return err_sys(e, r, "descriptors");
	r = take_lock_fd(e);
	if (r == 0)
		r = take_notify_socket(run, e);
	if (r == 0)
		r = prepare(run, e);
	if (r < 0)
		return r;
	timeline_reach(&run->timeline, MARK_PLANNED);
	struct loop loop;
	r = loop_init(&loop);
	if (r < 0)
		return err_sys(e, r, "event loop");
	r = supervise(run, &loop, ret_status, e);
	loop_deinit(&loop);
	return r;
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	int status = 0;
	struct run run;
	run_init(&run);
	int r = run_pod(&run, argc, argv, &status, &e);
	if (run.options.debug && r == 0)
		timeline_print(&run.timeline, stderr);
	if (r < 0)
		fprintf(stderr, "stage1: %s\n", e.text);
	run_deinit(&run);
	return r < 0 ? EXIT_HUSK_FAILURE : status;
}
