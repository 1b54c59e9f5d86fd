/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifests of appc images. Property: what is accepted keeps its limits; what is not leaves a
 * message.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "images/spec/aci.h"

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static void check_lists(const struct aci_manifest *m)
{
	CHECK(m->exec.n <= IMAGE_ARGS_MAX && m->env.n <= IMAGE_ARGS_MAX);
	CHECK(m->whitelist.n <= ACI_WHITELIST_MAX);
	for (size_t i = 0; i < m->env.n; i++)
		CHECK(m->env.v[i][0] != '=' && strchr(m->env.v[i], '='));
	for (size_t i = 0; i < m->whitelist.n; i++)
		CHECK(m->whitelist.v[i][0] == '/');
	CHECK(m->n_dependencies <= ACI_DEPENDENCIES_MAX);
	for (size_t i = 0; i < m->n_dependencies; i++) {
		CHECK(acname_is_identifier(m->dependencies[i].name.name, ACNAME_MAX));
		CHECK(strlen(m->dependencies[i].key) <= ACI_KEY_LEN);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(aci_manifest_deinit) struct aci_manifest m;
	struct err e = ERR_INIT;
	char *text = malloc(size + 1); /* its end is where the sanitizer watches */
	CHECK(text);
	memcpy(text, data, size);
	aci_manifest_init(&m);
	int r = aci_manifest_parse(text, size, &m, &e);
	free(text);
	CHECK((r < 0) == (e.text[0] != '\0'));
	if (r < 0)
		return 0;
	CHECK(acname_is_identifier(m.name.name, ACNAME_MAX));
	check_lists(&m);
	aci_check_platform(&m, &e);
	return 0;
}
