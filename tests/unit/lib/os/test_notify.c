/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

/* A service manager that listens on @name, "@..." for an abstract one. */
static int listen_on(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	memcpy(addr.sun_path, name, strlen(name));
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
			 0);
	return fd;
}

static void expect_message(const char *name)
{
	char got[64] = "";
	cleanup_fd int fd = listen_on(name);
	assert_int_equal(notify_send(name, "READY=1"), 0);
	assert_int_equal(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT), 7);
	assert_string_equal(got, "READY=1");
}

static void test_sends(void **state)
{
	char name[108];
	snprintf(name, sizeof(name), "%s/notify", fixture_path(state));
	expect_message(name);
	snprintf(name, sizeof(name), "@husk-test-%d", (int)getpid());
	expect_message(name);
	memset(name, 'a', sizeof(name)); /* the longest there is */
	name[0] = '@';
	name[107] = '\0';
	expect_message(name);
}

static void test_refuses(void **state)
{
	char name[109];
	(void)state;
	assert_int_equal(notify_send(NULL, "READY=1"), 0);
	assert_int_equal(notify_send("", "READY=1"), -EINVAL);
	assert_int_equal(notify_send("/", "READY=1"), -EINVAL);
	assert_int_equal(notify_send("relative", "READY=1"), -EINVAL);
	assert_int_equal(notify_send("/nonexistent/notify", "READY=1"), -ENOENT);
	memset(name, 'a', sizeof(name));
	name[0] = '/';
	name[108] = '\0';
	assert_int_equal(notify_send(name, "READY=1"), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_sends),
		fixture_test(test_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
