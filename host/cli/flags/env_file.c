/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/flags/env_file.h"

#include <errno.h>
#include <string.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

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

/* The next line of *@rest, without blanks ahead and without the CR of a line end of Windows. */
static const char *take_line(char **rest)
{
	char *line = strsep(rest, "\n");
	size_t len = strlen(line);
	if (len > 0 && line[len - 1] == '\r')
		line[len - 1] = '\0';
	return line + strspn(line, " \t");
}

int env_file_parse(char *text, size_t len, struct strv *env, struct err *e)
{
	if (memchr(text, '\0', len))
		return err_set(e, -EINVAL, "it is not a text file");
	/* Editors of Windows mark UTF-8 so. */
	char *save = str_starts(text, BYTE_ORDER_MARK) ? text + strlen(BYTE_ORDER_MARK) : text;
	for (size_t number = 1; save; number++) {
		const char *line = take_line(&save);
		if (!*line || *line == '#' || *line == ';')
			continue;
		int r = add_line(line, number, env, e);
		if (r < 0)
			return r;
	}
	return 0;
}
