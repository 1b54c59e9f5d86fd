/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. A machine is built through the KVM API: one 2 MiB memory slot with page
 * tables that map it onto itself, and a processor that starts in 64-bit mode at a loop of two
 * instructions that ends in HLT. The loop runs with twice as many turns each time until a run took
 * long enough to say something: PROBE_ENOUGH_NS if it was fast, PROBE_SLOW_NS if it was slow. Time
 * is CPU time of this thread, so that a busy host does not look like a slow KVM.
 *
 * A run that does not come back is interrupted by SIGALRM, which makes KVM_RUN fail with EINTR. The
 * timer fires again and again, so that one tick before KVM_RUN was entered does no harm.
 */
#include "stage1-kvm/hostfacts/probe.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

#define GUEST_SIZE  ((size_t)2 * 1024 * 1024)
#define GUEST_PML4  0x1000
#define GUEST_PDPT  0x2000
#define GUEST_PD    0x3000
#define GUEST_CODE  0x4000
#define PTE_PRESENT 0x1u
#define PTE_WRITE   0x2u
#define PTE_LARGE   0x80u

#define CPUID_ENTRIES_MAX 256 /* the kernel's own limit (KVM_MAX_CPUID_ENTRIES) */

#define TURN_INSTRUCTIONS 2 /* dec, jnz */
#define TURNS_FIRST       500
#define TURNS_MAX         (1u << 22) /* 8 ms at 1,000 M/s: reached by nothing that is fast */

#define CPUID_VMX (1u << 5) /* leaf 1, ecx */
#define CPUID_SVM (1u << 2) /* leaf 0x80000001, ecx */

#define PROBE_ENOUGH_NS (NS_PER_MS / 5)
#define PROBE_SLOW_NS   (NS_PER_MS * 3 / 2)
#define SLOW_RUNS       4 /* seen: one run of 15 with a competitor was 70 times too slow */
#define TICK_NS         (NS_PER_MS * 10) /* between two SIGALRM after the time limit */

struct tiny {
	int kvm, vm, vcpu;
	unsigned char *mem;  /* GUEST_SIZE bytes, or MAP_FAILED */
	struct kvm_run *run; /* run_size bytes, or MAP_FAILED */
	size_t run_size;
};

static void tiny_init(struct tiny *t)
{
	*t = (struct tiny){ -EBADF, -EBADF, -EBADF, MAP_FAILED, MAP_FAILED, 0 };
}

static void tiny_deinit(struct tiny *t)
{
	if (t->run != MAP_FAILED)
		munmap(t->run, t->run_size);
	fd_close(t->vcpu);
	fd_close(t->vm);
	fd_close(t->kvm);
	if (t->mem != MAP_FAILED)
		munmap(t->mem, GUEST_SIZE);
}

static void put_entry(struct tiny *t, size_t table, uint64_t entry)
{
	memcpy(t->mem + table, &entry, sizeof(entry));
}

static void write_guest(struct tiny *t)
{
	static const unsigned char code[] = {
		0xff, 0xc9, /* again: dec ecx */
		0x75, 0xfc, /*        jnz again */
		0xf4,       /*        hlt */
	};

	put_entry(t, GUEST_PML4, GUEST_PDPT | PTE_PRESENT | PTE_WRITE);
	put_entry(t, GUEST_PDPT, GUEST_PD | PTE_PRESENT | PTE_WRITE);
	put_entry(t, GUEST_PD, PTE_PRESENT | PTE_WRITE | PTE_LARGE);
	memcpy(t->mem + GUEST_CODE, code, sizeof(code));
}

