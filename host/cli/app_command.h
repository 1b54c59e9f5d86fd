/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands about one app of a pod share: UUID --app=NAME, and the opened pod. */
#ifndef HOST_CLI_APP_COMMAND_H
#define HOST_CLI_APP_COMMAND_H

#include "host/cli/cli.h"
#include "host/cli/format/show.h"
#include "host/cli/pods.h"
#include "host/launch/stage1.h"
#include "host/pod/app.h"

struct app_opts {
	const char *app;
	const char *uuid_file;
	enum show_format format;
	int64_t grace_s;
	bool no_legend;
};

/* The usual ones. */
extern const struct app_opts app_defaults;

#define APP_FLAG_APP       FLAG_STRING("app", "NAME", struct app_opts, app, "the app")
#define APP_FLAG_UUID_FILE FLAG_UUID_FILE(struct app_opts)
#define APP_FLAG_GRACE \
	FLAG_OWN("grace", "SECONDS", app_set_grace, "from SIGTERM to SIGKILL (default 10)")

/* Setter of APP_FLAG_GRACE. */
int app_set_grace(void *opts, const struct flag *f, const char *value, struct err *e);

struct app_command {
	struct pods *pods;
	struct pod pod;
	struct stage1 *stage1;    /* owned */
	struct app_target target; /* all three of them */
};

/* Closes what is open. */
void app_command_deinit(struct app_command *a);

/*
 * Opens the pod that @operands or o->uuid_file name, and for a command that @acts on it, stage1;
 * checks that o->app is there, @missing being the error without it, unless that is NULL. Returns as
 * cli_take_uuids(). @a is the caller's to deinit in any case.
 */
int app_command_open(struct cli *c, const struct app_opts *o, struct strv *operands,
		     const char *missing, bool acts, struct app_command *a, struct err *e);

/* Reads all about @p; what cannot be read is an error. 0, or -errno and @e. */
int app_read_info(struct pods *ps, struct pod *p, struct pod_info *ret, struct err *e);

#endif
