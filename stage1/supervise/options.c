/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/supervise/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/uuid.h"

enum {
	OPT_DEBUG = 1,
	OPT_INTERACTIVE,
	OPT_DETACH,
	OPT_DISABLE_CAPABILITIES,
	OPT_DISABLE_PATHS,
	OPT_DISABLE_SECCOMP,
	OPT_HOSTNAME,
	OPT_CACHE_DIR,
	OPT_BOOT_TIMEOUT,
	OPT_START_NS,
	OPT_OF_BACKEND = 256, /* and behind it; above what getopt_long(3) says of its own */
};

static const struct option generic_options[] = {
	{ "debug", no_argument, NULL, OPT_DEBUG },
	{ "interactive", no_argument, NULL, OPT_INTERACTIVE },
	{ "detach", no_argument, NULL, OPT_DETACH },
	{ "disable-capabilities-restriction", no_argument, NULL, OPT_DISABLE_CAPABILITIES },
	{ "disable-paths", no_argument, NULL, OPT_DISABLE_PATHS },
	{ "disable-seccomp", no_argument, NULL, OPT_DISABLE_SECCOMP },
	{ "hostname", required_argument, NULL, OPT_HOSTNAME },
	{ "cache-dir", required_argument, NULL, OPT_CACHE_DIR },
	{ "boot-timeout", required_argument, NULL, OPT_BOOT_TIMEOUT },
	{ "start-ns", required_argument, NULL, OPT_START_NS },
};

static int number(const char *name, uint64_t min, uint64_t max, uint64_t *ret, struct err *e)
{
	uint64_t n;
	if (num_parse_u64(optarg, max, &n) < 0 || n < min)
		return err_set(e, -EINVAL, "--%s=%s is not a number from %ju to %ju", name, optarg,
			       (uintmax_t)min, (uintmax_t)max);
	*ret = n;
	return 0;
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
	case OPT_CACHE_DIR:
		o->cache_dir = optarg;
		return 0;
	case OPT_BOOT_TIMEOUT:
		return number("boot-timeout", 1, OPTIONS_BOOT_TIMEOUT_MAX, &o->boot_timeout, e);
	case OPT_START_NS:
		return number("start-ns", 0, INT64_MAX, &o->start_ns, e);
	default:
		return err_set(e, -EINVAL, "unknown option (stage0 and stage1 differ in version?)");
	}
}

/* Ours, the backend's, and the end of the list. */
static void list_options(const struct backend *backend, struct option *all)
{
	size_t n = ARRAY_SIZE(generic_options);
	memcpy(all, generic_options, sizeof(generic_options));
	for (size_t i = 0; i < OPTIONS_OF_BACKEND_MAX && backend->options[i]; i++)
		all[n++] = (struct option){ backend->options[i], required_argument, NULL,
					    OPT_OF_BACKEND + (int)i };
	all[n] = (struct option){ 0 };
}

int options_parse(int argc, char **argv, const struct backend *backend, struct backend_pod *pod,
		  struct options *ret, struct err *e)
{
	struct options o = { .boot_timeout = OPTIONS_BOOT_TIMEOUT_DEFAULT };
	struct option all[ARRAY_SIZE(generic_options) + OPTIONS_OF_BACKEND_MAX + 1];
	int opt;
	list_options(backend, all);
	optind = 1;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "", all, NULL)) != -1) {
		int r = opt >= OPT_OF_BACKEND
				? backend->option(pod, backend->options[opt - OPT_OF_BACKEND],
						  optarg, e)
				: take_option(opt, &o, e);
		if (r < 0)
			return r;
	}
	o.uuid = argv[optind];
	if (argc - optind > 1 || (o.uuid && !uuid_is_valid(o.uuid)))
		return err_set(e, -EINVAL, "the last argument must be the UUID of the pod");
	*ret = o;
	return 0;
}
