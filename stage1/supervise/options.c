/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/supervise/options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/uuid.h"
#include "stage1/pod/cgroup_parent.h"

enum form {
	FORM_SWITCH, /* bool */
	FORM_TEXT,   /* const char * */
	FORM_NUMBER, /* uint64_t from min to max */
	FORM_LIST,   /* struct strv; may come again */
	FORM_GROUP,  /* char[CGROUP_PATH_MAX], as from cgroup_parent_expand() */
};

/* The member @m of struct options. */
#define OPTION(name, form, m, min, max)                           \
	{                                                         \
		name, form, offsetof(struct options, m), min, max \
	}

static const struct generic {
	const char *name;
	enum form form;
	size_t offset;
	uint64_t min, max;
} generic[] = {
	OPTION("debug", FORM_SWITCH, debug, 0, 0),
	OPTION("interactive", FORM_SWITCH, interactive, 0, 0),
	OPTION("detach", FORM_SWITCH, detach, 0, 0),
	OPTION("disable-capabilities-restriction", FORM_SWITCH, disable_capabilities, 0, 0),
	OPTION("disable-paths", FORM_SWITCH, disable_paths, 0, 0),
	OPTION("disable-seccomp", FORM_SWITCH, disable_seccomp, 0, 0),
	OPTION("hostname", FORM_TEXT, hostname, 0, 0),
	OPTION("cache-dir", FORM_TEXT, cache_dir, 0, 0),
	OPTION("boot-timeout", FORM_NUMBER, boot_timeout, 1, OPTIONS_BOOT_TIMEOUT_MAX),
	OPTION("cgroup-parent", FORM_GROUP, cgroup_parent, 0, 0),
	OPTION("start-ns", FORM_NUMBER, start_ns, 0, INT64_MAX),
	OPTION("net", FORM_LIST, network.nets, 0, 0),
	OPTION("netns", FORM_TEXT, network.netns, 0, 0),
	OPTION("net-config", FORM_LIST, network.config_dirs, 0, 0),
	OPTION("cni-path", FORM_LIST, network.plugin_dirs, 0, 0),
	OPTION("dns", FORM_LIST, names.servers, 0, 0),
	OPTION("dns-search", FORM_LIST, names.search, 0, 0),
	OPTION("dns-opt", FORM_LIST, names.options, 0, 0),
	OPTION("dns-domain", FORM_TEXT, names.domain, 0, 0),
	OPTION("hosts-entry", FORM_LIST, names.hosts, 0, 0),
	OPTION("host-volumes", FORM_SWITCH, host_volumes, 0, 0),
	OPTION("block-volumes", FORM_SWITCH, block_volumes, 0, 0),
};

/*
 * What getopt_long(3) returns for ours, and behind them the backend's; it has smaller ones itself.
 */
#define OPT_FIRST      256
#define OPT_OF_BACKEND (OPT_FIRST + (int)ARRAY_SIZE(generic))

void options_init(struct options *o)
{
	*o = (struct options){ .boot_timeout = OPTIONS_BOOT_TIMEOUT_DEFAULT };
	network_options_init(&o->network);
	names_options_init(&o->names);
}

void options_deinit(struct options *o)
{
	network_options_deinit(&o->network);
	names_options_deinit(&o->names);
}

static int add_to_list(struct strv *list, const char *name, struct err *e)
{
	int r = strv_add(list, optarg);
	return r < 0 ? err_sys(e, r, "--%s: at most %zu", name, list->max) : 0;
}

static int take_group(char ret[CGROUP_PATH_MAX], const char *name, struct err *e)
{
	return cgroup_parent_expand(optarg, ret) < 0
		       ? err_set(e, -EINVAL,
				 "--%s=%.80s is neither a path of a control group (/a/b), of up to %d "
				 "bytes, nor a slice (a-b.slice), nor one for this pod (+/a/b)",
				 name, optarg, CGROUP_PATH_MAX - 1)
		       : 0;
}

static int take_option(const struct generic *g, struct options *o, struct err *e)
{
	void *at = (char *)o + g->offset;
	uint64_t n;
	switch (g->form) {
	case FORM_SWITCH:
		*(bool *)at = true;
		return 0;
	case FORM_TEXT:
		*(const char **)at = optarg;
		return 0;
	case FORM_LIST:
		return add_to_list(at, g->name, e);
	case FORM_GROUP:
		return take_group(at, g->name, e);
	case FORM_NUMBER:
		break;
	}
	if (num_parse_u64(optarg, g->max, &n) < 0 || n < g->min)
		return err_set(e, -EINVAL, "--%s=%s is not a number from %ju to %ju", g->name,
			       optarg, (uintmax_t)g->min, (uintmax_t)g->max);
	*(uint64_t *)at = n;
	return 0;
}

/* Ours, the backend's, and the end of the list. */
static void list_options(const struct backend *backend, struct option *all)
{
	int n = 0;
	for (; n < (int)ARRAY_SIZE(generic); n++)
		all[n] = (struct option){ generic[n].name,
					  generic[n].form == FORM_SWITCH ? no_argument
									 : required_argument,
					  NULL, OPT_FIRST + n };
	for (size_t i = 0; i < OPTIONS_OF_BACKEND_MAX && backend->options[i]; i++, n++)
		all[n] = (struct option){ backend->options[i], required_argument, NULL,
					  OPT_FIRST + n };
	all[n] = (struct option){ 0 };
}

int options_parse(int argc, char **argv, const struct backend *backend, struct backend_pod *pod,
		  struct options *o, struct err *e)
{
	struct option all[ARRAY_SIZE(generic) + OPTIONS_OF_BACKEND_MAX + 1];
	int opt;
	list_options(backend, all);
	optind = 1;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "", all, NULL)) != -1) {
		if (opt < OPT_FIRST)
			return err_set(e, -EINVAL,
				       "unknown option (stage0 and stage1 differ in version?)");
		int r = opt >= OPT_OF_BACKEND
				? backend->option(pod, backend->options[opt - OPT_OF_BACKEND],
						  optarg, e)
				: take_option(&generic[opt - OPT_FIRST], o, e);
		if (r < 0)
			return r;
	}
	o->uuid = argv[optind];
	if (argc - optind > 1 || (o->uuid && !uuid_is_valid(o->uuid)))
		return err_set(e, -EINVAL, "the last argument must be the UUID of the pod");
	return 0;
}
