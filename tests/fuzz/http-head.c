/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What servers send: fields of headers, and where they redirect to. The first byte chooses.
 * Properties: every string ends within its bounds and is printable where it is sent back; what is
 * shown has no user in front of its host; a redirection leads to http or https and brings no user
 * along.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "images/fetch/http/http_head.h"
#include "images/fetch/http/http_url.h"
#include "lib/base/str.h"

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static void check_head(const struct http_head *h)
{
	const struct http_validator *v = &h->validator;
	CHECK(strlen(h->location) <= HTTP_URL_MAX);
	CHECK(!v->etag[0] || str_is_printable(v->etag, HTTP_ETAG_MAX));
	CHECK(!v->last_modified[0] || str_is_printable(v->last_modified, HTTP_DATE_MAX));
	CHECK(v->max_age >= -1 && v->max_age <= HTTP_SECONDS_MAX);
	CHECK(h->retry_after >= -1 && h->retry_after <= HTTP_SECONDS_MAX);
	CHECK(!h->range.given || h->range.first <= h->range.last);
	CHECK(!h->range.given || !h->range.known || h->range.last < h->range.total);
	CHECK(http_validator_may_equal(v, v));
}

/* Lines of "NAME:VALUE". */
static void fuzz_head(char *text)
{
	static struct http_head h;
	char *rest = NULL;
	http_head_init(&h);
	for (char *line = strtok_r(text, "\r\n", &rest); line;
	     line = strtok_r(NULL, "\r\n", &rest)) {
		char *colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = '\0';
		http_head_take(&h, line, colon + 1);
		check_head(&h);
	}
}

static void fuzz_url(const char *text)
{
	static char url[HTTP_URL_MAX + 1];
	char shown[HTTP_SHOWN_MAX + 1];
	struct http_origin origin;
	struct err e = ERR_INIT;
	http_url_show(text, shown);
	CHECK(str_is_utf8(shown));
	int r = http_url_origin(text, &origin, &e);
	CHECK((r < 0) == (e.text[0] != '\0'));
	http_aws_region(r == 0 ? origin.host : text, shown);
	r = http_url_follow("https://user:password@example.com/a/b", text, url, NULL);
	if (r < 0)
		return;
	CHECK(str_starts(url, "https://") || str_starts(url, "http://"));
	CHECK(strlen(url) <= HTTP_URL_MAX);
	size_t authority = strcspn(strchr(url, '/') + 2, "/?#");
	CHECK(!memchr(strchr(url, '/') + 2, '@', authority));
	/* Only a host that is too long is still to be refused. */
	CHECK(http_url_origin(url, &origin, NULL) == 0 || authority > HTTP_HOST_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *text = strndup((const char *)data + 1, size - 1);
	CHECK(text);
	if (data[0] == 'h')
		fuzz_head(text);
	else
		fuzz_url(text);
	free(text);
	return 0;
}
