/* SPDX-License-Identifier: Apache-2.0 */
/* bpf(2), for which the C library has no function. */
#ifndef STAGE1_POD_BPF_H
#define STAGE1_POD_BPF_H

#include <linux/bpf.h>
#include <stddef.h>

/* What commands return: descriptors, mostly. Or -errno. */
int bpf_call(enum bpf_cmd command, union bpf_attr *attr);

/*
 * Has the kernel check @n instructions for a program of type @kind, which is going to be attached
 * as @attach_type (0: the kind has one only). Its descriptor, or -errno.
 */
int bpf_load(enum bpf_prog_type kind, enum bpf_attach_type attach_type,
	     const struct bpf_insn *insns, size_t n);

#endif
