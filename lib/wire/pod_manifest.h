/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod manifest: what stage0 tells stage1 to run. An appc pod manifest (appc spec 0.8.11,
 * "Pod Manifest Schema"), of which husk uses the fields below; unknown fields are ignored, unknown
 * isolators are not (lib/wire/isolators.h).
 */
#ifndef LIB_WIRE_POD_MANIFEST_H
#define LIB_WIRE_POD_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/wire/agent.h"
#include "lib/wire/isolators.h"
#include "lib/wire/pod_image.h"
#include "lib/wire/pod_ports.h"
#include "lib/wire/pod_tags.h"
#include "lib/wire/stream_modes.h"
#include "lib/wire/sysctls.h"
#include "lib/wire/volumes.h"

/*
 * Largest manifest file: room for an app with all that a program can be given, one member on each
 * line, or for every app with a modest environment.
 */
#define POD_MANIFEST_SIZE_MAX ((size_t)16 * 1024 * 1024)

/* Objects and lists in it: json-c spends some 800 bytes on each, which takes two of text. */
#define POD_MANIFEST_CONTAINERS_MAX ((size_t)512 * 1024)

#define POD_ANNOTATIONS_MAX (POD_TAGS_MAX + 8) /* somebody's notes, and husk's own */

/* Annotations of husk: "true", a name of enum pod_exit_policy, a host name. */
#define POD_ANN_PREFIX      "husk/"
#define POD_ANN_MUTABLE     "husk/mutable"
#define POD_ANN_EXIT_POLICY "husk/exit-policy"
#define POD_ANN_HOSTNAME    "husk/hostname"
#define POD_ANN_USERS       "husk/private-users"

/*
 * One of an app: how many leading members of its command are the entrypoint, the rest being
 * arguments that somebody may replace. Without it all are.
 */
#define POD_ANN_ENTRYPOINT "husk/entrypoint"

/*
 * Another: "user", "group" or "user,group", which the app leaves to its image's /etc/passwd. appc
 * wants both said, so the manifest has the one that is likely.
 */
#define POD_ANN_UNSET "husk/unset"

/*
 * Another: "given" if whoever runs the app has named its working directory, which then must be
 * there. An image's own is made if it is missing.
 */
#define POD_ANN_WORKING_DIR "husk/working-dir"

/* Which ends of apps end the pod. */
enum pod_exit_policy {
	POD_EXIT_DEFAULT,     /* any-failure, of a mutable pod never */
	POD_EXIT_ANY_FAILURE, /* the first with another status than 0, or the last */
	POD_EXIT_ALL_EXITED,  /* the last */
	POD_EXIT_NEVER,       /* none: only "husk stop" */
	POD_EXIT_COUNT_,
};
/* The largest group number; the one above means "no change" to Linux. */
#define POD_GROUP_MAX UINT32_C(4294967294)

struct pod_app {
	char name[AGENT_NAME_MAX + 1];
	char image_name[POD_IMAGE_NAME_MAX + 1]; /* for people; may be empty */
	char image_id[POD_IMAGE_ID_MAX +
		      1]; /* "sha512-HEX" as appc has it; "sha256-HEX" in old ones */
	char image_digest[POD_IMAGE_ID_MAX +
			  1];         /* "sha256:HEX" of an OCI image's manifest, or "" */
	struct strv exec;             /* at least one member */
	size_t n_entrypoint;          /* of these: annotation POD_ANN_ENTRYPOINT */
	struct strv env;              /* "NAME=value" */
	char cwd[AGENT_PATH_MAX + 1]; /* absolute */
	bool cwd_is_there;            /* else it is made: annotation POD_ANN_WORKING_DIR */
	char user[AGENT_USER_MAX + 1];
	char group[AGENT_USER_MAX + 1];
	struct strv groups;               /* supplementary: numbers, decimal */
	struct strv pre_start, post_stop; /* event handlers; empty: none */
	struct pod_ports ports;           /* that it says it listens on */
	struct volume_mounts points;      /* where its image wants volumes */
	struct volume_mounts mounts;      /* where they are */
	struct volumes volumes;           /* of which it has these to itself */
	bool read_only_root;
	struct isolators isolators;
	struct stream_modes streams; /* annotations */
	struct pod_tags tags;
};

