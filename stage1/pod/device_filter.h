/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices the processes of a control group may open: null, zero, full, random, urandom, tty,
 * ptmx, terminals of devpts, net/tun. Nodes of others may be made, since they cannot be opened, and
 * programs that unpack archives make them. Does not heed what is open already.
 */
#ifndef STAGE1_POD_DEVICE_FILTER_H
#define STAGE1_POD_DEVICE_FILTER_H

#include <stddef.h>

struct bpf_insn;

#define DEVICE_FILTER_INSNS_MAX 64 /* two for each device, eleven around them, and spare */

/*
 * Writes the filter, a program of type BPF_PROG_TYPE_CGROUP_DEVICE, to @ret, which has room for
 * DEVICE_FILTER_INSNS_MAX instructions. Their number.
 */
size_t device_filter_program(struct bpf_insn *ret);

/*
 * Attaches the filter to the version 2 group @group for good, and so to all groups below it. Needs
 * CAP_BPF and CAP_NET_ADMIN. 0 or -errno.
 */
int device_filter_attach(int group);

/*
 * Writes the filter to the group @group of the version 1 hierarchy "devices", which has no children
 * yet. 0 or -errno.
 */
int device_filter_write(int group);

#endif
