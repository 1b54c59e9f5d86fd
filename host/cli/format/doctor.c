/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"

void doctor_deinit(struct doctor *d)
{
	free(d->checks);
	*d = DOCTOR_INIT;
}

/* Copies a text, cut to @size - 1 bytes; what is not printable ASCII becomes '?'. */
static void copy_printable(char *dst, size_t size, const char *src)
{
	snprintf(dst, size, "%s", src ? src : "");
	for (char *c = dst; *c; c++)
		if (*c < 0x20 || *c > 0x7e)
			*c = '?';
}

int doctor_add(struct doctor *d, const char *name, bool ok, const char *value, const char *detail,
	       const char *remedy)
{
	if (d->n >= DOCTOR_CHECKS_MAX)
		return -E2BIG;
	struct doctor_check *checks = reallocarray(d->checks, d->n + 1, sizeof(*checks));
	if (!checks)
		return -ENOMEM;
	d->checks = checks;
	struct doctor_check *check = &checks[d->n++];
	check->ok = ok;
	copy_printable(check->name, sizeof(check->name), name);
	copy_printable(check->value, sizeof(check->value), value);
	copy_printable(check->detail, sizeof(check->detail), detail);
	copy_printable(check->remedy, sizeof(check->remedy), remedy);
	return 0;
}

/* An optional text: NULL if absent. 0, or -EBADMSG if it is not a string or too long. */
static int get_text(struct json_object *obj, const char *key, const char **ret)
{
	int r = json_get_str(obj, key, DOCTOR_INPUT_TEXT_MAX, ret);
	if (r == 0)
		return 0;
	*ret = NULL;
	return r == -ENOENT ? 0 : r;
}

static int add_check_json(struct doctor *d, struct json_object *obj)
{
	const char *name = NULL, *value = NULL, *detail = NULL, *remedy = NULL;
	bool ok = false;
	int r = json_get_str(obj, "name", DOCTOR_NAME_MAX, &name);
	if (r == 0)
		r = json_get_bool(obj, "ok", &ok);
	if (r == 0)
		r = get_text(obj, "value", &value);
	if (r == 0)
		r = get_text(obj, "detail", &detail);
	if (r == 0)
		r = get_text(obj, "remedy", &remedy);
	return r < 0 ? r : doctor_add(d, name, ok, value, detail, remedy);
}

int doctor_add_json(struct doctor *d, const char *text, size_t len, struct err *e)
{
	cleanup_json struct json_object *obj = NULL;
	int r = json_parse(text, len, &obj);
	struct json_object *list = r == 0 ? json_member(obj, "checks") : NULL;
	if (!list || !json_object_is_type(list, json_type_array))
		return err_set(e, -EBADMSG, "stage1's doctor printed no list of checks");
	size_t n = json_object_array_length(list);
	for (size_t i = 0; i < n; i++) {
		r = add_check_json(d, json_object_array_get_idx(list, i));
		if (r < 0)
			return err_sys(e, r, "check %zu of stage1's doctor", i);
	}
	return 0;
}

static int format_check(const struct doctor_check *c, int name_width, int value_width,
			struct buf *out)
{
	int r = buf_printf(out, "%s  %-*s", c->ok ? "ok  " : "MISS", name_width, c->name);
	if (r == 0 && c->detail[0])
		r = buf_printf(out, "  %-*s  %s", value_width, c->value, c->detail);
	else if (r == 0 && c->value[0])
		r = buf_printf(out, "  %s", c->value);
	if (r == 0)
		r = buf_puts(out, "\n");
	if (r == 0 && !c->ok && c->remedy[0])
		r = buf_printf(out, "      %-*s  -> %s\n", name_width, "", c->remedy);
	return r;
}

int doctor_format(const struct doctor *d, struct buf *out)
{
	int name_width = 0, value_width = 0;
	for (size_t i = 0; i < d->n; i++) {
		name_width = MAX(name_width, (int)strlen(d->checks[i].name));
		if (d->checks[i].detail[0])
			value_width = MAX(value_width, (int)strlen(d->checks[i].value));
	}
	for (size_t i = 0; i < d->n; i++) {
		int r = format_check(&d->checks[i], name_width, value_width, out);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Adds a text unless it is empty. */
static int put_text(struct json_object *obj, const char *key, const char *text)
{
	return *text ? json_put_str(obj, key, text) : 0;
}

static struct json_object *check_json(const struct doctor_check *c)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	if (json_put_str(obj, "name", c->name) < 0 || json_put_bool(obj, "ok", c->ok) < 0 ||
	    put_text(obj, "value", c->value) < 0 || put_text(obj, "detail", c->detail) < 0 ||
	    put_text(obj, "remedy", c->remedy) < 0)
		return NULL;
	return TAKE_PTR(obj);
}

struct json_object *doctor_json(const struct doctor *d, bool ok)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < d->n; i++)
		if (json_append(list, check_json(&d->checks[i])) < 0)
			return NULL;
	if (json_put_bool(obj, "ok", ok) < 0 || json_put(obj, "checks", TAKE_PTR(list)) < 0)
		return NULL;
	return TAKE_PTR(obj);
}
