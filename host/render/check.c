/* SPDX-License-Identifier: Apache-2.0 */
#include "host/render/check.h"

#include <errno.h>

#include "host/image/oci.h"
#include "host/render/confine.h"
#include "host/render/stream.h"

static int check_layer(const struct render_layer *l, uint64_t *bytes_left, struct err *e)
{
	CLEANUP(stream_freep) struct stream *s = NULL;
	int r = stream_new(&l->span, l->kind != LAYER_OCI, *bytes_left, &s, e);
	if (r < 0 || !s)
		return r;
	r = stream_verify(s, l->has_blob ? &l->blob : NULL, &l->diff_id, e);
	*bytes_left -= stream_bytes(s);
	return r;
}

static int check_child(void *ctx, struct buf *result, struct err *e)
{
	const struct render_job *job = ctx;
	uint64_t bytes_left = job->bytes_max;
	(void)result;
	for (size_t i = 0; i < job->n_layers; i++)
		if (check_layer(&job->layers[i], &bytes_left, e) < 0)
			return err_context(e, "layer %zu of %zu (sha256:%.12s...)", i + 1,
					   job->n_layers, job->layers[i].diff_id.hex);
	return 0;
}

int check_layers_confined(const struct render_job *job, struct err *e)
{
	int fds[OCI_LAYERS_MAX];
	if (job->n_layers > OCI_LAYERS_MAX)
		return err_set(e, -E2BIG, "more than %zu layers", OCI_LAYERS_MAX);
	for (size_t i = 0; i < job->n_layers; i++)
		fds[i] = job->layers[i].span.fd;
	struct render_job copy = *job;
	CLEANUP(buf_deinit) struct buf result;
	buf_init(&result, CONFINE_RESULT_MAX);
	return confine_run("verifying", check_child, &copy, fds, job->n_layers, &result, e);
}
