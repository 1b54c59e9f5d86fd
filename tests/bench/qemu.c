/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for QEMU in `tools/bench cost` (husk run --qemu=...): executes the real one with husk's
 * arguments, changed as the file says that lies beside this program, PROGRAM.conf. A line each:
 *
 *   program PATH   the real QEMU
 *   append TEXT    is added to the kernel's command line
 *   TEXT           a word that is added to the arguments
 *
 * The guest's processor runs on QEMU's only thread, as -icount wants it, and its clock has 1 GHz,
 * which is one tick for an instruction, whatever the host's clock has.
 *
 * It is a program, since husk executes it through a descriptor, and it has a file, since husk gives
 * QEMU no environment.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGS_MAX 512
#define TEXT_MAX 8192 /* of a kernel command line */

#define ACCEL_OLD  "tcg,thread=multi"
#define ACCEL_NEW  "tcg,thread=single"
#define TSC_OPTION "tsc_early_khz="
#define TSC_KHZ    "1000000"

static const char *program, *append;
static char *args[ARGS_MAX + 1];
static int n_args;

static void die(const char *what, const char *which)
{
	fprintf(stderr, "bench-qemu: %s: %s\n", what, which);
	exit(1);
}

static void add_arg(char *arg)
{
	if (n_args == ARGS_MAX)
		die("one argument too many", arg);
	args[n_args++] = arg;
}

/* The command line of the guest's kernel, with the clock's frequency and what is to be added. */
static char *edit_append(const char *old)
{
	static char text[TEXT_MAX];
	const char *tsc = strstr(old, TSC_OPTION);
	const char *number = tsc ? tsc + strlen(TSC_OPTION) : old + strlen(old);
	int n = snprintf(text, sizeof(text), "%.*s%s%s%s%s", (int)(number - old), old,
			 tsc ? TSC_KHZ : "", number + strspn(number, "0123456789"),
			 append ? " " : "", append ? append : "");
	if (n < 0 || (size_t)n >= sizeof(text))
		die("too long", old);
	return text;
}

/* Takes husk's arguments. */
static void take_args(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (i > 0 && strcmp(argv[i - 1], "-append") == 0)
			add_arg(edit_append(argv[i]));
		else if (strcmp(argv[i], ACCEL_OLD) == 0)
			add_arg(strdup(ACCEL_NEW));
		else
			add_arg(argv[i]);
	}
}

/* What comes behind @word and a space in @line, or NULL. */
static const char *value_of(const char *line, const char *word)
{
	size_t n = strlen(word);
	return strncmp(line, word, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

/* Reads the configuration. The words that are to be added come in @words, up to a NULL. */
static void read_config(char **words)
{
	char self[PATH_MAX - sizeof(".conf")], path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self));
	if (len < 0)
		die("no path", "/proc/self/exe");
	snprintf(path, sizeof(path), "%.*s.conf", (int)len, self);
	FILE *f = fopen(path, "re");
	if (!f)
		die("cannot open", path);
	char *line = NULL;
	size_t size = 0;
	for (int n = 0; (len = getline(&line, &size, f)) > 0 && n < ARGS_MAX;) {
		line[len - 1] = '\0';
		char *kept = strdup(line);
		const char *value;
		if (!kept)
			die("no memory", line);
		if ((value = value_of(kept, "program")))
			program = value;
		else if ((value = value_of(kept, "append")))
			append = value;
		else
			words[n++] = kept;
	}
	free(line);
	fclose(f);
	if (!program)
		die("names no program", path);
}

int main(int argc, char **argv)
{
	char *words[ARGS_MAX + 1] = { NULL };
	read_config(words);
	take_args(argc, argv);
	for (int i = 0; words[i]; i++)
		add_arg(words[i]);
	execv(program, args);
	perror(program);
	return 1;
}
