/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/bpf.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int bpf_call(enum bpf_cmd command, union bpf_attr *attr)
{
	int r = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
	return r < 0 ? -errno : r;
}

int bpf_load(enum bpf_prog_type kind, enum bpf_attach_type attach_type,
	     const struct bpf_insn *insns, size_t n)
{
	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr)); /* the kernel wants zeroes in the padding, too */
	attr.prog_type = kind;
	attr.expected_attach_type = attach_type;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = (uint32_t)n;
	attr.license = (uintptr_t) "Apache-2.0";
	return bpf_call(BPF_PROG_LOAD, &attr);
}
