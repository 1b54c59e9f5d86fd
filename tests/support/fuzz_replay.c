/*
 * The main function of a fuzz target that is built without libFuzzer: feeds every file of the given
 * corpus directories to LLVMFuzzerTestOneInput(). A finding crashes. An empty corpus is a failure,
 * so that a wrong path cannot pass for a clean run.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/os/fd.h"

#define SAMPLE_SIZE_MAX ((size_t)8 * 1024 * 1024) /* above every parser's own limit */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads the file into memory of exactly its size, so that sanitizers see every overrun. */
static int replay_file(int dirfd, const char *name)
{
	cleanup_fd int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if ((size_t)st.st_size > SAMPLE_SIZE_MAX)
		return -EFBIG;
	size_t size = (size_t)st.st_size, got = 0;
	cleanup_free uint8_t *mem = malloc(size ? size : 1);
	if (!mem)
		return -ENOMEM;
	int r = fd_read_full(fd, mem, size, &got);
	if (r < 0)
		return r;
	LLVMFuzzerTestOneInput(mem, got);
	return 0;
}

/* Replays a directory. The number of samples, or -1 after printing what went wrong. */
static int replay_directory(const char *path)
{
	cleanup_dir DIR *dir = opendir(path);
	if (!dir) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	int count = 0;
	struct dirent *de;
	while ((de = readdir(dir))) {
		if (de->d_name[0] == '.')
			continue;
		int r = replay_file(dirfd(dir), de->d_name);
		if (r < 0) {
			fprintf(stderr, "%s/%s: %s\n", path, de->d_name, strerror(-r));
			return -1;
		}
		count++;
	}
	if (count == 0)
		fprintf(stderr, "%s: no samples\n", path);
	return count > 0 ? count : -1;
}

int main(int argc, char **argv)
{
	int total = 0;
	for (int i = 1; i < argc; i++) {
		int n = replay_directory(argv[i]);
		if (n < 0)
			return EXIT_FAILURE;
		total += n;
	}
	if (total == 0)
		fprintf(stderr, "usage: %s CORPUS-DIRECTORY...\n", argv[0]);
	printf("%d samples replayed\n", total);
	return total > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
