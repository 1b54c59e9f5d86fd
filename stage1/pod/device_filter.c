/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/device_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/os/fd.h"
#include "stage1/pod/bpf.h"

#define ANY (-1)

/* Character devices, as docs/devices.txt of the kernel numbers them. */
static const struct {
	int major, minor;
} allowed[] = {
	{ 1, 3 },     /* null */
	{ 1, 5 },     /* zero */
	{ 1, 7 },     /* full */
	{ 1, 8 },     /* random */
	{ 1, 9 },     /* urandom */
	{ 5, 0 },     /* tty */
	{ 5, 2 },     /* ptmx */
	{ 10, 200 },  /* net/tun */
	{ 136, ANY }, /* pts */
};

/* --- version 2 --- */

/* Seven of them before the devices, at most two for each, four behind. */
_Static_assert(7 + 2 * ARRAY_SIZE(allowed) + 4 <= DEVICE_FILTER_INSNS_MAX, "all fits");

/* Where a jump goes, until link_jumps(); others go on so many instructions behind the next. */
#define TO_DENY  (-1)
#define TO_ALLOW (-2)

struct program {
	struct bpf_insn *insns;
	size_t n;
};

static void load(struct program *p, unsigned reg, size_t offset)
{
	p->insns[p->n++] = (struct bpf_insn){ .code = BPF_LDX | BPF_MEM | BPF_W,
					      .dst_reg = reg & 0xf,
					      .src_reg = BPF_REG_1,
					      .off = (int16_t)offset };
}

/* BPF_JMP with BPF_JEQ, BPF_JNE; BPF_ALU with BPF_AND; BPF_ALU64 with BPF_MOV. */
static void add(struct program *p, unsigned code, unsigned reg, int value, int16_t to)
{
	p->insns[p->n++] = (struct bpf_insn){
		.code = (uint8_t)(code | BPF_K), .dst_reg = reg & 0xf, .imm = value, .off = to
	};
}

static void add_return(struct program *p, bool value)
{
	add(p, BPF_ALU64 | BPF_MOV, BPF_REG_0, value, 0);
	p->insns[p->n++] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
}

/* The program ends with two returns of two instructions each: "deny", "allow". */
static void link_jumps(struct program *p)
{
	for (size_t i = 0; i < p->n; i++) {
		int16_t *off = &p->insns[i].off;
		if (*off < 0)
			*off = (int16_t)(p->n - (*off == TO_ALLOW ? 2 : 4) - i - 1);
	}
}

/*
 * Registers 2 to 4: kind of access and type of device, major, minor. The kind is in the upper 16
 * bits: BPF_DEVCG_ACC_MKNOD alone, or how it is opened.
 */
size_t device_filter_program(struct bpf_insn *ret)
{
	const int mknod = BPF_DEVCG_ACC_MKNOD << 16;
	struct program p = { ret, 0 };
	load(&p, BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, access_type));
	load(&p, BPF_REG_3, offsetof(struct bpf_cgroup_dev_ctx, major));
	load(&p, BPF_REG_4, offsetof(struct bpf_cgroup_dev_ctx, minor));
	add(&p, BPF_JMP | BPF_JEQ, BPF_REG_2, mknod | BPF_DEVCG_DEV_CHAR, TO_ALLOW);
	add(&p, BPF_JMP | BPF_JEQ, BPF_REG_2, mknod | BPF_DEVCG_DEV_BLOCK, TO_ALLOW);
	add(&p, BPF_ALU | BPF_AND, BPF_REG_2, 0xffff, 0);
	add(&p, BPF_JMP | BPF_JNE, BPF_REG_2, BPF_DEVCG_DEV_CHAR, TO_DENY);
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
		if (allowed[i].minor == ANY) {
			add(&p, BPF_JMP | BPF_JEQ, BPF_REG_3, allowed[i].major, TO_ALLOW);
			continue;
		}
		add(&p, BPF_JMP | BPF_JNE, BPF_REG_3, allowed[i].major, 1);
		add(&p, BPF_JMP | BPF_JEQ, BPF_REG_4, allowed[i].minor, TO_ALLOW);
	}
	add_return(&p, false);
	add_return(&p, true);
	link_jumps(&p);
	return p.n;
}

int device_filter_attach(int group)
{
	struct bpf_insn program[DEVICE_FILTER_INSNS_MAX];
	union bpf_attr attr;
	size_t n = device_filter_program(program);
	cleanup_fd int fd = bpf_load(BPF_PROG_TYPE_CGROUP_DEVICE, 0, program, n);
	if (fd < 0)
		return fd;
	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (uint32_t)group;
	attr.attach_bpf_fd = (uint32_t)fd;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = BPF_F_ALLOW_MULTI; /* groups below may add filters of theirs */
	return bpf_call(BPF_PROG_ATTACH, &attr);
}

/* --- version 1 --- */

/* One rule for each write(2). */
static int write_rule(int group, const char *file, const char *rule)
{
	cleanup_fd int fd = openat(group, file, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd_write_all(fd, rule, strlen(rule));
}

static int allow(int group, int major, int minor)
{
	char rule[32];
	if (minor == ANY)
		snprintf(rule, sizeof(rule), "c %d:* rw", major);
	else
		snprintf(rule, sizeof(rule), "c %d:%d rw", major, minor);
	return write_rule(group, "devices.allow", rule);
}

int device_filter_write(int group)
{
	int r = write_rule(group, "devices.deny", "a");
	if (r == 0)
		r = write_rule(group, "devices.allow", "c *:* m");
	if (r == 0)
		r = write_rule(group, "devices.allow", "b *:* m");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(allowed); i++)
		r = allow(group, allowed[i].major, allowed[i].minor);
	return r;
}
