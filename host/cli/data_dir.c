/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/data_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/cli/settings.h"
#include "lib/data/datadir.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"

#define DATA_DIR_ROOT "/var/lib/husk"
#define DATA_DIR_MODE 0755 /* what is private is private below it */

/* Joins @dir and @name in @out; -ENAMETOOLONG. */
static int data_dir_join(char out[PATH_MAX], const char *dir, const char *name)
{
	int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);
	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int default_data_dir(char out[PATH_MAX], struct err *e)
{
	if (geteuid() == 0)
		return str_copy(out, PATH_MAX, DATA_DIR_ROOT);
	const char *xdg = getenv("XDG_DATA_HOME");
	if (xdg && xdg[0] == '/') /* the XDG specification ignores relative ones */
		return data_dir_join(out, xdg, "husk");
	const char *home = getenv("HOME");
	if (home && home[0] == '/')
		return data_dir_join(out, home, ".local/share/husk");
	return err_set(e, -ENOENT, "no data directory: HOME is not set (use --dir=DIR)");
}

int cli_absolute_dir(const char *dir, char out[PATH_MAX])
{
	char cwd[PATH_MAX];
	if (realpath(dir, out))
		return 0;
	if (errno != ENOENT)
		return -errno;
	if (dir[0] == '/')
		return str_copy(out, PATH_MAX, dir);
	return getcwd(cwd, sizeof(cwd)) ? data_dir_join(out, cwd, dir) : -errno;
}

/* What the configuration says, else the default. */
static int configured_data_dir(const struct cli *c, char out[PATH_MAX], struct err *e)
{
	const struct config *config = NULL;
	int r = cli_config(c, CONFIG_PATHS, &config, e);
	if (r < 0)
		return r;
	return config->data ? str_copy(out, PATH_MAX, config->data) : default_data_dir(out, e);
}

int cli_data_dir(const struct cli *c, char out[PATH_MAX], struct err *e)
{
	char dir[PATH_MAX];
	if (c->dir && !*c->dir)
		return err_set(e, -EINVAL, "--dir: the data directory cannot be empty");
	if (c->dir && str_copy(dir, sizeof(dir), c->dir) < 0)
		return err_sys(e, -ENAMETOOLONG, "--dir");
	if (!c->dir) {
		int r = configured_data_dir(c, dir, e);
		if (r < 0)
			return r;
	}
	int r = cli_absolute_dir(dir, out);
	return r < 0 ? err_sys(e, r, "data directory \"%s\"", dir) : 0;
}

int cli_open_data_dir(const struct cli *c, bool create, struct err *e)
{
	char dir[PATH_MAX];
	int r = cli_data_dir(c, dir, e);
	if (r < 0)
		return r;
	cleanup_fd int fd = create ? path_make_dirs(dir, DATA_DIR_MODE)
				   : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && !create)
		fd = -errno;
	if (fd == -ENOENT && !create)
		return fd;
	if (fd < 0)
		return err_sys(e, fd, "cannot open data directory \"%s\"", dir);
	r = datadir_check(fd, dir, e);
	return r < 0 ? r : TAKE_FD(fd);
}
