/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a volume of the host is, as a name: two with the same one are the same mount of the same
 * file or directory, used in the same way, with the same mounted below.
 */
#ifndef STAGE1_VOLUMES_VOLUME_KEY_H
#define STAGE1_VOLUMES_VOLUME_KEY_H

#include <stdbool.h>

/* Digits of six numbers, 8 + 8 + 16 + 16 + 2 + 16, and five hyphens between them. */
#define VOLUME_KEY_MAX 71

/*
 * The name of @found (volume_source_find()) as a volume that is @read_only or @recursive: it can be
 * that of a file. In another mount namespace than the caller's, one that is made anew for instance,
 * the same directory has another name. What is mounted below while this looks may be in it or not.
 * 0 or -errno.
 */
int volume_key(int found, bool read_only, bool recursive, char ret[VOLUME_KEY_MAX + 1]);

#endif
