/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "bench/contender.h"
#include "lib/base/macros.h"
#include "lib/base/num.h"

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "image", required_argument, NULL, 'i' },
	{ "out", required_argument, NULL, 'o' },
	{ "peer", required_argument, NULL, 'p' },
	{ "pods", required_argument, NULL, 'n' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "stage1", required_argument, NULL, 's' },
	{ "version", no_argument, NULL, 'v' },
	{ 0 },
};

void options_print_help(void)
{
	puts("usage: husk-bench [OPTIONS] [SUITE...]\n"
	     "Compares pods of husk with each other and with other runtimes, in one run.\n\n"
	     "  --stage1=kvm,ns                     flavors of husk's pods (default: both)\n"
	     "  --peer=runc,crun,podman,runsc,host  other runtimes (default: those installed)\n"
	     "  --rounds=N                          how often each is measured (default: 5)\n"
	     "  --pods=N                            most idle pods at once (default: 50)\n"
	     "  --image=IMAGE                       what they run (default: busybox of this host)\n"
	     "  --out=DIR                           where results go (default: husk-bench-results)\n"
	     "  --help, --version\n\n"
	     "Suites: start app stream processor disk volume network memory many (default: all)\n"
	     "Results: DIR/index.html, DIR/results.json, DIR/results.csv. See husk-bench(1).");
}

/* The member of the list @known that is the @len bytes at @word, or NULL. */
static const char *find(const char *const *known, const char *word, size_t len)
{
	for (; *known; known++)
		if (strlen(*known) == len && memcmp(*known, word, len) == 0)
			return *known;
	return NULL;
}

/* An unknown @word: says which there are. */
static int unknown(const char *what, const char *const *known, const char *word, size_t len,
		   struct err *e)
{
	char list[128] = "";
	size_t at = 0;
	for (; *known && at < sizeof(list); known++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", at > 0 ? ", " : "",
				       *known);
	return err_set(e, -EINVAL, "%s \"%.*s\": unknown (there are %s)", what, (int)len, word,
		       list);
}

/* Adds the members of a list with commas to the contenders. */
static int add_contenders(struct options *o, const char *what, const char *const *known,
			  const char *list, struct err *e)
{
	while (*list) {
		size_t len = strcspn(list, ",");
		const char *name = find(known, list, len);
		if (!name)
			return unknown(what, known, list, len, e);
		for (size_t i = 0; i < o->n_contenders; i++)
			if (o->contenders[i] == name)
				return err_set(e, -EINVAL, "%s \"%s\": named twice", what, name);
		o->contenders[o->n_contenders++] = name;
		list += len + (list[len] == ',');
	}
	return 0;
}

static int read_number(const char *what, const char *text, unsigned max, unsigned *ret,
		       struct err *e)
{
	uint64_t value;
	if (num_parse_u64(text, max, &value) < 0 || value == 0)
		return err_set(e, -EINVAL, "%s=%s: not a number from 1 to %u", what, text, max);
	*ret = (unsigned)value;
	return 0;
}

static int add_suite(struct options *o, const char *const *suites, const char *word, struct err *e)
{
	const char *name = find(suites, word, strlen(word));
	if (!name)
		return unknown("suite", suites, word, strlen(word), e);
	if (o->n_suites > 0 && options_want(o, name))
		return err_set(e, -EINVAL, "suite \"%s\": named twice", name);
	o->suites[o->n_suites++] = name;
	return 0;
}

struct lists {
	const char *stage1, *peer;
};

static int read_option(int c, struct options *o, struct lists *lists, struct err *e)
{
	switch (c) {
	case 'h':
		o->help = true;
		return 0;
	case 'v':
		o->version = true;
		return 0;
	case 'i':
		o->image = optarg;
		return 0;
	case 'o':
		o->out = optarg;
		return 0;
	case 's':
		lists->stage1 = optarg;
		return 0;
	case 'p':
		lists->peer = optarg;
		o->peers_named = true;
		return 0;
	case 'r':
		return read_number("--rounds", optarg, RESULTS_ROUNDS_MAX, &o->rounds, e);
	default:
		return read_number("--pods", optarg, OPTIONS_PODS_MAX, &o->pods, e);
	}
}

int options_read(char *const *argv, const char *const *suites, struct options *ret, struct err *e)
{
	struct options o = { .rounds = 5, .pods = 50, .out = "husk-bench-results" };
	struct lists lists = { .stage1 = "kvm,ns", .peer = "runc,crun,podman,runsc,host" };
	int argc = 0, c, r = 0;
	while (argv[argc])
		argc++;
	optind = 0; /* from the start, also the second time */
	while (r == 0 && (c = getopt_long(argc, argv, ":h", long_options, NULL)) >= 0) {
		if (c == '?' || c == ':')
			return err_set(e, -EINVAL, "%s: %s (see husk-bench --help)",
				       argv[optind - 1],
				       c == ':' ? "needs a value" : "no such option");
		r = read_option(c, &o, &lists, e);
	}
	if (r == 0)
		r = add_contenders(&o, "stage1", contender_stage1s, lists.stage1, e);
	o.n_stage1s = o.n_contenders;
	if (r == 0)
		r = add_contenders(&o, "peer", contender_peers, lists.peer, e);
	for (; r == 0 && optind < argc; optind++)
		r = add_suite(&o, suites, argv[optind], e);
	if (r == 0 && o.n_contenders == 0)
		r = err_set(e, -EINVAL, "nothing to measure: neither a stage1 nor a peer is named");
	if (r == 0)
		*ret = o;
	return r;
}

bool options_want(const struct options *o, const char *suite)
{
	for (size_t i = 0; i < o->n_suites; i++)
		if (strcmp(o->suites[i], suite) == 0)
			return true;
	return o->n_suites == 0;
}
