/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the output of an app goes instead of its log in the pod directory, as users of rkt say it
 * who gather logs as Kubernetes did: in annotations, of the pod which directory of the host, of the
 * app which file there. Pure.
 */
#ifndef LIB_WIRE_POD_LOGS_H
#define LIB_WIRE_POD_LOGS_H

#include <stdbool.h>

#include "lib/wire/pod_tags.h"

/* Of the pod: this value of the mode, and the directory, an absolute path. */
#define POD_LOGS_ANN_MODE "coreos.com/rkt/experiment/logmode"
#define POD_LOGS_MODE     "k8s-plain"
#define POD_LOGS_ANN_DIR  "coreos.com/rkt/experiment/kubernetes-log-dir"

/* Of the app: a path below that directory. */
#define POD_LOGS_ANN_PATH "coreos.com/rkt/experiment/kubernetes-log-path"

/* Both NULL, or both set; borrowed, and nothing is known of them. */
struct pod_log_place {
	const char *dir, *path;
};

/* What the annotations of the pod and of the app say: none unless it is all there. */
struct pod_log_place pod_log_place(const struct pod_tags *pod, const struct pod_tags *app);

#endif
