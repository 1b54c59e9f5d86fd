/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shim does with pods, as the commands of husk do it: each function is for a child of the
 * shim (shim/job), takes its time, and reads and changes the data directory.
 */
#ifndef SHIM_POD_HUSK_H
#define SHIM_POD_HUSK_H

#include <limits.h>
#include <stddef.h>

#include "host/pod/app.h"
#include "host/pod/pod.h"
#include "images/images.h"
#include "lib/base/err.h"
#include "lib/base/uuid.h"
#include "shim/pod/mount_options.h"
#include "shim/spec/oci_spec.h"

/* Which husk: NULL for what is installed. Borrowed. */
struct husk_place {
	const char *config; /* directory of the configuration, in place of /etc/husk */
	const char *data;   /* the data directory, in place of the configured one; absolute */
};

#define HUSK_MOUNTS_MAX 16 /* a snapshot is one or two */

/* The root directory of a container: at @path, where @mounts are to be mounted. Borrowed. */
struct husk_root {
	const char *path;
	const struct husk_mount *mounts;
	size_t n; /* up to HUSK_MOUNTS_MAX */
};

/* The path of the data directory, absolute. 0, or -errno and @e. */
int husk_find_data(const struct husk_place *h, char ret[PATH_MAX], struct err *e);

/*
 * Starts a pod without apps, in the background, for the container or sandbox @s, and writes its
 * UUID to the file @uuid_file as soon as it has a directory. 0 when it is up, with *ret, or -errno
 * and @e.
 */
int husk_start_pod(const struct husk_place *h, const struct oci_spec *s, const char *uuid_file,
		   struct uuid *ret, struct err *e);

/* What became of a root directory. */
struct husk_packed {
	char image_id[IMAGE_ID_LEN + 1];
	bool is_live; /* nothing: it is used as it is, and the image is empty */
};

/*
 * Makes an image of the root directory @root of @s, which is mounted in a mount namespace of the
 * calling process: it must have no other use for that. Of layers that the store knows (layers.h)
 * nothing is read; else standard error gets a line that says what it took. It is live if that is
 * configured (CONFIG_ROOTS), and something can be written to it. 0, or -errno and @e.
 */
int husk_pack_root(const struct husk_place *h, const struct oci_spec *s,
		   const struct husk_root *root, struct husk_packed *ret, struct err *e);

/* What husk_add_app() wants to know beside the specification. Borrowed. */
struct husk_app {
	const char *name;
	const struct husk_packed *packed;
	struct husk_root root;
	bool terminal; /* then all three streams are one */
	/* Without: bit 1U << N if somebody is there for stream N, which is /dev/null otherwise. */
	unsigned int streams;
};

/*
 * Adds the app of @s to the pod. A live root directory is mounted as by husk_pack_root(). 0, or
 * -errno and @e.
 */
int husk_add_app(const struct husk_place *h, const char *uuid, const struct oci_spec *s,
		 const struct husk_app *a, struct err *e);

/*
 * Removes the app, which is killed if it runs. One that is gone, or whose pod has ended, is fine.
 * 0, or -errno and @e.
 */
int husk_remove_app(const struct husk_place *h, const char *uuid, const char *name, struct err *e);

/* Starts the app. 0, or -errno and @e. */
int husk_start_app(const struct husk_place *h, const char *uuid, const char *name, struct err *e);

/*
 * Sends a signal to the app's main process, or to @all. 0; -ESRCH and @e if it does not run; -errno
 * and @e.
 */
int husk_signal_app(const struct husk_place *h, const char *uuid, const char *name, int number,
		    bool all, struct err *e);

/* Has the app stand still, or go on. As husk_signal_app(). */
int husk_pause_app(const struct husk_place *h, const char *uuid, const char *name, bool pause,
		   struct err *e);

/* Changes limits of the app. 0, or -errno and @e. */
int husk_update_app(const struct husk_place *h, const char *uuid, const char *name,
		    const struct limits_change *l, struct err *e);

/*
 * Writes to @text, of @size bytes, what the app uses: the result of app.stats
 * (docs/protocol-agent.md). 0, or -errno and @e.
 */
int husk_count_app(const struct husk_place *h, const char *uuid, const char *name, char *text,
		   size_t size, struct err *e);

/*
 * Joins standard streams with those of the app, by becoming another program: of those of @streams
 * (bit 1U << N for descriptor N). Of an app with a terminal @control_fd is the socket that says its
 * size, else 0. Returns only on failure: -errno and @e.
 */
int husk_attach_app(const struct husk_place *h, const char *uuid, const char *name,
		    unsigned int streams, int control_fd, struct err *e);

/*
 * Runs the further process @s in the app likewise, with all standard streams, or a @terminal
 * between the first two. It is steered through @control_fd. Returns only on failure.
 */
int husk_exec(const struct husk_place *h, const char *uuid, const char *name,
	      const struct oci_spec *s, bool terminal, int control_fd, struct err *e);

/* The pods of the data directory; for the shim itself, as it takes no time. 0, or -errno and @e. */
int husk_open_pods(const struct husk_place *h, struct pods **ret, struct err *e);

/* Ends the pod, at once. One that has ended is fine. 0, or -errno and @e. */
int husk_stop_pod(const struct husk_place *h, const char *uuid, struct err *e);

/* Ends the pod, at once, and removes it. One that is gone is fine. 0, or -errno and @e. */
int husk_end_pod(const struct husk_place *h, const char *uuid, struct err *e);

#endif
