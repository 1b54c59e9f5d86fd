/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/meta.h"

#include <string.h>
#include <strings.h>

#include "lib/base/macros.h"

/* Longest name of a tag or an attribute that we look for. */
#define WORD_MAX ((size_t)15)
/* Longest character reference that is replaced: "&#x0000041;" */
#define REFERENCE_MAX ((size_t)11)

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char meta_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool at_end(const struct meta_scan *s)
{
	return s->at >= s->end;
}

static bool looking_at(const struct meta_scan *s, const char *text)
{
	size_t len = strlen(text);
	return (size_t)(s->end - s->at) >= len && strncasecmp(s->at, text, len) == 0;
}

/* Moves behind the next @text, or to the end. */
static void skip_behind(struct meta_scan *s, const char *text)
{
	while (!at_end(s) && !looking_at(s, text))
		s->at++;
	s->at = at_end(s) ? s->end : s->at + strlen(text);
}

static void skip_spaces(struct meta_scan *s)
{
	while (!at_end(s) && is_space(*s->at))
		s->at++;
}

/* Copies bytes up to one of @stops, in lower case. "" if they are more than @size has room for. */
static void take_word(struct meta_scan *s, const char *stops, char *out, size_t size)
{
	size_t n = 0;
	for (; !at_end(s) && !is_space(*s->at) && !memchr(stops, *s->at, strlen(stops));
	     s->at++, n++)
		if (n < size)
			out[n] = meta_lower(*s->at);
	out[n < size ? n : 0] = '\0';
}

/* The value of "#65;" or "#x41;" at @s of @len bytes, -1 unless it is ASCII. */
static int number_reference(const char *s, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	int base = 10, value = 0;
	size_t i = 1;
	if (len > 2 && meta_lower(s[1]) == 'x') {
		base = 16;
		i = 2;
	}
	if (i + 1 >= len)
		return -1;
	for (; s[i] != ';'; i++) {
		const char *digit = memchr(digits, meta_lower(s[i]), (size_t)base);
		if (!digit || value > 127)
			return -1;
		value = value * base + (int)(digit - digits);
	}
	return value > 0 && value <= 127 ? value : -1;
}

/*
 * The character that the reference behind the "&" at @s stands for, and its length; -1 for others.
 */
static int reference(const char *s, size_t len, size_t *ret_len)
{
	static const struct {
		const char *name;
		char c;
	} names[] = {
		{ "amp;", '&' },  { "lt;", '<' },    { "gt;", '>' },
		{ "quot;", '"' }, { "apos;", '\'' },
	};
	len = MIN(len, REFERENCE_MAX);
	const char *end = memchr(s, ';', len);
	if (!end)
		return -1;
	*ret_len = (size_t)(end - s) + 1;
	if (s[0] == '#')
		return number_reference(s, *ret_len);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i].name) == *ret_len && memcmp(names[i].name, s, *ret_len) == 0)
			return names[i].c;
	return -1;
}

/*
 * Copies a value of @len bytes with its references replaced. False if it does not fit or has a NUL.
 */
static bool copy_value(const char *s, size_t len, char *out, size_t size)
{
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		size_t used = 0;
		int c = s[i] == '&' ? reference(s + i + 1, len - i - 1, &used) : -1;
		if (n + 1 >= size || s[i] == '\0')
			return false;
		out[n++] = c < 0 ? s[i] : (char)c;
		i += c < 0 ? 0 : used;
	}
	out[n] = '\0';
	return true;
}

/* The bytes of an attribute's value, behind its "=". */
static const char *take_value(struct meta_scan *s, size_t *ret_len)
{
	skip_spaces(s);
	char quote = at_end(s) ? '\0' : *s->at;
	const char *start = s->at;
	if (quote == '"' || quote == '\'') {
		start = ++s->at;
		while (!at_end(s) && *s->at != quote)
			s->at++;
		*ret_len = (size_t)(s->at - start);
		s->at += at_end(s) ? 0 : 1;
		return start;
	}
	while (!at_end(s) && !is_space(*s->at) && *s->at != '>')
		s->at++;
	*ret_len = (size_t)(s->at - start);
	return start;
}

