/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doctor entrypoint of stage1-kvm: looks at everything a start needs and prints one JSON
 * document, {"checks": [{"name", "ok", "value", "detail", "remedy"}, ...]}. The exit status is 0 if
 * a pod could run. A check that is not ok need not prevent that: without KVM there is emulation.
 *
 * Options: --qemu=PROGRAM, --kernel=KIND, as for run.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/os/spawn.h"
#include "lib/wire/stage1.h"
#include "stage1-kvm/backend/scratch.h"
#include "stage1-kvm/hostfacts/facts.h"
#include "stage1-kvm/hostfacts/vhost.h"
#include "stage1-kvm/vmm/libvirt/libvirt.h"
#include "stage1-kvm/vmm/libvirt/uri.h"
#include "stage1-kvm/vmm/qemu/argv.h"
#include "stage1/entry/doctor.h"

#define QEMU_OUTPUT_MAX    ((size_t)256 * 1024) /* "-device help" has about 20 KiB */
#define QEMU_TIMEOUT_MS    10000
#define KERNEL_BANNER      "Linux version "
#define KERNEL_FILE_MAX    ((off_t)1024 * 1024 * 1024)
#define KERNEL_VERSION_MAX 64

/* ---- acceleration and vsock ---- */

static void check_kvm(struct doctor *d)
{
	struct probe_result res;
	char value[64];
	bool usable;

	probe_kvm("/dev/kvm", true, &res);
	usable = res.verdict == PROBE_USABLE;
	if (res.per_sec > 0)
		snprintf(value, sizeof(value), "%s, %lld M instructions/s",
			 probe_verdict_name(res.verdict), (long long)(res.per_sec / 1000000));
	else
		snprintf(value, sizeof(value), "%s", probe_verdict_name(res.verdict));
	doctor_add(d, &(struct doctor_check){ .name = "kvm",
					      .ok = usable,
					      .value = value,
					      .detail = res.reason,
					      .remedy = probe_verdict_remedy(res.verdict) });
	doctor_add(d, &(struct doctor_check){
			      .name = "acceleration",
			      .ok = true,
			      .value = vm_accel_name(usable ? VM_ACCEL_KVM : VM_ACCEL_TCG),
			      .detail = usable ? "guests run on the processor"
					       : "guests are emulated by QEMU: slower" });
}

static void check_vsock(struct doctor *d)
{
	struct facts_vsock v;
	char program[PATH_MAX];
	bool ok;

	facts_vhost_vsock(VHOST_VSOCK_DEVICE, &v);
	fd_close(v.fd);
	doctor_add(d, &(struct doctor_check){ .name = "vhost-vsock",
					      .ok = v.usable,
					      .value = v.usable ? "usable" : "not usable",
					      .detail = v.reason,
					      .remedy = v.remedy });
	ok = path_from_self("husk-vsock", program, sizeof(program)) == 0;
	doctor_add(d, &(struct doctor_check){
			      .name = "husk-vsock",
			      .ok = ok,
			      .needed = !v.usable,
			      .value = ok ? "found" : "missing",
			      .detail = ok ? program : "husk-vsock is not beside this program",
			      .remedy = "install husk again" });
	ok = ok || v.usable;
	doctor_add(d, &(struct doctor_check){
			      .name = "vsock",
			      .ok = ok,
			      .needed = true,
			      .value = v.usable ? vm_vsock_name(VM_VSOCK_KERNEL)
				       : ok     ? vm_vsock_name(VM_VSOCK_USER)
						: "none",
			      .detail = v.usable ? "the host's kernel carries the guest's vsock"
					: ok     ? "husk-vsock carries the guest's vsock"
						 : "nothing carries the guest's vsock",
			      .remedy = "install husk again" });
}

/* ---- QEMU ---- */

/* Appends what @fd delivers until its end or @deadline_ns. */
static int doctor_drain(int fd, struct buf *out, int64_t deadline_ns)
{
	for (;;) {
		int64_t left_ms = (deadline_ns - clock_monotonic_ns()) / NS_PER_MS;
		struct pollfd p = { .fd = fd, .events = POLLIN };
		char chunk[4096];
		ssize_t n;
		int r;

		if (left_ms <= 0 || poll(&p, 1, (int)left_ms) == 0)
			return -ETIMEDOUT;
		n = read(fd, chunk, sizeof(chunk));
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && (r = buf_append(out, chunk, (size_t)n)) < 0)
			return r;
	}
}

/* Starts @qemu with one or two arguments. The descriptor that reads its output, or -errno. */
static int start_qemu(const char *qemu, const char *arg1, const char *arg2, pid_t *ret_pid)
{
	cleanup_strv struct strv argv;
	struct spawn_plan plan = { .program = qemu, .die_with_parent = true };
	int pipes[2], r;

	strv_init(&argv, 3);
	if ((r = strv_add(&argv, "qemu")) < 0 || (r = strv_add(&argv, arg1)) < 0 ||
	    (arg2 && (r = strv_add(&argv, arg2)) < 0))
		return r;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	cleanup_fd int reader = pipes[0];
	cleanup_fd int writer = pipes[1];
	plan.argv = argv.v;
	if ((r = spawn_plan_fd(&plan, writer, 1)) < 0 || (r = spawn(&plan, ret_pid, NULL)) < 0)
		return r;
	return TAKE_FD(reader);
}

