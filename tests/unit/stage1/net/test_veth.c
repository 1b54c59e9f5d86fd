/* SPDX-License-Identifier: Apache-2.0 */
/* Which interface of the host leads into a namespace, in some of the test's own. Needs root. */
#include "stage1/net/veth.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "stage1/net/netns.h"
#include "tests/support/fixture.h"
#include "tests/support/own_net.h"

static void run(const char *command)
{
	if (system(command) != 0) {
		fprintf(stderr, "%s\n", command);
		_exit(1);
	}
}

static int rename_inside(void *ctx, struct err *e)
{
	(void)ctx;
	(void)e;
	run("ip link add low type bridge && ip link add alone type veth peer name alike");
	return 0;
}

/* A host, and two pods, in which interfaces have the same numbers. */
static void look(void)
{
	struct err e = ERR_INIT;
	char command[128];
	int first = netns_make(&e), second = netns_make(&e);
	if (first < 0 || second < 0)
		_exit(1);
	run("ip link add host1 type veth peer name in1 && ip link add host2 type veth peer name in2");
	run("ip link add own type bridge");
	netns_call(second, rename_inside, NULL, &e);
	snprintf(command, sizeof(command), "ip link set in1 netns /proc/%d/fd/%d", getpid(), first);
	run(command);
	snprintf(command, sizeof(command), "ip link set in2 netns /proc/%d/fd/%d", getpid(),
		 second);
	run(command);
	unsigned host1 = if_nametoindex("host1"), host2 = if_nametoindex("host2");
	bool good = veth_find_peer(first, "in1", &e) == (int)host1 &&
		    veth_find_peer(second, "in2", &e) == (int)host2 &&
		    veth_find_peer(second, "low", &e) == 0 && /* no veth */
		    veth_find_peer(second, "alone", &e) == 0; /* both ends are inside */
	good = good && veth_find_peer(first, "in2", &e) < 0 && strstr(e.text, "in2");
	_exit(good ? 0 : 2);
}

static void test_peers(void **state)
{
	(void)state;
	own_net_call(look);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_peers) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
