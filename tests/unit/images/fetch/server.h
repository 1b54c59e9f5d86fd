/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/http_server.py, started for the tests of one program. */
#ifndef TESTS_UNIT_IMAGES_FETCH_SERVER_H
#define TESTS_UNIT_IMAGES_FETCH_SERVER_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

struct server {
	pid_t pid;
	unsigned http, http6, tls, expired, other, self; /* ports; http6 is 0 without IPv6 */
	char dir[PATH_MAX];                              /* removed by server_stop() */
	char ca[PATH_MAX + 16];                          /* the authority of the certificates */
};

/*
 * Starts it and waits until it listens. 0, or -1 with words on stderr: then python3 or openssl is
 * missing.
 */
int server_start(struct server *s);

/* Ends it. 0. */
int server_stop(struct server *s);

/* How many requests had both texts in their line of the log. */
unsigned server_count(const struct server *s, const char *a, const char *b);

/*
 * Creates a page of the host @host, for who uses the server as a proxy; @path is "" for its root.
 */
void server_page(const struct server *s, const char *host, const char *path, const char *text);

#endif
