/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/flags/habits.h"

#include <ctype.h>
#include <string.h>

#include "host/cli/flags/flag.h"
#include "lib/base/macros.h"

#define CHARS_PER_EDIT 3

/*
 * Edits between @a and @b, of at most HABIT_WORD_MAX characters each: the rows of the usual table.
 */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][HABIT_WORD_MAX + 1], m = strlen(b), n = strlen(a);
	for (size_t j = 0; j <= m; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			int x = tolower((unsigned char)a[i - 1]);
			int y = tolower((unsigned char)b[j - 1]);
			row[j] = MIN(MIN(row[j - 1], above[j]) + 1, above[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
			    y == tolower((unsigned char)a[i - 2]))
				row[j] = MIN(row[j], above2[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

bool habit_is_near(const char *word, const char *name)
{
	size_t longest = MAX(strlen(word), strlen(name));
	if (!*word || longest > HABIT_WORD_MAX)
		return false;
	return edit_distance(word, name) <= longest / CHARS_PER_EDIT;
}

/* @flag is what the command must have for the row to count; NULL: none. The first row counts. */
static const struct {
	const char *habit, *flag, *use;
} flag_habits[] = {
	{ "-it", "interactive", "use --interactive" },
	{ "-ti", "interactive", "use --interactive" },
	{ "-i", "interactive", "use --interactive" },
	{ "-t", "interactive", "use --interactive" },
	{ "-it", "tty", "use --tty" },
	{ "-ti", "tty", "use --tty" },
	{ "-i", "tty", "standard input is connected always" },
	{ "-t", "tty", "use --tty" },
	{ "-d", "detach", "use --detach" },
	{ "-e", "environment", "use --environment=NAME=VALUE behind the image" },
	{ "-e", "env", "use --env=NAME=VALUE" },
	{ "--env", "environment", "use --environment=NAME=VALUE behind the image" },
	{ "--env-file", "set-env-file", "use --set-env-file=FILE" },
	{ "--entrypoint", "exec", "use --exec=PROGRAM behind the image" },
	{ "-w", "working-dir", "use --working-dir=DIR behind the image" },
	{ "--workdir", "working-dir", "use --working-dir=DIR behind the image" },
	{ "-w", "workdir", "use --workdir=DIR" },
	{ "-u", "user", "use --user=USER" },
	{ "-m", "memory", "use --memory=SIZE" },
	{ "-c", "cpu-shares", "use --cpu-shares=N behind the image" },
	{ "-l", "user-label", "use --user-label=NAME=VALUE" },
	{ "--label", "user-label", "use --user-label=NAME=VALUE" },
	{ "--read-only", "readonly-rootfs", "use --readonly-rootfs behind the image" },
	{ "--cap-drop", "caps-remove", "use --caps-remove=NAMES behind the image" },
	{ "--pull", "pull-policy", "use --pull-policy=update" },
	{ "--cidfile", "uuid-file-save", "use --uuid-file-save=FILE" },
	{ "--network", "net", "use --net=NAME" },
	{ "-v", "volume",
	  "use --volume=NAME,kind=host,source=PATH and --mount=volume=NAME,target=PATH" },
	{ "-v", "mnt-volume", "use --mnt-volume=name=NAME,kind=host,source=PATH,target=PATH" },
	{ "--volume", "mnt-volume", "use --mnt-volume=name=NAME,kind=KIND,target=PATH" },
	{ "--tmpfs", "volume", "use --volume=NAME,kind=empty,medium=memory and --mount" },
	{ "-p", "port", "use --port=PODPORT/tcp:HOSTPORT, the pod's port first" },
	{ "--publish", "port", "use --port=PODPORT/tcp:HOSTPORT, the pod's port first" },
	{ "--rm", "uuid-file-save", "an ended pod stays until husk rm or husk gc" },
	{ "--restart", "detach", "nothing restarts a pod but its service manager" },
	{ "--privileged", "detach", "use --insecure-options=all-run" },
	{ "-f", "follow", "use --follow" },
	{ "-n", "tail", "use --tail=LINES" },
	{ "-t", "timestamps", "use --timestamps" },
	{ "-f", "force", "use --force" },
	{ "-a", "running", "pods that have ended are listed, too" },
	{ "--all", "running", "pods that have ended are listed, too" },
	{ "--no-trunc", "full", "use --full" },
	{ "-o", "overwrite", "the file is the last argument" },
	{ "-v", NULL, "use husk version, or --debug for more messages" },
	{ "-V", NULL, "use husk version" },
};

const char *habit_flag(const struct flag_set *sets, size_t n_sets, const char *arg,
		       const char **ret_near)
{
	size_t len = strcspn(arg, "=");
	*ret_near = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(flag_habits); i++) {
		const char *flag = flag_habits[i].flag;
		if (strlen(flag_habits[i].habit) == len &&
		    strncmp(flag_habits[i].habit, arg, len) == 0 &&
		    (!flag || flag_find(sets, n_sets, flag, strlen(flag), NULL)))
			return flag_habits[i].use;
	}
	char word[HABIT_WORD_MAX + 1] = "";
	if (len < 4 || len - 2 > HABIT_WORD_MAX || arg[1] != '-') /* "--" and two letters */
		return NULL;
	memcpy(word, arg + 2, len - 2);
	for (size_t s = 0; s < n_sets; s++)
		for (const struct flag *f = NULL; !*ret_near && (f = flag_next(&sets[s], f));)
			if (f->help && habit_is_near(word, f->name))
				*ret_near = f->name;
	return NULL;
}

static const struct {
	const char *habit, *use;
} command_habits[] = {
	{ "ps", "husk list" },
	{ "ls", "husk list" },
	{ "container", "husk list" },
	{ "containers", "husk list" },
	{ "pods", "husk list" },
	{ "images", "husk image list" },
	{ "rmi", "husk image rm" },
	{ "pull", "husk fetch" },
	{ "load", "husk fetch" },
	{ "import", "husk fetch" },
	{ "save", "husk image export" },
	{ "commit", "husk export" },
	{ "create", "husk prepare" },
	{ "start", "husk run-prepared" },
	{ "kill", "husk stop --force" },
	{ "exec", "husk enter" },
	{ "inspect", "husk status --format=json-pretty" },
	{ "wait", "husk status --wait" },
	{ "info", "husk doctor" },
	{ "prune", "husk gc" },
	{ "system", "husk doctor or husk gc" },
};

const char *habit_command(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(command_habits); i++)
		if (strcmp(command_habits[i].habit, word) == 0)
			return command_habits[i].use;
	return NULL;
}
