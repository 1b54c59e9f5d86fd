/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for husk-ns: what it does says the option --uuid. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "stage1-ns/message.h"

static void tell(uint32_t kind, int slot, const char *text, int fd)
{
	struct message m = { .kind = kind, .slot = slot };
	size_t sent;
	snprintf(m.text, sizeof(m.text), "%s", text);
	unix_send_fds(HELPER_FD_SOCKET, &m, sizeof(m), &fd, fd < 0 ? 0 : 1, &sent);
}

/* Some descriptor comes with it, as that of the agent does. */
static void tell_up(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	tell(MESSAGE_UP, 0, "", fd);
	fd_close(fd);
}

/*
 * What nobody has asked for, for slots that there are not, in pieces, without an end to the text.
 */
static void tell_nonsense(void)
{
	struct message m = { .kind = MESSAGE_DONE, .slot = 3 };
	tell(77, 0, "what", -1);
	tell(MESSAGE_DONE, -1, "", -1);
	tell(MESSAGE_DONE, 1 << 20, "", -1);
	tell(MESSAGE_DONE, 2, "nobody asked", -1);
	memset(m.text, 'x', sizeof(m.text));
	send(HELPER_FD_SOCKET, &m, sizeof(m), MSG_NOSIGNAL);
}

/* Plugs even slots and refuses odd ones, until the socket ends. */
static void serve(void)
{
	struct message m;
	while (recv(HELPER_FD_SOCKET, &m, sizeof(m), 0) == sizeof(m))
		tell(MESSAGE_DONE, m.slot, m.slot % 2 ? "no room" : "", -1);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 && str_starts(argv[1], "--uuid=") ? argv[1] + 7 : "";
	if (strcmp(mode, "fails") == 0) {
		fprintf(stderr, "namespaces: the reason\nmore\n");
		return 1;
	}
	if (strcmp(mode, "silent") == 0)
		return 3;
	if (strcmp(mode, "nonsense") == 0)
		tell_nonsense();
	tell_up();
	dprintf(HELPER_FD_CONSOLE, "husk-agent: a word%s\n",
		fcntl(HELPER_FD_CONSOLE, F_GETFL) & O_NONBLOCK ? "" : " for which it waits");
	if (strcmp(mode, "dies") == 0) {
		fprintf(stderr, "husk-agent: killed by signal 9\n");
		return 0;
	}
	serve();
	fprintf(stderr, "husk-agent: killed by signal 9\n");
	return 0;
}
