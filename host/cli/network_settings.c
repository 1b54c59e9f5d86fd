/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/network_settings.h"

#include "host/cli/data_dir.h"
#include "host/cli/settings.h"

#define NETWORKS_DIR "net.d"

int cli_network_settings(const struct cli *c, struct network_wishes *w, struct err *e)
{
	const struct config *config = NULL;
	const char *dirs[CLI_CONFIG_DIRS];
	char path[PATH_MAX];
	cli_config_dirs(c, dirs);
	int r = cli_config(c, CONFIG_PATHS, &config, e);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < CLI_CONFIG_DIRS; i++) {
		if (!*dirs[i])
			continue;
		r = cli_absolute_dir(dirs[i], path); /* stage1 runs elsewhere */
		if (r == 0)
			r = strv_addf(&w->config_dirs, "%s/" NETWORKS_DIR, path);
	}
	if (r == 0)
		r = strv_extend(&w->plugin_dirs, &config->cni_plugins);
	return r < 0 ? err_sys(e, r, "directories of networks") : 0;
}
