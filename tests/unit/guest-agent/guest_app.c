/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program in the image of client.c, linked statically: does what its first argument says.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int copy(int from)
{
	static char mem[65536];
	ssize_t n;
	while ((n = read(from, mem, sizeof(mem))) > 0)
		if (write(1, mem, (size_t)n) != n)
			return 1;
	return n < 0;
}

static int identity(void)
{
	gid_t groups[64];
	char cwd[4096], host[65];
	int n = getgroups(64, groups);
	gethostname(host, sizeof(host));
	printf("uid %d gid %d groups", (int)getuid(), (int)getgid());
	for (int i = 0; i < n; i++)
		printf(" %d", (int)groups[i]);
	printf("\ncwd %s\nhost %s\nsession %d\n", getcwd(cwd, sizeof(cwd)), host,
	       getsid(0) == getpid());
	for (char **e = environ; *e; e++)
		printf("env %s\n", *e);
	return 0;
}

/* "ok", or why it cannot be opened. */
static int try_open(const char *path, int flags)
{
	printf("%s %s\n", path, open(path, flags, 0644) < 0 ? strerrorname_np(errno) : "ok");
	return 0;
}

static int mode(const char *path)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		printf("%s %s\n", path, strerrorname_np(errno));
	else
		printf("%s %o %d:%d\n", path, st.st_mode, (int)st.st_uid, (int)st.st_gid);
	return 0;
}

static int changed(const char *path)
{
	struct stat st = { 0 };
	stat(path, &st);
	printf("%s %lld\n", path, (long long)st.st_mtime);
	return 0;
}

/* Which process this is, what its parent is, and how many there are to be seen. */
static int processes(void)
{
	DIR *proc = opendir("/proc");
	int n = 0;
	for (struct dirent *d; proc && (d = readdir(proc));)
		n += d->d_name[0] >= '1' && d->d_name[0] <= '9';
	if (proc)
		closedir(proc);
	printf("pid %d parent %d of %d\n", (int)getpid(), (int)getppid(), n);
	return 0;
}

static int limits(void)
{
	struct rlimit files, core, processes_;
	getrlimit(RLIMIT_NOFILE, &files);
	getrlimit(RLIMIT_CORE, &core);
	getrlimit(RLIMIT_NPROC, &processes_);
	printf("nofile %llu:%llu core %llu nproc %llu\n", (unsigned long long)files.rlim_cur,
	       (unsigned long long)files.rlim_max, (unsigned long long)core.rlim_cur,
	       (unsigned long long)processes_.rlim_cur);
	return 0;
}

/* Makes the node of the first disk, and opens it. */
static int disk_node(const char *path)
{
	if (mknod(path, S_IFBLK | 0600, makedev(8, 0)) < 0) {
		printf("mknod %s %s\n", path, strerrorname_np(errno));
		return 0;
	}
	return try_open(path, O_RDONLY);
}

static int make_directory(const char *path)
{
	printf("mkdir %s %s\n", path, mkdir(path, 0755) < 0 ? strerrorname_np(errno) : "ok");
	return 0;
}

static int remount(const char *path)
{
	int r = mount(NULL, path, NULL, MS_REMOUNT | MS_BIND, NULL);
	printf("remount %s %s\n", path, r < 0 ? strerrorname_np(errno) : "ok");
	return 0;
}

/* Whether the first process of the namespace can be looked into, or harmed. */
static int first_process(void)
{
	int traced = ptrace(PTRACE_ATTACH, 1, NULL, NULL) < 0 ? errno : 0;
	printf("trace %s kill %s\n", traced ? strerrorname_np(traced) : "ok",
	       kill(1, SIGKILL) < 0 ? strerrorname_np(errno) : "ok");
	return try_open("/proc/1/root", O_RDONLY) | try_open("/proc/1/mem", O_RDONLY);
}

static void leave(int sig)
{
	(void)sig;
	_exit(4);
}

static _Noreturn void wait_for_signal(void)
{
	signal(SIGTERM, leave);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

/* Leaves a process behind that holds the standard streams. */
static int orphan(void)
{
	if (fork() > 0)
		return 0;
	for (;;)
		pause();
}

/* Leaves a process behind, and waits with it. */
static int orphan_wait(void)
{
	if (fork() > 0)
		wait_for_signal();
	for (;;)
		pause();
}

static int flood(long long n)
{
	static char mem[65536];
	for (; n > 0; n -= (long long)sizeof(mem))
		if (write(1, mem, sizeof(mem)) < 0)
			return 1;
	return 0;
}

static int terminal(void)
{
	struct winsize w = { 0 };
	ioctl(0, TIOCGWINSZ, &w);
	printf("%s %d %d\n", ttyname(0), w.ws_row, w.ws_col);
	return 0;
}

/* Uses @n bytes of memory. */
static int use_memory(long long n)
{
	char *mem = malloc((size_t)n);
	for (long long i = 0; mem && i < n; i += 4096)
		((volatile char *)mem)[i] = 1;
	printf("%lld bytes\n", n);
	return !mem;
}

/* How many processes there can be beside this one, and why no more. They wait, as it does then. */
static void fill_group(void)
{
	int n = 0;
	pid_t pid;
	while (n < 100 && (pid = fork()) > 0)
		n++;
	if (n < 100 && pid == 0)
		for (;;)
			pause();
	printf("%d children %s\n", n, strerrorname_np(errno));
	wait_for_signal();
}

static int one(const char *what, const char *arg)
{
	if (strcmp(what, "exit") == 0)
		exit((int)strtol(arg, NULL, 10));
	if (strcmp(what, "read") == 0)
		return copy(open(arg, O_RDONLY));
	if (strcmp(what, "open") == 0)
		return try_open(arg, O_RDONLY);
	if (strcmp(what, "openw") == 0)
		return try_open(arg, O_WRONLY);
	if (strcmp(what, "create") == 0)
		return try_open(arg, O_WRONLY | O_CREAT);
	if (strcmp(what, "mode") == 0)
		return mode(arg);
	if (strcmp(what, "changed") == 0)
		return changed(arg);
	if (strcmp(what, "disk") == 0)
		return disk_node(arg);
	if (strcmp(what, "mkdir") == 0)
		return make_directory(arg);
	if (strcmp(what, "remount") == 0)
		return remount(arg);
	if (strcmp(what, "memory") == 0)
		return use_memory(strtoll(arg, NULL, 10));
	if (strcmp(what, "flood") == 0)
		return flood(strtoll(arg, NULL, 10));
	return 99;
}

int main(int argc, char **argv)
{
	int r = 98;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "cat") == 0)
			r = copy(0);
		else if (strcmp(argv[i], "id") == 0)
			r = identity();
		else if (strcmp(argv[i], "pids") == 0)
			r = processes();
		else if (strcmp(argv[i], "limits") == 0)
			r = limits();
		else if (strcmp(argv[i], "init") == 0)
			r = first_process();
		else if (strcmp(argv[i], "fill") == 0)
			fill_group();
		else if (strcmp(argv[i], "wait") == 0)
			wait_for_signal();
		else if (strcmp(argv[i], "orphan") == 0)
			r = orphan();
		else if (strcmp(argv[i], "orphan-wait") == 0)
			r = orphan_wait();
		else if (strcmp(argv[i], "tty") == 0)
			r = terminal();
		else if (i + 1 < argc)
			r = one(argv[i], argv[i + 1]), i++;
		fflush(stdout);
	}
	return r;
}
