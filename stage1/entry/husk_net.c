/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/entry/husk_net.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/os/spawn.h"
#include "stage1/net/message.h"

#define HELPER "husk-net"

int husk_net_call(const char *uuid, const char *action, int said_fd, int *ret_code)
{
	char program[PATH_MAX], uuid_arg[64], action_arg[32], name[] = HELPER;
	char *const argv[] = { name, action_arg, uuid_arg, NULL };
	pid_t pid;
	int status = 0;
	snprintf(uuid_arg, sizeof(uuid_arg), "--uuid=%s", uuid);
	snprintf(action_arg, sizeof(action_arg), "%s", action);
	int r = path_from_self(HELPER, program, sizeof(program));
	if (r < 0)
		return r;
	cleanup_fd int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	struct spawn_plan plan = { .program = program, .argv = argv };
	spawn_plan_fd(&plan, said_fd, STDERR_FILENO);
	spawn_plan_fd(&plan, dir, NET_FD_POD);
	r = spawn(&plan, &pid, NULL);
	if (r == 0)
		r = spawn_wait(pid, &status);
	if (r < 0)
		return r;
	*ret_code = WEXITSTATUS(status);
	return WIFEXITED(status) ? 0 : -EIO;
}
