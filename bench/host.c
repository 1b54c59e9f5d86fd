/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

#define PROC_FILE_MAX ((size_t)4 << 20) /* smaps of QEMU has some 200 KiB */
#define WALK_FDS_MAX  16                /* levels that nftw(3) keeps open; more only cost time */

struct process {
	pid_t pid, parent;
	uint64_t ticks;
	bool counted;
	char name[20];
};

/* The text behind @key and a colon or "=" in a file of lines, in @out; empty if it is not there. */
static void find_in_file(const char *path, const char *key, char *out, size_t size)
{
	cleanup_free char *text = NULL;
	size_t len;
	out[0] = '\0';
	if (file_read_path(path, PROC_FILE_MAX, &text, &len) < 0)
		return;
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n"));) {
		if (!str_starts(line, key))
			continue;
		char *value = line + strcspn(line, ":=");
		value += strspn(value, ":= \t\"");
		value[strcspn(value, "\"")] = '\0';
		str_copy_text(out, size, value);
		return;
	}
}

void host_add_facts(struct results *r)
{
	char text[RESULTS_TEXT_MAX];
	struct sysinfo info;
	struct utsname name;
	find_in_file("/proc/cpuinfo", "model name", text, sizeof(text));
	results_add_fact(r, "cpu", "Processor", text);
	snprintf(text, sizeof(text), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	results_add_fact(r, "cores", "Processors", text);
	if (sysinfo(&info) == 0) {
		snprintf(text, sizeof(text), "%llu MiB",
			 (unsigned long long)info.totalram * info.mem_unit >> 20);
		results_add_fact(r, "memory", "Memory", text);
		snprintf(text, sizeof(text), "%.2f", (double)info.loads[0] / (1 << SI_LOAD_SHIFT));
		results_add_fact(r, "load", "Load before the run", text);
	}
	find_in_file("/etc/os-release", "PRETTY_NAME", text, sizeof(text));
	results_add_fact(r, "system", "System", text);
	if (uname(&name) == 0)
		results_add_fact(r, "kernel", "Kernel of the host", name.release);
}

/* The @index-th word, from 0, behind the name in /proc/PID/stat, as a number. */
static uint64_t stat_word(const char *behind_name, unsigned index)
{
	char word[32];
	uint64_t value = 0;
	const char *at = behind_name;
	for (; index > 0 && *at; index--)
		at += strcspn(at, " ") + 1;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, " "), at);
	(void)num_parse_u64(word, UINT64_MAX, &value);
	return value;
}

/* False if the process has ended. See proc(5). */
static bool read_process(pid_t pid, struct process *p)
{
	char path[64];
	cleanup_free char *text = NULL;
	size_t len;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (file_read_path(path, 4096, &text, &len) < 0)
		return false;
	char *name = strchr(text, '('), *end = strrchr(text, ')');
	if (!name || !end || strlen(end) < 3)
		return false;
	*p = (struct process){ .pid = pid,
			       .parent = (pid_t)stat_word(end + 2, 1),
			       .ticks = stat_word(end + 2, 11) + stat_word(end + 2, 12) };
	snprintf(p->name, sizeof(p->name), "%.*s", (int)(end - name - 1), name + 1);
	return true;
}

/* All processes of the host, *ret the caller's. */
static int list_processes(struct process **ret, size_t *ret_n)
{
	cleanup_dir DIR *dir = opendir("/proc");
	struct process *v = NULL;
	size_t n = 0;
	uint64_t pid;
	if (!dir)
		return -errno;
	for (struct dirent *entry; (entry = readdir(dir)) && n < HOST_PROCESSES_MAX;) {
		if (num_parse_u64(entry->d_name, INT32_MAX, &pid) < 0)
			continue;
		if (!GROW(v, n)) {
			free(v);
			return -ENOMEM;
		}
		if (read_process((pid_t)pid, &v[n]))
			n++;
	}
	*ret = v;
	*ret_n = n;
	return 0;
}

static uint64_t pss_of(pid_t pid)
{
	char path[64], text[64];
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	find_in_file(path, "Pss:", text, sizeof(text));
	return stat_word(text, 0);
}

/* Resident kibibytes of the mappings that QEMU calls as the objects that a guest's memory is. */
static uint64_t guest_of(pid_t pid)
{
	char path[64];
	cleanup_free char *text = NULL;
	size_t len;
	uint64_t rss = 0;
	bool is_guest = false;
	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	if (file_read_path(path, PROC_FILE_MAX, &text, &len) < 0)
		return 0;
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n"));) {
		if (line[0] >= '0' && line[0] <= 'f' && (line[0] <= '9' || line[0] >= 'a'))
			is_guest = strstr(line, "memory-backend") != NULL;
		else if (is_guest && str_starts(line, "Rss:"))
			rss += stat_word(line + 4 + strspn(line + 4, " "), 0);
	}
	return rss;
}

static void count(struct process *p, bool with_memory, struct family *f)
{
	p->counted = true;
	f->processes++;
	f->ticks += p->ticks;
	if (!with_memory)
		return;
	f->pss_kib += pss_of(p->pid);
	if (str_starts(p->name, "qemu"))
		f->guest_kib += guest_of(p->pid);
}

/* One of @heads, or with @mark in its command line. */
static bool is_head(pid_t pid, const pid_t *heads, size_t n, const char *mark)
{
	char path[64];
	cleanup_free char *words = NULL;
	size_t len;
	for (size_t i = 0; i < n; i++)
		if (heads[i] == pid)
			return true;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	return file_read_path(path, PROC_FILE_MAX, &words, &len) == 0 &&
	       memmem(words, len, mark, strlen(mark)) != NULL;
}

static bool has_counted_parent(const struct process *v, size_t n, pid_t parent)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].pid == parent)
			return v[i].counted;
	return false;
}

int host_count_families(const pid_t *heads, size_t n_heads, const char *mark, bool with_memory,
			struct family *ret, struct err *e)
{
	struct process *v = NULL;
	size_t n = 0;
	int r = list_processes(&v, &n);
	if (r < 0)
		return err_sys(e, r, "cannot list processes");
	*ret = (struct family){ 0 };
	for (size_t i = 0; i < n; i++)
		if (v[i].pid != getpid() && is_head(v[i].pid, heads, n_heads, mark))
			count(&v[i], with_memory, ret);
	/* Until no further child is found: parents may be listed behind their children. */
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < n; i++) {
			if (v[i].counted || !has_counted_parent(v, n, v[i].parent))
				continue;
			count(&v[i], with_memory, ret);
			more = true;
		}
	}
	free(v);
	return 0;
}

static int drop_file(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)where;
	if (type != FTW_F || !S_ISREG(st->st_mode))
		return 0;
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0) {
		(void)fsync(fd); /* only what is written can be forgotten */
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	return 0;
}

void host_drop_cache(const char *dir)
{
	(void)nftw(dir, drop_file, WALK_FDS_MAX, FTW_PHYS | FTW_MOUNT);
}