static int make_memory(struct tiny *t, struct err *e)
{
	t->mem = mmap(NULL, GUEST_SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t->mem == MAP_FAILED)
		return err_sys(e, -errno, "memory for a test machine");
	write_guest(t);

	struct kvm_userspace_memory_region region = {
		.memory_size = GUEST_SIZE,
		.userspace_addr = (uintptr_t)t->mem,
	};
	if (ioctl(t->vm, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		return err_sys(e, -errno, "KVM_SET_USER_MEMORY_REGION");
	return 0;
}

static int make_vcpu(struct tiny *t, struct err *e)
{
	int size = ioctl(t->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);

	if (size < (int)sizeof(struct kvm_run))
		return err_set(e, -EIO, "KVM_GET_VCPU_MMAP_SIZE: %d", size);
	t->vcpu = ioctl(t->vm, KVM_CREATE_VCPU, 0);
	if (t->vcpu < 0)
		return err_sys(e, -errno, "KVM_CREATE_VCPU");
	t->run_size = (size_t)size;
	t->run = mmap(NULL, t->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, t->vcpu, 0);
	if (t->run == MAP_FAILED)
		return err_sys(e, -errno, "mapping a processor of KVM");
	return 0;
}

/*
 * Without this the processor has no features, and a kernel may refuse the registers of long mode.
 */
static int set_cpuid(struct tiny *t, struct err *e)
{
	union {
		struct kvm_cpuid2 head;
		char room[sizeof(struct kvm_cpuid2) +
			  CPUID_ENTRIES_MAX * sizeof(struct kvm_cpuid_entry2)];
	} cpuid = { .head.nent = CPUID_ENTRIES_MAX };

	if (ioctl(t->kvm, KVM_GET_SUPPORTED_CPUID, &cpuid) < 0)
		return err_sys(e, -errno, "KVM_GET_SUPPORTED_CPUID");
	if (ioctl(t->vcpu, KVM_SET_CPUID2, &cpuid) < 0)
		return err_sys(e, -errno, "KVM_SET_CPUID2");
	return 0;
}

/* AMD64 Architecture Programmer's Manual volume 2, 14.8: what long mode needs. */
static int enter_long_mode(struct tiny *t, struct err *e)
{
	struct kvm_segment code = {
		.limit = 0xffffffff, .selector = 8, .type = 11, .present = 1, .s = 1, .l = 1, .g = 1
	};
	struct kvm_segment data = { .limit = 0xffffffff,
				    .selector = 16,
				    .type = 3,
				    .present = 1,
				    .db = 1,
				    .s = 1,
				    .g = 1 };
	struct kvm_sregs s;

	if (ioctl(t->vcpu, KVM_GET_SREGS, &s) < 0)
		return err_sys(e, -errno, "KVM_GET_SREGS");
	s.cr0 = 0x80000033; /* PG, NE, ET, MP, PE */
	s.cr3 = GUEST_PML4;
	s.cr4 = 0x20;   /* PAE */
	s.efer = 0x500; /* LMA, LME */
	s.cs = code;
	s.ds = s.es = s.fs = s.gs = s.ss = data;
	if (ioctl(t->vcpu, KVM_SET_SREGS, &s) < 0)
		return err_sys(e, -errno, "KVM_SET_SREGS");
	return 0;
}

static int tiny_make(struct tiny *t, struct err *e)
{
	int version = ioctl(t->kvm, KVM_GET_API_VERSION, 0);
	int r;

	if (version != KVM_API_VERSION)
		return err_set(e, -EIO, "KVM_GET_API_VERSION: %d, not %d", version,
			       KVM_API_VERSION);
	t->vm = ioctl(t->kvm, KVM_CREATE_VM, 0);
	if (t->vm < 0)
		return err_sys(e, -errno, "KVM_CREATE_VM");
	if ((r = make_memory(t, e)) < 0 || (r = make_vcpu(t, e)) < 0 || (r = set_cpuid(t, e)) < 0)
		return r;
	return enter_long_mode(t, e);
}

static int64_t thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

/* Runs @turns of the loop and yields their CPU time. -ETIME if it had to be interrupted. */
static int run_loop(struct tiny *t, unsigned turns, int64_t deadline_ns, int64_t *ret_ns,
		    struct err *e)
{
	struct kvm_regs regs = { .rip = GUEST_CODE, .rflags = 2, .rcx = turns };
	int64_t start = thread_cpu_ns();

	if (ioctl(t->vcpu, KVM_SET_REGS, &regs) < 0)
		return err_sys(e, -errno, "KVM_SET_REGS");
	while (ioctl(t->vcpu, KVM_RUN, 0) < 0) {
		if (errno != EINTR && errno != EAGAIN)
			return err_sys(e, -errno, "KVM_RUN");
		if (clock_monotonic_ns() >= deadline_ns)
			return -ETIME;
	}
	if (t->run->exit_reason != KVM_EXIT_HLT)
		return err_set(e, -EIO, "KVM_RUN: exit reason %u from a counted loop",
			       t->run->exit_reason);
	*ret_ns = thread_cpu_ns() - start;
	return 0;
}

/*
 * The highest speed seen, in instructions per second, in *ret_per_sec; with -ETIME what was seen
 * until then, 0 if nothing.
 */
static int measure(struct tiny *t, int64_t *ret_per_sec, struct err *e)
{
	int64_t deadline = clock_monotonic_ns() + PROBE_TIMEOUT_MS * NS_PER_MS;
	int64_t ns = 0;
	unsigned turns = TURNS_FIRST, slow_runs = 0;
	int r = run_loop(t, 1, deadline, &ns, e); /* faults the pages in */

	while (r == 0 && turns <= TURNS_MAX && slow_runs < SLOW_RUNS) {
		int64_t per_sec;

		r = run_loop(t, turns, deadline, &ns, e);
		if (r < 0)
			break;
		per_sec = (int64_t)turns * TURN_INSTRUCTIONS * NS_PER_SEC / MAX(ns, 1);
		*ret_per_sec = MAX(*ret_per_sec, per_sec);
		if (*ret_per_sec >= PROBE_MIN_PER_SEC && ns >= PROBE_ENOUGH_NS)
			break;
		if (ns >= PROBE_SLOW_NS)
			slow_runs++;
		else
			turns *= 2;
	}
	return r;
}

static void on_alarm(int sig)
{
	(void)sig; /* its only purpose is to interrupt KVM_RUN */
}

/* What has to be put back after the measurement. */
struct alarm {
	struct sigaction old_action;
	sigset_t old_mask;
	timer_t timer;
	bool has_timer;
};

static int alarm_start(struct alarm *a, struct err *e)
{
	struct sigaction action = { .sa_handler = on_alarm }; /* no SA_RESTART */
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };
	struct itimerspec when = { .it_value.tv_nsec = PROBE_TIMEOUT_MS * NS_PER_MS,
				   .it_interval.tv_nsec = TICK_NS };
	sigset_t set;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	sigaction(SIGALRM, &action, &a->old_action);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &set, &a->old_mask);
	a->has_timer = timer_create(CLOCK_MONOTONIC, &event, &a->timer) == 0;
	if (!a->has_timer || timer_settime(a->timer, 0, &when, NULL) < 0)
		return err_sys(e, -errno, "a timer for the test machine");
	return 0;
}

