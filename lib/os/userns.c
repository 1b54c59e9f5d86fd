/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/hex.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"
#include "lib/os/spawn.h"

#define BASE_FIRST   0x70000000u
#define BASE_COUNT   0xf00u /* ranges of USERNS_IDS, up to the single ids */
#define SINGLE_FIRST 0x7f000000u
#define SINGLE_COUNT 0xfe0000u
_Static_assert(BASE_FIRST + BASE_COUNT * USERNS_IDS == SINGLE_FIRST, "one behind the other");

#define SUBID_FILE_MAX ((size_t)1024 * 1024) /* a line for each of some 20,000 users */
#define SUBID_LINE_MAX 256                   /* a name of 32 bytes and two numbers */
#define TOOL_SAYS_MAX  255                   /* bytes of what newuidmap says that are told */
#define TOOLS_PATH     "/usr/bin:/bin:/usr/local/bin"

/* The first three bytes: a valid UUID begins with eight digits. */
static uint32_t hash(const char *uuid)
{
	unsigned char bytes[3] = { 0 };
	char digits[7] = { 0 };
	memcpy(digits, uuid, sizeof(digits) - 1);
	hex_decode(digits, bytes, sizeof(bytes));
	return (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
}

uint32_t userns_base(const char *uuid)
{
	return BASE_FIRST + (hash(uuid) >> 8) % BASE_COUNT * USERNS_IDS;
}

uint32_t userns_single_id(const char *uuid)
{
	return SINGLE_FIRST + hash(uuid) % SINGLE_COUNT;
}

/* ---- subordinate ids ---- */

/* "NAME:FIRST:COUNT" or "UID:FIRST:COUNT". */
static int read_line(char *line, const char *name, uid_t uid, uint32_t *ret)
{
	uint64_t owner, first, count;
	char *save = line;
	const char *who = strsep(&save, ":"), *from = strsep(&save, ":");
	if (!from || !save || num_parse_u64(from, UINT32_MAX, &first) < 0 ||
	    num_parse_u64(save, UINT32_MAX, &count) < 0)
		return -EBADMSG;
	bool is_ours = strcmp(who, name) == 0 ||
		       (num_parse_u64(who, UINT32_MAX, &owner) == 0 && owner == uid);
	if (!is_ours || count < USERNS_IDS - 1 || first > UINT32_MAX - count)
		return -ENOENT;
	*ret = (uint32_t)first;
	return 0;
}

int userns_find_range(const char *text, size_t len, const char *name, uid_t uid, uint32_t *ret)
{
	char line[SUBID_LINE_MAX];
	const char *end = text + len;
	for (const char *at = text, *next; at < end; at = next) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		next = newline ? newline + 1 : end;
		size_t n = (size_t)((newline ? newline : end) - at);
		if (n >= sizeof(line))
			continue;
		memcpy(line, at, n);
		line[n] = '\0';
		if (read_line(line, name, uid, ret) == 0)
			return 0;
	}
	return -ENOENT;
}

static int no_range(const char *file, const char *name, struct err *e)
{
	return err_set(e, -EPERM,
		       "user namespace: %s has no %d subordinate ids for user \"%s\" (as root: "
		       "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s)",
		       file, USERNS_IDS - 1, name, name);
}

static int find_own_range(const char *file, uint32_t *ret, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	char number[16];
	const struct passwd *user = getpwuid(getuid());
	snprintf(number, sizeof(number), "%u", (unsigned)getuid());
	const char *name = user ? user->pw_name : number;
	int r = file_read_path(file, SUBID_FILE_MAX, &text, &len);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, r, "%s", file);
	if (r == 0)
		r = userns_find_range(text, len, name, getuid(), ret);
	return r < 0 ? no_range(file, name, e) : 0;
}

/* ---- maps ---- */

struct map {
	const char *file;   /* of /proc/PID */
	const char *ranges; /* who has which ids */
	const char *tool;
	uint32_t own; /* the caller's id */
};

static int write_map(pid_t pid, const struct map *m, uint32_t base, struct err *e)
{
	char path[64], text[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, m->file);
	int len = snprintf(text, sizeof(text), "0 %u %d\n", base, USERNS_IDS);
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd_write_all(fd, text, (size_t)len);
	return r < 0 ? err_sys(e, r, "user namespace: cannot map ids") : 0;
}

static int find_tool(const char *name, char ret[PATH_MAX], struct err *e)
{
	int r = path_find_program(name, TOOLS_PATH, ret, PATH_MAX);
	return r < 0 ? err_set(e, r, "user namespace: %s not found (install the package uidmap)",
			       name)
		     : 0;
}

/* The first line of what it says of errors, printable, in @said; its status. 0 or -errno. */
static int run_to_end(struct spawn_plan *plan, char said[TOOL_SAYS_MAX + 1], int *ret_status)
{
	int fds[2];
	size_t len = 0;
	pid_t pid = 0;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	cleanup_fd int hear = fds[0], say = fds[1];
	int r = spawn_plan_fd(plan, say, STDERR_FILENO);
	if (r == 0)
		r = spawn(plan, &pid, NULL);
	fd_replace(&say, -EBADF);
	if (r < 0)
		return r;
	fd_read_full(hear, said, TOOL_SAYS_MAX, &len);
	said[len] = '\0';
	said[strcspn(said, "\n")] = '\0';
	str_make_printable(said);
	return spawn_wait(pid, ret_status);
}

