/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line and the configuration say together: which files count, which stage1. */
#ifndef HOST_CLI_SETTINGS_H
#define HOST_CLI_SETTINGS_H

#include <limits.h>

#include "host/cli/cli.h"
#include "host/config/config.h"
#include "host/launch/stage1.h"
#include "host/pod/pod.h"
#include "host/trust/keystore.h"

/*
 * The configuration with at least the parts @parts (CONFIG_ constants), from the directories of
 * --system-config, --local-config and --user-config. Each part is read once per process. Borrowed
 * from @c. 0, or -errno and @e. Warnings go to stderr.
 */
int cli_config(const struct cli *c, unsigned parts, const struct config **ret, struct err *e);

/*
 * The keystore below the directories of --system-config and --local-config; the caller frees it. A
 * directory that is missing has no keys, also one that a flag names: husk trust makes it. Errors as
 * keystore_open().
 */
int cli_open_keystore(const struct cli *c, struct keystore **ret, struct err *e);

/*
 * Opens the stage1 that the pod was made with, if nobody but root and us can change it, or if
 * flags, configuration or installation name it anyway; of a pod that does not say, what
 * stage1_choose() finds without fetching. In place of one that is gone or not trusted --stage1 is
 * taken if it is given. 0, or -errno and @e.
 */
int cli_pod_stage1(struct cli *c, const struct pod *p, struct stage1 *ret, struct err *e);

#endif
