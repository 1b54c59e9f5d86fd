/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/streams/tty.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "lib/base/macros.h"
#include "lib/os/loop.h"

int tty_make_raw(struct tty *t, int fd)
{
	struct termios now;
	if (tcgetattr(fd, &now) < 0)
		return -errno;
	t->saved = now;
	cfmakeraw(&now);
	if (tcsetattr(fd, TCSADRAIN, &now) < 0)
		return -errno;
	t->fd = fd;
	return 0;
}

void tty_restore(struct tty *t)
{
	if (t->fd < 0)
		return;
	tcsetattr(t->fd, TCSADRAIN, &t->saved);
	t->fd = -EBADF;
}

void tty_size(int fd, int64_t *ret_rows, int64_t *ret_cols)
{
	struct winsize ws = { 0 };
	if (ioctl(fd, TIOCGWINSZ, &ws) < 0)
		ws = (struct winsize){ 0 };
	*ret_rows = ws.ws_row;
	*ret_cols = ws.ws_col;
}

int tty_signal_fd(void)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGWINCH };
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return -errno;
	return loop_signal_fd(&set);
}
