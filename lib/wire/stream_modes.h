/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the standard streams of an app go, as the user says it: --stdin, --stdout and --stderr of
 * husk run, and annotations of the app in the pod manifest.
 */
#ifndef LIB_WIRE_STREAM_MODES_H
#define LIB_WIRE_STREAM_MODES_H

#include <stdbool.h>

/* Annotations of an app, with the names of enum stream_mode. */
#define STREAM_ANN_STDIN  "husk/stdin"
#define STREAM_ANN_STDOUT "husk/stdout"
#define STREAM_ANN_STDERR "husk/stderr"

enum stream_mode {
	STREAM_MODE_DEFAULT, /* what suits the pod: its own streams, or the log */
	STREAM_MODE_LOG,     /* outputs only: the app's log */
	STREAM_MODE_NULL,    /* /dev/null */
	STREAM_MODE_STREAM,  /* whoever attaches */
	STREAM_MODE_TTY,     /* likewise; all three are one terminal */
	STREAM_MODE_COUNT_,
};

struct stream_modes {
	enum stream_mode in, out, err;
};

/* "log", "null", "stream", "tty"; NULL for the default. */
const char *stream_mode_name(enum stream_mode mode);

/* Sets the mode that annotation @annotation (one of the above) is for. 0 or -EINVAL. */
int stream_modes_set(struct stream_modes *m, const char *annotation, const char *mode);

/*
 * True if the three go together: a terminal is all three, where a default becomes one, and only
 * outputs have a log.
 */
bool stream_modes_are_valid(const struct stream_modes *m);

/* True if the three are one terminal that can be attached to. */
bool stream_modes_have_tty(const struct stream_modes *m);

/* True if one of them can be attached to. */
bool stream_modes_can_attach(const struct stream_modes *m);

#endif
