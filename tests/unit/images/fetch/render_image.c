/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render-image DATA-DIR REFERENCE [LINK]: opens an image as husk would, prints what it is and how
 * long it took, and links the rendered file. For tests that look at the file itself.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "images/fetch/fetch.h"
#include "images/images.h"
#include "lib/os/fd.h"

static int render(int dir, const char *path, const char *reference, const char *link, struct err *e)
{
	cleanup_store struct store *s = NULL;
	cleanup_image struct image *i = NULL;
	const struct fetch_request q = { .reference = reference, .policy = PULL_NEW };
	int r = store_open(dir, path, &s, e);
	if (r == 0)
		r = fetch_image(s, &q, &i, e);
	if (r == 0 && link)
		r = image_link_rootfs(i, AT_FDCWD, link, e);
	if (r < 0)
		return r;
	struct rusage use;
	getrusage(RUSAGE_CHILDREN, &use);
	printf("name %s\nid %s\nchain %s\nsize %llu\n", i->name, i->id, i->chain_id,
	       (unsigned long long)i->size);
	printf("rendered %d\nopen_ms %lld\nchild_kib %ld\n", i->rendered, (long long)i->open_ms,
	       use.ru_maxrss);
	return 0;
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: render-image DATA-DIR REFERENCE [LINK]\n");
		return 2;
	}
	cleanup_fd int dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		perror(argv[1]);
		return 1;
	}
	if (render(dir, argv[1], argv[2], argc > 3 ? argv[3] : NULL, &e) < 0) {
		fprintf(stderr, "render-image: %s\n", e.text);
		return 1;
	}
	return 0;
}
