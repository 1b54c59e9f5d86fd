/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan against a real QEMU, without Linux: the guest is a page of code with a PVH note, which
 * prints a line on the serial port and halts. Shows that QEMU takes the command line and every
 * descriptor under another user id, boots the guest, speaks QMP, and plugs disks in and out.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/spawn.h"
#include "lib/os/unix.h"
#include "stage1-kvm/hostfacts/facts.h"
#include "stage1-kvm/plan/plan.h"
#include "stage1-kvm/vmm/qemu/argv.h"
#include "stage1-kvm/vmm/qemu/hotplug.h"
#include "stage1-kvm/vmm/qemu/qmp_disk.h"
#include "tests/support/fixture.h"
#include "tests/support/pods.h"

#define GREETING   "husk was here\n"
#define LOAD_ADDR  0x1000000
#define TIMEOUT_MS 120000
#define OTHER_UID  0x68000000
#define DISK_SIZE  (1024L * 1024)
#define HOT_LUN    7
#define HOT_SET    100

/* An ELF program whose note (Xen, type 18: PHYS32_ENTRY) says where a PVH start enters. */
struct guest {
	Elf64_Ehdr ehdr;
	Elf64_Phdr load, note;
	Elf64_Nhdr nhdr;
	char owner[4];
	uint64_t entry;
	unsigned char code[24];
	char text[sizeof(GREETING)];
} __attribute__((packed));

static void make_guest(struct guest *g)
{
	/*
	 * mov edx, 0x3f8; mov esi, text; 1: lodsb; test al, al; jz 2; out dx, al; jmp 1; 2: hlt;
	 * jmp 2
	 */
	static const unsigned char code[] = { 0xba, 0xf8, 0x03, 0,    0,    0xbe, 0,
					      0,    0,    0,    0xac, 0x84, 0xc0, 0x74,
					      0x03, 0xee, 0xeb, 0xf8, 0xf4, 0xeb, 0xfd };
	const uint32_t text = LOAD_ADDR + (uint32_t)offsetof(struct guest, text);

	*g = (struct guest){
		.ehdr = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_entry = LOAD_ADDR + offsetof(struct guest, code),
			  .e_phoff = offsetof(struct guest, load),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2 },
		.load = { .p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_vaddr = LOAD_ADDR,
			  .p_paddr = LOAD_ADDR,
			  .p_filesz = sizeof(*g),
			  .p_memsz = sizeof(*g),
			  .p_align = 4096 },
		.note = { .p_type = PT_NOTE,
			  .p_offset = offsetof(struct guest, nhdr),
			  .p_vaddr = LOAD_ADDR + offsetof(struct guest, nhdr),
			  .p_paddr = LOAD_ADDR + offsetof(struct guest, nhdr),
			  .p_filesz = offsetof(struct guest, code) - offsetof(struct guest, nhdr),
			  .p_memsz = offsetof(struct guest, code) - offsetof(struct guest, nhdr),
			  .p_align = 4 },
		.nhdr = { .n_namesz = 4, .n_descsz = 8, .n_type = 18 },
		.owner = "Xen",
		.entry = LOAD_ADDR + offsetof(struct guest, code),
		.text = GREETING,
	};
	memcpy(g->code, code, sizeof(code));
	memcpy(g->code + 6, &text, sizeof(text));
}

struct rig {
	pid_t qemu, vsock;
	int console, qmp_fd, disk; /* disk: O_RDONLY */
	bool deleted;              /* the event DEVICE_DELETED was seen */
	struct qmp qmp;
	struct buf out;
};

/* A descriptor of a file without a name. */
static int memfd(const void *data, size_t len)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, len), 0);
	return fd;
}

static void confine(struct spawn_plan *plan)
{
	plan->die_with_parent = true;
	plan->change_ids = geteuid() == 0;
	plan->uid = OTHER_UID;
	plan->gid = OTHER_UID;
}

