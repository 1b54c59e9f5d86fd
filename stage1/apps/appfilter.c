/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/appfilter.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/hex.h"
#include "lib/os/fd.h"
#include "lib/os/names.h"
#include "stage1/apps/appfilter_profile.h"
#include "stage1/apps/appfilter_sets.h"

#define X32_BIT 0x40000000U /* of the numbers of x32's calls; all of them are above it */

/* The youngest call that appfilter_default knows. */
#define YOUNGEST "removexattrat"

/* Room for the numbers of system calls; they reach 466. */
#define NUMBERS_MAX 1024

/* Flags of clone(2) that make namespaces; CLONE_NEWTIME exists for clone3(2) only. */
#define CLONE_NAMESPACES                                                               \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)

_Static_assert(APPFILTER_INSNS_MAX * sizeof(struct sock_filter) * 2 == AGENT_SECCOMP_MAX,
	       "the longest program fits into the message");

/* A policy on its way to rules. */
struct draft {
	bool named[NUMBERS_MAX]; /* calls that rules without conditions are about */
	bool with_default;       /* what the default filter allows comes in, with its conditions */
	int64_t capabilities;
};

/* A program on its way to hex digits. */
struct program {
	struct sock_filter insns[APPFILTER_INSNS_MAX];
	size_t n;
};

static void appfilter_release(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}

/* ---- the first part ---- */

static void appfilter_emit(struct program *p, struct sock_filter insn)
{
	p->insns[p->n++] = insn; /* the first part has a few, in an empty program */
}

static void appfilter_load(struct program *p, size_t offset)
{
	appfilter_emit(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void fail_with(struct program *p, int error)
{
	appfilter_emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						       SECCOMP_RET_ERRNO | (uint32_t)error));
}

/* Skips @yes instructions if the loaded word is @value, else @no. */
static void if_equal(struct program *p, uint32_t value, uint8_t yes, uint8_t no)
{
	appfilter_emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no));
}

/* System calls from number @limit on are unknown. */
static void appfilter_begin(struct program *p, uint32_t limit)
{
	p->n = 0;
	appfilter_load(p, offsetof(struct seccomp_data, arch));
	if_equal(p, seccomp_arch_native(), 1, 0);
	fail_with(p, ENOSYS);
	appfilter_load(p, offsetof(struct seccomp_data, nr));
	appfilter_emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, limit, 0, 1));
	fail_with(p, ENOSYS);
	if_equal(p, SYS_io_uring_setup, 0, 1);
	fail_with(p, ENOSYS);
	if_equal(p, SYS_socket, 1, 0);
	if_equal(p, SYS_socketpair, 0, 3);
	appfilter_load(p,
		       offsetof(struct seccomp_data, args[0])); /* little endian: the lower half */
	if_equal(p, AF_VSOCK, 0, 1);
	fail_with(p, EAFNOSUPPORT);
}

/* The numbers of devices, as mknod(2) takes them, of which an app may make nodes. */
static const uint32_t character_devices[] = {
	0x0000,                                 /* what overlayfs takes for a deleted file */
	0x0103, 0x0105, 0x0107, 0x0108, 0x0109, /* null, zero, full, random, urandom */
	0x0500, 0x0501,                         /* tty, console */
	0x0ac8,                                 /* net/tun */
};

/*
 * The system call @nr, whose argument @mode_at is the mode and the next one the device, makes no
 * other nodes of devices. The kernel looks at the lower 16 and 32 bits of them.
 */
static void refuse_devices(struct program *p, uint32_t nr, size_t mode_at)
{
	uint8_t n = ARRAY_SIZE(character_devices);
	appfilter_load(p, offsetof(struct seccomp_data, nr));
	if_equal(p, nr, 0, (uint8_t)(n + 6));
	appfilter_load(p, offsetof(struct seccomp_data, args[mode_at]));
	appfilter_emit(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, S_IFMT));
	if_equal(p, S_IFBLK, (uint8_t)(n + 2), 0);
	if_equal(p, S_IFCHR, 0, (uint8_t)(n + 2));
	appfilter_load(p, offsetof(struct seccomp_data, args[mode_at + 1]));
	for (uint8_t i = 0; i < n; i++)
		if_equal(p, character_devices[i], (uint8_t)(n - i), 0);
	fail_with(p, EPERM);
}

static int appfilter_finish(const struct program *p, char **ret, struct err *e)
{
	size_t size = p->n * sizeof(p->insns[0]);
	char *hex = malloc(2 * size + 1);
	if (!hex)
		return err_sys(e, -ENOMEM, "system call filter");
	hex_encode((const unsigned char *)p->insns, size, hex);
	*ret = hex;
	return 0;
}

/* ---- the second part ---- */

static int name_call(struct draft *d, const char *name, bool essential_too, struct err *e)
{
	int number = names_syscall(name);
	if (number == -EINVAL)
		return err_set(e, -EINVAL, "there is no system call \"%s\"", name);
	if (number < 0 || number >= NUMBERS_MAX)
		return 0; /* of other architectures: nobody can call it here */
	for (const char *const *s = isolators_essential_calls; !essential_too && *s; s++)
		if (strcmp(*s, name) == 0)
			return 0;
	d->named[number] = true;
	return 0;
}

