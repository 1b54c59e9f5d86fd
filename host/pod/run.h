/* SPDX-License-Identifier: Apache-2.0 */
/* `husk run`: from images to a running stage1. */
#ifndef HOST_POD_RUN_H
#define HOST_POD_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "host/fetch/fetch.h"
#include "host/launch/stage1.h"
#include "host/pod/compose.h"
#include "host/pod/pod.h"
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/wire/pod_manifest.h"

/* Most options of stage1 on one command line; it knows about ten. */
#define RUN_STAGE1_OPTIONS_MAX 64

/* What to run. Pointers are borrowed unless said otherwise. */
struct run_request {
	struct app_options *apps; /* owned */
	size_t n_apps;      /* up to AGENT_APPS_MAX; when complete at least 1, or 0 if mutable */
	struct pod_env env; /* for all apps */
	struct strv stage1_options;   /* "--name=value", each of which the stage1 declares */
	struct json_object *manifest; /* owned; what @apps borrow from if they were declared */
	bool is_mutable;              /* without apps at first; they come and go while it runs */
	enum pod_exit_policy exit_policy;
	struct pod_tags tags; /* of the pod */
	bool interactive;
	bool detach; /* not together with interactive */
	bool debug;
	bool all_capabilities;        /* of all apps, whatever is said of them */
	bool no_seccomp;              /* likewise */
	bool open_paths;              /* likewise: nothing of /proc and /sys is protected */
	const char *hostname;         /* NULL leaves it to stage1 */
	const char *name;             /* of the pod, valid; NULL: it has none */
	const char *uuid_file;        /* gets the pod's UUID, or NULL */
	int64_t start_ns;             /* CLOCK_MONOTONIC when husk started */
	enum pull_policy pull_policy; /* of all images */
	struct fetch_options fetch;   /* also where notes go */
	/* Told of each option, as "--memory", that stage1 does not know; may be NULL. */
	void (*warn)(const void *ctx, const char *option);
	const void *warn_ctx;
	struct store_settings images; /* how they are kept */
};

/* An empty request. Allocates nothing. */
void run_request_init(struct run_request *q);

/* Frees what @q owns. */
void run_request_deinit(struct run_request *q);

/*
 * Adds an app for the image reference @image. *ret_app is valid until the next call. -E2BIG at
 * AGENT_APPS_MAX, -ENOMEM.
 */
int run_request_add_app(struct run_request *q, const char *image, struct app_options **ret_app);

/* Return code beside -errno. RUN_DETACHED: the pod is up, in the background. */
enum {
	RUN_DETACHED = 1,
};

/*
 * Opens the images, makes the pod below the data directory @data_fd (@data_path is for messages)
 * and becomes the run entrypoint of @stage1, which inherits the pod's lock. Returns only on failure, with -errno and @e: no pod is left then, unless
 * the failure was the last step, the exec; in that case the pod has exited. A detached pod is run by
 * another process: RUN_DETACHED with the UUID in *ret as soon as it is up, -errno and @e if it ended before.
 */
int pod_run(const struct run_request *q, int data_fd, const char *data_path,
	    const struct stage1 *stage1, struct uuid *ret, struct err *e);

/*
 * The same up to the point where the pod is complete: it waits in phase prepared for
 * pod_run_prepared(), and survives a power cut. What belongs to the run only is not looked at. 0 with
 * the UUID in *ret, or -errno and @e; nothing is left then.
 */
int pod_prepare_only(const struct run_request *q, int data_fd, const char *data_path,
		     const struct stage1 *stage1, struct uuid *ret, struct err *e);

/*
 * Runs the pod @p of @ps as pod_run() does. Of @q only what belongs to the run is looked at. Of
 * several who try, one wins; the others get -EINVAL and @e, as for a pod that is not prepared.
 * Returns as pod_run() does.
 */
int pod_run_prepared(const struct run_request *q, struct pods *ps, struct pod *p,
		     const char *data_path, const struct stage1 *stage1, struct err *e);

#endif
