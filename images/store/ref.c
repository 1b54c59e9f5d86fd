/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/ref.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/json.h"
#include "lib/base/str.h"

#define VERSION 1 /* of the format; a newer one is not read */

#define SETTLED_NS \
	INT64_C(1000000000) /* far above the granularity of the kernel's clock for files */

int ref_init(struct ref *r, const char *text)
{
	*r = (struct ref){ 0 };
	return str_copy(r->text, sizeof(r->text), text);
}

/* A member that is left out if it is empty. */
static int put_optional(struct json_object *o, const char *key, const char *value)
{
	return *value ? json_put_str(o, key, value) : 0;
}

int ref_format(const struct ref *r, struct buf *out)
{
	char text[REF_TEXT_MAX + 1];
	cleanup_json struct json_object *o = json_object_new_object();
	str_copy_text(text, sizeof(text), r->text); /* paths are bytes, JSON is not */
	int e = json_put_int(o, "version", VERSION);
	if (e == 0)
		e = json_put_str(o, "ref", text);
	if (e == 0)
		e = json_put_str(o, "image", r->image.hex);
	if (e == 0)
		e = put_optional(o, "source", r->source.hex);
	if (e == 0)
		e = json_put_int(o, "fetched", r->fetched_ns);
	if (e == 0)
		e = json_put_int(o, "maxAge", r->max_age_s);
	if (e == 0)
		e = put_optional(o, "etag", r->etag);
	if (e == 0)
		e = put_optional(o, "lastModified", r->last_modified);
	if (e == 0)
		e = put_optional(o, "stamp", r->stamp);
	if (e == 0)
		e = put_optional(o, "name", r->name);
	if (e == 0 && r->unverified)
		e = json_put_bool(o, "unverified", true);
	return e < 0 ? e : json_write(o, true, out);
}

/* Copies a string member; an absent one is "". */
static int get_optional(struct json_object *o, const char *key, size_t max, char *out)
{
	const char *s;
	int r = json_get_str(o, key, max, &s);
	out[0] = '\0';
	if (r == -ENOENT)
		return 0;
	if (r == 0 && !str_is_utf8(s)) /* json-c lets overlong forms through */
		r = -EBADMSG;
	return r < 0 ? r : str_copy(out, max + 1, s);
}

static int get_digests(struct json_object *o, struct ref *ret)
{
	char hex[DIGEST_HEX_LEN + 1];
	int r = get_optional(o, "source", DIGEST_HEX_LEN, hex);
	if (r == 0 && *hex)
		r = digest_from_hex(hex, &ret->source);
	if (r == 0)
		r = get_optional(o, "image", DIGEST_HEX_LEN, hex);
	return r < 0 ? r : digest_from_hex(hex, &ret->image);
}

int ref_parse(const char *text, size_t len, struct ref *ret)
{
	cleanup_json struct json_object *o = NULL;
	int64_t version;
	*ret = (struct ref){ 0 };
	int r = len > REF_JSON_MAX ? -EBADMSG : json_parse(text, len, &o);
	if (r < 0)
		return r;
	if (json_get_int(o, "version", VERSION, VERSION, &version) < 0 ||
	    json_get_int(o, "fetched", 0, INT64_MAX, &ret->fetched_ns) < 0 ||
	    json_get_int(o, "maxAge", 0, INT64_MAX, &ret->max_age_s) < 0 ||
	    get_optional(o, "ref", REF_TEXT_MAX, ret->text) < 0 ||
	    get_optional(o, "etag", REF_VALIDATOR_MAX, ret->etag) < 0 ||
	    get_optional(o, "lastModified", REF_VALIDATOR_MAX, ret->last_modified) < 0 ||
	    get_optional(o, "stamp", REF_STAMP_MAX, ret->stamp) < 0 ||
	    get_optional(o, "name", IMAGE_NAME_MAX, ret->name) < 0 || get_digests(o, ret) < 0)
		return -EBADMSG;
	int u = json_get_bool(o, "unverified", &ret->unverified);
	return u < 0 && u != -ENOENT ? -EBADMSG : 0;
}

/* Nanoseconds of a time, for a stamp. */
static int64_t stamp_time(const struct timespec *t)
{
	return (int64_t)((uint64_t)t->tv_sec * UINT64_C(1000000000) + (uint64_t)t->tv_nsec);
}

int ref_stamp(int fd, int64_t now_ns, char out[REF_STAMP_MAX + 1])
{
	struct stat st;
	out[0] = '\0';
	if (fstat(fd, &st) < 0)
		return -errno;
	if (stamp_time(&st.st_ctim) > now_ns - SETTLED_NS)
		return 0;
	snprintf(out, REF_STAMP_MAX + 1, "%ju-%ju-%jd-%" PRId64 "-%" PRId64, (uintmax_t)st.st_dev,
		 (uintmax_t)st.st_ino, (intmax_t)st.st_size, stamp_time(&st.st_mtim),
		 stamp_time(&st.st_ctim));
	return 0;
}
