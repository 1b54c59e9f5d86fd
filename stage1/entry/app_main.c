/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entrypoints app/add, app/start, app/stop, app/rm and app/update of a stage1
 * (docs/protocol-stage1.md): each is this program, built with its verb. They ask the supervisor of
 * the pod in the working directory.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1/apps/app_request.h"

#define GRACE_DEFAULT_S 10

/* [--debug=BOOL] [--uuid=UUID] [--grace=SECONDS] --app=NAME */
static int app_parse(int argc, char **argv, struct app_request *q)
{
	uint64_t grace = GRACE_DEFAULT_S;
	const char *app = NULL;
	for (int i = 1; i < argc; i++) {
		if (str_starts(argv[i], "--app="))
			app = argv[i] + strlen("--app=");
		else if (str_starts(argv[i], "--grace=") &&
			 num_parse_u64(argv[i] + strlen("--grace="), AGENT_GRACE_MS_MAX / 1000,
				       &grace) == 0)
			continue;
		else if (!str_starts(argv[i], "--debug=") && !str_starts(argv[i], "--uuid="))
			return -EINVAL;
	}
	if (!app || !agent_name_is_valid(app))
		return -EINVAL;
	q->grace_ms = (int64_t)grace * 1000;
	return str_copy(q->app, sizeof(q->app), app);
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
			"--app=NAME\n",
			app_verb_name(q.verb));
		return EXIT_HUSK_FAILURE;
	}
	int r = app_request_call(&q, &e);
	if (r == 0)
		return 0;
	fprintf(stderr, "stage1: %s: %s\n", app_verb_name(q.verb), e.text);
	return r == -ESRCH ? EXIT_APP_NOT_RUNNING : EXIT_HUSK_FAILURE;
}
