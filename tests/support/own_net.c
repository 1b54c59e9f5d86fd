/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/own_net.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/os/spawn.h"
#include "tests/support/cmocka.h"

void own_net_ip(const char *args)
{
	char line[256];
	snprintf(line, sizeof(line), "ip %s", args);
	if (system(line) != 0) /* NOLINT(cert-env33-c): a constant */
		fail_msg("%s", line);
}

void own_net_call(void (*fn)(void))
{
	int status;
	if (geteuid() != 0)
		skip();
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWNET) < 0)
			_exit(1);
		own_net_ip("link set lo up");
		fn();
		_exit(0);
	}
	assert_int_equal(spawn_wait(pid, &status), 0);
	assert_int_equal(status, 0);
}
