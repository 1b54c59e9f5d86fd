/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/detach_keys.h"

#include <errno.h>
#include <string.h>

#define CTRL_PREFIX "ctrl-"

/* The character that a key with ctrl makes: '@' is 0, 'a' is 1, '_' is 31. 0 or -EINVAL. */
static int parse_ctrl(char c, char *ret)
{
	if (c >= 'a' && c <= 'z')
		*ret = (char)(c - 'a' + 1);
	else if (c == '@' || (c >= '[' && c <= '_'))
		*ret = (char)(c - '@');
	else
		return -EINVAL;
	return 0;
}

static int parse_key(const char *text, size_t len, char *ret)
{
	size_t prefix = strlen(CTRL_PREFIX);
	if (len == 1 && text[0] > ' ' && text[0] <= '~')
		*ret = text[0];
	else if (len == prefix + 1 && strncmp(text, CTRL_PREFIX, prefix) == 0)
		return parse_ctrl(text[prefix], ret);
	else if (len == 3 && strncmp(text, "DEL", len) == 0)
		*ret = 0x7f;
	else
		return -EINVAL;
	return 0;
}

int detach_keys_parse(const char *text, struct detach_keys *ret)
{
	struct detach_keys k = { .n = 0 };
	for (bool more = *text != '\0'; more;) {
		size_t len = strcspn(text, ",");
		if (k.n == DETACH_KEYS_MAX)
			return -E2BIG;
		int r = parse_key(text, len, &k.key[k.n++]);
		if (r < 0)
			return r;
		more = text[len] == ',';
		text += len + 1;
	}
	*ret = k;
	return 0;
}

/* Gives up as few of the keys that are held back as possible: the rest is a beginning again. */
static size_t give_up(struct detach_keys *k, char *out)
{
	size_t n = 1;
	while (memcmp(k->key, k->key + n, k->matched - n) != 0)
		n++;
	memmove(out, k->key, n);
	k->matched -= n;
	return n;
}

bool detach_keys_feed(struct detach_keys *k, const char *in, size_t len, char *out, size_t *ret_len)
{
	size_t n = 0;
	bool complete = false;
	for (size_t i = 0; i < len && !complete; i++) {
		char c = in[i];
		while (k->matched > 0 && c != k->key[k->matched])
			n += give_up(k, out + n);
		if (k->n > 0 && c == k->key[k->matched])
			complete = ++k->matched == k->n;
		else
			out[n++] = c;
	}
	if (complete)
		k->matched = 0;
	*ret_len = n;
	return complete;
}
