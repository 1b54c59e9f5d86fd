/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line and the configuration say together: which files count. */
#ifndef HOST_CLI_SETTINGS_H
#define HOST_CLI_SETTINGS_H

#include "host/cli/cli.h"
#include "host/config/config.h"
#include "images/images.h"

#define CLI_CONFIG_DIRS 3 /* system, local, user */

/* The configuration directories of @c, later ones win; "" for none. Borrowed. */
void cli_config_dirs(const struct cli *c, const char *ret[CLI_CONFIG_DIRS]);

/*
 * The configuration with at least the parts @parts (CONFIG_ constants), from the directories of
 * --system-config, --local-config and --user-config. Each part is read once per process. Borrowed
 * from @c. 0, or -errno and @e. Warnings go to stderr.
 */
int cli_config(const struct cli *c, unsigned parts, const struct config **ret, struct err *e);

/*
 * Where trusted keys are: the directories of --system-config and --local-config. One that is
 * missing has no keys, also one that a flag names: husk trust makes it. Borrowed from @c.
 */
struct trust_dirs cli_trust_dirs(const struct cli *c);

#endif
