/* SPDX-License-Identifier: Apache-2.0 */
/* Where all of husk's data is. */
#ifndef HOST_CLI_DATA_DIR_H
#define HOST_CLI_DATA_DIR_H

#include "host/cli/cli.h"

/*
 * The data directory: --dir, else the configured one, else /var/lib/husk for root and
 * $XDG_DATA_HOME/husk or ~/.local/share/husk for others; made absolute with symbolic links
 * resolved. It need not exist. 0 or -errno and @e.
 */
int cli_data_dir(const struct cli *c, char out[PATH_MAX], struct err *e);

/*
 * Makes the path of a directory absolute, one that is there with symbolic links resolved. 0 or
 * -errno.
 */
int cli_absolute_dir(const char *dir, char out[PATH_MAX]);

/*
 * Opens the data directory; with @create it is made if missing, mode 0755. The descriptor,
 * -ENOENT if it is missing (without @create; @e not filled), -EPERM if others can write there or it
 * is another user's (lib/data/datadir.h), -errno and @e.
 */
int cli_open_data_dir(const struct cli *c, bool create, struct err *e);

#endif
