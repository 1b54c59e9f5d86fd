/* SPDX-License-Identifier: Apache-2.0 */
/* What has to be undone: what is accepted is the same when it is written and read again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "stage1/net/cni/state.h"

static void check(bool property)
{
	if (!property)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(cni_state_deinit) struct cni_state s;
	CLEANUP(cni_state_deinit) struct cni_state again;
	cleanup_buf struct buf out;
	cleanup_buf struct buf twice;
	struct err e = ERR_INIT;
	cni_state_init(&s);
	cni_state_init(&again);
	buf_init(&out, CNI_STATE_MAX);
	buf_init(&twice, CNI_STATE_MAX);
	if (cni_state_parse((const char *)data, size, &s, &e) < 0) {
		check(e.text[0]);
		return 0;
	}
	check(uuid_is_valid(s.container.text) && s.attachments.n <= NET_INTERFACES_MAX);
	for (size_t i = 0; i < s.attachments.n; i++) {
		const struct cni_attachment *a = &s.attachments.v[i];
		check(a->if_name[0] && cni_config_plugins(&a->config) > 0);
		for (size_t k = 0; k < a->paths.n; k++)
			check(a->paths.v[k][0] == '/');
	}
	check(cni_state_format(&s, &out) == 0);
	check(cni_state_parse(buf_data(&out), buf_len(&out), &again, &e) == 0);
	check(cni_state_format(&again, &twice) == 0 && buf_len(&out) == buf_len(&twice));
	check(memcmp(buf_data(&out), buf_data(&twice), buf_len(&out)) == 0);
	return 0;
}
