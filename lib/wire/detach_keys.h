/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys that leave a terminal and let the app go on, in docker's grammar: "ctrl-p,ctrl-q".
 *
 * What is typed passes by. A key that may belong to the sequence is held back until it is clear
 * whether it does; if not, it goes on in front of the key that told so.
 */
#ifndef LIB_WIRE_DETACH_KEYS_H
#define LIB_WIRE_DETACH_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#define DETACH_KEYS_DEFAULT "ctrl-p,ctrl-q"

/* Keys of a sequence: nobody types more in a hurry. */
#define DETACH_KEYS_MAX 16

struct detach_keys {
	char key[DETACH_KEYS_MAX];
	size_t n;       /* 0: nothing leaves */
	size_t matched; /* so many keys at the beginning are held back */
};

/*
 * Reads a sequence: keys with commas between them, each one printable ASCII character or "ctrl-"
 * and one of a-z @ [ \ ] ^ _, or "DEL"; "" is none. 0, -EINVAL for no key, -E2BIG for more than
 * DETACH_KEYS_MAX of them.
 */
int detach_keys_parse(const char *text, struct detach_keys *ret);

/*
 * Takes @len typed bytes. What goes on is written to @out, which has room for @len and
 * DETACH_KEYS_MAX - 1 more, and may begin DETACH_KEYS_MAX bytes in front of @in; *ret_len bytes of
 * it. True if the sequence is complete: what was typed behind it is dropped.
 */
bool detach_keys_feed(struct detach_keys *k, const char *in, size_t len, char *out,
		      size_t *ret_len);

#endif
