/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real keys and signatures for tests, made by make-keys.sh once per test program, in a directory of
 * their own. HOME and GNUPGHOME of the program are then directories that must stay as they are.
 */
#ifndef TESTS_UNIT_IMAGES_APPC_TRUST_KEYS_H
#define TESTS_UNIT_IMAGES_APPC_TRUST_KEYS_H

#include <stddef.h>

#include "images/appc/trust/key.h"
#include "lib/base/err.h"

/* For cmocka, around the group; the program becomes the reaper of everything below it. */
int keys_setup(void **state);
int keys_teardown(void **state);

/* A descriptor of the file @name, above 2; the caller closes it. */
int keys_open(const char *name);

/* The content of the file @name, owned by the caller. */
char *keys_read(const char *name, size_t *ret_len);

/* The fingerprint of the key NAME.asc of those that can be trusted, e.g. "alice". */
const char *keys_fingerprint(const char *name);

/* A directory in which nothing is ever left: what is in it now is a failure. */
const char *keys_tmp(void);

/* Waits for processes that end by themselves. */
void keys_wait_for_processes(void);

/* Fails unless the directory of keys_tmp(), HOME and GNUPGHOME are empty and no process is left. */
void keys_check_clean(void);

#endif
