/* SPDX-License-Identifier: Apache-2.0 */
/* Whether layers are what their digests say, without rendering them. */
#ifndef HOST_RENDER_CHECK_H
#define HOST_RENDER_CHECK_H

#include "host/render/render.h"
#include "lib/base/err.h"

/*
 * Reads and decompresses all layers of @job, in a confined child, and compares their digests; its output
 * is not used. 0, or -errno with @e (-EBADMSG: a digest does not fit).
 */
int check_layers_confined(const struct render_job *job, struct err *e);

#endif
