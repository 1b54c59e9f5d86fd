/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main function of a fuzz target that is built without libFuzzer: feeds every file of the given
 * corpus directories to LLVMFuzzerTestOneInput(). A finding crashes. An empty corpus is a failure,
 * so that a wrong path cannot pass for a clean run.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/macros.h"

#define SAMPLE_SIZE_MAX ((size_t)8 * 1024 * 1024) /* above every parser's own limit */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void cleanup_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

static void cleanup_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Feeds the file from memory of exactly its size, so that sanitizers see every overrun. */
static int replay_file(const char *path)
{
	CLEANUP(cleanup_file) FILE *f = fopen(path, "re");
	cleanup_free uint8_t *mem = malloc(SAMPLE_SIZE_MAX + 1);
	if (!f || !mem)
		return -errno;
	size_t size = fread(mem, 1, SAMPLE_SIZE_MAX + 1, f);
	if (ferror(f))
		return -EIO;
	if (size > SAMPLE_SIZE_MAX)
		return -EFBIG;
	cleanup_free uint8_t *exact = malloc(size ? size : 1);
	if (!exact)
		return -ENOMEM;
	memcpy(exact, mem, size);
	LLVMFuzzerTestOneInput(exact, size);
	return 0;
}

/* Replays a directory. The number of samples, or -1 after printing what went wrong. */
static int replay_directory(const char *path)
{
	CLEANUP(cleanup_dir) DIR *dir = opendir(path);
	if (!dir) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	int count = 0;
	struct dirent *de;
	while ((de = readdir(dir))) {
		if (de->d_name[0] == '.')
			continue;
		char name[PATH_MAX];
		snprintf(name, sizeof(name), "%s/%s", path, de->d_name);
		int r = replay_file(name);
		if (r < 0) {
			fprintf(stderr, "%s: %s\n", name, strerror(-r));
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
