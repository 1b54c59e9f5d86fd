/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/armour.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define MARK_BEGIN "-----BEGIN PGP "
#define MARK_END   "-----END PGP "
#define KEY_BEGIN  MARK_BEGIN "PUBLIC KEY BLOCK-----"
#define KEY_END    MARK_END "PUBLIC KEY BLOCK-----"

/* A line of the text, without its end and blanks in front of that. */
struct line {
	const char *s;
	size_t len;
};

static bool starts(struct line l, const char *mark)
{
	size_t n = strlen(mark);
	return l.len >= n && memcmp(l.s, mark, n) == 0;
}

static bool equals(struct line l, const char *mark)
{
	return l.len == strlen(mark) && starts(l, mark);
}

/* Takes the line at *@at off. */
static struct line next_line(const char *text, size_t len, size_t *at)
{
	const char *s = text + *at;
	const char *newline = memchr(s, '\n', len - *at);
	struct line l = { .s = s, .len = newline ? (size_t)(newline - s) : len - *at };
	*at += l.len + (newline ? 1 : 0);
	while (l.len > 0 && strchr("\r\t ", l.s[l.len - 1]))
		l.len--;
	return l;
}

static int misplaced(struct line l, struct err *e)
{
	if (starts(l, MARK_BEGIN "PRIVATE"))
		return err_set(e, -EINVAL,
			       "it is a private key (export the public one: gpg --armor --export)");
	return err_set(e, -EINVAL,
		       "it has an OpenPGP armour that is not one complete public key (give one key "
		       "per file)");
}

int armour_find_key(const char *text, size_t len, size_t *ret_start, size_t *ret_len, struct err *e)
{
	const char *begin = NULL, *end = NULL;
	if (len > TRUST_KEY_MAX)
		return err_set(e, -EFBIG, "it has more than %zu bytes (export it with less)",
			       TRUST_KEY_MAX);
	if (memchr(text, '\0', len))
		return err_set(e, -EINVAL,
			       "it is not ASCII-armoured (export it with gpg --armor --export)");
	for (size_t at = 0; at < len;) {
		struct line l = next_line(text, len, &at);
		if (!starts(l, MARK_BEGIN) && !starts(l, MARK_END))
			continue;
		if (!begin && equals(l, KEY_BEGIN))
			begin = l.s;
		else if (begin && !end && equals(l, KEY_END))
			end = l.s + l.len;
		else
			return misplaced(l, e);
	}
	if (!begin)
		return err_set(e, -EINVAL,
			       "it is not an ASCII-armoured public key (export it with gpg --armor "
			       "--export)");
	if (!end)
		return err_set(e, -EINVAL, "the end of the key is missing (get the file again)");
	*ret_start = (size_t)(begin - text);
	*ret_len = (size_t)(end - begin);
	return 0;
}
