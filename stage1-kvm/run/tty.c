#include "stage1-kvm/run/tty.h"

#include <errno.h>
#include <sys/ioctl.h>

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
