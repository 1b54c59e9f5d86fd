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

#include "lib/base/auth.h"
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
/* Longest path or location, without its NUL: the kernel's limit. */
#define CONFIG_PATH_MAX ((size_t)PATH_MAX - 1)
/* Longest setting of images and of stage1; "zstd:19" and "1024T" are long ones. */
#define CONFIG_SETTING_MAX ((size_t)63)

#define CONFIG_NONE "" /* the only member of a list that was said, and is empty */

/* The member of "paths" that only husk knows. */
#define CONFIG_CNI_PLUGINS "cni-plugins"
/* Directories of plugins for networks; distributions have one or two. */
#define CONFIG_CNI_PLUGINS_MAX ((size_t)16)

/* Options of a stage1 in all directories together; one declares at most 32. */
#define CONFIG_OPTIONS_MAX ((size_t)96)
/* Those that a pod may choose itself, of which there are three: a member that only husk knows. */
#define CONFIG_ANNOTATIONS     "annotations"
#define CONFIG_ANNOTATIONS_MAX ((size_t)3)
/* What the root directories of containers are: a member that only husk knows. */
#define CONFIG_ROOTS        "container-roots"
#define CONFIG_ROOTS_LIVE   "live"
#define CONFIG_ROOTS_PACKED "packed"
/* Longest name or version of a stage1; names are like host names with a path behind. */
#define CONFIG_NAME_MAX ((size_t)511)

struct config {
	unsigned parts; /* which are loaded, set by config_load() */
	struct auths auth, docker_auth;
	/* All owned, NULL where nothing was said. */
	char *data, *stage1_images;
	struct strv
		cni_plugins; /* absolute paths, or CONFIG_NONE: no networks; of several layers the last */
	char *stage1_name, *stage1_version; /* both or none */
	char *stage1_location;              /* see location.h */
	struct strv
		stage1_options; /* "name=value", not looked into; of a name the last one counts */
	struct strv stage1_annotations; /* options that pods may name; as cni_plugins */
	char *stage1_roots;             /* CONFIG_ROOTS_LIVE, or another text: packed */
	char *images_compression, *images_max_bytes; /* not looked into */
};

/* Nothing configured, nothing loaded. Allocates nothing. */
void config_init(struct config *c);

/* Frees everything; @c is as after config_init(). */
void config_deinit(struct config *c);

/* Frees the parts @parts, which then are not loaded any more. */
void config_drop(struct config *c, unsigned parts);

/*
 * Moves everything that @layer says into @c, where it replaces what was said of the same host or
 * setting; a name of a stage1 brings its version along. 0, AUTHS_FULL, -ENOMEM; after a failure
 * @c has a part of it.
 */
int config_merge(struct config *c, struct config *layer);

#endif
