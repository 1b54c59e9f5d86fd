/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of words that containerd says: a shim's command line, and the options of a mount; here the
 * lines of the input. What is taken has what it must have, and what overlayfs is told are the paths
 * that were said.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "shim/args.h"
#include "shim/pod/mount_options.h"
#include "shim/task/log_uri.h"

#define WORDS_MAX ((size_t)64)
#define LOWER     "lowerdir="

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool property)
{
	if (!property)
		abort();
}

static void check_args(char *const *words)
{
	struct shim_args a;
	struct err e = ERR_INIT;
	int r = shim_args_parse(words, &a, &e);
	check(r == 0 || (r == -EINVAL && e.text[0]));
	if (r == 0 && a.action != SHIM_VERSION)
		check(*a.ns && *a.id && a.address && a.bundle);
}

/* The paths of the last "lowerdir=" of @words are those of @m in its directory. */
static void check_layers(char *const *words, size_t n, const struct mount_words *m)
{
	const char *said = NULL, *made = m->data;
	for (size_t i = 0; i < n; i++)
		if (str_starts(words[i], LOWER))
			said = words[i] + strlen(LOWER);
	if (!said || !m->dir[0])
		return;
	for (const char *next = made; (next = strstr(next, LOWER)); next += strlen(LOWER))
		made = next + strlen(LOWER);
	for (;;) {
		size_t n_said = strcspn(said, ":"), n_made = strcspn(made, ":,");
		size_t n_dir = strlen(m->dir);
		check(n_said == n_dir + n_made);
		check(memcmp(said, m->dir, n_dir) == 0 && memcmp(said + n_dir, made, n_made) == 0);
		if (said[n_said] == '\0')
			break;
		said += n_said + 1;
		made += n_made + 1;
	}
}

static void check_mount(char *const *words, size_t n)
{
	struct mount_words m;
	struct err e = ERR_INIT;
	int r = mount_words_parse(words, n, &m, &e);
	check(r == 0 || (r == -E2BIG && e.text[0]));
	check(memchr(m.dir, '\0', sizeof(m.dir)) != NULL);
	check(r < 0 || strlen(m.data) <= MOUNT_DATA_MAX);
	bool plain = true; /* or words of the test's own are hard to tell from those of a path */
	size_t lists = 0;
	for (size_t i = 0; i < n; i++) {
		lists += str_starts(words[i], LOWER);
		plain &= !strchr(words[i], ',') &&
			 (words[i][0] == '\0' || !strstr(words[i] + 1, LOWER));
	}
	if (r == 0 && plain && lists == 1)
		check_layers(words, n, &m);
}

static void check_log(const char *text)
{
	struct log_uri u;
	struct err e = ERR_INIT;
	int r = log_uri_parse(text, &u, &e);
	check(r == 0 || (r < 0 && e.text[0] && !strchr(e.text, '\n')));
	check(r < 0 || strlen(u.path) < sizeof(u.path));
	check(r < 0 || u.kind == LOG_FIFO || u.path[0] == '/');
	check(u.words.n <= LOG_URI_WORDS_MAX);
	log_uri_deinit(&u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *words[WORDS_MAX + 1] = { NULL };
	char *text = strndup((const char *)data, size);
	size_t n = 0;
	if (!text)
		return 0;
	for (char *rest = text; n < WORDS_MAX && (words[n] = strsep(&rest, "\n"));)
		n++;
	words[n] = NULL;
	check_args(words);
	check_mount(words, n);
	for (size_t i = 0; i < n; i++)
		check_log(words[i]);
	free(text);
	return 0;
}
