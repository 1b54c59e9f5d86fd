/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list-tree [--times] DIR: one line for each file in the directory, itself first, in the order of
 * their names' bytes. Tests compare such lists of trees that different programs made, so it is all
 * there is to know about a file:
 *
 *   PATH MODE UID GID [mtime T] [links N FIRST] [device MAJOR MINOR] [-> TARGET] [SIZE HASH]
 *   [NAME=VALUE]... PATH mount point
 *
 * MODE is the letter of the type and four octal digits. Directories have a time only with --times:
 * some programs leave there whatever they happened to make. FIRST is the first path in the list
 * that leads to the same file, which has the hash. HASH is of the blocks of 4 KiB that are not all
 * zeros, with their offsets: holes are cheap, and it is the same whether zeros are stored or not.
 * It is made to be fast in an emulated machine: nobody tries to find two files with the same one
 * here. Bytes that are not printable are \xHH, so are spaces and backslashes. Nothing of a mounted
 * file system is listed.
 *
 * It is static, for it runs in the machine of a pod as well. It goes from directory to directory by
 * chdir(2), never by a path: there is no limit to depth and number but memory.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BLOCK      4096
#define CHUNK      ((size_t)64 * BLOCK) /* bytes read at a time */
#define XATTRS_MAX 65536 /* bytes of names of one file, and of one value: the kernel's limits */

/* The path that is shown; names are taken off its end again. */
static struct {
	char *text;
	size_t len, alloc;
} path;

/* A file with several names. */
struct inode {
	uint32_t dev_major, dev_minor;
	uint64_t ino;
	char *first;
};

struct names {
	char **list;
	size_t n, alloc;
};

static bool times; /* of directories, too */

static void *must_alloc(void *old, size_t size)
{
	void *mem = realloc(old, size);
	if (!mem)
		err(1, "%zu bytes of memory", size);
	return mem;
}

/* What is wrong with the file, and the end. */
static void fail(const char *what)
{
	err(1, "%s: %s", path.len ? path.text : "/", what);
}

static void print_escaped(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];
		if (c > ' ' && c < 0x7f && c != '\\')
			putchar_unlocked(c);
		else
			printf("\\x%02x", c);
	}
}

/* ---- contents ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

/* At least one byte, unless the file ends here. */
static size_t read_at(int fd, unsigned char *mem, size_t size, off_t offset)
{
	size_t len = 0;
	while (len < size) {
		ssize_t r = pread(fd, mem + len, size - len, offset + (off_t)len);
		if (r < 0)
			fail("read");
		if (r == 0)
			break;
		len += (size_t)r;
	}
	return len;
}

/* @mem is cleared behind @len bytes, to the end of their last word. */
static uint64_t hash_blocks(uint64_t hash, const unsigned char *mem, size_t len, off_t offset)
{
	for (size_t at = 0; at < len; at += BLOCK) {
		size_t n = len - at < BLOCK ? len - at : BLOCK;
		uint64_t block = 0, any = 0;
		for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
			uint64_t word;
			memcpy(&word, mem + at + i, sizeof(word));
			any |= word;
			block = mix(block, word);
		}
		if (any)
			hash = mix(mix(mix(hash, (uint64_t)offset + at), n), block);
	}
	return hash;
}

static void print_content(const char *name, off_t size)
{
	static unsigned char mem[CHUNK + sizeof(uint64_t)];
	uint64_t hash = 0;
	off_t offset = 0;
	int fd = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		fail("open");
	for (size_t len = 1; len > 0 && offset < size; offset += (off_t)len) {
		/*
		 * Where the file system does not know its holes, all of it is data. A small file is
		 * not worth asking.
		 */
		off_t data = size > (off_t)CHUNK ? lseek(fd, offset, SEEK_DATA) : offset;
		if (data < 0 && errno == ENXIO)
			break;
		if (data > offset)
			offset = data / BLOCK * BLOCK;
		size_t want = size - offset < (off_t)CHUNK ? (size_t)(size - offset) : CHUNK;
		len = read_at(fd, mem, want, offset);
		memset(mem + len, 0, sizeof(uint64_t));
		hash = hash_blocks(hash, mem, len, offset);
	}
	close(fd);
	printf(" %lld %016llx", (long long)size, (unsigned long long)hash);
}

static void print_target(const char *name)
{
	char target[PATH_MAX];
	ssize_t len = readlink(name, target, sizeof(target));
	if (len < 0)
		fail("readlink");
	printf(" -> ");
	print_escaped(target, (size_t)len);
}

/* ---- attributes ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_add(struct names *names, const char *name)
{
	if (names->n == names->alloc) {
		names->alloc = names->alloc ? 2 * names->alloc : 64;
		names->list = must_alloc(names->list, names->alloc * sizeof(*names->list));
	}
	char *copy = strdup(name);
	if (!copy)
		err(1, "memory");
	names->list[names->n++] = copy;
}

static void names_sort(struct names *names)
{
	if (names->n > 1)
		qsort(names->list, names->n, sizeof(*names->list), by_text);
}

static void names_free(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->list[i]);
	free(names->list);
}

static void print_xattrs(const char *name)
{
	static char text[XATTRS_MAX], value[XATTRS_MAX];
	struct names names = { 0 };
	ssize_t len = llistxattr(name, text, sizeof(text));
	if (len < 0 && errno != ENOTSUP)
		fail("llistxattr");
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(text + at) + 1)
		names_add(&names, text + at);
	names_sort(&names);
	for (size_t i = 0; i < names.n; i++) {
		ssize_t n = lgetxattr(name, names.list[i], value, sizeof(value));
		if (n < 0)
			fail("lgetxattr");
		putchar_unlocked(' ');
		print_escaped(names.list[i], strlen(names.list[i]));
		putchar_unlocked('=');
		print_escaped(value, (size_t)n);
	}
	names_free(&names);
}

/* ---- hard links ---- */