/* newuidmap PID 0 UID 1 1 FIRST COUNT: what root in the pod is, and all others. */
static int run_tool(pid_t pid, const struct map *m, uint32_t first, struct err *e)
{
	char program[PATH_MAX];
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, 8);
	int r = find_tool(m->tool, program, e);
	if (r < 0)
		return r;
	const uint32_t numbers[] = { (uint32_t)pid, 0, m->own, 1, 1, first, USERNS_IDS - 1 };
	r = strv_add(&argv, m->tool);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(numbers); i++)
		r = strv_addf(&argv, "%u", numbers[i]);
	struct spawn_plan plan = { .program = program, .argv = argv.v, .die_with_parent = true };
	char said[TOOL_SAYS_MAX + 1] = "";
	int status = 0;
	if (r == 0)
		r = run_to_end(&plan, said, &status);
	if (r < 0)
		return err_sys(e, r, "user namespace: cannot run %s", program);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(e, -EPERM,
			       "user namespace: %s failed: %s (it needs its set-user-ID bit, and "
			       "no no_new_privs)",
			       program, *said ? said : "it does not say why");
	return 0;
}

int userns_map(pid_t pid, uint32_t base, struct err *e)
{
	const struct map maps[] = { { "uid_map", "/etc/subuid", "newuidmap", getuid() },
				    { "gid_map", "/etc/subgid", "newgidmap", getgid() } };
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(maps); i++) {
		uint32_t first = 0;
		if (geteuid() == 0) {
			r = write_map(pid, &maps[i], base, e);
			continue;
		}
		r = find_own_range(maps[i].ranges, &first, e);
		if (r == 0)
			r = run_tool(pid, &maps[i], first, e);
	}
	return r;
}

/* ---- processes ---- */

int userns_become_root(void)
{
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	return 0;
}

static _Noreturn void run_inside(int said, int go, int (*fn)(void *ctx), void *ctx)
{
	char byte = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int r = unshare(CLONE_NEWUSER) < 0 ? -errno : 0;
	if (r < 0)
		_exit(-r);
	if (write(said, &byte, 1) != 1 || read(go, &byte, 1) != 1)
		_exit(EIO);
	r = userns_become_root();
	_exit(r < 0 ? -r : -fn(ctx));
}

static int open_userns(pid_t pid, struct err *e)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, -errno, "user namespace") : fd;
}

/*
 * Lets the child, which has said that it is in its namespace, go on as soon as it has ids, and
 * @ret_fd, if it is not NULL, shows that.
 */
static int map_child(pid_t pid, int hear, int let_go, int *ret_fd, struct err *e)
{
	char byte = 0;
	if (read(hear, &byte, 1) != 1)
		return 0; /* it has none, and its exit status says why */
	int r = userns_map(pid, 0, e);
	cleanup_fd int fd = r == 0 && ret_fd ? open_userns(pid, e) : -EBADF;
	if (r < 0 || (ret_fd && fd < 0))
		return r < 0 ? r : fd;
	if (write(let_go, &byte, 1) != 1)
		return err_sys(e, -EPIPE, "user namespace");
	if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return 0;
}

/* @hint stands in an error behind "user namespace" if it is refused, to us or to @fn. */
static int call_inside(int (*fn)(void *ctx), void *ctx, int *ret_fd, const char *hint,
		       struct err *e)
{
	int said[2], go[2], status = 0;
	if (pipe2(said, O_CLOEXEC) < 0)
		return err_sys(e, -errno, "user namespace");
	cleanup_fd int hear = said[0], say = said[1];
	if (pipe2(go, O_CLOEXEC) < 0)
		return err_sys(e, -errno, "user namespace");
	cleanup_fd int wait = go[0], let_go = go[1];
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(e, -errno, "user namespace");
	if (pid == 0) {
		fd_replace(&let_go, -EBADF);
		run_inside(say, wait, fn, ctx);
	}
	fd_replace(&say, -EBADF);
	int r = map_child(pid, hear, let_go, ret_fd, e);
	fd_replace(&let_go, -EBADF); /* without a byte, the child ends */
	int waited = spawn_wait(pid, &status);
	if (r == 0 && waited < 0)
		return err_sys(e, waited, "user namespace");
	if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		r = err_sys(e, WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO, "user namespace%s",
			    hint);
	return r;
}

int userns_call(int (*fn)(void *ctx), void *ctx, struct err *e)
{
	return call_inside(fn, ctx, NULL, "", e);
}

static int do_nothing(void *ctx)
{
	(void)ctx;
	return 0;
}

int userns_make(struct err *e)
{
	cleanup_fd int fd = -EBADF;
	int r = call_inside(do_nothing, NULL, &fd, "", e);
	return r < 0 ? r : TAKE_FD(fd);
}

#define REFUSED                                                           \
	"not allowed here (see the sysctls user.max_user_namespaces and " \
	"kernel.apparmor_restrict_unprivileged_userns"

/* What the kernel, or a security module, may refuse to who is root there only. */
static int try_mounts(void *ctx)
{
	(void)ctx;
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return errno == EINVAL ? 0 : -errno; /* in a chroot(2), "/" is no mount */
	return 0;
}

int userns_check(struct err *e)
{
	char program[PATH_MAX];
	uint32_t first;
	if (access("/proc/self/ns/user", F_OK) < 0)
		return err_set(e, -EOPNOTSUPP,
			       "user namespace: the host's kernel has none (root can do without: "
			       "--userns=host)");
	int r = geteuid() == 0 ? 0 : find_own_range("/etc/subuid", &first, e);
	if (r == 0 && geteuid() != 0)
		r = find_own_range("/etc/subgid", &first, e);
	if (r == 0 && geteuid() != 0)
		r = find_tool("newuidmap", program, e);
	if (r == 0 && geteuid() != 0)
		r = find_tool("newgidmap", program, e);
	if (r < 0)
		return r;
	return call_inside(
		try_mounts, NULL, NULL,
		geteuid() == 0 ? ": " REFUSED "; or give --userns=host)" : ": " REFUSED ")", e);
}
