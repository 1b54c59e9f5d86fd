/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of a pod in which volumes are that apps bring. Each is mounted once, for all apps
 * that bring it, so that it is one file system to all of them, and what they do to its files meets:
 *
 *   +shared/KEY   the mount, with the name of what it is (volume_key.h); no app is called +shared
 *   APP/SLOT      a link there, for each volume of the app
 *
 * A place to which no link leads has no volume: the mount goes with the last app that has it. What
 * is left of whoever was killed is a place without links, which goes when the next one comes, or
 * the directory of an app, which is removed like any other. Callers take turns.
 */
#ifndef STAGE1_VOLUMES_VOLUME_PLACES_H
#define STAGE1_VOLUMES_VOLUME_PLACES_H

#include <stddef.h>

#include "stage1/volumes/volume_key.h"

/* A volume on its way there. */
struct volume_place {
	const char *slot; /* borrowed */
	char key[VOLUME_KEY_MAX + 1];
	int mount; /* borrowed; attached nowhere, and not used if there is one already */
};

/*
 * Gives @app its @n volumes, in the directory @dir, which may be read-only and is as the caller
 * sees it from its root directory. 0, -EEXIST if the app has some, or -errno: then some of them may
 * be there.
 */
int volume_places_attach(int dir, const char *app, const struct volume_place *v, size_t n);

/*
 * Takes from @app what it has of them, and unmounts what nobody has. Changes the working directory.
 * Can be repeated. 0 or -errno.
 */
int volume_places_detach(int dir, const char *app);

#endif