static int by_number(const void *a, const void *b)
{
	const struct inode *x = a, *y = b;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	if (x->dev_major != y->dev_major)
		return x->dev_major < y->dev_major ? -1 : 1;
	return x->dev_minor == y->dev_minor ? 0 : x->dev_minor < y->dev_minor ? -1 : 1;
}

/* Prints the number of names and the first of them; true if this is the first. */
static bool print_links(const struct statx *st)
{
	static void *inodes; /* tsearch(3) */
	struct inode key = { st->stx_dev_major, st->stx_dev_minor, st->stx_ino, NULL };
	void *found = tfind(&key, &inodes, by_number);
	struct inode *i = found ? *(struct inode **)found : NULL;
	if (!i) {
		i = must_alloc(NULL, sizeof(*i));
		*i = key;
		i->first = strdup(path.text);
		if (!i->first || !tsearch(i, &inodes, by_number))
			err(1, "memory");
	}
	printf(" links %u ", st->stx_nlink);
	print_escaped(i->first, strlen(i->first));
	return !found;
}

/* ---- the tree ---- */

/* The path gets a name; how long it was before is returned. */
static size_t path_push(const char *name)
{
	size_t before = path.len, n = strlen(name);
	if (path.len + n + 2 > path.alloc) {
		path.alloc = 2 * (path.len + n + 2);
		path.text = must_alloc(path.text, path.alloc);
	}
	path.text[path.len] = '/';
	memcpy(path.text + path.len + 1, name, n + 1);
	path.len += n + 1;
	return before;
}

static void path_pop(size_t before)
{
	path.len = before;
	path.text[before] = '\0';
}

static void describe(const char *name, struct statx *ret)
{
	if (statx(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, ret) <
	    0)
		fail("statx");
	if (!(ret->stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
		errx(1, "this kernel does not say what is a mount point");
}

static char type_letter(mode_t mode)
{
	static const struct {
		mode_t type;
		char letter;
	} types[] = { { S_IFREG, 'f' }, { S_IFDIR, 'd' }, { S_IFLNK, 'l' }, { S_IFCHR, 'c' },
		      { S_IFBLK, 'b' }, { S_IFIFO, 'p' }, { S_IFSOCK, 's' } };
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if ((mode & S_IFMT) == types[i].type)
			return types[i].letter;
	return '?';
}

/* All of the line behind the path. */
static void print_file(const char *name, const struct statx *st)
{
	bool first = true, dir = S_ISDIR(st->stx_mode);
	printf(" %c%04o %u %u", type_letter(st->stx_mode), st->stx_mode & 07777U, st->stx_uid,
	       st->stx_gid);
	if (!dir || times)
		printf(" mtime %lld", (long long)st->stx_mtime.tv_sec);
	if (!dir && st->stx_nlink > 1)
		first = print_links(st);
	if (S_ISCHR(st->stx_mode) || S_ISBLK(st->stx_mode))
		printf(" device %u %u", st->stx_rdev_major, st->stx_rdev_minor);
	if (S_ISLNK(st->stx_mode))
		print_target(name);
	if (S_ISREG(st->stx_mode) && first)
		print_content(name, (off_t)st->stx_size);
	print_xattrs(name);
	putchar_unlocked('\n');
}

static void read_names(struct names *names)
{
	struct dirent *e;
	DIR *dir = opendir(".");
	if (!dir)
		fail("opendir");
	errno = 0;
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			names_add(names, e->d_name);
	if (errno)
		fail("readdir");
	closedir(dir);
	names_sort(names);
}

static void list_here(void);

static void list_below(const char *name)
{
	if (chdir(name) < 0)
		fail("chdir");
	list_here();
	if (chdir("..") < 0)
		fail("chdir to \"..\"");
}

/* Lists what is in the working directory. */
static void list_here(void)
{
	struct names names = { 0 };
	read_names(&names);
	for (size_t i = 0; i < names.n; i++) {
		struct statx st;
		const char *name = names.list[i];
		size_t before = path_push(name);
		describe(name, &st);
		print_escaped(path.text, path.len);
		if (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) {
			puts(" mount point");
		} else {
			print_file(name, &st);
			if (S_ISDIR(st.stx_mode))
				list_below(name);
		}
		path_pop(before);
	}
	names_free(&names);
}

int main(int argc, char **argv)
{
	struct statx st;
	times = argc == 3 && strcmp(argv[1], "--times") == 0;
	if (argc != 2 + times)
		errx(2, "usage: list-tree [--times] DIR");
	if (chdir(argv[argc - 1]) < 0)
		err(1, "%s", argv[argc - 1]);
	describe(".", &st);
	putchar_unlocked('/');
	print_file(".", &st);
	list_here();
	if (fflush(stdout) != 0 || ferror(stdout))
		err(1, "standard output");
	return 0;
}
