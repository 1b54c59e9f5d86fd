/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry-copy [OPTION...] NAME [DIR]: looks at the image NAME as husk would, prints its digests,
 * and copies it into the OCI layout DIR. For tests against a real registry.
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "images/fetch/registry.h"
#include "lib/base/num.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"

struct arguments {
	struct fetch_options options;
	struct auth auth;
	struct auths auths;
	uint64_t bytes_max;
	const char *name, *dir;
};

static void print_progress(void *ctx, const struct fetch_progress *p)
{
	(void)ctx;
	printf("progress %llu %llu%s\n", (unsigned long long)p->done, (unsigned long long)p->total,
	       p->ended ? " ended" : "");
	fflush(stdout);
}

static void print_note(void *ctx, const char *text)
{
	(void)ctx;
	printf("note %s\n", text);
	fflush(stdout);
}

/* --auth=REGISTRY=USER=PASSWORD */
static int take_auth(char *text, struct arguments *a)
{
	a->auth = (struct auth){ .host = strsep(&text, "="),
				 .type = AUTH_BASIC,
				 .user = strsep(&text, "="),
				 .password = text };
	a->auths = (struct auths){ .v = &a->auth, .n = 1 };
	a->options.docker_auth = &a->auths;
	return text ? 0 : -EINVAL;
}

static int parse(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = { { "insecure-tls", no_argument, NULL, 't' },
						 { "insecure-image", no_argument, NULL, 'i' },
						 { "auth", required_argument, NULL, 'a' },
						 { "max", required_argument, NULL, 'm' },
						 { 0 } };
	int c, r = 0;
	while (r == 0 && (c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 't')
			a->options.insecure_tls = true;
		else if (c == 'i')
			a->options.insecure_image = true;
		else if (c == 'a')
			r = take_auth(optarg, a);
		else
			r = c == 'm' ? num_parse_u64(optarg, UINT64_MAX, &a->bytes_max) : -EINVAL;
	}
	a->name = argv[optind];
	a->dir = a->name ? argv[optind + 1] : NULL;
	return a->name ? r : -EINVAL;
}

static int run(const struct arguments *a, struct err *e)
{
	struct registry_name name;
	char text[REGISTRY_TEXT_MAX + 1];
	CLEANUP(registry_manifest_deinit) struct registry_manifest m = REGISTRY_MANIFEST_INIT;
	int r = registry_name_parse(a->name, &name, e);
	if (r == 0)
		r = registry_look(&name, &a->options, &m, e);
	if (r < 0)
		return r;
	registry_name_text(&name, text);
	printf("name %s\nsource %s\nmanifest %s\n", text, m.source.hex, m.manifest.hex);
	fflush(stdout);
	if (!a->dir)
		return 0;
	cleanup_fd int dir = path_make_dirs(a->dir, 0700);
	if (dir < 0)
		return err_sys(e, dir, "cannot make \"%s\"", a->dir);
	return registry_copy(&name, &m, dir, &a->options, a->bytes_max, e);
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	struct arguments a = { .options = { .progress = print_progress, .note = print_note },
			       .bytes_max = UINT64_MAX };
	if (parse(argc, argv, &a) < 0) {
		fprintf(stderr, "usage: registry-copy [--insecure-tls] [--insecure-image] "
				"[--auth=REGISTRY=USER=PASSWORD] [--max=BYTES] NAME [DIR]\n");
		return 2;
	}
	if (run(&a, &e) < 0) {
		fprintf(stderr, "registry-copy: %s\n", e.text);
		return 1;
	}
	return 0;
}
