/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands for husk-libvirt in test_libvirt: is QEMU and helper in one, and does what --cache says.
 * With --check it says what it was to connect to, and if it has an environment; or nothing, if HOME
 * says so.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "stage1-kvm/vmm/libvirt/domain_xml.h"
#include "stage1-kvm/vmm/libvirt/message.h"

static const char *dir = "", *role = "", *uri = "", *uid = "", *home = "";

static void tell(enum message_kind kind, int lun, const char *text)
{
	struct message m = { .kind = kind, .lun = lun, .left = text[0] != '\0' };
	snprintf(m.text, sizeof(m.text), "%s", text);
	send(HELPER_FD_SOCKET, &m, sizeof(m), 0);
}

static int connect_console(void)
{
	char path[200];
	snprintf(path, sizeof(path), "%s/" DOMAIN_FILE_CONSOLE, dir);
	int fd = unix_connect(path);
	if (fd >= 0)
		fd_write_all(fd, "hello\n", 6);
	return fd;
}

/* Each request is answered, behind an answer that nobody asked for; disk 9 fails. */
static void serve(void)
{
	struct message m;
	int fds[UNIX_FDS_MAX];
	size_t len, n_fds;
	while (unix_recv_fds(HELPER_FD_SOCKET, &m, sizeof(m), fds, &len, &n_fds) == 0 && len > 0) {
		tell(MESSAGE_DONE, m.lun + 1000, "not asked for");
		tell(MESSAGE_DONE, m.lun, m.lun == 9 ? "disk 9 is bad" : "");
		for (size_t i = 0; i < n_fds; i++)
			fd_close(fds[i]);
	}
}

/* QEMU is another process, which stays when the helper is gone. */
static void leave_orphan(void)
{
	int ready[2];
	char byte;
	if (pipe(ready) < 0)
		_exit(4);
	if (fork() == 0) {
		bool connected = connect_console() >= 0 && write(ready[1], "", 1) == 1;
		while (connected)
			pause();
		_exit(5);
	}
	bool connected = close(ready[1]) == 0 && read(ready[0], &byte, 1) == 1;
	tell(MESSAGE_UP, -1, "");
	_exit(connected ? 6 : 4);
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN); /* nobody reads the console to its end */
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--dir=", 6) == 0)
			dir = argv[i] + 6;
		if (strncmp(argv[i], "--cache=", 8) == 0)
			role = argv[i] + 8;
		if (strncmp(argv[i], "--uri=", 6) == 0)
			uri = argv[i] + 6;
		if (strncmp(argv[i], "--uid=", 6) == 0)
			uid = argv[i] + 6;
		if (strncmp(argv[i], "--env=HOME=", 11) == 0)
			home = argv[i] + 11;
		if (strcmp(argv[i], "--check") == 0)
			role = "checks";
	}
	while (strcmp(role, "stuck") == 0 || strcmp(home, "stuck") == 0)
		pause();
	if (strcmp(role, "checks") == 0) {
		fprintf(stderr, "asked %s%s\nand more\n", uri, *environ ? " for the caller" : "");
		return 1;
	}
	if (strcmp(role, "dies") == 0) {
		fprintf(stderr, "husk-libvirt: no such library\n");
		return 127;
	}
	if (strcmp(role, "refuses") == 0) {
		tell(MESSAGE_ENDED, -1, "libvirt: \033[31mno\n");
		return 0;
	}
	if (strcmp(role, "identity") == 0) {
		tell(MESSAGE_ENDED, -1, uid);
		return 0;
	}
	if (strcmp(role, "orphan") == 0)
		leave_orphan();
	if (connect_console() < 0)
		return 3;
	if (strcmp(role, "hangs-up") == 0) {
		tell(MESSAGE_ENDED, -1, "it hung up");
		return 0;
	}
	tell(MESSAGE_UP, -1, "");
	while (strcmp(role, "silent") == 0)
		pause();
	if (strcmp(role, "nonsense") == 0)
		tell(99, 0, "");
	if (strcmp(role, "short") == 0)
		send(HELPER_FD_SOCKET, "abc", 3, 0);
	for (int i = 0; strcmp(role, "floods") == 0 && i < 2000; i++)
		tell(i % 2 ? MESSAGE_RESUMED : MESSAGE_SUSPENDED, -1, "");
	if (strcmp(role, "again") == 0) {
		tell(MESSAGE_UP, -1, "");
		tell(MESSAGE_DISK_ERROR, -1, "");
		tell(MESSAGE_ENDED, -1, "it was destroyed");
		return 0;
	}
	serve();
	return 0;
}