/* What @qemu prints with one or two arguments, owned by the caller. 0 or -errno. */
static int qemu_output(const char *qemu, const char *arg1, const char *arg2, char **ret)
{
	cleanup_buf struct buf out;
	int r, status;
	pid_t pid = -1;

	buf_init(&out, QEMU_OUTPUT_MAX);
	cleanup_fd int reader = start_qemu(qemu, arg1, arg2, &pid);
	if (reader < 0)
		return reader;
	r = doctor_drain(reader, &out, clock_monotonic_ns() + QEMU_TIMEOUT_MS * NS_PER_MS);
	if (r < 0)
		kill(pid, SIGKILL);
	spawn_wait(pid, &status);
	if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		r = -EIO;
	if (r == 0 && !(*ret = buf_take_string(&out)))
		r = -ENOMEM;
	return r;
}

/* Appends those of @models to @missing that "-device help" does not list. */
static void find_missing(const char *help, const char *const *models, struct buf *missing)
{
	for (; *models; models++) {
		char entry[64];

		snprintf(entry, sizeof(entry), "name \"%s\"", *models);
		if (!strstr(help, entry))
			buf_printf(missing, "%s%s", buf_len(missing) ? ", " : "", *models);
	}
}

static void check_devices(struct doctor *d, const char *qemu)
{
	cleanup_free char *help = NULL, *text = NULL;
	cleanup_buf struct buf missing;
	int r = qemu_output(qemu, "-device", "help", &help);

	buf_init(&missing, DOCTOR_TEXT_MAX);
	if (r == 0 && help)
		find_missing(help, argv_devices, &missing);
	else
		buf_printf(&missing, "\"-device help\" failed: %s", strerror(-r));
	text = buf_take_string(&missing);
	bool ok = text && text[0] == '\0';
	doctor_add(d, &(struct doctor_check){
			      .name = "qemu-devices",
			      .ok = ok,
			      .needed = true,
			      .value = ok ? "complete" : "incomplete",
			      .detail = ok ? "every device model a pod needs" : text,
			      .remedy = "install a full qemu-system-x86_64, 7.2 or later" });
}

static void check_qemu(struct doctor *d, const struct facts_options *opts)
{
	char path[PATH_MAX];
	struct err e = ERR_INIT;
	cleanup_free char *version = NULL;
	bool ok = facts_find_qemu(opts->qemu, path, &e) == 0;
	int r = ok ? qemu_output(path, "--version", NULL, &version) : 0;

	if (version)
		version[strcspn(version, "\n")] = '\0';
	doctor_add(d, &(struct doctor_check){ .name = "qemu",
					      .ok = ok && r == 0,
					      .needed = true,
					      .value = ok ? path : "not found",
					      .detail = !ok     ? e.text
							: r < 0 ? "\"--version\" failed"
								: version,
					      .remedy = "apt-get install qemu-system-x86" });
	if (ok && r == 0)
		check_devices(d, path);
}

/* ---- guest kernels ---- */

/* The release in the banner of an uncompressed kernel, or "". */
static void kernel_version(const char *path, char out[KERNEL_VERSION_MAX], off_t *ret_size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	size_t n = 0;

	out[0] = '\0';
	*ret_size = 0;
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > KERNEL_FILE_MAX)
		return;
	*ret_size = st.st_size;
	char *mem = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (mem == MAP_FAILED)
		return;
	const char *end = mem + st.st_size;
	const char *p = memmem(mem, (size_t)st.st_size, KERNEL_BANNER, strlen(KERNEL_BANNER));
	for (p = p ? p + strlen(KERNEL_BANNER) : end; p < end && n < KERNEL_VERSION_MAX - 1; p++) {
		if (!isgraph((unsigned char)*p))
			break;
		out[n++] = *p;
	}
	out[n] = '\0';
	munmap(mem, (size_t)st.st_size);
}

static off_t file_size(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : 0;
}

/* One kind of kernel. True if it is there. */
static bool check_kernel(struct doctor *d, const struct facts_options *opts, const char *kind)
{
	struct facts_options o = *opts;
	struct facts_kernel k;
	struct err e = ERR_INIT;
	char name[64], value[128], version[KERNEL_VERSION_MAX], detail[DOCTOR_TEXT_MAX + 1];
	char remedy[FACTS_REMEDY_MAX];
	off_t size;

	o.kernel = kind;
	snprintf(name, sizeof(name), "kernel-%s", strchr(kind, '/') ? "given" : kind);
	if (facts_find_kernel(&o, &k, &e) < 0) {
		facts_kernel_remedy(kind, remedy);
		doctor_add(d, &(struct doctor_check){ .name = name,
						      .value = "not found",
						      .detail = e.text,
						      .remedy = remedy });
		return false;
	}
	kernel_version(k.vmlinux, version, &size);
	snprintf(value, sizeof(value), "%s, %lld KiB, initramfs %lld KiB",
		 version[0] ? version : "unknown version", (long long)(size / 1024),
		 (long long)(file_size(k.initramfs) / 1024));
	snprintf(detail, sizeof(detail), "%.*s", DOCTOR_TEXT_MAX, k.vmlinux);
	doctor_add(d, &(struct doctor_check){
			      .name = name, .ok = true, .value = value, .detail = detail });
	return true;
}

