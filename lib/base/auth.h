/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of several hosts: what the configuration says, and who downloads has to know. */
#ifndef LIB_BASE_AUTH_H
#define LIB_BASE_AUTH_H

#include <stdbool.h>
#include <stddef.h>

/* Most hosts of a list; they are looked for one by one. */
#define AUTHS_MAX ((size_t)1024)
/* Longest host: 253 bytes of DNS name (RFC 1035), a colon and a port. */
#define AUTH_HOST_MAX ((size_t)259)
/* Longest user, password, token or key; tokens of some services have 2 or 3 KiB. */
#define AUTH_SECRET_MAX ((size_t)8192)

enum auth_type {
	AUTH_BASIC,
	AUTH_OAUTH,
	AUTH_AWS,
	AUTH_TYPES,
};

/* How to prove at a host who asks. Strings are owned; those of other types are NULL. */
struct auth {
	char *host;
	enum auth_type type;
	char *user, *password;                   /* basic; all of a registry's */
	char *token;                             /* oauth */
	char *access_key_id, *secret_access_key; /* aws */
	char *aws_region;                        /* aws; NULL if not given */
};

/* Members in the order in which they were added; no host twice. One of zeros is empty. */
struct auths {
	struct auth *v; /* owned */
	size_t n;
};

/* One credential of a type: its name in JSON, and where a struct auth has its char *. */
struct auth_credential {
	const char *key;
	size_t offset;
	bool optional;
};

#define AUTH_CREDENTIALS_MAX 3 /* of aws */

/* A type of credentials. */
struct auth_form {
	const char *name;
	struct auth_credential credentials[AUTH_CREDENTIALS_MAX];
	size_t n;
};

/* Indexed by enum auth_type. */
extern const struct auth_form auth_forms[AUTH_TYPES];

/* AUTHS_TWICE: the host is in the list already; AUTHS_FULL: AUTHS_MAX reached. */
enum {
	AUTHS_TWICE = 1,
	AUTHS_FULL,
};

/* The credential @c of @a, a char *. */
char **auth_value(struct auth *a, const struct auth_credential *c);

/* Frees what @a owns. Accepts one of zeros. */
void auth_deinit(struct auth *a);

/* Empties the list. */
void auths_deinit(struct auths *list);

/* The member for @host, or NULL. */
struct auth *auths_find(const struct auths *list, const char *host);

/* Moves *@a into @list: on success it is empty. 0, AUTHS_TWICE, AUTHS_FULL, -ENOMEM. */
int auths_add(struct auths *list, struct auth *a);

/*
 * Moves all of @from into @list, where they replace what was there for the same host. 0,
 * AUTHS_FULL, -ENOMEM; after a failure @list has a part of them.
 */
int auths_merge(struct auths *list, struct auths *from);

#endif
