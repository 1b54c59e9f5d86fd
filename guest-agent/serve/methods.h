/* SPDX-License-Identifier: Apache-2.0 */
/* The table of methods: decodes parameters, calls the pod, encodes results. */
#ifndef GUEST_AGENT_SERVE_METHODS_H
#define GUEST_AGENT_SERVE_METHODS_H

#include "guest-agent/serve/session_env.h"
#include "lib/wire/rpc.h"

/*
 * Performs the request @msg for @caller. 0 and the result in *ret (NULL: an empty one; owned by the
 * caller), FAULT_SET and @f, or POD_PENDING: the pod answers later.
 */
int methods_call(struct session_env *env, const struct rpc_msg *msg, struct pod_caller caller,
		 struct json_object **ret, struct fault *f);

/* Fills in what the agent and its kernel call themselves. */
void methods_describe(struct agent_hello_reply *r);

#endif
