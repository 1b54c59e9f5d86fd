/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/pod_stage1.h"

#include <errno.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/os/file.h"
#include "lib/wire/stage1.h"

#define FILE_MODE 0640
#define ABI_MAX   ((size_t)16) /* "husk" and "rkt" are short */

static int find_abi(const char *name, enum stage1_abi *ret)
{
	for (enum stage1_abi abi = 0; abi < STAGE1_ABI_COUNT_; abi++) {
		if (strcmp(stage1_abi_name(abi), name) != 0)
			continue;
		*ret = abi;
		return 0;
	}
	return -EBADMSG;
}

static int read_members(struct json_object *obj, struct pod_stage1 *s)
{
	const char *dir = NULL, *abi = NULL, *image = "", *flavor = "";
	int r = json_get_str(obj, "path", sizeof(s->dir) - 1, &dir);
	if (r == 0 && dir[0] != '/')
		return -EBADMSG;
	if (r == 0)
		r = json_get_str(obj, "interface", ABI_MAX, &abi);
	if (r == 0)
		r = find_abi(abi, &s->abi);
	if (r == 0)
		r = json_get_int(obj, "version", 1, INT32_MAX, &s->version);
	if (r == 0 && json_get_str(obj, "image", sizeof(s->image) - 1, &image) == -EBADMSG)
		r = -EBADMSG;
	if (json_get_str(obj, "flavor", STAGE1_NAME_MAX, &flavor) == -EBADMSG ||
	    (flavor[0] && !str_is_printable(flavor, STAGE1_NAME_MAX)))
		r = -EBADMSG;
	if (r < 0)
		return -EBADMSG;
	r = str_copy(s->flavor, sizeof(s->flavor), flavor);
	if (r == 0)
		r = str_copy(s->dir, sizeof(s->dir), dir);
	return r < 0 ? r : str_copy(s->image, sizeof(s->image), image);
}

int pod_stage1_parse(const char *text, size_t len, struct pod_stage1 *ret, struct err *e)
{
	cleanup_json struct json_object *obj = NULL;
	struct pod_stage1 s = { .dir = "" };
	int r = json_parse(text, len, &obj);
	if (r == 0)
		r = read_members(obj, &s);
	if (r < 0)
		return err_set(e, r,
			       "its file \"" POD_FILE_STAGE1 "\" does not say which stage1 "
			       "it was made with");
	*ret = s;
	return 0;
}

static int format(const struct stage1 *s, struct buf *out)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	int r = json_put_str(obj, "path", s->dir);
	if (r == 0)
		r = json_put_str(obj, "interface", stage1_abi_name(s->abi));
	if (r == 0)
		r = json_put_int(obj, "version", s->version);
	if (r == 0 && s->image[0])
		r = json_put_str(obj, "image", s->image);
	if (r == 0 && s->flavor[0])
		r = json_put_str(obj, "flavor", s->flavor);
	if (r == 0)
		r = json_write(obj, false, out);
	return r == 0 ? buf_puts(out, "\n") : r;
}

int pod_stage1_write(const struct pod *p, const struct stage1 *s, struct err *e)
{
	cleanup_buf struct buf text;
	buf_init(&text, POD_STAGE1_MAX);
	int r = format(s, &text);
	if (r == -EILSEQ)
		return err_set(e, r, "stage1 \"%s\": its path is not UTF-8 (rename it)", s->dir);
	if (r == 0)
		r = (p->durable ? file_write_at : file_replace_at)(
			p->fd, POD_FILE_STAGE1, buf_data(&text), buf_len(&text), FILE_MODE);
	return r < 0 ? err_sys(e, r, "cannot write \"" POD_FILE_STAGE1 "\" of the pod") : 0;
}

int pod_stage1_read(const struct pod *p, struct pod_stage1 *ret, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = file_read_at(p->fd, POD_FILE_STAGE1, POD_STAGE1_MAX, &text, &len);
	if (r == -ENOENT)
		return POD_STAGE1_NONE;
	if (r < 0)
		return err_sys(e, r, "its file \"" POD_FILE_STAGE1 "\"");
	return pod_stage1_parse(text, len, ret, e);
}

int pod_stage1_open(const struct pod *p, struct stage1 *ret, struct err *e)
{
	struct pod_stage1 s;
	int r = pod_stage1_read(p, &s, e);
	if (r == 0)
		r = stage1_open(s.dir, ret, e);
	if (r != 0)
		return r;
	if (ret->abi != s.abi)
		return err_set(e, -EPROTO, "stage1 \"%s\" is another one now", ret->dir);
	return str_copy(ret->image, sizeof(ret->image), s.image);
}
