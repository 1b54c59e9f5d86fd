/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http-get URL FILE: downloads into FILE with what husk has for that, and continues what an earlier
 * run left there and in FILE.etag. Prints "status=N resumed=N size=N"; an error goes to stderr,
 * exit status 1.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "images/fetch/http/http.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

/* What was told when the body began, for the next run. */
static int keep(void *ctx, const struct http_validator *v, struct err *e)
{
	cleanup_fd int fd = open(ctx, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : fd_write_all(fd, v->etag, strlen(v->etag));
	return r < 0 ? err_sys(e, r, "cannot write the ETag") : 0;
}

/* True if @path has what an earlier run kept. */
static bool recall(const char *path, struct http_validator *v)
{
	cleanup_free char *etag = NULL;
	http_validator_init(v);
	return file_read_at(AT_FDCWD, path, HTTP_ETAG_MAX, &etag, NULL) == 0 &&
	       str_copy(v->etag, sizeof(v->etag), etag) == 0;
}

int main(int argc, char **argv)
{
	char path[4096];
	struct http_validator have;
	struct http_result result;
	struct err e = ERR_INIT;
	struct stat st;
	if (argc != 3)
		return 2;
	cleanup_fd int fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	snprintf(path, sizeof(path), "%s.etag", argv[2]);
	bool known = recall(path, &have);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 2;
	const struct http_request q = {
		.url = argv[1],
		.have = known ? &have : NULL,
		.resume_at = known ? (uint64_t)st.st_size : 0,
		.size_max = UINT64_C(1) << 40,
		.fd = fd,
		.begin = keep,
		.ctx = path,
	};
	if (http_get(&q, &(struct fetch_options){ 0 }, &result, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	printf("status=%d resumed=%d size=%" PRIu64 "\n", result.status, result.resumed,
	       result.size);
	return 0;
}
