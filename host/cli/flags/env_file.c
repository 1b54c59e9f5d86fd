/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/flags/env_file.h"

#include <errno.h>
#include <string.h>

static int add_line(const char *line, size_t number, struct strv *env, struct err *e)
{
	size_t len = strcspn(line, "=");
	if (len == 0 || line[len] != '=')
		return err_set(e, -EINVAL, "line %zu: \"%.80s\" is not of the form NAME=VALUE",
			       number, line);
	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], line, len + 1) == 0)
			return err_set(e, -EINVAL, "line %zu: variable \"%.*s\" is already set",
				       number, (int)MIN(len, (size_t)80), line);
	int r = strv_add(env, line);
	return r < 0 ? err_sys(e, r, "line %zu: at most %zu variables", number, env->max) : 0;
}

int env_file_parse(char *text, size_t len, struct strv *env, struct err *e)
{
	if (memchr(text, '\0', len))
		return err_set(e, -EINVAL, "it is not a text file");
	char *save = text;
	for (size_t number = 1; save; number++) {
		char *line = strsep(&save, "\n");
		const char *first = line + strspn(line, " \t\r");
		if (!*first || *first == '#' || *first == ';')
			continue;
		int r = add_line(line, number, env, e);
		if (r < 0)
			return r;
	}
	return 0;
}
