/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of groups below a parent that somebody has chosen, or that is of the pod's own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/os/fd.h"
#include "stage1/pod/pod_cgroup.h"
#include "tests/support/fixture.h"
#include "tests/unit/stage1/pod/groups.h"

static char parent[40]; /* of this test, below the top of each tree that @g is in */

/* The descriptor of the directory above the top of which @g has its group, or of the parent. */
static int top_of(const struct pod_cgroup *g, int kind)
{
	return openat(g->fds[kind], "../..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Makes it in the first @n trees only. */
static void make_parents(const struct pod_cgroup *g, size_t n)
{
	snprintf(parent, sizeof(parent), "t%d/below", (int)getpid());
	for (int kind = 0; n > 0 && kind < CGROUP_KINDS; kind++) {
		cleanup_fd int top = g->fds[kind] < 0 ? -EBADF : top_of(g, kind);
		if (top < 0)
			continue;
		n--;
		char above[40];
		snprintf(above, sizeof(above), "t%d", (int)getpid());
		assert_true(mkdirat(top, above, 0755) == 0 || errno == EEXIST);
		assert_true(mkdirat(top, parent, 0755) == 0 || errno == EEXIST);
	}
}

/* How many trees have it. */
static int count_parents(const struct pod_cgroup *g)
{
	int n = 0;
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		cleanup_fd int top = g->fds[kind] < 0 ? -EBADF : top_of(g, kind);
		n += top >= 0 && faccessat(top, parent, F_OK, 0) == 0;
	}
	return n;
}

/* They are as empty as they were made. */
static void remove_parents(const struct pod_cgroup *g)
{
	char above[40];
	snprintf(above, sizeof(above), "t%d", (int)getpid());
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		cleanup_fd int top = g->fds[kind] < 0 ? -EBADF : top_of(g, kind);
		if (top < 0 || faccessat(top, parent, F_OK, 0) < 0)
			continue;
		assert_int_equal(unlinkat(top, parent, AT_REMOVEDIR), 0);
		assert_true(unlinkat(top, above, AT_REMOVEDIR) == 0 || errno == ENOENT);
	}
}

void test_parent(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	struct uuid neighbour = uuid;
	CLEANUP(pod_cgroup_deinit)
	struct pod_cgroup top = POD_CGROUP_INIT, g = POD_CGROUP_INIT, again = POD_CGROUP_INIT;
	make_groups(&top); /* of another pod, without a parent */
	new_uuid();
	make_parents(&top, CGROUP_KINDS);
	assert_int_equal(pod_cgroup_make(uuid.text, parent, &g, &e), 0);
	assert_int_equal(count_groups(&g), count_groups(&top));
	pid_t pid = start_in_groups(&g, NULL);
	assert_true(count_mentions(pid, "") > 0);
	assert_int_equal(pod_cgroup_open(uuid.text, "", &again, &e), 0);
	assert_int_equal(count_groups(&again), 0); /* it is not there */
	assert_int_equal(pod_cgroup_open(uuid.text, parent, &again, &e), 0);
	assert_int_equal(count_groups(&again), count_groups(&g));
	assert_int_equal(pod_cgroup_kill(uuid.text, parent, &e), 0);
	assert_int_equal(status_of(pid), SIGKILL);
	assert_int_equal(pod_cgroup_remove(uuid.text, parent, &e), 0);
	remove_parents(&top);
	uuid = neighbour;
}

/* Of the pod's own: made for it, with a group for its supervisor, who leaves somebody behind. */
static int in_own_parent(const char *own, int left_fd)
{
	struct err e = ERR_INIT;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	if (pod_cgroup_supervise(uuid.text, own, &e) != 0)
		return 1;
	pid_t left = fork();
	if (left == 0)
		for (;;)
			pause();
	fd_close(left_fd);
	if (count_mentions(left, "-supervisor") < 1 || count_mentions(getpid(), "-supervisor") < 1)
		return 2;
	if (pod_cgroup_make(uuid.text, own, &g, &e) != 0)
		return 3;
	pid_t pid = start_in_groups(&g, NULL);
	if (count_mentions(pid, "") < 1 || count_mentions(pid, "-supervisor") != 0)
		return 4;
	if (pod_cgroup_kill(uuid.text, own, &e) != 0 || status_of(pid) != SIGKILL)
		return 5;
	return pod_cgroup_remove(uuid.text, own, &e) == 0 ? 0 : 6;
}

/* In how many trees it is made: beside hierarchies not in the other one, where nobody has above. */
static int count_wanted(const struct pod_cgroup *g)
{
	return (int)count_groups(g) - (pod_cgroup_is_v1(g) && g->fds[CGROUP_UNIFIED] >= 0);
}

static void remove_own(const char *whose)
{
	struct err e = ERR_INIT;
	if (pod_cgroup_remove_own(whose, parent, &e) != 0)
		fail_msg("%s", e.text);
}

