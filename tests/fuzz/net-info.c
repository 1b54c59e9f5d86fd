/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The networks of a pod, as its directory says them: what is accepted is the same when it is
 * written.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/net_info.h"

static struct net_info_list list, again;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_buf struct buf out;
	cleanup_buf struct buf twice;
	buf_init(&out, NET_INFO_FILE_MAX);
	buf_init(&twice, NET_INFO_FILE_MAX);
	if (net_info_parse((const char *)data, size, &list) < 0)
		return 0;
	if (list.n > NET_INTERFACES_MAX || net_info_format(&list, &out) < 0 ||
	    net_info_parse(buf_data(&out), buf_len(&out), &again) < 0 ||
	    net_info_format(&again, &twice) < 0 || buf_len(&out) != buf_len(&twice) ||
	    memcmp(buf_data(&out), buf_data(&twice), buf_len(&out)) != 0)
		abort();
	return 0;
}
