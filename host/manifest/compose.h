/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an image's configuration and the user's wishes to an app of the pod manifest. Pure.
 *
 * The command: Entrypoint and Cmd of the image. Arguments behind "--" replace Cmd and keep
 * Entrypoint; --exec replaces both. (OCI image specification, "Image Configuration"; rkt, whose
 * images had one exec vector, appended the arguments to it.)
 * The environment, weakest first: the host's (--inherit-env), image, --set-env-file, --set-env,
 * --environment.
 */
#ifndef HOST_MANIFEST_COMPOSE_H
#define HOST_MANIFEST_COMPOSE_H

#include <stdbool.h>

#include "images/images.h"
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/wire/pod_manifest.h"

/* Of errors about what may be an argument of the app in front of it; with the word. */
#define POD_TAKEN_FOR_IMAGE "\"%.80s\" is taken for an image (arguments of an app go behind --)"

/* What the user said about one app. Pointers are borrowed and NULL where nothing was said. */
struct app_options {
	const char *image;     /* reference for image_open() */
	const char *signature; /* file with the image's, as in struct fetch_request */
	bool maybe_argument;   /* only its place makes it an image: it may be an app's argument */
	bool instead_of_image; /* what the image's configuration says does not count */
	const char *name;
	const char *exec;
	const char *user;
	const char *group;
	const char *working_dir;
	bool makes_working_dir; /* if it is not there, as an image's is */
	bool read_only_root;
	struct isolators isolators;
	struct stream_modes streams;
	struct pod_tags tags;
	struct strv pre_start, post_stop; /* event handlers of a manifest */
	struct pod_ports ports;           /* of a manifest: what the app listens on */
	struct volume_mounts points;      /* likewise: where it wants volumes */
	struct volume_mounts mounts;      /* where volumes are */
	struct volumes volumes;           /* of which it has these to itself */
	struct strv groups;               /* supplementary, as in struct pod_app */
	struct strv env;                  /* --environment, "NAME=value", each name once */
	struct strv args;                 /* behind "--" */
};

/* Variables for all apps of a pod, "NAME=value", each name once in a list. */
struct pod_env {
	struct strv inherited; /* the host's */
	struct strv file;      /* --set-env-file */
	struct strv set;       /* --set-env */
};

/* The lists become empty and bounded. */
void pod_env_init(struct pod_env *env);
void pod_env_deinit(struct pod_env *env);

/* The lists of @o become empty and bounded by the limits of the pod manifest. */
void app_options_init(struct app_options *o);
void app_options_deinit(struct app_options *o);

/*
 * The default app name: the last component of the image's name without tag and digest, in lower
 * case, everything else than letters and digits turned into single dashes, none at the ends, at
 * most AGENT_NAME_MAX bytes; "app" if nothing is left of letters beyond ASCII. -EINVAL if nothing
 * is left of others.
 */
int compose_app_name(const char *image_name, char out[AGENT_NAME_MAX + 1]);

/*
 * What a volume of an OCI image is called, which has no name but its path: "/var/lib/data" is
 * volume-var-lib-data, as docker2aci called it.
 */
void compose_volume_name(const char *path, char out[AGENT_VOLUME_NAME_MAX + 1]);

/*
 * Fills @ret (initialised by the caller) from the image named @image_name with ID @image_id and
 * configuration @config, the options @o, and the pod's variables @env. 0, or -errno and @e naming
 * image or flag.
 */
int compose_app(const struct app_options *o, const char *image_name, const char *image_id,
		const struct image_config *config, const struct pod_env *env, struct pod_app *ret,
		struct err *e);

/* Whether this husk knows the capabilities and system calls of @i by name. 0, or -EINVAL and @e. */
int compose_check_isolators(const struct isolators *i, struct err *e);

#endif
