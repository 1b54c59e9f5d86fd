/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of husk: what the files below the configuration directories say, merged.
 *
 * Formats and rules are rkt's, so that its files can be moved over. There are three kinds of
 * directories, here called parts, with files of these kinds:
 *
 *	auth.d    auth, dockerAuth   credentials per host
 *	paths.d   paths              data directory, plugins for networks
 *	stage1.d  stage1             which stage1 runs pods
 *	images.d  images             how images are kept (husk's own, not rkt's)
 *
 * A struct config is one layer (what one directory says) or several, merged: a later layer replaces
 * what an earlier one says about the same host or the same setting. parse.h fills a layer from the
 * text of a file, load.h finds the files and merges, print.h writes the result.
 */
#ifndef HOST_CONFIG_CONFIG_H
#define HOST_CONFIG_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"

/* The parts; they are loaded one by one, so that nobody depends on files that he does not need. */
enum {
	CONFIG_AUTH = 1 << 0,
	CONFIG_PATHS = 1 << 1,
	CONFIG_STAGE1 = 1 << 2,
	CONFIG_IMAGES = 1 << 3,
	CONFIG_ALL = CONFIG_AUTH | CONFIG_PATHS | CONFIG_STAGE1 | CONFIG_IMAGES,
};

/* Largest file; one with CONFIG_DOMAINS_MAX hosts of usual length has a sixth of it. */
#define CONFIG_FILE_MAX ((size_t)64 * 1024)
/* Most files that are looked at in one directory: a file per registry, and nobody has that many. */
#define CONFIG_FILES_MAX ((size_t)256)
/* Most hosts of one file. */
#define CONFIG_DOMAINS_MAX ((size_t)256)
/* Most hosts of each kind in all files; hosts are looked for one by one. */
#define CONFIG_HOSTS_MAX ((size_t)1024)
/* Longest host: 253 bytes of DNS name (RFC 1035), a colon and a port. */
#define CONFIG_HOST_MAX ((size_t)259)
/* Longest user, password, token or key; tokens of some services have 2 or 3 KiB. */
#define CONFIG_SECRET_MAX ((size_t)8192)
/* Longest path or location, without its NUL: the kernel's limit. */
#define CONFIG_PATH_MAX ((size_t)PATH_MAX - 1)
/* Longest setting of images and of stage1; "zstd:19" and "1024T" are long ones. */
#define CONFIG_SETTING_MAX ((size_t)63)

/* The member of "paths" that only husk knows. */
#define CONFIG_CNI_PLUGINS "cni-plugins"
#define CONFIG_CNI_NONE    "" /* the only member of an empty list: networks are off */
/* Directories of plugins for networks; distributions have one or two. */
#define CONFIG_CNI_PLUGINS_MAX ((size_t)16)

/* Options of a stage1 in all directories together; one declares at most 32. */
#define CONFIG_OPTIONS_MAX ((size_t)96)
/* Longest name or version of a stage1; names are like host names with a path behind. */
#define CONFIG_NAME_MAX ((size_t)511)

/*
 * CONFIG_E_TWICE: the host is in the list already; CONFIG_E_FULL: CONFIG_HOSTS_MAX reached.
 */
enum {
	CONFIG_E_TWICE = 1,
	CONFIG_E_FULL,
};

enum config_auth_type {
	CONFIG_BASIC,
	CONFIG_OAUTH,
	CONFIG_AWS,
	CONFIG_AUTH_TYPES,
};

/* How to prove at a host who asks. Strings are owned; those of other types are NULL. */
struct config_auth {
	char *host;
	enum config_auth_type type;
	char *user, *password;                   /* basic; all of dockerAuth */
	char *token;                             /* oauth */
	char *access_key_id, *secret_access_key; /* aws */
	char *aws_region;                        /* aws; NULL if not given */
};

/* Members in the order in which they were added; no host twice. */
struct config_auths {
	struct config_auth *v; /* owned */
	size_t n;
};

struct config {
	unsigned parts; /* which are loaded, set by config_load() */
	struct config_auths auth, docker_auth;
	/* All owned, NULL where nothing was said. */
	char *data, *stage1_images;
	struct strv
		cni_plugins; /* absolute paths, or CONFIG_CNI_NONE; of several layers the last */
	char *stage1_name, *stage1_version; /* both or none */
	char *stage1_location;              /* see location.h */
	struct strv
		stage1_options; /* "name=value", not looked into; of a name the last one counts */
	char *images_compression, *images_max_bytes; /* not looked into */
};

/* One credential of a type: its name in JSON, and where a struct config_auth has its char *. */
struct config_credential {
	const char *key;
	size_t offset;
	bool optional;
};

#define CONFIG_CREDENTIALS_MAX 3 /* of aws */

/* A type of credentials. */
struct config_auth_form {
	const char *name;
	struct config_credential credentials[CONFIG_CREDENTIALS_MAX];
	size_t n;
};

/* Indexed by enum config_auth_type. */
extern const struct config_auth_form config_auth_forms[CONFIG_AUTH_TYPES];

/* The credential @c of @a, a char *. */
char **config_auth_value(struct config_auth *a, const struct config_credential *c);

/* Frees what @a owns. Accepts one of zeros. */
void config_auth_deinit(struct config_auth *a);

/* Nothing configured, nothing loaded. Allocates nothing. */
void config_init(struct config *c);

/* Frees everything; @c is as after config_init(). */
void config_deinit(struct config *c);

/* Frees the parts @parts, which then are not loaded any more. */
void config_drop(struct config *c, unsigned parts);

/* The member for @host, or NULL. */
struct config_auth *config_auths_find(const struct config_auths *list, const char *host);

/*
 * Moves *@a into @list: on success it is empty. 0, CONFIG_E_TWICE, CONFIG_E_FULL, -ENOMEM.
 */
int config_auths_add(struct config_auths *list, struct config_auth *a);

/*
 * Moves everything that @layer says into @c, where it replaces what was said of the same host or
 * setting; a name of a stage1 brings its version along. 0, CONFIG_E_FULL, -ENOMEM; after a failure
 * @c has a part of it.
 */
int config_merge(struct config *c, struct config *layer);

#endif
