/* SPDX-License-Identifier: Apache-2.0 */
/* Where networks and their plugins are looked for. */
#ifndef HOST_CLI_NETWORK_SETTINGS_H
#define HOST_CLI_NETWORK_SETTINGS_H

#include "host/cli/cli.h"
#include "host/launch/network.h"

/*
 * Adds to @w the directory of networks of each configuration directory, which need not be there,
 * and the configured directories of plugins. 0, or -errno and @e.
 */
int cli_network_settings(const struct cli *c, struct network_wishes *w, struct err *e);

#endif
