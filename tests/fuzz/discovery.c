/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of a web site, for discovery. The first line is the name that is looked for, the rest the
 * page, and once more a template. Properties: tags keep their limits, and every URL that comes out
 * is a printable one of http or https.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "images/appc/discovery.h"
#include "images/appc/meta.h"

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static void check_urls(const struct strv *list)
{
	CHECK(list->n <= DISCOVERY_URLS_MAX);
	for (size_t i = 0; i < list->n; i++) {
		CHECK(str_is_printable(list->v[i], HTTP_URL_MAX));
		CHECK(str_starts(list->v[i], "https://") || str_starts(list->v[i], "http://"));
	}
}

static void fuzz_page(const char *html, size_t len, const struct acname *n)
{
	static struct meta_tag tag;
	struct meta_scan s = { html, html + len };
	while (meta_next(&s, &tag)) {
		CHECK(strlen(tag.name) <= META_NAME_MAX && strlen(tag.content) <= META_CONTENT_MAX);
		CHECK(s.at <= s.end);
	}
	for (int insecure = 0; insecure < 2; insecure++) {
		CLEANUP(discovery_deinit) struct discovery d;
		discovery_init(&d);
		CHECK(discovery_parse(html, len, n, insecure, &d) == 0);
		CHECK(d.images.n == d.signatures.n);
		check_urls(&d.images);
		check_urls(&d.signatures);
		check_urls(&d.keys);
	}
}

static void fuzz_template(const char *text, const struct acname *n)
{
	static char url[HTTP_URL_MAX + 1];
	if (discovery_render(text, n, "aci", url) == 0)
		CHECK(strlen(url) <= HTTP_URL_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct acname n;
	const char *end = size > 0 ? memchr(data, '\n', size) : NULL;
	if (!end)
		return 0;
	size_t len = (size_t)(end - (const char *)data);
	char *name = strndup((const char *)data, len);
	char *rest = strndup(end + 1, size - len - 1);
	CHECK(name && rest);
	if (acname_parse(name, &n, NULL) == 0) {
		fuzz_page(end + 1, size - len - 1, &n);
		fuzz_template(rest, &n);
	}
	free(name);
	free(rest);
	return 0;
}