/* Starts the device process; the front end's end of its socket is returned. */
static int start_vsock(void **state, struct rig *rig)
{
	char *argv[] = { (char[]){ "husk-vsock" }, (char[]){ "--vhost-fd=3" },
			 (char[]){ "--listen-fd=4" }, (char[]){ "--guest-cid=3" }, NULL };
	struct spawn_plan plan = { .program = HUSK_VSOCK_PROGRAM, .argv = argv };
	int ends[2], listener;

	assert_int_equal(chdir(fixture_path(state)), 0);
	listener = unix_listen("vsock", 0600);
	assert_true(listener >= 0);
	assert_int_equal(unix_pair(ends), 0);
	confine(&plan);
	assert_int_equal(spawn_plan_fd(&plan, ends[0], 3), 0);
	assert_int_equal(spawn_plan_fd(&plan, listener, 4), 0);
	assert_int_equal(spawn_plan_fd(&plan, 2, 2), 0);
	assert_int_equal(spawn(&plan, &rig->vsock, NULL), 0);
	close(ends[0]);
	close(listener);
	assert_int_equal(chdir("/"), 0);
	return ends[1];
}

static void make_argv(enum plan_machine machine, struct vm *ret_vm, struct strv *argv)
{
	const struct plan_options opts = { .accel = PLAN_ACCEL_TCG,
					   .machine = machine,
					   .vsock = PLAN_VSOCK_USER,
					   .memory_mib = VM_MEMORY_MIN };
	const struct plan_host host = { 0 };
	struct pod_manifest pod;
	struct vm p;

	pod_make(&pod, 1, "x");
	assert_int_equal(plan_make(&pod, &opts, &host, &p, NULL), 0);
	*ret_vm = p;
	strv_init(argv, ARGV_MAX);
	assert_int_equal(argv_build(&p, argv, NULL), 0);
	pod_manifest_deinit(&pod);
}

