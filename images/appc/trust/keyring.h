/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trusted keys that count for a name, read from the directories of the keystore (keystore.h).
 */
#ifndef IMAGES_APPC_TRUST_KEYRING_H
#define IMAGES_APPC_TRUST_KEYRING_H

#include <stdbool.h>
#include <stddef.h>

#include "images/appc/trust/names.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

/* Most keys that count for one name; gpg reads all of them for each signature. */
#define KEYRING_KEYS_MAX ((size_t)256)
/* Most bytes of all these keys, which are in memory at a time; usual ones have some KiB each. */
#define KEYRING_BYTES_MAX ((size_t)16 * 1024 * 1024)
/* Most names of all kinds in one directory of keys: those of keys and of longer prefixes. */
#define KEYRING_NAMES_MAX ((size_t)4096)

/* Below the directories of the configuration. */
#define KEYRING_ROOT_DIR   "trustedkeys/root.d"
#define KEYRING_PREFIX_DIR "trustedkeys/prefix.d"

struct keyring_key {
	char fingerprint[TRUST_FINGERPRINT_MAX + 1]; /* as the file is named */
	char *path;                                  /* owned; for messages */
	char *text;                                  /* owned; not NUL-terminated */
	size_t start, len;                           /* of the armoured key in it */
};

struct keyring {
	struct keyring_key *v; /* owned */
	size_t n;
	size_t bytes; /* of all texts */
};

#define KEYRING_INIT ((struct keyring){ 0 })

/* Frees everything. Accepts KEYRING_INIT. */
void keyring_deinit(struct keyring *ring);

#define cleanup_keyring CLEANUP(keyring_deinit)

/* The key with this fingerprint, or NULL. */
const struct keyring_key *keyring_find(const struct keyring *ring, const char *fingerprint);

/*
 * Reads the keys for @name (trust_check_name() holds; NULL: only those for all names) below the
 * configuration directories @system_dir and @local_dir, either NULL for none. 0 and *ret, which the
 * caller deinits; it is empty where there are no keys. -errno and @e, which names the file or
 * directory, the cause and the remedy, if anything there is not as it must be.
 */
int keyring_read(const char *system_dir, const char *local_dir, const char *name,
		 struct keyring *ret, struct err *e);

/*
 * Opens the directory @path below @dirfd, name by name, following no symbolic link. With @create
 * what is missing is made, mode 0755. The descriptor, -ENOENT, -ENOTDIR for a link or another file,
 * -errno.
 */
int keyring_open_dir(int dirfd, const char *path, bool create);

#endif
