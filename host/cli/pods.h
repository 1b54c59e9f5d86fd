/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands about existing pods share: from words on the command line to open pods. */
#ifndef HOST_CLI_PODS_H
#define HOST_CLI_PODS_H

#include "host/cli/cli.h"
#include "host/pod/info.h"
#include "host/pod/pod.h"

/* Said when one of a pod's apps was asked for, without its name, and the pod has none. */
#define CLI_NO_APPS "the pod has no apps (add one with husk app add)"

/*
 * Opens the pods of the data directory; with @for_writing, the phase directories that an existing
 * data directory lacks are made. 0, -ENOENT if there is no data directory (@e not filled), -errno
 * and @e.
 */
int cli_open_pods(const struct cli *c, bool for_writing, struct pods **ret, struct err *e);

/*
 * Opens the pod that @prefix names. *ret_ps is owned by the caller. 0, or -errno and @e, in the
 * words of pods_resolve().
 */
int cli_open_pod(const struct cli *c, bool for_writing, const char *prefix, struct pods **ret_ps,
		 struct pod *ret, struct err *e);

/* --uuid-file of a struct opts with this member. */
#define FLAG_UUID_FILE(type)                              \
	FLAG_STRING("uuid-file", "FILE", type, uuid_file, \
		    "take the UUID from this file (see run --uuid-file-save)")

/*
 * The UUIDs of a command of the form UUID... | --uuid-file=FILE: @operands, at most @max, or else
 * the one in @file (NULL if the flag is absent), which is then added to @operands. 0; an exit
 * status if the file cannot be read, which was said; CLI_MISUSE or -errno and @e.
 */
int cli_take_uuids(const struct cli *c, const char *file, size_t max, struct strv *operands,
		   struct err *e);

/*
 * The app of the pod with @info that @name names, or the only one if it is NULL; it lives as long
 * as @info. NULL and @e if there is none such, or a choice.
 */
const char *cli_find_app(const struct cli *c, const struct pod_info *info, const char *name,
			 struct err *e);

#endif