struct pod_manifest {
	struct pod_app *apps; /* owned */
	size_t n_apps;        /* up to AGENT_APPS_MAX; at least 1 unless the pod is mutable */
	bool is_mutable;      /* apps come and go while it runs: annotation POD_ANN_MUTABLE */
	struct pod_tags tags;
	struct pod_ports ports;           /* of the host that lead into the pod; none has port 0 */
	struct volumes volumes;           /* for all apps */
	enum pod_exit_policy exit_policy; /* annotation POD_ANN_EXIT_POLICY */
	/* Of a prepared pod, unless run-prepared says another; "": none. POD_ANN_HOSTNAME. */
	char hostname[AGENT_HOSTNAME_MAX + 1];
	struct strv sysctls; /* "NAME=VALUE" (lib/wire/sysctls.h) */
	bool private_users;  /* of a prepared pod, as the user said: annotation POD_ANN_USERS */
};

/* An app with empty lists, ready to be filled. */
void pod_app_init(struct pod_app *app);
void pod_app_deinit(struct pod_app *app);

/* What people call the image: "sha256-HEX" if it has an OCI digest, else its image_id. */
void pod_app_image_id(const struct pod_app *app, char out[POD_IMAGE_ID_MAX + 1]);

/* An empty manifest. */
void pod_manifest_init(struct pod_manifest *m);
void pod_manifest_deinit(struct pod_manifest *m);

/*
 * Appends an app and takes its contents over (@app is empty afterwards). -EEXIST if its name is
 * taken, -E2BIG at AGENT_APPS_MAX, -ENOMEM.
 */
int pod_manifest_add(struct pod_manifest *m, struct pod_app *app);

/* Takes the app @name out. -ENOENT. */
int pod_manifest_remove(struct pod_manifest *m, const char *name);

/* "any-failure", "all-exited", "never". 0 or -EINVAL. */
int pod_exit_policy_parse(const char *s, enum pod_exit_policy *ret);

/* What the policy of @m means: never POD_EXIT_DEFAULT. */
enum pod_exit_policy pod_manifest_exit_policy(const struct pod_manifest *m);

/* The app @name, or NULL; borrowed from @m. */
const struct pod_app *pod_manifest_find(const struct pod_manifest *m, const char *name);

/*
 * Whether somebody may use the pod's volume @v: an app has it, or one that comes may. And whether
 * nobody may write to it, so that the host can see to that.
 */
bool pod_manifest_uses_volume(const struct pod_manifest *m, const struct volume *v);
bool pod_manifest_only_reads_volume(const struct pod_manifest *m, const struct volume *v);

/* The volume that @app calls @name: its own, or the pod's; borrowed, or NULL. */
const struct volume *pod_manifest_volume(const struct pod_manifest *m, const struct pod_app *app,
					 const char *name);

/*
 * The text of the manifest with a final newline, owned by the caller. 0, -ENOMEM, -EILSEQ if a
 * string is not UTF-8, -EMSGSIZE beyond POD_MANIFEST_SIZE_MAX.
 */
int pod_manifest_format(const struct pod_manifest *m, char **ret);

/*
 * Adds the variables of the member "environment" of @run, an appc app section, to @env as
 * "NAME=value". 0, -EBADMSG, -E2BIG, -ENOMEM, with @e.
 */
int pod_manifest_read_env(struct json_object *run, struct strv *env, struct err *e);

/*
 * Adds the numbers of the member "supplementaryGIDs" of @run to @groups. Errors as above.
 */
int pod_manifest_read_groups(struct json_object *run, struct strv *groups, struct err *e);

/*
 * Takes the event handlers of the member "eventHandlers" of @run, each at most once. 0; -EBADMSG,
 * -ENOMEM, or -EOPNOTSUPP for another event, with @e.
 */
int pod_manifest_read_handlers(struct json_object *run, struct strv *pre_start,
			       struct strv *post_stop, struct err *e);

/*
 * Takes what the member "annotations" of @entry, an app in a pod manifest, says about its streams.
 * 0, or -EBADMSG and @e.
 */
int pod_manifest_read_streams(struct json_object *entry, struct stream_modes *ret, struct err *e);

/*
 * Takes which of user and group @entry says only because appc wants it (POD_ANN_UNSET). 0, or
 * -EBADMSG and @e.
 */
int pod_manifest_read_unset(struct json_object *entry, bool *ret_user, bool *ret_group,
			    struct err *e);

/* Appends the number of a group to @groups. 0; -EINVAL, -E2BIG, -ENOMEM with @e. */
int pod_app_add_group(struct strv *groups, const char *text, struct err *e);

/* Parses the JSON of a manifest within its limits. As json_parse(). */
int pod_manifest_json(const char *text, size_t len, struct json_object **ret);

/*
 * Reads a manifest of @len bytes. 0, or -EBADMSG, -EEXIST (an app's name twice), -EOPNOTSUPP (an
 * isolator that is not known), -ENOMEM with @e (may be NULL) naming the field that is wrong.
 */
int pod_manifest_parse(const char *text, size_t len, struct pod_manifest *ret, struct err *e);

#endif
