/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/log_uri.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hex.h"

static const struct {
	const char *scheme;
	enum log_kind kind;
} schemes[] = {
	{ "fifo://", LOG_FIFO },
	{ "file://", LOG_FILE },
	{ "binary://", LOG_BINARY },
};

/* Bytes that are written as "%XX", and in a query "+" for a space (RFC 3986, 2.1; HTML forms). */
static int unescape(const char *text, size_t len, bool query, char *out, size_t size)
{
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)(query && text[i] == '+' ? ' ' : text[i]);
		if (text[i] == '%') {
			char digits[3] = { 0 };
			for (int k = 0; k < 2 && i + 1 < len; k++)
				digits[k] = (char)(text[++i] | 0x20); /* the case of a letter */
			if (hex_decode(digits, &byte, 1) < 0 || byte == '\0')
				return -EINVAL;
		}
		if (n + 1 >= size)
			return -E2BIG;
		out[n++] = (char)byte;
	}
	out[n] = '\0';
	return 0;
}

static int add_word(struct strv *words, const char *text, size_t len)
{
	cleanup_free char *word = malloc(len + 1);
	int r = word ? unescape(text, len, true, word, len + 1) : -ENOMEM;
	return r == 0 ? strv_add(words, word) : r;
}

/* "KEY=VALUE&KEY" */
static int split_query(const char *text, struct strv *words)
{
	int r = 0;
	while (r == 0 && *text) {
		size_t len = strcspn(text, "&"), key = strcspn(text, "=&");
		if (len > 0)
			r = add_word(words, text, key);
		if (r == 0 && key + 1 < len)
			r = add_word(words, text + key + 1, len - key - 1);
		text += len + (text[len] == '&');
	}
	return r;
}

static int parse(const char *text, struct log_uri *ret)
{
	ret->kind = LOG_FIFO;
	if (!strstr(text, "://"))
		return str_copy(ret->path, sizeof(ret->path), text);
	size_t i = 0;
	while (i < ARRAY_SIZE(schemes) && !str_starts(text, schemes[i].scheme))
		i++;
	if (i == ARRAY_SIZE(schemes))
		return -EOPNOTSUPP;
	ret->kind = schemes[i].kind;
	text += strlen(schemes[i].scheme);
	size_t len = strcspn(text, "?#");
	int r = *text == '/' ? unescape(text, len, false, ret->path, sizeof(ret->path)) : -EINVAL;
	return r == 0 && text[len] == '?' ? split_query(text + len + 1, &ret->words) : r;
}

int log_uri_parse(const char *text, struct log_uri *ret, struct err *e)
{
	strv_init(&ret->words, LOG_URI_WORDS_MAX);
	int r = parse(text, ret);
	if (r == -EOPNOTSUPP)
		return err_set(e, r, "streams to \"%.255s\" are not supported", text);
	return r < 0 ? err_sys(e, r, "stream \"%.255s\"", text) : 0;
}

void log_uri_deinit(struct log_uri *u)
{
	strv_deinit(&u->words);
}
