/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attach entrypoint of a stage1: joins our standard streams with those of an app of the pod in
 * the working directory, or lists what can be joined (docs/protocol-stage1.md).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1/backend.h"
#include "stage1/entry/attach.h"
#include "stage1/entry/controller.h"
#include "stage1/pod/podfiles.h"

/* What an app may have, in the order in which it is listed. */
enum endpoint {
	END_STDIN,
	END_STDOUT,
	END_STDERR,
	END_TTY_IN,
	END_TTY_OUT,
	END_COUNT_,
};

static const char *const end_names[END_COUNT_] = { "stdin", "stdout", "stderr", "tty-in",
						   "tty-out" };

struct options {
	const char *app;
	bool list, custom;
	bool wanted[END_COUNT_]; /* custom */
	bool keep_stdin;
	struct detach_keys detach_keys;
	int control_fd; /* -EBADF: nobody controls it */
};

static int parse_bool(const char *value, bool *ret)
{
	*ret = strcmp(value, "true") == 0;
	return *ret || strcmp(value, "false") == 0 ? 0 : -EINVAL;
}

static int parse_endpoint(const char *arg, struct options *o)
{
	for (int i = 0; i < END_COUNT_; i++) {
		size_t len = strlen(end_names[i]);
		if (strncmp(arg + 2, end_names[i], len) != 0 || arg[2 + len] != '=')
			continue;
		return parse_bool(arg + 3 + len, &o->wanted[i]);
	}
	return -EINVAL;
}

/*
 * [--debug=BOOL] --action=list|auto-attach|custom-attach --app=NAME [--keep-stdin=BOOL]
 * [--detach-keys=SEQUENCE] [--control=FD] [--ENDPOINT=BOOL...]
 */
static int attach_parse(int argc, char **argv, struct options *o)
{
	bool action = false;
	int r = 0;
	*o = (struct options){ .control_fd = -EBADF };
	detach_keys_parse(DETACH_KEYS_DEFAULT, &o->detach_keys);
	for (int i = 1; r == 0 && i < argc; i++) {
		if (str_starts(argv[i], "--app=")) {
			o->app = argv[i] + strlen("--app=");
		} else if (str_starts(argv[i], "--action=")) {
			const char *what = argv[i] + strlen("--action=");
			o->list = strcmp(what, "list") == 0;
			o->custom = strcmp(what, "custom-attach") == 0;
			action = o->list || o->custom || strcmp(what, "auto-attach") == 0;
		} else if (str_starts(argv[i], "--keep-stdin=")) {
			r = parse_bool(argv[i] + strlen("--keep-stdin="), &o->keep_stdin);
		} else if (str_starts(argv[i], "--detach-keys=")) {
			r = detach_keys_parse(argv[i] + strlen("--detach-keys="), &o->detach_keys);
		} else if (!controller_option(argv[i], &o->control_fd) &&
			   !str_starts(argv[i], "--debug=")) {
			r = str_starts(argv[i], "--") ? parse_endpoint(argv[i], o) : -EINVAL;
		}
	}
	return r == 0 && action && o->app ? 0 : -EINVAL;
}

static void find_endpoints(const struct stream_modes *m, bool ret[END_COUNT_])
{
	bool tty = stream_modes_have_tty(m);
	ret[END_TTY_IN] = ret[END_TTY_OUT] = tty;
	ret[END_STDIN] = !tty && m->in == STREAM_MODE_STREAM;
	ret[END_STDOUT] = !tty && m->out == STREAM_MODE_STREAM;
	ret[END_STDERR] = !tty && m->err == STREAM_MODE_STREAM;
}

static int list(const bool have[END_COUNT_])
{
	for (int i = 0; i < END_COUNT_; i++)
		if (have[i])
			puts(end_names[i]);
	return fflush(stdout) == 0 ? 0 : -EIO;
}

/* What of the terminal is not wanted goes nowhere. */
static int silence(int fd)
{
	cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	return null < 0 || dup2(null, fd) < 0 ? -errno : 0;
}

static int attach_choose(const struct options *o, const bool have[END_COUNT_],
			 struct attach_input *in, struct err *e)
{
	bool use[END_COUNT_], any = false;
	for (int i = 0; i < END_COUNT_; i++) {
		use[i] = o->custom ? o->wanted[i] : have[i];
		any = any || use[i];
		if (use[i] && !have[i])
			return err_set(e, -EINVAL, "app \"%s\" has no %s to attach to", o->app,
				       end_names[i]);
	}
	if (!any)
		return err_set(e, -EINVAL,
			       "app \"%s\" has nothing to attach to (see --stdin, --stdout and "
			       "--stderr of husk run)",
			       o->app);
	in->streams[AGENT_STREAM_STDIN] = use[END_STDIN];
	in->streams[AGENT_STREAM_STDOUT] = use[END_STDOUT];
	in->streams[AGENT_STREAM_STDERR] = use[END_STDERR];
	in->streams[AGENT_STREAM_TTY] = use[END_TTY_IN] || use[END_TTY_OUT];
	int r = 0;
	if (in->streams[AGENT_STREAM_TTY] && !use[END_TTY_IN])
		r = silence(STDIN_FILENO);
	if (in->streams[AGENT_STREAM_TTY] && !use[END_TTY_OUT])
		r = silence(STDOUT_FILENO);
	return r < 0 ? err_sys(e, r, "/dev/null") : 0;
}

static int run(const struct options *o, struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest manifest;
	bool have[END_COUNT_];
	char secret[AGENT_SECRET_LEN + 1];
	struct attach_input in = { .route = &flavor_route,
				   .secret = secret,
				   .app = o->app,
				   .keep_stdin = o->keep_stdin,
				   .detach_keys = o->detach_keys,
				   .control_fd = o->control_fd };
	pod_manifest_init(&manifest);
	cleanup_fd int pod_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pod_fd < 0)
		return err_sys(e, -errno, "pod directory");
	int r = podfiles_read_manifest(pod_fd, &manifest, e);
	if (r < 0)
		return r;
	const struct pod_app *app = pod_manifest_find(&manifest, o->app);
	if (!app)
		return err_set(e, -ENOENT, "the pod has no app \"%s\"", o->app);
	find_endpoints(&app->streams, have);
	if (o->list)
		return list(have);
	r = attach_choose(o, have, &in, e);
	if (r == 0)
		r = podfiles_read_secret(pod_fd, secret, e);
	if (r == 0)
		r = attach_run(&in, e);
	if (r == ATTACH_LEFT)
		/* The prompt of what was left stands in the last line of a terminal. */
		fprintf(stderr, "%sstage1: detached from app \"%s\", which goes on\n",
			isatty(STDERR_FILENO) ? "\n" : "", o->app);
	return r;
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	struct options o;
	if (fd_fill_stdio() < 0)
		return EXIT_HUSK_FAILURE;
	if (attach_parse(argc, argv, &o) < 0) {
		fprintf(stderr,
			"stage1: attach: usage: attach [--debug=BOOL] "
			"--action=list|auto-attach|custom-attach --app=NAME [--keep-stdin=BOOL] "
			"[--detach-keys=SEQUENCE] [--control=FD] [--stdin=BOOL] [--stdout=BOOL] [--stderr=BOOL] [--tty-in=BOOL] [--tty-out=BOOL]\n");
		return EXIT_HUSK_FAILURE;
	}
	int r = run(&o, &e);
	if (r < 0)
		fprintf(stderr, "stage1: attach: %s\n", e.code ? e.text : "cannot write");
	return r < 0 || r == ATTACH_LOST ? EXIT_HUSK_FAILURE : 0;
}
