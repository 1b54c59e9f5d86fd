/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/program.h"

#include <errno.h>
#include <string.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const struct {
	const char *name, *value;
} env_defaults[] = {
	{ "PATH", DEFAULT_PATH }, { "SHELL", "/bin/sh" }, { "USER", "root" },
	{ "LOGNAME", "root" },    { "HOME", "/root" },
};

static int add_default(struct strv *env, const char *name, const char *value)
{
	return strv_env_get(env, name) ? 0 : strv_addf(env, "%s=%s", name, value);
}

int program_environment(const struct strv *given, const char *app, bool with_tty, struct strv *ret)
{
	int r = strv_extend(ret, given);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(env_defaults); i++)
		r = add_default(ret, env_defaults[i].name, env_defaults[i].value);
	if (r == 0 && with_tty)
		r = add_default(ret, "TERM", "xterm");
	return r < 0 ? r : strv_env_set(ret, "AC_APP_NAME", app);
}

/* Adds DIR/NAME; an empty directory in PATH is the working directory. */
static int add_candidate(struct strv *ret, const char *dir, size_t dir_len, const char *name)
{
	if (dir_len + 1 + strlen(name) > AGENT_PATH_MAX)
		return -ENAMETOOLONG;
	if (dir_len == 0)
		return strv_addf(ret, "./%s", name);
	return strv_addf(ret, "%.*s/%s", (int)dir_len, dir, name);
}

static int search_path(const char *path, const char *name, struct strv *ret)
{
	while (ret->n < ret->max) {
		size_t len = strcspn(path, ":");
		int r = add_candidate(ret, path, len, name);
		if (r < 0 && r != -ENAMETOOLONG)
			return r;
		if (path[len] == '\0')
			break;
		path += len + 1;
	}
	return ret->n > 0 ? 0 : -ENAMETOOLONG;
}

int program_candidates(const char *name, const struct strv *given, const char *cwd,
		       struct strv *ret)
{
	if (strlen(name) > AGENT_PATH_MAX)
		return -ENAMETOOLONG;
	if (strchr(name, '/'))
		return strv_add(ret, name);
	const char *path = strv_env_get(given, "PATH");
	if (path)
		return search_path(path, name, ret);
	int r = search_path(DEFAULT_PATH, name, ret);
	if (r == 0)
		r = add_candidate(ret, cwd, strlen(cwd), name);
	return r == -ENAMETOOLONG && ret->n > 0 ? 0 : r;
}
