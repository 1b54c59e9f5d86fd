/* SPDX-License-Identifier: Apache-2.0 */
/* What was asked for with --net, and which networks that is. Pure. */
#ifndef STAGE1_NET_CNI_CHOOSE_H
#define STAGE1_NET_CNI_CHOOSE_H

#include "lib/base/str.h"
#include "stage1/net/cni/attachment.h"
#include "stage1/net/cni/networks.h"

/* Names: "all" and arguments for some; a pod gets NET_INTERFACES_MAX. */
#define CNI_WANTED_MAX 64

struct cni_wanted {
	char name[CNI_NAME_MAX + 1];
	char args[CNI_ARGS_MAX + 1];
};

/* All zero while empty. */
struct cni_choice {
	struct cni_wanted *v; /* owned: by name */
	size_t n;
};

/* Frees it. Accepts NULL. */
void cni_choice_deinit(struct cni_choice *c);

/*
 * Understands values of --net, "NAME[:K=V;K2=V2]" each. "none" and "host" are no networks here. The
 * texts of errors are rkt's. 0 and the caller's *ret; -EINVAL, -E2BIG, -ENOMEM, with @e.
 */
int cni_choice_parse(const struct strv *values, struct cni_choice *ret, struct err *e);

/*
 * The networks of a choice as attachments eth0, eth1, ... in the order of the names of their files;
 * "all" are those of files, and "default", unless a file replaces one of those built in. 0 and the
 * caller's *ret, which is empty on failure; -ENOENT ("networks not found: a, b"), -EBADMSG (see
 * cni_networks_find()), -E2BIG, with @e.
 */
int cni_choose(const struct cni_choice *c, const struct cni_networks *nets,
	       struct cni_attachments *ret, struct err *e);

#endif
