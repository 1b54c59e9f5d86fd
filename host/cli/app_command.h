/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands about one app of a pod share: UUID --app=NAME, and the opened pod. */
#ifndef HOST_CLI_APP_COMMAND_H
#define HOST_CLI_APP_COMMAND_H

#include "host/cli/cli.h"
#include "host/cli/pods.h"
#include "host/launch/stage1.h"
#include "host/pod/app.h"

struct app_opts {
	const char *app;
	const char *uuid_file;
	const char *format;
	int64_t grace_s;
	bool no_legend;
};

#define APP_OPTS_INIT ((struct app_opts){ .grace_s = APP_GRACE_DEFAULT_S })

#define APP_FLAG_APP FLAG_STRING("app", "NAME", struct app_opts, app, "the app")
#define APP_FLAG_UUID_FILE                                           \
	FLAG_STRING("uuid-file", "FILE", struct app_opts, uuid_file, \
		    "take the UUID from this file (see run --uuid-file-save)")
#define APP_FLAG_GRACE                                                   \
	{                                                                \
		.name = "grace", .arg = "SECONDS", .set = app_set_grace, \
		.help = "from SIGTERM to SIGKILL (default 10)"           \
	}

/* Setter of APP_FLAG_GRACE. */
int app_set_grace(void *opts, const struct flag *f, const char *value, struct err *e);

struct app_command {
	struct pods *pods;
	struct pod pod;
	struct stage1 stage1;
	struct app_target target; /* all three of them */
};

/* Closes what is open. */
void app_command_deinit(struct app_command *a);

/*
 * Parses @args of the form UUID --app=NAME | --uuid-file=FILE --app=NAME into @o, opens the pod and, for a
 * command that @acts on it, stage1.
 * @missing is the error without --app. True: go on. False: the command is done with *ret_exit. @a is
 * the caller's to deinit in either case.
 */
bool app_command_open(struct cli *c, struct app_opts *o, char *const *args, const char *missing,
		      bool acts, struct app_command *a, int *ret_exit);

#endif
