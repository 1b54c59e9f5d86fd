/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of app container images. Property: what is accepted keeps its limits, and is written as a
 * text that reads the same again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "images/spec/acname.h"

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static void check_name(const struct acname *n)
{
	CHECK(acname_is_identifier(n->name, ACNAME_MAX));
	CHECK(n->n <= ACNAME_LABELS_MAX);
	for (size_t i = 0; i < n->n; i++) {
		CHECK(acname_is_identifier(n->labels[i].name, ACNAME_LABEL_MAX));
		CHECK(n->labels[i].value[0]);
		CHECK(acname_get(n, n->labels[i].name) == n->labels[i].value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct acname n, again;
	struct err e = ERR_INIT;
	char *text = strndup((const char *)data, size);
	CHECK(text);
	int r = acname_parse(text, &n, &e);
	free(text);
	CHECK((r < 0) == (e.text[0] != '\0'));
	if (r < 0)
		return 0;
	check_name(&n);
	cleanup_buf struct buf out;
	buf_init(&out, sizeof(n));
	CHECK(acname_format(&n, &out) == 0 && buf_append(&out, "", 1) == 0);
	CHECK(acname_parse(buf_data(&out), &again, NULL) == 0);
	CHECK(again.n == n.n && strcmp(again.name, n.name) == 0);
	for (size_t i = 0; i < n.n; i++)
		CHECK(strcmp(acname_get(&again, n.labels[i].name), n.labels[i].value) == 0);
	return 0;
}