/* Makes a file of DISK_SIZE bytes in the test's directory and opens it. */
static int make_disk(void **state, const char *name, int flags)
{
	char path[PATH_MAX];
	int fd;

	fixture_write(state, name, "x", 1);
	snprintf(path, sizeof(path), "%s/%s", fixture_path(state), name);
	assert_int_equal(truncate(path, DISK_SIZE), 0);
	fd = open(path, flags | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* Opens everything that @vm names, starts QEMU with it. */
static void start(void **state, enum plan_machine machine, struct rig *rig)
{
	cleanup_strv struct strv argv;
	struct spawn_plan plan = { 0 };
	char qemu[PATH_MAX];
	struct guest guest;
	struct vm vm;
	int console[2], qmp[2];

	make_argv(machine, &vm, &argv);
	make_guest(&guest);
	assert_int_equal(facts_find_qemu(NULL, qemu, NULL), 0);
	assert_int_equal(unix_pair(console), 0);
	assert_int_equal(unix_pair(qmp), 0);
	rig->disk = make_disk(state, "rootfs", O_RDONLY);

	const struct spawn_fd fds[] = {
		{ memfd(&guest, sizeof(guest)), ARGV_FD_KERNEL },
		{ memfd("initramfs", 9), ARGV_FD_INITRD },
		{ memfd("secret", 6), ARGV_FD_SECRET },
		{ console[1], ARGV_FD_CONSOLE },
		{ qmp[1], ARGV_FD_QMP },
		{ start_vsock(state, rig), ARGV_FD_VSOCK },
		{ fcntl(rig->disk, F_DUPFD_CLOEXEC, 3), ARGV_FD_DISK0 },
		{ make_disk(state, "scratch", O_RDWR), ARGV_FD_DISK0 + 1 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		assert_int_equal(spawn_plan_fd(&plan, fds[i].source, fds[i].target), 0);
	assert_int_equal(spawn_plan_fd(&plan, 2, 2), 0);
	plan.program = qemu;
	plan.argv = argv.v;
	confine(&plan);
	assert_int_equal(spawn(&plan, &rig->qemu, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i].source);
	rig->console = console[0];
	rig->qmp_fd = qmp[0];
	qmp_init(&rig->qmp);
	buf_init(&rig->out, QMP_COMMAND_MAX);
}

/* Reads what is there; a QEMU that says nothing for TIMEOUT_MS fails the test. */
static size_t read_some(int fd, char *mem, size_t size)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	assert_int_equal(poll(&p, 1, TIMEOUT_MS), 1);
	n = read(fd, mem, size);
	assert_true(n > 0);
	return (size_t)n;
}

static void await_greeting(const struct rig *rig)
{
	char text[512] = { 0 };
	size_t len = 0;

	while (!strstr(text, GREETING)) {
		assert_true(len < sizeof(text) - 1);
		len += read_some(rig->console, text + len, sizeof(text) - 1 - len);
	}
}

static void await_message(struct rig *rig, struct qmp_msg *ret)
{
	char chunk[4096];
	int r;

	while ((r = qmp_next(&rig->qmp, ret)) == QMP_INCOMPLETE) {
		size_t n = read_some(rig->qmp_fd, chunk, MIN(sizeof(chunk), qmp_room(&rig->qmp)));

		assert_int_equal(qmp_feed(&rig->qmp, chunk, n), 0);
	}
	assert_int_equal(r, 0);
	if (ret->kind == QMP_EVENT && strcmp(ret->name, "DEVICE_DELETED") == 0)
		rig->deleted = true;
}

/* The next message that is not an event. */
static void await_answer(struct rig *rig, struct qmp_msg *ret)
{
	for (;;) {
		await_message(rig, ret);
		if (ret->kind != QMP_EVENT)
			return;
		qmp_msg_deinit(ret);
	}
}

static void await_deleted(struct rig *rig)
{
	while (!rig->deleted) {
		CLEANUP(qmp_msg_deinit) struct qmp_msg m = { 0 };

		await_message(rig, &m);
	}
}

/* Sends what is queued, with @fd unless it is negative, and expects an answer of @kind. */
static void exchange(struct rig *rig, int queued, int fd, int64_t id, enum qmp_kind kind)
{
	CLEANUP(qmp_msg_deinit) struct qmp_msg m = { 0 };
	size_t sent;

	assert_int_equal(queued, 0);
	assert_int_equal(unix_send_fds(rig->qmp_fd, buf_data(&rig->out), buf_len(&rig->out), &fd,
				       fd < 0 ? 0 : 1, &sent),
			 0);
	assert_int_equal(sent, buf_len(&rig->out));
	buf_consume(&rig->out, sent);
	await_answer(rig, &m);
	if (m.kind != kind)
		fail_msg("answer of kind %d: %s", (int)m.kind, m.text);
	assert_int_equal(m.id, id);
}

static void negotiate(struct rig *rig)
{
	CLEANUP(qmp_msg_deinit) struct qmp_msg m = { 0 };
	int64_t id;
	int r;

	await_answer(rig, &m);
	assert_int_equal(m.kind, QMP_GREETING);
	assert_true(m.major >= 7);
	r = qmp_command(&rig->qmp, &rig->out, "qmp_capabilities", NULL, &id);
	exchange(rig, r, -1, id, QMP_RETURN);
}

/* A read-only descriptor becomes a read-only disk, and nothing else. */
static void plug(struct rig *rig)
{
	struct qmp *q = &rig->qmp;
	struct buf *out = &rig->out;
	int64_t id;
	int r;

	r = qmp_disk_fd_add(q, out, HOT_SET, &id);
	exchange(rig, r, rig->disk, id, QMP_RETURN);
	r = qmp_disk_node_add(q, out, HOT_SET, HOT_LUN, false, &id);
	exchange(rig, r, -1, id, QMP_ERROR);
	r = qmp_disk_node_add(q, out, HOT_SET, HOT_LUN, true, &id);
	exchange(rig, r, -1, id, QMP_RETURN);
	r = qmp_disk_device_add(q, out, HOT_LUN, &id);
	exchange(rig, r, -1, id, QMP_RETURN);
	r = qmp_disk_device_add(q, out, HOT_LUN, &id);
	exchange(rig, r, -1, id, QMP_ERROR); /* it is there already */
	r = qmp_disk_device_del(q, out, HOT_LUN, &id);
	exchange(rig, r, -1, id, QMP_RETURN);
	await_deleted(rig);
	r = qmp_disk_node_del(q, out, HOT_LUN, &id);
	exchange(rig, r, -1, id, QMP_RETURN);
	r = qmp_disk_fd_remove(q, out, HOT_SET, &id);
	exchange(rig, r, -1, id, QMP_RETURN);
}

/* What hotplug.c asks a QEMU that runs, without a loop watching it. */
struct plugger {
	struct rig *rig;
	struct loop loop;
	struct hotplug hotplug;
	bool told, left;
	struct err why;
};

static int send_queued(void *ctx, int fd)
{
	struct rig *rig = ((struct plugger *)ctx)->rig;
	size_t sent = 0;
	int r = unix_send_fds(rig->qmp_fd, buf_data(&rig->out), buf_len(&rig->out), &fd,
			      fd < 0 ? 0 : 1, &sent);

	assert_int_equal(sent, buf_len(&rig->out));
	buf_consume(&rig->out, sent);
	return r;
}

static void on_done(void *ctx, const struct err *why, bool left)
{
	struct plugger *p = ctx;

	p->told = true;
	p->left = left;
	p->why = why ? *why : ERR_INIT;
}

/* Until whoever asked is told. */
static void await_done(struct plugger *p)
{
	p->told = false;
	assert_int_equal(loop_turn(&p->loop), 0); /* it begins */
	while (!p->told) {
		CLEANUP(qmp_msg_deinit) struct qmp_msg m = { 0 };

		await_message(p->rig, &m);
		hotplug_take(&p->hotplug, &m);
	}
}

static void hot_add(struct plugger *p, const char *error)
{
	int fd = fcntl(p->rig->disk, F_DUPFD_CLOEXEC, 3);

	assert_int_equal(hotplug_add(&p->hotplug, HOT_LUN, fd, on_done, p), 0);
	await_done(p);
	assert_false(p->left);
	if (error)
		assert_non_null(strstr(p->why.text, error));
	else
		assert_string_equal(p->why.text, "");
}

static void hot_remove(struct plugger *p)
{
	assert_int_equal(hotplug_remove(&p->hotplug, HOT_LUN, on_done, p), 0);
	await_done(p);
}

/*
 * The same LUN again and again. One that is in use is refused; undoing that, QEMU forgets the set
 * of the disk that is there, too, so that the end of its removal is refused: then something may be
 * left.
 */
static void plug_by_module(struct rig *rig)
{
	struct plugger p = { .rig = rig };

	assert_int_equal(loop_init(&p.loop), 0);
	hotplug_init(&p.hotplug, &p.loop, &rig->qmp, &rig->out, send_queued, &p);
	for (int i = 0; i < 3; i++) {
		hot_add(&p, NULL);
		hot_remove(&p);
		assert_string_equal(p.why.text, "");
	}
	hot_remove(&p); /* there is none */
	assert_non_null(strstr(p.why.text, "disk7"));
	assert_true(p.left);
	hot_add(&p, NULL);
	hot_add(&p, "disk7");
	hot_remove(&p);
	assert_non_null(strstr(p.why.text, "fdset-id:7"));
	assert_true(p.left);
	hot_add(&p, NULL);
	hot_remove(&p);
	assert_string_equal(p.why.text, "");
	hotplug_deinit(&p.hotplug);
	loop_deinit(&p.loop);
}

/* What the kernel says about QEMU: the other user, no new privileges, a system call filter. */
static void check_confinement(const struct rig *rig)
{
	char path[64], text[8192], uid[64];
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)rig->qemu);
	f = fopen(path, "re");
	assert_non_null(f);
	len = fread(text, 1, sizeof(text) - 1, f);
	text[len] = '\0';
	fclose(f);
	assert_non_null(strstr(text, "\nNoNewPrivs:\t1\n"));
	assert_non_null(strstr(text, "\nSeccomp:\t2\n"));
	if (geteuid() == 0) {
		snprintf(uid, sizeof(uid), "\nUid:\t%u\t%u\t%u\t%u\n", OTHER_UID, OTHER_UID,
			 OTHER_UID, OTHER_UID);
		assert_non_null(strstr(text, uid));
		assert_non_null(strstr(text, "\nCapEff:\t0000000000000000\n"));
	}
}

static void quit(struct rig *rig)
{
	int64_t id;
	int status, r = qmp_command(&rig->qmp, &rig->out, "quit", NULL, &id);

	exchange(rig, r, -1, id, QMP_RETURN);
	assert_int_equal(spawn_wait(rig->qemu, &status), 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(spawn_wait(rig->vsock, &status), 0); /* it ends with its VM */
	close(rig->console);
	close(rig->qmp_fd);
	close(rig->disk);
	qmp_deinit(&rig->qmp);
	buf_deinit(&rig->out);
}

static void run(void **state, enum plan_machine machine)
{
	struct rig rig = { 0 };

	start(state, machine, &rig);
	negotiate(&rig);
	await_greeting(&rig);
	check_confinement(&rig);
	plug(&rig);
	plug_by_module(&rig);
	quit(&rig);
}

static void test_microvm(void **state)
{
	run(state, PLAN_MACHINE_MICROVM);
}

static void test_q35(void **state)
{
	run(state, PLAN_MACHINE_Q35);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_microvm),
		fixture_test(test_q35),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
