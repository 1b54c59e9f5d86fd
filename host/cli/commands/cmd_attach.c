/* SPDX-License-Identifier: Apache-2.0 */
/* husk attach */
#include <errno.h>
#include <string.h>

#include "host/cli/pods.h"
#include "host/cli/stage1_choice.h"
#include "host/pod/running.h"
#include "host/pod/wait.h"
#include "lib/wire/detach_keys.h"

#define BOTH_ENDS (1U << ABI_END_TTY_IN | 1U << ABI_END_TTY_OUT)

/* Endpoints of --mode. */
static const struct {
	const char *name;
	unsigned int ends;
} endpoints[] = {
	{ "stdin", 1U << ABI_END_STDIN },   { "stdout", 1U << ABI_END_STDOUT },
	{ "stderr", 1U << ABI_END_STDERR }, { "tty", BOTH_ENDS },
	{ "tty-in", 1U << ABI_END_TTY_IN }, { "tty-out", 1U << ABI_END_TTY_OUT },
};

struct attach_opts {
	const char *app;
	const char *mode;
	const char *uuid_file;
	const char *detach_keys; /* NULL: stage1's default */
	bool keep_stdin;
};

static int set_detach_keys(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct attach_opts *o = opts;
	struct detach_keys keys;
	int r = detach_keys_parse(value, &keys);
	if (r == -E2BIG)
		return err_set(e, r, "--%s: more than %d keys", f->name, DETACH_KEYS_MAX);
	if (r < 0)
		return err_set(
			e, r,
			"--%s: \"%.80s\" is not a list of keys, each a character or ctrl- and one "
			"of a-z@[\\]^_",
			f->name, value);
	o->detach_keys = value;
	return 0;
}

static const struct flag flags[] = {
	FLAG_STRING("app", "NAME", struct attach_opts, app,
		    "the app; needed if the pod has several"),
	FLAG_OWN("detach-keys", "KEYS", set_detach_keys,
		 "what leaves a terminal, default " DETACH_KEYS_DEFAULT "; empty: nothing"),
	FLAG_SWITCH("keep-stdin", struct attach_opts, keep_stdin,
		    "the end of our standard input is not that of the app's"),
	FLAG_STRING(
		"mode", "MODE", struct attach_opts, mode,
		"list, auto (the default), or some of stdin,stdout,stderr or tty,tty-in,tty-out"),
	FLAG_UUID_FILE(struct attach_opts),
};

static int add_endpoint(const char *name, size_t len, unsigned int *ends, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(endpoints); i++) {
		if (strlen(endpoints[i].name) != len || strncmp(endpoints[i].name, name, len) != 0)
			continue;
		*ends |= endpoints[i].ends;
		return 0;
	}
	return err_set(e, -EINVAL, "unknown endpoint \"%.*s\"", (int)MIN(len, (size_t)80), name);
}

/* auto, list, or a comma-separated list; a terminal does not go with the others. */
static int parse_mode(const char *mode, struct abi_attach *q, struct err *e)
{
	if (!mode || !*mode || strcmp(mode, "auto") == 0)
		return 0;
	q->list = strcmp(mode, "list") == 0;
	for (bool more = !q->list; more;) {
		size_t len = strcspn(mode, ",");
		int r = add_endpoint(mode, len, &q->ends, e);
		if (r < 0)
			return r;
		more = mode[len] == ',';
		mode += len + more;
	}
	if (q->ends & BOTH_ENDS && q->ends & ~BOTH_ENDS)
		return err_set(e, -EINVAL, "--mode: a terminal and streams exclude each other");
	return 0;
}

/* Becomes the attach entrypoint of stage1. Returns only on failure. */
static int run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct attach_opts *o = opts;
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	cleanup_free struct stage1 *stage1 = NULL;
	struct abi_attach q = { .keep_stdin = o->keep_stdin, .detach_keys = o->detach_keys };
	int r = parse_mode(o->mode, &q, e);
	if (r == 0)
		r = cli_open_pod(c, false, operands->v[0], &ps, &p, e);
	if (r == 0)
		r = pod_need_running(&p, e);
	if (r == 0)
		r = cli_pod_stage1(c, &p, &stage1, e);
	if (r == 0)
		r = pod_wait_apps(ps, &p, stage1, e);
	if (r == 0)
		r = pod_read_running(ps, &p, &info, e);
	if (r == 0 && !(q.app = cli_find_app(c, &info, o->app, e)))
		r = e->code;
	return r < 0 ? r : pod_attach(&p, stage1, &q, e);
}

const struct command cmd_attach = {
	.name = "attach",
	.usage = "[OPTIONS] UUID | --uuid-file=FILE",
	.summary = "join the standard streams of an app of a running pod",
	.description =
		"For apps that were made for it, with --stdin=stream, --stdout=tty and the like. The\n"
		"app notices nothing when husk ends, and the next can attach; one at a time. But the\n"
		"end of standard input ends the app's, unless it is kept. Output that nobody reads\n"
		"waits, and the app with it when 256 KiB wait. Ctrl-P Ctrl-Q leaves a terminal.",
	COMMAND_FLAGS(flags, struct attach_opts),
	.uuids = 1,
	.run = run,
};
