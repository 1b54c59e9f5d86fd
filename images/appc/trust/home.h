/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of gpg's own for the time of one operation, instead of the user's ~/.gnupg.
 *
 * Theory of operation: the directory is made below one that the caller names, mode 0700, with a
 * name that begins with TRUST_HOME_PREFIX and ends in random. In it is a gpg.conf that keeps gpg
 * from starting helper processes, from the network and from opinions about trust; keys are imported
 * into it as needed. It is removed with everything in it when the operation is over, also if husk
 * is killed (worker.h), and locked (lib/os/lock.h) until then. What a power cut leaves behind can
 * be told by the prefix and by a lock that can be had.
 */
#ifndef IMAGES_APPC_TRUST_HOME_H
#define IMAGES_APPC_TRUST_HOME_H

#include <errno.h>
#include <limits.h>

#include "lib/base/err.h"
#include "lib/base/macros.h"

#define TRUST_HOME_PREFIX "gnupg-"

struct gpg_home {
	char path[PATH_MAX];    /* "" while there is none */
	char program[PATH_MAX]; /* of gpg */
	int lock;               /* the directory, locked exclusively */
};

#define GPG_HOME_INIT ((struct gpg_home){ .lock = -EBADF })

/*
 * Finds gpg in PATH and makes a home below @tmp_dir. 0 and *ret, which the caller passes to
 * gpg_home_remove(); TRUST_E_NO_GPG (key.h) or -errno, both with @e.
 */
int gpg_home_make(const char *tmp_dir, struct gpg_home *ret, struct err *e);

/* Removes the directory. Accepts GPG_HOME_INIT. */
void gpg_home_remove(struct gpg_home *home);

/* For struct worker_plan: removes the directory of @home, which stays valid. */
void gpg_home_clear(const struct gpg_home *home);

#define cleanup_gpg_home CLEANUP(gpg_home_remove)

#endif