/* Names all of a list, which has blanks between them. */
static int name_calls(struct draft *d, const char *list, bool essential_too, struct err *e)
{
	int r = 0;
	while (r == 0 && *list) {
		char name[ISOLATOR_NAME_MAX + 1];
		size_t len = strcspn(list, " ");
		if (len >= sizeof(name))
			return err_set(e, -EINVAL, "\"%.80s\" is not a system call", list);
		memcpy(name, list, len);
		name[len] = '\0';
		r = name_call(d, name, essential_too, e);
		list += len + (list[len] == ' ');
	}
	return r;
}

static bool is_default_whitelist(const char *name)
{
	return strcmp(name, "@docker/default-whitelist") == 0 ||
	       strcmp(name, "@rkt/default-whitelist") == 0;
}

/* What the default filter has without looking at arguments. */
static int name_default(struct draft *d, bool essential_too, struct err *e)
{
	int r = name_calls(d, appfilter_default, essential_too, e);
	for (size_t i = 0; r == 0 && i < appfilter_n_grants; i++)
		if ((d->capabilities >> appfilter_grants[i].capability) & 1)
			r = name_calls(d, appfilter_grants[i].calls, essential_too, e);
	return r;
}

/* A member of a set: a name or a wildcard. */
static int name_member(struct draft *d, const char *name, bool retain, struct err *e)
{
	const char *list = appfilter_set(name);
	if (list)
		return name_calls(d, list, retain, e);
	if (!is_default_whitelist(name))
		return name_call(d, name, retain, e);
	int r = name_default(d, retain, e);
	if (r < 0 || retain) {
		d->with_default = true;
		return r;
	}
	return name_calls(d, "clone personality", retain, e);
}

static int allow_personalities(scmp_filter_ctx ctx)
{
	/*
	 * Linux, Linux with a 2.6 version number, both without address randomisation; and "which?"
	 */
	static const uint32_t harmless[] = { 0x0, 0x8, 0x20000, 0x20008, 0xffffffff };
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(harmless); i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SYS_personality, 1,
				     SCMP_A0(SCMP_CMP_EQ, harmless[i], 0));
	return r;
}

/* What the default filter allows by arguments, as far as it is not named anyway. */
static int add_conditions(const struct draft *d, uint32_t otherwise, scmp_filter_ctx ctx)
{
	int r = 0;
	if (!d->named[SYS_personality])
		r = allow_personalities(ctx);
	if (r == 0 && !d->named[SYS_clone])
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SYS_clone, 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NAMESPACES, 0));
	/* libseccomp takes no rule that does what happens anyway. */
	if (r == 0 && !d->named[SYS_clone3] && otherwise != SCMP_ACT_ERRNO(ENOSYS))
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SYS_clone3, 0);
	return r;
}

