/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flock(2) on pod directories: the only synchronisation between husk processes.
 *
 * A lock belongs to the open file description, so a descriptor that is inherited over exec keeps
 * it, and the death of the last holder releases it.
 */
#ifndef LIB_OS_LOCK_H
#define LIB_OS_LOCK_H

/* LOCK_TAKEN: somebody else holds a conflicting lock. */
enum {
	LOCK_TAKEN = 1,
};

/* Takes the exclusive lock, waiting for it. 0 or -errno. */
int lock_exclusive(int fd);

/* Takes the exclusive lock if nobody holds any. 0, LOCK_TAKEN or -errno. */
int lock_try_exclusive(int fd);

/* Takes a shared lock, waiting for it. 0 or -errno. */
int lock_shared(int fd);

/* Takes a shared lock if nobody holds the exclusive one. 0, LOCK_TAKEN or -errno. */
int lock_try_shared(int fd);

/*
 * LOCK_TAKEN if somebody holds the exclusive lock, else 0, or -errno. @fd has no lock afterwards.
 */
int lock_probe(int fd);

/* Releases the lock. 0 or -errno. */
int lock_release(int fd);

#endif
