/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/stage1/pod/groups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/random.h"
#include "tests/support/fixture.h"

struct uuid uuid; /* of the pod of this test */

void new_uuid(void)
{
	unsigned char bytes[UUID_BYTES];
	assert_int_equal(random_bytes(bytes, sizeof(bytes)), 0);
	uuid_from_random(bytes, &uuid);
}

int groups_begin(void **state)
{
	new_uuid();
	return fixture_setup(state);
}

/* Nothing is left of the pod, whatever the test has found. */
int groups_end(void **state)
{
	struct err e;
	int r = pod_cgroup_kill(uuid.text, "", &e) | pod_cgroup_remove(uuid.text, "", &e);
	return r | fixture_teardown(state);
}

int become_nobody(void)
{
	return setresgid(NOBODY, NOBODY, NOBODY) | setresuid(NOBODY, NOBODY, NOBODY);
}

/* Root may still be denied, in a container. */
bool can_make(void)
{
	struct err e = ERR_INIT;
	struct pod_cgroup g = POD_CGROUP_INIT;
	if (geteuid() != 0)
		return false;
	new_uuid();
	int r = pod_cgroup_make(uuid.text, "", &g, &e);
	pod_cgroup_deinit(&g);
	if (r != 0)
		printf("%s\n", e.text);
	pod_cgroup_remove(uuid.text, "", &e);
	return r == 0;
}

int status_of(pid_t pid)
{
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

void make_groups(struct pod_cgroup *g)
{
	struct err e = ERR_INIT;
	if (pod_cgroup_make(uuid.text, "", g, &e) != 0)
		fail_msg("%s", e.text);
}

size_t count_groups(const struct pod_cgroup *g)
{
	size_t n = 0;
	for (int kind = 0; kind < CGROUP_KINDS; kind++)
		n += g->fds[kind] >= 0;
	return n;
}

int write_in(int dir, const char *name, const char *text)
{
	cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* Goes into the group, in version 2 into a child of it if that is named. */
int enter_groups(const struct pod_cgroup *g, const char *child)
{
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		char name[64];
		snprintf(name, sizeof(name), "%s/cgroup.procs",
			 child && kind == CGROUP_UNIFIED ? child : ".");
		if (g->fds[kind] >= 0 && write_in(g->fds[kind], name, "0") < 0)
			return -1;
	}
	return 0;
}

/* A process that waits in the group, with a child that does. */
pid_t start_in_groups(const struct pod_cgroup *g, const char *child)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (enter_groups(g, child) != 0 || fork() < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

/* How often /proc/PID/cgroup names the pod. */
int count_mentions(pid_t pid, const char *suffix)
{
	char name[64], place[64];
	int n = 0;
	size_t len;
	cleanup_free char *text = NULL;
	snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
	snprintf(place, sizeof(place), "/husk/%s%s\n", uuid.text, suffix);
	assert_int_equal(file_read_path(name, 65536, &text, &len), 0);
	for (const char *at = text; (at = strstr(at, place)); at++)
		n++;
	return n;
}
