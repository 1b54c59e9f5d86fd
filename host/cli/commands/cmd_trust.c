/* SPDX-License-Identifier: Apache-2.0 */
/* husk trust */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/flags/insecure.h"
#include "host/cli/images.h"
#include "host/cli/settings.h"
#include "images/images.h"
#include "lib/os/file.h"
#include "lib/wire/stage1.h"

#define ANSWER_SIZE 64 /* of a line of an answer; longer ones are no answer */

struct trust_opts {
	const char *prefix;
	bool root;
	bool allow_http;
	bool skip_review;
};

/* One key on its way into the keystore. */
struct candidate {
	const char *location; /* as the user gave it */
	struct trust_key key;
};

static const struct flag flags[] = {
	FLAG_SWITCH("insecure-allow-http", struct trust_opts, allow_http,
		    "accept keys over connections that anybody can change"),
	FLAG_STRING("prefix", "PREFIX", struct trust_opts, prefix,
		    "trust the keys for the image of this name and those below it"),
	FLAG_SWITCH("root", struct trust_opts, root, "trust the keys for all images"),
	FLAG_SWITCH("skip-fingerprint-review", struct trust_opts, skip_review,
		    "do not ask whether the fingerprint is the right one"),
};

static const char unbounded[] = "aborting due to implicit unbounded trust (root domain)\n"
				"Say for which images the key counts:\n"
				"\thusk trust --prefix=example.com/app PUBKEY\n"
				"or, which is not recommended, that it counts for all of them:\n"
				"\thusk trust --root PUBKEY";

/* Checks what the flags say together. 0, or -errno and @e. */
static int check_scope(const struct trust_opts *o, struct err *e)
{
	if (o->prefix && o->root)
		return err_set(e, -EINVAL, "--root and --prefix usage mutually exclusive");
	return o->root ? 0 : trust_check_name("--prefix", o->prefix, e);
}

/* What the flags of other commands, and of this one, say about ways to a key. */
static struct fetch_options key_options(struct cli *c, const struct trust_opts *o,
					struct progress *p)
{
	struct fetch_options options = cli_fetch_options(c, p, CLI_NOBODY);
	/* Keys may come insecurely where images may not. */
	options.insecure_http |= o->allow_http || options.insecure_pubkey;
	options.insecure_tls |= options.insecure_pubkey;
	return options;
}

/*
 * Reads the key that @location names: a path or a URL. *ret is the caller's. 0 or -errno with @e.
 */
static int trust_fetch_key(struct cli *c, const struct trust_opts *o, const char *location,
			   char **ret, size_t *ret_len, struct err *e)
{
	struct progress progress;
	const struct fetch_options options = key_options(c, o, &progress);
	bool http = str_starts(location, "http://");
	if (http && !o->allow_http && !(c->insecure & INSECURE_PUBKEY))
		return err_set(e, -EINVAL, "--insecure-allow-http required for http URLs");
	if (http || str_starts(location, "https://"))
		return appc_download_key(location, &options, ret, ret_len, e);
	if (strstr(location, "://"))
		return err_set(e, -EINVAL, "only local files and http or https URLs supported");
	int r = file_read_path(location, TRUST_KEY_MAX, ret, ret_len);
	if (r == -EFBIG)
		return err_set(e, r, "it has more than %zu bytes (export the key with less)",
			       TRUST_KEY_MAX);
	return r < 0 ? err_sys(e, r, "cannot read it") : 0;
}

/* Where keys are when none is named: what the page of the prefix says. Adds them to @locations. */
static int discover_keys(struct cli *c, const struct trust_opts *o, struct strv *locations,
			 struct err *e)
{
	struct progress progress;
	const struct fetch_options options = key_options(c, o, &progress);
	int r = o->root ? err_set(e, -EINVAL, "--root needs PUBKEY (give the path of a key)")
			: appc_find_keys(o->prefix, &options, locations, e);
	return r < 0 ? err_context(e, "error determining key location") : 0;
}

/* What people compare, on standard output, which is complete before a question comes. */
static void show_key(const struct key_info *info)
{
	char formatted[TRUST_FORMATTED_MAX + 1];
	trust_format_fingerprint(info->fingerprint, formatted);
	printf("gpg key fingerprint is: %s\n", formatted);
	for (size_t i = 0; i < info->n_identities; i++)
		printf("\t%s\n", info->identities[i]);
	if (info->n_more > 0)
		printf("\t(%zu more)\n", info->n_more);
	fflush(stdout);
}

/*
 * Reads a line without its newline; a longer one than fits becomes "". False at the end of input.
 */
