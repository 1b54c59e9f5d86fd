/* SPDX-License-Identifier: Apache-2.0 */
/* What the program decides. That the kernel takes it, and heeds it: test_pod_cgroup.c. */
#include "stage1/pod/device_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static struct bpf_insn program[DEVICE_FILTER_INSNS_MAX];

/* Executes the few instructions that the program is made of, as the kernel would. */
static bool decide(uint32_t kind, uint32_t type, uint32_t major, uint32_t minor)
{
	const struct bpf_cgroup_dev_ctx ctx = { kind << 16 | type, major, minor };
	uint64_t reg[11] = { 0 };
	size_t n = device_filter_program(program);
	for (size_t at = 0; at < n; at++) {
		const struct bpf_insn *i = &program[at];
		uint64_t *dst = &reg[i->dst_reg];
		if (i->code == (BPF_LDX | BPF_MEM | BPF_W))
			*dst = ((const uint32_t *)&ctx)[i->off / 4];
		else if (i->code == (BPF_ALU | BPF_AND | BPF_K))
			*dst &= (uint32_t)i->imm;
		else if (i->code == (BPF_ALU64 | BPF_MOV | BPF_K))
			*dst = (uint64_t)i->imm;
		else if (i->code == (BPF_JMP | BPF_JEQ | BPF_K))
			at += *dst == (uint64_t)i->imm ? (size_t)i->off : 0;
		else if (i->code == (BPF_JMP | BPF_JNE | BPF_K))
			at += *dst != (uint64_t)i->imm ? (size_t)i->off : 0;
		else if (i->code == (BPF_JMP | BPF_EXIT))
			return reg[0] != 0;
		else
			fail_msg("instruction %zu: code %#x", at, i->code);
	}
	fail_msg("no end");
	return false;
}

static bool opens(uint32_t type, uint32_t major, uint32_t minor)
{
	bool reads = decide(BPF_DEVCG_ACC_READ, type, major, minor);
	assert_int_equal(decide(BPF_DEVCG_ACC_WRITE, type, major, minor), reads);
	assert_int_equal(decide(BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE, type, major, minor),
			 reads);
	assert_true(decide(BPF_DEVCG_ACC_MKNOD, type, major, minor));
	return reads;
}

static void test_characters(void **state)
{
	(void)state;
	static const uint32_t fine[][2] = {
		{ 1, 3 }, { 1, 5 }, { 1, 7 },    { 1, 8 },   { 1, 9 },
		{ 5, 0 }, { 5, 2 }, { 10, 200 }, { 136, 0 }, { 136, 1048575 },
	};
	static const uint32_t others[][2] = {
		{ 0, 0 }, { 1, 1 },   { 1, 2 },    { 1, 4 },    { 1, 11 },         { 5, 1 },
		{ 5, 3 }, { 4, 0 },   { 10, 232 }, { 10, 229 }, { 10, 1 },         { 135, 0 },
		{ 3, 1 }, { 137, 0 }, { 200, 10 }, { 511, 3 },  { 4095, 1048575 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++)
		assert_true(opens(BPF_DEVCG_DEV_CHAR, fine[i][0], fine[i][1]));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(opens(BPF_DEVCG_DEV_CHAR, others[i][0], others[i][1]));
}

/* Block devices have the same numbers, and are none of these. */
static void test_blocks(void **state)
{
	(void)state;
	assert_false(opens(BPF_DEVCG_DEV_BLOCK, 1, 3));
	assert_false(opens(BPF_DEVCG_DEV_BLOCK, 136, 0));
	assert_false(opens(BPF_DEVCG_DEV_BLOCK, 8, 0));
	assert_false(opens(BPF_DEVCG_DEV_BLOCK, 7, 0));
}

static void test_size(void **state)
{
	(void)state;
	assert_true(device_filter_program(program) <= DEVICE_FILTER_INSNS_MAX);
}

/* What is no group is refused. */
static void test_no_group(void **state)
{
	assert_true(device_filter_attach(fixture_dir(state)) < 0);
	assert_int_equal(device_filter_write(fixture_dir(state)), -ENOENT);
	fixture_write(state, "devices.deny", "", 0);
	assert_int_equal(device_filter_write(fixture_dir(state)), -ENOENT);
}

/* One rule at a time: a file keeps the beginning of the last ones. */
static void test_rules(void **state)
{
	char text[32] = "";
	size_t len;
	fixture_write(state, "devices.deny", "", 0);
	fixture_write(state, "devices.allow", "", 0);
	assert_int_equal(device_filter_write(fixture_dir(state)), 0);
	cleanup_fd int deny = openat(fixture_dir(state), "devices.deny", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd_read_full(deny, text, sizeof(text) - 1, &len), 0);
	assert_string_equal(text, "a");
	cleanup_fd int allow = openat(fixture_dir(state), "devices.allow", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd_read_full(allow, text, sizeof(text) - 1, &len), 0);
	assert_int_equal(strncmp(text, "c 136:* rw", 10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_characters), fixture_test(test_blocks), fixture_test(test_size),
		fixture_test(test_no_group),   fixture_test(test_rules),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
