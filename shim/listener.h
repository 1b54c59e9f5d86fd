/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket of a shim's server: where it is, and who listens there. `start` makes it, so that its
 * name is taken before anything else happens; the server, a child, then listens itself, and is what
 * SO_PEERCRED names: whoever clears up later finds it by that.
 */
#ifndef SHIM_LISTENER_H
#define SHIM_LISTENER_H

#include <limits.h>

#include "lib/base/err.h"

#define LISTENER_DIR "/run/containerd/s" /* where those of containerd's own shims are */

/*
 * The path of the socket of the container @id: the same for the same containerd (its socket
 * @address) and namespace @ns, and for no other. 0 or -ENAMETOOLONG.
 */
int listener_path(const char *address, const char *ns, const char *id, char ret[PATH_MAX]);

/*
 * Listens at @path, in whose directory only the user may make anything; what a shim that was killed
 * has left there goes. The descriptor; -EADDRINUSE and @e if one is there; -errno and @e.
 */
int listener_open(const char *path, struct err *e);

/* From now on it is the calling process that listens. 0 or -errno. */
int listener_claim(int fd);

/* Kills whoever listens at @path, waits for his end, and removes @path. Harmless if nobody does. */
void listener_end(const char *path);

#endif
