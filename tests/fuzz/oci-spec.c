/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container's config.json, a further process of a container, other limits. Properties: what is
 * taken keeps the limits of apps, and names a program and a user; what is refused says why in one
 * line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/spec/oci_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool property)
{
	if (!property)
		abort();
}

static void check_process(const struct oci_spec *s)
{
	const struct app_options *o = &s->app;
	check(o->args.n > 0 && o->args.v[0][0] != '\0');
	check(o->user && o->group && strlen(o->user) <= 10 && strlen(o->group) <= 10);
	for (size_t i = 0; i < o->env.n; i++)
		check(strchr(o->env.v[i], '=') && o->env.v[i][0] != '=');
	check(s->rows >= 0 && s->columns >= 0);
}

static void check_result(int r, const struct err *e)
{
	check(r == 0 || (r < 0 && e->text[0] && !strchr(e->text, '\n')));
}

static void try_annotations(const char *text, size_t len)
{
	struct oci_spec s;
	struct err e = ERR_INIT;
	oci_spec_init(&s);
	check_result(oci_annotations_parse(text, len, &s, &e), &e);
	check(!s.sandbox_id || strlen(s.sandbox_id) <= OCI_SPEC_ID_MAX);
	oci_spec_deinit(&s);
}

/* What is mounted is of the host or in memory, and of a volume that there is. */
static void check_mounts(const struct app_options *o)
{
	check(o->volumes.n == o->mounts.n && o->volumes.n <= VOLUMES_MAX);
	for (size_t i = 0; i < o->mounts.n; i++) {
		const struct volume *v = volumes_find(&o->volumes, o->mounts.v[i].volume);
		check(v && (v->kind == VOLUME_MEMORY ||
			    (v->kind == VOLUME_HOST && v->source[0] == '/')));
		check(v->read_only == o->mounts.v[i].read_only);
	}
}

/* That nothing is asked for is said, too. */
static void check_protection(const struct isolators *i)
{
	check(isolators_has(i, ISOLATOR_SECCOMP_PROFILE) && i->profile[0] == '{' &&
	      strlen(i->profile) <= ISOLATOR_PROFILE_MAX);
	check(isolators_has(i, ISOLATOR_MASKED_PATHS) &&
	      isolators_has(i, ISOLATOR_READ_ONLY_PATHS));
	for (size_t k = 0; k < i->masked_paths.n; k++)
		check(i->masked_paths.v[k][0] == '/');
}

static void try_process(const char *text, size_t len, const struct oci_spec *in)
{
	struct oci_spec s;
	struct err e = ERR_INIT;
	oci_spec_init(&s);
	int r = oci_process_parse(text, len, in, &s, &e);
	check_result(r, &e);
	if (r == 0)
		check_process(&s);
	oci_spec_deinit(&s);
}

static void try_resources(const char *text, size_t len)
{
	struct isolators i;
	struct err e = ERR_INIT;
	unsigned changed = 0;
	int64_t period = 100000;
	isolators_init(&i);
	check_result(oci_resources_parse(text, len, &period, &i, &changed, &e), &e);
	check(period > 0 && period <= 1000000);
	check(i.memory >= 0 && i.cpu_millis >= 0 && i.cpu_shares >= 0 && i.pids_max >= 0);
	check(changed >> ISOLATOR_COUNT_ == 0);
	isolators_deinit(&i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct oci_spec s;
	struct err e = ERR_INIT;
	oci_spec_init(&s);
	int r = oci_spec_parse((const char *)data, size, &s, &e);
	check_result(r, &e);
	if (r == 0 && !s.is_sandbox) {
		check_process(&s);
		check_mounts(&s.app);
		check_protection(&s.app.isolators);
		check(s.root);
	}
	check(!s.is_sandbox || !s.sandbox_id);
	try_annotations((const char *)data, size);
	try_process((const char *)data, size, &s);
	try_resources((const char *)data, size);
	oci_spec_deinit(&s);
	return 0;
}