static void check_kernels(struct doctor *d, const struct facts_options *opts)
{
	char remedy[FACTS_REMEDY_MAX];
	bool small, packaged, any;

	if (opts->kernel) {
		any = check_kernel(d, opts, opts->kernel);
	} else {
		small = check_kernel(d, opts, "small");
		packaged = check_kernel(d, opts, "packaged");
		any = small || packaged;
	}
	facts_kernel_remedy("packaged", remedy);
	doctor_add(d, &(struct doctor_check){ .name = "guest-kernel",
					      .ok = any,
					      .needed = true,
					      .value = any ? "found" : "none",
					      .detail = any ? "a pod has something to boot"
							    : "neither kernel is complete",
					      .remedy = remedy });
}

/* ---- what the processes of a pod are confined with ---- */

static void check_confinement(struct doctor *d)
{
	cleanup_fd int memfd = memfd_create("husk-doctor", MFD_CLOEXEC);
	long landlock =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	unsigned action = SECCOMP_RET_KILL_PROCESS;
	bool seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
	char value[32];

	doctor_add(d,
		   &(struct doctor_check){ .name = "memfd",
					   .ok = memfd >= 0,
					   .needed = true,
					   .value = memfd >= 0 ? "yes" : "no",
					   .detail = "guest memory and the pod's secret live in it",
					   .remedy = "allow memfd_create(2)" });
	snprintf(value, sizeof(value), landlock > 0 ? "version %ld" : "no", landlock);
	doctor_add(d, &(struct doctor_check){
			      .name = "landlock",
			      .ok = landlock > 0,
			      .value = value,
			      .detail = "second fence around husk-vsock",
			      .remedy = "boot the host's kernel with lsm=landlock,..." });
	doctor_add(d, &(struct doctor_check){
			      .name = "seccomp",
			      .ok = seccomp,
			      .needed = true,
			      .value = seccomp ? "yes" : "no",
			      .detail = "system call filter of QEMU and husk-vsock",
			      .remedy = "use a host kernel with CONFIG_SECCOMP_FILTER" });
}

/*
 * Where /dev/kvm opens and is of no use, libvirt takes all that it knows about QEMU for out of
 * date.
 */
static bool misleads_libvirt(void)
{
	struct probe_result kvm;
	probe_kvm("/dev/kvm", true, &kvm);
	return access("/dev/kvm", R_OK | W_OK) == 0 && kvm.verdict != PROBE_USABLE;
}

/* Nobody needs it who does not ask for --vmm=libvirt. */
static void check_libvirt(struct doctor *d)
{
	struct err why = ERR_INIT;
	const char *uri = libvirt_default_uri();
	bool there = libvirt_driver.check(uri, false, &why) == 0;
	bool slow = there && strcmp(uri, LIBVIRT_URI_EMBED) != 0 && misleads_libvirt();

	doctor_add(d, &(struct doctor_check){
			      .name = "libvirt",
			      .ok = !slow,
			      .value = there ? uri : "no",
			      .detail = slow ? "it takes a minute to start a VM: /dev/kvm is there "
					       "and of no use, so it probes QEMU again and again"
					: there ? "for --vmm=libvirt"
						: why.text,
			      .remedy = "give --libvirt-uri=qemu:///embed, or hide /dev/kvm from "
					"its daemon" });
}

static int parse_options(int argc, char **argv, struct facts_options *ret)
{
	for (int i = 1; i < argc; i++) {
		if (str_starts(argv[i], "--qemu="))
			ret->qemu = argv[i] + strlen("--qemu=");
		else if (str_starts(argv[i], "--kernel="))
			ret->kernel = argv[i] + strlen("--kernel=");
		else
			return -EINVAL;
	}
	return 0;
}

static void run_checks(struct doctor *d, const struct facts_options *opts)
{
	check_kvm(d);
	check_vsock(d);
	check_qemu(d, opts);
	check_kernels(d, opts);
	doctor_add_mkfs(d);
	check_confinement(d);
	doctor_add_cgroups(d, "virtual machines");
	check_libvirt(d);
	doctor_add_user(d, "the processes of a pod get a user id of their own");
}

int main(int argc, char **argv)
{
	struct doctor d;
	struct facts_options opts = { 0 };
	int code;

	if (doctor_asked_of_pod(argc, argv, &code))
		return code;
	if (parse_options(argc, argv, &opts) < 0) {
		fprintf(stderr,
			"stage1: doctor: usage: doctor [--qemu=PROGRAM] [--kernel=KIND] | --uuid=UUID\n");
		return EXIT_HUSK_FAILURE;
	}
	doctor_init(&d);
	run_checks(&d, &opts);
	return doctor_finish(&d);
}
