/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/program.h"

#include <errno.h>
#include <string.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static int add_default(struct strv *env, const char *name, const char *value)
{
	return strv_env_get(env, name) ? 0 : strv_addf(env, "%s=%s", name, value);
}

/* Whom passwd does not know has no name, unless he is root, and lives in the root directory. */
static int add_user(const struct ids *ids, struct strv *ret)
{
	bool is_root = ids->uid == 0;
	const char *name = ids->name[0] ? ids->name : is_root ? "root" : NULL;
	const char *home = ids->home[0] ? ids->home : is_root ? "/root" : "/";
	const char *given = strv_env_get(ret, "HOME");
	int r = given && given[0] ? 0 : strv_env_set(ret, "HOME", home);
	if (r == 0 && name)
		r = add_default(ret, "USER", name);
	return r == 0 && name ? add_default(ret, "LOGNAME", name) : r;
}

int program_environment(const struct strv *given, const char *app, const struct ids *ids,
			bool with_tty, struct strv *ret)
{
	int r = strv_extend(ret, given);
	if (r == 0)
		r = add_default(ret, "PATH", DEFAULT_PATH);
	if (r == 0)
		r = add_default(ret, "SHELL", "/bin/sh");
	if (r == 0)
		r = add_user(ids, ret);
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
