/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/entry/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1/pod/mkfs.h"

/* Some 20 checks with every byte of their texts escaped. */
#define DOCUMENT_MAX ((size_t)256 * 1024)

#define EXIT_POD_CANNOT 1

void doctor_init(struct doctor *d)
{
	*d = (struct doctor){ .checks = json_object_new_array(), .can_run = true };
}

/* Adds @text, cut to its maximum; what is then no UTF-8 (a path may be anything) becomes '?'. */
static int put_text(struct json_object *obj, const char *key, const char *text)
{
	char copy[DOCTOR_TEXT_MAX + 1];
	snprintf(copy, sizeof(copy), "%s", text ? text : "");
	if (!str_is_utf8(copy))
		for (char *p = copy; *p; p++)
			if ((unsigned char)*p >= 0x80)
				*p = '?';
	return json_put_str(obj, key, copy);
}

static int record(struct doctor *d, const struct doctor_check *c)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	int r = put_text(obj, "name", c->name);
	if (r == 0)
		r = json_put_bool(obj, "ok", c->ok);
	if (r == 0)
		r = put_text(obj, "value", c->value);
	if (r == 0)
		r = put_text(obj, "detail", c->detail);
	if (r == 0)
		r = put_text(obj, "remedy", c->ok ? NULL : c->remedy);
	if (r == 0 && json_object_array_add(d->checks, obj) < 0)
		r = -ENOMEM;
	if (r == 0)
		(void)TAKE_PTR(obj);
	return r;
}

void doctor_add(struct doctor *d, const struct doctor_check *c)
{
	int r = d->checks ? record(d, c) : -ENOMEM;
	if (r < 0 && d->error == 0)
		d->error = r;
	if (c->needed && !c->ok)
		d->can_run = false;
}

void doctor_add_mkfs(struct doctor *d, bool needed, const char *what)
{
	bool ok = mkfs_is_there();
	doctor_add(d, &(struct doctor_check){ .name = "scratch",
					      .ok = ok,
					      .needed = needed,
					      .value = ok ? "yes" : "no",
					      .detail = what,
					      .remedy = "apt-get install e2fsprogs" });
}

void doctor_add_user(struct doctor *d, const char *if_root)
{
	char value[64];
	snprintf(value, sizeof(value), "uid %u, gid %u", (unsigned)geteuid(), (unsigned)getegid());
	doctor_add(d,
		   &(struct doctor_check){
			   .name = "user",
			   .ok = true,
			   .value = value,
			   .detail = geteuid() == 0 ? if_root
						    : "the processes of a pod run as this user" });
}

static int print_document(struct doctor *d)
{
	cleanup_json struct json_object *doc = json_object_new_object();
	cleanup_buf struct buf text;
	buf_init(&text, DOCUMENT_MAX);
	int r = json_put(doc, "checks", TAKE_PTR(d->checks));
	if (r == 0)
		r = json_write(doc, true, &text);
	if (r == 0)
		r = buf_puts(&text, "\n");
	return r == 0 ? fd_write_all(STDOUT_FILENO, buf_data(&text), buf_len(&text)) : r;
}

int doctor_finish(struct doctor *d)
{
	int r = d->error;
	if (r == 0)
		r = print_document(d);
	json_object_put(d->checks);
	d->checks = NULL;
	if (r < 0) {
		fprintf(stderr, "stage1: doctor: %s\n", strerror(-r));
		return EXIT_HUSK_FAILURE;
	}
	return d->can_run ? EXIT_SUCCESS : EXIT_POD_CANNOT;
}