static void alarm_stop(struct alarm *a)
{
	if (a->has_timer)
		timer_delete(a->timer);
	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = SIG_IGN },
		  NULL); /* drops a late one */
	sigprocmask(SIG_SETMASK, &a->old_mask, NULL);
	sigaction(SIGALRM, &a->old_action, NULL);
}

static int measure_bounded(struct tiny *t, int64_t *ret_per_sec, struct err *e)
{
	struct alarm a = { 0 };
	int r = alarm_start(&a, e);

	if (r == 0)
		r = measure(t, ret_per_sec, e);
	alarm_stop(&a);
	return r;
}

static void PRINTF_FORMAT(3, 4)
	set_verdict(struct probe_result *res, enum probe_verdict verdict, const char *fmt, ...)
{
	va_list ap;

	res->verdict = verdict;
	va_start(ap, fmt);
	vsnprintf(res->reason, sizeof(res->reason), fmt, ap);
	va_end(ap);
}

/* The speed as a remark, or "" if nothing was measured. */
static void format_speed(const struct probe_result *res, char *out, size_t size)
{
	int64_t tenths = res->per_sec / 100000; /* of a million */

	out[0] = '\0';
	if (res->per_sec > 0)
		snprintf(out, size, " (%lld.%lld M instructions/s; a guest needs %lld M/s)",
			 (long long)(tenths / 10), (long long)(tenths % 10),
			 (long long)(PROBE_MIN_PER_SEC / 1000000));
}

