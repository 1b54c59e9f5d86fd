/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of images in registries, and what skopeo prints when it fails, which servers have a part
 * in. The first byte says which gets the rest. Properties: what is accepted says all its parts, in
 * the same way when it is read again, and gives skopeo one operand without a blank or a sign of an
 * option; what is refused, and each failure, has a message of one line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "images/fetch/skopeo_failure.h"
#include "images/spec/registry_name.h"
#include "lib/base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool property)
{
	if (!property)
		abort();
}

static void check_message(const struct err *e)
{
	check(e->code < 0 && e->text[0] != '\0');
	for (const char *s = e->text; *s; s++)
		check((unsigned char)*s >= 0x20 && *s != 0x7f);
}

static void fuzz_name(const char *text)
{
	struct err e = ERR_INIT;
	struct registry_name n, again;
	char out[REGISTRY_TEXT_MAX + 1], operand[REGISTRY_OPERAND_MAX + 1];
	int r = registry_name_parse(text, &n, &e);
	check(r <= 0);
	if (r < 0) {
		check_message(&e);
		return;
	}
	check(*n.registry && *n.repository && (*n.tag || *n.digest.hex));
	check(strlen(n.registry) + 1 + strlen(n.repository) <= REGISTRY_NAME_MAX);
	registry_name_text(&n, out);
	check(registry_name_parse(out, &again, &e) == 0);
	check(memcmp(&n, &again, sizeof(n)) == 0);
	registry_name_operand(&n, NULL, operand);
	check(str_starts(operand, "docker://") && str_is_printable(operand, REGISTRY_OPERAND_MAX));
	check(!strpbrk(operand, " \"'\\$`,;%?#"));
}

static void fuzz_failure(const char *text, size_t len)
{
	static const struct registry_name n = { .registry = "q.io", .repository = "a", .tag = "1" };
	struct err e = ERR_INIT;
	int r = skopeo_failure(text, len, &n, &e);
	check(r == SKOPEO_E_AGAIN || r == e.code);
	check_message(&e);
	check(strlen(e.text) <= SKOPEO_QUOTE_MAX + 300);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	const char *rest = (const char *)data + 1;
	if (data[0] == 'f') {
		fuzz_failure(rest, size - 1);
		return 0;
	}
	char *text = strndup(rest, size - 1);
	check(text != NULL);
	fuzz_name(text);
	free(text);
	return 0;
}
