/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes: directories that outlive an app, or are shared by apps of a pod, and where apps see
 * them. Members "volumes" of a pod manifest, "mounts" of its apps and "mountPoints" of app sections
 * (appc spec 0.8.11, "Pod Manifest Schema" and "Image Manifest Schema").
 */
#ifndef LIB_WIRE_VOLUMES_H
#define LIB_WIRE_VOLUMES_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/wire/agent.h"

#define VOLUMES_MAX ((size_t)64) /* of a pod, and of one app's own */

/* Where a volume is made, beside appc's kinds: the members "kind" and "medium". */
enum volume_kind {
	VOLUME_EMPTY,  /* "empty": on the pod's disk */
	VOLUME_MEMORY, /* "empty" of medium "memory": in the pod's memory */
	/*
	 * "empty" of medium "image": what the image of the one app that mounts it has there, which
	 * the app can change. Nobody has asked for it but the image.
	 */
	VOLUME_IMAGE,
	VOLUME_HOST,  /* "host": a directory or file of the host */
	VOLUME_BLOCK, /* "block", which is husk's: a file system in a file or device of the host */
};

/* What is in the file of a VOLUME_BLOCK: said by people, never guessed from its content. */
enum volume_format {
	VOLUME_RAW,
	VOLUME_QCOW2,
};

struct volume {
	char name[AGENT_VOLUME_NAME_MAX + 1];
	enum volume_kind kind;
	bool read_only, says_read_only; /* the second: that it says so, be it yes or no */
	int64_t mode, uid, gid;         /* of an empty directory */
	int64_t size;                   /* of VOLUME_MEMORY, in bytes; 0: half of the memory */
	char *source;   /* of VOLUME_HOST, VOLUME_BLOCK: an absolute path; owned; else NULL */
	bool recursive; /* of VOLUME_HOST: with what is mounted below */
	bool no_cache;  /* likewise: a pod sees what the host changes at once, always */
	enum volume_format format; /* of VOLUME_BLOCK */
};

/* In the order in which they were added. All zero: none. */
struct volumes {
	struct volume *v; /* owned */
	size_t n;         /* up to VOLUMES_MAX */
};

/* A place in an app's root: where a volume is, or where its image wants one called so. */
struct volume_mount {
	char volume[AGENT_VOLUME_NAME_MAX + 1];
	char *path; /* owned; as volume_path_clean() makes it */
	bool read_only, no_exec, no_suid;
};

/* Each path once. All zero: none. */
struct volume_mounts {
	struct volume_mount *v; /* owned */
	size_t n;               /* up to AGENT_MOUNTS_MAX */
};

/*
 * The shortest path that means the same if no link is on the way (".", "..", "//"), owned by the
 * caller. 0; -EINVAL if it is not absolute, has more than AGENT_PATH_MAX bytes or is not UTF-8;
 * -EPERM for what the pod itself mounts: /dev, and /proc and /sys with all below; -ENOMEM.
 */
int volume_path_clean(const char *path, char **ret);

/* Whether the clean @path is the root directory: the volume is it, in place of an image. */
bool volume_path_is_root(const char *path);

/* What a volume is of which nothing is said. volume_deinit() frees what it holds. */
void volume_init(struct volume *v);
void volume_deinit(struct volume *v);

/* Whether it is something of the host, which has a source. */
bool volume_has_source(const struct volume *v);

/* Frees the list, which is empty then. Accepts NULL. */
void volumes_deinit(struct volumes *v);

/* The volume @name, borrowed, or NULL. */
const struct volume *volumes_find(const struct volumes *v, const char *name);

/* Whether one is of that kind. */
bool volumes_have(const struct volumes *v, enum volume_kind kind);

/* Adds a copy of one, or of all of @from. 0, -EEXIST (the name), -E2BIG, -ENOMEM. */
int volumes_add(struct volumes *v, const struct volume *volume);
int volumes_copy(struct volumes *v, const struct volumes *from);

/* Likewise. */
void volume_mounts_deinit(struct volume_mounts *m);

/* The mount at the clean path @path, or as the root directory; borrowed, or NULL. */
const struct volume_mount *volume_mounts_find(const struct volume_mounts *m, const char *path);
const struct volume_mount *volume_mounts_root(const struct volume_mounts *m);

/*
 * Adds one at @path, which is cleaned, or copies of all of @from whose paths are free. Where an
 * image wants one (a point) it can be in no /dev, and not be the root directory: -EPERM. 0; -EEXIST
 * if the path is taken, -E2BIG, -EINVAL, -EPERM, -ENOMEM.
 */
int volume_mounts_add(struct volume_mounts *m, const char *volume, const char *path,
		      bool read_only);
int volume_points_add(struct volume_mounts *m, const char *volume, const char *path,
		      bool read_only);
int volume_mounts_copy(struct volume_mounts *m, const struct volume_mounts *from);

/*
 * A kind, and for "empty" what it is made of: "", "memory" or "image". 0, or -EINVAL if there is no
 * such kind.
 */
int volume_kind_parse(const char *kind, const char *medium, enum volume_kind *ret);

/* "raw", "qcow2". 0 or -EINVAL. */
int volume_format_parse(const char *s, enum volume_format *ret);

/*
 * Sets the source. 0; -EINVAL if it is no absolute path of at most AGENT_PATH_MAX bytes in UTF-8;
 * -ENOMEM.
 */
int volume_set_source(struct volume *v, const char *path);

/* Permissions in octal: "755", "0755", "01777". 0 or -EINVAL. */
int volume_mode_parse(const char *s, int64_t *ret);

/* Adds the member "volumes" to @pod, unless it would be empty. 0 or -ENOMEM. */
int volumes_write(const struct volumes *v, struct json_object *pod);

/* Adds what it says. 0; -EBADMSG, -EEXIST, -E2BIG, -ENOMEM with @e. */
int volumes_read(struct json_object *pod, struct volumes *v, struct err *e);

/*
 * The same of the member "mounts" of an app in a pod manifest; the app's own volumes are members
 * "appVolume" in there.
 */
int app_mounts_write(const struct volume_mounts *m, const struct volumes *own,
		     struct json_object *entry);
int app_mounts_read(struct json_object *entry, struct volume_mounts *m, struct volumes *own,
		    struct err *e);

/*
 * The same of the member "mountPoints" of an app section. A place where there can be no volume is
 * none when it is read: an image has nobody to answer.
 */
int mount_points_write(const struct volume_mounts *m, struct json_object *run);
int mount_points_read(struct json_object *run, struct volume_mounts *m, struct err *e);

#endif