void test_own_parent(void **state)
{
	(void)state;
	struct uuid neighbour = uuid;
	int left[2];
	char byte;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup top = POD_CGROUP_INIT;
	make_groups(&top);
	new_uuid();
	snprintf(parent, sizeof(parent), "t%d/below/", (int)getpid());
	assert_int_equal(pipe2(left, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(in_own_parent(parent, left[1]));
	fd_close(left[1]);
	assert_int_equal(status_of(pid), 0);
	assert_int_equal(count_parents(&top), count_wanted(&top));
	/* Others have groups in there: it stays theirs. */
	remove_own("6ba7b810-9dad-41d1-80b4-00c04fd430c8");
	assert_int_equal(count_parents(&top), count_wanted(&top));
	for (int i = 0; i < 2; i++) /* the second time it is gone */
		remove_own(uuid.text);
	assert_int_equal(read(left[0], &byte, 1), 0); /* who was left behind is no more */
	fd_close(left[0]);
	assert_int_equal(count_parents(&top), 0);
	make_parents(&top, CGROUP_KINDS);
	remove_parents(&top);
	uuid = neighbour;
}

/* Who has made what is above, has it in all trees: so it is made in all of them. */
void test_own_parent_in_all(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	struct uuid neighbour = uuid;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup top = POD_CGROUP_INIT;
	make_groups(&top);
	new_uuid();
	make_parents(&top, CGROUP_KINDS);
	strcat(parent, "/");
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(pod_cgroup_supervise(uuid.text, parent, &e) == 0 ? 0 : 1);
		assert_int_equal(status_of(pid), 0);
		assert_int_equal(count_parents(&top), count_groups(&top));
		remove_own(uuid.text);
		assert_int_equal(count_parents(&top), 0);
	}
	make_parents(&top, CGROUP_KINDS);
	remove_parents(&top);
	uuid = neighbour;
}

#define TURNS 40

/* A pod that comes and goes, as another one in the same parent does. */
static int come_and_go(void)
{
	struct err e = ERR_INIT;
	for (int i = 0; i < TURNS; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(pod_cgroup_supervise(uuid.text, parent, &e) == 0 ? 0 : 1);
		if (status_of(pid) != 0)
			return 1;
		if (pod_cgroup_remove_own(uuid.text, parent, &e) != 0)
			return 2;
	}
	return 0;
}

void test_own_parent_of_two(void **state)
{
	(void)state;
	struct uuid neighbour = uuid;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup top = POD_CGROUP_INIT;
	make_groups(&top);
	snprintf(parent, sizeof(parent), "t%d/", (int)getpid());
	pid_t pids[2];
	for (int i = 0; i < 2; i++) {
		new_uuid();
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(come_and_go());
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(status_of(pids[i]), 0);
	assert_int_equal(count_parents(&top), 0);
	uuid = neighbour;
}

/* Only in one of the trees when the pod begins, and in all of them when it ends. */
void test_parent_in_some(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	struct uuid neighbour = uuid;
	CLEANUP(pod_cgroup_deinit)
	struct pod_cgroup top = POD_CGROUP_INIT, g = POD_CGROUP_INIT, again = POD_CGROUP_INIT;
	make_groups(&top);
	new_uuid();
	make_parents(&top, 1);
	assert_int_equal(pod_cgroup_make(uuid.text, parent, &g, &e), 0);
	assert_int_equal(count_groups(&g), count_groups(&top));
	make_parents(&top, CGROUP_KINDS);
	assert_int_equal(pod_cgroup_open(uuid.text, parent, &again, &e), 0);
	assert_int_equal(count_groups(&again), count_groups(&g));
	assert_int_equal(pod_cgroup_remove(uuid.text, parent, &e), 0);
	pod_cgroup_deinit(&again);
	assert_int_equal(pod_cgroup_open(uuid.text, parent, &again, &e), 0);
	assert_int_equal(count_groups(&again), 0);
	remove_parents(&top);
	assert_int_equal(pod_cgroup_make(uuid.text, parent, &again, &e), -ENOENT);
	assert_non_null(strstr(e.text, "make it first"));
	uuid = neighbour;
}

/* Who may not write there does not go on without a group, as he does who wants none of these. */
void test_parent_of_root(void **state)
{
	(void)state;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup top = POD_CGROUP_INIT;
	make_groups(&top);
	make_parents(&top, CGROUP_KINDS);
	pid_t pid = fork();
	if (pid == 0) {
		struct err e = ERR_INIT;
		struct pod_cgroup g;
		int r = become_nobody() != 0 ? 0 : pod_cgroup_make(uuid.text, parent, &g, &e);
		_exit(r == -EACCES && strstr(e.text, parent) ? 0 : 1);
	}
	int status = status_of(pid);
	assert_true(top.fds[CGROUP_UNIFIED] < 0 || status == 0);
	remove_parents(&top);
}
