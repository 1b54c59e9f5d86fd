/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running programs and looking at the clock: one command, or several at once.
 *
 * Times are CLOCK_MONOTONIC of this process: when the command was started, when its first and its
 * last output came through the pipe, when each of its first lines ended, when it was gone. A
 * command that takes too long is killed, and so are all when a signal asks the program to end.
 */
#ifndef BENCH_COMMAND_H
#define BENCH_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/namespaces.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/os/loop.h"

/* The longest that is measured on purpose is 50 starts of emulated machines, one by one. */
#define COMMAND_LIMIT_S 300

/* The most that is read of an output and kept: what husk doctor says is 5 KiB, a plot 20 KiB. */
#define COMMAND_OUTPUT_MAX ((size_t)64 << 10)

/* Lines whose time is kept: one more than a script of a suite has parts. */
#define COMMAND_MARKS_MAX 8

/* Words of a command: 200 pods are removed by one, and a prefix. */
#define COMMAND_WORDS_MAX 256

/* Words of a command as a list with its end. */
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* What all commands of this process share. */
struct runner {
	int signal_fd;    /* SIGINT, SIGTERM, SIGHUP */
	int limit_s;      /* COMMAND_LIMIT_S but in tests */
	bool interrupted; /* a signal came: nothing is started any more, but to clean up */
	bool cleaning;    /* signals wait */
};

struct command {
	struct strv argv;                    /* owned; the program's path is the first */
	const struct namespaces *namespaces; /* where it is started; NULL: where we are */
	uint64_t feed; /* zero bytes for its standard input, from its first output on */

	/* Nanoseconds; 0 if it did not happen. */
	int64_t start_ns, first_ns, last_ns, end_ns;
	int64_t mark_ns[COMMAND_MARKS_MAX]; /* when its lines ended */
	unsigned n_marks;
	uint64_t bytes, first_bytes; /* of its standard output, and of the first read(2) of it */
	struct buf out, err;         /* what was kept of them */
	int status;                  /* as from waitpid(2) */
	bool timed_out;

	/* While it runs. */
	struct command_set *set;
	pid_t pid;
	int in_fd, out_fd, err_fd, pid_fd;
	struct loop_watch in, from_out, from_err, exit;
};

/* Blocks the signals and opens their descriptor. 0 or -errno. */
int runner_init(struct runner *r);

/* Prepares a command without words, and frees all of it. */
void command_init(struct command *c);
void command_deinit(struct command *c);

#define cleanup_command CLEANUP(command_deinit)

/* Appends @words, which end with NULL, to those of a command. 0 or -errno with @e. */
int command_words(struct command *c, const char *const *words, struct err *e);

/*
 * Starts the @n commands at once and waits until all have ended. 0 whatever they said, or -errno
 * with @e if they could not be run or were interrupted; none of them is left then.
 */
int command_run_all(struct runner *r, struct command *c, size_t n, struct err *e);

/*
 * Whether the command ended with status 0; else -EIO, and @e says how it ended: timed out, a
 * signal, or its status and the last line of its standard error.
 */
int command_check(const struct command *c, struct err *e);

/* command_run_all() and command_check() of one. */
int command_run(struct runner *r, struct command *c, struct err *e);

#endif
