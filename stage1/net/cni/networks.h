/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The networks that there are: those of files, by the layers of their directories, and two that are
 * built in, as in rkt. Of networks of one name the one in the highest layer counts, in a layer the
 * first file. A file that cannot be used takes part: it is an error for who asks for the network
 * that it names, or might name, and for nobody else. Pure.
 */
#ifndef STAGE1_NET_CNI_NETWORKS_H
#define STAGE1_NET_CNI_NETWORKS_H

#include "stage1/net/cni/config.h"

#define CNI_NETWORKS_MAX 128 /* a directory of more is no configuration; each may have 64 KiB */

#define CNI_NET_DEFAULT    "default"
#define CNI_NET_RESTRICTED "default-restricted"

struct cni_network {
	struct cni_config config; /* owned */
	size_t layer;             /* 0: built in */
	char *broken; /* owned: why it cannot be used, with the name of the file; else NULL */
};

/* All zero while empty. */
struct cni_networks {
	struct cni_network *v; /* owned */
	size_t n;
};

/* Frees all. Accepts NULL. */
void cni_networks_deinit(struct cni_networks *nets);

/*
 * Adds the network @c, which is taken, also on failure; with @broken, a file that cannot be used,
 * of which there is a path and perhaps a name. Layers come in ascending order. 0, -E2BIG, -ENOMEM.
 */
int cni_networks_add(struct cni_networks *nets, struct cni_config *c, size_t layer,
		     const char *broken);

/* Adds those that are built in, before all others. 0, -ENOMEM. */
int cni_networks_add_built_in(struct cni_networks *nets);

/* Orders by the names of the files, those built in behind them. */
void cni_networks_sort(struct cni_networks *nets);

/*
 * The network @name, borrowed. 0 and *ret, which is NULL if there is none; -EBADMSG and @e for a
 * file that cannot be used and has that name, or might replace what has it.
 */
int cni_networks_find(const struct cni_networks *nets, const char *name,
		      const struct cni_network **ret, struct err *e);

#endif
