/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/cli/help.h"
#include "host/cli/pods.h"
#include "host/cli/settings.h"
#include "host/store/datadir.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/wire/stage1.h"

#define DATA_DIR_ROOT "/var/lib/husk"
#define DATA_DIR_MODE 0755 /* what is private is private below it */

bool cli_parse(struct cli *c, void *opts, char *const *args, struct strv *operands, int *ret_exit)
{
	const struct flag_set sets[] = {
		command_flags(c->cmd, opts),
		cli_global_flags(c),
	};
	struct err e = ERR_INIT;
	cli_parse_fn parse = c->cmd->parse ? c->cmd->parse : flags_parse;
	int r = parse(sets, ARRAY_SIZE(sets), args, operands, &e);
	*ret_exit = 0;
	if (c->help)
		help_print_command(c, c->cmd);
	else if (r == FLAG_BAD)
		*ret_exit = cli_usage_error(c, &e);
	else if (r < 0)
		*ret_exit = cli_fail(c, &e);
	return r == 0 && !c->help;
}

/* What --uuid-file says, if the command has it. */
static const char *uuid_file(const struct command *cmd, void *opts)
{
	const struct flag_set set = command_flags(cmd, opts);
	const struct flag *f = flag_find(&set, 1, "uuid-file", strlen("uuid-file"), NULL);
	return f ? *(const char **)(void *)((char *)opts + f->offset) : NULL;
}

/* What comes of the arguments @args, with @opts and @operands to put them into. */
static int run(struct cli *c, void *opts, char *const *args, struct strv *operands)
{
	const struct command *cmd = c->cmd;
	struct err e = ERR_INIT;
	int status, r = 0;
	if (!cli_parse(c, opts, args, operands, &status))
		return status;
	if (cmd->subs) { /* and none was named */
		help_print_command(c, cmd);
		return 0;
	}
	if (cmd->uuids > 0)
		r = cli_take_uuids(c, uuid_file(cmd, opts), cmd->uuids, operands, &e);
	if (r == 0)
		r = cmd->run(c, opts, operands, &e);
	if (r == CLI_MISUSE)
		return cli_usage_error(c, &e);
	return r < 0 ? cli_fail(c, &e) : r;
}

int cli_run(struct cli *c, char *const *args)
{
	const struct command *cmd = c->cmd;
	cleanup_free void *opts = calloc(1, MAX(cmd->opts_size, (size_t)1));
	cleanup_strv struct strv operands;
	strv_init(&operands, CLI_ARGS_MAX);
	if (!opts) {
		cli_message(c, "out of memory");
		return EXIT_HUSK_FAILURE;
	}
	if (cmd->defaults)
		memcpy(opts, cmd->defaults, cmd->opts_size);
	if (cmd->init)
		cmd->init(opts);
	int status = run(c, opts, args, &operands);
	if (cmd->deinit)
		cmd->deinit(opts);
	return status == EXIT_HUSK_FAILURE && cmd->failure ? cmd->failure : status;
}

/* Takes the global flags out of @args, up to "--"; what is wrong with them is said later. */
static void peek_global_flags(struct cli *c, char *const *args)
{
	const struct flag_set global = cli_global_flags(c);
	struct err ignored = ERR_INIT;
	for (size_t at = 0; args[at] && strcmp(args[at], "--") != 0;) {
		size_t before = at;
		if (flag_is_flag(args[at]))
			flag_parse_one(&global, 1, args, &at, &ignored);
		if (at == before)
			at++;
	}
}

bool cli_may_act(const struct cli *c, char *const *args)
{
	char dir[PATH_MAX];
	struct cli peek = *c;
	struct err e = ERR_INIT;
	struct stat st;
	if (!c->cmd->needs_owner || geteuid() == 0)
		return true;
	peek_global_flags(&peek, args);
	if (peek.help || cli_data_dir(&peek, dir, &e) < 0 || stat(dir, &st) < 0 || st.st_uid != 0)
		return true;
	err_set(&e, -EPERM,
		"cannot run as unprivileged user: data directory \"%s\" is root's (--dir=DIR names "
		"one of your own)",
		dir);
	cli_fail(c, &e);
	return false;
}

int cli_usage_error(const struct cli *c, const struct err *e)
{
	fprintf(stderr, "Error: %s; see husk help %s\n", e->text, command_path(c->cmd));
	return EXIT_HUSK_FAILURE;
}

int cli_fail(const struct cli *c, const struct err *e)
{
	fprintf(stderr, "%s: %s\n", c->cmd->name, e->text);
	return EXIT_HUSK_FAILURE;
}

void cli_print(const struct buf *text)
{
	if (buf_len(text) > 0)
		fwrite(buf_data(text), 1, buf_len(text), stdout);
}

void cli_message(const struct cli *c, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	struct err e = ERR_INIT; /* makes the text printable */
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(&e, -EINVAL, "%s", text);
	cli_fail(c, &e);
}

/* Joins @dir and @name in @out; -ENAMETOOLONG. */
static int cli_join(char out[PATH_MAX], const char *dir, const char *name)
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
		return cli_join(out, xdg, "husk");
	const char *home = getenv("HOME");
	if (home && home[0] == '/')
		return cli_join(out, home, ".local/share/husk");
	return err_set(e, -ENOENT, "no data directory: HOME is not set (use --dir=DIR)");
}

/* Makes the existing or future path @dir absolute. */
static int absolute_dir(const char *dir, char out[PATH_MAX])
{
	char cwd[PATH_MAX];
	if (realpath(dir, out))
		return 0;
	if (errno != ENOENT)
		return -errno;
	if (dir[0] == '/')
		return str_copy(out, PATH_MAX, dir);
	return getcwd(cwd, sizeof(cwd)) ? cli_join(out, cwd, dir) : -errno;
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
	int r = absolute_dir(dir, out);
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
