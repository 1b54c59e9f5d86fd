/* SPDX-License-Identifier: Apache-2.0 */
/* From what the user asked for to opened images and an entry of the pod manifest for each app. */
#ifndef HOST_MANIFEST_OPEN_IMAGES_H
#define HOST_MANIFEST_OPEN_IMAGES_H

#include "host/manifest/request.h"
#include "images/images.h"
#include "lib/wire/pod_manifest.h"

/* The images of a pod's apps, in their order, and the store that they need. */
struct image_list {
	struct store *store;
	struct image *v[AGENT_APPS_MAX];
	size_t n;
};

/* Closes them. Accepts one that is all zero. */
void image_list_deinit(struct image_list *l);

/*
 * Opens the images of the apps of @q, which are rendered if need be, and adds the apps to @m.
 * @images is the caller's also after a failure. 0, or -errno and @e.
 */
int gather_apps(const struct run_request *q, int data_fd, const char *data_path,
		struct pod_manifest *m, struct image_list *images, struct err *e);

#endif
