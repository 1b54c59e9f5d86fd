/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `husk run`: NUL-separated arguments, then composition of every app. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/cli.h"
#include "host/cli/flags/duration.h"
#include "host/cli/flags/env_file.h"
#include "host/cli/format/image_rows.h"
#include "host/cli/run_args.h"
#include "host/manifest/compose.h"
#include "host/manifest/ports.h"
#include "host/manifest/volumes.h"

#define INPUT_MAX 4096 /* the fuzzer's default for the length of an input */
#define WORDS_MAX 256  /* more than any branch of the grammar needs */

/* Whatever was parsed gives an app or an error, and the app keeps all limits of the manifest. */
static void compose_all(const struct run_opts *o)
{
	static const struct image_config empty = { .working_dir = "", .user = "" };
	struct pod_manifest m;
	pod_manifest_init(&m);
	for (size_t i = 0; i < o->request.n_apps; i++) {
		struct err e = ERR_INIT;
		CLEANUP(pod_app_deinit) struct pod_app app;
		pod_app_init(&app);
		const struct app_options *options = &o->request.apps[i];
		if (compose_app(options, options->image, "sha256-00", &empty, &o->request.env, &app,
				&e) == 0)
			pod_manifest_add(&m, &app);
	}
	struct err e = ERR_INIT;
	int r = volumes_copy(&m.volumes, &o->request.volumes);
	if (r == 0)
		r = ports_resolve(&o->request.ports, &m, &e);
	for (size_t i = 0; r == 0 && i < m.n_apps; i++)
		r = volumes_resolve(&m, &o->request.mounts, &m.apps[i], &e);
	if (r == 0 && m.n_apps > 0) {
		struct pod_manifest again;
		char *text = NULL;
		pod_manifest_init(&again);
		/* stage1 must be able to read every manifest that stage0 writes. */
		if (pod_manifest_format(&m, &text) == 0 &&
		    pod_manifest_parse(text, strlen(text), &again, &e) < 0)
			abort();
		pod_manifest_deinit(&again);
		free(text);
	}
	pod_manifest_deinit(&m);
}

/* Whatever goes together can be told; a port that needs no app has all that it takes. */
static void check_network(const struct run_request *q, char *const *argv)
{
	CLEANUP(pod_ports_deinit) struct pod_ports direct = { 0 };
	cleanup_strv struct strv args;
	strv_init(&args, NETWORK_ARGS_MAX);
	if (network_add_args(&q->network, &args) == -E2BIG)
		abort();
	for (; *argv; argv++)
		ports_add_direct(&direct, *argv, NULL);
	for (size_t i = 0; i < direct.n; i++)
		if (direct.v[i].port == 0 || direct.v[i].host_port == 0)
			abort();
}

/* What was parsed is formatted as something that means the same. */
static void check_duration(const char *text)
{
	char again[DURATION_TEXT_MAX];
	int64_t ns, same;
	if (duration_parse(text, &ns) < 0 || ns < 0)
		return;
	duration_format(ns, again);
	if (duration_parse(again, &same) < 0 || same != ns)
		abort();
}

/* What was parsed of a list of fields has each once. */
static void check_fields(const char *text)
{
	struct image_columns columns;
	enum pull_policy policy;
	if (image_columns_parse(text, &columns, NULL) == 0 && columns.n > IMAGE_FIELDS)
		abort();
	if (image_sort_parse(text, &columns, NULL) == 0 && columns.n >= IMAGE_FIELDS)
		abort();
	if (pull_policy_parse(text, &policy, NULL) == 0 && policy >= PULL_POLICIES)
		abort();
}

/* Variables have names, and each name comes once. */
static void check_env_file(const uint8_t *data, size_t size)
{
	cleanup_strv struct strv env;
	struct err e = ERR_INIT;
	cleanup_free char *text = malloc(size + 1);
	strv_init(&env, AGENT_ENV_MAX);
	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (env_file_parse(text, size, &env, &e) < 0)
		return;
	for (size_t i = 0; i < env.n; i++)
		if (!strchr(env.v[i], '=') || env.v[i][0] == '=')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[INPUT_MAX + 1], *argv[WORDS_MAX + 1];
	struct cli c = { 0 };
	struct run_opts o;
	struct err e = ERR_INIT;
	size_t n = 0;
	if (size > INPUT_MAX)
		return 0;
	check_env_file(data, size);
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t at = 0; at < size && n < WORDS_MAX; at += strlen(text + at) + 1)
		argv[n++] = text + at;
	argv[n] = NULL;
	for (size_t i = 0; i < n; i++) {
		check_duration(argv[i]);
		check_fields(argv[i]);
	}
	command_word_index(argv);
	run_opts_init(&o);
	const struct flag_set sets[] = { command_flags(&cmd_run, &o), cli_global_flags(&c) };
	int r = run_args_parse(sets, ARRAY_SIZE(sets), argv, NULL, &e);
	if ((r != 0) != (e.text[0] != '\0'))
		abort(); /* a message if and only if it failed */
	if (r == 0 && run_opts_check(&o, &e) == 0) {
		check_network(&o.request, argv);
		compose_all(&o);
	}
	run_opts_deinit(&o);
	return 0;
}
