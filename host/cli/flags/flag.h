/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line flags as tables: the same table makes the parser (flags.h), the OPTIONS of --help,
 * and the check of man page and completion.
 */
#ifndef HOST_CLI_FLAGS_FLAG_H
#define HOST_CLI_FLAGS_FLAG_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

struct flag;

/*
 * Takes over the value of one flag. @opts is the command's structure of options. For a switch
 * @value is "true" or "false". 0, or -errno and @e.
 */
typedef int (*flag_set_fn)(void *opts, const struct flag *f, const char *value, struct err *e);

struct flag {
	const char *name; /* without dashes */
	const char *arg;  /* placeholder of the value in help texts; NULL makes it a switch */
	const char *help; /* one line, no full stop; NULL: not shown, nor suggested */
	flag_set_fn set;
	size_t offset;    /* of the variable in the structure of options, for the setters below */
	bool per_app;     /* belongs to the image in front of it (husk run) */
	const char *bare; /* value that --name alone means; NULL: a value is needed */
	char letter;      /* of a switch: -LETTER is the same; '\0' if there is none */
	unsigned in;      /* bits of what a table that several commands share has it for */
};

/*
 * Takes --NAME=VALUE or --NAME VALUE, which no table has; @name has @len bytes. 0, or -errno and
 * @e.
 */
typedef int (*flag_other_fn)(void *opts, const char *name, size_t len, const char *value,
			     struct err *e);

/* A table and the structure that its setters fill. */
struct flag_set {
	const struct flag *flags;
	size_t n;
	unsigned only; /* those with one of these bits in flag.in; 0: all */
	void *opts;
	flag_other_fn other; /* of the first set; NULL: what no table has is wrong */
};

/* The flag of @set behind @f, or the first behind NULL. NULL if there is none. */
const struct flag *flag_next(const struct flag_set *set, const struct flag *f);

/* Setters: bool at offset; const char * at offset (borrowed from argv); struct strv at offset. */
int flag_set_bool(void *opts, const struct flag *f, const char *value, struct err *e);
int flag_set_string(void *opts, const struct flag *f, const char *value, struct err *e);
int flag_add_string(void *opts, const struct flag *f, const char *value, struct err *e);

/* A flag whose setter takes the member of a structure; one whose setter knows itself where to. */
#define FLAG_AT(name_, arg_, set_, type, member, help_)                         \
	{                                                                       \
		.name = (name_), .arg = (arg_), .help = (help_), .set = (set_), \
		.offset = offsetof(type, member)                                \
	}
#define FLAG_OWN(name_, arg_, set_, help_)                                     \
	{                                                                      \
		.name = (name_), .arg = (arg_), .help = (help_), .set = (set_) \
	}
#define FLAG_SWITCH(name_, type, member, help_) \
	FLAG_AT(name_, NULL, flag_set_bool, type, member, help_)
#define FLAG_STRING(name_, arg_, type, member, help_) \
	FLAG_AT(name_, arg_, flag_set_string, type, member, help_)

/* The flag @name (@len bytes) in @sets, or NULL; *ret_set (may be NULL) is the set that has it. */
const struct flag *flag_find(const struct flag_set *sets, size_t n_sets, const char *name,
			     size_t len, const struct flag_set **ret_set);

#endif
