/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/stream_modes.h"

#include <errno.h>
#include <string.h>

static const char *const names[STREAM_MODE_COUNT_] = {
	[STREAM_MODE_LOG] = "log",
	[STREAM_MODE_NULL] = "null",
	[STREAM_MODE_STREAM] = "stream",
	[STREAM_MODE_TTY] = "tty",
};

const char *stream_mode_name(enum stream_mode mode)
{
	return names[mode];
}

int stream_modes_set(struct stream_modes *m, const char *annotation, const char *mode)
{
	enum stream_mode *slot = strcmp(annotation, STREAM_ANN_STDIN) == 0    ? &m->in
				 : strcmp(annotation, STREAM_ANN_STDOUT) == 0 ? &m->out
				 : strcmp(annotation, STREAM_ANN_STDERR) == 0 ? &m->err
									      : NULL;
	for (int i = 0; slot && i < STREAM_MODE_COUNT_; i++) {
		if (!names[i] || strcmp(mode, names[i]) != 0)
			continue;
		if (i == STREAM_MODE_LOG && slot == &m->in)
			break;
		*slot = (enum stream_mode)i;
		return 0;
	}
	return -EINVAL;
}

bool stream_modes_have_tty(const struct stream_modes *m)
{
	return m->in == STREAM_MODE_TTY || m->out == STREAM_MODE_TTY || m->err == STREAM_MODE_TTY;
}

static bool fits_tty(enum stream_mode mode)
{
	return mode == STREAM_MODE_TTY || mode == STREAM_MODE_DEFAULT;
}

bool stream_modes_are_valid(const struct stream_modes *m)
{
	if (m->in == STREAM_MODE_LOG)
		return false;
	return !stream_modes_have_tty(m) ||
	       (fits_tty(m->in) && fits_tty(m->out) && fits_tty(m->err));
}

bool stream_modes_can_attach(const struct stream_modes *m)
{
	return stream_modes_have_tty(m) || m->in == STREAM_MODE_STREAM ||
	       m->out == STREAM_MODE_STREAM || m->err == STREAM_MODE_STREAM;
}
