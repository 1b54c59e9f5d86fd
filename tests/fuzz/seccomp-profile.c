/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile of system calls is compiled, or it is said what is wrong with it. Whatever it says, an
 * app gets no AF_VSOCK socket, and can be started and end: the program that comes out of it is
 * interpreted for that.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/base/hex.h"
#include "lib/base/macros.h"
#include "stage1/apps/appfilter.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool property)
{
	if (!property)
		abort();
}

static uint32_t operand(uint32_t a, const struct sock_filter *i)
{
	switch (BPF_OP(i->code)) {
	case BPF_JEQ:
		return a == i->k;
	case BPF_JGT:
		return a > i->k;
	case BPF_JGE:
		return a >= i->k;
	case BPF_JSET:
		return (a & i->k) != 0;
	default:
		abort();
	}
}

/* What the kernel would be told of the call. Aborts for what it would not take. */
static uint32_t interpret(const struct sock_filter *insns, size_t n,
			  const struct seccomp_data *call)
{
	uint32_t a = 0;
	for (size_t pc = 0; pc < n; pc++) {
		const struct sock_filter *i = &insns[pc];
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			check(i->k % 4 == 0 && i->k < sizeof(*call));
			memcpy(&a, (const char *)call + i->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			check(BPF_CLASS(i->code) == BPF_JMP && BPF_SRC(i->code) == BPF_K);
			pc += operand(a, i) ? i->jt : i->jf;
		}
	}
	abort(); /* beyond its end */
}

static void check_program(const char *hex)
{
	static struct sock_filter insns[APPFILTER_INSNS_MAX];
	static const int always[] = { SYS_execve, SYS_capset, SYS_write, SYS_exit_group };
	size_t n = strlen(hex) / 2 / sizeof(insns[0]);
	check(n > 0 && n <= APPFILTER_INSNS_MAX && strlen(hex) == n * 2 * sizeof(insns[0]));
	check(hex_decode(hex, (unsigned char *)insns, n * sizeof(insns[0])) == 0);
	struct seccomp_data call = { .nr = SYS_socket, .arch = ARCH, .args = { AF_VSOCK } };
	check(interpret(insns, n, &call) == (SECCOMP_RET_ERRNO | EAFNOSUPPORT));
	for (size_t i = 0; i < ARRAY_SIZE(always); i++) {
		call = (struct seccomp_data){ .nr = always[i], .arch = ARCH, .args = { 1, 2, 3 } };
		check(interpret(insns, n, &call) == SECCOMP_RET_ALLOW);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(isolators_deinit) struct isolators i;
	struct err e = ERR_INIT;
	char *hex = NULL;
	cleanup_free char *text = strndup((const char *)data, size);
	if (!text)
		return 0;
	isolators_init(&i);
	if (isolators_set(&i, ISOLATOR_SECCOMP_PROFILE, text, &e) < 0)
		return 0;
	int r = appfilter_compile(&i, 0, &hex, &e);
	check(r == 0 || e.text[0]);
	if (r == 0)
		check_program(hex);
	free(hex);
	return 0;
}
