/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/http/http_head.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"
#include "lib/base/str.h"

/* Longest value of the fields that are looked into; a Cache-Control has some 100 bytes. */
#define VALUE_MAX ((size_t)1023)
/* Digits of UINT64_MAX. */
#define DIGITS_MAX ((size_t)20)

/* Some bytes of a line. */
struct text {
	const char *s;
	size_t len;
};

void http_validator_init(struct http_validator *v)
{
	*v = (struct http_validator){ .max_age = -1 };
}

void http_head_init(struct http_head *h)
{
	h->status = 0;
	h->has_length = false;
	h->length = 0;
	h->range = (struct http_range){ .given = false };
	h->retry_after = -1;
	http_validator_init(&h->validator);
	h->location[0] = '\0';
}

static bool is_strong(const char *etag)
{
	return etag[0] == '"';
}

bool http_validator_fits_ranges(const struct http_validator *v)
{
	return http_validator_if_range(v) != NULL;
}

const char *http_validator_if_range(const struct http_validator *v)
{
	if (is_strong(v->etag))
		return v->etag;
	return v->last_modified[0] ? v->last_modified : NULL;
}

bool http_validator_may_equal(const struct http_validator *a, const struct http_validator *b)
{
	if (a->etag[0] && b->etag[0])
		return strcmp(a->etag, b->etag) == 0;
	return !a->last_modified[0] || !b->last_modified[0] ||
	       strcmp(a->last_modified, b->last_modified) == 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct text trim(struct text t)
{
	while (t.len > 0 && is_blank(t.s[0]))
		t = (struct text){ t.s + 1, t.len - 1 };
	while (t.len > 0 && is_blank(t.s[t.len - 1]))
		t.len--;
	return t;
}

/* Cuts @rest at the first @c and returns what stands before it. */
static struct text take_until(struct text *rest, char c)
{
	const char *found = rest->len > 0 ? memchr(rest->s, c, rest->len) : NULL;
	size_t len = found ? (size_t)(found - rest->s) : rest->len;
	size_t used = found ? len + 1 : len;
	struct text head = { rest->s, len };
	*rest = (struct text){ rest->s + used, rest->len - used };
	return head;
}

static bool is_word(struct text t, const char *word)
{
	return t.len == strlen(word) && strncasecmp(t.s, word, t.len) == 0;
}

/* Copies a value that is printable and fits; anything else counts as not said. */
static void copy_value(struct text t, char *out, size_t size)
{
	out[0] = '\0';
	if (t.len >= size)
		return;
	memcpy(out, t.s, t.len);
	out[t.len] = '\0';
	if (!str_is_printable(out, size - 1))
		out[0] = '\0';
}

static bool parse_number(struct text t, uint64_t *ret)
{
	char digits[DIGITS_MAX + 1];
	copy_value(t, digits, sizeof(digits));
	return num_parse_u64(digits, UINT64_MAX, ret) == 0;
}

/* Seconds; @bad for what is not a number, the maximum for one that is too large. */
static int64_t parse_seconds(struct text t, int64_t bad)
{
	uint64_t n;
	if (t.len == 0)
		return bad;
	for (size_t i = 0; i < t.len; i++)
		if (!isdigit((unsigned char)t.s[i]))
			return bad;
	if (!parse_number(t, &n))
		return HTTP_SECONDS_MAX;
	return (int64_t)MIN(n, (uint64_t)HTTP_SECONDS_MAX);
}

/* RFC 9110, 14.4: "bytes FIRST-LAST/TOTAL", where TOTAL may be "*". */
static void parse_range(struct http_head *h, struct text value)
{
	struct http_range range = { .given = true, .known = true };
	struct text unit = take_until(&value, ' ');
	struct text first = take_until(&value, '-');
	struct text last = take_until(&value, '/');
	if (is_word(trim(value), "*"))
		range.known = false;
	else if (!parse_number(trim(value), &range.total))
		return;
	if (!is_word(unit, "bytes") || !parse_number(trim(first), &range.first) ||
	    !parse_number(trim(last), &range.last) || range.first > range.last ||
	    (range.known && range.last >= range.total))
		return;
	h->range = range;
}

/* Without the quotes that may be around it. */
static struct text unquote(struct text t)
{
	if (t.len >= 2 && t.s[0] == '"' && t.s[t.len - 1] == '"')
		return (struct text){ t.s + 1, t.len - 2 };
	return t;
}

/*
 * RFC 9111, 5.2.2. A comma inside of quotes cuts a directive in two, whose second half means
 * nothing to us, or makes a body count as older than it is: never as younger.
 */
static void parse_cache_control(struct http_validator *v, struct text value)
{
	while (value.len > 0) {
		struct text directive = take_until(&value, ',');
		struct text name = trim(take_until(&directive, '='));
		if (is_word(name, "no-store"))
			v->no_store = true;
		else if (is_word(name, "no-cache"))
			v->no_cache = true;
		else if (is_word(name, "max-age")) {
			int64_t age = parse_seconds(unquote(trim(directive)), 0);
			v->max_age = v->max_age < 0 ? age : MIN(v->max_age, age);
		}
	}
}

void http_head_take(struct http_head *h, const char *field, const char *text)
{
	struct http_validator *v = &h->validator;
	struct text name = { field, strlen(field) },
		    value = trim((struct text){ text, strlen(text) });
	if (is_word(name, "content-length"))
		h->has_length = parse_number(value, &h->length);
	else if (is_word(name, "content-range"))
		parse_range(h, value);
	else if (is_word(name, "etag"))
		copy_value(value, v->etag, sizeof(v->etag));
	else if (is_word(name, "last-modified"))
		copy_value(value, v->last_modified, sizeof(v->last_modified));
	else if (is_word(name, "cache-control") && value.len <= VALUE_MAX)
		parse_cache_control(v, value);
	else if (is_word(name, "retry-after"))
		h->retry_after = parse_seconds(value, -1);
	else if (is_word(name, "location") && value.len <= HTTP_URL_MAX) {
		memcpy(h->location, value.s, value.len);
		h->location[value.len] = '\0';
	}
}