static bool read_answer(char answer[ANSWER_SIZE])
{
	size_t n = 0;
	int c;
	while ((c = getc(stdin)) != EOF && c != '\n')
		if (n++ < ANSWER_SIZE - 1)
			answer[n - 1] = (char)c;
	answer[n < ANSWER_SIZE ? n : 0] = '\0';
	return c != EOF;
}

/* Asks until the answer is one. *ret says whether it was yes. */
static int trust_ask(bool *ret, struct err *e)
{
	char answer[ANSWER_SIZE];
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return err_set(e, -ENOTTY,
			       "error reviewing key: there is no terminal to ask on (compare the "
			       "fingerprint and use --skip-fingerprint-review)");
	for (;;) {
		fputs("Are you sure you want to trust this key (yes/no)?\n", stderr);
		if (!read_answer(answer))
			return err_set(e, -EIO, "error reviewing key: no answer");
		*ret = strcmp(answer, "yes") == 0;
		if (*ret || strcmp(answer, "no") == 0)
			return 0;
		fputs("Please enter 'yes' or 'no'\n", stderr);
	}
}

/* Adds the key, which is to be trusted, and says where it is. */
static int add_key(const struct cli *c, const struct trust_opts *o, const struct candidate *k,
		   struct err *e)
{
	char path[PATH_MAX];
	cli_message(c, "Trusting \"%s\" for prefix \"%s\" %s fingerprint review.", k->location,
		    o->root ? "" : o->prefix, o->skip_review ? "without" : "after");
	int r = keystore_add(cli_trust_dirs(c).local, o->root ? NULL : o->prefix, &k->key, path, e);
	if (r < 0)
		return r;
	if (o->root)
		cli_message(c, "Added root key at \"%s\"", path);
	else
		cli_message(c, "Added key for prefix \"%s\" at \"%s\"", o->prefix, path);
	return 0;
}

/* Shows the key at @location and asks whether it is to be trusted. */
static int review_key(struct cli *c, const struct trust_opts *o, struct candidate *k,
		      bool *ret_trusted, struct err *e)
{
	const char *tmp = getenv("TMPDIR");
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = trust_fetch_key(c, o, k->location, &text, &len, e);
	if (r == 0)
		r = trust_key_inspect(text, len, tmp && *tmp ? tmp : "/tmp", &k->key, e);
	if (r != 0) {
		err_context(e, "error reading key \"%s\"", k->location);
		return r;
	}
	cli_message(c, "prefix: \"%s\"", o->root ? "" : o->prefix);
	cli_message(c, "key: \"%s\"", k->location);
	show_key(&k->key.info);
	*ret_trusted = true;
	return o->skip_review ? 0 : trust_ask(ret_trusted, e);
}

/* Takes one key through all steps. 0, also if the user does not want it; else not 0 and @e. */
static int trust_key(struct cli *c, const struct trust_opts *o, const char *location, struct err *e)
{
	struct candidate k = { .location = location };
	bool trusted = false;
	int r = review_key(c, o, &k, &trusted, e);
	if (r == 0 && trusted)
		r = add_key(c, o, &k, e);
	else if (r == 0)
		cli_message(c, "Not trusting \"%s\"", location);
	trust_key_deinit(&k.key);
	return r;
}

static int trust_keys(struct cli *c, const struct trust_opts *o, struct strv *locations,
		      struct err *e)
{
	int r = check_scope(o, e);
	if (r == 0 && locations->n == 0)
		r = discover_keys(c, o, locations, e);
	for (size_t i = 0; r == 0 && i < locations->n; i++)
		r = trust_key(c, o, locations->v[i], e);
	return r;
}

static int trust_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct trust_opts *o = opts;
	if (!o->prefix && !o->root && operands->n > 0) {
		fprintf(stderr, "%s: %s\n", c->cmd->name, unbounded);
		return EXIT_HUSK_FAILURE;
	}
	if (!o->prefix && !o->root)
		return err_set(e, CLI_MISUSE, "one of --prefix=PREFIX and --root is needed");
	return trust_keys(c, o, operands, e) != 0 ? -EINVAL
						  : 0; /* as gpg has it, it may be positive */
}

const struct command cmd_trust = {
	.name = "trust",
	.usage = "[OPTIONS] --prefix=PREFIX|--root [PUBKEY...]",
	.summary = "trust keys that images are signed with",
	.description =
		"Shows each public key, an ASCII-armoured file, asks whether its fingerprint is the\n"
		"right one, and adds it to the keystore of this host: for the images whose name is\n"
		"PREFIX or begins with PREFIX and a slash, or with --root for all images.",
	COMMAND_FLAGS(flags, struct trust_opts),
	.run = trust_run,
};