/* Appends what libseccomp makes of @ctx, which it writes to files only. */
static int append_rules(scmp_filter_ctx ctx, struct program *p)
{
	cleanup_fd int fd = memfd_create("filter", MFD_CLOEXEC);
	size_t room = sizeof(p->insns) - p->n * sizeof(p->insns[0]), got;
	if (fd < 0)
		return -errno;
	int r = seccomp_export_bpf(ctx, fd);
	off_t size = r < 0 ? 0 : lseek(fd, 0, SEEK_END);
	if (r < 0 || size < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return r < 0 ? r : -errno;
	if ((size_t)size > room)
		return -E2BIG;
	r = fd_read_full(fd, &p->insns[p->n], (size_t)size, &got);
	p->n += got / sizeof(p->insns[0]);
	return r;
}

/* Rules for the named calls, where all others are met with @otherwise. */
static int add_rules(const struct draft *d, uint32_t action, uint32_t otherwise, struct program *p)
{
	CLEANUP(appfilter_release) scmp_filter_ctx ctx = seccomp_init(otherwise);
	if (!ctx)
		return -ENOMEM;
	/* A tree by number: the list is long and every call goes through it. */
	int r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (int nr = 0; r == 0 && nr < NUMBERS_MAX; nr++)
		if (d->named[nr])
			r = seccomp_rule_add(ctx, action, nr, 0);
	if (r == 0 && d->with_default)
		r = add_conditions(d, otherwise, ctx);
	return r < 0 ? r : append_rules(ctx, p);
}

/* What meets a call that is not allowed; @usual if no errno was given. */
static uint32_t refusal(const struct isolators *i, uint32_t usual)
{
	int error = isolators_errno(i->seccomp_errno);
	return error > 0 ? SCMP_ACT_ERRNO((uint32_t)error) : usual;
}

static int draft_default(struct draft *d, struct err *e)
{
	d->with_default = true;
	return name_default(d, true, e);
}

static int draft_set(struct draft *d, const struct isolators *i, bool retain, struct err *e)
{
	int r = 0;
	for (size_t k = 0; r == 0 && k < i->seccomp.n; k++)
		r = name_member(d, i->seccomp.v[k], retain, e);
	for (const char *const *s = isolators_essential_calls; r == 0 && retain && *s; s++)
		r = name_call(d, *s, true, e);
	return r;
}

static int program_failed(int r, struct err *e)
{
	return r == -E2BIG ? err_set(e, r,
				     "the filter has more than %d instructions (name fewer calls)",
				     APPFILTER_INSNS_MAX)
			   : err_sys(e, r, "libseccomp");
}

/* The first part, of a filter that is one. */
static void begin_filter(struct program *p, uint32_t limit)
{
	appfilter_begin(p, limit);
	refuse_devices(p, SYS_mknod, 1);
	refuse_devices(p, SYS_mknodat, 2);
}

static int compile_profile(const char *profile, struct program *p, struct err *e)
{
	CLEANUP(appfilter_release) scmp_filter_ctx ctx = NULL;
	uint32_t limit = 0;
	int r = appfilter_profile_compile(profile, &ctx, &limit, e);
	if (r < 0)
		return err_context(e, "profile");
	begin_filter(p, MIN(limit, X32_BIT));
	r = append_rules(ctx, p);
	return r < 0 ? program_failed(r, e) : 0;
}

static int compile_sets(const struct isolators *i, int64_t capabilities, struct program *p,
			struct err *e)
{
	struct draft d = { .capabilities = capabilities };
	bool retain = isolators_has(i, ISOLATOR_SECCOMP_RETAIN);
	bool remove = isolators_has(i, ISOLATOR_SECCOMP_REMOVE) &&
		      !strv_has(&i->seccomp, ISOLATOR_SECCOMP_EMPTY);
	bool usual = !retain && !remove;
	uint32_t action = SCMP_ACT_ALLOW;
	uint32_t otherwise = refusal(i, usual ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_KILL_PROCESS);
	int r = usual ? draft_default(&d, e) : draft_set(&d, i, retain, e);
	if (r < 0)
		return r;
	begin_filter(p, usual ? (uint32_t)names_syscall(YOUNGEST) + 1 : X32_BIT);
	if (remove) {
		action = otherwise;
		otherwise = SCMP_ACT_ALLOW;
	}
	r = add_rules(&d, action, otherwise, p);
	return r < 0 ? program_failed(r, e) : 0;
}

static int compile(const struct isolators *i, int64_t capabilities, struct program *p,
		   struct err *e)
{
	return i->profile ? compile_profile(i->profile, p, e) : compile_sets(i, capabilities, p, e);
}

/* The isolators say that nothing is to be refused. */
static bool is_off(const struct isolators *i)
{
	return isolators_unconfined(i) || (isolators_has(i, ISOLATOR_SECCOMP_RETAIN) &&
					   strv_has(&i->seccomp, ISOLATOR_SECCOMP_ALL));
}

int appfilter_compile(const struct isolators *isolators, int64_t capabilities, char **ret,
		      struct err *e)
{
	if (is_off(isolators))
		return appfilter_compile_off(ret, e);
	cleanup_free struct program *p = malloc(sizeof(*p));
	int r = p ? compile(isolators, capabilities, p, e) : err_sys(e, -ENOMEM, "out of memory");
	if (r < 0)
		return err_context(e, "system call filter");
	return appfilter_finish(p, ret, e);
}

/* Whether @name, of a retain set, has a call that is not in @usual, or not without conditions. */
static int is_wider(const struct draft *usual, const char *name, bool *ret, struct err *e)
{
	struct draft d = { .capabilities = usual->capabilities };
	int r = name_member(&d, name, true, e);
	for (size_t nr = 0; nr < NUMBERS_MAX; nr++)
		*ret |= d.named[nr] && !usual->named[nr];
	return r;
}

int appfilter_find_wider(const struct isolators *isolators, const char **ret, struct err *e)
{
	struct draft usual = { .capabilities = AGENT_CAPABILITIES_DEFAULT };
	bool wider = isolators_has(isolators, ISOLATOR_SECCOMP_REMOVE);
	*ret = NULL;
	if (wider && !strv_has(&isolators->seccomp, ISOLATOR_SECCOMP_EMPTY))
		*ret = isolators_name(ISOLATOR_SECCOMP_REMOVE);
	if (wider)
		return 0;
	int r = name_default(&usual, true, e);
	for (size_t i = 0; r == 0 && !wider && i < isolators->seccomp.n; i++) {
		const char *name = isolators->seccomp.v[i];
		wider = strcmp(name, ISOLATOR_SECCOMP_ALL) == 0;
		if (!wider)
			r = is_wider(&usual, name, &wider, e);
		*ret = wider ? name : NULL;
	}
	return r;
}

int appfilter_compile_off(char **ret, struct err *e)
{
	cleanup_free struct program *p = malloc(sizeof(*p));
	if (!p)
		return err_sys(e, -ENOMEM, "system call filter");
	appfilter_begin(p, X32_BIT);
	appfilter_emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	return appfilter_finish(p, ret, e);
}
