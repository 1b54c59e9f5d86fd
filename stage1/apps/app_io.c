/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/app_io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/fd.h"

void app_io_init(struct app_io *io, const struct apps_config *config, const char *app)
{
	*io = (struct app_io){ .config = config, .app = app };
	applog_init(&io->log);
}

static bool is_ours(enum stream_mode mode)
{
	return mode == STREAM_MODE_DEFAULT || mode == STREAM_MODE_LOG;
}

/* ---- the log ---- */

int app_io_begin_log(struct app_io *io, const struct pod_log_place *place, struct err *e)
{
	const struct apps_config *config = io->config;
	const struct stream_modes *to = &io->modes;
	bool needed = config->only_log || to->out == STREAM_MODE_LOG || to->err == STREAM_MODE_LOG;
	if (config->interactive || stream_modes_have_tty(to) ||
	    !(is_ours(to->out) || is_ours(to->err)))
		return 0;
	return applog_begin(&io->log, config->pod_fd, io->app, place, needed, e);
}

void app_io_end_log(struct app_io *io)
{
	if (io->log.lost > 0)
		dprintf(STDERR_FILENO,
			"stage1: app \"%s\": %ju pieces of its output could not be logged (is the "
			"disk full?)\n",
			io->app, (uintmax_t)io->log.lost);
	applog_deinit(&io->log);
	applog_init(&io->log);
}

/* ---- streams ---- */

bool app_io_wants_stdin(const struct app_io *io)
{
	const struct apps_config *config = io->config;
	if (config->interactive)
		return true;
	return io->modes.in == STREAM_MODE_DEFAULT && !stream_modes_have_tty(&io->modes) &&
	       config->plan->n_apps == 1 && !config->plan->is_mutable && !isatty(STDIN_FILENO) &&
	       !fd_is_dev_null(STDIN_FILENO);
}

/* Where we have output of @kind go: our descriptor, or -EBADF if only into the log. */
static int out_fd_of(const struct app_io *io, enum agent_stream kind)
{
	bool is_err = kind == AGENT_STREAM_STDERR;
	enum stream_mode mode = is_err ? io->modes.err : io->modes.out;
	if (io->config->only_log || mode == STREAM_MODE_LOG)
		return -EBADF;
	return is_err ? STDERR_FILENO : STDOUT_FILENO;
}

static void open_stream(struct app_io *io, enum agent_stream kind, stream_end_fn end, void *ctx)
{
	struct stream_plan plan = { .route = io->config->backend->route,
				    .attach = { .stream = kind },
				    .in_fd = STDIN_FILENO,
				    .out_fd = out_fd_of(io, kind),
				    .log = applog_is_open(&io->log) ? &io->log : NULL };
	struct err e = ERR_INIT;
	memcpy(plan.attach.secret, io->config->secret, AGENT_SECRET_LEN);
	str_copy(plan.attach.app, sizeof(plan.attach.app), io->app);
	int r = stream_open(&io->streams[io->n], io->config->loop, &plan, end, ctx);
	if (r == 0) {
		io->n++;
		return;
	}
	err_sys(&e, r, "agent: cannot dial it");
	end(ctx, NULL, &e);
}

void app_io_open(struct app_io *io, stream_end_fn end, void *ctx)
{
	if (io->config->interactive) {
		open_stream(io, AGENT_STREAM_TTY, end, ctx);
		return;
	}
	if (stream_modes_have_tty(&io->modes))
		return;
	if (is_ours(io->modes.out))
		open_stream(io, AGENT_STREAM_STDOUT, end, ctx);
	if (is_ours(io->modes.err))
		open_stream(io, AGENT_STREAM_STDERR, end, ctx);
	if (app_io_wants_stdin(io))
		open_stream(io, AGENT_STREAM_STDIN, end, ctx);
}

void app_io_may_attach(struct app_io *io)
{
	for (size_t i = 0; i < io->n; i++)
		stream_app_exists(&io->streams[i]);
}

void app_io_close(struct app_io *io)
{
	for (size_t i = 0; i < io->n; i++)
		stream_close(&io->streams[i]);
	io->n = 0;
}

bool app_io_any(const struct app_io *io, bool (*is)(const struct stream *s))
{
	return stream_any(io->streams, io->n, is);
}

uint64_t app_io_progress(const struct app_io *io)
{
	return stream_sum_progress(io->streams, io->n);
}
