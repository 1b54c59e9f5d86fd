/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entrypoints app/add, app/start, app/stop, app/rm, app/update, app/signal, app/pause and
 * app/resume of a stage1 (docs/protocol-stage1.md): each is this program, built with its verb. They
 * ask the supervisor of the pod in the working directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1/apps/app_request.h"
#include "stage1/backend.h"
#include "stage1/pod/podfiles.h"
#include "stage1/volumes/hot_volumes.h"

#define GRACE_DEFAULT_S 10

/* True if @arg is @flag with a number, at most @max. */
static bool take_number(const char *arg, const char *flag, uint64_t max, uint64_t *ret)
{
	return str_starts(arg, flag) && num_parse_u64(arg + strlen(flag), max, ret) == 0;
}

/* [--debug=BOOL] [--uuid=UUID] [--grace=SECONDS] [--signal=N] [--all=true] --app=NAME */
static int app_parse(int argc, char **argv, struct app_request *q)
{
	uint64_t grace = GRACE_DEFAULT_S, number = 0;
	const char *app = NULL;
	for (int i = 1; i < argc; i++) {
		if (str_starts(argv[i], "--app="))
			app = argv[i] + strlen("--app=");
		else if (strcmp(argv[i], "--all=true") == 0 && q->verb == APP_VERB_SIGNAL)
			q->all = true;
		else if (!take_number(argv[i], "--grace=", AGENT_GRACE_MS_MAX / 1000, &grace) &&
			 !take_number(argv[i], "--signal=", AGENT_SIGNAL_MAX, &number) &&
			 !str_starts(argv[i], "--debug=") && !str_starts(argv[i], "--uuid="))
			return -EINVAL;
	}
	if (!app || !agent_name_is_valid(app) || (q->verb == APP_VERB_SIGNAL) != (number > 0))
		return -EINVAL;
	q->signal = (int64_t)number;
	q->grace_ms = (int64_t)grace * 1000;
	return str_copy(q->app, sizeof(q->app), app);
}

/* The app of the pod manifest, or NULL: one that it does not have brings nothing. */
static int find_app(const char *name, struct pod_manifest *m, const struct pod_app **ret,
		    struct err *e)
{
	int r = podfiles_read_manifest(AT_FDCWD, m, e);
	*ret = r == 0 ? pod_manifest_find(m, name) : NULL;
	return r;
}

/*
 * When the agent removes the app, it lets go of what the host has taken away by then: so that is
 * done before, when the app has ended.
 */
static int take_away(const struct app_request *q, const struct pod_app *app, struct err *e)
{
	struct app_request stop = *q;
	struct err ignored = ERR_INIT;
	if (!volumes_have(&app->volumes, VOLUME_HOST))
		return 0;
	stop.verb = APP_VERB_STOP;
	app_request_call(&stop, &ignored); /* whatever keeps it from ending is said of rm, too */
	return hot_volumes_detach(&flavor_volume_keeper, app, e);
}

/* What a failure leaves is removed when stage0 asks for the removal of the app, which it does. */
static int change_volumes(const struct app_request *q, struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	const struct pod_app *app;
	pod_manifest_init(&m);
	int r = find_app(q->app, &m, &app, e);
	if (r < 0 || !app)
		return r;
	if (q->verb == APP_VERB_RM)
		return take_away(q, app, e);
	r = hot_volumes_attach(&flavor_volume_keeper, app, e);
	return r == -ESRCH ? -ENOTCONN : r; /* that is another answer than of an app */
}

static int app_do(const struct app_request *q, struct err *e)
{
	bool both = q->verb == APP_VERB_ADD || q->verb == APP_VERB_RM;
	int r = both ? change_volumes(q, e) : 0;
	return r == 0 ? app_request_call(q, e) : r;
}

int main(int argc, char **argv)
{
	struct app_request q = { .verb = APP_VERB };
	struct err e = ERR_INIT;
	if (fd_fill_stdio() < 0)
		return EXIT_HUSK_FAILURE;
	if (app_parse(argc, argv, &q) < 0) {
		fprintf(stderr,
			"stage1: %s: usage: [--debug=BOOL] [--uuid=UUID] [--grace=SECONDS] "
			"[--signal=N] [--all=true] --app=NAME\n",
			app_verb_name(q.verb));
		return EXIT_HUSK_FAILURE;
	}
	int r = app_do(&q, &e);
	if (r == 0)
		return 0;
	fprintf(stderr, "stage1: %s: %s\n", app_verb_name(q.verb), e.text);
	return r == -ESRCH ? EXIT_APP_NOT_RUNNING : EXIT_HUSK_FAILURE;
}
