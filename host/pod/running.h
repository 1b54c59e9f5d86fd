/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of a pod that runs through its stage1: to end, for another process, for an app's
 * streams, for what it uses.
 */
#ifndef HOST_POD_RUNNING_H
#define HOST_POD_RUNNING_H

#include <stdbool.h>

#include "host/launch/abi.h"
#include "host/launch/stage1.h"
#include "host/pod/info.h"
#include "host/pod/pod.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Return code beside -errno. POD_STOPPED: the pod had ended before. */
enum {
	POD_STOPPED = 1,
};

/* 0 if the pod may be stopped, POD_STOPPED, or -EINVAL and @e if it never ran. */
int pod_may_stop(const struct pod *p, struct err *e);

/*
 * Has @s end the pod, at once with @force, and waits until its lock is free: then it has ended.
 * Returns as pod_may_stop(); -EOPNOTSUPP, -ETIMEDOUT, -errno and @e.
 */
int pod_stop(const struct pod *p, const struct stage1 *s, bool force, bool debug, struct err *e);

/*
 * Waits as long as it takes until the apps of the pod @p of @ps, which runs, have been started. One
 * of rkt's does not tell and is not waited for. Returns as pod_wait_ready().
 */
int pod_wait_apps(struct pods *ps, struct pod *p, const struct stage1 *s, struct err *e);

/* Reads what there is of a pod that runs. 0, or -ENOENT and @e if it has gone meanwhile. */
int pod_read_running(struct pods *ps, const struct pod *p, struct pod_info *ret, struct err *e);

/*
 * Waits for the apps as pod_wait_apps() does, then reads the pod. 0; -EINVAL and @e if it does not
 * run; else as the two.
 */
int pod_enter_wait(struct pods *ps, struct pod *p, const struct stage1 *s, struct pod_info *ret,
		   struct err *e);

/*
 * Becomes the enter entrypoint of @s for the pod, to run the command of @q, which has at most
 * @max_words. Returns only on failure: -errno and @e.
 */
int pod_enter(const struct pod *p, const struct stage1 *s, const struct abi_enter *q,
	      size_t max_words, struct err *e);

/* Becomes the attach entrypoint likewise. */
int pod_attach(const struct pod *p, const struct stage1 *s, const struct abi_attach *q,
	       struct err *e);

/*
 * Appends to @out the JSON document that @s has about the pod @p, as @q says, whose uuid is filled
 * in. 0, or -errno; @e is empty then if stage1 has said why, which for q->host nobody hears.
 */
int pod_stats(const struct pod *p, const struct stage1 *s, struct abi_stats q, struct buf *out,
	      struct err *e);

/*
 * Appends to @out the JSON document of the doctor of @s about the pod. *ret_ok: all is as it should
 * be. 0, or -errno and @e.
 */
int pod_doctor(const struct pod *p, const struct stage1 *s, struct buf *out, bool *ret_ok,
	       struct err *e);

#endif
