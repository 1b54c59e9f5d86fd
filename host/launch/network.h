/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the user wants of a pod's network: the grammar of rkt's flags, what goes together, and how
 * stage1 is told. Pure. Names of networks are not looked up here: stage1 knows which there are.
 */
#ifndef HOST_LAUNCH_NETWORK_H
#define HOST_LAUNCH_NETWORK_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/wire/stage1.h"

/* Most arguments that network_add_args() adds: one for each that can be said. */
#define NETWORK_ARGS_MAX                                                                     \
	(STAGE1_NETS_MAX + STAGE1_NET_DIRS_MAX + STAGE1_CNI_PATHS_MAX + 3 * STAGE1_DNS_MAX + \
	 STAGE1_HOSTS_MAX + 2)

/*
 * In the user's order. Where nothing is said a list is empty, a pointer NULL; these are borrowed.
 */
struct network_wishes {
	struct strv nets;       /* "NAME[:ARGS]", no name twice */
	const char *netns;      /* absolute path of a network namespace to join */
	struct strv dns;        /* addresses, or only "host" or "none" */
	struct strv dns_search; /* domains */
	struct strv dns_options;
	const char *dns_domain;
	struct strv hosts; /* "IP=NAME[,NAME...]", or only "host" */
	/* From the configuration: where networks and plugins are looked for. Absolute paths. */
	struct strv config_dirs, plugin_dirs;
};

/* Nothing said. Allocates nothing. */
void network_wishes_init(struct network_wishes *w);

/* Frees the lists; they are as after network_wishes_init(). */
void network_wishes_deinit(struct network_wishes *w);

/*
 * The value of one flag of that name, where rkt has commas a list. 0; -EINVAL, -EEXIST, -E2BIG,
 * -ENOMEM with @e, in the words of rkt where it has some.
 */
int network_add_nets(struct network_wishes *w, const char *value, struct err *e);
int network_set_netns(struct network_wishes *w, const char *value, struct err *e);
int network_add_dns(struct network_wishes *w, const char *value, struct err *e);
int network_add_dns_search(struct network_wishes *w, const char *value, struct err *e);
int network_add_dns_options(struct network_wishes *w, const char *value, struct err *e);
int network_set_dns_domain(struct network_wishes *w, const char *value, struct err *e);
int network_add_hosts(struct network_wishes *w, const char *value, struct err *e);

/* What must hold between them, when all are there. 0 or -EINVAL and @e. */
int network_check(const struct network_wishes *w, struct err *e);

/* Whether a port of the host can lead into a pod with such a network. 0 or -EINVAL and @e. */
int network_check_ports(const struct network_wishes *w, struct err *e);

/* True if @name is the only network that is wanted. */
bool network_is_only(const struct network_wishes *w, const char *name);

/*
 * The flag, without dashes, of which a stage1 that knows no networks would do something else than
 * it says; NULL: none.
 */
const char *network_flag(const struct network_wishes *w);

/* The same, of a stage1 of rkt's interface, which has fewer words. */
const char *network_flag_beyond_rkt(const struct network_wishes *w);

/* Adds the options of run that tell all of it. 0, or errors as strv_add(). */
int network_add_args(const struct network_wishes *w, struct strv *args);

/* "--net=LIST" as rkt has it: the default network where none is named. As above. */
int network_add_rkt_net(const struct network_wishes *w, struct strv *args);

/* "--dns-conf-mode=..." as rkt has it, if there is something to say. As above. */
int network_add_rkt_dns(const struct network_wishes *w, struct strv *args);

/* Whether that would add something. */
bool network_has_rkt_dns(const struct network_wishes *w);

#endif
