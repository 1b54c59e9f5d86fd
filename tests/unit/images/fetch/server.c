/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/images/fetch/server.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/spawn.h"
#include "tests/support/cmocka.h"

static unsigned port(const char *line, const char *name)
{
	const char *found = strstr(line, name);
	return found ? (unsigned)strtoul(found + strlen(name), NULL, 10) : 0;
}

/* Reads the line that the server prints when it listens. */
static int read_ports(struct server *s, int fd)
{
	char line[256] = "";
	size_t n = 0;
	ssize_t got = 1;
	while (n < sizeof(line) - 1 && !strchr(line, '\n') && got > 0) {
		got = read(fd, line + n, sizeof(line) - 1 - n);
		n += got > 0 ? (size_t)got : 0;
		line[n] = '\0';
	}
	s->http = port(line, "http=");
	s->http6 = port(line, "http6=");
	s->tls = port(line, "tls=");
	s->expired = port(line, "expired=");
	s->other = port(line, "other=");
	s->self = port(line, "self=");
	return s->http && s->tls && s->expired && s->other && s->self ? 0 : -1;
}

int server_start(struct server *s)
{
	char script[PATH_MAX], *argv[] = { (char[]){ "python3" }, script, s->dir, NULL };
	const char *top = getenv("HUSK_SOURCE_DIR"), *tmp = getenv("TMPDIR");
	int ends[2];
	snprintf(script, sizeof(script), "%s/tests/support/http_server.py", top ? top : ".");
	snprintf(s->dir, sizeof(s->dir), "%s/husk-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(s->dir) || pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	snprintf(s->ca, sizeof(s->ca), "%s/ca.pem", s->dir);
	struct spawn_plan plan = {
		.program = "/usr/bin/python3",
		.argv = argv,
		.die_with_parent = true,
	};
	spawn_plan_fd(&plan, ends[1], 1);
	spawn_plan_fd(&plan, 2, 2);
	int r = spawn(&plan, &s->pid, NULL);
	close(ends[1]);
	if (r == 0)
		r = read_ports(s, ends[0]);
	close(ends[0]);
	if (r < 0)
		fprintf(stderr, "%s does not run\n", script);
	return r < 0 ? -1 : 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int server_stop(struct server *s)
{
	int status;
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		spawn_wait(s->pid, &status);
	}
	nftw(s->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	return 0;
}

unsigned server_count(const struct server *s, const char *a, const char *b)
{
	char path[PATH_MAX + 16], line[32 * 1024];
	unsigned n = 0;
	snprintf(path, sizeof(path), "%s/log", s->dir);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, a) && strstr(line, b))
			n++;
	fclose(f);
	return n;
}

void server_page(const struct server *s, const char *host, const char *path, const char *text)
{
	char name[2 * PATH_MAX];
	snprintf(name, sizeof(name), "%s/sites/%s/%s%sindex.html", s->dir, host, path,
		 *path ? "/" : "");
	for (char *slash = strchr(name + strlen(s->dir) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(name, 0700);
		*slash = '/';
	}
	FILE *f = fopen(name, "we");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}