/* What is known of the <meta> tag that is being read. */
struct found {
	struct meta_tag *tag; /* NULL in other tags */
	bool seen_name, seen_content, bad;
};

/* Reads one attribute. The first of several of one name counts. */
static void take_attribute(struct meta_scan *s, struct found *f)
{
	char word[WORD_MAX + 1];
	const char *value = "";
	size_t len = 0;
	/* A "=" at its beginning is a part of the name, which then is none of ours. */
	bool odd = *s->at == '=';
	s->at += odd;
	take_word(s, "=/>", word, sizeof(word));
	skip_spaces(s);
	if (!at_end(s) && *s->at == '=') {
		s->at++;
		value = take_value(s, &len);
	}
	if (!f->tag || odd)
		return;
	if (strcmp(word, "name") == 0 && !f->seen_name) {
		f->seen_name = true;
		if (!copy_value(value, len, f->tag->name, sizeof(f->tag->name)))
			f->bad = true;
	} else if (strcmp(word, "content") == 0 && !f->seen_content) {
		f->seen_content = true;
		if (!copy_value(value, len, f->tag->content, sizeof(f->tag->content)))
			f->bad = true;
	}
}

/* Reads the attributes of a tag and its ">". False if the document ends before that. */
static bool take_attributes(struct meta_scan *s, struct found *f)
{
	for (;;) {
		while (!at_end(s) && (is_space(*s->at) || *s->at == '/'))
			s->at++;
		if (at_end(s))
			return false;
		if (*s->at == '>') {
			s->at++;
			return true;
		}
		take_attribute(s, f);
	}
}

/* Behind the start tag @word: if what is inside has no tags, moves to its end. */
static void skip_raw_text(struct meta_scan *s, const char *word)
{
	static const char *const raw[] = { "script", "style",  "title",   "textarea",
					   "xmp",    "iframe", "noembed", "noframes" };
	char end[WORD_MAX + 3] = "</";
	for (size_t i = 0; i < ARRAY_SIZE(raw); i++)
		if (strcmp(word, raw[i]) == 0) {
			memcpy(end + 2, word, strlen(word) + 1);
			skip_behind(s, end);
			return;
		}
	if (strcmp(word, "plaintext") == 0)
		s->at = s->end;
}

/* Behind a "<" that a letter follows. True if it was a <meta> tag that is wanted. */
static bool take_tag(struct meta_scan *s, struct meta_tag *ret)
{
	char word[WORD_MAX + 1];
	take_word(s, "/>", word, sizeof(word));
	struct found f = { .tag = strcmp(word, "meta") == 0 ? ret : NULL };
	if (!take_attributes(s, &f))
		return false;
	if (!f.tag) {
		skip_raw_text(s, word);
		return false;
	}
	for (char *c = f.tag->name; f.seen_name && !f.bad && *c; c++)
		*c = meta_lower(*c);
	return f.seen_name && f.seen_content && !f.bad;
}

bool meta_next(struct meta_scan *s, struct meta_tag *ret)
{
	while (!at_end(s)) {
		skip_behind(s, "<");
		if (looking_at(s, "!--")) {
			s->at += 3;
			/* "<!-->" and "<!--->" are comments, too. */
			if (looking_at(s, ">") || looking_at(s, "->"))
				skip_behind(s, ">");
			else
				skip_behind(s, "-->");
		} else if (looking_at(s, "!") || looking_at(s, "?")) {
			skip_behind(s, ">");
		} else if (looking_at(s, "/")) {
			struct found none = { 0 };
			s->at++;
			take_attributes(s, &none);
		} else if (!at_end(s) && is_letter(*s->at) && take_tag(s, ret)) {
			return true;
		}
	}
	return false;
}
