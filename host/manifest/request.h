/* SPDX-License-Identifier: Apache-2.0 */
/* What `husk run` and its like are asked for. */
#ifndef HOST_MANIFEST_REQUEST_H
#define HOST_MANIFEST_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "host/launch/network.h"
#include "host/manifest/compose.h"
#include "images/images.h"
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
	struct network_wishes network;
	struct pod_ports ports;      /* of the host; those with port 0 go by name */
	struct strv sysctls;         /* of the pod, "NAME=VALUE" (lib/wire/sysctls.h) */
	struct volumes volumes;      /* of the pod */
	struct volume_mounts mounts; /* of all apps that have nothing else there */
	bool is_mutable;             /* without apps at first; they come and go while it runs */
	enum pod_exit_policy exit_policy;
	struct pod_tags tags; /* of the pod */
	bool interactive;
	bool detach; /* not together with interactive */
	bool debug;
	bool all_capabilities;        /* of all apps, whatever is said of them */
	bool no_seccomp;              /* likewise */
	bool open_paths;              /* likewise: nothing of /proc and /sys is protected */
	const char *hostname;         /* NULL leaves it to stage1 */
	bool private_users;           /* what is root in the pod must not be root of the host */
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

#endif
