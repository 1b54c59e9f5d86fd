/* SPDX-License-Identifier: Apache-2.0 */
/* The control groups of one pod on this host, and processes in them. */
#ifndef TESTS_UNIT_STAGE1_POD_GROUPS_H
#define TESTS_UNIT_STAGE1_POD_GROUPS_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/uuid.h"
#include "stage1/pod/pod_cgroup.h"

#define NOBODY 65534

extern struct uuid uuid; /* of the pod of this test */

/* Another pod from now on. */
void new_uuid(void);

/* Before and after a test: a pod of its own, of which nothing is left, whatever the test found. */
int groups_begin(void **state);
int groups_end(void **state);

/* Whether groups can be made: root may still be denied, in a container. */
bool can_make(void);

/* The pod's groups, which the caller closes; in how many trees they are. */
void make_groups(struct pod_cgroup *g);
size_t count_groups(const struct pod_cgroup *g);

int write_in(int dir, const char *name, const char *text);

/* Goes into the groups, in version 2 into a child of it if that is named. 0 or -1. */
int enter_groups(const struct pod_cgroup *g, const char *child);

/* A process that waits in there, with a child that does. */
pid_t start_in_groups(const struct pod_cgroup *g, const char *child);

/* How often /proc/PID/cgroup names the pod, with @suffix behind. */
int count_mentions(pid_t pid, const char *suffix);

/* Awaits a child. */
int status_of(pid_t pid);

int become_nobody(void);

/* Tests of parents.c. */
void test_parent(void **state);
void test_own_parent(void **state);
void test_own_parent_in_all(void **state);
void test_own_parent_of_two(void **state);
void test_parent_in_some(void **state);
void test_parent_of_root(void **state);

#endif