static void judge_speed(struct probe_result *res, const char *device, bool hardware)
{
	char speed[128];

	format_speed(res, speed, sizeof(speed));
	if (!hardware)
		set_verdict(res, PROBE_NO_HARDWARE,
			    "%s opens, but the processor has neither VMX nor SVM%s", device, speed);
	else if (res->per_sec < PROBE_MIN_PER_SEC)
		set_verdict(res, PROBE_TOO_SLOW, "%s emulates instead of virtualizing%s", device,
			    speed);
	else
		set_verdict(res, PROBE_USABLE, "%s works%s", device, speed);
}

static void judge_open_failure(struct probe_result *res, const char *device, int error)
{
	if (error == ENOENT || error == ENODEV || error == ENXIO || error == ENOTDIR)
		set_verdict(res, PROBE_ABSENT, "there is no %s", device);
	else if (error == EACCES || error == EPERM)
		set_verdict(res, PROBE_NO_PERMISSION, "%s may not be opened", device);
	else
		set_verdict(res, PROBE_BROKEN, "%s cannot be opened: %s", device, strerror(error));
}

/*
 * What KVM needs of the processor: VMX (Intel SDM volume 3, 24.6) or SVM (AMD APM volume 2, 15.4).
 * Inside a VM both are there only if nesting is.
 */
static bool has_hardware(void)
{
	unsigned a, b, c, d;

	if (__get_cpuid(1, &a, &b, &c, &d) && (c & CPUID_VMX))
		return true;
	return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & CPUID_SVM);
}

/* Builds the machine on the open t->kvm and measures. 0, -ETIME or a failure in @e. */
static int examine_speed(struct tiny *t, int64_t *ret_per_sec, struct err *e)
{
	int r = tiny_make(t, e);

	return r < 0 ? r : measure_bounded(t, ret_per_sec, e);
}

static void examine(const char *device, bool thorough, struct probe_result *res)
{
	CLEANUP(tiny_deinit) struct tiny t;
	struct err e = ERR_INIT;
	bool hardware = has_hardware();
	int r = 0;

	tiny_init(&t);
	t.kvm = open(device, O_RDWR | O_CLOEXEC);
	if (t.kvm < 0) {
		judge_open_failure(res, device, errno);
		return;
	}
	if (hardware || thorough)
		r = examine_speed(&t, &res->per_sec, &e);
	if (r == 0 || r == -ETIME)
		judge_speed(res, device, hardware);
	else
		set_verdict(res, PROBE_BROKEN, "%s opens but does not work: %.512s", device,
			    e.text);
}

void probe_kvm(const char *device, bool thorough, struct probe_result *ret)
{
	struct probe_result res = { 0 };
	int64_t start = clock_monotonic_ns();

	examine(device, thorough, &res);
	res.cost_ns = clock_monotonic_ns() - start;
	*ret = res;
}

const char *probe_verdict_name(enum probe_verdict verdict)
{
	switch (verdict) {
	case PROBE_USABLE:
		return "usable";
	case PROBE_ABSENT:
		return "absent";
	case PROBE_NO_PERMISSION:
		return "no permission";
	case PROBE_NO_HARDWARE:
		return "no hardware";
	case PROBE_TOO_SLOW:
		return "too slow";
	case PROBE_BROKEN:
		return "broken";
	}
	return NULL;
}

const char *probe_verdict_remedy(enum probe_verdict verdict)
{
	switch (verdict) {
	case PROBE_USABLE:
		return "";
	case PROBE_ABSENT:
		return "modprobe kvm_intel or kvm_amd; in a VM, enable nesting";
	case PROBE_NO_PERMISSION:
		return "join the group that owns it";
	case PROBE_NO_HARDWARE:
	case PROBE_TOO_SLOW:
		return "use a host that virtualizes in hardware; in a VM, enable nesting";
	case PROBE_BROKEN:
		return "update the host's kernel";
	}
	return "";
}
