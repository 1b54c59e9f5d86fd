/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/list.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/pod/name.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"

/* A whole UUID needs no listing. */
static bool is_there(struct pods *ps, const char *uuid)
{
	struct stat st;
	for (enum pod_phase phase = 0; phase < POD_PHASE_COUNT_; phase++)
		if ((POD_PHASES_VISIBLE & 1U << phase) && pods_phase_fd(ps, phase) >= 0 &&
		    fstatat(pods_phase_fd(ps, phase), uuid, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	return false;
}

int pods_resolve(struct pods *ps, const char *prefix, struct uuid *ret, struct err *e)
{
	char lower[UUID_TEXT_LEN + 1];
	if (!*prefix)
		return err_set(e, -EINVAL, "UUID cannot be empty");
	if (str_copy(lower, sizeof(lower), prefix) < 0)
		return err_set(e, -ENOENT, "no matches found for \"%s\"", prefix);
	for (char *c = lower; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (uuid_is_valid(lower) && is_there(ps, lower))
		return str_copy(ret->text, sizeof(ret->text), lower);
	int r = pod_name_find(ps, prefix, ret, e);
	if (r != POD_GONE)
		return r;
	CLEANUP(pod_list_deinit) struct pod_list l = POD_LIST_INIT;
	r = pods_list(ps, POD_PHASES_VISIBLE, POD_LIST_MAX, &l, e);
	if (r < 0)
		return r;
	size_t matches = 0;
	const struct uuid *match = NULL;
	for (size_t i = 0; i < l.n; i++) {
		if (!str_starts(l.uuids[i].text, lower))
			continue;
		match = &l.uuids[i];
		matches++;
	}
	if (!match)
		return err_set(e, -ENOENT, "no matches found for \"%s\"", prefix);
	if (matches > 1)
		return err_set(e, -EEXIST, "ambiguous uuid, %zu matches", matches);
	*ret = *match;
	return 0;
}

/* ---- reading all ---- */

/* One look at a pod. 0, POD_GONE if it moved on during the look, or -errno. */
static int try_pod(struct pods *ps, const struct uuid *uuid, const struct pods_reader *reader)
{
	struct err e = ERR_INIT;
	cleanup_pod struct pod p = POD_INIT;
	int r = pod_open(ps, uuid->text, &p, &e);
	if (r < 0)
		reader->problem(reader->ctx, uuid, &e);
	if (r != 0 || p.phase == POD_GARBAGE)
		return 0;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	r = pod_info_read(ps, &p, &info);
	return r != 0 ? r : reader->pod(reader->ctx, &info);
}

/* A pod that went away meanwhile is not a problem. It can move on only so many times. */
static int read_pod(struct pods *ps, const struct uuid *uuid, const struct pods_reader *reader)
{
	int r = POD_GONE;
	for (int i = 0; r == POD_GONE && i < POD_PHASE_COUNT_; i++)
		r = try_pod(ps, uuid, reader);
	return r < 0 ? r : 0;
}

/* A pod and its place in the order. */
struct dated {
	const struct uuid *uuid;
	int64_t created_ns;
};

/* The newest first; what has no time yet is new, too. */
static int compare_dated(const void *a, const void *b)
{
	const struct dated *x = a, *y = b;
	if (x->created_ns != y->created_ns)
		return x->created_ns == 0              ? -1
		       : y->created_ns == 0            ? 1
		       : x->created_ns > y->created_ns ? -1
						       : 1;
	return strcmp(x->uuid->text, y->uuid->text);
}

static int64_t creation_time(const struct pods *ps, const struct uuid *uuid)
{
	char path[UUID_TEXT_LEN + sizeof("/" POD_FILE_CREATED)];
	int64_t ns = 0;
	snprintf(path, sizeof(path), "%s/" POD_FILE_CREATED, uuid->text);
	for (enum pod_phase phase = 0; ns == 0 && phase < POD_PHASE_COUNT_; phase++)
		ns = pod_file_time(pods_phase_fd(ps, phase), path);
	return ns;
}

int pods_read_all(struct pods *ps, const struct pods_reader *reader, struct err *e)
{
	CLEANUP(pod_list_deinit) struct pod_list list = POD_LIST_INIT;
	int r = pods_list(ps, POD_PHASES_VISIBLE, POD_LIST_MAX, &list, e);
	if (r < 0 || list.n == 0)
		return r;
	cleanup_free struct dated *order = calloc(list.n, sizeof(*order));
	if (!order)
		return err_sys(e, -ENOMEM, "cannot list pods");
	for (size_t i = 0; i < list.n; i++)
		order[i] = (struct dated){ &list.uuids[i], creation_time(ps, &list.uuids[i]) };
	qsort(order, list.n, sizeof(*order), compare_dated);
	for (size_t i = 0; r == 0 && i < list.n; i++)
		r = read_pod(ps, order[i].uuid, reader);
	return r < 0 ? err_sys(e, r, "cannot list pods") : 0;
}
