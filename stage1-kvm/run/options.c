/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/run/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/uuid.h"
#include "stage1-kvm/plan/vm.h"
#include "stage1-kvm/run/scratch.h"

#define MIB(n) ((uint64_t)(n) << 20)

enum {
	OPT_DEBUG = 1,
	OPT_INTERACTIVE,
	OPT_DETACH,
	OPT_DISABLE_CAPABILITIES,
	OPT_DISABLE_PATHS,
	OPT_DISABLE_SECCOMP,
	OPT_HOSTNAME,
	OPT_ACCEL,
	OPT_MACHINE,
	OPT_VSOCK,
	OPT_KERNEL,
	OPT_QEMU,
	OPT_CACHE_DIR,
	OPT_MEMORY,
	OPT_CPUS,
	OPT_BOOT_TIMEOUT,
	OPT_SCRATCH_SIZE,
	OPT_START_NS,
};

static const struct option long_options[] = {
	{ "debug", no_argument, NULL, OPT_DEBUG },
	{ "interactive", no_argument, NULL, OPT_INTERACTIVE },
	{ "detach", no_argument, NULL, OPT_DETACH },
	{ "disable-capabilities-restriction", no_argument, NULL, OPT_DISABLE_CAPABILITIES },
	{ "disable-paths", no_argument, NULL, OPT_DISABLE_PATHS },
	{ "disable-seccomp", no_argument, NULL, OPT_DISABLE_SECCOMP },
	{ "hostname", required_argument, NULL, OPT_HOSTNAME },
	{ "accel", required_argument, NULL, OPT_ACCEL },
	{ "machine", required_argument, NULL, OPT_MACHINE },
	{ "vsock", required_argument, NULL, OPT_VSOCK },
	{ "kernel", required_argument, NULL, OPT_KERNEL },
	{ "qemu", required_argument, NULL, OPT_QEMU },
	{ "cache-dir", required_argument, NULL, OPT_CACHE_DIR },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "boot-timeout", required_argument, NULL, OPT_BOOT_TIMEOUT },
	{ "scratch-size", required_argument, NULL, OPT_SCRATCH_SIZE },
	{ "start-ns", required_argument, NULL, OPT_START_NS },
	{ NULL, 0, NULL, 0 },
};

static int number(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
		  struct err *e)
{
	uint64_t n;
	if (num_parse_size(text, max, &n) < 0 || n < min)
		return err_set(e, -EINVAL, "--%s=%s is not a number from %ju to %ju", name, text,
			       (uintmax_t)min, (uintmax_t)max);
	*ret = n;
	return 0;
}

/* A template is made for each size: whole MiB are enough of them. */
static int scratch_size(const char *text, uint64_t *ret, struct err *e)
{
	int r = number("scratch-size", text, SCRATCH_SIZE_MIN, SCRATCH_SIZE_MAX, ret, e);
	*ret &= ~(MIB(1) - 1);
	return r;
}

static int take_option(int opt, struct options *o, struct err *e)
{
	switch (opt) {
	case OPT_DEBUG:
		o->debug = true;
		return 0;
	case OPT_INTERACTIVE:
		o->interactive = true;
		return 0;
	case OPT_DETACH:
		o->detach = true;
		return 0;
	case OPT_DISABLE_CAPABILITIES:
		o->disable_capabilities = true;
		return 0;
	case OPT_DISABLE_PATHS:
		o->disable_paths = true;
		return 0;
	case OPT_DISABLE_SECCOMP:
		o->disable_seccomp = true;
		return 0;
	case OPT_HOSTNAME:
		o->hostname = optarg;
		return 0;
	case OPT_ACCEL:
		o->accel = optarg;
		return 0;
	case OPT_MACHINE:
		o->machine = optarg;
		return 0;
	case OPT_VSOCK:
		o->vsock = optarg;
		return 0;
	case OPT_KERNEL:
		o->kernel = optarg;
		return 0;
	case OPT_QEMU:
		o->qemu = optarg;
		return 0;
	case OPT_CACHE_DIR:
		o->cache_dir = optarg;
		return 0;
	case OPT_MEMORY:
		return number("memory", optarg, MIB(VM_MEMORY_MIN), MIB(VM_MEMORY_MAX), &o->memory,
			      e);
	case OPT_CPUS:
		return number("cpus", optarg, 1, VM_CPUS_MAX, &o->cpus, e);
	case OPT_BOOT_TIMEOUT:
		return number("boot-timeout", optarg, 1, OPTIONS_BOOT_TIMEOUT_MAX, &o->boot_timeout,
			      e);
	case OPT_SCRATCH_SIZE:
		return scratch_size(optarg, &o->scratch_size, e);
	case OPT_START_NS:
		return number("start-ns", optarg, 0, INT64_MAX, &o->start_ns, e);
	default:
		return err_set(e, -EINVAL, "unknown option (stage0 and stage1 differ in version?)");
	}
}

int options_parse(int argc, char **argv, struct options *ret, struct err *e)
{
	struct options o = { .boot_timeout = OPTIONS_BOOT_TIMEOUT_DEFAULT,
			     .scratch_size = SCRATCH_SIZE_DEFAULT };
	int opt;
	optind = 1;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		int r = take_option(opt, &o, e);
		if (r < 0)
			return r;
	}
	if (argc - optind != 1 || !uuid_is_valid(argv[optind]))
		return err_set(e, -EINVAL, "the last argument must be the UUID of the pod");
	o.uuid = argv[optind];
	*ret = o;
	return 0;
}
