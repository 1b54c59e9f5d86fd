/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/used_images.h"

#include <errno.h>
#include <stdlib.h>

#include "host/pod/info.h"
#include "host/pod/pod_stage1.h"
#include "images/images.h"

void used_images_deinit(struct used_images *used)
{
	free(used->ids);
}

/* Adds an image, unless the store has it not. */
static int add_used(void *ctx, const char *image_id)
{
	struct used_images *used = ctx;
	struct digest id;
	int r = find_id(used->store, image_id, &id, NULL);
	if (r < 0)
		return r == -ENOENT || r == -EINVAL ? 0 : r;
	if (used->n == used->alloc) {
		size_t alloc = MAX(2 * used->alloc, (size_t)64);
		struct digest *ids = reallocarray(used->ids, alloc, sizeof(*ids));
		if (!ids)
			return -ENOMEM;
		used->ids = ids;
		used->alloc = alloc;
	}
	used->ids[used->n++] = id;
	return 0;
}

/*
 * Adds the images of one pod; one that is being deleted needs none. The group that shares the store
 * may not read manifests, and must not remove what their owner's pods use.
 */
static int add_pod(struct used_images *used, struct pods *ps, const struct uuid *uuid)
{
	struct err e = ERR_INIT;
	struct pod_stage1 stage1;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	int r = pod_open(ps, uuid->text, &p, &e);
	if (r == 0 && pod_stage1_read(&p, &stage1, &e) == 0 && stage1.image[0])
		r = add_used(used, stage1.image);
	if (r == 0)
		r = pod_info_read(ps, &p, &info);
	if (r != 0)
		return r == -ENOMEM ? r : 0;
	if (info.problem.code == -EACCES) {
		r = pod_each_image(&p, add_used, used);
		return r < 0 && pod_check_place(ps, &p, NULL) == POD_GONE ? 0 : r;
	}
	for (size_t i = 0; r == 0 && i < info.n_apps; i++)
		r = add_used(used, info.apps[i].image_id);
	return r;
}

int pods_used_images(struct pods *ps, struct used_images *used, struct err *e)
{
	CLEANUP(pod_list_deinit) struct pod_list list = POD_LIST_INIT;
	int r = pods_list(ps, POD_PHASES_VISIBLE, POD_LIST_MAX, &list, e);
	for (size_t i = 0; r == 0 && i < list.n; i++) {
		r = add_pod(used, ps, &list.uuids[i]);
		if (r < 0)
			err_sys(e, r,
				"cannot read which images pod \"%s\" uses (its owner can collect "
				"garbage)",
				list.uuids[i].text);
	}
	return r;
}
