/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plug-in of QEMU's emulator (TCG): counts the guest's instructions, and the pages of its memory
 * that exist, at named moments. `tools/bench cost` loads it.
 *
 *   -plugin counter.so,NAME=ADDRESS,... -d plugin
 *
 * The moment NAME is when the guest executes the instruction at the virtual ADDRESS for the first
 * time, all moments before it in the list being past. Then QEMU's log, where the traced accesses of
 * devices are, too, gets the line "moment NAME INSTRUCTIONS PAGES".
 *
 * The guest's memory is the only memfd of QEMU: that a page of it was touched by guest, firmware,
 * device or QEMU itself is seen from its having been allocated.
 *
 * Debian has no header of the interface (version 1, QEMU 7.2), so what is used of it is declared
 * here.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;

typedef void (*tb_trans_fn)(uint64_t id, struct qemu_plugin_tb *tb);
typedef void (*insn_exec_fn)(unsigned cpu, void *ctx);

extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, tb_trans_fn fn);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, insn_exec_fn fn,
						   int flags, void *ctx);
extern void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int op,
						       void *counter, uint64_t add);
extern void qemu_plugin_outs(const char *text);

#define API_VERSION 1
#define CB_NO_REGS  0
#define INLINE_ADD  0

#define MOMENTS_MAX 16
#define FDS_MAX     1024 /* QEMU's limit, see VM_FILES_MAX of the supervisor */
#define MEMFD_NAME  "/memfd:memory-backend-memfd"
#define PAGE_BLOCKS 8 /* of 512 bytes, in which stat(2) counts */

struct moment {
	char name[32];
	uint64_t address;
};

static struct moment moments[MOMENTS_MAX];
static size_t n_moments, next_moment;
static uint64_t instructions;

extern int qemu_plugin_version;
int qemu_plugin_version = API_VERSION;

extern int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv);

static uint64_t memory_pages(void)
{
	for (int fd = 0; fd < FDS_MAX; fd++) {
		char path[32], target[sizeof(MEMFD_NAME)];
		struct stat st;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, target, sizeof(target) - 1);
		if (n == (ssize_t)strlen(MEMFD_NAME) &&
		    memcmp(target, MEMFD_NAME, strlen(MEMFD_NAME)) == 0 && fstat(fd, &st) == 0)
			return (uint64_t)st.st_blocks / PAGE_BLOCKS;
	}
	return 0;
}

static void on_moment(unsigned cpu, void *ctx)
{
	const struct moment *m = ctx;
	char line[128];
	(void)cpu;
	if (m != &moments[next_moment])
		return;
	next_moment++;
	snprintf(line, sizeof(line), "moment %s %" PRIu64 " %" PRIu64 "\n", m->name, instructions,
		 memory_pages());
	qemu_plugin_outs(line);
}

static void on_translate(uint64_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	size_t n = qemu_plugin_tb_n_insns(tb);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);
		qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD, &instructions, 1);
		for (size_t k = 0; k < n_moments; k++)
			if (moments[k].address == address)
				qemu_plugin_register_vcpu_insn_exec_cb(insn, on_moment, CB_NO_REGS,
								       &moments[k]);
	}
}

int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		struct moment *m = &moments[n_moments];
		const char *equals = strchr(argv[i], '=');
		if (!equals || n_moments == MOMENTS_MAX ||
		    (size_t)(equals - argv[i]) >= sizeof(m->name)) {
			fprintf(stderr, "counter: \"%s\" is no NAME=ADDRESS, or one too many\n",
				argv[i]);
			return -1;
		}
		memcpy(m->name, argv[i], (size_t)(equals - argv[i]));
		m->address = strtoull(equals + 1, NULL, 16);
		n_moments++;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
