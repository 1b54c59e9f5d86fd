/* SPDX-License-Identifier: Apache-2.0 */
/* husk attach */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/pods.h"
#include "host/cli/settings.h"
#include "host/cli/stage1_choice.h"
#include "host/launch/stage1.h"
#include "host/pod/info.h"
#include "host/pod/wait.h"
#include "lib/wire/detach_keys.h"

/* The action, the app, and each flag of the entrypoint as often as people may name it. */
#define ATTACH_ARGS_MAX 16

/* Endpoints of --mode, and the flags of the entrypoint that each is. */
static const struct {
	const char *name;
	const char *flags[2];
} endpoints[] = {
	{ "stdin", { "--stdin=true" } },   { "stdout", { "--stdout=true" } },
	{ "stderr", { "--stderr=true" } }, { "tty", { "--tty-in=true", "--tty-out=true" } },
	{ "tty-in", { "--tty-in=true" } }, { "tty-out", { "--tty-out=true" } },
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

static int add_endpoint(const char *name, size_t len, struct strv *args, bool *ret_tty,
			struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(endpoints); i++) {
		if (strlen(endpoints[i].name) != len || strncmp(endpoints[i].name, name, len) != 0)
			continue;
		*ret_tty = str_starts(endpoints[i].name, "tty");
		int r = strv_add(args, endpoints[i].flags[0]);
		if (r == 0 && endpoints[i].flags[1])
			r = strv_add(args, endpoints[i].flags[1]);
		return r < 0 ? err_sys(e, r, "--mode") : 0;
	}
	return err_set(e, -EINVAL, "unknown endpoint \"%.*s\"", (int)MIN(len, (size_t)80), name);
}

/* A comma-separated list; a terminal does not go with the others. */
static int add_endpoints(const char *mode, struct strv *args, struct err *e)
{
	bool tty = false, other = false;
	int r = strv_add(args, "--action=custom-attach");
	while (r == 0) {
		size_t len = strcspn(mode, ",");
		bool is_tty = false;
		r = add_endpoint(mode, len, args, &is_tty, e);
		tty = tty || is_tty;
		other = other || !is_tty;
		if (mode[len] == '\0')
			break;
		mode += len + 1;
	}
	if (r == 0 && tty && other)
		r = err_set(e, -EINVAL, "--mode: a terminal and streams exclude each other");
	return r;
}

static int add_mode(const char *mode, struct strv *args, struct err *e)
{
	if (!mode || !*mode || strcmp(mode, "auto") == 0)
		return strv_add(args, "--action=auto-attach");
	if (strcmp(mode, "list") == 0)
		return strv_add(args, "--action=list");
	return add_endpoints(mode, args, e);
}

static int add_options(struct strv *args, const char *app, const struct attach_opts *o)
{
	int r = strv_addf(args, "--app=%s", app);
	if (r == 0 && o->keep_stdin)
		r = strv_add(args, "--keep-stdin=true");
	if (r == 0 && o->detach_keys)
		r = strv_addf(args, "--detach-keys=%s", o->detach_keys);
	return r;
}

/* Becomes the attach entrypoint of stage1. Returns only on failure. */
static int run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct attach_opts *o = opts;
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	cleanup_strv struct strv args;
	cleanup_free struct stage1 *stage1 = calloc(1, sizeof(*stage1));
	const char *app = NULL;
	strv_init(&args, ATTACH_ARGS_MAX);
	if (!stage1)
		return err_sys(e, -ENOMEM, "stage1");
	int r = add_mode(o->mode, &args, e);
	if (r == 0)
		r = cli_open_pod(c, false, operands->v[0], &ps, &p, e);
	if (r < 0)
		return r;
	if (pod_state_of(p.phase, p.locked) != POD_STATE_RUNNING)
		return err_set(e, -EINVAL, "pod \"%s\" isn't currently running", p.uuid.text);
	r = cli_pod_stage1(c, &p, stage1, e);
	if (r == 0 && stage1->abi == STAGE1_ABI_HUSK) /* others do not tell */
		r = pod_wait_ready(ps, &p, INT64_MAX, e);
	if (r == 0 && pod_info_read(ps, &p, &info) != 0)
		r = err_set(e, -ENOENT, "pod \"%s\" isn't currently running", p.uuid.text);
	if (r == 0 && !(app = cli_find_app(c, &info, o->app, e)))
		r = e->code;
	if (r == 0 && (r = add_options(&args, app, o)) < 0)
		err_sys(e, r, "arguments of stage1");
	return r < 0 ? r : stage1_exec_attach(stage1, p.fd, &args, e);
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
