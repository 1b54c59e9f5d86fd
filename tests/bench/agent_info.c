/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a running pod's agent about itself: bench-agent-info POD_DIRECTORY. Prints
 * "rss_kib N uptime_ms N init_ms N". Also the smallest example of a client of the agent protocol.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/wire/agent.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"
#include "lib/wire/stage1.h"
#include "stage1/backend.h"
#include "stage1/pod/podfiles.h"

static int connect_agent(void)
{
	uint32_t events = 0;
	cleanup_fd int fd = flavor_route.connect(AGENT_PORT, &events);
	int r = fd < 0 ? fd : -EAGAIN;
	while (r == -EAGAIN) {
		struct pollfd p = { .fd = fd,
				    .events = (short)events }; /* epoll's bits are poll's */
		poll(&p, 1, -1);
		r = flavor_route.finish(fd);
	}
	if (r == 0)
		r = fd_set_nonblock(fd, false);
	return r < 0 ? r : TAKE_FD(fd);
}

/* Sends a request and waits for its reply. */
static int call(int fd, int64_t id, const char *method, struct json_object *body,
		struct rpc_msg *ret)
{
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	int r = rpc_append_request(&b, id, method, body);
	if (r == 0)
		r = fd_write_all(fd, buf_data(&b), buf_len(&b));
	buf_consume(&b, buf_len(&b));
	const char *payload = NULL;
	size_t len = 0;
	while (r == 0 && (r = frame_peek(&b, &payload, &len)) == FRAME_INCOMPLETE) {
		char c;
		r = read(fd, &c, 1) == 1 ? buf_append(&b, &c, 1) : -ECONNRESET;
	}
	return r < 0 ? r : rpc_decode(payload, len, ret);
}

static int ask(struct agent_info *ret)
{
	cleanup_free char *secret = NULL;
	int r = file_read_at(AT_FDCWD, POD_FILE_SECRET, AGENT_SECRET_LEN, &secret, NULL);
	if (r < 0)
		return r;
	struct agent_hello hello = { .version_min = AGENT_VERSION_MIN,
				     .version_max = AGENT_VERSION_MAX };
	memcpy(hello.secret, secret, AGENT_SECRET_LEN);
	cleanup_fd int fd = connect_agent();
	if (fd < 0)
		return fd;
	struct json_object *body = NULL;
	CLEANUP(rpc_msg_deinit) struct rpc_msg first = { 0 };
	CLEANUP(rpc_msg_deinit) struct rpc_msg second = { 0 };
	r = agent_hello_encode(&hello, &body);
	if (r == 0)
		r = call(fd, 0, AGENT_HELLO, body, &first);
	if (r == 0)
		r = call(fd, 1, AGENT_INFO, NULL, &second);
	return r < 0 ? r : agent_info_decode(second.body, ret);
}

int main(int argc, char **argv)
{
	struct agent_info info;
	if (argc != 2 || chdir(argv[1]) < 0) {
		fprintf(stderr, "usage: bench-agent-info POD_DIRECTORY\n");
		return 2;
	}
	int r = ask(&info);
	if (r < 0) {
		fprintf(stderr, "bench-agent-info: %s\n", strerror(-r));
		return 1;
	}
	printf("rss_kib %jd uptime_ms %jd init_ms %jd\n", (intmax_t)info.rss_kib,
	       (intmax_t)info.uptime_ms, (intmax_t)info.init_ms);
	return 0;
}
